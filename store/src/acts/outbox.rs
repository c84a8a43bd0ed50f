//! The outbox: posts that are committed and not yet confirmed.
//!
//! Life of an entry: *pending* -> *leased* (claimed; once [`Store::mark_send_started`] is written,
//! bytes may be out) -> *sent*. A lease that ends or is taken back after that mark is *unknown*: it
//! is claimed again only to be looked for. *Held* and *dead* wait for a person; a *replaced* entry
//! lives on as other entries in its place. The end of a lease only matters for leases of other processes:
//! this process gives its own back itself, and a start takes over those of its predecessor.
//!
//! Within a line (a thread, a topic, the top of a chat) entries go in order of `sort_key`; so one of
//! unknown outcome holds back only its line. Lines of a chat take turns, oldest first, with one entry
//! in flight, and pause together when the platform says so. Parts of one turn keep their order, and an edit
//! or deletion waits for its message, even across lines. A held entry holds back only the later parts of its
//! own turn. `send_started` says that bytes may be out; the open row in `outbox_attempts` says that they
//! left under the present lease.

use crate::capability::MayDeliver;
use crate::engine::sql::{Connection, OptionalExtension};
use crate::rows::leases::spared_owner;
use crate::rows::open::{WAIT_MAX_MS, open_post};
use vocative_contract::probe::Sequence;

use crate::acts::parking::give_up_old_txn;
use crate::acts::placeholder::resolve_txn;
use crate::acts::probing::{begin_probing_txn, give_up_probing_txn};
use crate::contract::{ClaimRequest, LeaseOutcome};
use crate::new_id::NewId as _;
use crate::rows::columns::{account_list, limit_of, missing};
use crate::rows::outbox_rows::entry_by_row;
use crate::rows::quarantine::{Queue, kept_or_set_aside_txn};
use crate::{Reader, Store, StoreError};
use vocative_core::ids::{ChatId, LeaseToken, OutboxId};
use vocative_core::outbox::ClaimedEntry;
use vocative_core::outbox::{DeadCause, PostStage};

/// The first entry of each line, as `heads (id)`: one probe of `outbox_open` per line. Entries behind
/// a held part of their own turn are passed over.
macro_rules! with_heads {
    ($tail:literal) => {
        concat!(
            "WITH RECURSIVE
             open (id) AS (
                 SELECT (SELECT id FROM outbox WHERE ",
            open_post!(),
            "
                         ORDER BY chat_id, line, sort_key LIMIT 1)
                 UNION ALL
                 SELECT (SELECT o.id FROM outbox o
                         WHERE ",
            open_post!("o"),
            "
                           AND (o.chat_id, o.line) > (p.chat_id, p.line)
                         ORDER BY o.chat_id, o.line, o.sort_key LIMIT 1)
                 FROM open CROSS JOIN outbox p ON p.id = open.id
             ),
             heads (id) AS (
                 SELECT (SELECT o.id FROM outbox o
                         WHERE ",
            open_post!("o"),
            "
                           AND o.chat_id = p.chat_id AND o.line = p.line
                           AND NOT EXISTS (SELECT 1 FROM outbox h
                                           WHERE h.turn_seq = o.turn_seq
                                             AND h.state IN ('held', 'quarantined')
                                             AND h.sort_key < o.sort_key)
                         ORDER BY o.sort_key LIMIT 1)
                 FROM open CROSS JOIN outbox p ON p.id = open.id
             ),
             -- What waits for nothing of another line.
             free (id) AS (
                 SELECT o.id FROM heads CROSS JOIN outbox o ON o.id = heads.id
                 WHERE NOT EXISTS (SELECT 1 FROM outbox e
                                   WHERE e.turn_seq = o.turn_seq AND e.sort_key < o.sort_key
                                     AND ",
            open_post!("e"),
            "
                                     AND o.line <> 'signs' AND e.line <> 'signs')
                   AND NOT EXISTS (SELECT 1 FROM outbox e
                                   WHERE e.id = o.edit_of
                                     AND ",
            open_post!("e"),
            ")
             ),
             busy (chat_id, is_signs, until_ms, owner) AS MATERIALIZED (
                 SELECT o.chat_id, o.line = 'signs', o.lease_until_ms, o.owner
                 FROM heads CROSS JOIN outbox o ON o.id = heads.id WHERE o.state = 'leased'
             ) ",
            $tail
        )
    };
}

/// How far in the future an entry's wait may have begun, in milliseconds: small clock corrections are tolerated.
const AHEAD_MAX_MS: i64 = 60_000;

/// One entry of each chat, and one of its reactions: the oldest that is due, while none is in flight. If an entry's
/// wait began in the future, the clock was ahead and was corrected since: the entry is due.
const CLAIMABLE_SQL: &str = with_heads!(
    "SELECT o.id, o.state = 'leased' AS is_expired, c.id AS chat, min(o.sort_key),
            coalesce(o.created_at_ms <= ?1 - c.parked_keep_ms, 0) AS is_stale
     FROM free CROSS JOIN outbox o ON o.id = free.id
     JOIN accounts a ON a.id = o.account_id JOIN chats c ON c.id = o.chat_id
     WHERE a.held_reason IS NULL
       AND (c.parked_until_ms IS NULL OR c.parked_until_ms NOT BETWEEN ?1 + 1 AND ?1 + ?5)
       AND (o.line = 'signs' OR c.rests_until_ms IS NULL
            OR c.rests_until_ms NOT BETWEEN ?1 + 1 AND ?1 + ?5)
       AND o.account_id IN (SELECT value FROM json_each(?3))
       AND CASE o.state WHEN 'leased' THEN o.owner IS NOT ?4 AND o.lease_until_ms <= ?1
                        ELSE o.not_before_ms NOT BETWEEN ?1 + 1 AND ?1 + ?5
                             OR coalesce(o.waits_from_ms, o.created_at_ms) > ?1 + ?6 END
       AND (o.chat_id, o.line = 'signs') NOT IN
           (SELECT chat_id, is_signs FROM busy WHERE owner IS ?4 OR until_ms > ?1)
     GROUP BY o.chat_id, o.line = 'signs'
     ORDER BY o.not_before_ms, o.id LIMIT ?2"
);

const NEXT_DUE_SQL: &str = with_heads!(
    "SELECT min(max(CASE o.state WHEN 'leased' THEN o.lease_until_ms ELSE o.not_before_ms END,
                    coalesce(c.parked_until_ms, 0),
                    iif(o.line = 'signs', 0, coalesce(c.rests_until_ms, 0)))) AS due_ms
     FROM free CROSS JOIN outbox o ON o.id = free.id
     JOIN accounts a ON a.id = o.account_id JOIN chats c ON c.id = o.chat_id
     WHERE a.held_reason IS NULL"
);

