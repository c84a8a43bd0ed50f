//! What to read for a prompt, and how much room there is for it.

use crate::coverage::{Coverage, Keep};
use crate::history::HistoryQuery;
use crate::ids::{AgentName, ConversationId, RunId, Seq, TurnId};
use crate::options::{AssemblerOptions, Profile};

/// The facts of the run a prompt is for; the default reads everything and answers the newest turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunView {
    /// The run.
    pub run: Option<RunId>,
    /// Its read bound.
    pub as_of_seq: Option<Seq>,
    /// Its triggers, oldest first.
    pub triggers: Vec<TurnId>,
    /// Without a run: summaries and fresh starts that were made later don't count, in milliseconds since the
    /// Unix epoch.
    pub made_by_ms: Option<i64>,
}

/// The query for these options.
///
/// `now_ms` is the run's time (its first claim), in milliseconds since the Unix epoch.
#[must_use]
pub fn history_query(
    conversation: ConversationId,
    run: RunView,
    agent: &AgentName,
    options: &AssemblerOptions,
    now_ms: i64,
) -> HistoryQuery {
    // The toolpack profile filters after loading; ours lets the index find what is kept.
    let is_filtered_by_store = options.addressed_only && options.profile == Profile::Vocative;
    HistoryQuery {
        conversation,
        agent: agent.clone(),
        as_of_seq: run.as_of_seq,
        run: run.run,
        triggers: run.triggers,
        keep: if is_filtered_by_store {
            Keep::Involved
        } else {
            Keep::All
        },
        max_turns: options.max_turns_to_load,
        since_ms: options
            .time_window_minutes
            .map(|minutes| window_start_ms(now_ms, minutes)),
        scope: options.scope,
        parent_turns: options.parent_turns,
        ambient_turns: options.ambient_turns,
        summaries: Coverage::of(options),
        thread_answers: options.profile == Profile::Vocative,
        made_by_ms: run.made_by_ms,
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a float to integer cast saturates, and milliseconds since 1970 are exact in a float"
)]
fn window_start_ms(now_ms: i64, minutes: f64) -> i64 {
    (now_ms as f64 - minutes * 60_000.0).trunc() as i64
}

/// The model's context can't hold the instructions and the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a context of {limit} tokens can't hold instructions of {instructions} and an answer of \
     {reserve}; raise `context_limit`, or lower `max_output_tokens` or the instructions"
)]
pub struct ContextTooSmall {
    /// The model's context limit.
    pub limit: usize,
    /// Tokens of the instructions.
    pub instructions: usize,
    /// Tokens reserved for the answer.
    pub reserve: usize,
}

/// The options with budget and trigger limit lowered to what a model's context holds besides the
/// instructions and the answer.
///
/// # Errors
/// [`ContextTooSmall`] if nothing is left.
pub fn fit_context(
    options: &AssemblerOptions,
    limit: usize,
    instructions: usize,
    reserve: usize,
) -> Result<AssemblerOptions, ContextTooSmall> {
    let room = limit.saturating_sub(instructions).saturating_sub(reserve);
    if room == 0 {
        return Err(ContextTooSmall {
            limit,
            instructions,
            reserve,
        });
    }
    Ok(AssemblerOptions {
        token_budget: options.token_budget.min(room),
        trigger_max_tokens: options.trigger_max_tokens.min(room),
        ..options.clone()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_query_follows_profile_and_window() {
        let conversation = ConversationId(uuid::Uuid::nil());
        let agent = AgentName::trusted("kael");
        let run = RunView {
            run: None,
            as_of_seq: Some(Seq(7)),
            triggers: vec![TurnId(uuid::Uuid::nil())],
            made_by_ms: None,
        };
        let options = AssemblerOptions {
            time_window_minutes: Some(0.5),
            ambient_turns: 3,
            ..AssemblerOptions::default()
        };
        let query = history_query(conversation, run.clone(), &agent, &options, 100_000);
        assert_eq!(
            query,
            HistoryQuery {
                conversation,
                agent: agent.clone(),
                as_of_seq: Some(Seq(7)),
                run: None,
                triggers: run.triggers,
                keep: Keep::Involved,
                max_turns: 100,
                since_ms: Some(70_000),
                scope: None,
                parent_turns: 10,
                ambient_turns: 3,
                // A time window forgets on purpose.
                summaries: None,
                thread_answers: true,
                made_by_ms: None,
            }
        );
        let whole_room = AssemblerOptions {
            addressed_only: false,
            ..AssemblerOptions::default()
        };
        let summaries = |keep| Some(Coverage { keep, scope: None });
        for (options, keep, summaries) in [
            (AssemblerOptions::toolpack(), Keep::All, None),
            (whole_room, Keep::All, summaries(Keep::All)),
            (
                AssemblerOptions::default(),
                Keep::Involved,
                summaries(Keep::Involved),
            ),
        ] {
            let query = history_query(conversation, RunView::default(), &agent, &options, 0);
            assert_eq!((query.keep, query.summaries), (keep, summaries));
        }
    }

    #[test]
    fn a_small_context_lowers_the_budget_and_a_tiny_one_is_refused() {
        let options = AssemblerOptions::default();
        let fitted = fit_context(&options, 2_000, 300, 700).unwrap();
        assert_eq!(
            (fitted.token_budget, fitted.trigger_max_tokens),
            (1_000, 1_000)
        );
        assert_eq!(fit_context(&options, 100_000, 300, 700).unwrap(), options);
        let refused = fit_context(&options, 1_000, 300, 700).unwrap_err();
        assert!(refused.to_string().contains("raise `context_limit`"));
    }
}
