//! The outbox: posts that are committed and not yet confirmed.
//!
//! Life of an entry: *pending* -> *leased* (claimed; once [`Store::mark_send_started`] is written,
//! bytes may be out) -> *sent*. A lease that ends or is taken back after that mark is *unknown*: it
//! is claimed again only to be looked for. *Held* and *dead* wait for a person; a *replaced* entry
//! lives on as other entries in its place.
//!
//! Within a chat entries go one at a time, in order of `sort_key`. A held entry holds back only the
//! later parts of its own turn. `send_started` says that bytes may be out; the open row in
//! `outbox_attempts` says that they left under the present lease.

use rusqlite::{Connection, OptionalExtension, Row};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use vocative_channels::outbound::{Operation, Part, Target};

use super::contract::{ClaimRequest, LeaseOutcome};
use super::placeholder::resolve_txn;
use super::rows::missing;
use super::runs::account_list;
use super::runs::limit_of;
use super::{Store, StoreError};
use crate::domain::ids::{AccountId, ChatId, LeaseToken, OutboxId, Seq};
use crate::domain::outbox::{ClaimedEntry, OutboxEntry, OutboxState};

/// The first entry of each chat that may go next, as `heads (id)`: one probe of `outbox_open` per
/// chat. Entries behind a held part of their own turn are passed over. Reactions go in a line of their
/// own: nothing that is said waits for one.
macro_rules! with_heads {
    ($tail:literal) => {
        concat!(
            "WITH RECURSIVE
             open (chat_id) AS (
                 SELECT (SELECT chat_id FROM outbox
                         WHERE state IN ('pending', 'leased', 'unknown')
                         ORDER BY chat_id LIMIT 1)
                 UNION ALL
                 SELECT (SELECT o.chat_id FROM outbox o
                         WHERE o.state IN ('pending', 'leased', 'unknown')
                           AND o.chat_id > open.chat_id
                         ORDER BY o.chat_id LIMIT 1)
                 FROM open WHERE open.chat_id IS NOT NULL
             ),
             heads (id) AS (
                 SELECT (SELECT o.id FROM outbox o
                         WHERE o.state IN ('pending', 'leased', 'unknown')
                           AND o.chat_id = open.chat_id
                           AND o.operation NOT IN ('react', 'unreact')
                           AND NOT EXISTS (SELECT 1 FROM outbox h
                                           WHERE h.turn_seq = o.turn_seq AND h.state = 'held'
                                             AND h.sort_key < o.sort_key)
                         ORDER BY o.sort_key LIMIT 1)
                 FROM open WHERE open.chat_id IS NOT NULL
                 UNION ALL
                 SELECT (SELECT o.id FROM outbox o
                         WHERE o.state IN ('pending', 'leased', 'unknown')
                           AND o.chat_id = open.chat_id
                           AND o.operation IN ('react', 'unreact')
                         ORDER BY o.sort_key LIMIT 1)
                 FROM open WHERE open.chat_id IS NOT NULL
             ) ",
            $tail
        )
    };
}

const CLAIMABLE_SQL: &str = with_heads!(
    "SELECT o.id, o.state = 'leased' FROM heads CROSS JOIN outbox o ON o.id = heads.id
     JOIN accounts a ON a.id = o.account_id JOIN chats c ON c.id = o.chat_id
     WHERE a.held_reason IS NULL AND coalesce(c.parked_until_ms, ?1) <= ?1
       AND o.account_id IN (SELECT value FROM json_each(?3))
       AND CASE o.state WHEN 'leased' THEN o.lease_until_ms ELSE o.not_before_ms END <= ?1
     ORDER BY o.not_before_ms, o.id LIMIT ?2"
);

const NEXT_DUE_SQL: &str = with_heads!(
    "SELECT min(max(CASE o.state WHEN 'leased' THEN o.lease_until_ms ELSE o.not_before_ms END,
                    coalesce(c.parked_until_ms, 0)))
     FROM heads CROSS JOIN outbox o ON o.id = heads.id
     JOIN accounts a ON a.id = o.account_id JOIN chats c ON c.id = o.chat_id
     WHERE a.held_reason IS NULL"
);

