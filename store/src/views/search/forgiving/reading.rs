//! Which of the candidates' texts are read and taken apart: a bounded number.

use std::collections::HashMap;
use std::rc::Rc;

use super::{ForgivingSearch, TAKEN_APART_MAX_BYTES, file_names};
use crate::StoreError;
use crate::contract::SearchHits;
use crate::engine::sql::{OptionalExtension, params};
use crate::views::search::candidates::Candidates;
use crate::views::search::{Match, RANKED_MAX_CHARS};
use vocative_contract::markup::MENTION_OPEN;
use vocative_core::ids::{ParticipantId, Seq};
use vocative_core::search::scoring::PreparedLine;

/// The most different texts that are taken apart for a wording.
const TEXTS_MAX: usize = 240;
/// Of these, the most for one set of words, so that lines with all words don't displace those with the rarest one.
const TEXTS_OF_SET: usize = 80;
/// The most turns whose texts are read for a wording; a text that was said again and again is taken apart once.
const TURNS_MAX: usize = 2_000;
/// Of these, the most for one set of words.
const TURNS_OF_SET: usize = 1_000;

const READ_SQL: &str = "SELECT t.sent_at_ms, t.ordinal, t.participant_id, t.attachments,
            substr(t.content, 1, ?2) AS content
     FROM turns t WHERE t.seq = ?1 AND t.visibility = 'room'";

impl ForgivingSearch<'_> {
    /// Reads the turns of sets, the first sets first: of each its newest, then more of them while there is room.
    pub(super) fn read_of(
        &mut self,
        sets: &[Vec<i64>],
        found: &mut SearchHits,
    ) -> Result<Vec<i64>, StoreError> {
        let mut read = Vec::new();
        let mut texts_left = TEXTS_MAX;
        let taken_apart_max = self.taken_apart + TAKEN_APART_MAX_BYTES;
        let mut left: Vec<&[i64]> = sets.iter().map(Vec::as_slice).collect();
        for (texts_max, turns_max) in [(TEXTS_OF_SET, TURNS_OF_SET), (TEXTS_MAX, TURNS_MAX)] {
            for set in &mut left {
                let before = self.lines.len();
                let turns_max = turns_max.min(TURNS_MAX - read.len());
                let mut turns = 0;
                while turns < set.len().min(turns_max)
                    && self.lines.len() - before < texts_max.min(texts_left)
                    && self.taken_apart < taken_apart_max
                {
                    self.read(set[turns])?;
                    turns += 1;
                }
                texts_left -= self.lines.len() - before;
                read.extend_from_slice(&set[..turns]);
                *set = &set[turns..];
            }
        }
        found.is_bounded |= left.iter().any(|set| !set.is_empty());
        found.effort.texts += read.len();
        Ok(read)
    }

    /// Reads a turn, unless it was read for another wording.
    pub(super) fn read(&mut self, seq: i64) -> Result<(), StoreError> {
        if self.read.contains_key(&seq) {
            return Ok(());
        }
        let row = self
            .asking
            .connection
            .prepare_cached(READ_SQL)?
            .query_row(params![seq, RANKED_MAX_CHARS], |row| {
                let found = Match {
                    sent_at_ms: row.get("sent_at_ms")?,
                    ordinal: row.get("ordinal")?,
                    seq: Seq(seq),
                };
                let participant: ParticipantId = row.get("participant_id")?;
                let attachments: Option<String> = row.get("attachments")?;
                let content: String = row.get("content")?;
                Ok((found, participant, attachments, content))
            })
            .optional()?;
        let admits = |found, participant| self.asking.bounds.admits(found, participant);
        let read = match row {
            Some((found, participant, attachments, content)) if admits(found, participant) => {
                let mut text = match content.contains(MENTION_OPEN) {
                    true => self.names.named(&content)?,
                    false => content,
                };
                if self.query.filter.files.is_some() {
                    text.push('\n');
                    text.push_str(&file_names(attachments.as_deref()));
                }
                let line = match self.lines.get(&text) {
                    Some(line) => Rc::clone(line),
                    None => {
                        self.taken_apart += text.len();
                        let line = Rc::new(PreparedLine::knowing(&text, &mut self.stems));
                        self.lines.insert(text, Rc::clone(&line));
                        line
                    }
                };
                Some((found, participant, line))
            }
            _ => None,
        };
        self.read.insert(seq, read);
        Ok(())
    }
}

/// Turns by their places in the index, with their seq.
type IndexPlaces = Vec<(i64, i64)>;

/// The candidates by the set of words that they have, sets whose words weigh most first; the newest first in each.
pub(super) fn sets(candidates: &Candidates, rarities: &[f64]) -> Vec<Vec<i64>> {
    let mut sets: HashMap<u64, IndexPlaces> = HashMap::new();
    for (seq, (place, wishes)) in &candidates.turns {
        sets.entry(*wishes).or_default().push((*place, *seq));
    }
    let weight = |wishes: u64| -> f64 {
        let words = rarities
            .iter()
            .enumerate()
            .filter(|(n, _)| wishes & (1 << n) != 0);
        words.map(|(_, rarity)| rarity).sum()
    };
    let mut sets: Vec<_> = sets
        .into_iter()
        .map(|(wishes, turns)| (weight(wishes), wishes, turns))
        .collect();
    sets.sort_by(|(a, a_set, _), (b, b_set, _)| b.total_cmp(a).then(a_set.cmp(b_set)));
    let newest_first = |mut turns: IndexPlaces| {
        turns.sort_unstable_by(|a, b| b.cmp(a));
        turns.into_iter().map(|(_, seq)| seq).collect()
    };
    sets.into_iter()
        .map(|(_, _, turns)| newest_first(turns))
        .collect()
}
