//! Vectors of turns: what an embedding model made of their texts, so that what means the same is found.
//!
//! Turns are embedded in the background, the new ones as they come and the older ones backwards. A vector goes with
//! its turn and with the text that it was made of. Vectors of two models are never compared.

use crate::capability::{MayUseModels, MayWork};
pub use crate::contract::EmbeddingStatus;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::indexed::in_index;

use crate::registry::{Fate, MergeRule, OF_TURN, STATE, StoreTable, account, nobody, text};
use crate::rows::columns::{day_start_ms, limit_of, stored_count};
use crate::rows::names::NameLookup;
use crate::{Reader, Store, StoreError};
use vocative_core::ids::{AccountId, Seq};
use vocative_core::job::JobKind;
use vocative_core::vector::Vector;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    nobody(
        "embedding_models",
        "models are the operator's",
        text(&[], &[], &["name"]),
        Fate {
            merge: MergeRule::Joined,
            ..STATE
        },
    ),
    account("turn_vectors", text(&[], &[], &[]), OF_TURN),
    account("turns_to_embed", text(&[], &[], &[]), OF_TURN),
];

/// How many rows are looked at for one batch: most of them may be no messages.
const WINDOW: i64 = 4_000;
/// How much of a text is embedded, in characters: more than models of this kind read.
const TEXT_MAX_CHARS: usize = 2_000;
/// Vectors of an earlier model that go at once.
const REMOVED_MAX: i64 = 2_000;

/// A model that makes vectors, opaque outside the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EmbeddingModelId(i64);

/// Turns whose texts are to be embedded together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingBatch {
    /// The turns with their texts; mentions are names. May be empty: then only the progress counts.
    pub turns: Vec<(Seq, String)>,
    progress: VectorProgress,
}

/// How far a model's vectors reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VectorProgress {
    newest_seq: i64,
    oldest_seq: i64,
}

/// A query for those of some turns `t` that are messages and in the full-text index.
macro_rules! embedded_turns {
    ($turns:literal, $order:literal) => {
        concat!(
            "SELECT t.seq, t.content,
                    (SELECT h.account_id FROM conversations c JOIN chats h ON h.id = c.chat_id
                     WHERE c.id = t.conversation_id) AS account_id
             FROM ",
            $turns,
            " AND t.content <> '' AND t.kind = 'message' AND ",
            in_index!("t"),
            " ORDER BY ",
            $order,
            " LIMIT ?3"
        )
    };
}

impl Reader {
    /// Whether there is something to embed, or vectors of an earlier model to remove, and no job that does it;
    /// without a write.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn is_embedding_due(&self, model: EmbeddingModelId) -> Result<bool, StoreError> {
        self.read(move |connection| {
            let is_due = connection
                .prepare_cached(
                    "SELECT (m.oldest_seq > 0 OR EXISTS (SELECT 1 FROM turns_to_embed)
                             OR m.newest_seq < (SELECT coalesce(max(seq), 0) FROM turns)
                             OR EXISTS (SELECT 1 FROM embedding_models o WHERE NOT o.is_current))
                            AND NOT EXISTS (SELECT 1 FROM jobs WHERE kind = ?2) AS is_due
                     FROM embedding_models m WHERE m.id = ?1",
                )?
                .query_row((model.0, JobKind::EmbedTurns.name()), |row| {
                    row.get("is_due")
                })
                .optional()?;
            Ok(is_due.unwrap_or(false))
        })
        .await
    }

    /// The next turns to embed: edited ones, then new ones, then older ones. `None` = none is left.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn embedding_batch(
        &self,
        model: EmbeddingModelId,
        turns_max: usize,
    ) -> Result<Option<EmbeddingBatch>, StoreError> {
        self.read(move |connection| batch(connection, model, turns_max))
            .await
    }

    /// Tokens that were spent on the UTC day of that time.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn embedding_tokens(
        &self,
        model: EmbeddingModelId,
        now_ms: i64,
    ) -> Result<u64, StoreError> {
        self.read(move |connection| {
            let tokens: Option<i64> = connection
                .prepare_cached(
                    "SELECT tokens FROM embedding_models WHERE id = ?1 AND day_start_ms = ?2",
                )?
                .query_row((model.0, day_start_ms(now_ms)), |row| row.get("tokens"))
                .optional()?;
            Ok(tokens.and_then(|it| u64::try_from(it).ok()).unwrap_or(0))
        })
        .await
    }

    /// How many numbers a vector of the model has; `None` before its first answer.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn embedding_dimensions(
        &self,
        model: EmbeddingModelId,
    ) -> Result<Option<usize>, StoreError> {
        self.read(move |connection| {
            let dimensions: Option<i64> = connection
                .prepare_cached("SELECT dimensions FROM embedding_models WHERE id = ?1")?
                .query_row([model.0], |row| row.get("dimensions"))?;
            Ok(dimensions.and_then(|it| usize::try_from(it).ok()))
        })
        .await
    }
}

