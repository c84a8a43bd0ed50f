//! The bytes of files, beside the database: `files/ab/cdef…` by SHA-256, so that a name from a platform
//! never becomes a path, and the same bytes are stored once.
//!
//! A file is written under a temporary name, synced, and renamed in the transaction that refers to it. Renaming
//! and removing both happen on the writer's thread, so that no row can come to refer to bytes that are being
//! removed. A kill in between leaves bytes without a row; the next open removes them. The registry says which
//! table's rows refer to contents.

use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use vocative_contract::file::FileSink;

use crate::StoreError;
use crate::engine::schema::sync_folder;
use crate::engine::sql::{
    Connection, FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef,
};
use crate::registry::refers_to_contents;
use vocative_core::file::ContentId;

/// The folder beside the database.
pub(crate) const FOLDER_NAME: &str = "files";
/// The ending of a file's name while it is still being written.
const PARTIAL_ENDING: &str = "part";
impl ToSql for ContentId {
    fn to_sql(&self) -> crate::engine::sql::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(&self.0)))
    }
}

impl FromSql for ContentId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let bytes = <[u8; 32]>::try_from(value.as_blob()?);
        bytes.map(Self).map_err(|_| FromSqlError::InvalidType)
    }
}

/// Writes bytes to a temporary file; if dropped unfinished, it removes them.
#[derive(Debug)]
pub struct ContentWriter {
    file: File,
    path: PathBuf,
    hash: Sha256,
    size_bytes: u64,
    is_placed: bool,
}

/// Bytes that are synced to disk, but not yet renamed to their hash.
#[derive(Debug)]
pub(crate) struct FinishedContent {
    id: ContentId,
    writer: ContentWriter,
}

impl FileSink for ContentWriter {
    fn take(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all(bytes)?;
        self.hash.update(bytes);
        self.size_bytes += bytes.len() as u64;
        Ok(())
    }
}

impl ContentWriter {
    /// Creates a temporary file in the folder of contents.
    pub(crate) fn new(folder: &Path) -> Result<Self, StoreError> {
        make_folder(folder)?;
        let path = new_partial(folder);
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options
            .open(&path)
            .map_err(|error| cannot_read(&path, &error))?;
        Ok(Self {
            file,
            path,
            hash: Sha256::new(),
            size_bytes: 0,
            is_placed: false,
        })
    }

    /// Writes all bytes of a content.
    pub(crate) fn take_all(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let taken = self.take(bytes);
        taken.map_err(|error| cannot_read(&self.path, &error))
    }

    /// Bytes written so far.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Waits until the bytes are on the disk.
    pub(crate) fn finish(mut self) -> Result<FinishedContent, StoreError> {
        let synced = self.file.flush().and_then(|()| self.file.sync_all());
        synced.map_err(|error| cannot_read(&self.path, &error))?;
        let id = ContentId(self.hash.finalize_reset().into());
        Ok(FinishedContent { id, writer: self })
    }
}

impl Drop for ContentWriter {
    fn drop(&mut self) {
        if !self.is_placed {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl FinishedContent {
    pub(crate) fn id(&self) -> ContentId {
        self.id
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.writer.size_bytes
    }
}

/// Where the bytes of a content are.
pub(crate) fn path_of(folder: &Path, id: ContentId) -> PathBuf {
    let name = id.to_string();
    let (shelf, rest) = name.split_at(2);
    folder.join(shelf).join(rest)
}

/// Puts bytes under their hash, for a transaction that refers to them.
pub(crate) fn place_txn(folder: &Path, content: FinishedContent) -> Result<(), StoreError> {
    let FinishedContent { id, mut writer } = content;
    let path = path_of(folder, id);
    let placed = path.parent().map_or(Ok(()), make_folder);
    placed?;
    std::fs::rename(&writer.path, &path)
        .and_then(|()| sync_folder(&path))
        .map_err(|error| cannot_read(&path, &error))?;
    writer.is_placed = true;
    Ok(())
}

/// A new name for a file that is still being written.
pub(crate) fn new_partial(folder: &Path) -> PathBuf {
    let name = format!("{}.{PARTIAL_ENDING}", uuid::Uuid::new_v4().simple());
    folder.join(name)
}

/// Whether a path is that of a file that is still being written.
pub(crate) fn is_partial(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == PARTIAL_ENDING)
}

pub(crate) fn make_folder(folder: &Path) -> Result<(), StoreError> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(folder)
        .and_then(|()| sync_folder(folder))
        .map_err(|error| cannot_read(folder, &error))
}

pub(crate) fn cannot_read(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Unavailable {
        what: format!("{}: {error}", path.display()),
    }
}

pub(crate) fn read_at_most(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, StoreError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| cannot_read(path, &error))?,
    };
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| cannot_read(path, &error))?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= bytes_max))
}

