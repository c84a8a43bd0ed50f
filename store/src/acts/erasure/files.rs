//! Files beside the database: removes old copies, and searches all files for what was erased.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::columns::ColumnHit;
use super::needles::Needles;
use crate::StoreError;
use crate::engine::content_copies::{ENDING, remove_folder};
use crate::engine::kept_copies::kept_beside;
use vocative_core::ids::ErasureId;

/// Bytes read at once.
const BLOCK_BYTES: usize = 1 << 20;
/// Folders below the database's that are searched.
const DEPTH_MAX: usize = 3;

/// What a search of the files found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Texts looked for, each in all its escaped forms.
    pub texts: u64,
    /// Files searched.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that hold one of the texts.
    pub hits: Vec<FileHit>,
    /// Columns of the database that hold one of the texts.
    pub columns: Vec<ColumnHit>,
}

/// A file that holds something erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHit {
    /// The file.
    pub path: PathBuf,
    /// How many occurrences.
    pub count: u64,
}

/// Removes the copies that migrations and restores of a database kept, except those that have
/// carried out these erasures themselves: a database that a restore replaced may be newer than the
/// backup in its place, and the only copy of what was said since.
pub(super) fn remove_old_copies(
    database: &Path,
    ids: &[ErasureId],
) -> Result<Vec<PathBuf>, StoreError> {
    let cannot = |path: &Path, error: &std::io::Error| StoreError::Unavailable {
        what: format!("{} can't be removed: {error}", path.display()),
    };
    let mut removed = Vec::new();
    for copy in old_copies(database, ids)? {
        std::fs::remove_file(&copy).map_err(|error| cannot(&copy, &error))?;
        removed.push(copy);
    }
    for contents in kept_beside(database)?
        .into_iter()
        .filter(|path| path.is_dir())
    {
        if !is_folder_of_a_copy(&contents) {
            remove_folder(&contents)?;
            removed.push(contents);
        }
    }
    Ok(removed)
}

/// The copies of a database that have not carried out these erasures themselves.
pub(super) fn old_copies(database: &Path, ids: &[ErasureId]) -> Result<Vec<PathBuf>, StoreError> {
    let mut copies = kept_beside(database)?;
    copies.retain(|path| !path.is_dir() && !has_carried_out(path, ids));
    Ok(copies)
}

/// Whether the stored files in a folder belong to an existing copy.
fn is_folder_of_a_copy(folder: &Path) -> bool {
    let copy = folder.to_str().and_then(|name| name.strip_suffix(ENDING));
    copy.is_some_and(|copy| Path::new(copy).is_file())
}

/// Whether a copy is a database that has finished all these erasures. One that can't be read, or has
/// a log of its own, counts as not: it may hold what was erased.
fn has_carried_out(copy: &Path, ids: &[ErasureId]) -> bool {
    let mut log = copy.as_os_str().to_owned();
    log.push("-wal");
    if Path::new(&log).exists() {
        return false;
    }
    let Some(path) = copy.to_str() else {
        return false;
    };
    // A copy is not written to, and opening it must leave no file beside it.
    let path = path
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let finished = || -> crate::engine::sql::Result<bool> {
        let connection = Connection::open_with_flags(format!("file:{path}?immutable=1"), flags)?;
        let mut statement = connection
            .prepare("SELECT 1 FROM erasures WHERE uuid = ?1 AND finished_at_ms IS NOT NULL")?;
        for id in ids {
            if !statement.exists([id.0.as_bytes()])? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    finished().unwrap_or(false)
}

/// Searches every file in a folder and those below it.
pub(super) fn search_files(
    folder: &Path,
    needles: &Needles,
    texts: u64,
) -> Result<Verification, StoreError> {
    let mut found = Verification {
        texts,
        ..Verification::default()
    };
    for path in files_below(folder, DEPTH_MAX)? {
        let searched = search_file(&path, needles);
        let (bytes, count) = match searched {
            // SQLite removes its own files at any time.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            other => other.map_err(|error| cannot_read(&path, &error))?,
        };
        found.files += 1;
        found.bytes += bytes;
        if count > 0 {
            found.hits.push(FileHit { path, count });
        }
    }
    Ok(found)
}

fn cannot_read(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Unavailable {
        what: format!("{} can't be searched: {error}", path.display()),
    }
}

fn files_below(folder: &Path, depth: usize) -> Result<Vec<PathBuf>, StoreError> {
    let mut files = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(|error| cannot_read(folder, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| cannot_read(folder, &error))?;
        let kind = entry
            .file_type()
            .map_err(|error| cannot_read(folder, &error))?;
        if kind.is_file() {
            files.push(entry.path());
        } else if kind.is_dir() && depth > 0 {
            files.extend(files_below(&entry.path(), depth - 1)?);
        }
    }
    files.sort();
    Ok(files)
}

/// Searches a file in blocks that overlap by the longest needle.
fn search_file(path: &Path, needles: &Needles) -> std::io::Result<(u64, u64)> {
    let mut file = File::open(path)?;
    let overlap = needles.longest();
    let mut window: Vec<u8> = Vec::new();
    let (mut bytes, mut count) = (0, 0);
    loop {
        let read = file
            .by_ref()
            .take(BLOCK_BYTES as u64)
            .read_to_end(&mut window)?;
        bytes += read as u64;
        let is_last = read < BLOCK_BYTES;
        let within = if is_last {
            window.len()
        } else {
            window.len().saturating_sub(overlap)
        };
        count += needles.count(&window, within);
        if is_last {
            return Ok((bytes, count));
        }
        window.drain(..within);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_text_across_two_blocks_is_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let needles = Needles::new([("zebra-7f3a".to_owned(), None)]);
        let mut bytes = vec![b'.'; BLOCK_BYTES - 4];
        bytes.extend_from_slice(b"zebra-7f3a");
        bytes.resize(2 * BLOCK_BYTES, b'.');
        let path = folder.path().join("file");
        std::fs::write(&path, &bytes).unwrap();
        let found = search_files(folder.path(), &needles, 1).unwrap();
        let expected = Verification {
            texts: 1,
            files: 1,
            bytes: bytes.len() as u64,
            hits: vec![FileHit { path, count: 1 }],
            columns: Vec::new(),
        };
        assert_eq!(found, expected);
    }
}
