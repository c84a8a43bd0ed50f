//! Which facts of a conversation survive in its summaries, fold after fold, by kind of fact.
//!
//! Reading order: `told` (the conversation and its facts), `perfect` (a model that keeps what it is asked to keep),
//! this file (the daemon's own worker at work, and the table).

mod perfect;
mod told;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use vocative::agent::models::Models;
use vocative::agent::registry::{AgentSpec, BackgroundModel, Registry};
use vocative::capture::clock::Clock;
use vocative::capture::wake::Wake;
use vocative::cli::CliError;
use vocative::delivery::rooms::Rooms;
use vocative::summary::summarizer::Summarizer;
use vocative_contract::envelope::{ChatKind, Place, Sender, SenderKind};
use vocative_contract::identity::Platform;
use vocative_core::addressing::{RunVerdict, Verdict};
use vocative_core::ids::{AccountId, AgentName};
use vocative_core::summary::Summary;
use vocative_core::turn::ParticipantKind;
use vocative_store::contract::{AccountBinding, Captured, NewMessage};
use vocative_store::{Store, StoreError, StoreOptions};

use self::perfect::Perfect;
use self::told::{FactKind, ToldConversation};
use crate::args::SummariesArgs;
use crate::judged::{self, failed};
use crate::print;

/// When the first line is said, in milliseconds since the Unix epoch: 2026-01-05, 08:00 UTC.
const FIRST_MS: i64 = 1_767_600_000_000;
const LINE_MS: i64 = 60_000;
/// Lines between two looks of the worker. The default settings fold some forty at once.
const LINES_BETWEEN: usize = 10;

/// Has conversations folded, and prints which facts survived.
///
/// # Errors
/// The store refuses, or no summary is made.
pub(crate) fn run(args: &SummariesArgs) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut summarisers = vec![
        ("without a model", Summariser::Offline),
        ("a perfect model", Summariser::Perfect),
    ];
    if let Some(base_url) = &args.base_url {
        summarisers.push((&args.model, Summariser::Real(base_url)));
    }
    let mut shown = format!(
        "What survives of facts that were said once, in {} conversations of {} lines, seed {}, after a number of folds\n",
        args.conversations, args.lines, args.seed
    );
    for (name, summariser) in summarisers {
        let mut survived = Survived::default();
        for seed in args.seed..args.seed.saturating_add(args.conversations) {
            let told = ToldConversation::draw(args.lines as usize, seed);
            let summaries = runtime.block_on(folded(&told, summariser, args))?;
            survived.count(&told, &summaries);
        }
        shown += &format!("\n{name}\n{}", survived.shown());
    }
    print(&shown)?;
    Ok(ExitCode::SUCCESS)
}

/// The model that makes the summaries.
#[derive(Clone, Copy)]
enum Summariser<'a> {
    Offline,
    Perfect,
    /// A model behind OpenAI's protocol.
    Real(&'a str),
}

/// Facts that survived in a summary and facts in the turns behind it, by kind and by the folds since they were said.
#[derive(Default)]
struct Survived {
    counts: BTreeMap<(FactKind, usize), (u32, u32)>,
    tokens: u64,
    summaries: u64,
}

impl Survived {
    fn count(&mut self, told: &ToldConversation, summaries: &[Summary]) {
        let mut through = 0;
        let mut folded_in = vec![None; told.facts.len()];
        for (number, summary) in summaries.iter().enumerate() {
            through += summary.turns;
            self.tokens += summary.tokens;
            self.summaries += 1;
            for (fact, folded_in) in told.facts.iter().zip(&mut folded_in) {
                if fact.line as u64 >= through {
                    continue;
                }
                let folds = number - *folded_in.get_or_insert(number) + 1;
                let (held, all) = self.counts.entry((fact.kind, folds)).or_default();
                *held += u32::from(fact.is_in(&summary.text));
                *all += 1;
            }
        }
    }

    fn shown(&self) -> String {
        let folds: Vec<usize> = [1, 2, 3, 5, 8, 12].to_vec();
        let mut shown = format!("  {:<10}", "folds");
        for folds in &folds {
            shown += &format!("{folds:>8}");
        }
        shown.push('\n');
        for kind in FactKind::ALL {
            shown += &format!("  {:<10}", kind.name());
            for folds in &folds {
                shown += &match self.counts.get(&(kind, *folds)) {
                    Some((held, all)) => format!("{:>6} %", held * 100 / all),
                    None => format!("{:>8}", "-"),
                };
            }
            shown.push('\n');
        }
        let tokens = self.tokens / self.summaries.max(1);
        shown + &format!("  {} summaries, {tokens} tokens each\n", self.summaries)
    }
}