macro_rules! select_posts {
    ($tail:literal) => {
        concat!(
            "SELECT o.uuid, t.uuid, o.account_id, o.chat_id, o.part, o.target, o.payload, o.state,
                    o.reason, o.not_before_ms, o.lease_until_ms, o.message_id, o.attempts,
                    o.first_attempt_ms, o.looks, o.resends, o.created_at_ms, o.send_started,
                    (SELECT max(coalesce(a.ended_at_ms, a.started_at_ms))
                     FROM outbox_attempts a WHERE a.outbox_id = o.id),
                    o.operation, o.progress
             FROM outbox o LEFT JOIN turns t ON t.seq = o.turn_seq ",
            $tail
        )
    };
}

impl Store {
    /// Leases the next entry per chat, in order, of accounts that are not held; a chat with a leased,
    /// pending or unknown older entry waits. Expired leases become unknown if bytes may be out.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn claim_posts(
        &self,
        request: ClaimRequest,
        limit: usize,
    ) -> Result<Vec<ClaimedEntry>, StoreError> {
        self.write_riding(move |connection| claim_posts_txn(connection, &request, limit))
            .await
    }

    /// When the next entry may be claimed or its lease ends, in milliseconds since the Unix epoch;
    /// `None` if none waits for a time. May lie in the past.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn next_post_due_ms(&self) -> Result<Option<i64>, StoreError> {
        self.read(next_post_due_ms).await
    }

    /// Bytes are about to leave: after this a crash leaves the outcome unknown.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn mark_send_started(
        &self,
        entry: OutboxId,
        token: LeaseToken,
        now_ms: i64,
    ) -> Result<LeaseOutcome, StoreError> {
        self.write(move |connection| mark_send_started_txn(connection, entry, token, now_ms))
            .await
    }

    /// Keeps how far an operation of several calls is. Empty = it begins anew.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn keep_progress(
        &self,
        entry: OutboxId,
        token: LeaseToken,
        progress: String,
    ) -> Result<LeaseOutcome, StoreError> {
        self.write(move |connection| {
            let kept = connection
                .prepare_cached(
                    "UPDATE outbox SET progress = nullif(?3, '')
                     WHERE uuid = ?1 AND token = ?2 AND state = 'leased'",
                )?
                .execute((entry, token, progress))?;
            Ok(match kept {
                0 => LeaseOutcome::Stale,
                _ => LeaseOutcome::Written,
            })
        })
        .await
    }

    /// A person decides about a held or dead entry: `send` again, or drop.
    ///
    /// # Errors
    /// `NotFound` if no such entry is held or dead.
    pub async fn release_post(
        &self,
        entry: OutboxId,
        send: bool,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| release_post_txn(connection, entry, send, now_ms))
            .await
    }

    /// Entries that wait for a person: held ones, then dead ones that nobody dropped; newest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn stuck_posts(&self, limit: usize) -> Result<Vec<OutboxEntry>, StoreError> {
        self.read(move |connection| stuck_posts(connection, limit))
            .await
    }
}

/// Why an entry is dead that a person dropped.
pub(super) const DROPPED: &str = "dropped";

/// What the posts of a turn have in common.
#[derive(Clone, Copy)]
pub(super) struct NewPosts<'a> {
    pub(super) account: AccountId,
    pub(super) chat: ChatId,
    /// None for a notice into a chat of which nothing is stored.
    pub(super) turn: Option<Seq>,
    pub(super) run_row: Option<i64>,
    pub(super) target: &'a Target,
    pub(super) operation: &'a Operation,
    pub(super) parts: &'a [Part],
    pub(super) now_ms: i64,
}

