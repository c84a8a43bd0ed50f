//! Which turns are worth reading for a wording: the index says which of its words each turn has.
//!
//! Of each word a bounded number of places is read, the newest. A word that has more is *everywhere*: it ranks turns
//! that other words find, and of several such words the meeting places (turns that have them together) are looked up,
//! over a bounded stretch of the newest places. So a word in a million lines costs no more than one in two thousand.
//! Only old turns whose words are all everywhere are not looked at.

use std::collections::HashMap;

use super::SearchRange;
use super::forgiving::SearchBounds;
use crate::StoreError;
use crate::engine::sql::{Connection, params};
use crate::rows::columns::limit_of;
use crate::rows::search_text::{conversation_term, searchable};
use crate::rows::stem_index::{
    mention_entry, quoted, seq_at, speaker_entry, stem_entry, time_at_ms,
};
use vocative_core::ids::ParticipantId;
use vocative_core::search::query::{Query, Required, WordWish};

/// The most places that are read of one word.
const PLACES_EACH: usize = 4_000;
/// The most places that are read of all words of a wording.
const PLACES_MAX: usize = 12_000;
/// The most meeting places that are read of words that are everywhere.
const MEETINGS_MAX: usize = 300;
/// Among how many places of the rarest such word meeting places are looked for.
const MEETINGS_AMONG: usize = 20_000;
/// The most entries of the index that are asked for at once: forms of a word in several conversations.
const ENTRIES_MAX: usize = 1_000;
/// The most turns with required words that are looked at.
const REQUIRED_MAX: usize = 1_000;

const PLACES_SQL: &str = "SELECT rowid AS place FROM turn_stems
     WHERE turn_stems MATCH ?1 AND rowid >= ?2 AND rowid <= ?3 ORDER BY rowid DESC LIMIT ?4";
const SPOKEN_SQL: &str = "SELECT rowid AS seq FROM turn_text
     WHERE turn_text MATCH ?1 AND rowid > ?2 ORDER BY rowid DESC LIMIT ?3";

/// The people whose name a wished word is.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    pub(super) participants: Vec<ParticipantId>,
    /// Their ids as texts mention them.
    pub(super) mentions: Vec<String>,
}

/// What the index knows of the turns that have a word of a wording.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// By capture order: each turn's place, and which wished words it has, one bit each.
    pub(super) turns: HashMap<i64, (i64, u64)>,
    /// In how many lines each wished word is, as far as that is known.
    pub(super) lines_with: Vec<usize>,
    /// Whether there are more, older ones.
    pub(super) is_bounded: bool,
    /// Places that were read.
    pub(super) postings: usize,
}

/// What is asked of the index.
pub(super) struct IndexQuery<'a> {
    pub(super) connection: &'a Connection<'a>,
    pub(super) range: &'a SearchRange,
    pub(super) bounds: &'a SearchBounds,
}

