//! Searches that rank: what has any of the words, in any form, the best answers first.
//!
//! For each wording: who may be meant by its words, which turns have them (`candidates`, `tail`), how rare each word
//! is, and what may have been meant by a word that is nowhere. The most promising texts are read, a bounded number,
//! and scored (`vocative_core::search::scoring`); near-identical lines become one. Several wordings are joined by
//! rank.
//!
//! Reading order: this file, `people`, `reading`, `stand_ins`.

mod people;
mod reading;
mod stand_ins;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use self::people::{NamedPerson, not_people, people, said_by, speakers_named};
use self::reading::sets;
use super::candidates::{Candidates, IndexQuery, Named};
use super::tail::{Sieve, Tail};
use super::{Match, Ranked, SearchRange, WORDINGS_MAX, newest};
use crate::StoreError;
use crate::contract::TAIL_MAX;
use crate::contract::{SearchHits, SearchQuery};
use crate::engine::sql::{Connection, OptionalExtension};
use crate::rows::columns::{attachments_from, limit_of};
use crate::rows::names::NameLookup;
use crate::rows::stem_index::{place_from, place_through, through_seq};
use crate::views::nearest::{Near, nearest};
use vocative_core::ids::{ParticipantId, Seq};
use vocative_core::search::bar::Wording;
use vocative_core::search::fusion::fused;
use vocative_core::search::likeness::Likeness;
use vocative_core::search::query::Query;
use vocative_core::search::scoring::{KnownStems, PreparedLine, Scorer, rarity, repeated};
use vocative_core::search::text::{Word, words};
use vocative_core::vector::stands_out;

/// The most bytes of text that are taken apart for a wording, of the index and of the tail each. The words of a line
/// of two thousand characters take some sixty thousand bytes of memory.
const TAKEN_APART_MAX_BYTES: usize = 256 << 10;
/// The most answers to one wording that are joined with those to others.
const ANSWERS_MAX: usize = 100;
/// The most lines with files that are looked at, the newest.
const FILES_MAX: usize = 2_000;
/// The most turns that one vector finds.
const NEAREST_MAX: usize = 100;
/// The fewest near turns that tell what likeness is usual among them.
const NEAR_MIN: usize = 5;
/// The share of its likeness that counts for a line that only asks.
const ASKS_SHARE: f64 = 0.8;

const FILES_SQL: &str = "SELECT seq, attachments FROM turns INDEXED BY turns_with_files
     WHERE conversation_id = ?1 AND attachments IS NOT NULL AND sent_at_ms >= ?2 AND sent_at_ms < ?3
       AND visibility = 'room'
     ORDER BY sent_at_ms DESC LIMIT ?4";
const OLDEST_SQL: &str = "SELECT sent_at_ms FROM turns WHERE conversation_id = ?1
     ORDER BY sent_at_ms, ordinal, seq LIMIT 1";
const NEWEST_SQL: &str = "SELECT sent_at_ms FROM turns WHERE conversation_id = ?1
     ORDER BY sent_at_ms DESC, ordinal DESC, seq DESC LIMIT 1";

/// Bounds on what is looked at in a search.
#[derive(Debug)]
pub(super) struct SearchBounds {
    pub(super) first_place: i64,
    pub(super) last_place: i64,
    /// The newest place that any turn has.
    pub(super) newest_place: i64,
    /// When the oldest turn was sent, in milliseconds since the Unix epoch.
    pub(super) oldest_ms: i64,
    after_ms: i64,
    before_ms: i64,
    /// Only turns of these speakers; empty = of anybody.
    pub(super) speakers: Vec<ParticipantId>,
    /// No turns of these speakers.
    silenced: HashSet<ParticipantId>,
    /// No turns that were captured later.
    as_of_seq: Seq,
    /// Turns up to here are in the index of stems.
    pub(super) through_seq: i64,
    /// The turns of all that is searched.
    pub(super) lines: usize,
}

