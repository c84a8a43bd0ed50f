//! Traces: the parts of an erased text that are looked for elsewhere, because only the erased person said them.
//!
//! A line of at least [`LINE_MIN_BYTES`] and a *mark* (a word of at least [`MARK_MIN_BYTES`] that
//! holds more than letters: a number, a code, an address, a link) are traces if nobody in the whole
//! store had written them before and at most [`OTHERS_MAX`] turns of others repeat them: what more
//! people say is common, and what somebody said before is theirs. They are cut out of whatever
//! repeats them. A plain word of at least [`WORD_MIN_CHARS`] letters that is theirs by the same rule
//! is looked for only in what our agents said later in the same chat.
//!
//! The lines and marks of a text file that they sent are traces by the same rule. Words that all users of a
//! bot write are no traces: commands, usernames, the names of our bots and agents.
//!
//! For a conversation a trace is what no turn outside it holds.

use std::collections::HashSet;
use std::path::Path;

use vocative_contract::work::looked_at;

use crate::engine::beside::files_beside;
use crate::engine::sql::{Connection, params};
use crate::rows::turn_rows::TurnRow;

use super::ledger::LedgerKind;
use super::needles::Needles;
use super::orders::{Order, Targets};
use crate::StoreError;
use crate::engine::contents::{path_of, read_at_most};
use crate::rows::search_text::searchable;
use vocative_core::decode::decoded;
use vocative_core::file::ContentId;

/// Lines shorter than this, in bytes, are no trace of what was said.
const LINE_MIN_BYTES: usize = 12;
/// Lines longer than this, in bytes, are searched for in pieces.
const LINE_MAX_BYTES: usize = 400;
/// Words shorter than this, in bytes, are not distinctive enough for a trace.
const MARK_MIN_BYTES: usize = 8;
/// Words shorter than this, in characters, are not searched for.
const WORD_MIN_CHARS: usize = 6;
/// A text that more than this many turns of other people hold is common, and no trace.
const OTHERS_MAX: i64 = 20;
/// The most turns with a text that are read; a text that more turns hold is common.
const HELD_MAX: i64 = 256;
/// The most traces that one turn leaves.
const TURN_TRACES_MAX: usize = 400;
/// Files larger than this, in bytes, are not searched for traces.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The longest word of a command, in characters. Source: Telegram Bot API, `BotCommand`.
const COMMAND_MAX_CHARS: usize = 32;
/// The most traces that one order leaves.
const ORDER_TRACES_MAX: i64 = 20_000;
/// The marks around the id in a mention.
const MENTION_START: char = '\u{fff9}';
const MENTION_END: char = '\u{fffb}';

/// A text to look for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum TraceCandidate {
    /// A line or a mark, which is looked for anywhere.
    Anywhere(String),
    /// A plain word, which is looked for only in our own turns.
    InOurs(String),
}

impl TraceCandidate {
    fn is_looked_for_anywhere(&self) -> bool {
        matches!(self, Self::Anywhere(_))
    }
}

/// Notes the traces of a turn, of its earlier texts and its files too.
pub(super) fn note_traces_txn(
    connection: &Connection,
    order: &Order,
    targets: &Targets,
    turn: &TurnRow,
) -> Result<(), StoreError> {
    let names = our_names(connection)?;
    let mut found = HashSet::new();
    candidates(&turn.content, &names, &mut found);
    let mut statement =
        connection.prepare_cached("SELECT content FROM revisions WHERE turn_seq = ?1")?;
    let mut rows = statement.query([turn.seq])?;
    while let Some(row) = rows.next()? {
        candidates(&row.get::<_, String>("content")?, &names, &mut found);
    }
    for text in file_texts(connection, turn.seq)? {
        let mut of_file = HashSet::new();
        candidates(&text, &names, &mut of_file);
        // The plain words of a whole file are too common to be traces.
        found.extend(
            of_file
                .into_iter()
                .filter(TraceCandidate::is_looked_for_anywhere),
        );
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
    candidate: &TraceCandidate,
) -> Result<(), StoreError> {
    let (text, chat) = match candidate {
        TraceCandidate::Anywhere(text) => (text, None),
        TraceCandidate::InOurs(_) if order.entry.kind == LedgerKind::Conversation => return Ok(()),
        TraceCandidate::InOurs(text) => (text, Some(turn.conversation.chat)),
    };
    let known: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM erasure_traces WHERE erasure_id = ?1 AND text = ?2)
                 OR (SELECT count(*) >= ?3 FROM erasure_traces WHERE erasure_id = ?1) AS known",
        )?
        .query_row(params![order.row, text, ORDER_TRACES_MAX], |row| {
            row.get("known")
        })?;
    if known
        || !is_theirs(connection, order, targets, turn.seq, text)?
        || is_username(connection, text)?
    {
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
                                  AND t.conversation_id NOT IN (SELECT value FROM json_each(?2))) AS elsewhere",
            )?
            .query_row((&phrase, &rooms), |row| row.get("elsewhere"))?;
        return Ok(!elsewhere);
    }
    let earlier: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM turn_text f JOIN turns t ON t.seq = f.rowid
                            WHERE turn_text MATCH ?1 AND f.rowid < ?2
                              AND t.participant_id NOT IN (SELECT value FROM json_each(?3))) AS earlier",
        )?
        .query_row((&phrase, seq, &people), |row| row.get("earlier"))?;
    if earlier {
        return Ok(false);
    }
    let (held, others): (i64, i64) = connection
        .prepare_cached(
            "SELECT count(*) AS held,
                    count(*) FILTER (WHERE p.kind = 'user'
                                       AND p.id NOT IN (SELECT value FROM json_each(?3))) AS others
             FROM (SELECT f.rowid AS seq FROM turn_text f
                   WHERE turn_text MATCH ?1 AND f.rowid > ?2 ORDER BY f.rowid LIMIT ?4) x
             JOIN turns t ON t.seq = x.seq JOIN participants p ON p.id = t.participant_id",
        )?
        .query_row((&phrase, seq, &people, HELD_MAX), |row| {
            Ok((row.get("held")?, row.get("others")?))
        })?;
    Ok(held < HELD_MAX && others <= OTHERS_MAX)
}

