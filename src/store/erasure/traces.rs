//! Traces: what of an erased text is looked for elsewhere, because it was theirs alone.
//!
//! A line of at least [`LINE_MIN_BYTES`] and a *mark* (a word of at least [`MARK_MIN_BYTES`] that
//! holds more than letters: a number, a code, an address, a link) are traces if nobody in the whole
//! store had written them before and at most [`OTHERS_MAX`] turns of others repeat them: what more
//! people say is common, and what somebody said before is theirs. They are cut out of whatever
//! repeats them. A plain word of at least [`WORD_MIN_CHARS`] letters that is theirs by the same rule
//! is looked for only in what our agents said later in the same chat.
//!
//! For a conversation a trace is what no turn outside it holds.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use super::ledger::LedgerKind;
use super::orders::{Order, Targets};
use crate::store::StoreError;
use crate::store::search_text::searchable;
use crate::store::turns::TurnRow;

/// A shorter line is no trace.
const LINE_MIN_BYTES: usize = 12;
/// A longer line is looked for in pieces.
const LINE_MAX_BYTES: usize = 400;
/// A shorter word is no mark.
const MARK_MIN_BYTES: usize = 8;
/// A shorter word is not looked for at all.
const WORD_MIN_CHARS: usize = 6;
/// What more turns of others say is common.
const OTHERS_MAX: i64 = 20;
/// Turns with a text that are looked at; what even more hold is common.
const HELD_MAX: i64 = 256;
/// Traces of one turn.
const TURN_TRACES_MAX: usize = 400;
/// Traces of one order.
const ORDER_TRACES_MAX: i64 = 20_000;
/// The marks around the id in a mention.
const MENTION_START: char = '\u{fff9}';
const MENTION_END: char = '\u{fffb}';

/// Something to look for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Candidate {
    /// A line or a mark: anywhere.
    Anywhere(String),
    /// A plain word: only in what we said.
    InOurs(String),
}

/// Notes the traces of a turn, of its earlier texts too.
pub(super) fn note_traces_txn(
    connection: &Connection,
    order: &Order,
    targets: &Targets,
    turn: &TurnRow,
) -> Result<(), StoreError> {
    let mut found = HashSet::new();
    candidates(&turn.content, &mut found);
    let mut statement =
        connection.prepare_cached("SELECT content FROM revisions WHERE turn_seq = ?1")?;
    let mut rows = statement.query([turn.seq])?;
    while let Some(row) = rows.next()? {
        candidates(&row.get::<_, String>(0)?, &mut found);
    }
    for candidate in found {
        note_txn(connection, order, targets, turn, &candidate)?;
    }
    Ok(())
}

fn note_txn(
    connection: &Connection,
    order: &Order,
    targets: &Targets,
    turn: &TurnRow,
    candidate: &Candidate,
) -> Result<(), StoreError> {
    let (text, chat) = match candidate {
        Candidate::Anywhere(text) => (text, None),
        Candidate::InOurs(_) if order.entry.kind == LedgerKind::Conversation => return Ok(()),
        Candidate::InOurs(text) => (text, Some(turn.conversation.chat)),
    };
    let known: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM erasure_traces WHERE erasure_id = ?1 AND text = ?2)
                 OR (SELECT count(*) >= ?3 FROM erasure_traces WHERE erasure_id = ?1)",
        )?
        .query_row(params![order.row, text, ORDER_TRACES_MAX], |row| row.get(0))?;
    if known || !is_theirs(connection, order, targets, turn.seq, text)? {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO erasure_traces (erasure_id, text, chat_id, after_seq)
             VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        )?
        .execute(params![order.row, text, chat, turn.seq])?;
    Ok(())
}

