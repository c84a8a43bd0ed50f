//! The turns that the index of stems does not have yet: read and scored as they are.
//!
//! Where the indexing job keeps up there are a few hundred; while a large database is being indexed, or where no
//! daemon does the job, many more, and only the newest are read.

use super::forgiving::SearchBounds;
use super::{Match, RANKED_MAX_CHARS, SearchRange};
use crate::StoreError;
use crate::contract::TAIL_MAX;
use crate::engine::sql::Connection;
use crate::rows::columns::limit_of;
use crate::rows::names::NameLookup;
use vocative_core::ids::{ParticipantId, Seq};
use vocative_core::search::query::Query;

/// The most bytes of text that are read of the tail.
const TAIL_MAX_BYTES: usize = 2 << 20;

const TAIL_SQL: &str = "SELECT t.seq, t.conversation_id, t.sent_at_ms, t.ordinal, t.participant_id,
            substr(t.content, 1, ?3) AS content
     FROM turns t WHERE t.seq > ?1 AND t.visibility = 'room' AND t.content <> ''
     ORDER BY t.seq DESC LIMIT ?2";

/// The turns that wait for the index.
#[derive(Debug, Default)]
pub(super) struct Tail {
    pub(super) texts: Vec<TailText>,
    /// Whether there are more.
    pub(super) is_cut: bool,
}

#[derive(Debug)]
pub(super) struct TailText {
    pub(super) found: Match,
    pub(super) participant: ParticipantId,
    /// Mentions as names.
    pub(super) text: String,
}

impl Tail {
    pub(super) fn read(
        connection: &Connection,
        range: &SearchRange,
        bounds: &SearchBounds,
        names: &mut NameLookup<'_>,
        turns_max: usize,
    ) -> Result<Self, StoreError> {
        let turns_max = turns_max.min(TAIL_MAX);
        let mut statement = connection.prepare_cached(TAIL_SQL)?;
        let limit = limit_of(turns_max + 1);
        let mut rows = statement.query((bounds.through_seq, limit, RANKED_MAX_CHARS))?;
        let (mut tail, mut looked_at, mut bytes) = (Self::default(), 0, 0);
        while let Some(row) = rows.next()? {
            looked_at += 1;
            if looked_at > turns_max || bytes > TAIL_MAX_BYTES {
                tail.is_cut = true;
                break;
            }
            let conversation: i64 = row.get("conversation_id")?;
            let participant: ParticipantId = row.get("participant_id")?;
            let found = Match {
                sent_at_ms: row.get("sent_at_ms")?,
                ordinal: row.get("ordinal")?,
                seq: row.get::<_, Seq>("seq")?,
            };
            if !range.rows.contains(&conversation) || !bounds.admits(found, participant) {
                continue;
            }
            let content: String = row.get("content")?;
            bytes += content.len();
            tail.texts.push(TailText {
                found,
                participant,
                text: names.named(&content)?,
            });
        }
        Ok(tail)
    }
}

/// Tells which texts can't have any word of a query, faster than reading their words.
pub(super) struct Sieve(Vec<String>);

impl Sieve {
    const LETTERS: usize = 3;

    pub(super) fn of(query: &Query) -> Self {
        let wishes = query.wished.iter();
        let forms = wishes.flat_map(|wish| {
            let others = wish.stands_in.iter().map(|(stem, _)| stem);
            wish.stems.iter().chain(others).chain([&wish.plain])
        });
        let required = query.required.iter().flat_map(|it| it.words.first());
        let beginning = |form: &String| form.chars().take(Self::LETTERS).collect();
        let mut beginnings: Vec<String> = forms.chain(required).map(beginning).collect();
        beginnings.sort_unstable();
        beginnings.dedup();
        Self(beginnings)
    }

    /// Whether a text may have a word of the query: every stem begins like its word, and only ASCII letters are
    /// compared.
    pub(super) fn passes(&self, text: &str) -> bool {
        if !text.is_ascii() {
            return true;
        }
        let text = text.to_ascii_lowercase();
        // A stem may begin before a hyphen and end behind it.
        text.contains('-')
            || self
                .0
                .iter()
                .any(|beginning| text.contains(beginning.as_str()))
    }
}
