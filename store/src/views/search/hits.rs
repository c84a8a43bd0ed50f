//! Reading what is given: hits with their text around the match, where they are on the platform, and the lines
//! beside them.

use super::{Ranked, SearchRange};
use crate::StoreError;
use crate::contract::{MessagePlace, Neighbour, SearchHit, SearchHits, SearchMode, SearchQuery};
use crate::engine::sql::{Connection, OptionalExtension};
use crate::rows::columns::{limit_of, select_turns, turn_from_row};
use crate::rows::names::NameLookup;
use crate::views::search::terms::SearchTerms;
use vocative_contract::identity::Platform;
use vocative_core::ids::{Seq, TurnId};
use vocative_core::search::excerpt::excerpt;
use vocative_core::search::query::Query;
use vocative_core::search::scoring::{PreparedLine, Scorer};
use vocative_core::turn::Turn;

/// The length to which a line beside a hit is cut, in characters.
const NEIGHBOUR_MAX_CHARS: usize = 200;

const BY_SEQ_SQL: &str = select_turns!("WHERE t.seq = ?1");
const BY_ID_SQL: &str = select_turns!("WHERE t.uuid = ?1 AND t.visibility = 'room'");
const BEFORE_SQL: &str = select_turns!(
    "WHERE t.conversation_id = (SELECT conversation_id FROM turns WHERE seq = ?3) AND t.visibility = 'room'
       AND (t.sent_at_ms, t.ordinal, t.seq) < (?1, ?2, ?3)
     ORDER BY t.sent_at_ms DESC, t.ordinal DESC, t.seq DESC LIMIT ?4"
);
const AFTER_SQL: &str = select_turns!(
    "WHERE t.conversation_id = (SELECT conversation_id FROM turns WHERE seq = ?3) AND t.visibility = 'room'
       AND (t.sent_at_ms, t.ordinal, t.seq) > (?1, ?2, ?3)
     ORDER BY t.sent_at_ms, t.ordinal, t.seq LIMIT ?4"
);
/// The first of the next lines that replies to a turn.
const ANSWER_SQL: &str = select_turns!(
    "WHERE t.seq = (SELECT n.seq FROM (
         SELECT seq, reply_to_seq, visibility FROM turns
         WHERE conversation_id = (SELECT conversation_id FROM turns WHERE seq = ?3)
           AND (sent_at_ms, ordinal, seq) > (?1, ?2, ?3)
         ORDER BY sent_at_ms, ordinal, seq LIMIT ?4) n
       WHERE n.reply_to_seq = ?3 AND n.visibility = 'room' LIMIT 1)"
);
/// How many lines after a hit are looked through for a reply to it.
const ANSWERS_MAX: usize = 200;
const MESSAGE_SQL: &str =
    "SELECT a.platform, a.platform_id AS account, h.platform_id AS chat, c.thread,
            m.platform_id AS message
     FROM messages m JOIN turns t ON t.seq = m.turn_seq
     JOIN conversations c ON c.id = t.conversation_id JOIN chats h ON h.id = c.chat_id
     JOIN accounts a ON a.id = h.account_id
     WHERE m.turn_seq = ?1 ORDER BY m.part LIMIT 1";

/// The words around which a hit's text is cut.
enum CutMarks {
    Strict(SearchTerms),
    Forgiving(Vec<Scorer>),
}

impl CutMarks {
    fn of(query: &SearchQuery) -> Self {
        if query.mode != SearchMode::Forgiving {
            let text = query.queries.first().map_or("", String::as_str);
            return Self::Strict(SearchTerms::parse(text));
        }
        let asked = query.queries.iter().take(super::WORDINGS_MAX);
        let scorer = |text: &String| {
            let query = Query::parse(text);
            let even = vec![1.0; query.wished.len()];
            Scorer::new(&query, &even)
        };
        Self::Forgiving(asked.map(scorer).collect())
    }

    fn first_in(&self, text: &str) -> usize {
        match self {
            Self::Strict(terms) if terms.is_empty() => 0,
            Self::Strict(terms) => terms.first_match(text),
            Self::Forgiving(scorers) => {
                let line = PreparedLine::of(text);
                let relevances = scorers.iter().map(|scorer| scorer.relevance(&line, 0));
                let best = relevances.max_by(|a, b| a.score.total_cmp(&b.score));
                best.map_or(0, |best| best.at)
            }
        }
    }
}

