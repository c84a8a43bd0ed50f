//! How a message came to be captured, which says whether it may ask for an answer.

use vocative_contract::envelope::InboundMessage;

use crate::addressing::{MessageFacts, Verdict};

/// How a message came to be captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureOrigin {
    /// The platform told of it as it happened, or tells again.
    #[default]
    Live,
    /// It was missed and read back: it addresses as if it had been heard, while it is young enough.
    /// What was captured before is not judged again, and what was said before a backup was restored
    /// may have been answered since it was made: it is not answered again.
    CatchUp {
        /// When reading back began, in milliseconds since the Unix epoch: a question does not become too old
        /// while other chats are read.
        began_ms: i64,
    },
    /// It was said before the daemon was to listen: kept, and never answered.
    Backfill,
}

impl CaptureOrigin {
    /// Its word in log lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::CatchUp { .. } => "catch-up",
            Self::Backfill => "before the bot came",
        }
    }

    /// When a message counts as said that is captured at `now_ms`: the time for which it waited to be read makes
    /// it no older. In milliseconds since the Unix epoch.
    #[must_use]
    pub fn counted_from_ms(self, said_at_ms: i64, now_ms: i64) -> i64 {
        match self {
            Self::CatchUp { began_ms } => said_at_ms.saturating_add((now_ms - began_ms).max(0)),
            Self::Live | Self::Backfill => said_at_ms,
        }
    }

    /// What is left of a verdict on a message of this origin. Pure.
    #[must_use]
    pub fn bounded(
        self,
        verdict: Verdict,
        facts: &MessageFacts,
        message: &InboundMessage,
    ) -> Verdict {
        let asks = match self {
            Self::Live => true,
            Self::CatchUp { .. } => {
                let may_have_been_answered = facts
                    .restored_at_ms
                    .is_some_and(|restored_at_ms| message.sent_at_ms <= restored_at_ms);
                !may_have_been_answered && (!facts.is_known || message.edit_marker.is_some())
            }
            Self::Backfill => false,
        };
        if asks {
            return verdict;
        }
        Verdict {
            // An edit settles whom its message addresses: what it addressed before, it still does.
            addressed_to: facts.addressed_before.clone(),
            runs: crate::addressing::RunVerdict::TooOld,
            notice: None,
            would_follow_up: false,
            command: None,
            answers: None,
            changes: None,
            ..verdict
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addressing::{Notice, NoticeKind, RunVerdict};
    use crate::judging::testing::{agent, message};

    fn verdict() -> Verdict {
        Verdict {
            is_admitted: true,
            addressed_to: vec![agent("kael")],
            notice: Some(Notice {
                kind: NoticeKind::LimitMet,
                text: "enough".into(),
                is_private: false,
            }),
            would_follow_up: true,
            ..Verdict::default()
        }
    }

    #[test]
    fn only_what_was_missed_asks_again() {
        let known = MessageFacts {
            is_known: true,
            ..MessageFacts::default()
        };
        let new = MessageFacts::default();
        let table = [
            (CaptureOrigin::Live, &new, true),
            (CaptureOrigin::Live, &known, true),
            (CaptureOrigin::CatchUp { began_ms: 0 }, &new, true),
            (CaptureOrigin::CatchUp { began_ms: 0 }, &known, false),
            (CaptureOrigin::Backfill, &new, false),
            (CaptureOrigin::Backfill, &known, false),
        ];
        for (origin, facts, asks) in table {
            let bounded = origin.bounded(verdict(), facts, &message("kael, hi"));
            assert!(bounded.is_admitted);
            assert_eq!(!bounded.addressed_to.is_empty(), asks, "{origin:?}");
            assert_eq!(bounded.notice.is_some(), asks, "{origin:?}");
            assert_eq!(bounded.runs == RunVerdict::Run, asks, "{origin:?}");
            assert_eq!(bounded.would_follow_up, asks, "{origin:?}");
        }
    }

    #[test]
    fn waiting_to_be_read_makes_no_question_older() {
        let read = CaptureOrigin::CatchUp { began_ms: 1_000 };
        assert_eq!(read.counted_from_ms(700, 9_000), 8_700);
        assert_eq!(read.counted_from_ms(700, 900), 700);
        assert_eq!(CaptureOrigin::Live.counted_from_ms(700, 9_000), 700);
    }

    #[test]
    fn what_was_said_before_a_restore_may_have_been_answered() {
        let message = message("kael, hi");
        let asks = |restored_at_ms| {
            let facts = MessageFacts {
                restored_at_ms: Some(restored_at_ms),
                ..MessageFacts::default()
            };
            let bounded =
                CaptureOrigin::CatchUp { began_ms: 0 }.bounded(verdict(), &facts, &message);
            bounded.runs == RunVerdict::Run
        };
        assert!(!asks(message.sent_at_ms));
        assert!(asks(message.sent_at_ms - 1));
    }

    #[test]
    fn an_edit_that_was_missed_is_judged_and_a_past_one_takes_nothing_back() {
        let facts = MessageFacts {
            is_known: true,
            addressed_before: vec![agent("ops")],
            ..MessageFacts::default()
        };
        let mut edited = message("kael, hi");
        edited.edit_marker = Some("2.0".into());
        let bounded =
            |origin: CaptureOrigin| origin.bounded(verdict(), &facts, &edited).addressed_to;
        assert_eq!(
            bounded(CaptureOrigin::CatchUp { began_ms: 0 }),
            [agent("kael")]
        );
        assert_eq!(bounded(CaptureOrigin::Backfill), [agent("ops")]);
    }
}