impl IndexQuery<'_> {
    /// The turns that have words of a wording. `named` = for each wished word the people it may be the name of.
    pub(super) fn candidates(
        &self,
        query: &Query,
        named: &[Named],
    ) -> Result<Candidates, StoreError> {
        let mut found = Candidates::default();
        let each = (PLACES_MAX / query.wished.len().max(1)).min(PLACES_EACH);
        let mut common = Vec::new();
        for (n, (wish, named)) in query.wished.iter().zip(named).enumerate() {
            let expression = self.expression(wish, named);
            let places = self.places(&expression, self.bounds.first_place, each + 1)?;
            found.postings += places.len();
            found.lines_with.push(places.len().min(each));
            if places.len() > each {
                found.is_bounded = true;
                let oldest = places.last().copied().unwrap_or_default();
                let lines = self.bounds.estimated_lines(each, oldest);
                found.lines_with[n] = lines;
                common.push((lines, oldest, n, expression));
            }
            found.add(places.into_iter().take(each), 1 << n);
        }
        common.sort_by_key(|(lines, ..)| *lines);
        self.add_meetings(&common, each, &mut found)?;
        Ok(found)
    }

    /// Adds turns that have several words which are everywhere: all of them, and each two of the rarest three.
    fn add_meetings(
        &self,
        common: &[(usize, i64, usize, String)],
        each: usize,
        found: &mut Candidates,
    ) -> Result<(), StoreError> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        if common.len() > 2 {
            groups.push((0..common.len()).collect());
        }
        let pairs = [[0, 1], [0, 2], [1, 2]];
        let is_there = |pair: &&[usize; 2]| pair[1] < common.len();
        groups.extend(pairs.iter().filter(is_there).map(|pair| pair.to_vec()));
        for group in groups {
            let asked: Vec<&str> = group.iter().map(|n| common[*n].3.as_str()).collect();
            let bits = group
                .iter()
                .map(|n| 1_u64 << common[*n].2)
                .fold(0, |a, b| a | b);
            // The newest `each` places of the rarest word reach back to `oldest`. The stretch that is looked through
            // is longer by the factor by which MEETINGS_AMONG exceeds `each`.
            let (_, oldest, ..) = common[group[0]];
            let stretch = limit_of(MEETINGS_AMONG / each.max(1));
            let newest = self.bounds.newest_place;
            let from = newest.saturating_sub((newest - oldest).saturating_mul(stretch));
            let from = from.max(self.bounds.first_place);
            let places = self.places(&asked.join(" AND "), from, MEETINGS_MAX)?;
            found.postings += places.len();
            found.add(places.into_iter(), bits);
        }
        Ok(())
    }

    fn expression(&self, wish: &WordWish, named: &Named) -> String {
        let mut entries = Vec::new();
        for row in &self.range.rows {
            let stems = wish
                .stems
                .iter()
                .chain(wish.stands_in.iter().map(|(stem, _)| stem));
            entries.extend(stems.map(|stem| quoted(&stem_entry(*row, stem))));
            let mentions = named.mentions.iter();
            entries.extend(mentions.map(|id| quoted(&mention_entry(*row, id))));
            let speakers = named.participants.iter();
            entries.extend(speakers.map(|id| quoted(&speaker_entry(*row, *id))));
        }
        entries.truncate(ENTRIES_MAX);
        let expression = format!("({})", entries.join(" OR "));
        match self.bounds.speakers.is_empty() {
            true => expression,
            false => format!("({expression} AND ({}))", self.speakers()),
        }
    }

    fn speakers(&self) -> String {
        let of_row = |row: &i64| {
            let speakers = self.bounds.speakers.iter();
            let entry = |id: &ParticipantId| quoted(&speaker_entry(*row, *id));
            speakers.map(entry).collect::<Vec<_>>()
        };
        let entries = self.range.rows.iter().flat_map(of_row);
        entries.take(ENTRIES_MAX).collect::<Vec<_>>().join(" OR ")
    }

    fn places(&self, expression: &str, from: i64, limit: usize) -> Result<Vec<i64>, StoreError> {
        let mut statement = self.connection.prepare_cached(PLACES_SQL)?;
        let asked = params![expression, from, self.bounds.last_place, limit_of(limit)];
        let places = statement.query_map(asked, |row| row.get("place"))?;
        Ok(places.collect::<crate::engine::sql::Result<_>>()?)
    }

    /// Turns that have all that is required: by capture order, and those whose words the index of stems knows by
    /// position, too. Each is to be read to be sure.
    pub(super) fn with_required(&self, query: &Query) -> Result<Candidates, StoreError> {
        let mut found = Candidates::default();
        let asked = query.required.iter().map(|required| {
            let star = if required.is_beginning { "*" } else { "" };
            format!(
                "\"{}\"{star}",
                searchable(&required.asked).replace('"', " ")
            )
        });
        let asked = asked.collect::<Vec<_>>().join(" AND ");
        let spoken = self.spoken(&asked, 0, REQUIRED_MAX)?;
        found.is_bounded = spoken.len() == REQUIRED_MAX;
        found.postings += spoken.len();
        for seq in spoken {
            found.turns.insert(seq, (i64::MAX, 0));
        }
        if found.is_bounded {
            let whole = |it: &&Required| !it.is_beginning;
            let words = query.required.iter().filter(whole).flat_map(|it| &it.words);
            let of_word = |word: &String| {
                let wishes = Query::parse(word).wished;
                wishes
                    .first()
                    .map(|wish| self.expression(wish, &Named::default()))
            };
            let all: Vec<String> = words.filter_map(of_word).collect();
            if !all.is_empty() {
                let places =
                    self.places(&all.join(" AND "), self.bounds.first_place, REQUIRED_MAX)?;
                found.postings += places.len();
                found.add(places.into_iter(), 0);
            }
        }
        Ok(found)
    }

    /// Turns that have words as they are written, by the index that capture fills: those behind the index of stems,
    /// and those of a wording whose words no stem is made of.
    pub(super) fn as_written(
        &self,
        query: &Query,
        after_seq: i64,
        found: &mut Candidates,
    ) -> Result<(), StoreError> {
        const EACH: usize = 500;
        for (n, wish) in query.wished.iter().enumerate() {
            let asked = format!("\"{}\"", searchable(&wish.plain));
            let seqs = self.spoken(&asked, after_seq, EACH)?;
            found.postings += seqs.len();
            found.is_bounded |= seqs.len() == EACH;
            for seq in seqs {
                found.turns.entry(seq).or_insert((i64::MAX, 0)).1 |= 1 << n;
            }
        }
        Ok(())
    }

    fn spoken(&self, asked: &str, after_seq: i64, limit: usize) -> Result<Vec<i64>, StoreError> {
        let rows = self.range.rows.iter().copied().map(conversation_term);
        let expression = format!(
            "conversation : ({}) AND content : ({asked})",
            rows.collect::<Vec<_>>().join(" OR ")
        );
        let mut statement = self.connection.prepare_cached(SPOKEN_SQL)?;
        let seqs = statement.query_map((expression, after_seq, limit_of(limit)), |row| {
            row.get("seq")
        })?;
        Ok(seqs.collect::<crate::engine::sql::Result<_>>()?)
    }
}

impl Candidates {
    fn add(&mut self, places: impl Iterator<Item = i64>, bits: u64) {
        for place in places {
            let turn = self.turns.entry(seq_at(place)).or_insert((place, 0));
            turn.0 = place;
            turn.1 |= bits;
        }
    }
}

impl SearchBounds {
    /// Estimates in how many lines a word is whose newest places reach back to `oldest`: it assumes as many again in
    /// each stretch of that length.
    fn estimated_lines(&self, places: usize, oldest: i64) -> usize {
        let all_ms = (time_at_ms(self.newest_place) - self.oldest_ms).max(1) as f64;
        let seen_ms = (time_at_ms(self.newest_place) - time_at_ms(oldest)).max(1) as f64;
        let lines = places as f64 * (all_ms / seen_ms).max(1.0);
        (lines as usize).clamp(places, self.lines.max(places))
    }
}
