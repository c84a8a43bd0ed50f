//! Search in operators' documents: as conversations are searched (`views/search/forgiving`), with pieces in the place
//! of lines, and without people, times and neighbours.
//!
//! For each wording: which pieces have its words (the index, only the entries of the asked collections), how rare each
//! word is there, and what may have been meant by a word that is nowhere. The most promising pieces are read, a bounded
//! number, and scored (`vocative_core::search::scoring`). Several wordings are joined by rank.

use std::collections::{BTreeMap, HashMap};

use vocative_core::knowledge::Chunk;
use vocative_core::search::excerpt::excerpt;
use vocative_core::search::fusion::fused;
use vocative_core::search::query::{Query, WordWish};
use vocative_core::search::scoring::{PreparedLine, Relevance, Scorer, rarity};
use vocative_core::search::spelling::{Kinship, MISSPELT_MIN_CHARS, kinship};

use super::search::{WORDINGS_MAX, utf16_div4};
use crate::contract::{
    CollectionStatus, KnowledgeHit, KnowledgeHits, KnowledgeQuery, ListedDocument,
};
use crate::engine::sql::{Connection, OptionalExtension, Row};
use crate::rows::columns::{count_from, limit_of};
use crate::rows::knowledge::{chunk_row, heading_entry};
use crate::rows::stem_index::{quoted, stem_entry};
use crate::{Reader, StoreError};

/// The most collections that are searched at once.
pub const COLLECTIONS_MAX: usize = 64;
/// The most places that are read of one word.
const PLACES_EACH: usize = 10_000;
/// The most places that are read of one wording.
const PLACES_MAX: usize = 40_000;
/// The most places that are read where several words meet that are everywhere.
const MEETINGS_MAX: usize = 1_000;
/// The most pieces that are taken apart for a wording.
const PIECES_MAX: usize = 200;
/// The most answers to one wording that are joined with those to others.
const ANSWERS_MAX: usize = 50;
/// The most words of the vocabulary that a word in no piece is compared with.
const VOCABULARY_MAX: usize = 20_000;
/// The most words that stand in for a word in no piece, and how much such a word counts.
const STANDS_IN_MAX: usize = 6;
const MISSPELT_SHARE: f64 = 0.7;
const PART_SHARE: f64 = 0.55;
/// How much a word above a piece adds to what it weighs: a heading says what all of the piece is about.
const ABOVE_SHARE: f64 = 0.5;

impl Reader {
    /// The pieces of documents that a query finds.
    ///
    /// # Errors
    /// Storage refuses; never because of what the query says.
    pub async fn search_knowledge(
        &self,
        query: KnowledgeQuery,
    ) -> Result<KnowledgeHits, StoreError> {
        self.read(move |connection| search(connection, &query))
            .await
    }

    /// The files of a collection, by their paths; `None` if there is no such collection.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn listed_documents(
        &self,
        collection: &str,
        limit: usize,
    ) -> Result<Option<Vec<ListedDocument>>, StoreError> {
        let name = collection.to_owned();
        self.read(move |connection| {
            let id: Option<i64> = connection
                .prepare_cached("SELECT id FROM knowledge_collections WHERE name = ?1")?
                .query_row([name], |row| row.get("id"))
                .optional()?;
            let Some(id) = id else { return Ok(None) };
            let mut statement = connection.prepare_cached(
                "SELECT path, title, bytes, chunks, is_cut, refused, read_at_ms FROM knowledge_documents
                 WHERE collection_id = ?1 ORDER BY path LIMIT ?2",
            )?;
            let rows = statement.query_map((id, limit_of(limit)), |row| {
                Ok(ListedDocument {
                    path: row.get("path")?,
                    title: row.get("title")?,
                    bytes: count_from(row.get("bytes")?),
                    chunks: count_from(row.get("chunks")?),
                    is_cut: row.get("is_cut")?,
                    refused: row.get("refused")?,
                    read_at_ms: row.get("read_at_ms")?,
                })
            })?;
            Ok(Some(rows.collect::<crate::engine::sql::Result<_>>()?))
        })
        .await
    }
}