/// Commits the posts of a turn, in order, behind all others of the chat.
pub(super) fn insert_posts_txn(
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
pub(super) fn append_post_txn(
    connection: &Connection,
    posts: &NewPosts<'_>,
    part_number: u32,
    part: &Part,
) -> Result<OutboxId, StoreError> {
    let next: i64 = connection
        .prepare_cached("SELECT coalesce(max(id), 0) + 1 FROM outbox")?
        .query_row([], |row| row.get(0))?;
    #[allow(clippy::cast_precision_loss)] // Row ids stay far below 2^52.
    let place = Place {
        part_number,
        sort_key: next as f64,
    };
    insert_post_txn(connection, posts, place, part)
}

#[derive(Clone, Copy)]
/// Where a post stands among those of its turn and of its chat.
pub(super) struct Place {
    pub(super) part_number: u32,
    pub(super) sort_key: f64,
}

/// Commits one post at its place.
pub(super) fn insert_post_txn(
    connection: &Connection,
    posts: &NewPosts<'_>,
    place: Place,
    part: &Part,
) -> Result<OutboxId, StoreError> {
    let id = OutboxId::generate();
    // A part with a file is an upload; what takes an upload's place is not, unless it has one, too.
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

/// A target as it is stored: with what the operation is done to.
#[derive(Serialize, Deserialize)]
struct StoredTarget {
    #[serde(flatten)]
    target: Target,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    person: Option<String>,
}

impl StoredTarget {
    fn of(target: &Target, operation: &Operation) -> Self {
        let (message, person) = match operation {
            Operation::Post | Operation::Upload => (None, None),
            Operation::Edit { message_id }
            | Operation::Delete { message_id }
            | Operation::React { message_id }
            | Operation::Unreact { message_id } => (Some(message_id.clone()), None),
            Operation::Ephemeral { person } => (None, Some(person.clone())),
        };
        Self {
            target: target.clone(),
            message,
            person,
        }
    }

    /// What is done, by its stored name; `None` if this build knows none of that name.
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
            "upload" => Operation::Upload,
            _ => return None,
        })
    }
}

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("targets and parts are always JSON")
}

