//! What a room is searched with otherwise: SQLite's full text, and the newest lines.

use rusqlite::Connection;
use vocative::cli::CliError;

use super::facts::RecallRoom;
use super::{failed, tokens};

/// The name of the newest lines in the table.
pub(super) const NEWEST: &str = "the newest lines";
/// How many tokens of them are read: the default `token_budget`.
const NEWEST_MAX_TOKENS: usize = 3_000;

/// How SQLite's full text is asked for several words.
#[derive(Clone, Copy)]
pub(super) enum TermMatch {
    /// All must be in the line.
    All,
    /// Any of them; ranked by BM25.
    Any,
    /// The same with an English stemmer.
    AnyStemmed,
}

impl TermMatch {
    pub(super) const ALL: [Self; 3] = [Self::All, Self::Any, Self::AnyStemmed];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::All => "FTS5, all words",
            Self::Any => "FTS5, any word",
            Self::AnyStemmed => "FTS5, any, porter",
        }
    }
}

/// A room in a full-text table of its own.
pub(super) struct FullText {
    connection: Connection,
    words: TermMatch,
}

impl FullText {
    pub(super) fn of(room: &RecallRoom, words: TermMatch) -> Result<Self, CliError> {
        let made = Self::fill(room, words);
        made.map_err(|cause| failed(format!("SQLite's full text: {cause}")))
    }

    fn fill(room: &RecallRoom, words: TermMatch) -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        let tokenizer = match words {
            TermMatch::AnyStemmed => "porter unicode61",
            TermMatch::All | TermMatch::Any => "unicode61",
        };
        connection.execute_batch(&format!(
            "CREATE VIRTUAL TABLE lines USING fts5(text, tokenize = '{tokenizer}'); BEGIN"
        ))?;
        for (place, line) in (0_i64..).zip(&room.lines) {
            connection
                .prepare_cached("INSERT INTO lines (rowid, text) VALUES (?1, ?2)")?
                .execute((place, &line.text))?;
        }
        connection.execute_batch("COMMIT")?;
        Ok(Self { connection, words })
    }

    /// The best lines, by their place in the room.
    pub(super) fn search(&self, query: &str, limit: u32) -> Result<Vec<usize>, CliError> {
        let found = self.ask(query, limit);
        found.map_err(|cause| failed(format!("SQLite's full text: {cause}")))
    }

    fn ask(&self, query: &str, limit: u32) -> rusqlite::Result<Vec<usize>> {
        let words = query.split(|c: char| !c.is_alphanumeric());
        let quoted = words
            .filter(|word| !word.is_empty())
            .map(|word| format!("\"{word}\""));
        let between = match self.words {
            TermMatch::All => " ",
            TermMatch::Any | TermMatch::AnyStemmed => " OR ",
        };
        let expression = quoted.collect::<Vec<_>>().join(between);
        let mut statement = self.connection.prepare_cached(
            "SELECT rowid FROM lines WHERE lines MATCH ?1 ORDER BY rank, rowid DESC LIMIT ?2",
        )?;
        let rows = statement.query_map((expression, limit), |row| row.get::<_, i64>(0))?;
        let places = rows.map(|place| Ok(usize::try_from(place?).unwrap_or_default()));
        places.collect()
    }
}

/// The newest lines that fit a prompt, the newest first.
pub(super) fn newest(room: &RecallRoom) -> Vec<usize> {
    let mut spent = 0;
    let places = (0..room.lines.len()).rev();
    let fitting = places.take_while(|place| {
        spent += tokens(&room.lines[*place].text);
        spent <= NEWEST_MAX_TOKENS
    });
    fitting.collect()
}
