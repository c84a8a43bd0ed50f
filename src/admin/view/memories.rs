//! What agents remember.

use serde::{Deserialize, Serialize};
use vocative_contract::envelope::ChatKind;
use vocative_core::remembering::StoredMemory;

/// Something that an agent remembers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedView {
    /// Its number.
    pub id: i64,
    /// The agent.
    pub agent: String,
    /// What kind of thing: a fact, a preference, ...
    pub kind: String,
    /// What is remembered.
    pub text: String,
    /// Whom it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Who said it.
    pub teller: String,
    /// The room in which it was said.
    pub room: String,
    /// Whether that is, or was then, a direct chat.
    pub is_direct: bool,
    /// Since when it holds, in milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// When it was written.
    pub written_at_ms: i64,
    /// Of how many messages it was made.
    pub sources: usize,
}

impl RememberedView {
    /// The view of an entry.
    #[must_use]
    pub fn of(memory: &StoredMemory) -> Self {
        let is_direct = |kind| matches!(kind, Some(ChatKind::Direct | ChatKind::GroupDirect));
        Self {
            id: memory.at.id.0,
            agent: memory.agent.to_string(),
            kind: memory.kind.name().to_owned(),
            text: memory.text.clone(),
            subject: memory.subject.as_ref().map(|it| it.name.clone()),
            teller: memory.teller.name.clone(),
            room: memory.room_title.clone(),
            is_direct: is_direct(memory.learnt.kind_then) || is_direct(memory.learnt.kind_now),
            since_ms: memory.since_ms,
            written_at_ms: memory.written_at_ms,
            sources: memory.sources.len(),
        }
    }
}
