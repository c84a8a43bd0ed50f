//! The index of stems over turns: what `turn_stems` holds of a turn, and how it comes in and goes.
//!
//! Each turn is in it with the stems of its words, the people it mentions and its speaker, each after the row of
//! its conversation. The row id of an entry is its *place*: when it was sent, to about a minute, and then its
//! capture order; so the newest places of a word are the newest turns that have it, also after an import of older
//! ones. A job fills it behind capture, up to a watermark ([`through_seq`]); a turn up to it that changes is
//! changed in it at once. Taking a turn out needs what was put in, so that all of it is a function of the turn's
//! row; [`STEMS_VERSION`] says by which rules.

use std::collections::BTreeSet;

use vocative_contract::markup::{mentioned_ids, replace_mentions};
use vocative_core::ids::ParticipantId;
use vocative_core::job::Job;
use vocative_core::search::spelling::MISSPELT_MIN_CHARS;
use vocative_core::search::stems::{STEMS_VERSION, stems_of};
use vocative_core::search::text::is_unspaced;

use crate::StoreError;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::registry::{
    ExportRule, Fate, MergeRule, OF_TURN, STATE, StoreTable, account, nobody, text,
};
use crate::rows::indexed::in_index;
use crate::rows::jobs::enqueue_txn;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    nobody(
        "stem_index",
        "how far an index over all turns is",
        text(&[], &[], &[]),
        STATE,
    ),
    nobody(
        "turn_stems",
        "an index over turns, which are an account's",
        text(&["stems"], &[], &[]),
        Fate {
            export: ExportRule::Nothing("it is an index"),
            ..OF_TURN
        },
    ),
    account(
        "vocabulary",
        text(&["stem"], &[], &[]),
        Fate {
            merge: MergeRule::Joined,
            export: ExportRule::Nothing("it is an index"),
            ..OF_TURN
        },
    ),
];

/// The job is asked for when this many turns wait for it.
pub(crate) const TAIL_TURNS: i64 = 256;

/// The part of a place that is the capture order, in bits.
const SEQ_BITS: u32 = 36;
/// A place resolves times to 65.536 seconds: few bits, and equal times of neighbours, keep the index small.
const TIME_SHIFT: u32 = 16;
const TIME_MAX: i64 = (1 << 26) - 1;

/// Where a turn stands in the index.
pub(crate) fn place_of(sent_at_ms: i64, seq: i64) -> i64 {
    (time_of(sent_at_ms) << SEQ_BITS) | (seq & ((1 << SEQ_BITS) - 1))
}

fn time_of(sent_at_ms: i64) -> i64 {
    (sent_at_ms >> TIME_SHIFT).clamp(0, TIME_MAX)
}

/// The first place of what was sent at or after a time.
pub(crate) fn place_from(sent_at_ms: i64) -> i64 {
    time_of(sent_at_ms) << SEQ_BITS
}

/// The last place of what was sent at or before a time.
pub(crate) fn place_through(sent_at_ms: i64) -> i64 {
    place_from(sent_at_ms) | ((1 << SEQ_BITS) - 1)
}

/// The capture order of the turn at a place.
pub(crate) fn seq_at(place: i64) -> i64 {
    place & ((1 << SEQ_BITS) - 1)
}

/// When the turn at a place was sent, to about a minute, in milliseconds since the Unix epoch.
pub(crate) fn time_at_ms(place: i64) -> i64 {
    (place >> SEQ_BITS) << TIME_SHIFT
}

/// The entry of a stem in a conversation.
pub(crate) fn stem_entry(conversation_row: i64, stem: &str) -> String {
    format!("{conversation_row}w{stem}")
}

/// The entry of a mention: of a platform's id, or of `@` and a username.
pub(crate) fn mention_entry(conversation_row: i64, id: &str) -> String {
    let id = id.replace(
        |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && c != '@',
        "_",
    );
    format!("{conversation_row}m{id}")
}

/// The entry of a speaker.
pub(crate) fn speaker_entry(conversation_row: i64, participant: ParticipantId) -> String {
    format!("{conversation_row}p{}", participant.0)
}

/// A turn as the index has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StemEntry {
    pub(crate) seq: i64,
    pub(crate) conversation_row: i64,
    pub(crate) content: String,
    place: i64,
    stems: BTreeSet<String>,
    entries: String,
}

impl StemEntry {
    /// The entry of a turn.
    pub(crate) fn of(turn: IndexedTurn) -> Self {
        let row = turn.conversation_row;
        let said = replace_mentions(&turn.content, |_| " ".to_owned());
        let stems = stems_of(&said);
        let mut entries = vec![speaker_entry(row, turn.participant)];
        let mentioned: BTreeSet<String> = mentioned_ids(&turn.content).into_iter().collect();
        entries.extend(mentioned.iter().map(|id| mention_entry(row, id)));
        entries.extend(stems.iter().map(|stem| stem_entry(row, stem)));
        Self {
            seq: turn.seq,
            conversation_row: row,
            content: turn.content,
            place: place_of(turn.sent_at_ms, turn.seq),
            stems,
            entries: entries.join(" "),
        }
    }
}

