//! Searches that rank: what has any of the words, in any form, the best answers first.
//!
//! For each wording: who may be meant by its words, which turns have them (`candidates`, `tail`), how rare each word
//! is, and what may have been meant by a word that is nowhere. The most promising texts are read, a bounded number,
//! and scored (`vocative_core::search::scoring`); near-identical lines become one. Several wordings are joined by
//! rank.

use std::collections::{HashMap, HashSet};

use super::candidates::{Asking, Candidates, Named};
use super::tail::{Sieve, TAIL_MAX, Tail};
use super::{Match, RANKED_MAX_CHARS, Range, Ranked, WORDINGS_MAX, newest};
use crate::StoreError;
use crate::contract::{SearchFilter, SearchHits, SearchQuery};
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::columns::{attachments_from, limit_of};
use crate::rows::names::NameLookup;
use crate::rows::stem_index::{place_from, place_through, through_seq};
use crate::views::nearest::{Near, nearest};
use vocative_contract::markup::MENTION_OPEN;
use vocative_core::ids::{ParticipantId, Seq};
use vocative_core::search::fusion::fused;
use vocative_core::search::likeness::Likeness;
use vocative_core::search::query::{Query, Wish};
use vocative_core::search::scoring::{Line, Scorer, rarity, repeated};
use vocative_core::search::spelling::{Kinship, MISSPELT_MIN_CHARS, kinship};
use vocative_core::search::text::{Word, words};
use vocative_core::vector::Vector;

/// The most texts that are read for a wording.
const TEXTS_MAX: usize = 400;
/// Of these, for one set of words: lines with all words don't take the place of those with the rarest one.
const TEXTS_OF_SET: usize = 120;
/// Of each wording so many answers are joined with those of others.
const ANSWERS_MAX: usize = 100;
/// The most lines with files that are looked at, the newest.
const FILES_MAX: usize = 2_000;
/// The most turns that one vector finds.
const NEAREST_MAX: usize = 100;
/// How much of its likeness counts for a line that only asks.
const ASKS_SHARE: f64 = 0.8;
/// The most people of an account whose names are compared.
const PEOPLE_MAX: usize = 5_000;
/// The most words of the vocabulary that a word which is nowhere is compared with.
const VOCABULARY_MAX: usize = 20_000;
/// The most words that stand for one that is nowhere.
const STANDS_IN_MAX: usize = 6;
/// How much a word that stands for another counts.
const MISSPELT_SHARE: f64 = 0.7;
const PART_SHARE: f64 = 0.55;

const READ_SQL: &str = "SELECT t.sent_at_ms, t.ordinal, t.participant_id, t.attachments,
            substr(t.content, 1, ?2) AS content
     FROM turns t WHERE t.seq = ?1 AND t.visibility = 'room'";
const FILES_SQL: &str = "SELECT seq, attachments FROM turns INDEXED BY turns_with_files
     WHERE conversation_id = ?1 AND attachments IS NOT NULL AND sent_at_ms >= ?2 AND sent_at_ms < ?3
       AND visibility = 'room'
     ORDER BY sent_at_ms DESC LIMIT ?4";
const OLDEST_SQL: &str = "SELECT sent_at_ms FROM turns WHERE conversation_id = ?1
     ORDER BY sent_at_ms, ordinal, seq LIMIT 1";
const NEWEST_SQL: &str = "SELECT sent_at_ms FROM turns WHERE conversation_id = ?1
     ORDER BY sent_at_ms DESC, ordinal DESC, seq DESC LIMIT 1";
const PEOPLE_SQL: &str = "SELECT id, platform_id, display_name, username FROM participants
     WHERE account_id = ?1 LIMIT ?2";
const IS_HERE_SQL: &str = "SELECT 1 AS it FROM turns INDEXED BY turns_by_participant
     WHERE participant_id = ?1 AND conversation_id = ?2 LIMIT 1";

/// What is looked at of what is searched.
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) first_place: i64,
    pub(super) last_place: i64,
    /// The newest place that any turn has.
    pub(super) newest_place: i64,
    /// When the oldest turn was sent, in milliseconds since the Unix epoch.
    pub(super) oldest_ms: i64,
    after_ms: i64,
    before_ms: i64,
    /// Only what these said; none = anybody.
    pub(super) speakers: Vec<ParticipantId>,
    /// Turns up to here are in the index of stems.
    pub(super) through_seq: i64,
    /// The turns of all that is searched.
    pub(super) lines: usize,
}

