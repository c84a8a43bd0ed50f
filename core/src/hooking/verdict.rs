//! What a hook may say, and what of it holds at its point.

use serde_json::Value;

use super::{HookPoint, is_narrower};
use crate::counted::counted;

/// The longest reason that is kept, in characters.
pub const REASON_MAX_CHARS: usize = 300;

/// The longest note that a model is told, in characters.
pub const NOTE_MAX_CHARS: usize = 2_000;

/// What a hook says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookDecision {
    /// Nothing against it.
    Pass,
    /// It is not to happen.
    Deny {
        /// Why, in words for people and for the model; may be empty.
        reason: String,
    },
    /// A person is to be asked first.
    Ask {
        /// Why; may be empty.
        reason: String,
    },
    /// A call is to be made with these arguments, as JSON.
    Narrow {
        /// The arguments.
        arguments: String,
    },
    /// Words were taken out.
    Redact {
        /// How many times; 0 = the hook did not count.
        count: u32,
        /// What stands in the text's place; `None` = it was taken out by pattern, which is done again.
        text: Option<String>,
    },
    /// The model is told this with the question.
    Note {
        /// The note.
        text: String,
    },
    /// The hook gave no valid verdict.
    Failed {
        /// What went wrong.
        reason: String,
    },
}

/// A verdict with what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookVerdict {
    /// The point.
    pub point: HookPoint,
    /// The step, from 1; 0 = the run or its answer.
    pub step: u32,
    /// The call's place in its step; 0 where it is about no call.
    pub n: u32,
    /// The hook's configured name.
    pub hook: String,
    /// What it said.
    pub verdict: HookDecision,
}

/// What a verdict is asked about.
#[derive(Clone, Copy, Debug)]
pub enum Judged<'a> {
    /// A run, or a request to the model.
    Going,
    /// A text.
    Text,
    /// A call with these arguments.
    Call(&'a Value),
}

impl HookDecision {
    /// The stored and shown name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Deny { .. } => "deny",
            Self::Ask { .. } => "ask",
            Self::Narrow { .. } => "narrow",
            Self::Redact { .. } => "redact",
            Self::Note { .. } => "note",
            Self::Failed { .. } => "failed",
        }
    }

    /// Why, in words; empty where there is nothing to say.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Deny { reason } | Self::Ask { reason } | Self::Failed { reason } => reason,
            Self::Pass | Self::Narrow { .. } | Self::Redact { .. } | Self::Note { .. } => "",
        }
    }

    /// What stands in the place of what was asked about.
    #[must_use]
    pub fn changed(&self) -> Option<&str> {
        match self {
            Self::Narrow { arguments } => Some(arguments),
            Self::Redact { text, .. } => text.as_deref(),
            Self::Note { text } => Some(text),
            Self::Pass | Self::Deny { .. } | Self::Ask { .. } | Self::Failed { .. } => None,
        }
    }

    /// How many times words were taken out.
    #[must_use]
    pub fn count(&self) -> u32 {
        match self {
            Self::Redact { count, .. } => *count,
            _ => 0,
        }
    }

    /// Reads a stored verdict. One with an unknown name or a missing part counts as failed.
    #[must_use]
    pub fn stored(name: &str, reason: String, changed: Option<String>, count: u32) -> Self {
        match (name, changed) {
            ("pass", _) => Self::Pass,
            ("deny", _) => Self::Deny { reason },
            ("ask", _) => Self::Ask { reason },
            ("narrow", Some(arguments)) => Self::Narrow { arguments },
            ("redact", text) => Self::Redact { count, text },
            ("note", Some(text)) => Self::Note { text },
            ("failed", _) => Self::Failed { reason },
            _ => Self::Failed {
                reason: "its stored verdict can't be read".to_owned(),
            },
        }
    }
}

impl HookVerdict {
    /// The verdict in words for operators: `guard at before_tool (step 1): deny, not today`.
    #[must_use]
    pub fn words(&self) -> String {
        let at = match self.step {
            0 => self.point.name().to_owned(),
            step => format!("{} (step {step})", self.point.name()),
        };
        let more = match (&self.verdict, self.verdict.reason()) {
            (HookDecision::Redact { count: 0, .. }, _) => String::new(),
            (HookDecision::Redact { count, .. }, _) => {
                format!(", {}", counted(*count, "place", "places"))
            }
            (_, "") => String::new(),
            (_, reason) => format!(", {reason}"),
        };
        format!("{} at {at}: {}{more}", self.hook, self.verdict.name())
    }
}

