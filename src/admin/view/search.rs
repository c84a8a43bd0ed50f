//! What a search found.

use serde::{Deserialize, Serialize};

use crate::tools::search::link;
use vocative_store::THREADS_MAX;
use vocative_store::contract::{Neighbour, SearchFilter, SearchHit, SearchHits};

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
    /// Limits that were reached, in plain words.
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
    /// Messages that say nearly the same and are not given.
    #[serde(default)]
    pub similar: usize,
    /// The address at which people open it, where the platform has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The messages before it, oldest first.
    #[serde(default)]
    pub before: Vec<BesideView>,
    /// The messages after it, oldest first.
    #[serde(default)]
    pub after: Vec<BesideView>,
    /// The message that it replies to, unless that is given already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies_to: Option<BesideView>,
    /// The first message that replies to it, unless that is given already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<BesideView>,
}

/// A message beside one that was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BesideView {
    /// Its capture order.
    pub seq: i64,
    /// When it was said, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
    /// The speaker's name.
    pub speaker: String,
    /// What was said, cut short.
    pub text: String,
}

impl BesideView {
    fn of(neighbour: &Neighbour) -> Self {
        Self {
            seq: neighbour.turn.seq().0,
            sent_at_ms: neighbour.turn.said_at_ms,
            speaker: neighbour.turn.participant.shown_name().to_owned(),
            text: neighbour.text.clone(),
        }
    }
}

/// Further conditions on the hits of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchFilterView {
    /// Said by this person.
    pub from: Option<String>,
    /// Sent at or after, in milliseconds since the Unix epoch.
    pub after_ms: Option<i64>,
    /// Sent before, in milliseconds since the Unix epoch.
    pub before_ms: Option<i64>,
    /// With a file whose name has this in it.
    pub files: Option<String>,
}

impl SearchFilterView {
    /// The filter of a query.
    #[must_use]
    pub fn filter(self) -> SearchFilter {
        SearchFilter {
            from: self.from,
            after_ms: self.after_ms,
            before_ms: self.before_ms,
            files: self.files,
        }
    }
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
            similar: hit.same,
            link: link(hit),
            before: hit.before.iter().map(BesideView::of).collect(),
            after: hit.after.iter().map(BesideView::of).collect(),
            replies_to: hit.replied_to.as_ref().map(BesideView::of),
            answered_by: hit.answered_by.as_ref().map(BesideView::of),
        };
        let mut notes = Vec::new();
        if found.is_speaker_unknown {
            notes.push("Nobody of that name has said anything here.".to_owned());
        }
        for (word, others) in &found.taken_for {
            notes.push(format!(
                "No message has {word:?}; looked for {}.",
                others.join(", ")
            ));
        }
        if found.is_bounded {
            notes.push(
                "Only the newest matches were looked at; add rarer words to find older ones."
                    .to_owned(),
            );
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