/// Whether a text was brought in by those whom the order names, and is not common.
fn is_theirs(
    connection: &Connection,
    order: &Order,
    targets: &Targets,
    seq: i64,
    text: &str,
) -> Result<bool, StoreError> {
    let phrase = format!("content : \"{}\"", searchable(text).replace('"', "\"\""));
    let (people, rooms) = targets.json();
    if order.entry.kind == LedgerKind::Conversation {
        let elsewhere: bool = connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM turn_text f JOIN turns t ON t.seq = f.rowid
                                WHERE turn_text MATCH ?1
                                  AND t.conversation_id NOT IN (SELECT value FROM json_each(?2)))",
            )?
            .query_row((&phrase, &rooms), |row| row.get(0))?;
        return Ok(!elsewhere);
    }
    let earlier: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM turn_text f JOIN turns t ON t.seq = f.rowid
                            WHERE turn_text MATCH ?1 AND f.rowid < ?2
                              AND t.participant_id NOT IN (SELECT value FROM json_each(?3)))",
        )?
        .query_row((&phrase, seq, &people), |row| row.get(0))?;
    if earlier {
        return Ok(false);
    }
    let (held, others): (i64, i64) = connection
        .prepare_cached(
            "SELECT count(*),
                    count(*) FILTER (WHERE p.kind = 'user'
                                       AND p.id NOT IN (SELECT value FROM json_each(?3)))
             FROM (SELECT f.rowid AS seq FROM turn_text f
                   WHERE turn_text MATCH ?1 AND f.rowid > ?2 ORDER BY f.rowid LIMIT ?4) x
             JOIN turns t ON t.seq = x.seq JOIN participants p ON p.id = t.participant_id",
        )?
        .query_row((&phrase, seq, &people, HELD_MAX), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    Ok(held < HELD_MAX && others <= OTHERS_MAX)
}

/// What of a text could be looked for.
pub(super) fn candidates(text: &str, found: &mut HashSet<Candidate>) {
    // Whom a text mentions is an id, and somebody else's.
    let said = text.split(MENTION_START).enumerate().map(|(n, part)| {
        let id_and_rest = (n > 0).then(|| part.split_once(MENTION_END)).flatten();
        id_and_rest.map_or(part, |(_, rest)| rest)
    });
    for line in said.flat_map(str::lines) {
        let line = line.trim_start_matches(['>', ' ', '\t']).trim();
        for piece in pieces(line) {
            if piece.len() >= LINE_MIN_BYTES && found.len() < TURN_TRACES_MAX {
                found.insert(Candidate::Anywhere(piece.to_owned()));
            }
        }
        for word in line.split_whitespace() {
            if found.len() >= TURN_TRACES_MAX {
                return;
            }
            found.extend(word_candidate(word));
        }
    }
}

fn word_candidate(word: &str) -> Option<Candidate> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let is_plain = word.chars().all(char::is_alphabetic);
    if !is_plain && (MARK_MIN_BYTES..=LINE_MAX_BYTES).contains(&word.len()) {
        return Some(Candidate::Anywhere(word.to_owned()));
    }
    let is_long = word.len() <= LINE_MAX_BYTES && word.chars().count() >= WORD_MIN_CHARS;
    (is_plain && is_long).then(|| Candidate::InOurs(word.to_owned()))
}

/// A line in pieces of at most [`LINE_MAX_BYTES`], cut at characters.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut at = LINE_MAX_BYTES.min(rest.len());
        while !rest.is_char_boundary(at) {
            at -= 1;
        }
        let (piece, later) = rest.split_at(at);
        rest = later;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_marks_are_looked_for_anywhere_and_plain_words_in_ours() {
        let mut found = HashSet::new();
        candidates(
            "> the code is zebra-7f3a.\nok \u{fff9}U0HELPER7\u{fffb} thanks",
            &mut found,
        );
        let anywhere = |text: &str| Candidate::Anywhere(text.to_owned());
        let expected = HashSet::from([
            anywhere("the code is zebra-7f3a."),
            anywhere("zebra-7f3a"),
            Candidate::InOurs("thanks".to_owned()),
        ]);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_long_line_is_looked_for_in_pieces_that_make_it_whole() {
        let line = "é".repeat(LINE_MAX_BYTES);
        let cut: Vec<&str> = pieces(&line).collect();
        assert_eq!(cut.concat(), line);
        assert!(cut.len() == 2 && cut.iter().all(|piece| piece.len() <= LINE_MAX_BYTES));
    }
}