/// What an entry is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexedTurn {
    pub(crate) seq: i64,
    pub(crate) conversation_row: i64,
    pub(crate) sent_at_ms: i64,
    pub(crate) participant: ParticipantId,
    pub(crate) content: String,
}

/// Up to which capture order turns are in the index.
pub(crate) fn through_seq(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection
        .prepare_cached("SELECT through_seq FROM stem_index WHERE id = 1")?
        .query_row([], |row| row.get("through_seq"))?)
}

/// A turn that belongs into the index, as it is; `None` = it doesn't.
pub(crate) fn indexed_turn(
    connection: &Connection,
    seq: i64,
) -> Result<Option<IndexedTurn>, StoreError> {
    Ok(connection
        .prepare_cached(concat!(
            "SELECT t.seq, t.conversation_id, t.sent_at_ms, t.participant_id, t.content
             FROM turns t WHERE t.seq = ?1 AND t.content <> '' AND ",
            in_index!("t")
        ))?
        .query_row([seq], turn_from_row)
        .optional()?)
}

fn turn_from_row(row: &crate::engine::sql::Row<'_>) -> crate::engine::sql::Result<IndexedTurn> {
    Ok(IndexedTurn {
        seq: row.get("seq")?,
        conversation_row: row.get("conversation_id")?,
        sent_at_ms: row.get("sent_at_ms")?,
        participant: row.get("participant_id")?,
        content: row.get("content")?,
    })
}

/// Puts a turn into the index.
pub(crate) fn add_txn(connection: &Connection, entry: &StemEntry) -> Result<(), StoreError> {
    connection
        .prepare_cached("INSERT INTO turn_stems (rowid, stems) VALUES (?1, ?2)")?
        .execute(params![entry.place, entry.entries])?;
    let mut learn = connection.prepare_cached(
        "INSERT OR IGNORE INTO vocabulary (conversation_id, stem) VALUES (?1, ?2)",
    )?;
    for stem in entry.stems.iter().filter(|stem| is_vocabulary(stem)) {
        learn.execute(params![entry.conversation_row, stem])?;
    }
    Ok(())
}

/// Takes a turn out of the index, and its words out of the vocabulary where it was the last to have them.
/// `content` is what was put in; the turn's row is still as it was.
pub(crate) fn remove_txn(
    connection: &Connection,
    seq: i64,
    conversation_row: i64,
    content: &str,
) -> Result<(), StoreError> {
    let turn = connection
        .prepare_cached("SELECT sent_at_ms, participant_id FROM turns WHERE seq = ?1")?
        .query_row([seq], |row| {
            Ok(IndexedTurn {
                seq,
                conversation_row,
                sent_at_ms: row.get("sent_at_ms")?,
                participant: row.get("participant_id")?,
                content: content.to_owned(),
            })
        })?;
    let entry = StemEntry::of(turn);
    connection
        .prepare_cached(
            "INSERT INTO turn_stems (turn_stems, rowid, stems) VALUES ('delete', ?1, ?2)",
        )?
        .execute(params![entry.place, entry.entries])?;
    let mut find = connection
        .prepare_cached("SELECT rowid FROM turn_stems WHERE turn_stems MATCH ?1 LIMIT 1")?;
    let mut forget = connection
        .prepare_cached("DELETE FROM vocabulary WHERE conversation_id = ?1 AND stem = ?2")?;
    for stem in entry.stems.iter().filter(|stem| is_vocabulary(stem)) {
        let asked = quoted(&stem_entry(conversation_row, stem));
        let other: Option<i64> = find.query_row([asked], |row| row.get("rowid")).optional()?;
        if other.is_none() {
            forget.execute(params![conversation_row, stem])?;
        }
    }
    Ok(())
}

/// An entry as the index is asked for it.
pub(crate) fn quoted(entry: &str) -> String {
    format!("\"{entry}\"")
}

/// Whether a stem can be what a misspelt word meant.
pub(crate) fn is_vocabulary(stem: &str) -> bool {
    stem.chars().nth(MISSPELT_MIN_CHARS - 1).is_some()
        && !stem.chars().any(|c| c.is_numeric() || is_unspaced(c))
}

/// The next turns that belong into the index.
#[derive(Debug)]
pub(crate) struct NextTurns {
    /// The watermark as it is.
    pub(crate) from: i64,
    /// The watermark once they are in.
    pub(crate) through: i64,
    /// Whether more wait behind them.
    pub(crate) has_more: bool,
    pub(crate) turns: Vec<IndexedTurn>,
}