impl Reader {
    /// When the next entry may be claimed or its lease ends, in milliseconds since the Unix epoch;
    /// `None` if none waits for a time. May lie in the past.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn next_post_due_ms(&self) -> Result<Option<i64>, StoreError> {
        self.read(next_post_due_ms).await
    }
}

impl<C: MayDeliver> Store<C> {
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

    /// Notes that bytes are about to leave: after this a crash leaves the outcome unknown. `sequence`: the sequence in
    /// which the platform numbers the messages of the chat.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn mark_send_started(
        &self,
        entry: OutboxId,
        token: LeaseToken,
        sequence: Option<Sequence>,
        now_ms: i64,
    ) -> Result<LeaseOutcome, StoreError> {
        self.write(move |connection| {
            mark_send_started_txn(connection, entry, token, sequence.as_ref(), now_ms)
        })
        .await
    }

    /// Gives back an entry whose handling ended without an outcome.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn abandon_post(
        &self,
        entry: OutboxId,
        token: LeaseToken,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            let leased: Option<(i64, bool)> = connection
                .prepare_cached(
                    "SELECT id, send_started FROM outbox WHERE uuid = ?1 AND token = ?2 AND state = ?3",
                )?
                .query_row((entry, token, PostStage::Leased), |row| {
                    Ok((row.get("id")?, row.get("send_started")?))
                })
                .optional()?;
            let Some((row, is_send_started)) = leased else {
                return Ok(());
            };
            close_attempt_txn(connection, row, "abandoned", now_ms)?;
            connection
                .prepare_cached(
                    "UPDATE outbox SET state = ?3, not_before_ms = ?2, waits_from_ms = ?2,
                            owner = NULL, token = NULL, lease_until_ms = NULL
                     WHERE id = ?1",
                )?
                .execute((row, now_ms, PostStage::given_back(is_send_started)))?;
            Ok(())
        })
        .await
    }

    /// Stores the progress of an operation that takes several calls. Empty = it begins anew.
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
}

impl Store {
    /// Carries out a person's decision about a held or dead entry: `send` it again, or drop it.
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
}

