//! Removes the traces of an order from everything else, table by table, in the order of their keys.

use crate::acts::forgetting::delete_steps_txn;
use crate::engine::sql::{Connection, params};
use crate::rows::turn_rows::turn_at;

use super::ledger::{LedgerKind, OrderReach};
use super::needles::{Needles, OursAfter};
use super::orders::{ErasureCounts, Order};
use crate::StoreError;
use crate::acts::made_from::{blank_ours_txn, empty_posts_txn};
use crate::rows::memories::delete_memories_txn;
use crate::rows::run_events::forget_texts_txn;
use crate::rows::summaries::{
    SummaryFate, invalidate_summaries_txn, void_summaries_of_quote_txn, void_summaries_txn,
};
use crate::rows::titles::forget_titles_of_turn_txn;
use crate::rows::turns::{Replacement, revise_turn_txn};
use vocative_core::remembering::MemoryId;

/// The most rows that are looked at in one transaction.
const ROWS_MAX: i64 = 1_000;

pub(super) const UNTRANSLATED_SQL: &str = "SELECT id, raw FROM raw_envelopes
     WHERE account_id = ?1 AND turn_seq IS NULL AND id > ?2 ORDER BY id LIMIT ?3";

pub(super) const COMMANDS_SQL: &str = "DELETE FROM non_messages INDEXED BY non_messages_by_sender
     WHERE account_id = ?1 AND sender_id = ?2 AND received_at_ms <= ?3";

/// The tables that are swept, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SweepStage {
    Turns,
    Revisions,
    Raw,
    Steps,
    Events,
    Posts,
    Summaries,
    Memories,
    Commands,
    Titles,
}

impl SweepStage {
    pub(super) const ALL: [Self; 10] = [
        Self::Turns,
        Self::Revisions,
        Self::Raw,
        Self::Steps,
        Self::Events,
        Self::Posts,
        Self::Summaries,
        Self::Memories,
        Self::Commands,
        Self::Titles,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Revisions => "revisions",
            Self::Raw => "raw",
            Self::Steps => "steps",
            Self::Events => "events",
            Self::Posts => "posts",
            Self::Summaries => "summaries",
            Self::Memories => "memories",
            Self::Commands => "commands",
            Self::Titles => "titles",
        }
    }
}

/// The needles of one order, which are kept between batches.
#[derive(Clone, Debug, Default)]
pub(super) struct Sweeper {
    order: Option<i64>,
    needles: Needles,
}

impl Sweeper {
    /// The needles of an order. Its traces do not change while it is swept.
    fn needles(&mut self, connection: &Connection, order: &Order) -> Result<&Needles, StoreError> {
        if self.order != Some(order.row) {
            self.needles = Needles::new(traces(connection, order.row)?);
            self.order = Some(order.row);
        }
        Ok(&self.needles)
    }
}

fn traces(
    connection: &Connection,
    order_row: i64,
) -> Result<Vec<(String, Option<OursAfter>)>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT text, chat_id, after_seq FROM erasure_traces WHERE erasure_id = ?1",
    )?;
    let rows = statement.query_map([order_row], |row| {
        let chat: Option<i64> = row.get("chat_id")?;
        let seq = row.get("after_seq")?;
        Ok((row.get("text")?, chat.map(|chat| OursAfter { chat, seq })))
    })?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}

/// The next stage of a sweep; `None` at the end. A person's own order sweeps only the places where their words
/// are known to be.
pub(super) fn place_behind(order: &Order, place: Option<SweepStage>) -> Option<SweepStage> {
    let places: &[SweepStage] = match (order.entry.reach, order.entry.kind) {
        (OrderReach::Everywhere, _) => &SweepStage::ALL,
        (OrderReach::Own, LedgerKind::Person) => &[SweepStage::Raw, SweepStage::Commands],
        (OrderReach::Own, _) => &[],
    };
    let next = place.map_or(0, |at| {
        let known = places.iter().position(|place| *place == at);
        known.map_or(places.len(), |at| at + 1)
    });
    places.get(next).copied()
}