impl Bounds {
    fn of(
        connection: &Connection,
        range: &Range,
        filter: &SearchFilter,
        speakers: Vec<ParticipantId>,
    ) -> Result<Self, StoreError> {
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
            through_seq: through_seq(connection)?,
            lines: usize::try_from(lines).unwrap_or(0),
        })
    }

    /// Whether a turn is one of those that were asked for.
    pub(super) fn admits(&self, found: Match, participant: ParticipantId) -> bool {
        (self.after_ms..self.before_ms).contains(&found.sent_at_ms)
            && (self.speakers.is_empty() || self.speakers.contains(&participant))
    }
}

/// A person of an account, by name.
struct Person {
    id: ParticipantId,
    mention: String,
    username: Option<String>,
    names: HashSet<String>,
}

/// A line that answers a wording.
#[derive(Clone, Debug)]
struct Answer {
    found: Match,
    wishes: u64,
    score: f64,
    likeness: Likeness,
    same: usize,
}

struct Search<'a> {
    asking: Asking<'a>,
    query: &'a SearchQuery,
    excluded: &'a [Seq],
    names: NameLookup<'a>,
    people: Vec<Person>,
    tail: Tail,
    /// What was read, for the next wording.
    read: HashMap<i64, Option<(Match, ParticipantId, Line)>>,
}

