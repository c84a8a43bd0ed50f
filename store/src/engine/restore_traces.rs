//! Clears away, at the next open, what a killed restore left beside the database. A restore killed before
//! its rename counts as not having happened, so none of its files with people's words may stay.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::engine::backup::remove_database;
use crate::engine::beside::beside;
use crate::engine::content_copies::{ENDING, remove_folder};
use crate::engine::contents::cannot_read;

/// The ending of a database that is being made ready to take another one's place.
pub(crate) const READY_ENDING: &str = ".restoring";
/// What the name of a replaced database ends with, before the time.
pub(crate) const KEPT_ENDING: &str = ".before-restore-";
const LOG_ENDING: &str = "-wal";

/// Clears away what a killed restore left; the lock is held. Returns sentences for people.
///
/// # Errors
/// The disk refuses.
pub(crate) fn clear_traces(database: &Path) -> Result<Vec<String>, StoreError> {
    let mut cleared = 0;
    let ready = beside(database, READY_ENDING);
    if ready.exists() {
        remove_database(&ready).map_err(|error| cannot_read(&ready, &error))?;
        cleared += 1;
    }
    let kept = kept_beside(database)?;
    for path in &kept {
        if is_same_file(path, database) {
            take_back(path, database).map_err(|error| cannot_read(path, &error))?;
            cleared += 1;
        }
    }
    for path in kept.into_iter().filter(|path| path.exists()) {
        let name = path.to_string_lossy();
        let copy = name.strip_suffix(ENDING).filter(|_| path.is_dir());
        let copy = copy.or_else(|| name.strip_suffix(LOG_ENDING));
        if copy.is_some_and(|copy| !Path::new(copy).exists()) {
            remove(&path)?;
            cleared += 1;
        }
    }
    Ok(match cleared {
        0 => Vec::new(),
        _ => vec![
            "A restore was ended before it was done; the database is as it was, and what was left \
             of the restore is removed."
                .to_owned(),
        ],
    })
}

/// What lies beside the database under the name of a replaced one.
fn kept_beside(database: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let folder = match database.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let start = beside(database, KEPT_ENDING);
    let start = start.file_name().map(|name| name.to_string_lossy());
    let start = start.unwrap_or_default();
    let read = std::fs::read_dir(folder).and_then(|entries| {
        let paths = entries.map(|entry| Ok(entry?.path()));
        paths.collect::<std::io::Result<Vec<PathBuf>>>()
    });
    let mut paths = read.map_err(|error| cannot_read(folder, &error))?;
    paths.retain(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.starts_with(&*start))
    });
    Ok(paths)
}

/// Whether both names are of one file: then the restore was killed before it replaced the database.
fn is_same_file(path: &Path, database: &Path) -> bool {
    let id = |path: &Path| std::fs::metadata(path).map(|file| (file.dev(), file.ino()));
    id(path).is_ok_and(|kept| id(database).is_ok_and(|own| own == kept))
}

/// Removes the second name of the database. If only the second name has a log, the log is given back to the database.
fn take_back(kept: &Path, database: &Path) -> std::io::Result<()> {
    let (log, own_log) = (beside(kept, LOG_ENDING), beside(database, LOG_ENDING));
    if log.exists() && !own_log.exists() {
        std::fs::rename(&log, &own_log)?;
    }
    std::fs::remove_file(kept)
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match path.is_dir() {
        true => remove_folder(path),
        false => std::fs::remove_file(path).map_err(|error| cannot_read(path, &error)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_replaced_database_stays_and_one_that_never_was_replaced_has_one_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let write = |name: &str| std::fs::write(at(name), name).unwrap();
        for name in [
            "a.db",
            "a.db.restoring",
            "a.db.restoring-journal",
            "a.db.before-restore-1",
            "a.db.before-restore-1-wal",
            "a.db.before-restore-3-wal",
            "a.db.before-migration-2",
            "b.db.before-restore-9-wal",
        ] {
            write(name);
        }
        for name in ["a.db.before-restore-1.files", "a.db.before-restore-2.files"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        std::fs::hard_link(at("a.db"), at("a.db.before-restore-2")).unwrap();
        write("a.db.before-restore-2-wal");
        assert_eq!(clear_traces(&at("a.db")).unwrap().len(), 1);
        assert_eq!(
            names(folder.path()),
            [
                "a.db",
                "a.db-wal",
                "a.db.before-migration-2",
                "a.db.before-restore-1",
                "a.db.before-restore-1-wal",
                "a.db.before-restore-1.files",
                "b.db.before-restore-9-wal",
            ]
        );
        let log = std::fs::read_to_string(at("a.db-wal")).unwrap();
        assert_eq!(log, "a.db.before-restore-2-wal");
        assert_eq!(clear_traces(&at("a.db")).unwrap(), [""; 0]);
    }
}
