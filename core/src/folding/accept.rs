//! Which answers count as a summary. Pure.
//!
//! An answer replaces what a model will see of weeks of talk, so anything but the asked structure is
//! refused: then the summary before it stands, and nothing is lost.

use super::SUMMARY_MAX_TOKENS;
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
    Ok(text.to_owned())
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
