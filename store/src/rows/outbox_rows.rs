//! Entries of the outbox as rows: how one is written at its place, and how it is read back.

use crate::engine::sql::{Connection, Row};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use vocative_contract::outbound::{Operation, Part, Target};

use crate::engine::error::undecodable;
use crate::new_id::NewId as _;
use crate::registry::{
    BY_PARENT, Class, ErasureRule, ExpiryRule, ExportRule, Fate, MergeRule, Restore, STATE,
    StoreTable, account, text,
};
use crate::rows::columns::{limit_of, unknown_state};
use crate::{Reader, StoreError};
use vocative_core::ids::{AccountId, ChatId, OutboxId, Seq};
use vocative_core::outbox::DeadCause;
use vocative_core::outbox::{OutboxEntry, OutboxState};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "outbox",
        text(
            &["payload", "progress"],
            &[],
            &[
                "operation",
                "target",
                "state",
                "dead_cause",
                "reason",
                "message_id",
                "line",
                "sequence",
                "probing",
            ],
        ),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            merge: MergeRule::Moves,
            expiry: ExpiryRule::Emptied(Class::Text),
            export: ExportRule::Nothing("its text is the turn's"),
            restore: Restore::Held,
            ..STATE
        },
    )
    .follows(&["turn_seq"]),
    account(
        "outbox_attempts",
        text(&[], &[], &["outcome"]),
        Fate {
            merge: MergeRule::Nothing(BY_PARENT),
            expiry: ExpiryRule::Deleted(Class::Runs),
            restore: Restore::Held,
            ..STATE
        },
    ),
];

macro_rules! select_posts {
    ($tail:literal) => {
        concat!(
            "SELECT o.uuid, t.uuid AS turn, o.account_id, o.chat_id, o.part, o.target, o.payload, o.state,
                    o.reason, o.not_before_ms, o.lease_until_ms, o.message_id, o.attempts,
                    o.first_attempt_ms, o.looks, o.resends, o.created_at_ms, o.send_started,
                    (SELECT max(coalesce(a.ended_at_ms, a.started_at_ms))
                     FROM outbox_attempts a WHERE a.outbox_id = o.id) AS last_attempt_ms,
                    o.operation, o.progress, o.is_undecided,
                    coalesce((SELECT min(q.sent_at_ms) FROM run_triggers g
                              JOIN turns q ON q.seq = g.turn_seq
                              WHERE g.run_id IN (o.run_id, t.run_id)),
                             min(t.sent_at_ms, o.created_at_ms)) AS later_than_ms
             FROM outbox o LEFT JOIN turns t ON t.seq = o.turn_seq ",
            $tail
        )
    };
}

impl Reader {
    /// Entries that wait for a person: held ones, then dead ones that no person has dropped; newest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn stuck_posts(&self, limit: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        self.read(move |connection| stuck_posts(connection, limit))
            .await
    }
}

/// What the posts of a turn have in common.
#[derive(Clone, Copy)]
pub(crate) struct NewPosts<'a> {
    pub(crate) account: AccountId,
    pub(crate) chat: ChatId,
    /// None for a notice into a chat of which nothing is stored.
    pub(crate) turn: Option<Seq>,
    pub(crate) run_row: Option<i64>,
    pub(crate) target: &'a Target,
    pub(crate) operation: &'a Operation,
    pub(crate) parts: &'a [Part],
    pub(crate) now_ms: i64,
}

/// Commits the posts of a turn, in order, behind all others of the chat.
pub(crate) fn insert_posts_txn(
    connection: &Connection,
    posts: &NewPosts<'_>,
) -> Result<Vec<OutboxId>, StoreError> {
    let mut ids = Vec::with_capacity(posts.parts.len());
    for (number, part) in (0_u32..).zip(posts.parts) {
        ids.push(append_post_txn(connection, posts, number, part)?);
    }
    Ok(ids)
}

/// Commits one post behind all others of the chat.
pub(crate) fn append_post_txn(
    connection: &Connection,
    posts: &NewPosts<'_>,
    part_number: u32,
    part: &Part,
) -> Result<OutboxId, StoreError> {
    let next: i64 = connection
        .prepare_cached("SELECT coalesce(max(id), 0) + 1 AS next FROM outbox")?
        .query_row([], |row| row.get("next"))?;
    #[allow(clippy::cast_precision_loss)] // Row ids stay far below 2^52.
    let place = PostPosition {
        part_number,
        sort_key: next as f64,
    };
    insert_post_txn(connection, posts, place, part)
}

