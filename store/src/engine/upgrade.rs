//! Brings an older database to the newest schema: first makes a copy of it, then applies all steps in one
//! transaction. Until that is committed the database is as it was, whatever ends the upgrade.

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::StoreError;
use crate::engine::backup::{CopyProgress, copy_pages, stand_alone};
use crate::engine::disk::free_bytes;
use crate::engine::faults::{not_opened, unusable};
use crate::engine::lock::make_private;
use crate::engine::schema::{Migration, apply_txn, check, sync_folder};
use crate::engine::watch::{OpenPhase, OpenWatch};

/// Bytes that must be free besides those of the copy, for the write-ahead log of the upgrade itself. A step that
/// needs more fails, and has changed nothing.
const ROOM_BESIDE_BYTES: u64 = 64 << 20;

/// Brings the database to the newest of `migrations`; returns what was done, in sentences.
///
/// # Errors
/// `Newer` for a newer database; `Open` if it is not ours or one of its migrations had another text;
/// `Unusable` or `Damaged` if the copy or a step fails, `Stopped` if it was stopped: then nothing has
/// changed.
pub(crate) fn upgrade(
    connection: &mut Connection,
    path: &Path,
    migrations: &[Migration],
    now_ms: i64,
    watch: &OpenWatch,
) -> Result<Vec<String>, StoreError> {
    let applied = check(connection, path, migrations)?;
    let steps = Steps {
        all: migrations,
        applied,
        through: u32::try_from(migrations.len()).unwrap_or(u32::MAX),
    };
    if steps.applied >= steps.through {
        return Ok(Vec::new());
    }
    if applied == 0 {
        steps.apply(connection, path, now_ms, watch)?;
        return Ok(vec![format!(
            "A new database was made, with schema {}.",
            steps.through
        )]);
    }
    let copy = keep_copy(connection, path, applied + 1, watch)?;
    steps.apply(connection, path, now_ms, watch)?;
    Ok(vec![format!(
        "Migrated from schema {applied} to {}; the database as it was is kept at {}.",
        steps.through,
        copy.display()
    )])
}

/// The steps of an upgrade.
struct Steps<'a> {
    all: &'a [Migration],
    applied: u32,
    through: u32,
}

impl Steps<'_> {
    fn apply(
        &self,
        connection: &mut Connection,
        path: &Path,
        now_ms: i64,
        watch: &OpenWatch,
    ) -> Result<(), StoreError> {
        let failed = |doing: &str, error: &rusqlite::Error| {
            if watch.is_stopped() {
                return StoreError::Stopped;
            }
            not_opened(path, doing, error)
        };
        let transaction = connection
            .transaction()
            .map_err(|error| failed("", &error))?;
        for (number, migration) in (1_u32..).zip(self.all).skip(self.applied as usize) {
            watch.enter(OpenPhase::Migrating {
                number,
                through: self.through,
            });
            let applied = watch.interruptible(&transaction, || {
                apply_txn(&transaction, number, migration, now_ms)
            });
            applied.map_err(|error| {
                let name = migration.name;
                let doing = format!("migration {number} ({name}) failed and changed nothing: ");
                failed(&doing, &error)
            })?;
            if watch.is_stopped() {
                return Err(StoreError::Stopped);
            }
        }
        transaction
            .commit()
            .map_err(|error| failed("the upgrade failed and changed nothing: ", &error))
    }
}

/// Writes a copy beside the database. It gets its name only when it is complete and on disk.
fn keep_copy(
    connection: &Connection,
    path: &Path,
    number: u32,
    watch: &OpenWatch,
) -> Result<PathBuf, StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".before-{number:04}"));
    let copy = PathBuf::from(name);
    let partial = copy.with_extension(format!("before-{number:04}-partial"));
    let cannot = |error: std::io::Error| unusable(&partial, &error);
    let no_copy = |error: rusqlite::Error| {
        let doing = format!("no copy before migration {number}: ");
        not_opened(path, &doing, &error)
    };
    if partial.exists() {
        std::fs::remove_file(&partial).map_err(cannot)?;
    }
    check_room(connection, path).map_err(cannot)?;
    let written = write_copy(connection, &partial, watch);
    if !matches!(written, Ok(true)) {
        // A copy that could not be removed is removed at the next start.
        let _ = std::fs::remove_file(&partial);
    }
    if !written.map_err(no_copy)? {
        return Err(StoreError::Stopped);
    }
    File::open(&partial)
        .and_then(|file| file.sync_all())
        .and_then(|()| std::fs::rename(&partial, &copy))
        .and_then(|()| sync_folder(&copy))
        .map_err(cannot)?;
    Ok(copy)
}

/// Returns whether the copy is whole; it is not if opening was given up.
fn write_copy(
    connection: &Connection,
    partial: &Path,
    watch: &OpenWatch,
) -> rusqlite::Result<bool> {
    // SQLite keeps the mode of an existing empty file, but would make a new one readable by all.
    make_private(partial).map_err(|error| {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
        rusqlite::Error::SqliteFailure(code, Some(error.to_string()))
    })?;
    let mut copy = Connection::open(partial)?;
    copy.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")?;
    let goes_on = |progress| {
        if let CopyProgress::Copied { bytes, of } = progress {
            watch.enter(OpenPhase::Copying { bytes, of });
        }
        !watch.is_stopped()
    };
    let is_whole = copy_pages(connection, &mut copy, None, &goes_on)?;
    copy.close().map_err(|(_, error)| error)?;
    if is_whole {
        stand_alone(partial)?;
    }
    Ok(is_whole)
}

/// Refuses to fill the disk with half a copy.
fn check_room(connection: &Connection, path: &Path) -> std::io::Result<()> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    let bytes = pragma("page_count")
        .and_then(|pages| Ok(u64::from(pages) * u64::from(pragma("page_size")?)))
        .map_err(std::io::Error::other)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    match lack_of_room(bytes, free_bytes(folder)?) {
        Some(what) => Err(std::io::Error::new(std::io::ErrorKind::StorageFull, what)),
        None => Ok(()),
    }
}

/// Says what is wrong if a database of that size does not fit into the free space.
fn lack_of_room(bytes: u64, free_bytes: u64) -> Option<String> {
    let wanted = bytes.saturating_add(ROOM_BESIDE_BYTES);
    (free_bytes < wanted).then(|| {
        format!(
            "the copy that is kept before an upgrade needs {} MiB, and {} MiB are free",
            wanted >> 20,
            free_bytes >> 20
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_room_for_the_copy_is_told_of_before_it_is_full() {
        assert_eq!(lack_of_room(1 << 20, 65 << 20), None);
        assert_eq!(
            lack_of_room(1 << 30, 1 << 30).unwrap(),
            "the copy that is kept before an upgrade needs 1088 MiB, and 1024 MiB are free"
        );
    }
}