impl SearchBounds {
    fn of(
        connection: &Connection,
        range: &SearchRange,
        query: &SearchQuery,
        speakers: Vec<ParticipantId>,
    ) -> Result<Self, StoreError> {
        let filter = &query.filter;
        let (mut lines, mut oldest_ms, mut newest_ms) = (0_i64, i64::MAX, i64::MIN);
        for row in &range.rows {
            lines += connection
                .prepare_cached("SELECT turn_count FROM conversations WHERE id = ?1")?
                .query_row([row], |row| row.get::<_, i64>("turn_count"))?;
            let time = |sql: &str| -> Result<Option<i64>, StoreError> {
                let mut statement = connection.prepare_cached(sql)?;
                Ok(statement
                    .query_row([row], |row| row.get("sent_at_ms"))
                    .optional()?)
            };
            oldest_ms = oldest_ms.min(time(OLDEST_SQL)?.unwrap_or(i64::MAX));
            newest_ms = newest_ms.max(time(NEWEST_SQL)?.unwrap_or(i64::MIN));
        }
        let after_ms = filter.after_ms.unwrap_or(i64::MIN);
        let before_ms = filter.before_ms.unwrap_or(i64::MAX);
        Ok(Self {
            first_place: place_from(after_ms),
            last_place: place_through(before_ms),
            newest_place: place_through(newest_ms),
            oldest_ms,
            after_ms,
            before_ms,
            speakers,
            silenced: match query.is_by_people {
                true => not_people(connection, range.account)?,
                false => HashSet::new(),
            },
            as_of_seq: query.as_of_seq.unwrap_or(Seq(i64::MAX)),
            through_seq: through_seq(connection)?,
            lines: usize::try_from(lines).unwrap_or(0),
        })
    }

    /// Whether a turn is one of those that were asked for.
    pub(super) fn admits(&self, found: Match, participant: ParticipantId) -> bool {
        (self.after_ms..self.before_ms).contains(&found.sent_at_ms)
            && found.seq <= self.as_of_seq
            && !self.silenced.contains(&participant)
            && (self.speakers.is_empty() || self.speakers.contains(&participant))
    }
}

/// A line that answers a wording.
#[derive(Clone, Debug)]
struct ScoredLine {
    found: Match,
    wishes: u64,
    score: f64,
    nearness: f32,
    likeness: Likeness,
    same: usize,
}

struct ForgivingSearch<'a> {
    asking: IndexQuery<'a>,
    query: &'a SearchQuery,
    excluded: &'a [Seq],
    names: NameLookup<'a>,
    people: Vec<NamedPerson>,
    tail: Tail,
    /// Turns that were read already, kept for the next wording.
    read: HashMap<i64, Option<(Match, ParticipantId, Rc<PreparedLine>)>>,
    /// Lines by their text.
    lines: HashMap<String, Rc<PreparedLine>>,
    /// The stems of their words.
    stems: KnownStems,
    /// How much of these texts was taken apart, in bytes.
    taken_apart: usize,
}

/// The best answers to all wordings.
pub(super) fn forgiving(
    connection: &Connection,
    query: &SearchQuery,
    range: &SearchRange,
    excluded: &[Seq],
    found: &mut SearchHits,
) -> Result<Vec<Ranked>, StoreError> {
    let asked = query.queries.iter().take(WORDINGS_MAX);
    let wordings: Vec<Query> = asked.map(|text| Query::parse(text)).collect();
    found.is_query_cut =
        query.queries.len() > WORDINGS_MAX || wordings.iter().any(|wording| wording.is_cut);
    let wordings: Vec<Query> = wordings.into_iter().filter(|it| !it.is_empty()).collect();
    let people = match query.filter.from.is_some() || !wordings.is_empty() {
        true => people(connection, range, query, &wordings)?,
        false => Vec::new(),
    };
    let mut speakers = Vec::new();
    if let Some(from) = &query.filter.from {
        speakers = speakers_named(connection, range, &people, from)?;
        found.is_speaker_unknown = speakers.is_empty();
        if speakers.is_empty() {
            return Ok(Vec::new());
        }
    }
    if wordings.is_empty() && query.filter.files.is_none() {
        let newest = newest(
            connection,
            range,
            &query.filter,
            &speakers,
            query.limit,
            excluded,
        )?;
        found.matches = newest.len();
        return Ok(newest);
    }
    let bounds = SearchBounds::of(connection, range, query, speakers)?;
    let mut names = NameLookup::new(connection, range.account);
    let tail = match wordings.is_empty() {
        true => Tail::default(),
        false => Tail::read(connection, range, &bounds, &mut names, query.tail_max)?,
    };
    let mut search = ForgivingSearch {
        asking: IndexQuery {
            connection,
            range,
            bounds: &bounds,
        },
        query,
        excluded,
        names,
        people,
        tail,
        read: HashMap::new(),
        lines: HashMap::new(),
        stems: KnownStems::default(),
        taken_apart: 0,
    };
    if wordings.is_empty() {
        return search.newest_files(found);
    }
    let mut lists = Vec::new();
    for wording in &wordings {
        lists.push(search.answers(wording.clone(), found)?);
    }
    if !query.vectors.is_empty() {
        let by_words = lists.iter().flatten();
        let besides: Vec<Seq> = by_words.map(|it| it.found.seq).collect();
        lists.extend(search.alike(&wordings, &besides, found)?);
    }
    Ok(joined(lists, query.limit))
}