/// Where a post stands among those of its turn and of its chat.
#[derive(Clone, Copy)]
pub(crate) struct PostPosition {
    pub(crate) part_number: u32,
    pub(crate) sort_key: f64,
}

/// Commits one post at its place.
pub(crate) fn insert_post_txn(
    connection: &Connection,
    posts: &NewPosts<'_>,
    place: PostPosition,
    part: &Part,
) -> Result<OutboxId, StoreError> {
    let id = OutboxId::generate();
    // A part with a file is an upload; what replaces an upload is none, unless it has a file, too.
    let operation = match (&part.file, posts.operation) {
        (Some(_), Operation::Post) => &Operation::Upload,
        (None, Operation::Upload) => &Operation::Post,
        (_, operation) => operation,
    };
    connection
        .prepare_cached(
            "INSERT INTO outbox (uuid, account_id, chat_id, turn_seq, run_id, part, sort_key,
                                 operation, target, payload, state, not_before_ms, created_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'pending', ?11, ?11)",
        )?
        .execute((
            id,
            posts.account,
            posts.chat,
            posts.turn,
            posts.run_row,
            place.part_number,
            place.sort_key,
            operation.name(),
            json(&StoredTarget::of(posts.target, operation)),
            json(part),
            posts.now_ms,
        ))?;
    Ok(id)
}

/// A target as it is stored, with what the operation is done to: a message, a person or an interaction.
#[derive(Serialize, Deserialize)]
struct StoredTarget {
    #[serde(flatten)]
    target: Target,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    person: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interaction: Option<String>,
}

impl StoredTarget {
    fn of(target: &Target, operation: &Operation) -> Self {
        let (message, person) = match operation {
            Operation::Post | Operation::Upload => (None, None),
            Operation::Edit { message_id }
            | Operation::Delete { message_id }
            | Operation::React { message_id }
            | Operation::Unreact { message_id } => (Some(message_id.clone()), None),
            Operation::Ephemeral { person } | Operation::Answer { person, .. } => {
                (None, Some(person.clone()))
            }
        };
        let interaction = match operation {
            Operation::Answer { interaction, .. } => Some(interaction.clone()),
            _ => None,
        };
        Self {
            target: target.clone(),
            message,
            person,
            interaction,
        }
    }

    /// The operation of a stored name; `None` if this build does not know the name.
    fn operation(&self, name: &str) -> Option<Operation> {
        let message_id = self.message.clone().unwrap_or_default();
        Some(match name {
            "post" => Operation::Post,
            "edit" => Operation::Edit { message_id },
            "delete" => Operation::Delete { message_id },
            "react" => Operation::React { message_id },
            "unreact" => Operation::Unreact { message_id },
            "ephemeral" => Operation::Ephemeral {
                person: self.person.clone().unwrap_or_default(),
            },
            "answer" => Operation::Answer {
                interaction: self.interaction.clone().unwrap_or_default(),
                person: self.person.clone().unwrap_or_default(),
            },
            "upload" => Operation::Upload,
            _ => return None,
        })
    }
}

pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("targets and parts are always JSON")
}

fn stuck_posts(connection: &Connection, limit: usize) -> Result<Vec<OutboxEntry>, StoreError> {
    let mut statement = connection.prepare_cached(select_posts!(
        "WHERE o.state IN ('held', 'dead') AND o.dead_cause IS NOT ?1
         ORDER BY o.state DESC, o.id DESC LIMIT ?2"
    ))?;
    let posts = statement.query_map((DeadCause::Dropped, limit_of(limit)), entry_from_row)?;
    // A post that can't be decoded must not hide the others.
    let is_shown = |post: &crate::engine::sql::Result<_>| match post {
        Ok(_) => true,
        Err(error) => undecodable(error).is_none(),
    };
    Ok(posts
        .filter(is_shown)
        .collect::<crate::engine::sql::Result<_>>()?)
}

/// The entry of a row, and whether sending it may have begun.
pub(crate) fn entry_by_row(
    connection: &Connection,
    row: i64,
) -> Result<(OutboxEntry, bool), StoreError> {
    Ok(connection
        .prepare_cached(select_posts!("WHERE o.id = ?1"))?
        .query_row([row], |row| {
            Ok((entry_from_row(row)?, row.get("send_started")?))
        })?)
}