/// Sweeps the next rows of a stage; returns the cursor, or `None` at the end.
pub(super) fn sweep_batch_txn(
    connection: &Connection,
    order: &Order,
    place: SweepStage,
    sweeper: &mut Sweeper,
    now_ms: i64,
) -> Result<(ErasureCounts, Option<i64>), StoreError> {
    let needles = sweeper.needles(connection, order)?;
    // Raw events and commands may name a person even if they hold no words.
    let by_id = order.entry.kind == LedgerKind::Person
        && matches!(place, SweepStage::Raw | SweepStage::Commands);
    if needles.is_empty() && !by_id {
        return Ok((ErasureCounts::default(), None));
    }
    let sweep = Sweep {
        connection,
        order,
        needles,
        now_ms,
    };
    match place {
        SweepStage::Raw if order.entry.reach == OrderReach::Own => sweep.untranslated_txn(),
        SweepStage::Turns => sweep.turns_txn(),
        SweepStage::Revisions => sweep.rows_txn(
            "SELECT turn_seq AS key, content AS text FROM revisions WHERE turn_seq > ?1
             ORDER BY turn_seq LIMIT ?2",
            |connection, key| {
                execute_txn(connection, "DELETE FROM revisions WHERE turn_seq = ?1", key)
            },
        ),
        SweepStage::Raw => sweep.rows_txn(
            "SELECT id AS key, raw AS text FROM raw_envelopes WHERE id > ?1 ORDER BY id LIMIT ?2",
            |connection, key| {
                execute_txn(connection, "DELETE FROM raw_envelopes WHERE id = ?1", key)
            },
        ),
        SweepStage::Steps => sweep.rows_txn(
            "SELECT run_id AS key, message AS text FROM steps WHERE run_id > ?1 ORDER BY run_id LIMIT ?2",
            |connection, key| delete_steps_txn(connection, "= ?1", key),
        ),
        SweepStage::Events => sweep.events_txn(),
        SweepStage::Posts => sweep.posts_txn(),
        SweepStage::Summaries => sweep.rows_txn(
            "SELECT id AS key, text FROM summaries WHERE id > ?1 ORDER BY id LIMIT ?2",
            |connection, key| void_summaries_txn(connection, "id = ?1", params![key]),
        ),
        SweepStage::Memories => sweep.rows_txn(
            "SELECT id AS key, text FROM memories WHERE id > ?1 ORDER BY id LIMIT ?2",
            |connection, key| delete_memories_txn(connection, &[MemoryId(key)]),
        ),
        SweepStage::Commands => sweep.commands_txn(),
        SweepStage::Titles => sweep.titles_txn(),
    }
}

/// One batch of a sweep.
struct Sweep<'a> {
    connection: &'a Connection<'a>,
    order: &'a Order,
    needles: &'a Needles,
    now_ms: i64,
}

/// A turn as it is looked at.
struct SweptTurn {
    seq: i64,
    content: String,
    quote: Option<String>,
    attachments: Option<String>,
    is_ours: bool,
    chat: i64,
}

type SweptBatch = Result<(ErasureCounts, Option<i64>), StoreError>;