/// Joins the answers to several wordings by rank; of lines with the same telling words the first stays.
fn joined(mut lists: Vec<Vec<ScoredLine>>, limit: usize) -> Vec<Ranked> {
    let mut best: HashMap<i64, ScoredLine> = HashMap::new();
    for answer in lists.iter().flatten() {
        let known = best
            .entry(answer.found.seq.0)
            .or_insert_with(|| answer.clone());
        known.score = known.score.max(answer.score);
        known.nearness = known.nearness.max(answer.nearness);
        known.same = known.same.max(answer.same);
    }
    let order: Vec<i64> = match lists.len() {
        1 => lists.remove(0).iter().map(|it| it.found.seq.0).collect(),
        _ => {
            let seqs = |list: &Vec<ScoredLine>| list.iter().map(|it| it.found.seq.0).collect();
            let lists: Vec<Vec<i64>> = lists.iter().map(seqs).collect();
            fused(&lists).into_iter().map(|(seq, _)| seq).collect()
        }
    };
    let mut given: Vec<&ScoredLine> = Vec::new();
    let answers = order.iter().filter_map(|seq| best.get(seq));
    for answer in answers {
        if given.len() == limit {
            break;
        }
        if !given
            .iter()
            .any(|it| it.likeness == answer.likeness && it.wishes == answer.wishes)
        {
            given.push(answer);
        }
    }
    let ranked = |answer: &ScoredLine| Ranked {
        found: answer.found,
        score: answer.score,
        nearness: answer.nearness,
        same: answer.same,
    };
    given.into_iter().map(ranked).collect()
}