pub(crate) fn claim_posts_txn(
    connection: &Connection,
    request: &ClaimRequest,
    limit: usize,
) -> Result<Vec<ClaimedEntry>, StoreError> {
    let accounts = account_list(&request.accounts);
    let heads: Vec<(i64, bool, Option<ChatId>)> = connection
        .prepare_cached(CLAIMABLE_SQL)?
        .query_map(
            (
                request.now_ms,
                limit_of(limit),
                accounts,
                spared_owner(request.owner),
                WAIT_MAX_MS,
                AHEAD_MAX_MS,
            ),
            |row| {
                let (chat, is_stale): (ChatId, bool) = (row.get("chat")?, row.get("is_stale")?);
                Ok((
                    row.get("id")?,
                    row.get("is_expired")?,
                    is_stale.then_some(chat),
                ))
            },
        )?
        .collect::<crate::engine::sql::Result<_>>()?;
    let mut claimed = Vec::with_capacity(heads.len());
    for (row, is_expired, stale_in) in heads {
        if is_expired {
            close_attempt_txn(connection, row, "lease expired", request.now_ms)?;
        }
        // The chat refused posts, and is only now tried again: entries that are too old are given up.
        if let Some(chat) = stale_in.filter(|_| !is_expired) {
            give_up_old_txn(connection, chat, request.now_ms)?;
            continue;
        }
        let leased = match resolve_txn(connection, row, request.now_ms) {
            Ok(true) => lease_txn(connection, row, request).map(Some),
            Ok(false) => Ok(None),
            Err(cause) => Err(cause),
        };
        let at = (Queue::Posts, row);
        let kept = kept_or_set_aside_txn(connection, at, leased, request.now_ms)?;
        claimed.extend(kept.flatten());
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
    let (entry, is_unknown) = entry_by_row(connection, row)?;
    Ok(ClaimedEntry {
        entry,
        token,
        is_unknown,
    })
}

pub(crate) fn next_post_due_ms(connection: &Connection) -> Result<Option<i64>, StoreError> {
    Ok(connection
        .prepare_cached(NEXT_DUE_SQL)?
        .query_row([], |row| row.get("due_ms"))?)
}

pub(crate) fn mark_send_started_txn(
    connection: &Connection,
    entry: OutboxId,
    token: LeaseToken,
    sequence: Option<&Sequence>,
    now_ms: i64,
) -> Result<LeaseOutcome, StoreError> {
    let row: Option<i64> = connection
        .prepare_cached(
            "UPDATE outbox SET send_started = 1, attempts = attempts + 1,
                    first_attempt_ms = coalesce(first_attempt_ms, ?3)
             WHERE uuid = ?1 AND token = ?2 AND state = 'leased' RETURNING id",
        )?
        .query_row((entry, token, now_ms), |row| row.get("id"))
        .optional()?;
    let Some(row) = row else {
        return Ok(LeaseOutcome::Stale);
    };
    begin_probing_txn(connection, row, sequence)?;
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
pub(crate) fn close_attempt_txn(
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

/// Takes back posts that an earlier process leased and is no longer sending. Returns how many.
pub(crate) fn take_back_posts_txn(connection: &Connection, now_ms: i64) -> Result<u64, StoreError> {
    connection.execute(
        concat!(
            "UPDATE outbox_attempts SET ended_at_ms = ?1, outcome = 'taken back at start'
         WHERE ended_at_ms IS NULL
           AND outbox_id IN (SELECT id FROM outbox
                             WHERE ",
            open_post!(),
            " AND state = 'leased')"
        ),
        [now_ms],
    )?;
    // One statement for all, with the rule of `PostStage::given_back`: at a start there may be many.
    let taken = connection.execute(
        concat!("UPDATE outbox SET state = CASE send_started WHEN 1 THEN 'unknown' ELSE 'pending' END,
                not_before_ms = min(not_before_ms, ?1), owner = NULL, token = NULL, lease_until_ms = NULL
         WHERE ", open_post!(), " AND state = 'leased'"),
        [now_ms],
    )?;
    Ok(u64::try_from(taken).unwrap_or(0))
}

pub(crate) fn release_post_txn(
    connection: &Connection,
    entry: OutboxId,
    send: bool,
    now_ms: i64,
) -> Result<(), StoreError> {
    let sql = if send {
        "UPDATE outbox SET state = 'pending', dead_cause = ?3, reason = ?3, not_before_ms = ?2, waits_from_ms = ?2,
                send_started = 0, attempts = 0, first_attempt_ms = NULL, finished_at_ms = NULL, is_undecided = 0
         WHERE uuid = ?1 AND state IN ('held', 'dead') RETURNING id"
    } else {
        "UPDATE outbox SET state = 'dead', dead_cause = ?3, reason = ?3, finished_at_ms = ?2, is_undecided = 0
         WHERE uuid = ?1 AND state IN ('held', 'dead') RETURNING id"
    };
    let cause = (!send).then_some(DeadCause::Dropped);
    let row = connection
        .prepare_cached(sql)?
        .query_row((entry, now_ms, cause), |row| row.get::<_, i64>("id"))
        .map_err(|error| missing(error, || format!("a held or dead post {entry}")))?;
    if send {
        return Ok(());
    }
    give_up_probing_txn(connection, row, now_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

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
