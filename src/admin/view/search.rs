//! What a search found.

use serde::{Deserialize, Serialize};

use vocative_store::contract::{SearchHit, SearchHits};
use vocative_store::{MATCHES_MAX, THREADS_MAX};

/// What a search found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchView {
    /// The conversation's name.
    pub conversation: String,
    /// The hits, the best first.
    pub hits: Vec<HitView>,
    /// Turns that match, as far as they were looked at.
    pub matches: usize,
    /// Whether there are more matches, older than those looked at.
    pub is_bounded: bool,
    /// Bounds that were met, in plain words.
    pub notes: Vec<String>,
}

/// A turn that was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HitView {
    /// The turn's id.
    pub id: String,
    /// Its conversation's id.
    pub conversation: String,
    /// Its capture order.
    pub seq: i64,
    /// When it was said, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
    /// The speaker's name.
    pub speaker: String,
    /// What was said, around the match.
    pub text: String,
}

impl SearchView {
    /// The view of what was found in the conversation of that name.
    #[must_use]
    pub fn of(found: &SearchHits, conversation: String) -> Self {
        let hit = |hit: &SearchHit| HitView {
            id: hit.turn.id.to_string(),
            conversation: hit.turn.conversation.to_string(),
            seq: hit.turn.seq().0,
            sent_at_ms: hit.turn.said_at_ms,
            speaker: hit.turn.participant.shown_name().to_owned(),
            text: hit.text.clone(),
        };
        let mut notes = Vec::new();
        if found.is_bounded {
            notes.push(format!(
                "Only the newest {MATCHES_MAX} matches were looked at; add words to find older ones."
            ));
        }
        if found.is_query_cut {
            notes.push("The query was too long; only its beginning was looked for.".to_owned());
        }
        if found.has_more_threads {
            notes.push(format!(
                "Only the newest {THREADS_MAX} threads were searched."
            ));
        }
        Self {
            conversation,
            hits: found.hits.iter().map(hit).collect(),
            matches: found.matches,
            is_bounded: found.is_bounded,
            notes,
        }
    }
}