pub(super) fn claim_posts_txn(
    connection: &Connection,
    request: &ClaimRequest,
    limit: usize,
) -> Result<Vec<ClaimedEntry>, StoreError> {
    let accounts = account_list(&request.accounts);
    let heads: Vec<(i64, bool)> = connection
        .prepare_cached(CLAIMABLE_SQL)?
        .query_map((request.now_ms, limit_of(limit), accounts), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut claimed = Vec::with_capacity(heads.len());
    for (row, is_expired) in heads {
        if is_expired {
            close_attempt_txn(connection, row, "lease expired", request.now_ms)?;
        }
        if resolve_txn(connection, row, request.now_ms)? {
            claimed.push(lease_txn(connection, row, request)?);
        }
    }
    Ok(claimed)
}

fn lease_txn(
    connection: &Connection,
    row: i64,
    request: &ClaimRequest,
) -> Result<ClaimedEntry, StoreError> {
    let token = LeaseToken::generate();
    connection
        .prepare_cached(
            "UPDATE outbox SET state = 'leased', owner = ?2, token = ?3, lease_until_ms = ?4
             WHERE id = ?1",
        )?
        .execute((row, request.owner, token, request.now_ms + request.lease_ms))?;
    let (entry, is_unknown) = connection
        .prepare_cached(select_posts!("WHERE o.id = ?1"))?
        .query_row([row], |row| Ok((entry_from_row(row)?, row.get(17)?)))?;
    Ok(ClaimedEntry {
        entry,
        token,
        is_unknown,
    })
}

pub(super) fn next_post_due_ms(connection: &Connection) -> Result<Option<i64>, StoreError> {
    Ok(connection
        .prepare_cached(NEXT_DUE_SQL)?
        .query_row([], |row| row.get(0))?)
}

pub(super) fn mark_send_started_txn(
    connection: &Connection,
    entry: OutboxId,
    token: LeaseToken,
    now_ms: i64,
) -> Result<LeaseOutcome, StoreError> {
    let row: Option<i64> = connection
        .prepare_cached(
            "UPDATE outbox SET send_started = 1, attempts = attempts + 1,
                    first_attempt_ms = coalesce(first_attempt_ms, ?3)
             WHERE uuid = ?1 AND token = ?2 AND state = 'leased' RETURNING id",
        )?
        .query_row((entry, token, now_ms), |row| row.get(0))
        .optional()?;
    let Some(row) = row else {
        return Ok(LeaseOutcome::Stale);
    };
    connection
        .prepare_cached(
            "INSERT INTO outbox_attempts (outbox_id, n, started_at_ms)
             VALUES (?1, (SELECT coalesce(max(n), 0) + 1 FROM outbox_attempts
                          WHERE outbox_id = ?1), ?2)",
        )?
        .execute((row, now_ms))?;
    Ok(LeaseOutcome::Written)
}

/// Closes the attempt made under the present lease. Returns whether there was one.
pub(super) fn close_attempt_txn(
    connection: &Connection,
    row: i64,
    outcome: &str,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let closed = connection
        .prepare_cached(
            "UPDATE outbox_attempts SET ended_at_ms = ?3, outcome = ?2
             WHERE outbox_id = ?1 AND ended_at_ms IS NULL",
        )?
        .execute((row, outcome, now_ms))?;
    Ok(closed > 0)
}

/// Posts leased by a predecessor: nobody is sending them. Returns how many.
pub(super) fn take_back_posts_txn(connection: &Connection, now_ms: i64) -> Result<u64, StoreError> {
    connection.execute(
        "UPDATE outbox_attempts SET ended_at_ms = ?1, outcome = 'taken back at start'
         WHERE ended_at_ms IS NULL
           AND outbox_id IN (SELECT id FROM outbox
                             WHERE state IN ('pending', 'leased', 'unknown') AND state = 'leased')",
        [now_ms],
    )?;
    let taken = connection.execute(
        "UPDATE outbox SET state = CASE send_started WHEN 1 THEN 'unknown' ELSE 'pending' END,
                not_before_ms = ?1, owner = NULL, token = NULL, lease_until_ms = NULL
         WHERE state IN ('pending', 'leased', 'unknown') AND state = 'leased'",
        [now_ms],
    )?;
    Ok(u64::try_from(taken).unwrap_or(0))
}

pub(super) fn release_post_txn(
    connection: &Connection,
    entry: OutboxId,
    send: bool,
    now_ms: i64,
) -> Result<(), StoreError> {
    let sql = if send {
        "UPDATE outbox SET state = 'pending', reason = ?3, not_before_ms = ?2, send_started = 0,
                attempts = 0, first_attempt_ms = NULL, finished_at_ms = NULL
         WHERE uuid = ?1 AND state IN ('held', 'dead') RETURNING id"
    } else {
        "UPDATE outbox SET state = 'dead', reason = ?3, finished_at_ms = ?2
         WHERE uuid = ?1 AND state IN ('held', 'dead') RETURNING id"
    };
    let reason = (!send).then_some(DROPPED);
    connection
        .prepare_cached(sql)?
        .query_row((entry, now_ms, reason), |row| row.get::<_, i64>(0))
        .map_err(|error| missing(error, || format!("a held or dead post {entry}")))?;
    Ok(())
}

fn stuck_posts(connection: &Connection, limit: usize) -> Result<Vec<OutboxEntry>, StoreError> {
    let mut statement = connection.prepare_cached(select_posts!(
        "WHERE o.state IN ('held', 'dead') AND o.reason IS NOT ?1
         ORDER BY o.state DESC, o.id DESC LIMIT ?2"
    ))?;
    let posts = statement.query_map((DROPPED, limit_of(limit)), entry_from_row)?;
    Ok(posts.collect::<rusqlite::Result<_>>()?)
}

/// The posts of a turn, in order.
pub(super) fn posts_of_turn(
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
    Ok(posts.collect::<rusqlite::Result<_>>()?)
}

fn entry_from_row(row: &Row<'_>) -> rusqlite::Result<OutboxEntry> {
    let stored: StoredTarget = from_json(row, 5)?;
    Ok(OutboxEntry {
        id: row.get(0)?,
        turn: row.get(1)?,
        account: row.get(2)?,
        chat: row.get(3)?,
        part_number: row.get(4)?,
        target: stored.target,
        operation: operation_from_row(row, 5, 19)?,
        part: part_from_row(row)?,
        state: entry_state(row)?,
        attempts: row.get(12)?,
        first_attempt_ms: row.get(13)?,
        last_attempt_ms: row.get(18)?,
        looks: row.get(14)?,
        resends: row.get(15)?,
        created_at_ms: row.get(16)?,
    })
}

/// What is posted, with how far its upload is.
fn part_from_row(row: &Row<'_>) -> rusqlite::Result<Part> {
    let mut part: Part = from_json(row, 6)?;
    if let Some(file) = &mut part.file {
        file.progress = row.get(20)?;
    }
    Ok(part)
}

/// What an entry does, from the columns of its target and of its operation.
pub(super) fn operation_from_row(
    row: &Row<'_>,
    target: usize,
    name: usize,
) -> rusqlite::Result<Operation> {
    let stored: StoredTarget = from_json(row, target)?;
    let text: String = row.get(name)?;
    stored.operation(&text).ok_or_else(|| {
        let unknown = format!("an operation that this version does not know: {text}");
        rusqlite::Error::FromSqlConversionFailure(name, rusqlite::types::Type::Text, unknown.into())
    })
}

fn from_json<T: DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    let text: String = row.get(index)?;
    serde_json::from_str(&text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(
            index,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    })
}