/// Reads the best matches, up to limit and token cap.
pub(super) fn read_hits(
    connection: &Connection,
    query: &SearchQuery,
    range: &SearchRange,
    best: &[Ranked],
    excluded: &[Seq],
    found: &mut SearchHits,
) -> Result<(), StoreError> {
    let marks = CutMarks::of(query);
    let mut reading = HitReading {
        connection,
        names: NameLookup::new(connection, range.account),
        shown: best
            .iter()
            .take(query.limit)
            .map(|it| it.found.seq.0)
            .chain(excluded.iter().map(|seq| seq.0))
            .collect(),
    };
    let mut tokens = 0_usize;
    for ranked in best.iter().take(query.limit) {
        let turn = connection
            .prepare_cached(BY_SEQ_SQL)?
            .query_row([ranked.found.seq], turn_from_row)?;
        let content = reading.names.named(&turn.content)?;
        let text = excerpt(&content, marks.first_in(&content), query.text_max_chars);
        tokens = tokens.saturating_add(utf16_div4(&text));
        if !found.hits.is_empty() && tokens > query.token_cap {
            break;
        }
        let mut hit = SearchHit {
            message: reading.message(turn.seq().0)?,
            turn,
            text,
            score: ranked.score,
            nearness: ranked.nearness,
            same: ranked.same,
            before: Vec::new(),
            after: Vec::new(),
            replied_to: None,
            answered_by: None,
        };
        if query.neighbours > 0 {
            reading.neighbours(&mut hit, query.neighbours)?;
            tokens = tokens.saturating_add(keep_within(
                &mut hit,
                query.token_cap - tokens.min(query.token_cap),
            ));
        }
        found.hits.push(hit);
    }
    Ok(())
}

struct HitReading<'a> {
    connection: &'a Connection<'a>,
    names: NameLookup<'a>,
    /// The seqs of all hits and of excluded turns: none of them is shown beside a hit.
    shown: Vec<i64>,
}

impl HitReading<'_> {
    fn message(&self, seq: i64) -> Result<Option<MessagePlace>, StoreError> {
        let row = self
            .connection
            .prepare_cached(MESSAGE_SQL)?
            .query_row([seq], |row| {
                let platform: String = row.get("platform")?;
                let thread: String = row.get("thread")?;
                Ok(Platform::from_name(&platform).map(|platform| {
                    Ok::<_, crate::engine::sql::Error>(MessagePlace {
                        platform,
                        account: row.get("account")?,
                        chat: row.get("chat")?,
                        thread: (!thread.is_empty()).then_some(thread),
                        message: row.get("message")?,
                    })
                }))
            });
        match row.optional()?.flatten() {
            Some(place) => Ok(Some(place?)),
            None => Ok(None),
        }
    }

    fn neighbours(&mut self, hit: &mut SearchHit, count: usize) -> Result<(), StoreError> {
        let at = hit.turn.position;
        let read = |sql: &str, limit: usize| -> Result<Vec<Turn>, StoreError> {
            let mut statement = self.connection.prepare_cached(sql)?;
            let asked = (at.sent_at_ms, at.ordinal, at.seq, limit_of(limit));
            let rows = statement.query_map(asked, turn_from_row)?;
            Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
        };
        let mut before = read(BEFORE_SQL, count)?;
        before.reverse();
        let after = read(AFTER_SQL, count)?;
        let answer = read(ANSWER_SQL, ANSWERS_MAX)?.into_iter().next();
        let replied_to = match hit.turn.reply_to {
            Some(id) => self
                .connection
                .prepare_cached(BY_ID_SQL)?
                .query_row([id], turn_from_row)
                .optional()?,
            None => None,
        };
        let beside: Vec<TurnId> = before.iter().chain(&after).map(|turn| turn.id).collect();
        let is_new = |turn: &Turn| !beside.contains(&turn.id);
        hit.replied_to = self.neighbour(replied_to.filter(is_new))?;
        hit.answered_by = self.neighbour(answer.filter(is_new))?;
        for turn in before {
            hit.before.extend(self.neighbour(Some(turn))?);
        }
        for turn in after {
            hit.after.extend(self.neighbour(Some(turn))?);
        }
        Ok(())
    }

    fn neighbour(&mut self, turn: Option<Turn>) -> Result<Option<Neighbour>, StoreError> {
        let Some(turn) = turn.filter(|turn| !self.shown.contains(&turn.seq().0)) else {
            return Ok(None);
        };
        let named = self.names.named(&turn.content)?;
        Ok(Some(Neighbour {
            text: excerpt(&named, 0, NEIGHBOUR_MAX_CHARS),
            turn,
        }))
    }
}

/// Leaves neighbours out that pass the tokens left, those of replies last; returns what the others take.
fn keep_within(hit: &mut SearchHit, left: usize) -> usize {
    let mut taken = 0;
    let mut fits = |neighbour: &Neighbour| {
        let tokens = utf16_div4(&neighbour.text);
        let fits = taken + tokens <= left;
        taken += if fits { tokens } else { 0 };
        fits
    };
    hit.answered_by = hit.answered_by.take().filter(&mut fits);
    hit.replied_to = hit.replied_to.take().filter(&mut fits);
    hit.after.retain(&mut fits);
    hit.before.reverse();
    hit.before.retain(&mut fits);
    hit.before.reverse();
    taken
}

pub(crate) fn utf16_div4(text: &str) -> usize {
    text.encode_utf16().count().div_ceil(4)
}