/// The texts of the files of a turn that nobody else sent before.
fn file_texts(connection: &Connection, seq: i64) -> Result<Vec<String>, StoreError> {
    let Some(database) = connection.path().filter(|path| !path.is_empty()) else {
        return Ok(Vec::new());
    };
    let folder = files_beside(Path::new(database));
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT f.sha256 FROM files f JOIN turns t ON t.seq = f.turn_seq
         WHERE f.turn_seq = ?1 AND f.sha256 IS NOT NULL AND NOT EXISTS (
             SELECT 1 FROM files o JOIN turns s ON s.seq = o.turn_seq
             WHERE o.sha256 = f.sha256 AND s.seq < t.seq AND s.participant_id <> t.participant_id)",
    )?;
    let contents = statement.query_map([seq], |row| row.get::<_, ContentId>("sha256"))?;
    let mut texts = Vec::new();
    for content in contents {
        // Bytes that are lost, or missing beside an older copy, must not stop the erasure.
        let bytes = read_at_most(&path_of(&folder, content?), FILE_BYTES_MAX)?;
        texts.extend(bytes.and_then(decoded));
    }
    Ok(texts)
}

/// The names of our bots and agents, in lower case.
#[derive(Debug, Default)]
pub(super) struct OwnNames {
    /// Names of one word.
    words: HashSet<String>,
    /// Names of several words.
    phrases: HashSet<Vec<String>>,
}

impl OwnNames {
    fn add(&mut self, name: &str) {
        let words = name
            .split_whitespace()
            .map(|word| bare(word).to_lowercase());
        let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            [] => {}
            [word] => {
                self.words.insert(word.clone());
            }
            _ => {
                self.phrases.insert(words);
            }
        }
    }

    /// The number of words of the longest name of several words at the beginning of `words`; 0 = there is none.
    fn phrase_at(&self, words: &[&str]) -> usize {
        let is_here = |phrase: &&Vec<String>| {
            words.len() >= phrase.len()
                && phrase
                    .iter()
                    .zip(words)
                    .all(|(name, word)| bare(word).to_lowercase() == *name)
        };
        self.phrases
            .iter()
            .filter(is_here)
            .map(Vec::len)
            .max()
            .unwrap_or(0)
    }
}

fn our_names(connection: &Connection) -> Result<OwnNames, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT p.platform_id, p.display_name, p.username
         FROM accounts a CROSS JOIN participants p
              ON p.account_id = a.id AND p.kind IN ('agent', 'system')
         UNION ALL
         SELECT json_extract(bot, '$.username'), json_extract(bot, '$.display_name'), NULL
         FROM accounts WHERE json_valid(bot)",
    )?;
    let mut rows = statement.query([])?;
    let mut names = OwnNames::default();
    while let Some(row) = rows.next()? {
        for column in 0..3 {
            let name: Option<String> = row.get(column)?;
            names.add(&name.unwrap_or_default());
        }
    }
    Ok(names)
}

/// Whether a word is somebody's username.
fn is_username(connection: &Connection, text: &str) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM accounts a CROSS JOIN participants p
                                 ON p.account_id = a.id AND p.username = ?1) AS is_so",
        )?
        .query_row([text], |row| row.get("is_so"))?)
}

/// A word without the marks around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Whether a word is one that all users of a bot write: a command, a username, one of our names.
fn is_common(word: &str, names: &OwnNames) -> bool {
    word.starts_with('@') || is_command(word) || names.words.contains(&bare(word).to_lowercase())
}

/// Whether a word is a command, with or without the bot that it is for: `/forget`, `/forget@bot`.
fn is_command(word: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let Some(word) = word.strip_prefix('/') else {
        return false;
    };
    let word = word.trim_end_matches(|c: char| !is_name(c));
    let (name, bot) = word.split_once('@').unwrap_or((word, "bot"));
    (1..=COMMAND_MAX_CHARS).contains(&name.len())
        && [name, bot].iter().all(|it| it.chars().all(is_name))
}