impl ForgivingSearch<'_> {
    /// The best answers to one wording, near-identical lines as one.
    fn answers(
        &mut self,
        mut wording: Query,
        found: &mut SearchHits,
    ) -> Result<Vec<ScoredLine>, StoreError> {
        let named: Vec<Named> = wording.wished.iter().map(|wish| self.named(wish)).collect();
        let mut tail = self.in_tail(&wording, &named, found);
        let mut candidates = self.candidates(&wording, &named)?;
        if self.find_stand_ins(&mut wording, &candidates, &tail, found)? {
            tail = self.in_tail(&wording, &named, found);
            candidates = self.candidates(&wording, &named)?;
        }
        found.is_bounded |= candidates.is_bounded || self.tail.is_cut;
        found.effort.postings += candidates.postings;
        for (_, _, wishes) in &tail {
            for (n, lines) in candidates.lines_with.iter_mut().enumerate() {
                *lines += usize::from(wishes & (1 << n) != 0);
            }
        }
        let lines = self.asking.bounds.lines;
        let rarities: Vec<f64> = candidates
            .lines_with
            .iter()
            .map(|with| rarity(*with, lines))
            .collect();
        let scorer = Scorer::new(&wording, &rarities);
        found.wordings.push(Wording {
            query: wording.clone(),
            lines_with: candidates.lines_with.clone(),
            lines,
        });
        let mut answers = Vec::new();
        for (at, line, _) in tail {
            let text = &self.tail.texts[at];
            let (found, participant) = (text.found, text.participant);
            answers.extend(self.answer(&wording, &scorer, &named, (found, participant, &line)));
        }
        for seq in self.read_of(&sets(&candidates, &rarities), found)? {
            let Some(Some((found, participant, line))) = self.read.get(&seq) else {
                continue;
            };
            let line = (*found, *participant, &**line);
            answers.extend(self.answer(&wording, &scorer, &named, line));
        }
        found.matches = found.matches.max(candidates.turns.len().max(answers.len()));
        Ok(folded(answers))
    }

    fn answer(
        &self,
        wording: &Query,
        scorer: &Scorer,
        named: &[Named],
        (found, participant, line): (Match, ParticipantId, &PreparedLine),
    ) -> Option<ScoredLine> {
        if self.excluded.contains(&found.seq) || !line.has_required(wording) {
            return None;
        }
        let relevance = scorer.relevance(line, said_by(named, participant));
        let counts = relevance.wishes != 0 || wording.wished.is_empty();
        (counts || !wording.required.is_empty()).then(|| ScoredLine {
            found,
            wishes: relevance.wishes,
            score: relevance.score,
            nearness: 0.0,
            likeness: line.likeness.clone(),
            same: 0,
        })
    }

    /// The lines that are likest to each query in meaning, the likest first; near-identical lines as one. A query
    /// that no line is like has no list: a chance order would push out what words found.
    fn alike(
        &mut self,
        wordings: &[Query],
        besides: &[Seq],
        found: &mut SearchHits,
    ) -> Result<Vec<Vec<ScoredLine>>, StoreError> {
        let (connection, rows) = (self.asking.connection, &self.asking.range.rows);
        let near = nearest(connection, rows, besides, &self.query.vectors, NEAREST_MAX)?;
        found.effort.vectors += near.compared;
        let mut lists = Vec::with_capacity(near.lists.len());
        for likest in near.lists {
            if stands_out(likest.deviations, near.compared) {
                lists.push(self.likest(wordings, likest.turns, found)?);
            }
        }
        Ok(lists)
    }

    fn likest(
        &mut self,
        wordings: &[Query],
        turns: Vec<Near>,
        found: &mut SearchHits,
    ) -> Result<Vec<ScoredLine>, StoreError> {
        found.near_usually = near_usually(&turns).or(found.near_usually);
        let mut answers = Vec::new();
        for Near { seq, likeness } in turns {
            self.read(seq.0)?;
            found.effort.texts += 1;
            let Some(Some((found, _, line))) = self.read.get(&seq.0) else {
                continue;
            };
            if self.excluded.contains(&seq) || !wordings.iter().any(|it| line.has_required(it)) {
                continue;
            }
            let share = if line.asks { ASKS_SHARE } else { 1.0 };
            answers.push(ScoredLine {
                found: *found,
                wishes: 0,
                score: f64::from(likeness.max(0.0)) * share,
                nearness: likeness,
                likeness: line.likeness.clone(),
                same: 0,
            });
        }
        Ok(folded(answers))
    }

    fn candidates(&self, wording: &Query, named: &[Named]) -> Result<Candidates, StoreError> {
        if let Some(name) = &self.query.filter.files {
            return self.with_files(name, wording.wished.len());
        }
        let mut found = if wording.required.is_empty() {
            self.asking.candidates(wording, named)?
        } else {
            let mut known = self.asking.candidates(wording, named)?;
            let required = self.asking.with_required(wording)?;
            known.postings += required.postings;
            known.is_bounded = required.is_bounded;
            let wishes = |seq: &i64| known.turns.get(seq).map_or(0, |(_, wishes)| *wishes);
            let turns = required
                .turns
                .iter()
                .map(|(seq, (place, _))| (*seq, (*place, wishes(seq))));
            known.turns = turns.collect();
            known
        };
        if wording.is_only_grammar {
            self.asking.as_written(wording, 0, &mut found)?;
        } else if self.tail.is_cut {
            self.asking
                .as_written(wording, self.asking.bounds.through_seq, &mut found)?;
        }
        Ok(found)
    }

    /// Lines with files, the newest; the words are looked for in each.
    fn with_files(&self, name: &str, wishes: usize) -> Result<Candidates, StoreError> {
        let bounds = self.asking.bounds;
        let name: Vec<Word> = words(name);
        let mut found = Candidates {
            lines_with: vec![1; wishes],
            ..Candidates::default()
        };
        for row in &self.asking.range.rows {
            let mut statement = self.asking.connection.prepare_cached(FILES_SQL)?;
            let asked = (row, bounds.after_ms, bounds.before_ms, limit_of(FILES_MAX));
            let mut rows = statement.query(asked)?;
            while let Some(row) = rows.next()? {
                found.postings += 1;
                let attachments: Option<String> = row.get("attachments")?;
                let names = file_names(attachments.as_deref());
                let known: Vec<String> = words(&names).into_iter().map(|it| it.plain).collect();
                let has = |asked: &Word| known.iter().any(|it| it.contains(&asked.plain));
                if name.iter().all(has) {
                    found.turns.insert(row.get("seq")?, (i64::MAX, 0));
                }
            }
        }
        Ok(found)
    }

    fn newest_files(&mut self, found: &mut SearchHits) -> Result<Vec<Ranked>, StoreError> {
        let name = self.query.filter.files.clone().unwrap_or_default();
        let candidates = self.with_files(&name, 0)?;
        let mut newest = Vec::new();
        for seq in candidates.turns.keys() {
            self.read(*seq)?;
            if let Some(Some((found, ..))) = self.read.get(seq) {
                newest.push(*found);
            }
        }
        newest.retain(|it| !self.excluded.contains(&it.seq));
        newest.sort_by(|a, b| b.cmp(a));
        found.matches = newest.len();
        found.effort.texts = newest.len();
        newest.truncate(self.query.limit);
        Ok(newest.into_iter().map(Ranked::of).collect())
    }

    /// The turns behind the index that have any of the words: where they are in the tail, and which words.
    fn in_tail(
        &self,
        wording: &Query,
        named: &[Named],
        hits: &mut SearchHits,
    ) -> Vec<(usize, PreparedLine, u64)> {
        if self.query.filter.files.is_some() {
            return Vec::new();
        }
        let sieve = Sieve::of(wording);
        let even = Scorer::new(wording, &vec![1.0; wording.wished.len()]);
        let (mut found, mut taken_apart) = (Vec::new(), 0);
        for (at, it) in self.tail.texts.iter().enumerate() {
            let said_by = said_by(named, it.participant);
            if said_by == 0 && !sieve.passes(&it.text) {
                continue;
            }
            taken_apart += it.text.len();
            if taken_apart > TAKEN_APART_MAX_BYTES {
                hits.is_bounded = true;
                break;
            }
            let line = PreparedLine::of(&it.text);
            let relevance = even.relevance(&line, said_by);
            if relevance.wishes != 0 || (wording.wished.is_empty() && line.has_required(wording)) {
                found.push((at, line, relevance.wishes));
            }
        }
        debug_assert!(found.len() <= TAIL_MAX);
        found
    }
}