/// All collections at a glance.
pub(crate) fn collection_status(
    connection: &Connection,
) -> Result<Vec<CollectionStatus>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT c.name, c.read_at_ms, c.asked_at_ms IS NOT NULL AS is_asked, c.problems,
                count(d.id) FILTER (WHERE d.refused IS NULL) AS documents,
                count(d.id) FILTER (WHERE d.refused IS NOT NULL) AS refused,
                coalesce(sum(d.is_cut), 0) AS cut, coalesce(sum(d.chunks), 0) AS chunks,
                coalesce(sum(d.bytes) FILTER (WHERE d.refused IS NULL), 0) AS bytes
         FROM knowledge_collections c LEFT JOIN knowledge_documents d ON d.collection_id = c.id
         GROUP BY c.id ORDER BY c.name",
    )?;
    let rows = statement.query_map([], |row: &Row<'_>| {
        let problems: String = row.get("problems")?;
        Ok(CollectionStatus {
            name: row.get("name")?,
            documents: count_from(row.get("documents")?),
            refused: count_from(row.get("refused")?),
            cut: count_from(row.get("cut")?),
            chunks: count_from(row.get("chunks")?),
            bytes: count_from(row.get("bytes")?),
            read_at_ms: row.get("read_at_ms")?,
            is_asked: row.get("is_asked")?,
            problems: serde_json::from_str(&problems).unwrap_or_default(),
        })
    })?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}

/// A piece as it was read and scored.
struct ScoredChunk {
    id: i64,
    score: f64,
    line: PreparedLine,
}

/// What is searched.
struct ChunkSearch<'a> {
    connection: &'a Connection<'a>,
    /// The asked collections that exist.
    collections: BTreeMap<i64, String>,
    /// How many pieces these collections have.
    pieces: usize,
    found: KnowledgeHits,
    at: HashMap<i64, usize>,
}

/// The pieces that have a word, as it is asked of the index.
struct FoundPlaces {
    all: Vec<i64>,
    is_cut: bool,
}

fn search(connection: &Connection, query: &KnowledgeQuery) -> Result<KnowledgeHits, StoreError> {
    let mut search = ChunkSearch {
        connection,
        collections: BTreeMap::new(),
        pieces: 0,
        found: KnowledgeHits::default(),
        at: HashMap::new(),
    };
    search.open(&query.collections)?;
    let asked = query.queries.iter().take(WORDINGS_MAX);
    let wordings: Vec<Query> = asked.map(|text| Query::parse(text)).collect();
    search.found.is_query_cut =
        query.queries.len() > WORDINGS_MAX || wordings.iter().any(|wording| wording.is_cut);
    let mut lists: Vec<Vec<ScoredChunk>> = Vec::new();
    if !search.collections.is_empty() {
        for wording in wordings.into_iter().filter(|it| !it.is_empty()) {
            lists.push(search.answers(wording)?);
        }
    }
    search.give(lists, query)?;
    Ok(search.found)
}

