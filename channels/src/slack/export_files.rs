//! The files of a Slack export, in a folder or in the zip that Slack made of it.
//!
//! Only names of the expected shape are looked at, and nothing is ever written: an entry that names a
//! path elsewhere is just not found. What a zip entry inflates to is bounded and read as it inflates.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use crate::export::{ExportError, ExportFile, modified_ms};

/// The longest file of an export that is read, in bytes; a day of the busiest channel is far below.
pub(super) const FILE_MAX_BYTES: u64 = 512 << 20;

/// The lists of chats; an export has at least one.
pub(super) const INDEXES: [&str; 4] = ["channels.json", "groups.json", "dms.json", "mpims.json"];

/// Where the files are.
pub(super) struct ExportFiles {
    source: ExportSource,
    /// By name, with the lists at the root and the days below their folders.
    list: Vec<ExportFile>,
}

enum ExportSource {
    Folder(PathBuf),
    Zip {
        archive: Box<ZipArchive<BufReader<File>>>,
        /// Where each file is in the archive.
        index: BTreeMap<String, usize>,
    },
}

impl ExportFiles {
    /// Opens a folder, or a zip.
    pub(super) fn open(path: &Path) -> Result<Self, ExportError> {
        let metadata = std::fs::metadata(path).map_err(|cause| cannot(path, cause))?;
        let files = if metadata.is_dir() {
            Self::of_folder(path)
        } else {
            Self::of_zip(path, modified_ms(&metadata))
        }?;
        if files
            .list
            .iter()
            .any(|file| INDEXES.contains(&file.name.as_str()))
        {
            return Ok(files);
        }
        Err(ExportError::NotAnExport {
            what: format!(
                "{} is no Slack export: it has none of {}; give the zip that Slack made as it is, or the folder that it unpacks to (a single person's export as TXT can't be imported)",
                path.display(),
                INDEXES.join(", ")
            ),
        })
    }

    /// The files, in the order of their names.
    pub(super) fn list(&self) -> &[ExportFile] {
        &self.list
    }

    /// Opens one of them.
    pub(super) fn read(&mut self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let reader: Box<dyn Read + '_> = match &mut self.source {
            ExportSource::Folder(root) => Box::new(File::open(root.join(name))?),
            ExportSource::Zip { archive, index } => {
                let at = index.get(name).copied().ok_or(io::ErrorKind::NotFound)?;
                Box::new(archive.by_index(at).map_err(io::Error::other)?)
            }
        };
        Ok(Box::new(Bounded {
            reader,
            left: FILE_MAX_BYTES,
        }))
    }

    fn of_folder(root: &Path) -> Result<Self, ExportError> {
        let mut list = Vec::new();
        let mut folders = Vec::new();
        for entry in entries(root)? {
            let is_folder = entry.path().is_dir();
            match (entry.file_name().into_string(), is_folder) {
                (Ok(name), true) => folders.push(name),
                (Ok(name), false) => add_file(&mut list, name, &entry),
                // Slack writes no name that is not UTF-8.
                (Err(_), _) => {}
            }
        }
        for folder in folders {
            for entry in entries(&root.join(&folder))? {
                if let Ok(name) = entry.file_name().into_string() {
                    add_file(&mut list, format!("{folder}/{name}"), &entry);
                }
            }
        }
        list.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            source: ExportSource::Folder(root.to_owned()),
            list,
        })
    }

    fn of_zip(path: &Path, modified_ms: i64) -> Result<Self, ExportError> {
        let file = File::open(path).map_err(|cause| cannot(path, cause))?;
        let not_zip = |error: zip::result::ZipError| ExportError::NotAnExport {
            what: format!(
                "{} is no readable zip ({error}); if the download was cut, get it again; a folder that was unpacked from it works, too",
                path.display()
            ),
        };
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(not_zip)?;
        let mut found = BTreeMap::new();
        for at in 0..archive.len() {
            let entry = archive.by_index_raw(at).map_err(not_zip)?;
            // An entry whose name is not UTF-8 is none of Slack's.
            if let Some(name) = entry.name().ok().and_then(|name| plain_name(&name)) {
                found.insert(name, (at, entry.size()));
            }
        }
        let root = root_of(found.keys());
        let mut index = BTreeMap::new();
        let mut list = Vec::new();
        for (name, (at, bytes)) in found {
            let Some(name) = name.strip_prefix(&root).map(str::to_owned) else {
                continue;
            };
            if is_expected(&name) {
                index.insert(name.clone(), at);
                list.push(ExportFile {
                    name,
                    bytes,
                    modified_ms,
                });
            }
        }
        let archive = Box::new(archive);
        Ok(Self {
            source: ExportSource::Zip { archive, index },
            list,
        })
    }
}