impl<C: MayWork> Store<C> {
    /// Stores what a model made of a batch, a vector for each turn in its order, and what it cost. A turn that
    /// was edited or removed since it was read gets none.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn store_vectors(
        &self,
        model: EmbeddingModelId,
        batch: EmbeddingBatch,
        vectors: Vec<Vector>,
        tokens: u64,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write_riding(move |connection| {
            for ((seq, text), vector) in batch.turns.iter().zip(&vectors) {
                store_vector_txn(connection, model, *seq, text, vector)?;
            }
            if let Some(first) = vectors.first() {
                connection
                    .prepare_cached("UPDATE embedding_models SET dimensions = ?2 WHERE id = ?1")?
                    .execute(params![model.0, limit_of(first.numbers.len())])?;
            }
            connection
                .prepare_cached(
                    "UPDATE embedding_models SET newest_seq = ?2, oldest_seq = ?3 WHERE id = ?1",
                )?
                .execute(params![
                    model.0,
                    batch.progress.newest_seq,
                    batch.progress.oldest_seq
                ])?;
            spend_txn(connection, model, tokens, now_ms)
        })
        .await
    }

    /// Removes vectors of models that don't count any more, a bounded number. Returns whether there are more.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn remove_old_vectors(&self) -> Result<bool, StoreError> {
        self.write(move |connection| {
            let removed = connection
                .prepare_cached(
                    "DELETE FROM turn_vectors WHERE seq IN (
                         SELECT v.seq FROM embedding_models m JOIN turn_vectors v ON v.model_id = m.id
                         WHERE NOT m.is_current LIMIT ?1)",
                )?
                .execute([REMOVED_MAX])?;
            if limit_of(removed) == REMOVED_MAX {
                return Ok(true);
            }
            connection
                .prepare_cached("DELETE FROM embedding_models WHERE NOT is_current")?
                .execute([])?;
            Ok(false)
        })
        .await
    }
}

impl<C: MayUseModels> Store<C> {
    /// Counts tokens that were spent on a query.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn spend_on_embedding(
        &self,
        model: EmbeddingModelId,
        tokens: u64,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write_riding(move |connection| spend_txn(connection, model, tokens, now_ms))
            .await
    }
}

impl Store {
    /// The model of that name, which becomes the current one. Turns that exist when a model is first named are
    /// embedded backwards from the newest.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn choose_embedding_model(
        &self,
        name: String,
    ) -> Result<EmbeddingModelId, StoreError> {
        self.write(move |connection| {
            connection
                .prepare_cached("UPDATE embedding_models SET is_current = (name = ?1)")?
                .execute([&name])?;
            let id = connection
                .prepare_cached(
                    "INSERT INTO embedding_models (name, is_current, newest_seq, oldest_seq)
                     SELECT ?1, 1, coalesce(max(seq), 0), coalesce(max(seq), 0) + 1 FROM turns
                     WHERE true
                     ON CONFLICT (name) DO UPDATE SET is_current = 1
                     RETURNING id",
                )?
                .query_row([&name], |row| row.get("id"))?;
            Ok(EmbeddingModelId(id))
        })
        .await
    }
}

/// How the embedding of turns stands; `None` if no model was ever named.
pub(crate) fn embedding_status(
    connection: &Connection,
    now_ms: i64,
) -> Result<Option<EmbeddingStatus>, StoreError> {
    let status = connection
        .prepare_cached(
            "SELECT m.name, iif(m.day_start_ms = ?1, m.tokens, 0) AS tokens,
                            m.turns,
                            max(m.oldest_seq - 1, 0) + (SELECT count(*) FROM turns_to_embed)
                                + max((SELECT coalesce(max(seq), 0) FROM turns) - m.newest_seq, 0)
                                AS remaining
                     FROM embedding_models m WHERE m.is_current",
        )?
        .query_row([day_start_ms(now_ms)], |row| {
            let count = |name| row.get(name).map(|it: i64| u64::try_from(it).unwrap_or(0));
            Ok(EmbeddingStatus {
                model: row.get("name")?,
                embedded: count("turns")?,
                remaining_max: count("remaining")?,
                tokens_today: count("tokens")?,
            })
        })
        .optional()?;
    Ok(status)
}

