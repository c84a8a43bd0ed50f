//! The stored files of a copy of a database: `NAME.files/ab/cdef…` beside the copy `NAME`, laid out as
//! `files/` is beside the database.
//!
//! Every content is read and its hash compared, wherever it comes from and even if the copy has it already:
//! a copy holds the bytes that were stored, or says that it doesn't. Contents are only ever added under
//! their hash, and removed once nothing refers to them: after a kill at any instant, the copy still has
//! whatever it had before.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use sha2::{Digest as _, Sha256};

use crate::StoreError;
use crate::engine::beside::{beside, files_beside};
use crate::engine::contents::{
    cannot_read, entries, hash_of, is_partial, is_referred_to, make_folder, new_partial, path_of,
    referred_to, stored,
};
use crate::engine::error::cannot;
use crate::engine::schema::sync_folder;
use crate::registry::refers_to_contents;
use vocative_core::file::ContentId;

/// The ending that makes a copy's name the name of the folder with its files.
pub(crate) const ENDING: &str = ".files";
/// Bytes read at once.
const BLOCK_BYTES: usize = 1 << 16;

/// A content with its size.
pub(crate) type WantedContent = (ContentId, u64);

/// Where contents may come from.
#[derive(Clone, Debug)]
pub(crate) struct CopySource {
    /// The folder.
    pub folder: PathBuf,
    /// Whether a hard link may replace a copy of the bytes. It must not where one of the two files has to
    /// survive a failing disk or a program that writes into the other.
    pub may_link: bool,
}

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    /// Contents that the folder now has.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Contents that no source has as they were stored, and what is wrong with the last source's.
    pub missing: Vec<(ContentId, String)>,
}

/// The folder of a copy's contents.
pub(crate) fn folder_of_copy(copy: &Path) -> PathBuf {
    beside(copy, ENDING)
}

/// The contents that a database file without a log refers to, each once; none if its schema is older than
/// stored files.
pub(crate) fn contents_of(database: &Path) -> Result<Vec<WantedContent>, StoreError> {
    let said = |error: rusqlite::Error| cannot(format!("{}: {error}", database.display()));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags).map_err(said)?;
    let sql = concat!(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '",
        refers_to_contents!(),
        "')"
    );
    let knows_files: bool = connection
        .query_row(sql, [], |row| row.get(0))
        .map_err(said)?;
    match knows_files {
        true => referred_to(&crate::engine::sql::Connection::of(&connection)),
        false => Ok(Vec::new()),
    }
}

/// Which of the missing contents a database that may be in use still refers to: contents that were deleted
/// while the copy was made are not lost.
pub(crate) fn still_referred_to(
    database: &Path,
    missing: Vec<(ContentId, String)>,
) -> Result<Vec<String>, StoreError> {
    let said = |error: rusqlite::Error| cannot(format!("{}: {error}", database.display()));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags).map_err(said)?;
    let mut lost = Vec::new();
    for (id, what) in missing {
        if is_referred_to(&crate::engine::sql::Connection::of(&connection), id)? {
            lost.push(what);
        }
    }
    Ok(lost)
}

/// Brings contents into a folder: a content that the folder does not have intact is taken from the first
/// source that has it intact. `tell` is told how many bytes are done.
pub(crate) fn copy_contents(
    wanted: &[WantedContent],
    sources: &[CopySource],
    into: &Path,
    tell: &dyn Fn(u64),
) -> Result<Copied, StoreError> {
    let mut copied = Copied::default();
    let mut shelves = BTreeSet::new();
    for (id, size_bytes) in wanted {
        let path = path_of(into, *id);
        match bring(*id, *size_bytes, sources, into, &path)? {
            Ok(is_new) => {
                copied.files += 1;
                copied.bytes += size_bytes;
                if is_new {
                    shelves.insert(path);
                }
            }
            Err(what) => copied.missing.push((*id, what)),
        }
        tell(copied.bytes);
    }
    for path in &shelves {
        sync_folder(path).map_err(|error| cannot_read(path, &error))?;
    }
    Ok(copied)
}

/// Copies the stored bytes of a database's file to a path, and compares them with their hash. Says what is
/// wrong if they are missing or not as they were stored.
///
/// # Errors
/// The copy can't be written.
pub fn copy_stored_file(
    database: &Path,
    id: ContentId,
    to: &Path,
) -> Result<Result<(), String>, StoreError> {
    let source = CopySource {
        folder: files_beside(database),
        may_link: false,
    };
    let folder = to.parent().unwrap_or(Path::new("."));
    let from = path_of(&source.folder, id);
    let wrong = take(id, &source, &from, folder, to)?;
    Ok(wrong.map_or(Ok(()), |what| {
        Err(format!("the stored file {} {what}", from.display()))
    }))
}