/// The verdict as it counts at its point: one that asks for what can't be done there has failed.
#[must_use]
pub fn settle(point: HookPoint, judged: Judged<'_>, verdict: HookDecision) -> HookDecision {
    let is_admitted = match &verdict {
        HookDecision::Pass | HookDecision::Failed { .. } => true,
        HookDecision::Deny { .. } => point.decides(),
        HookDecision::Ask { .. } => point == HookPoint::BeforeTool,
        HookDecision::Narrow { .. } => matches!(judged, Judged::Call(_)),
        HookDecision::Redact { .. } => matches!(judged, Judged::Text) && point.takes_words_out(),
        HookDecision::Note { .. } => point == HookPoint::BeforeRun,
    };
    if !is_admitted {
        let (verdict, point) = (verdict.name(), point.name());
        return failed(format!("it said \"{verdict}\", which it can't at {point}"));
    }
    match (verdict, judged) {
        (HookDecision::Narrow { arguments }, Judged::Call(asked)) => {
            let read: Option<Value> = serde_json::from_str(&arguments).ok();
            match read.is_some_and(|narrowed| is_narrower(&narrowed, asked)) {
                true => HookDecision::Narrow { arguments },
                false => failed("it wanted arguments that ask for more, or for something else"),
            }
        }
        (HookDecision::Deny { reason }, _) => HookDecision::Deny {
            reason: short(&reason),
        },
        (HookDecision::Ask { reason }, _) => HookDecision::Ask {
            reason: short(&reason),
        },
        (HookDecision::Note { text }, _) if text.chars().nth(NOTE_MAX_CHARS).is_some() => failed(
            format!("its note is longer than {NOTE_MAX_CHARS} characters"),
        ),
        (verdict, _) => verdict,
    }
}

fn failed(reason: impl Into<String>) -> HookDecision {
    HookDecision::Failed {
        reason: reason.into(),
    }
}

/// A reason on one line, within its limit.
fn short(reason: &str) -> String {
    let words = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(REASON_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn every() -> [HookDecision; 8] {
        [
            HookDecision::Pass,
            HookDecision::Deny {
                reason: "no".to_owned(),
            },
            HookDecision::Ask {
                reason: String::new(),
            },
            HookDecision::Narrow {
                arguments: r#"{"n":1}"#.to_owned(),
            },
            HookDecision::Redact {
                count: 2,
                text: None,
            },
            HookDecision::Redact {
                count: 0,
                text: Some("x".to_owned()),
            },
            HookDecision::Note {
                text: "x".to_owned(),
            },
            HookDecision::Failed {
                reason: "gone".to_owned(),
            },
        ]
    }

    #[test]
    fn a_verdict_is_read_back_as_it_was_stored() {
        for verdict in every() {
            let changed = verdict.changed().map(str::to_owned);
            let reason = verdict.reason().to_owned();
            let stored = HookDecision::stored(verdict.name(), reason, changed, verdict.count());
            assert_eq!(stored, verdict);
        }
        for name in ["narrow", "note", "later"] {
            let stored = HookDecision::stored(name, String::new(), None, 0);
            assert_eq!(stored.name(), "failed", "{name}");
        }
    }

    #[test]
    fn what_can_not_be_done_at_a_point_has_failed() {
        let asked = json!({"n": 2});
        let names = |point, judged| {
            let settled = every().map(|verdict| settle(point, judged, verdict));
            settled
                .iter()
                .map(HookDecision::name)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let table = [
            (
                HookPoint::BeforeTool,
                Judged::Call(&asked),
                "pass deny ask narrow failed failed failed failed",
            ),
            (
                HookPoint::BeforePost,
                Judged::Text,
                "pass deny failed failed redact redact failed failed",
            ),
            (
                HookPoint::BeforeRun,
                Judged::Going,
                "pass deny failed failed failed failed note failed",
            ),
            (
                HookPoint::AfterTool,
                Judged::Text,
                "pass deny failed failed redact redact failed failed",
            ),
            (
                HookPoint::RunEnded,
                Judged::Going,
                "pass failed failed failed failed failed failed failed",
            ),
        ];
        for (point, judged, expected) in table {
            assert_eq!(names(point, judged), expected, "{point:?}");
        }
        for (chars, name) in [(NOTE_MAX_CHARS, "note"), (NOTE_MAX_CHARS + 1, "failed")] {
            let text = "ä".repeat(chars);
            let settled = settle(
                HookPoint::BeforeRun,
                Judged::Going,
                HookDecision::Note { text },
            );
            assert_eq!(settled.name(), name, "{chars}");
        }
        for wrong in [r#"{"n":3}"#, r#"{"n":"#, "1"] {
            let verdict = HookDecision::Narrow {
                arguments: wrong.to_owned(),
            };
            let settled = settle(HookPoint::BeforeTool, Judged::Call(&asked), verdict);
            assert_eq!(settled.name(), "failed", "{wrong}");
        }
    }

    #[test]
    fn a_reason_is_one_line_within_its_limit() {
        let verdict = HookDecision::Deny {
            reason: format!("not\n here {}", "ä".repeat(500)),
        };
        let settled = settle(HookPoint::BeforePost, Judged::Text, verdict);
        assert!(settled.reason().starts_with("not here ää"));
        assert_eq!(settled.reason().chars().count(), REASON_MAX_CHARS + 1);
    }
}
