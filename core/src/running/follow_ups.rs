//! Since when a thread is an agent's, and which of its earlier follow-ups are answered then.

use crate::addressing::{Verdict, edited_at_ms};

/// The most follow-ups that are judged again when their thread turns out to be an agent's, the oldest first;
/// those said later are judged when they come.
pub const FOLLOW_UPS_MAX: usize = 500;

/// The first message of a thread, as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootMessage<'a> {
    /// The platform's time, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
    /// In milliseconds since the Unix epoch.
    pub received_at_ms: i64,
    /// Whether it is an edit of a message that was known.
    pub is_edit_of_known: bool,
    /// The platform's mark of the edit.
    pub edit_marker: Option<&'a str>,
}

impl RootMessage<'_> {
    /// Since when it addresses its agents, in milliseconds since the Unix epoch: an edit does so only from when it was
    /// made.
    #[must_use]
    pub fn addresses_since_ms(&self) -> i64 {
        if !self.is_edit_of_known {
            return self.sent_at_ms.min(self.received_at_ms);
        }
        let edited_at_ms = self.edit_marker.and_then(edited_at_ms);
        edited_at_ms.unwrap_or(self.received_at_ms)
    }
}

/// Whether a follow-up that was judged again addresses somebody; it is not judged a third time then.
#[must_use]
pub fn is_settled(verdict: &Verdict) -> bool {
    verdict.is_admitted && !verdict.addressed_to.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::AgentName;

    #[test]
    fn a_thread_is_an_agents_since_its_root_was_said_or_edited_into_a_question() {
        let root = RootMessage {
            sent_at_ms: 5_000,
            received_at_ms: 9_000,
            is_edit_of_known: false,
            edit_marker: Some("7"),
        };
        let edited = RootMessage {
            is_edit_of_known: true,
            ..root
        };
        let table = [
            (root, 5_000),
            // The platform's clock is ahead of ours.
            (
                RootMessage {
                    sent_at_ms: 10_000,
                    ..root
                },
                9_000,
            ),
            (edited, 7_000),
            (
                RootMessage {
                    edit_marker: None,
                    ..edited
                },
                9_000,
            ),
            (
                RootMessage {
                    edit_marker: Some("m1"),
                    ..edited
                },
                9_000,
            ),
        ];
        for (root, expected) in table {
            assert_eq!(root.addresses_since_ms(), expected, "{root:?}");
        }
    }

    #[test]
    fn a_follow_up_keeps_its_mark_until_it_addresses_somebody() {
        let addressed_to = vec![AgentName::trusted("helper")];
        let table = [
            (true, addressed_to.clone(), true),
            (true, vec![], false),
            (false, addressed_to, false),
        ];
        for (is_admitted, addressed_to, expected) in table {
            let verdict = Verdict {
                is_admitted,
                addressed_to,
                ..Verdict::default()
            };
            assert_eq!(is_settled(&verdict), expected, "{verdict:?}");
        }
    }
}
