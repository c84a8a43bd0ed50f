//! Which answers count as a summary. Pure.
//!
//! An answer replaces what a model will see of weeks of talk, so anything but the asked structure is
//! refused: then the summary before it stands, and nothing is lost.

use super::{FACTS_MAX, SUMMARY_MAX_TOKENS};
use crate::prompting::TokenCounter;
use crate::run::Finish;

/// Openings of a refusal, for the short answers that put one into the asked structure.
const REFUSALS: [&str; 8] = [
    "i'm sorry",
    "i am sorry",
    "sorry,",
    "i can't",
    "i cannot",
    "i can not",
    "i'm unable",
    "i am unable",
];
/// Only texts up to this length, in characters, count as a refusal; a longer text that opens like one sums up
/// what somebody else refused.
const REFUSAL_MAX_CHARS: usize = 200;

/// What a fact's line break and dash cost, at most.
const FACT_MARK_TOKENS: usize = 4;

/// Why an answer is no summary. Holds nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The answer ended at the limit of its tokens.
    #[error("the answer was cut; raise the model's `max_output_tokens`")]
    Cut,
    /// The provider's filter ended it.
    #[error("the provider's filter stopped the answer")]
    Filtered,
    /// It is not the structure that was asked for.
    #[error("the answer is not the JSON object that was asked for")]
    Unparsable,
    /// Its text is empty.
    #[error("the summary is empty")]
    Empty,
    /// The model refused.
    #[error("the model refused")]
    Refused,
    /// The summary is longer than [`SUMMARY_MAX_TOKENS`].
    #[error("the summary has {tokens} tokens, over {SUMMARY_MAX_TOKENS}")]
    Oversized {
        /// How long it is.
        tokens: usize,
    },
}

/// The summary in an answer.
///
/// # Errors
/// Why the answer is not accepted as a summary.
pub fn accept(text: &str, finish: Finish, counter: &dyn TokenCounter) -> Result<String, Rejection> {
    match finish {
        Finish::Length => return Err(Rejection::Cut),
        Finish::ContentFilter => return Err(Rejection::Filtered),
        Finish::Stop | Finish::Other => {}
    }
    let json = without_fence(text);
    let value: serde_json::Value = serde_json::from_str(json).map_err(|_| Rejection::Unparsable)?;
    let text = value.get("summary").and_then(serde_json::Value::as_str);
    let text = text.ok_or(Rejection::Unparsable)?.trim();
    if text.is_empty() {
        return Err(Rejection::Empty);
    }
    if is_refusal(text) {
        return Err(Rejection::Refused);
    }
    let tokens = counter.count(text) as usize;
    if tokens > SUMMARY_MAX_TOKENS {
        return Err(Rejection::Oversized { tokens });
    }
    Ok(with_facts(text, tokens, &facts_of(&value), counter))
}

/// The facts in an answer, one line each. Facts that are not text are left out.
fn facts_of(value: &serde_json::Value) -> Vec<String> {
    let facts = value.get("facts").and_then(serde_json::Value::as_array);
    let texts = facts.into_iter().flatten().filter_map(|fact| fact.as_str());
    texts
        .map(|fact| fact.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|fact| !fact.is_empty())
        .collect()
}

/// The text and the facts below it. Where not all of them fit, the oldest are left out.
fn with_facts(text: &str, tokens: usize, facts: &[String], counter: &dyn TokenCounter) -> String {
    let mut room = SUMMARY_MAX_TOKENS - tokens;
    let mut kept = 0;
    for fact in facts.iter().rev().take(FACTS_MAX) {
        let cost = counter.cost(fact) + FACT_MARK_TOKENS;
        if cost > room {
            break;
        }
        room -= cost;
        kept += 1;
    }
    let mut all = text.to_owned();
    for fact in &facts[facts.len() - kept..] {
        all.push_str("\n- ");
        all.push_str(fact);
    }
    all
}

/// The inside of a fenced block, where the whole answer is one.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inside = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"));
    inside.map_or(text, |inside| {
        inside.strip_prefix("json").unwrap_or(inside).trim()
    })
}

fn is_refusal(text: &str) -> bool {
    let opening = text.replace('\u{2019}', "'").to_lowercase();
    text.chars().count() <= REFUSAL_MAX_CHARS
        && REFUSALS.iter().any(|refusal| opening.starts_with(refusal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompting::ClassEstimate;

    fn judged(text: &str, finish: Finish) -> Result<String, Rejection> {
        accept(text, finish, &ClassEstimate)
    }

    #[test]
    fn only_the_asked_structure_is_a_summary() {
        let pears = || Ok("Ada likes pears.".to_owned());
        let cases = [
            (r#"{"summary": " Ada likes pears. "}"#, pears()),
            ("```json\n{\"summary\": \"Ada likes pears.\"}\n```", pears()),
            ("```\n{\"summary\": \"Ada likes pears.\"}\n```", pears()),
            ("Ada likes pears.", Err(Rejection::Unparsable)),
            (
                "I'm sorry, I can't help with that.",
                Err(Rejection::Unparsable),
            ),
            ("{}", Err(Rejection::Unparsable)),
            (r#"{"summary": 7}"#, Err(Rejection::Unparsable)),
            (r#"{"summary": "Ada"#, Err(Rejection::Unparsable)),
            (r#"{"summary": "  "}"#, Err(Rejection::Empty)),
            (
                r#"{"summary": "I’m sorry, but I can't do that."}"#,
                Err(Rejection::Refused),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(judged(text, Finish::Stop), expected, "{text}");
        }
    }

    #[test]
    fn facts_stand_below_the_text_and_the_oldest_give_way() {
        let cases = [
            (
                r#"{"summary": "S", "facts": ["A  b", " ", 7, "c\nd"]}"#,
                "S\n- A b\n- c d",
            ),
            (r#"{"summary": "S", "facts": "none"}"#, "S"),
            (r#"{"summary": "S", "facts": []}"#, "S"),
        ];
        for (text, expected) in cases {
            assert_eq!(
                judged(text, Finish::Stop).as_deref(),
                Ok(expected),
                "{text}"
            );
        }
        for (number, length) in [(60, 1), (25, 60)] {
            let facts: Vec<String> = (0..number)
                .map(|n| format!("{n} {}", "word ".repeat(length)))
                .collect();
            let answer = serde_json::json!({"summary": "S", "facts": facts}).to_string();
            let summary = judged(&answer, Finish::Stop).unwrap_or_default();
            assert!(ClassEstimate.count(&summary) as usize <= SUMMARY_MAX_TOKENS);
            let kept = summary.lines().count() - 1;
            assert!(kept > 2 && kept < number.min(FACTS_MAX + 1), "{kept}");
            assert!(summary.ends_with(facts[number - 1].trim_end()));
        }
    }

    #[test]
    fn what_was_cut_or_is_too_long_is_refused() {
        let whole = r#"{"summary": "Ada likes pears."}"#;
        assert_eq!(judged(whole, Finish::Length), Err(Rejection::Cut));
        assert_eq!(
            judged(whole, Finish::ContentFilter),
            Err(Rejection::Filtered)
        );
        let long = format!(r#"{{"summary": "{}"}}"#, "pears ".repeat(2_000));
        let refused = judged(&long, Finish::Stop);
        assert!(
            matches!(refused, Err(Rejection::Oversized { .. })),
            "{refused:?}"
        );
    }
}