impl Sweep<'_> {
    fn turns_txn(&self) -> SweptBatch {
        let mut statement = self.connection.prepare_cached(
            "SELECT t.seq, t.content, t.quote, t.attachments, p.kind <> 'user' AS is_ours, c.chat_id
             FROM turns t CROSS JOIN participants p ON p.id = t.participant_id
             CROSS JOIN conversations c ON c.id = t.conversation_id
             WHERE t.seq > ?1 ORDER BY t.seq LIMIT ?2",
        )?;
        let rows = statement.query_map((self.order.cursor, ROWS_MAX), |row| {
            Ok(SweptTurn {
                seq: row.get("seq")?,
                content: row.get("content")?,
                quote: row.get("quote")?,
                attachments: row.get("attachments")?,
                is_ours: row.get("is_ours")?,
                chat: row.get("chat_id")?,
            })
        })?;
        let (mut counts, mut last) = (ErasureCounts::default(), None);
        for seen in rows {
            let seen = seen?;
            last = Some(seen.seq);
            counts.add(self.turn_txn(&seen)?);
        }
        Ok((counts, last))
    }

    fn turn_txn(&self, seen: &SweptTurn) -> Result<ErasureCounts, StoreError> {
        let mut counts = ErasureCounts::default();
        if seen.is_ours {
            let is_hit = self.needles.is_in(&seen.content, |needle| {
                needle
                    .only
                    .is_none_or(|only| only.chat == seen.chat && only.seq < seen.seq)
            });
            if is_hit && blank_ours_txn(self.connection, seen.seq, self.now_ms)? {
                counts.answers = 1;
            }
            return Ok(counts);
        }
        let content = self.needles.cut(&seen.content);
        let has = |text: &Option<String>| {
            text.as_ref()
                .is_some_and(|text| self.needles.is_in(text, |needle| needle.only.is_none()))
        };
        let (quotes, attaches) = (has(&seen.quote), has(&seen.attachments));
        if content.is_none() && !quotes && !attaches {
            return Ok(counts);
        }
        counts.repeats = 1;
        let kept = seen.attachments.clone().filter(|_| !attaches);
        self.cut_turn_txn(seen.seq, content, kept)?;
        if quotes {
            self.connection
                .prepare_cached(
                    "UPDATE turns SET quote = NULL, revision = revision + 1 WHERE seq = ?1",
                )?
                .execute([seen.seq])?;
            void_summaries_of_quote_txn(self.connection, seen.seq)?;
        }
        Ok(counts)
    }

    /// Stores the remaining text of another person's turn.
    fn cut_turn_txn(
        &self,
        seq: i64,
        content: Option<String>,
        attachments: Option<String>,
    ) -> Result<(), StoreError> {
        let mut turn = turn_at(self.connection, seq)?;
        let replacement = Replacement {
            content: content.unwrap_or_else(|| turn.content.clone()),
            attachments,
            tokens: None,
            keep_revision: false,
            now_ms: self.now_ms,
        };
        revise_turn_txn(self.connection, &mut turn, replacement)?;
        for sql in [
            "DELETE FROM raw_envelopes WHERE turn_seq = ?1",
            // Otherwise an edit would bring the erased words back from the transcript.
            "UPDATE files SET transcript = NULL WHERE turn_seq = ?1",
        ] {
            self.connection.prepare_cached(sql)?.execute([seq])?;
        }
        let mut items = self.connection.prepare_cached(
            "SELECT platform_id, chat_id, text FROM messages
             WHERE turn_seq = ?1 AND text IS NOT NULL",
        )?;
        let mut rows = items.query([seq])?;
        while let Some(row) = rows.next()? {
            let text: String = row.get("text")?;
            if let Some(cut) = self.needles.cut(&text) {
                let (id, chat): (String, i64) = (row.get("platform_id")?, row.get("chat_id")?);
                self.connection
                    .prepare_cached(
                        "UPDATE messages SET text = ?4
                         WHERE platform_id = ?1 AND chat_id = ?2 AND turn_seq = ?3",
                    )?
                    .execute(params![id, chat, seq, cut])?;
            }
        }
        forget_titles_of_turn_txn(self.connection, seq)?;
        invalidate_summaries_txn(self.connection, &turn, SummaryFate::Void)
    }

    /// Goes through the texts of a table and does `change` to each row that holds a trace.
    fn rows_txn(
        &self,
        select: &'static str,
        change: impl Fn(&Connection, i64) -> Result<usize, StoreError>,
    ) -> SweptBatch {
        let (hits, last) = self.hits(select)?;
        let mut counts = ErasureCounts::default();
        for key in hits {
            counts.details += change(self.connection, key)? as u64;
        }
        Ok((counts, last))
    }

    /// Keys of the next rows that hold a trace; and the last key looked at. Rows that share a key
    /// are all looked at, for the last key is never left half done.
    fn hits(&self, select: &'static str) -> Result<(Vec<i64>, Option<i64>), StoreError> {
        let mut statement = self.connection.prepare_cached(select)?;
        let mut rows = statement.query((self.order.cursor, -1))?;
        let (mut hits, mut last, mut seen) = (Vec::new(), None, 0);
        while let Some(row) = rows.next()? {
            let key: i64 = row.get("key")?;
            if seen >= ROWS_MAX && last != Some(key) {
                break;
            }
            seen += 1;
            last = Some(key);
            if hits.last() != Some(&key) && self.is_hit(&row.get::<_, String>("text")?) {
                hits.push(key);
            }
        }
        Ok((hits, last))
    }

    fn is_hit(&self, text: &str) -> bool {
        self.needles.is_in(text, |needle| needle.only.is_none())
            || (self.order.entry.kind == LedgerKind::Person
                && self.order.phase == SweepStage::Raw.name()
                && names_id(text, &self.order.entry.platform_id))
    }

    /// Forgets all live text, since a trace may span two pieces of it: during an erasure, answers that are being
    /// written are shown only once they are complete.
    fn events_txn(&self) -> SweptBatch {
        let counts = ErasureCounts {
            details: forget_texts_txn(self.connection)?,
            ..ErasureCounts::default()
        };
        Ok((counts, None))
    }

    fn posts_txn(&self) -> SweptBatch {
        let (hits, last) = self.hits(
            "SELECT id AS key, payload AS text FROM outbox WHERE id > ?1 ORDER BY id LIMIT ?2",
        )?;
        for key in &hits {
            empty_posts_txn(self.connection, "id = ?1", *key, self.now_ms)?;
        }
        let counts = ErasureCounts {
            details: hits.len() as u64,
            ..ErasureCounts::default()
        };
        Ok((counts, last))
    }

    /// Events of the account that did not translate and name the person.
    fn untranslated_txn(&self) -> SweptBatch {
        let mut statement = self.connection.prepare_cached(UNTRANSLATED_SQL)?;
        let rows = statement.query_map(
            params![self.order.account, self.order.cursor, ROWS_MAX],
            |row| Ok((row.get::<_, i64>("id")?, row.get::<_, String>("raw")?)),
        )?;
        let (mut counts, mut last) = (ErasureCounts::default(), None);
        for row in rows {
            let (id, raw) = row?;
            last = Some(id);
            if names_id(&raw, &self.order.entry.platform_id) {
                counts.details += self
                    .connection
                    .prepare_cached("DELETE FROM raw_envelopes WHERE id = ?1")?
                    .execute([id])? as u64;
            }
        }
        Ok((counts, last))
    }

    /// Commands and button presses are few: one batch.
    fn commands_txn(&self) -> SweptBatch {
        let mut details = 0;
        if self.order.entry.kind == LedgerKind::Person {
            details += self
                .connection
                .prepare_cached(COMMANDS_SQL)?
                .execute(params![
                    self.order.account,
                    self.order.entry.platform_id,
                    self.order.entry.erased_at_ms
                ])?;
        }
        if self.order.entry.reach == OrderReach::Own {
            let counts = ErasureCounts {
                details: details as u64,
                ..ErasureCounts::default()
            };
            return Ok((counts, None));
        }
        let mut statement = self
            .connection
            .prepare_cached("SELECT account_id, kind, platform_id, text FROM non_messages")?;
        let mut rows = statement.query([])?;
        let mut hits: Vec<(i64, String, String)> = Vec::new();
        while let Some(row) = rows.next()? {
            if self.is_hit(&row.get::<_, String>("text")?) {
                hits.push((
                    row.get("account_id")?,
                    row.get("kind")?,
                    row.get("platform_id")?,
                ));
            }
        }
        for hit in hits {
            details += self
                .connection
                .prepare_cached(
                    "DELETE FROM non_messages
                     WHERE account_id = ?1 AND kind = ?2 AND platform_id = ?3",
                )?
                .execute(hit)?;
        }
        let counts = ErasureCounts {
            details: details as u64,
            ..ErasureCounts::default()
        };
        Ok((counts, None))
    }

    /// Titles that were taken from what was said.
    fn titles_txn(&self) -> SweptBatch {
        self.rows_txn(
            "SELECT id AS key, coalesce(title, '') || char(10) || coalesce(own_title, '') AS text
             FROM conversations WHERE id > ?1 ORDER BY id LIMIT ?2",
            |connection, key| {
                let sql = "UPDATE conversations
                           SET title = NULL, own_title = NULL, own_title_participant_id = NULL
                           WHERE id = ?1";
                execute_txn(connection, sql, key)
            },
        )
    }
}

fn execute_txn(connection: &Connection, sql: &str, key: i64) -> Result<usize, StoreError> {
    Ok(connection.prepare_cached(sql)?.execute([key])?)
}

/// Whether raw JSON names a platform id: as a whole value or within a mention.
fn names_id(text: &str, id: &str) -> bool {
    let is_part = |byte: Option<&u8>| {
        byte.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    let bytes = text.as_bytes();
    !id.is_empty()
        && text.match_indices(id).any(|(at, _)| {
            let before = at.checked_sub(1).and_then(|before| bytes.get(before));
            !is_part(before) && !is_part(bytes.get(at + id.len()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_json_names_an_id_only_as_a_whole() {
        let cases = [
            (r#"{"user":"U12"}"#, true),
            (r#"{"text":"<@U12> hi"}"#, true),
            (r#"{"user":"U123"}"#, false),
            (r#"{"ts":"1.U12"}"#, false),
        ];
        for (text, expected) in cases {
            assert_eq!(names_id(text, "U12"), expected, "{text}");
        }
        assert!(names_id(r#"{"id":42}"#, "42") && !names_id(r#"{"id":-42}"#, "42"));
    }
}