/// A conversation's summaries, the oldest first, made by the daemon's worker.
async fn folded(
    told: &ToldConversation,
    summariser: Summariser<'_>,
    args: &SummariesArgs,
) -> Result<Vec<Summary>, CliError> {
    let options = StoreOptions {
        path: None,
        readers: 1,
        page_cache_kib: 4_096,
    };
    let (store, _) = Store::open(&options, FIRST_MS).map_err(|cause| refused(&cause))?;
    let binding = AccountBinding {
        channel: "acme".to_owned(),
        platform: Platform::Slack,
        account: "T1".to_owned(),
        name: "Acme".to_owned(),
    };
    let bound = store.bind_account(binding, FIRST_MS).await;
    let account = bound.map_err(|cause| refused(&cause))?;
    let worker = worker(&store, agent(summariser, told, args)?);
    let mut conversation = None;
    for (number, line) in told.lines.iter().enumerate() {
        let captured = store.capture_message(message(account, number, line)).await;
        if let Captured::New(turn) = captured.map_err(|cause| refused(&cause))? {
            conversation = Some(turn.conversation);
        }
        if number % LINES_BETWEEN == LINES_BETWEEN - 1 {
            while worker.once().await.map_err(|it| refused(&it))? > 0 {}
        }
    }
    let Some(conversation) = conversation else {
        return Ok(Vec::new());
    };
    let summaries = store.summaries(conversation, None).await;
    summaries.map_err(|cause| refused(&cause))
}

/// An agent with default settings.
fn agent(
    summariser: Summariser<'_>,
    told: &ToldConversation,
    args: &SummariesArgs,
) -> Result<AgentSpec, CliError> {
    let model = match summariser {
        Summariser::Real(base_url) => format!(
            "provider = \"openai\"\nname = \"{}\"\nbase_url = \"{base_url}\"\n",
            args.model
        ),
        _ => "provider = \"offline\"\n".to_owned(),
    };
    let mut agent = judged::agent(&model, "")?;
    if let Summariser::Perfect = summariser {
        agent.summary_model = Some(BackgroundModel {
            model: Arc::new(Perfect::of(told)),
            model_use: agent.model_use.clone(),
            context_limit: None,
            answer_reserve: 0,
        });
    }
    Ok(agent)
}

fn worker(store: &Store, agent: AgentSpec) -> Summarizer {
    let registry = Registry::default();
    registry.replace(vec![agent]);
    let wake = Wake::default();
    let clock: Clock = Arc::new(|| FIRST_MS);
    let models = Models::new(
        store.only(),
        registry.clone(),
        wake.clone(),
        Arc::clone(&clock),
    );
    Summarizer {
        store: store.only(),
        rooms: Rooms::default(),
        registry,
        models,
        wake,
        clock,
        counters: Arc::default(),
        looked: Mutex::default(),
    }
}

/// A message to the agent, too old to be answered.
fn message(account: AccountId, number: usize, (speaker, text): &(String, String)) -> NewMessage {
    let number = i64::try_from(number).unwrap_or(i64::MAX / LINE_MS);
    let sent_at_ms = FIRST_MS + number * LINE_MS;
    NewMessage {
        account,
        place: Place {
            chat: "C0GENERAL".to_owned(),
            kind: Some(ChatKind::Public),
            ..Place::default()
        },
        scope_override: None,
        message_id: format!("{}.000000", sent_at_ms / 1_000),
        sender: Sender {
            id: format!("U{speaker}"),
            display_name: Some(speaker.clone()),
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        sender_kind: ParticipantKind::User,
        text: text.clone(),
        attachments: Vec::new(),
        reply_to: None,
        quote: None,
        album: None,
        sent_at_ms,
        ordinal: number,
        is_edit: false,
        edit_marker: None,
        received_at_ms: sent_at_ms,
        tokens: None,
        keep_revisions: false,
        raw: None,
        judge: Box::new(|_| Verdict {
            is_admitted: true,
            addressed_to: vec![AgentName::trusted("vocative")],
            runs: RunVerdict::TooOld,
            ..Verdict::default()
        }),
        judge_follow_up: None,
    }
}

fn refused(cause: &StoreError) -> CliError {
    failed(format!("the store: {cause}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_model_keeps_is_carried_from_fold_to_fold() {
        let args = SummariesArgs {
            lines: 250,
            conversations: 1,
            seed: 5,
            base_url: None,
            model: String::new(),
        };
        let told = ToldConversation::draw(250, args.seed);
        let mut survived = Survived::default();
        survived.count(
            &told,
            &folded(&told, Summariser::Perfect, &args).await.unwrap(),
        );
        assert!(survived.counts.len() > 8, "{}", survived.shown());
        for (of, (held, all)) in &survived.counts {
            assert_eq!(held, all, "{of:?}");
        }
        let mut survived = Survived::default();
        survived.count(
            &told,
            &folded(&told, Summariser::Offline, &args).await.unwrap(),
        );
        let (held, all) = survived.counts[&(FactKind::Numbers, 2)];
        assert!(held * 10 >= all * 9, "{}", survived.shown());
    }
}
