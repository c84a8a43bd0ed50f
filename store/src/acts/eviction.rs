//! Making room for files: of the account that holds the most, the contents read longest ago are removed.

use crate::capability::MayWork;
use crate::engine::sql::{Connection, params};
use crate::rows::columns::count_from;
use crate::rows::files::drop_content_txn;
use crate::{Store, StoreError};
use vocative_core::file::{ContentId, FileState};

/// The most contents that are removed at once.
const EVICTED_MAX: i64 = 1_000;
/// Why a file that made room is only named.
const REASON: &str = "it made room for newer files (files.max_total_mib)";

/// The contents of the account that holds the most bytes, with their sizes, the one read or fetched longest ago
/// first. Contents that several accounts hold stay, and so do voice notes that are still to be transcribed. A time
/// in the future was written by a clock that was ahead, and counts as long ago.
const CANDIDATES: &str = "
    WITH read AS (
        SELECT f.sha256, f.size_bytes, h.account_id, f.speech,
               max(coalesce(f.finished_at_ms, 0),
                   coalesce((SELECT max(r.created_at_ms) FROM run_sources s
                             JOIN runs r ON r.id = s.run_id
                             WHERE s.source_seq = f.turn_seq), 0)) AS at_ms
        FROM files f JOIN turns t ON t.seq = f.turn_seq
        JOIN conversations c ON c.id = t.conversation_id
        JOIN chats h ON h.id = c.chat_id
        WHERE f.sha256 IS NOT NULL),
    held AS (
        SELECT sha256, max(size_bytes) AS bytes,
               max(CASE WHEN at_ms > ?2 THEN 0 ELSE at_ms END) AS read_at_ms,
               min(account_id) AS account, max(account_id) AS other,
               max(coalesce(speech, '') = 'pending') AS is_to_be_heard
        FROM read GROUP BY sha256),
    largest AS (
        SELECT account FROM held WHERE account = other
        GROUP BY account ORDER BY sum(bytes) DESC, account LIMIT 1)
    SELECT sha256, bytes FROM held
    WHERE account = (SELECT account FROM largest) AND other = account
      AND read_at_ms < ?1 AND NOT is_to_be_heard
    ORDER BY read_at_ms, sha256 LIMIT ?3";

impl<C: MayWork> Store<C> {
    /// Removes contents until at least `bytes` are free, but none that was fetched or read by a run since
    /// `kept_since_ms`; their files are only named from then on. Returns how many bytes were freed: fewer than asked
    /// for if nothing else may be removed.
    ///
    /// # Errors
    /// Storage refuses; then none went.
    pub async fn evict_contents(
        &self,
        bytes: u64,
        kept_since_ms: i64,
        now_ms: i64,
    ) -> Result<u64, StoreError> {
        self.write(move |connection| evict_txn(connection, bytes, kept_since_ms, now_ms))
            .await
    }
}

fn evict_txn(
    connection: &Connection,
    bytes: u64,
    kept_since_ms: i64,
    now_ms: i64,
) -> Result<u64, StoreError> {
    let mut statement = connection.prepare_cached(CANDIDATES)?;
    let found = statement.query_map(params![kept_since_ms, now_ms, EVICTED_MAX], |row| {
        Ok((row.get("sha256")?, row.get("bytes")?))
    })?;
    let candidates: Vec<(ContentId, i64)> = found.collect::<Result<_, _>>()?;
    let mut freed = 0_u64;
    for (content, size) in candidates {
        if freed >= bytes {
            break;
        }
        drop_content_txn(connection, content)?;
        connection
            .prepare_cached(
                "UPDATE files SET state = ?2, reason = ?3, sha256 = NULL WHERE sha256 = ?1",
            )?
            .execute(params![content, FileState::Evicted.name(), REASON])?;
        freed = freed.saturating_add(count_from(size));
    }
    Ok(freed)
}
