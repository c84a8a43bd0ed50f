//! Measures what uses the space and how fast the disk is. Reads every page of the database, so it is
//! asked for by a person and never by a timer.

use std::path::Path;

use crate::contract::{Capacity, TableSpace};
use crate::engine::beside::beside;
use crate::engine::disk::{free_bytes, sync_us};
use crate::engine::sql::{Connection, OptionalExtension};
use crate::registry::FULL_TEXT;
use crate::rows::files::count_files;
use crate::{Reader, StoreError};

const WEEK_MS: i64 = 7 * 86_400_000;

impl Reader {
    /// Measures what the store takes and what its disk can do. Reads all of the database.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn capacity(&self, now_ms: i64) -> Result<Capacity, StoreError> {
        let mut capacity = self
            .read(move |connection| space(connection, now_ms))
            .await?;
        let Some(database) = self.database_path().map(Path::to_owned) else {
            return Ok(capacity);
        };
        let measured = tokio::task::spawn_blocking(move || {
            let folder = database.parent().unwrap_or(Path::new(".")).to_owned();
            capacity.log_bytes =
                std::fs::metadata(beside(&database, "-wal")).map_or(0, |log| log.len());
            capacity.free_bytes = free_bytes(&folder).ok();
            capacity.sync_us = sync_us(&folder).unwrap_or_default();
            capacity
        });
        measured.await.map_err(|_| StoreError::Closed)
    }
}

fn space(connection: &Connection, now_ms: i64) -> Result<Capacity, StoreError> {
    let count = |sql: &str| -> crate::engine::sql::Result<u64> {
        let value: i64 = connection.query_row(sql, [], |row| row.get("value"))?;
        Ok(u64::try_from(value).unwrap_or(0))
    };
    Ok(Capacity {
        turns: count("SELECT coalesce(sum(turn_count), 0) AS value FROM conversations")?,
        turns_last_week: turns_since(connection, now_ms - WEEK_MS)?,
        database_bytes: count(
            "SELECT page_count * page_size AS value FROM pragma_page_count, pragma_page_size",
        )?,
        files_bytes: count_files(connection)?.bytes,
        tables: tables(connection)?,
        ..Capacity::default()
    })
}

/// Counts the turns captured since a time. Capture order follows time except where the clock was stepped, so the
/// first such turn is found by binary search, and the rest is counted.
fn turns_since(connection: &Connection, since_ms: i64) -> Result<u64, StoreError> {
    let newest: Option<i64> =
        connection.query_row("SELECT max(seq) AS newest FROM turns", [], |row| {
            row.get("newest")
        })?;
    let mut at = connection
        .prepare_cached("SELECT captured_at_ms FROM turns WHERE seq >= ?1 ORDER BY seq LIMIT 1")?;
    let (mut low, mut high) = (0, newest.unwrap_or(0) + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let captured: Option<i64> = at
            .query_row([middle], |row| row.get("captured_at_ms"))
            .optional()?;
        if captured.is_some_and(|captured_ms| captured_ms < since_ms) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let count: i64 = connection.query_row(
        "SELECT count(*) AS since FROM turns WHERE seq >= ?1",
        [low],
        |row| row.get("since"),
    )?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// What each table takes with its indexes; the tables behind a full-text index count as one.
fn tables(connection: &Connection) -> Result<Vec<TableSpace>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT CASE WHEN table_name LIKE ?1 || '%' THEN ?1 WHEN table_name LIKE ?2 || '%' THEN ?2
                     WHEN table_name LIKE ?3 || '%' THEN ?3 ELSE table_name END AS name, sum(bytes) AS bytes
         FROM (SELECT coalesce(s.tbl_name, d.name) AS table_name, d.pgsize AS bytes
               FROM dbstat d LEFT JOIN sqlite_schema s ON s.name = d.name
               WHERE d.aggregate = 1)
         GROUP BY 1 ORDER BY 2 DESC, 1",
    )?;
    let rows = statement.query_map(FULL_TEXT, |row| {
        let bytes: i64 = row.get("bytes")?;
        Ok(TableSpace {
            name: row.get("name")?,
            bytes: u64::try_from(bytes).unwrap_or(0),
        })
    })?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::disk::{PROBE_NAME, SYNCS};
    use crate::scene::Scene;

    #[tokio::test]
    async fn space_is_told_by_table_and_growth_by_the_last_week() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocative.db");
        let scene = Scene::open_at(Some(path)).await;
        let room = scene.room("C1").await;
        for day in 0..10 {
            scene.say(&room, "words of a day", day * 86_400_000).await;
        }
        let capacity = scene.store.capacity(9 * 86_400_000).await.unwrap();
        assert_eq!((capacity.turns, capacity.turns_last_week), (10, 8));
        let sum: u64 = capacity.tables.iter().map(|table| table.bytes).sum();
        assert!(sum > 0 && sum <= capacity.database_bytes, "{capacity:?}");
        let names: Vec<&str> = capacity.tables.iter().map(|t| t.name.as_str()).collect();
        assert!(
            names.contains(&"turns") && FULL_TEXT.iter().all(|it| names.contains(it)),
            "{names:?}"
        );
        assert!(
            !names.iter().any(|name| FULL_TEXT
                .iter()
                .any(|it| name.starts_with(&format!("{it}_")))),
            "{names:?}"
        );
        assert_eq!(capacity.sync_us.len(), SYNCS);
        assert!(capacity.free_bytes.is_some_and(|bytes| bytes > 0));
        assert!(!folder.path().join(PROBE_NAME).exists());
    }
}