fn entry_state(row: &Row<'_>) -> rusqlite::Result<OutboxState> {
    let state: String = row.get(7)?;
    let reason = row.get::<_, Option<String>>(8)?.unwrap_or_default();
    let not_before_ms = row.get(9)?;
    Ok(match state.as_str() {
        "pending" => OutboxState::Pending { not_before_ms },
        "leased" => OutboxState::Leased {
            until_ms: row.get::<_, Option<i64>>(10)?.unwrap_or(0),
        },
        "sent" => OutboxState::Sent {
            message_id: row.get::<_, Option<String>>(11)?.unwrap_or_default(),
        },
        "unknown" => OutboxState::Unknown { not_before_ms },
        "held" => OutboxState::Held { reason },
        _ => OutboxState::Dead { reason },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_channels::outbound::Delivered;

    use super::*;
    use crate::store::contract::{CommittedReply, OutboxUpdate};
    use crate::store::scene::{LEASE_MS, Room, Scene, target};

    /// The texts of the posts that may go.
    async fn claim(scene: &Scene, now_ms: i64) -> Vec<ClaimedEntry> {
        let request = scene.request(now_ms);
        scene.store.claim_posts(request, 10).await.unwrap()
    }

    fn texts(claimed: &[ClaimedEntry]) -> Vec<&str> {
        claimed
            .iter()
            .map(|claim| claim.entry.part.text.as_str())
            .collect()
    }

    async fn update(scene: &Scene, claim: &ClaimedEntry, update: OutboxUpdate, now_ms: i64) {
        let (id, token) = (claim.entry.id, claim.token);
        let outcome = scene.store.update_post(id, token, update, now_ms).await;
        assert_eq!(outcome.unwrap(), LeaseOutcome::Written);
    }

    async fn send(scene: &Scene, claim: &ClaimedEntry, message_id: &str, now_ms: i64) {
        start(scene, claim, now_ms).await;
        let delivered = Delivered {
            chat: claim.entry.target.chat.clone(),
            message_id: message_id.to_owned(),
            sent_at_ms: now_ms,
            shown: None,
        };
        update(scene, claim, OutboxUpdate::Sent(delivered), now_ms).await;
    }

    async fn start(scene: &Scene, claim: &ClaimedEntry, now_ms: i64) {
        let (id, token) = (claim.entry.id, claim.token);
        let outcome = scene.store.mark_send_started(id, token, now_ms).await;
        assert_eq!(outcome.unwrap(), LeaseOutcome::Written);
    }

    /// Sends all there is, one at a time, and returns the texts in order.
    async fn drain(scene: &Scene, mut now_ms: i64) -> Vec<String> {
        let mut sent = Vec::new();
        loop {
            let claimed = claim(scene, now_ms).await;
            if claimed.is_empty() {
                return sent;
            }
            for claim in claimed {
                let message_id = format!("p{}", claim.entry.id);
                send(scene, &claim, &message_id, now_ms).await;
                sent.push(claim.entry.part.text);
            }
            now_ms += 1;
        }
    }

    async fn two_parts_and_one(scene: &Scene) -> Room {
        let room = scene.room("C1").await;
        scene.post(&room, &["one", "two"], 100).await;
        scene.post(&room, &["three"], 200).await;
        room
    }

    fn retry(not_before_ms: i64) -> OutboxUpdate {
        OutboxUpdate::Retry {
            not_before_ms,
            reason: "429".to_owned(),
        }
    }

    #[tokio::test]
    async fn posts_of_a_chat_go_one_at_a_time_in_order_and_chats_do_not_wait() {
        let scene = Scene::open().await;
        two_parts_and_one(&scene).await;
        let other = scene.room("C2").await;
        scene.post(&other, &["elsewhere"], 300).await;

        let claimed = claim(&scene, 1_000).await;
        assert_eq!(texts(&claimed), ["one", "elsewhere"]);
        assert_eq!(texts(&claim(&scene, 1_001).await), Vec::<&str>::new());
        send(&scene, &claimed[0], "p1", 1_002).await;
        assert_eq!(texts(&claim(&scene, 1_003).await), ["two"]);
    }

    #[tokio::test]
    async fn a_rate_limit_parks_the_chat_and_keeps_its_order() {
        let scene = Scene::open().await;
        two_parts_and_one(&scene).await;
        let claimed = claim(&scene, 1_000).await;
        start(&scene, &claimed[0], 1_000).await;
        update(&scene, &claimed[0], retry(5_000), 1_001).await;
        assert_eq!(texts(&claim(&scene, 4_999).await), Vec::<&str>::new());
        assert_eq!(scene.store.next_post_due_ms().await.unwrap(), Some(5_000));

        let again = claim(&scene, 5_000).await;
        assert!(!again[0].is_unknown);
        assert_eq!(
            (again[0].entry.attempts, again[0].entry.first_attempt_ms),
            (1, Some(1_000))
        );
        send(&scene, &again[0], "p1", 5_000).await;
        assert_eq!(drain(&scene, 5_001).await, ["two", "three"]);
    }

    #[tokio::test]
    async fn a_lease_that_ends_after_bytes_left_is_of_unknown_outcome() {
        let scene = Scene::open().await;
        two_parts_and_one(&scene).await;
        let unstarted = claim(&scene, 1_000).await;
        let started = claim(&scene, 1_000 + LEASE_MS).await;
        assert!(!started[0].is_unknown);
        let stale = scene
            .store
            .mark_send_started(unstarted[0].entry.id, unstarted[0].token, 2_000)
            .await;
        assert_eq!(stale.unwrap(), LeaseOutcome::Stale);

        start(&scene, &started[0], 2_000).await;
        let lost = claim(&scene, 2_000 + LEASE_MS).await;
        assert_eq!(texts(&lost), ["one"]);
        assert!(lost[0].is_unknown);
        let late = scene
            .store
            .update_post(started[0].entry.id, started[0].token, retry(0), 3_001)
            .await;
        assert_eq!(late.unwrap(), LeaseOutcome::Stale);
    }

    #[tokio::test]
    async fn an_unknown_outcome_holds_the_chat_until_it_is_looked_for() {
        let scene = Scene::open().await;
        two_parts_and_one(&scene).await;
        let claimed = claim(&scene, 1_000).await;
        start(&scene, &claimed[0], 1_000).await;
        let look = |not_before_ms| OutboxUpdate::Look {
            not_before_ms,
            reason: "reset".to_owned(),
        };
        update(&scene, &claimed[0], look(2_000), 1_001).await;
        assert!(claim(&scene, 1_999).await.is_empty());
        let looking = claim(&scene, 2_000).await;
        assert!(looking[0].is_unknown);
        assert_eq!(looking[0].entry.looks, 1);

        // The look itself is refused: the outcome of the attempt stays unknown.
        let held = OutboxUpdate::HoldAccount {
            reason: "token_revoked".to_owned(),
        };
        update(&scene, &looking[0], held, 2_001).await;
        assert!(claim(&scene, 9_000).await.is_empty());
        assert_eq!(scene.store.next_post_due_ms().await.unwrap(), None);
        scene
            .write(|connection| {
                connection.execute("UPDATE accounts SET held_reason = NULL", [])?;
                Ok(())
            })
            .await;
        let looking = claim(&scene, 9_000).await;
        assert!(looking[0].is_unknown);
        let reason = "not there".to_owned();
        update(&scene, &looking[0], OutboxUpdate::Resend { reason }, 9_001).await;
        let again = claim(&scene, 9_001).await;
        assert!(!again[0].is_unknown);
        assert_eq!(again[0].entry.resends, 1);
        send(&scene, &again[0], "p1", 9_002).await;
        assert_eq!(drain(&scene, 9_003).await, ["two", "three"]);
    }

    #[tokio::test]
    async fn a_held_part_holds_back_only_later_parts_of_its_turn() {
        let scene = Scene::open().await;
        two_parts_and_one(&scene).await;
        let claimed = claim(&scene, 1_000).await;
        start(&scene, &claimed[0], 1_000).await;
        let reason = "may be out".to_owned();
        update(&scene, &claimed[0], OutboxUpdate::Hold { reason }, 1_001).await;
        assert_eq!(drain(&scene, 1_002).await, ["three"]);

        let stuck = scene.store.stuck_posts(5).await.unwrap();
        assert_eq!(stuck.len(), 1);
        assert_eq!(stuck[0].id, claimed[0].entry.id);
        scene
            .store
            .release_post(stuck[0].id, true, 2_000)
            .await
            .unwrap();
        assert_eq!(drain(&scene, 2_000).await, ["one", "two"]);
        let again = scene.store.release_post(stuck[0].id, true, 2_100).await;
        assert!(matches!(again, Err(StoreError::NotFound { .. })));
    }

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
            Operation::Ephemeral { person },
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

    #[tokio::test]
    async fn a_dropped_post_lets_the_rest_of_its_turn_go() {
        let scene = Scene::open().await;
        two_parts_and_one(&scene).await;
        let claimed = claim(&scene, 1_000).await;
        let reason = "may be out".to_owned();
        update(&scene, &claimed[0], OutboxUpdate::Hold { reason }, 1_001).await;
        let id = claimed[0].entry.id;
        scene.store.release_post(id, false, 1_002).await.unwrap();
        assert_eq!(drain(&scene, 1_003).await, ["two", "three"]);
        assert_eq!(scene.store.stuck_posts(5).await.unwrap(), []);
    }

    #[tokio::test]
    async fn parts_that_replace_another_go_in_its_place_also_when_replaced_again() {
        let scene = Scene::open().await;
        let room = two_parts_and_one(&scene).await;
        let split = |parts: &[&str]| OutboxUpdate::Replace {
            parts: parts.iter().map(|part| Part::plain(*part)).collect(),
            target: target(&room),
            operation: Operation::Post,
            reason: "too long".to_owned(),
        };
        let claimed = claim(&scene, 1_000).await;
        update(&scene, &claimed[0], split(&["o", "ne"]), 1_001).await;
        let claimed = claim(&scene, 1_002).await;
        assert_eq!(texts(&claimed), ["o"]);
        update(&scene, &claimed[0], split(&["o1", "o2"]), 1_003).await;
        assert_eq!(
            drain(&scene, 1_004).await,
            ["o1", "o2", "ne", "two", "three"]
        );
        let parts = "SELECT group_concat(part) FROM (SELECT part FROM outbox ORDER BY sort_key)";
        assert_eq!(scene.value::<String>(parts).await, "0,2,4,5,3,1,0");
    }

    #[tokio::test]
    async fn a_chat_that_refuses_is_parked_until_something_is_heard() {
        let scene = Scene::open().await;
        two_parts_and_one(&scene).await;
        let claimed = claim(&scene, 1_000).await;
        start(&scene, &claimed[0], 1_000).await;
        let parked = OutboxUpdate::ParkChat {
            not_before_ms: 60_000,
            reason: "not_in_channel".to_owned(),
        };
        update(&scene, &claimed[0], parked, 1_001).await;
        assert!(claim(&scene, 59_999).await.is_empty());
        assert_eq!(scene.store.next_post_due_ms().await.unwrap(), Some(60_000));
        scene
            .write(|connection| {
                connection.execute("UPDATE chats SET parked_until_ms = NULL", [])?;
                Ok(())
            })
            .await;
        let again = claim(&scene, 2_000).await;
        assert_eq!(texts(&again), ["one"]);
        assert!(!again[0].is_unknown);
    }

    #[tokio::test]
    async fn a_sent_post_is_known_by_its_message_id_and_an_echo_changes_nothing() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let written = scene.post(&room, &["one"], 100).await;
        let CommittedReply::Written { turn, posts } = written else {
            panic!("{written:?}");
        };
        let claimed = claim(&scene, 1_000).await;
        assert_eq!(claimed[0].entry.id, posts[0]);
        assert_eq!(claimed[0].entry.turn, Some(turn));
        scene
            .write(|connection| {
                connection.execute(
                    "INSERT INTO messages (account_id, chat_id, platform_id, turn_seq)
                     SELECT account_id, chat_id, 'p1', turn_seq FROM outbox",
                    [],
                )?;
                Ok(())
            })
            .await;
        send(&scene, &claimed[0], "p1", 1_001).await;
        let details = scene.store.turn_details(room.id, 1).await.unwrap();
        assert_eq!(details[0].message_ids, ["p1"]);
        let message_id = "p1".to_owned();
        assert_eq!(details[0].posts[0].state, OutboxState::Sent { message_id });
        let outcome = "SELECT outcome FROM outbox_attempts";
        assert_eq!(scene.value::<String>(outcome).await, "sent");
    }

    #[tokio::test]
    async fn what_the_room_shows_is_kept_where_it_is_something_else() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.post(&room, &["one "], 100).await;
        let claimed = claim(&scene, 1_000).await;
        start(&scene, &claimed[0], 1_000).await;
        let delivered = Delivered {
            chat: "C1".to_owned(),
            message_id: "p1".to_owned(),
            sent_at_ms: 1_001,
            shown: Some(Box::new(Part::plain("one"))),
        };
        update(&scene, &claimed[0], OutboxUpdate::Sent(delivered), 1_001).await;
        let details = scene.store.turn_details(room.id, 1).await.unwrap();
        assert_eq!(details[0].posts[0].part, Part::plain("one"));
    }

    #[tokio::test]
    async fn after_a_crash_a_post_that_was_being_sent_is_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sqlite");
        let scene = Scene::open_at(Some(path.clone())).await;
        two_parts_and_one(&scene).await;
        let other = scene.room("C2").await;
        scene.post(&other, &["elsewhere"], 300).await;
        let claimed = claim(&scene, 1_000).await;
        start(&scene, &claimed[0], 1_000).await;
        scene.store.close().await.unwrap();
        drop(scene);

        let scene = Scene::open_at(Some(path)).await;
        let claimed = claim(&scene, 1_001).await;
        assert_eq!(texts(&claimed), ["one", "elsewhere"]);
        let unknown: Vec<bool> = claimed.iter().map(|claim| claim.is_unknown).collect();
        assert_eq!(unknown, [true, false]);
    }

    #[tokio::test]
    async fn a_claim_reads_open_entries_only() {
        let scene = Scene::open().await;
        for sql in [CLAIMABLE_SQL, NEXT_DUE_SQL] {
            let plan = scene.plan(sql).await;
            let bounded = [
                "INDEX outbox_open",
                "INDEX outbox_by_turn (turn_seq=?)",
                "INTEGER PRIMARY KEY (rowid=?)",
            ];
            for step in plan.iter().filter(|step| step.contains(" USING ")) {
                let is_bounded = bounded.iter().any(|read| step.contains(read));
                assert!(is_bounded, "{step} in {plan:#?}");
            }
            assert!(!plan.contains(&"SCAN o".to_owned()), "{plan:#?}");
        }
    }
}