impl ChunkSearch<'_> {
    fn open(&mut self, names: &[String]) -> Result<(), StoreError> {
        for name in names.iter().take(COLLECTIONS_MAX) {
            let row: Option<(i64, i64)> = self
                .connection
                .prepare_cached(
                    "SELECT c.id, (SELECT coalesce(sum(d.chunks), 0) FROM knowledge_documents d
                                   WHERE d.collection_id = c.id) AS chunks
                     FROM knowledge_collections c WHERE c.name = ?1",
                )?
                .query_row([name], |row| Ok((row.get("id")?, row.get("chunks")?)))
                .optional()?;
            if let Some((id, chunks)) = row
                && self.collections.insert(id, name.clone()).is_none()
            {
                self.pieces += usize::try_from(chunks).unwrap_or(0);
            }
        }
        Ok(())
    }

    /// The best answers to one wording.
    fn answers(&mut self, mut wording: Query) -> Result<Vec<ScoredChunk>, StoreError> {
        let mut places = self.places_of(&wording.wished)?;
        if self.find_stand_ins(&mut wording, &places)? {
            places = self.places_of(&wording.wished)?;
        }
        let rarities: Vec<f64> = places
            .iter()
            .map(|it| match it.is_cut {
                // Not all of its places were read: it counts as being in every piece.
                true => rarity(self.pieces.max(it.all.len()), self.pieces),
                false => rarity(it.all.len(), self.pieces),
            })
            .collect();
        let candidates = self.candidates(&wording, &places, &rarities)?;
        self.found.matches = self.found.matches.max(candidates.len());
        self.found.is_bounded |= candidates.len() > PIECES_MAX;
        let scorer = Scorer::new(&wording, &rarities);
        let mut answers = Vec::new();
        for id in candidates.into_iter().take(PIECES_MAX) {
            answers.extend(self.answer(id, &wording, &scorer)?);
        }
        answers.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        answers.truncate(ANSWERS_MAX);
        Ok(answers)
    }

    /// The pieces that have words of a wording, the most promising first.
    fn candidates(
        &mut self,
        wording: &Query,
        places: &[FoundPlaces],
        rarities: &[f64],
    ) -> Result<Vec<i64>, StoreError> {
        let mut weights: HashMap<i64, f64> = HashMap::new();
        for ((wish, places), rarity) in wording.wished.iter().zip(places).zip(rarities) {
            self.found.is_bounded |= places.is_cut;
            for id in &places.all {
                *weights.entry(*id).or_default() += rarity;
            }
            let above = self.expression(wish, heading_entry);
            for id in self.places(&above, PLACES_EACH)? {
                *weights.entry(id).or_default() += rarity * ABOVE_SHARE;
            }
        }
        // Of the words that are everywhere, pieces that have all of them are looked for.
        let cut = wording
            .wished
            .iter()
            .zip(places)
            .filter(|(_, it)| it.is_cut);
        let cut: Vec<String> = cut
            .map(|(wish, _)| self.expression(wish, stem_entry))
            .collect();
        if cut.len() > 1 {
            let all = cut.iter().map(|it| format!("({it})"));
            for id in self.places(&all.collect::<Vec<_>>().join(" AND "), MEETINGS_MAX)? {
                *weights.entry(id).or_default() += 1.0;
            }
        }
        if !wording.required.is_empty() {
            let mut required: Option<HashMap<i64, f64>> = None;
            for asked in &wording.required {
                let Some(expression) = self.required(&asked.words, asked.is_beginning) else {
                    continue;
                };
                let has = self.places(&expression, PLACES_EACH)?;
                self.found.is_bounded |= has.len() == PLACES_EACH;
                let known = required.as_ref();
                let both = has
                    .into_iter()
                    .filter(|id| known.is_none_or(|it| it.contains_key(id)));
                let both = both.map(|id| (id, weights.get(&id).copied().unwrap_or_default()));
                required = Some(both.collect());
            }
            weights = required.unwrap_or(weights);
        }
        let mut order: Vec<(i64, f64)> = weights.into_iter().collect();
        order.sort_by(|(a, a_weight), (b, b_weight)| b_weight.total_cmp(a_weight).then(a.cmp(b)));
        Ok(order.into_iter().map(|(id, _)| id).collect())
    }

    fn answer(
        &mut self,
        id: i64,
        wording: &Query,
        scorer: &Scorer,
    ) -> Result<Option<ScoredChunk>, StoreError> {
        let Some((_, _, title, _, chunk)) = self.piece(id)? else {
            return Ok(None);
        };
        let above = above(&title, &chunk);
        let line = PreparedLine::of_passage(&format!("{above}\n{}", chunk.text));
        if !line.has_required(wording) {
            return Ok(None);
        }
        let Relevance { score, wishes, at } = scorer.relevance(&line, 0);
        if wishes == 0 && !wording.wished.is_empty() && wording.required.is_empty() {
            return Ok(None);
        }
        // Where the match begins in the text; 0 if it is in the headings above it.
        let at = at.saturating_sub(above.len() + 1);
        self.at.entry(id).or_insert(at);
        Ok(Some(ScoredChunk { id, score, line }))
    }

    /// A piece of one of the collections: its collection's row, path, title, when it was read, and itself.
    #[allow(clippy::type_complexity, reason = "read here and taken apart at once")]
    fn piece(&self, id: i64) -> Result<Option<(i64, String, String, i64, Chunk)>, StoreError> {
        let row = self
            .connection
            .prepare_cached(
                "SELECT d.collection_id, d.path, d.title, d.read_at_ms, k.headings, k.line, k.page, k.content
                 FROM knowledge_chunks k JOIN knowledge_documents d ON d.id = k.document_id WHERE k.id = ?1",
            )?
            .query_row([id], |row| {
                Ok((
                    row.get("collection_id")?,
                    row.get("path")?,
                    row.get("title")?,
                    row.get("read_at_ms")?,
                    chunk_row(row)?,
                ))
            })
            .optional()?;
        Ok(row.filter(|(collection, ..)| self.collections.contains_key(collection)))
    }

    /// Gives the best answers to all wordings, near-identical pieces as one.
    fn give(
        &mut self,
        mut lists: Vec<Vec<ScoredChunk>>,
        query: &KnowledgeQuery,
    ) -> Result<(), StoreError> {
        let order: Vec<i64> = match lists.len() {
            1 => lists[0].iter().map(|it| it.id).collect(),
            _ => {
                let ids = |list: &Vec<ScoredChunk>| list.iter().map(|it| it.id).collect();
                let lists: Vec<Vec<i64>> = lists.iter().map(ids).collect();
                fused(&lists).into_iter().map(|(id, _)| id).collect()
            }
        };
        let mut known: HashMap<i64, ScoredChunk> = HashMap::new();
        for answer in lists.drain(..).flatten() {
            let best = known.get(&answer.id).map_or(f64::MIN, |it| it.score);
            if answer.score > best {
                known.insert(answer.id, answer);
            }
        }
        let mut given: Vec<(ScoredChunk, usize)> = Vec::new();
        for answer in order.iter().filter_map(|id| known.remove(id)) {
            let is_like =
                |it: &(ScoredChunk, usize)| it.0.line.likeness.is_near(&answer.line.likeness);
            match given.iter().position(is_like) {
                Some(like) => given[like].1 += 1,
                None if given.len() < query.limit => given.push((answer, 0)),
                None => {}
            }
        }
        let mut tokens = 0_usize;
        for (answer, same) in given {
            let Some((collection, path, title, read_at_ms, chunk)) = self.piece(answer.id)? else {
                continue;
            };
            let at = self.at.get(&answer.id).copied().unwrap_or_default();
            let text = excerpt(&chunk.text, boundary(&chunk.text, at), query.text_max_chars);
            tokens = tokens.saturating_add(utf16_div4(&text));
            if !self.found.hits.is_empty() && tokens > query.token_cap {
                break;
            }
            self.found.hits.push(KnowledgeHit {
                collection: self.collections[&collection].clone(),
                path,
                title,
                headings: chunk.headings,
                line: chunk.line,
                page: chunk.page,
                text,
                score: answer.score,
                same,
                read_at_ms,
            });
        }
        Ok(())
    }

    fn places_of(&self, wished: &[WordWish]) -> Result<Vec<FoundPlaces>, StoreError> {
        let each = (PLACES_MAX / wished.len().max(1)).min(PLACES_EACH);
        let mut places = Vec::with_capacity(wished.len());
        for wish in wished {
            let mut all = self.places(&self.expression(wish, stem_entry), each + 1)?;
            let is_cut = all.len() > each;
            all.truncate(each);
            places.push(FoundPlaces { all, is_cut });
        }
        Ok(places)
    }

    fn places(&self, expression: &str, limit: usize) -> Result<Vec<i64>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT rowid FROM knowledge_stems WHERE knowledge_stems MATCH ?1 LIMIT ?2",
        )?;
        let rows = statement.query_map((expression, limit_of(limit)), |row| row.get("rowid"))?;
        Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
    }

    /// A word as the index is asked for it, in the collections and nowhere else.
    fn expression(&self, wish: &WordWish, entry: fn(i64, &str) -> String) -> String {
        let others = wish.stands_in.iter().map(|(stem, _)| stem);
        let stems: Vec<&String> = wish.stems.iter().chain(others).collect();
        let of_collection = |collection: &i64| {
            let entries = stems.iter().map(|stem| quoted(&entry(*collection, stem)));
            entries.collect::<Vec<_>>()
        };
        let all: Vec<String> = self.collections.keys().flat_map(of_collection).collect();
        all.join(" OR ")
    }

    /// The index expression for words that must be there; `None` if the index has none of them.
    fn required(&self, words: &[String], is_beginning: bool) -> Option<String> {
        let (last, first) = words.split_last()?;
        let whole = if is_beginning { first } else { words };
        let parsed = Query::parse(&whole.join(" "));
        let telling = parsed.wished.iter().filter(|_| !parsed.is_only_grammar);
        let mut all: Vec<String> = telling
            .map(|wish| format!("({})", self.expression(wish, stem_entry)))
            .collect();
        if is_beginning {
            // A stem may be shorter than the beginning that is asked for, by an ending or two.
            let start: String = last.chars().take(last.chars().count().max(4) - 1).collect();
            let of_collection = |id: &i64| format!("{}*", quoted(&stem_entry(*id, &start)));
            let any: Vec<String> = self.collections.keys().map(of_collection).collect();
            all.push(format!("({})", any.join(" OR ")));
        }
        (!all.is_empty()).then(|| all.join(" AND "))
    }

    /// For wished words that are in no piece: the words of the collections that may have been meant. Returns whether
    /// there are any.
    fn find_stand_ins(
        &mut self,
        wording: &mut Query,
        places: &[FoundPlaces],
    ) -> Result<bool, StoreError> {
        let mut is_changed = false;
        for (wish, places) in wording.wished.iter_mut().zip(places) {
            let is_short = wish.plain.chars().nth(MISSPELT_MIN_CHARS - 1).is_none();
            if !places.all.is_empty() || is_short || wish.is_gram {
                continue;
            }
            let mut meant = self.meant_by(&wish.plain)?;
            meant.sort();
            meant.dedup_by(|(_, a), (_, b)| a == b);
            let least = meant.first().map(|(kinship, _)| *kinship);
            meant.retain(|(kinship, _)| Some(*kinship) == least);
            meant.truncate(STANDS_IN_MAX);
            let words: Vec<String> = meant.iter().map(|(_, word)| word.clone()).collect();
            let taken_for = &mut self.found.taken_for;
            if !words.is_empty() && !taken_for.iter().any(|(word, _)| *word == wish.plain) {
                taken_for.push((wish.plain.clone(), words));
            }
            is_changed |= !meant.is_empty();
            let share = |kinship| match kinship {
                Kinship::Misspelt(_) => MISSPELT_SHARE,
                Kinship::Part => PART_SHARE,
            };
            wish.stands_in = meant
                .into_iter()
                .map(|(kin, word)| (word, share(kin)))
                .collect();
        }
        Ok(is_changed)
    }

    /// The words of the collections that a word may have been meant for.
    fn meant_by(&self, word: &str) -> Result<Vec<(Kinship, String)>, StoreError> {
        let asked: Vec<char> = word.chars().collect();
        let first: String = asked.iter().take(1).collect();
        let each = limit_of((VOCABULARY_MAX / self.collections.len().max(1)).max(1));
        let mut meant = Vec::new();
        for collection in self.collections.keys() {
            // Words from the same first letter on come first, as most typos keep it; then the rest, up to the limit.
            for sql in [
                "SELECT stem FROM knowledge_words WHERE collection_id = ?1 AND stem >= ?2 LIMIT ?3",
                "SELECT stem FROM knowledge_words WHERE collection_id = ?1 AND stem < ?2 LIMIT ?3",
            ] {
                let mut statement = self.connection.prepare_cached(sql)?;
                let mut stems = statement.query((collection, &first, each))?;
                while let Some(row) = stems.next()? {
                    let stem: String = row.get("stem")?;
                    let chars: Vec<char> = stem.chars().collect();
                    if let Some(kinship) = kinship(&asked, &chars) {
                        meant.push((kinship, stem));
                    }
                }
            }
        }
        Ok(meant)
    }
}

/// The title and headings above a piece.
fn above(title: &str, chunk: &Chunk) -> String {
    match chunk.headings.iter().any(|it| it == title) {
        true => chunk.headings.join("\n"),
        false => format!("{title}\n{}", chunk.headings.join("\n")),
    }
}

/// The character boundary at or before a byte.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}
