//! What migrations and restores keep beside a database.

use std::path::{Path, PathBuf};

use crate::StoreError;

/// The copies of a database whose files were last modified before a time.
pub(crate) fn copies_from_before(database: &Path, at_ms: i64) -> Vec<PathBuf> {
    let is_older = |path: &PathBuf| {
        let changed = std::fs::metadata(path).and_then(|file| file.modified());
        let since = changed.map(|at| at.duration_since(std::time::UNIX_EPOCH));
        matches!(since, Ok(Ok(since)) if i128::from(at_ms) >= since.as_millis().cast_signed())
    };
    let mut copies = kept_beside(database).unwrap_or_default();
    copies.retain(|path| !path.is_dir() && is_older(path));
    copies
}

/// What migrations and restores kept beside a database: copies, and folders with their files.
pub(crate) fn kept_beside(database: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let (Some(folder), Some(name)) = (database.parent(), database.file_name()) else {
        return Ok(Vec::new());
    };
    let cannot = |error: std::io::Error| StoreError::Unavailable {
        what: format!("{} can't be read: {error}", folder.display()),
    };
    let start = format!("{}.before-", name.to_string_lossy());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        if entry.file_name().to_string_lossy().starts_with(&start) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
