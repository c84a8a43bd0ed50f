//! The beginning of a run's prompt that later prompts of the conversation share, and whether they come in time for
//! the provider's cache. Pure.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::agent::prompting::BuiltPrompt;
use crate::llm::Caching;
use vocative_core::history::{History, HistoryRole};
use vocative_core::ids::{AgentName, ConversationId};
use vocative_core::turn::ParticipantKind;

/// With fewer questions, no time between them is estimated.
const QUESTIONS_MIN: usize = 4;

/// The beginning that a prompt shares with later ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stable {
    /// The number of its messages.
    pub(super) messages: usize,
    /// The same for all prompts of an agent in a conversation; a hash, which reveals neither.
    pub(super) key: String,
    /// The median time from one question to the next, in milliseconds; `None` if there were too few.
    pub(super) gap_ms: Option<i64>,
}

impl Stable {
    pub(super) fn of(built: &BuiltPrompt) -> Self {
        Self {
            messages: built.prompt.stable_messages,
            key: key(&built.voice.view.name, built.history.conversation.id),
            gap_ms: gap_ms(&built.history),
        }
    }
}

impl Stable {
    /// What the provider's cache may do for a request that begins with it.
    pub(super) fn caching(&self) -> Caching<'_> {
        Caching {
            stable_messages: self.messages,
            key: (!self.key.is_empty()).then_some(&self.key),
            gap_ms: self.gap_ms,
        }
    }
}

fn key(agent: &AgentName, conversation: ConversationId) -> String {
    let hash = Sha256::new_with_prefix(agent.as_str())
        .chain_update([0])
        .chain_update(conversation.0.as_bytes())
        .finalize();
    hash[..8].iter().fold(String::new(), |mut key, byte| {
        let _ = write!(key, "{byte:02x}");
        key
    })
}

fn gap_ms(history: &History) -> Option<i64> {
    let asked = history.turns.iter().filter(|read| {
        let is_person = read.turn.participant.kind == ParticipantKind::User;
        is_person && matches!(read.role, HistoryRole::Kept | HistoryRole::Trigger)
    });
    let mut times: Vec<i64> = asked.map(|read| read.turn.said_at_ms).collect();
    times.sort_unstable();
    if times.len() < QUESTIONS_MIN {
        return None;
    }
    let mut gaps: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocative_core::prompting::testing::{history, said};

    #[test]
    fn a_key_is_short_and_tells_agents_and_conversations_apart() {
        let name = AgentName::trusted;
        let (one, two) = (
            ConversationId(uuid::Uuid::from_u128(1)),
            ConversationId(uuid::Uuid::from_u128(2)),
        );
        let keys = [
            key(&name("a"), one),
            key(&name("b"), one),
            key(&name("a"), two),
        ];
        assert!(keys.iter().all(|key| key.len() == 16), "{keys:?}");
        assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
    }

    #[test]
    fn the_gap_is_the_median_between_what_people_asked() {
        let gap_of = |numbers: &[u32]| {
            let turns = numbers
                .iter()
                .map(|n| said(*n, HistoryRole::Kept, "alice", "?"));
            gap_ms(&history(turns.collect()))
        };
        assert_eq!(gap_of(&[1, 2, 3]), None);
        assert_eq!(gap_of(&[1, 2, 4, 1_000]), Some(2_000));
        let own = (1..9).map(|n| said(n, HistoryRole::Kept, "kael", "!"));
        assert_eq!(gap_ms(&history(own.collect())), None);
    }
}
