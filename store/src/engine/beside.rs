//! What lies beside a database, by its name.

use std::path::{Path, PathBuf};

use crate::engine::contents::FOLDER_NAME;

/// The path with something behind its name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The folder of files that belongs to a database.
pub(crate) fn files_beside(database: &Path) -> PathBuf {
    database.with_file_name(FOLDER_NAME)
}