/// The parts of a line between common words.
fn own_parts<'a>(line: &'a str, names: &OwnNames) -> Vec<&'a str> {
    let (mut parts, mut from) = (Vec::new(), 0);
    let place_of = |word: &str| word.as_ptr() as usize - line.as_ptr() as usize;
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut next = 0;
    while let Some(word) = words.get(next) {
        let common = match names.phrase_at(&words[next..]) {
            0 => usize::from(is_common(word, names)),
            several => several,
        };
        if let Some(last) = words[next..].get(..common).and_then(<[_]>::last) {
            parts.push(line[from..place_of(word)].trim());
            from = place_of(last) + last.len();
        }
        next += common.max(1);
    }
    parts.push(line[from..].trim());
    parts
}

/// Adds the parts of a text that could be looked for.
pub(super) fn candidates(text: &str, names: &OwnNames, found: &mut HashSet<TraceCandidate>) {
    looked_at(text.len());
    // A mention holds the id of another person, so it is left out.
    let said = text.split(MENTION_START).enumerate().map(|(n, part)| {
        let id_and_rest = (n > 0).then(|| part.split_once(MENTION_END)).flatten();
        id_and_rest.map_or(part, |(_, rest)| rest)
    });
    for line in said.flat_map(str::lines) {
        let line = line.trim_start_matches(['>', ' ', '\t']).trim();
        for part in own_parts(line, names) {
            for piece in pieces(part) {
                if piece.len() >= LINE_MIN_BYTES && found.len() < TURN_TRACES_MAX {
                    found.insert(TraceCandidate::Anywhere(piece.to_owned()));
                }
            }
            for word in part.split_whitespace() {
                if found.len() >= TURN_TRACES_MAX {
                    return;
                }
                found.extend(word_candidate(word));
            }
        }
    }
}

/// The needles of a text alone, without regard to other turns.
pub(super) fn needles_of(text: &str) -> Needles {
    let mut found = HashSet::new();
    candidates(text, &OwnNames::default(), &mut found);
    Needles::new(found.into_iter().map(|candidate| match candidate {
        TraceCandidate::Anywhere(text) | TraceCandidate::InOurs(text) => (text, None),
    }))
}

fn word_candidate(word: &str) -> Option<TraceCandidate> {
    let word = bare(word);
    let is_plain = word.chars().all(char::is_alphabetic);
    if !is_plain && (MARK_MIN_BYTES..=LINE_MAX_BYTES).contains(&word.len()) {
        return Some(TraceCandidate::Anywhere(word.to_owned()));
    }
    let is_long = word.len() <= LINE_MAX_BYTES && word.chars().count() >= WORD_MIN_CHARS;
    (is_plain && is_long).then(|| TraceCandidate::InOurs(word.to_owned()))
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
            &OwnNames::default(),
            &mut found,
        );
        let anywhere = |text: &str| TraceCandidate::Anywhere(text.to_owned());
        let expected = HashSet::from([
            anywhere("the code is zebra-7f3a."),
            anywhere("zebra-7f3a"),
            TraceCandidate::InOurs("thanks".to_owned()),
        ]);
        assert_eq!(found, expected);
    }

    #[test]
    fn commands_names_and_usernames_are_nobodys_own_words() {
        let mut names = OwnNames::default();
        for name in ["Vocative", "kael_bot", "Ops Desk", "ops desk helper"] {
            names.add(name);
        }
        let anywhere = |text: &str| TraceCandidate::Anywhere(text.to_owned());
        let table = [
            ("/forget@kael_bot", vec![]),
            ("/forget@kael_bot.", vec![]),
            ("/a_long_command_name", vec![]),
            ("@ann_smith99 and @kael_bot:", vec![]),
            ("Vocative, kael_bot and VOCATIVE!", vec![]),
            ("Ops Desk Helper, ops desk!", vec![]),
            (
                "hello, Ops Desk: is it zebra-7f3a?",
                vec![anywhere("is it zebra-7f3a?"), anywhere("zebra-7f3a")],
            ),
            (
                "/ask@kael_bot is it zebra-7f3a?",
                vec![anywhere("is it zebra-7f3a?"), anywhere("zebra-7f3a")],
            ),
            (
                "/etc/passwd-2",
                vec![anywhere("/etc/passwd-2"), anywhere("etc/passwd-2")],
            ),
            ("ann@example.com", vec![anywhere("ann@example.com")]),
        ];
        for (text, expected) in table {
            let mut found = HashSet::new();
            candidates(text, &names, &mut found);
            assert_eq!(found, HashSet::from_iter(expected), "{text}");
        }
    }

    #[test]
    fn a_long_line_is_looked_for_in_pieces_that_make_it_whole() {
        let line = "é".repeat(LINE_MAX_BYTES);
        let cut: Vec<&str> = pieces(&line).collect();
        assert_eq!(cut.concat(), line);
        assert!(cut.len() == 2 && cut.iter().all(|piece| piece.len() <= LINE_MAX_BYTES));
    }
}