/// The posts of a turn, in order.
pub(crate) fn posts_of_turn(
    connection: &Connection,
    turn: Seq,
) -> Result<Vec<OutboxEntry>, StoreError> {
    let mut statement = connection.prepare_cached(select_posts!(
        "WHERE o.turn_seq = ?1 AND o.state <> 'replaced'
           AND o.id NOT IN (SELECT e.edit_of FROM outbox e
                            WHERE e.turn_seq = ?1 AND e.edit_of IS NOT NULL)
         ORDER BY o.sort_key"
    ))?;
    let posts = statement.query_map([turn], entry_from_row)?;
    Ok(posts.collect::<crate::engine::sql::Result<_>>()?)
}

fn entry_from_row(row: &Row<'_>) -> crate::engine::sql::Result<OutboxEntry> {
    let stored: StoredTarget = from_json(row, "target")?;
    Ok(OutboxEntry {
        id: row.get("uuid")?,
        turn: row.get("turn")?,
        account: row.get("account_id")?,
        chat: row.get("chat_id")?,
        part_number: row.get("part")?,
        target: stored.target,
        operation: operation_from_row(row)?,
        part: part_from_row(row)?,
        state: entry_state(row)?,
        attempts: row.get("attempts")?,
        first_attempt_ms: row.get("first_attempt_ms")?,
        later_than_ms: row.get("later_than_ms")?,
        last_attempt_ms: row.get("last_attempt_ms")?,
        looks: row.get("looks")?,
        resends: row.get("resends")?,
        is_undecided: row.get("is_undecided")?,
        created_at_ms: row.get("created_at_ms")?,
    })
}

/// What is posted, with how far its upload is.
fn part_from_row(row: &Row<'_>) -> crate::engine::sql::Result<Part> {
    let mut part: Part = from_json(row, "payload")?;
    if let Some(file) = &mut part.file {
        file.progress = row.get("progress")?;
    }
    Ok(part)
}

/// What an entry does, from the columns `target` and `operation`.
pub(crate) fn operation_from_row(row: &Row<'_>) -> crate::engine::sql::Result<Operation> {
    let stored: StoredTarget = from_json(row, "target")?;
    let text: String = row.get("operation")?;
    stored.operation(&text).ok_or_else(|| {
        let unknown = format!("an operation that this version does not know: {text}");
        row.undecodable("operation", unknown)
    })
}

fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> crate::engine::sql::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| row.undecodable(column, error))
}

fn entry_state(row: &Row<'_>) -> crate::engine::sql::Result<OutboxState> {
    let state: String = row.get("state")?;
    let reason = row.get::<_, Option<String>>("reason")?.unwrap_or_default();
    let not_before_ms = row.get("not_before_ms")?;
    Ok(match state.as_str() {
        "pending" => OutboxState::Pending { not_before_ms },
        "leased" => OutboxState::Leased {
            until_ms: row.get::<_, Option<i64>>("lease_until_ms")?.unwrap_or(0),
        },
        "sent" => OutboxState::Sent {
            message_id: row
                .get::<_, Option<String>>("message_id")?
                .unwrap_or_default(),
        },
        "unknown" => OutboxState::Unknown { not_before_ms },
        "held" => OutboxState::Held { reason },
        "dead" | "replaced" | "quarantined" => OutboxState::Dead { reason },
        other => return Err(unknown_state("post", other)),
    })
}

/// The operation for a line: for one person's eyes, or a post.
pub(crate) fn said_to(person: Option<String>) -> Operation {
    person.map_or(Operation::Post, |person| Operation::Ephemeral { person })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_read_as_it_was_stored() {
        let message_id = "1.000100".to_owned();
        let person = "U0ANN".to_owned();
        let operations = [
            Operation::Post,
            Operation::Edit {
                message_id: message_id.clone(),
            },
            Operation::Delete {
                message_id: message_id.clone(),
            },
            Operation::React {
                message_id: message_id.clone(),
            },
            Operation::Unreact { message_id },
            Operation::Ephemeral {
                person: person.clone(),
            },
            Operation::Answer {
                interaction: "1.2.3".to_owned(),
                person,
            },
            Operation::Upload,
        ];
        let target = Target {
            chat: "C1".into(),
            thread: None,
            topic: None,
            reply_to: None,
        };
        for operation in operations {
            let stored = json(&StoredTarget::of(&target, &operation));
            let read: StoredTarget = serde_json::from_str(&stored).unwrap();
            assert_eq!(read.operation(operation.name()), Some(operation));
            assert_eq!(read.target, target);
        }
        let written_before = r#"{"chat":"C1"}"#;
        let read: StoredTarget = serde_json::from_str(written_before).unwrap();
        assert_eq!(
            (read.target.clone(), read.operation("shout")),
            (target, None)
        );
    }
}
