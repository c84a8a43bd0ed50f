//! A recorded step: what a resumed run replays instead of asking the model again.

use serde::{Deserialize, Serialize};

use crate::domain::run::Usage;
use crate::llm::{Answer, Finish};

/// The version this build writes; a step of another version is not replayed.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Recorded {
    version: u32,
    text: String,
    finish: String,
    prompt_tokens: u64,
    completion_tokens: u64,
    /// The provider's own message, opaque.
    message: String,
}

/// An answer as it is stored.
#[must_use]
pub(super) fn record(answer: &Answer) -> String {
    let recorded = Recorded {
        version: VERSION,
        text: answer.text.clone(),
        finish: finish_name(answer.finish).to_owned(),
        prompt_tokens: answer.usage.prompt_tokens,
        completion_tokens: answer.usage.completion_tokens,
        message: answer.raw_message.clone(),
    };
    serde_json::to_string(&recorded).expect("plain data with string keys")
}

/// The stored answer; `None` if another version wrote it.
#[must_use]
pub(super) fn replay(stored: &str) -> Option<Answer> {
    let recorded: Recorded = serde_json::from_str(stored).ok()?;
    (recorded.version == VERSION).then(|| Answer {
        text: recorded.text,
        usage: Usage {
            prompt_tokens: recorded.prompt_tokens,
            completion_tokens: recorded.completion_tokens,
        },
        raw_message: recorded.message,
        finish: finish_of(&recorded.finish),
    })
}

fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
        Finish::Other => "other",
    }
}

fn finish_of(name: &str) -> Finish {
    let all = [Finish::Stop, Finish::Length, Finish::ContentFilter];
    all.into_iter()
        .find(|finish| finish_name(*finish) == name)
        .unwrap_or(Finish::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_answer_is_replayed_whole_and_another_version_is_not() {
        let answer = Answer {
            text: "hello".into(),
            usage: Usage {
                prompt_tokens: 7,
                completion_tokens: 2,
            },
            raw_message: "{}".into(),
            finish: Finish::Length,
        };
        let stored = record(&answer);
        assert_eq!(replay(&stored), Some(answer));
        assert_eq!(
            replay(&stored.replace("\"version\":1", "\"version\":2")),
            None
        );
        assert_eq!(replay("not json"), None);
    }
}