/// The best answers to all wordings.
pub(super) fn forgiving(
    connection: &Connection,
    query: &SearchQuery,
    range: &Range,
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
    let bounds = Bounds::of(connection, range, &query.filter, speakers)?;
    let mut names = NameLookup::new(connection, range.account);
    let tail = match wordings.is_empty() {
        true => Tail::default(),
        false => Tail::read(connection, range, &bounds, &mut names)?,
    };
    let mut search = Search {
        asking: Asking {
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
    };
    if wordings.is_empty() {
        return search.newest_files(found);
    }
    let mut lists = Vec::new();
    for wording in &wordings {
        lists.push(search.answers(wording.clone(), found)?);
    }
    for vector in &query.vectors {
        let by_words = lists.iter().take(wordings.len()).flatten();
        let besides: Vec<Seq> = by_words.map(|it| it.found.seq).collect();
        lists.push(search.alike(&wordings, vector, &besides, found)?);
    }
    Ok(joined(lists, query.limit))
}

/// Joins the answers to several wordings by rank; of lines with the same telling words the first stays.
fn joined(mut lists: Vec<Vec<Answer>>, limit: usize) -> Vec<Ranked> {
    let mut best: HashMap<i64, Answer> = HashMap::new();
    for answer in lists.iter().flatten() {
        let known = best
            .entry(answer.found.seq.0)
            .or_insert_with(|| answer.clone());
        known.score = known.score.max(answer.score);
        known.same = known.same.max(answer.same);
    }
    let order: Vec<i64> = match lists.len() {
        1 => lists.remove(0).iter().map(|it| it.found.seq.0).collect(),
        _ => {
            let seqs = |list: &Vec<Answer>| list.iter().map(|it| it.found.seq.0).collect();
            let lists: Vec<Vec<i64>> = lists.iter().map(seqs).collect();
            fused(&lists).into_iter().map(|(seq, _)| seq).collect()
        }
    };
    let mut given: Vec<&Answer> = Vec::new();
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
    let ranked = |answer: &Answer| Ranked {
        found: answer.found,
        score: answer.score,
        same: answer.same,
    };
    given.into_iter().map(ranked).collect()
}

impl Search<'_> {
    /// The best answers to one wording, near-identical lines as one.
    fn answers(
        &mut self,
        mut wording: Query,
        found: &mut SearchHits,
    ) -> Result<Vec<Answer>, StoreError> {
        let named: Vec<Named> = wording.wished.iter().map(|wish| self.named(wish)).collect();
        let mut tail = self.in_tail(&wording, &named);
        let mut candidates = self.candidates(&wording, &named)?;
        if self.find_stand_ins(&mut wording, &candidates, &tail, found)? {
            tail = self.in_tail(&wording, &named);
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
        let mut answers = Vec::new();
        for (at, line, _) in tail {
            let text = &self.tail.texts[at];
            let (found, participant) = (text.found, text.participant);
            answers.extend(self.answer(&wording, &scorer, &named, (found, participant, &line)));
        }
        let chosen = chosen(&candidates, &rarities, found);
        found.effort.texts += chosen.len();
        for seq in chosen {
            self.read(seq)?;
            let Some(Some((found, participant, line))) = self.read.get(&seq) else {
                continue;
            };
            let line = (*found, *participant, line);
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
        (found, participant, line): (Match, ParticipantId, &Line),
    ) -> Option<Answer> {
        if self.excluded.contains(&found.seq) || !line.has_required(wording) {
            return None;
        }
        let relevance = scorer.relevance(line, said_by(named, participant));
        let counts = relevance.wishes != 0 || wording.wished.is_empty();
        (counts || !wording.required.is_empty()).then(|| Answer {
            found,
            wishes: relevance.wishes,
            score: relevance.score,
            likeness: line.likeness.clone(),
            same: 0,
        })
    }

    /// What means nearly the same as a query, the likest first; near-identical lines as one.
    fn alike(
        &mut self,
        wordings: &[Query],
        vector: &Vector,
        besides: &[Seq],
        found: &mut SearchHits,
    ) -> Result<Vec<Answer>, StoreError> {
        let (connection, rows) = (self.asking.connection, &self.asking.range.rows);
        let near = nearest(connection, rows, besides, vector, NEAREST_MAX)?;
        found.effort.vectors += near.compared;
        let mut answers = Vec::new();
        for Near { seq, likeness } in near.turns {
            self.read(seq.0)?;
            found.effort.texts += 1;
            let Some(Some((found, _, line))) = self.read.get(&seq.0) else {
                continue;
            };
            if self.excluded.contains(&seq) || !wordings.iter().any(|it| line.has_required(it)) {
                continue;
            }
            let share = if line.asks { ASKS_SHARE } else { 1.0 };
            answers.push(Answer {
                found: *found,
                wishes: 0,
                score: f64::from(likeness.max(0.0)) * share,
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

    /// Reads a turn, unless it was read for another wording.
    fn read(&mut self, seq: i64) -> Result<(), StoreError> {
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
                Some((found, participant, Line::of(&text)))
            }
            _ => None,
        };
        self.read.insert(seq, read);
        Ok(())
    }

    /// The turns behind the index that have any of the words: where they are in the tail, and which words.
    fn in_tail(&self, wording: &Query, named: &[Named]) -> Vec<(usize, Line, u64)> {
        if self.query.filter.files.is_some() {
            return Vec::new();
        }
        let sieve = Sieve::of(wording);
        let even = Scorer::new(wording, &vec![1.0; wording.wished.len()]);
        let mut found = Vec::new();
        for (at, it) in self.tail.texts.iter().enumerate() {
            let said_by = said_by(named, it.participant);
            if said_by == 0 && !sieve.passes(&it.text) {
                continue;
            }
            let line = Line::of(&it.text);
            let relevance = even.relevance(&line, said_by);
            if relevance.wishes != 0 || (wording.wished.is_empty() && line.has_required(wording)) {
                found.push((at, line, relevance.wishes));
            }
        }
        debug_assert!(found.len() <= TAIL_MAX);
        found
    }

    /// The people a wished word is the name of.
    fn named(&self, wish: &Wish) -> Named {
        let of_name = self.people.iter().filter(|person| {
            person.names.contains(&wish.plain) || person.username.as_deref() == Some(&*wish.plain)
        });
        let mut named = Named::default();
        for person in of_name {
            named.participants.push(person.id);
            named.mentions.push(person.mention.clone());
            named
                .mentions
                .extend(person.username.iter().map(|it| format!("@{it}")));
        }
        named
    }

    /// For wished words that are in no line: the words of the vocabulary that may have been meant. Returns whether
    /// there are any.
    fn find_stand_ins(
        &self,
        wording: &mut Query,
        candidates: &Candidates,
        tail: &[(usize, Line, u64)],
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
            // A near miss of one letter makes one of two unlikely, and parts of words too.
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
            // Most slips leave the first letter as it is; then the rest, as far as it goes.
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

/// The wished words that are a speaker's name, one bit each.
fn said_by(named: &[Named], participant: ParticipantId) -> u64 {
    let is_one = |named: &Named| named.participants.contains(&participant);
    let bits = named.iter().enumerate().filter(|(_, named)| is_one(named));
    bits.map(|(n, _)| 1_u64 << n.min(63)).fold(0, |a, b| a | b)
}

/// Turns by their places in the index, with their seq.
type Places = Vec<(i64, i64)>;

/// The turns whose texts are read: of each set of words the newest, those whose words weigh most first.
fn chosen(candidates: &Candidates, rarities: &[f64], found: &mut SearchHits) -> Vec<i64> {
    let mut sets: HashMap<u64, Places> = HashMap::new();
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
    let mut sets: Vec<(f64, u64, Places)> = sets
        .into_iter()
        .map(|(wishes, turns)| (weight(wishes), wishes, turns))
        .collect();
    sets.sort_by(|(a, a_set, _), (b, b_set, _)| b.total_cmp(a).then(a_set.cmp(b_set)));
    let (mut chosen, mut others) = (Vec::new(), Vec::new());
    for (_, _, turns) in &mut sets {
        turns.sort_unstable_by(|a, b| b.cmp(a));
        let seqs = turns.iter().map(|(_, seq)| *seq);
        chosen.extend(seqs.clone().take(TEXTS_OF_SET));
        others.extend(seqs.skip(TEXTS_OF_SET));
    }
    chosen.truncate(TEXTS_MAX);
    let left = TEXTS_MAX - chosen.len();
    found.is_bounded |= others.len() > left;
    chosen.extend(others.into_iter().take(left));
    chosen
}

/// Near-identical lines with the same words as one: the best of them, and the newest of equal ones.
fn folded(mut answers: Vec<Answer>) -> Vec<Answer> {
    let best_first = |a: &Answer, b: &Answer| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| b.found.cmp(&a.found))
    };
    answers.sort_by(best_first);
    let mut kept: Vec<Answer> = Vec::new();
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

fn people(
    connection: &Connection,
    range: &Range,
    query: &SearchQuery,
    wordings: &[Query],
) -> Result<Vec<Person>, StoreError> {
    let asked = wordings
        .iter()
        .flat_map(|it| &it.wished)
        .map(|wish| wish.plain.clone());
    let from = words(query.filter.from.as_deref().unwrap_or_default());
    let asked: HashSet<String> = asked
        .chain(from.into_iter().map(|word| word.plain))
        .collect();
    let mut statement = connection.prepare_cached(PEOPLE_SQL)?;
    let mut rows = statement.query(params![range.account, limit_of(PEOPLE_MAX)])?;
    let mut people = Vec::new();
    while let Some(row) = rows.next()? {
        let shown: Option<String> = row.get("display_name")?;
        let mention: String = row.get("platform_id")?;
        let username: Option<String> = row.get("username")?;
        let username = username.map(|it| it.to_lowercase());
        let names: HashSet<String> = words(shown.as_deref().unwrap_or_default())
            .into_iter()
            .map(|it| it.plain)
            .collect();
        let is_asked = |name: &String| asked.contains(name);
        let by_id = query.filter.from.as_deref() == Some(mention.as_str());
        if by_id || names.iter().any(is_asked) || username.as_ref().is_some_and(is_asked) {
            people.push(Person {
                id: row.get("id")?,
                mention,
                username,
                names,
            });
        }
    }
    Ok(people)
}

/// Those of a name who have said something in what is searched: a shown name or a part of it, a username, or the
/// platform's id.
fn speakers_named(
    connection: &Connection,
    range: &Range,
    people: &[Person],
    from: &str,
) -> Result<Vec<ParticipantId>, StoreError> {
    let from = from.trim().trim_start_matches('@');
    let asked: Vec<String> = words(from).into_iter().map(|word| word.plain).collect();
    let lower = from.to_lowercase();
    let mut speakers = Vec::new();
    for person in people {
        let has_name = !asked.is_empty() && asked.iter().all(|word| person.names.contains(word));
        let is_meant = has_name
            || person.mention == from
            || person.username.as_deref() == Some(lower.as_str());
        if !is_meant {
            continue;
        }
        for row in &range.rows {
            let here: Option<i64> = connection
                .prepare_cached(IS_HERE_SQL)?
                .query_row((person.id, row), |row| row.get("it"))
                .optional()?;
            if here.is_some() {
                speakers.push(person.id);
                break;
            }
        }
    }
    Ok(speakers)
}

/// The names of a turn's files; none, if what is stored can't be read.
fn file_names(attachments: Option<&str>) -> String {
    let files = attachments_from(attachments).unwrap_or_default();
    let names: Vec<String> = files.into_iter().filter_map(|file| file.name).collect();
    names.join("\n")
}
