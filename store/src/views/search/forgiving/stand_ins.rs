//! Finds what may have been meant by a word that is in no line.

use super::ForgivingSearch;
use crate::StoreError;
use crate::contract::SearchHits;
use crate::engine::sql::params;
use crate::rows::columns::limit_of;
use crate::views::search::candidates::Candidates;
use vocative_core::search::query::Query;
use vocative_core::search::scoring::PreparedLine;
use vocative_core::search::spelling::{Kinship, MISSPELT_MIN_CHARS, kinship};
use vocative_core::search::text::words;

/// The most words of the vocabulary that a word in no line is compared with.
const VOCABULARY_MAX: usize = 20_000;
/// The most words that stand in for a word in no line.
const STANDS_IN_MAX: usize = 6;
/// How much a word that stands in for another counts.
const MISSPELT_SHARE: f64 = 0.7;
const PART_SHARE: f64 = 0.55;

impl ForgivingSearch<'_> {
    /// For wished words that are in no line: the words of the vocabulary that may have been meant. Returns whether
    /// there are any.
    pub(super) fn find_stand_ins(
        &self,
        wording: &mut Query,
        candidates: &Candidates,
        tail: &[(usize, PreparedLine, u64)],
        found: &mut SearchHits,
    ) -> Result<bool, StoreError> {
        let mut is_changed = false;
        for (n, wish) in wording.wished.iter_mut().enumerate() {
            let in_tail = tail.iter().any(|(_, _, wishes)| wishes & (1 << n) != 0);
            let is_known = in_tail || candidates.lines_with.get(n).is_some_and(|it| *it > 0);
            let is_short = wish.plain.chars().nth(MISSPELT_MIN_CHARS - 1).is_none();
            if is_known || is_short || wish.is_gram {
                continue;
            }
            let mut meant = self.meant_by(&wish.plain)?;
            meant.sort();
            meant.dedup_by(|(_, a), (_, b)| a == b);
            let least = meant.first().map(|(kinship, _)| *kinship);
            // If some words differ by one letter, those that differ by two are unlikely, and words that only share a
            // part, too.
            meant.retain(|(kinship, _)| Some(*kinship) == least);
            meant.truncate(STANDS_IN_MAX);
            if meant.is_empty() {
                continue;
            }
            let words: Vec<String> = meant.iter().map(|(_, word)| word.clone()).collect();
            let known = found.taken_for.iter().any(|(word, _)| *word == wish.plain);
            if !known {
                found.taken_for.push((wish.plain.clone(), words));
            }
            let share = |kinship| match kinship {
                Kinship::Misspelt(_) => MISSPELT_SHARE,
                Kinship::Part => PART_SHARE,
            };
            wish.stands_in = meant
                .into_iter()
                .map(|(kin, word)| (word, share(kin)))
                .collect();
            is_changed = true;
        }
        Ok(is_changed)
    }

    /// The words of what is searched that a word may have been meant for.
    fn meant_by(&self, word: &str) -> Result<Vec<(Kinship, String)>, StoreError> {
        let asked: Vec<char> = word.chars().collect();
        let mut meant = Vec::new();
        let mut compare = |known: &str| {
            let chars: Vec<char> = known.chars().collect();
            if let Some(kinship) = kinship(&asked, &chars) {
                meant.push((kinship, known.to_owned()));
            }
        };
        let rows = &self.asking.range.rows;
        let each = limit_of((VOCABULARY_MAX / rows.len().max(1)).max(1));
        let first: String = asked.iter().take(1).collect();
        for row in rows {
            // Words from the same first letter on come first, as most typos keep it; then the rest, up to the limit.
            for sql in [
                "SELECT stem FROM vocabulary WHERE conversation_id = ?1 AND stem >= ?2 LIMIT ?3",
                "SELECT stem FROM vocabulary WHERE conversation_id = ?1 AND stem < ?2 LIMIT ?3",
            ] {
                let mut statement = self.asking.connection.prepare_cached(sql)?;
                let mut stems = statement.query(params![row, first, each])?;
                while let Some(row) = stems.next()? {
                    compare(&row.get::<_, String>("stem")?);
                }
            }
        }
        for it in &self.tail.texts {
            for word in words(&it.text) {
                compare(&word.plain);
            }
        }
        Ok(meant)
    }
}