fn batch(
    connection: &Connection,
    model: EmbeddingModelId,
    turns_max: usize,
) -> Result<Option<EmbeddingBatch>, StoreError> {
    let progress = connection
        .prepare_cached("SELECT newest_seq, oldest_seq FROM embedding_models WHERE id = ?1")?
        .query_row([model.0], |row| {
            Ok(VectorProgress {
                newest_seq: row.get("newest_seq")?,
                oldest_seq: row.get("oldest_seq")?,
            })
        })
        .optional()?;
    let Some(mut progress) = progress else {
        return Ok(None);
    };
    let max = limit_of(turns_max);
    let turns = read_turns(connection, EDITED_SQL, (0, i64::MAX), max)?;
    if !turns.is_empty() {
        return Ok(Some(EmbeddingBatch { turns, progress }));
    }
    let last: i64 = connection
        .prepare_cached("SELECT coalesce(max(seq), 0) AS seq FROM turns")?
        .query_row([], |row| row.get("seq"))?;
    if progress.newest_seq < last {
        let end = last.min(progress.newest_seq.saturating_add(WINDOW));
        let turns = read_turns(connection, NEW_SQL, (progress.newest_seq, end), max)?;
        progress.newest_seq = match turns.last() {
            Some((seq, _)) if limit_of(turns.len()) == max => seq.0,
            _ => end,
        };
        return Ok(Some(EmbeddingBatch { turns, progress }));
    }
    if progress.oldest_seq > 0 {
        let start = progress.oldest_seq.saturating_sub(1 + WINDOW).max(0);
        let turns = read_turns(connection, OLD_SQL, (start, progress.oldest_seq - 1), max)?;
        progress.oldest_seq = match turns.last() {
            Some((seq, _)) if limit_of(turns.len()) == max => seq.0,
            _ if start == 0 => 0,
            _ => start + 1,
        };
        return Ok(Some(EmbeddingBatch { turns, progress }));
    }
    Ok(None)
}

const EDITED_SQL: &str = embedded_turns!(
    "turns_to_embed n CROSS JOIN turns t ON t.seq = n.seq WHERE n.seq > ?1 AND n.seq <= ?2",
    "n.seq"
);
const NEW_SQL: &str = embedded_turns!("turns t WHERE t.seq > ?1 AND t.seq <= ?2", "t.seq");
const OLD_SQL: &str = embedded_turns!("turns t WHERE t.seq > ?1 AND t.seq <= ?2", "t.seq DESC");

/// The messages of a range of turns, with the text that is embedded.
fn read_turns(
    connection: &Connection,
    sql: &str,
    (after, through): (i64, i64),
    max: i64,
) -> Result<Vec<(Seq, String)>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((after, through, max))?;
    let mut turns = Vec::new();
    while let Some(row) = rows.next()? {
        let content: String = row.get("content")?;
        let account: AccountId = row.get("account_id")?;
        turns.push((
            row.get("seq")?,
            embedded_text(connection, account, &content)?,
        ));
    }
    Ok(turns)
}

fn embedded_text(
    connection: &Connection,
    account: AccountId,
    content: &str,
) -> Result<String, StoreError> {
    let cut: String = content.chars().take(TEXT_MAX_CHARS).collect();
    NameLookup::new(connection, account).named(&cut)
}

fn store_vector_txn(
    connection: &Connection,
    model: EmbeddingModelId,
    seq: Seq,
    text: &str,
    vector: &Vector,
) -> Result<(), StoreError> {
    forget_vector_txn(connection, seq.0)?;
    let present = read_turns(connection, NEW_SQL, (seq.0 - 1, seq.0), 1)?;
    let Some((_, present)) = present.first() else {
        return Ok(());
    };
    if present != text {
        connection
            .prepare_cached("INSERT OR IGNORE INTO turns_to_embed (seq) VALUES (?1)")?
            .execute([seq])?;
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO turn_vectors
                    (conversation_id, sent_at_ms, seq, model_id, scale, vector)
             SELECT conversation_id, sent_at_ms, seq, ?2, ?3, ?4 FROM turns WHERE seq = ?1",
        )?
        .execute(params![
            seq,
            model.0,
            f64::from(vector.scale),
            vector.as_bytes()
        ])?;
    connection
        .prepare_cached("UPDATE embedding_models SET turns = turns + 1 WHERE id = ?1")?
        .execute([model.0])?;
    Ok(())
}

fn spend_txn(
    connection: &Connection,
    model: EmbeddingModelId,
    tokens: u64,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE embedding_models
             SET tokens = iif(day_start_ms = ?3, tokens, 0) + ?2, day_start_ms = ?3 WHERE id = ?1",
        )?
        .execute(params![model.0, stored_count(tokens), day_start_ms(now_ms)])?;
    Ok(())
}

/// Takes the vector of a turn away, with the text that it was made of.
pub(crate) fn forget_vector_txn(connection: &Connection, seq: i64) -> Result<(), StoreError> {
    let model: Option<i64> = connection
        .prepare_cached("DELETE FROM turn_vectors WHERE seq = ?1 RETURNING model_id")?
        .query_row([seq], |row| row.get("model_id"))
        .optional()?;
    if let Some(model) = model {
        connection
            .prepare_cached("UPDATE embedding_models SET turns = turns - 1 WHERE id = ?1")?
            .execute([model])?;
    }
    connection
        .prepare_cached("DELETE FROM turns_to_embed WHERE seq = ?1")?
        .execute([seq])?;
    Ok(())
}

/// Has the present text of a turn embedded, where an earlier one was or may have been.
pub(crate) fn embed_again_txn(connection: &Connection, seq: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO turns_to_embed (seq)
             SELECT t.seq FROM turns t, embedding_models m
             WHERE t.seq = ?1 AND t.content <> '' AND t.kind = 'message'
               AND m.is_current AND m.newest_seq >= ?1 AND m.oldest_seq <= ?1",
        )?
        .execute([seq])?;
    Ok(())
}