fn cannot(path: &Path, cause: io::Error) -> ExportError {
    ExportError::Open {
        path: path.to_owned(),
        cause,
    }
}

fn entries(folder: &Path) -> Result<Vec<std::fs::DirEntry>, ExportError> {
    let read = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<_, _>>);
    read.map_err(|cause| cannot(folder, cause))
}

fn add_file(list: &mut Vec<ExportFile>, name: String, entry: &std::fs::DirEntry) {
    let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file);
    if let Some(metadata) = metadata.filter(|_| is_expected(&name)) {
        list.push(ExportFile {
            name,
            bytes: metadata.len(),
            modified_ms: modified_ms(&metadata),
        });
    }
}

/// A list at the root, or a day of a chat.
fn is_expected(name: &str) -> bool {
    match name.split_once('/') {
        None => INDEXES.contains(&name) || super::export::USERS.contains(&name),
        Some((_, day)) => is_day(day),
    }
}

/// `2026-01-10.json`
fn is_day(name: &str) -> bool {
    let Some(day) = name.strip_suffix(".json") else {
        return false;
    };
    let is_digits =
        |text: &str, length| text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
    let mut parts = day.split('-');
    matches!(
        (parts.next(), parts.next(), parts.next(), parts.next()),
        (Some(year), Some(month), Some(day), None)
            if is_digits(year, 4) && is_digits(month, 2) && is_digits(day, 2)
    )
}

/// An entry's name, if it stays below the root.
fn plain_name(name: &str) -> Option<String> {
    let is_plain = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    (is_plain && !name.contains('\\')).then(|| name.to_owned())
}

/// The folder inside a zip that holds the lists: its root, or the one folder that was packed.
fn root_of<'a>(mut names: impl Iterator<Item = &'a String>) -> String {
    let found = names.find_map(|name| {
        let index = INDEXES.iter().find(|index| name.ends_with(*index))?;
        let root = name.strip_suffix(index)?;
        (root.is_empty() || root.matches('/').count() == 1 && root.ends_with('/'))
            .then(|| root.to_owned())
    });
    found.unwrap_or_default()
}

/// Ends with an error where a file goes on after its limit.
struct Bounded<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.left = self.left.checked_sub(length as u64).ok_or_else(|| {
            let limit = FILE_MAX_BYTES >> 20;
            io::Error::other(format!("it is longer than {limit} MiB, which no day is"))
        })?;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_names_of_the_expected_shape_are_looked_at() {
        let table = [
            ("channels.json", true),
            ("users.json", true),
            ("general/2026-01-10.json", true),
            ("general/2026-1-10.json", false),
            ("general/notes.json", false),
            ("integration_logs.json", false),
            ("a/b/2026-01-10.json", false),
        ];
        for (name, expected) in table {
            assert_eq!(is_expected(name), expected, "{name}");
        }
        assert_eq!(plain_name("../../etc/2026-01-10.json"), None);
        assert_eq!(plain_name("/etc/2026-01-10.json"), None);
        assert_eq!(plain_name("..\\2026-01-10.json"), None);
    }

    #[test]
    fn a_file_that_goes_on_and_on_ends_with_an_error() {
        let mut endless = Bounded {
            reader: io::repeat(b' '),
            left: 100_000,
        };
        let error = io::copy(&mut endless, &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("longer than"));
    }
}