/// Brings one content. Returns whether it had to be copied; or what is wrong with it.
fn bring(
    id: ContentId,
    size_bytes: u64,
    sources: &[CopySource],
    into: &Path,
    path: &Path,
) -> Result<Result<bool, String>, StoreError> {
    if hash_of(path).is_ok_and(|found| found == (id, size_bytes)) {
        return Ok(Ok(false));
    }
    let mut wrong = None;
    for source in sources {
        let from = path_of(&source.folder, id);
        match take(id, source, &from, into, path)? {
            None => return Ok(Ok(true)),
            // Only the fault of the last source is reported: it is the one that ought to have the file.
            Some(what) => wrong = Some(format!("the stored file {} {what}", from.display())),
        }
    }
    let nowhere = || format!("the stored file {id} is nowhere");
    Ok(Err(wrong.unwrap_or_else(nowhere)))
}

/// Takes a content from a source; returns what is wrong with the source's file, if anything.
fn take(
    id: ContentId,
    source: &CopySource,
    from: &Path,
    into: &Path,
    path: &Path,
) -> Result<Option<String>, StoreError> {
    let mut file = match File::open(from) {
        Err(error) => return Ok(Some(wrong_with(&error))),
        Ok(file) => file,
    };
    make_folder(into)?;
    path.parent().map_or(Ok(()), make_folder)?;
    if source.may_link && hash_of(from).is_ok_and(|(found, _)| found == id) {
        // A link does not replace an existing file.
        let _ = std::fs::remove_file(path);
        if std::fs::hard_link(from, path).is_ok() {
            return Ok(None);
        }
    }
    let partial = Partial(new_partial(into));
    let mut target = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&partial.0)
        .map_err(|error| unwritable(&partial.0, &error))?;
    let mut hash = Sha256::new();
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        let read = match file.read(&mut block) {
            Err(error) => return Ok(Some(wrong_with(&error))),
            Ok(0) => break,
            Ok(read) => read,
        };
        hash.update(&block[..read]);
        target
            .write_all(&block[..read])
            .map_err(|error| unwritable(&partial.0, &error))?;
    }
    if ContentId(hash.finalize().into()) != id {
        return Ok(Some("holds other bytes than were stored".to_owned()));
    }
    target
        .sync_all()
        .and_then(|()| std::fs::rename(&partial.0, path))
        .map_err(|error| unwritable(path, &error))?;
    Ok(None)
}

/// A file that is still being written; removed on drop unless it was renamed.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn wrong_with(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "is not there".to_owned(),
        _ => format!("can't be read: {error}"),
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> StoreError {
    cannot(format!("{}: {error}", path.display()))
}

/// Links the contents that a database refers to into another folder; all contents if the database can't be
/// read. Missing contents are skipped.
pub(crate) fn link_contents(database: &Path, from: &Path, into: &Path) -> Result<(), StoreError> {
    let ids: Vec<ContentId> = match contents_of(database) {
        Ok(wanted) => wanted.into_iter().map(|(id, _)| id).collect(),
        Err(_) => stored(from)?.into_iter().filter_map(|it| it.1).collect(),
    };
    for id in ids {
        let (from, path) = (path_of(from, id), path_of(into, id));
        if !from.is_file() {
            continue;
        }
        path.parent().map_or(Ok(()), make_folder)?;
        std::fs::hard_link(&from, &path)
            .or_else(|_| std::fs::copy(&from, &path).map(drop))
            .map_err(|error| unwritable(&path, &error))?;
    }
    Ok(())
}

/// Removes the contents that a copy does not refer to, and folders that are empty afterwards. Files that are
/// not contents belong to others, and stay.
pub(crate) fn remove_others(folder: &Path, wanted: &[WantedContent]) -> Result<(), StoreError> {
    let wanted: HashSet<ContentId> = wanted.iter().map(|(id, _)| *id).collect();
    for (path, id) in stored(folder)? {
        if id.is_some_and(|id| !wanted.contains(&id)) || is_partial(&path) {
            std::fs::remove_file(&path).map_err(|error| unwritable(&path, &error))?;
        }
    }
    for (shelf, _) in entries(folder)?.into_iter().filter(|(_, is)| *is) {
        // Fails, as it should, for a folder that is not empty.
        let _ = std::fs::remove_dir(&shelf);
    }
    let _ = std::fs::remove_dir(folder);
    Ok(())
}

/// Removes a copy's contents.
pub(crate) fn remove_folder(folder: &Path) -> Result<(), StoreError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(unwritable(folder, &error))
        }
        _ => Ok(()),
    }
}

/// Gives contents to the owner of the database's folder, even if root copied them.
pub(crate) fn own_like_parent(folder: &Path) -> Result<(), StoreError> {
    let model = folder.parent().map(std::fs::metadata);
    let Some(Ok(model)) = model.filter(|_| folder.is_dir()) else {
        return Ok(());
    };
    let own = |path: &Path| -> std::io::Result<()> {
        let is = std::fs::metadata(path)?;
        match (is.uid(), is.gid()) == (model.uid(), model.gid()) {
            true => Ok(()),
            false => std::os::unix::fs::chown(path, Some(model.uid()), Some(model.gid())),
        }
    };
    let mut all = vec![folder.to_owned()];
    for (path, is_folder) in entries(folder)? {
        if is_folder {
            all.extend(entries(&path)?.into_iter().map(|(path, _)| path));
        }
        all.push(path);
    }
    all.iter()
        .try_for_each(|path| own(path).map_err(|error| unwritable(path, &error)))
}