/// The next turns that belong into the index, by capture order.
pub(crate) fn next_turns(connection: &Connection, limit: i64) -> Result<NextTurns, StoreError> {
    let from = through_seq(connection)?;
    let last: Option<i64> = connection
        .prepare_cached("SELECT seq FROM turns WHERE seq > ?1 ORDER BY seq LIMIT 1 OFFSET ?2")?
        .query_row((from, limit - 1), |row| row.get("seq"))
        .optional()?;
    let has_more = last.is_some();
    let last = match last {
        Some(last) => last,
        None => connection
            .prepare_cached("SELECT coalesce(max(seq), 0) AS seq FROM turns")?
            .query_row([], |row| row.get("seq"))?,
    };
    let mut statement = connection.prepare_cached(concat!(
        "SELECT t.seq, t.conversation_id, t.sent_at_ms, t.participant_id, t.content
         FROM turns t WHERE t.seq > ?1 AND t.seq <= ?2 AND t.content <> '' AND ",
        in_index!("t"),
        " ORDER BY t.seq"
    ))?;
    let turns = statement.query_map((from, last), turn_from_row)?;
    Ok(NextTurns {
        from,
        through: last.max(from),
        has_more,
        turns: turns.collect::<crate::engine::sql::Result<_>>()?,
    })
}

/// Puts turns into the index up to a capture order. `entries` were made before, by place; a turn that has changed
/// since is read anew.
pub(crate) fn index_through_txn(
    connection: &Connection,
    mut entries: Vec<StemEntry>,
    through: i64,
) -> Result<(), StoreError> {
    // The index writes out what it holds in memory whenever a place is not behind the last one.
    entries.sort_by_key(|entry| entry.place);
    let mut is_waiting =
        connection.prepare_cached("SELECT 1 AS it FROM temp.waiting_for_index WHERE seq = ?1")?;
    for entry in entries {
        let waits: Option<i64> = is_waiting
            .query_row([entry.seq], |row| row.get("it"))
            .optional()?;
        if waits.is_some() {
            continue;
        }
        let Some(turn) = indexed_turn(connection, entry.seq)? else {
            continue;
        };
        let is_same =
            turn.content == entry.content && turn.conversation_row == entry.conversation_row;
        add_txn(
            connection,
            &if is_same { entry } else { StemEntry::of(turn) },
        )?;
    }
    connection
        .prepare_cached("UPDATE stem_index SET through_seq = ?1 WHERE id = 1")?
        .execute([through])?;
    Ok(())
}

/// Asks for the job after turns were captured (`seqs`: the first and the last), if enough wait for it. It asks only
/// once in every `TAIL_TURNS` turns, so that capture pays next to nothing.
pub(crate) fn ask_for_indexing_txn(
    connection: &Connection,
    seqs: (i64, i64),
    through: i64,
) -> Result<(), StoreError> {
    let (first, last) = seqs;
    if last - through < TAIL_TURNS || (first - 1) / TAIL_TURNS == last / TAIL_TURNS {
        return Ok(());
    }
    let now_ms: i64 = connection
        .prepare_cached("SELECT captured_at_ms FROM turns WHERE seq = ?1")?
        .query_row([last], |row| row.get("captured_at_ms"))?;
    enqueue_txn(connection, &Job::IndexTurns, None, now_ms)
}

/// Runs at every start: empties an index that was made by other rules, and asks for the job if the index is behind.
pub(crate) fn settle_at_open_txn(connection: &Connection, now_ms: i64) -> Result<(), StoreError> {
    let version: u32 =
        connection.query_row("SELECT version FROM stem_index WHERE id = 1", [], |row| {
            row.get("version")
        })?;
    if version != STEMS_VERSION {
        connection.execute_batch(
            "INSERT INTO turn_stems (turn_stems) VALUES ('delete-all');
             DELETE FROM vocabulary;",
        )?;
        connection.execute(
            "UPDATE stem_index SET version = ?1, through_seq = 0 WHERE id = 1",
            [STEMS_VERSION],
        )?;
    }
    let newest: i64 = connection.query_row(
        "SELECT coalesce(max(seq), 0) AS newest FROM turns",
        [],
        |row| row.get("newest"),
    )?;
    if newest - through_seq(connection)? >= TAIL_TURNS {
        enqueue_txn(connection, &Job::IndexTurns, None, now_ms)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_sort_by_time_and_then_by_capture() {
        let minute = 65_536;
        let places = [
            place_of(-5, 9),
            place_of(minute, 1),
            place_of(minute, 2),
            place_of(3 * minute, 1),
            place_of(i64::MAX, 1),
        ];
        assert!(places.is_sorted() && places[0] > 0, "{places:?}");
        assert_eq!(seq_at(place_of(1_700_000_000_000, 77)), 77);
        assert!(place_from(minute) <= place_of(minute, 1));
        assert!(place_through(minute) >= place_of(minute, 1 << 35));
        assert_eq!(time_at_ms(place_of(minute * 7, 1)), minute * 7);
    }

    #[test]
    fn an_entry_is_one_word_to_the_index() {
        assert_eq!(mention_entry(7, "@ada_l"), "7m@ada_l");
        assert_eq!(mention_entry(7, "a\" OR \"b"), "7ma__OR__b");
        assert_eq!(quoted(&stem_entry(7, "deploy")), "\"7wdeploy\"");
    }
}