/// The median likeness of the likest turns, which come in that order: near, and nothing more.
fn near_usually(turns: &[Near]) -> Option<f32> {
    let middle = (turns.len() >= NEAR_MIN).then(|| turns.get(turns.len() / 2));
    middle.flatten().map(|near| near.likeness)
}

/// Near-identical lines with the same words as one: the best of them, and the newest of equal ones.
fn folded(mut answers: Vec<ScoredLine>) -> Vec<ScoredLine> {
    let best_first = |a: &ScoredLine, b: &ScoredLine| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| b.found.cmp(&a.found))
    };
    answers.sort_by(best_first);
    let mut kept: Vec<ScoredLine> = Vec::new();
    for answer in answers {
        let near = kept
            .iter()
            .position(|it| it.wishes == answer.wishes && it.likeness.is_near(&answer.likeness));
        match near {
            Some(near) => kept[near].same += 1,
            None if kept.len() < ANSWERS_MAX => kept.push(answer),
            None => {}
        }
    }
    for answer in &mut kept {
        answer.score *= repeated(answer.same + 1);
    }
    kept.sort_by(best_first);
    kept
}

/// The names of a turn's files; none, if what is stored can't be read.
fn file_names(attachments: Option<&str>) -> String {
    let files = attachments_from(attachments).unwrap_or_default();
    let names: Vec<String> = files.into_iter().filter_map(|file| file.name).collect();
    names.join("\n")
}