/// Removes the bytes of a content, if they are there.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(cannot_read(path, &error))
        }
        Err(_) => Ok(()),
        Ok(()) => sync_folder(path).map_err(|error| cannot_read(path, &error)),
    }
}

/// What is wrong with the stored files, in sentences: bytes that are gone, or not those that were stored.
/// The connection must hold no snapshot, so that files deleted meanwhile are not reported as lost.
pub(crate) fn find_loss(connection: &Connection, folder: &Path) -> Result<Vec<String>, StoreError> {
    const FINDINGS_MAX: usize = 20;
    let mut findings = Vec::new();
    for (id, size_bytes) in referred_to(connection)? {
        let path = path_of(folder, id);
        let what = match hash_of(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "is not there".to_owned(),
            Err(error) => format!("can't be read: {error}"),
            Ok(found) if found == (id, size_bytes) => continue,
            Ok(_) => "holds other bytes than were stored".to_owned(),
        };
        if !is_referred_to(connection, id)? {
            continue;
        }
        findings.push(format!("the stored file {} {what}", path.display()));
        if findings.len() >= FINDINGS_MAX {
            break;
        }
    }
    Ok(findings)
}

/// The hash and the size of a file's bytes.
pub(crate) fn hash_of(path: &Path) -> std::io::Result<(ContentId, u64)> {
    let mut file = File::open(path)?;
    let (mut hash, mut size_bytes) = (Sha256::new(), 0);
    let mut block = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            return Ok((ContentId(hash.finalize().into()), size_bytes));
        }
        hash.update(&block[..read]);
        size_bytes += read as u64;
    }
}

/// The contents that rows refer to, each once, with their sizes.
pub(crate) fn referred_to(connection: &Connection) -> Result<Vec<(ContentId, u64)>, StoreError> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT DISTINCT sha256, size_bytes FROM ",
        refers_to_contents!(),
        " WHERE sha256 IS NOT NULL"
    ))?;
    let rows = statement.query_map([], |row| {
        let size_bytes: i64 = row.get("size_bytes")?;
        Ok((row.get("sha256")?, u64::try_from(size_bytes).unwrap_or(0)))
    })?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}

/// Whether a row still refers to a content.
pub(crate) fn is_referred_to(
    connection: &Connection,
    content: ContentId,
) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(concat!(
            "SELECT EXISTS (SELECT 1 FROM ",
            refers_to_contents!(),
            " WHERE sha256 = ?1) AS is_so"
        ))?
        .query_row([content], |row| row.get("is_so"))?)
}

/// What lies in the folder, with the hash it is named by.
pub(crate) fn stored(folder: &Path) -> Result<Vec<(PathBuf, Option<ContentId>)>, StoreError> {
    let mut found = Vec::new();
    for (path, is_folder) in entries(folder)? {
        if !is_folder {
            found.push((path, None));
            continue;
        }
        for (file, _) in entries(&path)?
            .into_iter()
            .filter(|(_, is_folder)| !is_folder)
        {
            let id = id_of(&path, &file);
            found.push((file, id));
        }
    }
    Ok(found)
}

/// The entries of a folder, each with whether it is a folder itself; empty if there is no such folder.
pub(crate) fn entries(folder: &Path) -> Result<Vec<(PathBuf, bool)>, StoreError> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| cannot_read(folder, &error))?,
    };
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.path(), entry.file_type()?.is_dir()))
    };
    let entries: std::io::Result<Vec<_>> = entries.map(entry).collect();
    entries.map_err(|error| cannot_read(folder, &error))
}

fn id_of(shelf: &Path, file: &Path) -> Option<ContentId> {
    let name = |path: &Path| path.file_name()?.to_str().map(str::to_owned);
    ContentId::from_name(&format!("{}{}", name(shelf)?, name(file)?))
}
