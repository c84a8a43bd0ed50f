//! What happens when a prompt is longer than its model's context: what is learnt about the context's size, and which
//! tool results are left out.
//!
//! Pure. A history that fits is found by assembling the prompt again within the learnt size.

use crate::agent::registry::AgentSpec;
use crate::llm::Exchange;

/// The smallest context size that is believed, in tokens.
const LIMIT_MIN_TOKENS: usize = 512;
/// Of a context whose size was learnt, the answer gets at most one part in this many.
const ANSWER_PART: usize = 4;
/// Results shorter than this, in bytes, are not shortened.
const RESULT_MIN_BYTES: usize = 200;
/// The text in place of a result that is left out.
const LEFT_OUT: &str = "(left out: the model's context has no room for it)";
const CUT: &str = " … (cut: the model's context has no room for the rest)";

impl AgentSpec {
    /// The same agent, with limits that fit the learnt size of its model's context.
    pub(super) fn fitted(&self) -> Self {
        let Some(learnt) = self.model.context_limit() else {
            return self.clone();
        };
        let limit = self.context_limit.map_or(learnt, |limit| limit.min(learnt));
        Self {
            context_limit: Some(limit),
            answer_reserve: self.answer_reserve.min(limit / ANSWER_PART),
            ..self.clone()
        }
    }

    /// Tokens that the answer may have, if the context limits it.
    pub(super) fn output_tokens(&self) -> Option<u32> {
        self.model.context_limit()?;
        u32::try_from(self.answer_reserve).ok()
    }
}

/// The size of a context, in tokens as we count them: `sent` of them were a prompt that did not fit; `limit` and
/// `asked` is what the provider reported. If it reported nothing, half of it is tried next. Besides what fits there
/// is room for the answer.
pub(super) fn learnt_limit(
    limit: Option<u64>,
    asked: Option<u64>,
    sent: usize,
    answer_reserve: usize,
) -> usize {
    let sent = sent as u128;
    let fits = match (limit, asked) {
        // The provider counts other tokens than we do; scale by the part that fits.
        (Some(limit), Some(asked)) if asked > limit => {
            sent * u128::from(limit) / u128::from(asked) * 15 / 16
        }
        (Some(limit), _) => (u128::from(limit) * 3 / 4).min(sent * 3 / 4),
        (None, _) => sent / 2,
    };
    let fits = usize::try_from(fits).unwrap_or(usize::MAX);
    let answer = answer_reserve.min(fits / (ANSWER_PART - 1));
    fits.saturating_add(answer).max(LIMIT_MIN_TOKENS)
}

/// The exchanges with shorter results: earlier results are left out, the last ones cut to a quarter each. Thoughts
/// after a changed result are bound to it and are not sent back.
pub(super) fn shrunk(exchanges: &[Exchange]) -> Vec<Exchange> {
    let mut shrunk = exchanges.to_vec();
    let mut is_changed = false;
    let last = shrunk.len().saturating_sub(1);
    for (n, exchange) in shrunk.iter_mut().enumerate() {
        if is_changed {
            exchange.raw_message.clear();
        }
        for result in &mut exchange.results {
            if result.content.len() <= RESULT_MIN_BYTES {
                continue;
            }
            is_changed = true;
            if n < last {
                LEFT_OUT.clone_into(&mut result.content);
            } else {
                let mut kept = result.content.len() / 4;
                while !result.content.is_char_boundary(kept) {
                    kept -= 1;
                }
                result.content.truncate(kept);
                result.content.push_str(CUT);
            }
        }
    }
    shrunk
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::ToolResult;

    #[test]
    fn what_a_context_holds_is_learnt_in_our_own_tokens() {
        let table = [
            ((Some(8_000), Some(16_000), 20_000), 9_475),
            ((Some(8_000), None, 20_000), 6_100),
            ((Some(8_000), None, 4_000), 3_100),
            ((None, None, 20_000), 10_100),
            ((Some(512), Some(u64::MAX), 20_000), LIMIT_MIN_TOKENS),
            ((None, None, usize::MAX), usize::MAX / 2 + 100),
        ];
        for ((limit, asked, sent), expected) in table {
            assert_eq!(learnt_limit(limit, asked, sent, 100), expected);
        }
        // An answer gets no more than a quarter.
        assert_eq!(learnt_limit(None, None, 6_000, 4_096), 4_000);
    }

    #[test]
    fn results_give_way_oldest_first_and_thoughts_behind_them() {
        let exchange = |content: &str| Exchange {
            told: String::new(),
            text: String::new(),
            calls: Vec::new(),
            results: vec![ToolResult {
                call_id: "a".to_owned(),
                content: content.to_owned(),
                is_error: false,
                images: Vec::new(),
            }],
            raw_message: "raw".to_owned(),
        };
        let long = "ä".repeat(400);
        let shrunk = shrunk(&[exchange("short"), exchange(&long), exchange(&long)]);
        let contents: Vec<&str> = shrunk
            .iter()
            .map(|it| it.results[0].content.as_str())
            .collect();
        assert_eq!(
            contents,
            ["short", LEFT_OUT, &format!("{}{CUT}", "ä".repeat(100))]
        );
        let raws: Vec<&str> = shrunk.iter().map(|it| it.raw_message.as_str()).collect();
        assert_eq!(raws, ["raw", "raw", ""]);
    }
}
