//! Finds the files of a folder: a bounded step at a time, without following links to folders.

use std::fs::{self, Metadata, ReadDir};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The most entries of a folder and its subfolders that are read; the rest is skipped, and reported.
const ENTRIES_MAX: usize = 250_000;
/// The greatest depth of folders that is entered; each open folder takes a file handle.
const DEPTH_MAX: usize = 32;
/// The most entries that are read in one step.
const STEP_ENTRIES: usize = 1_000;
/// The most files that one step returns.
pub(super) const STEP_FILES: usize = 64;

/// A file-system entry with a document's name.
#[derive(Debug)]
pub(super) struct FoundFile {
    /// Its path below the folder.
    pub(super) path: PathBuf,
    /// The file, for a link its target; or why it can't be read.
    pub(super) file: Result<Metadata, String>,
}

/// A walk through a folder.
#[derive(Debug)]
pub(super) struct FolderWalk {
    root: PathBuf,
    open: Vec<(ReadDir, PathBuf)>,
    entries: usize,
    /// Entries that could not be read.
    pub(super) problems: Vec<String>,
}

/// A step of a walk.
pub(super) struct WalkStep {
    pub(super) found: Vec<FoundFile>,
    pub(super) is_over: bool,
}

impl FolderWalk {
    /// Begins at a folder.
    ///
    /// # Errors
    /// Why it can't be opened.
    pub(super) fn begin(root: &Path) -> std::io::Result<Self> {
        Ok(Self {
            root: root.to_owned(),
            open: vec![(fs::read_dir(root)?, PathBuf::new())],
            entries: 0,
            problems: Vec::new(),
        })
    }

    /// The next files that `is_document` accepts by their names.
    pub(super) fn step(&mut self, is_document: impl Fn(&Path) -> bool) -> WalkStep {
        let mut found = Vec::new();
        for _ in 0..STEP_ENTRIES {
            if found.len() >= STEP_FILES {
                break;
            }
            let Some((folder, path)) = self.open.last_mut() else {
                return WalkStep {
                    found,
                    is_over: true,
                };
            };
            let entry = match folder.next() {
                None => {
                    self.open.pop();
                    continue;
                }
                Some(Ok(entry)) => entry,
                Some(Err(error)) => {
                    let what = format!("{}: {error}", self.root.join(path).display());
                    self.problems.push(what);
                    self.open.pop();
                    continue;
                }
            };
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                let root = self.root.display();
                self.problems.push(format!(
                    "{root} has more than {ENTRIES_MAX} files and folders: the others are left out"
                ));
                self.open.clear();
                return WalkStep {
                    found,
                    is_over: true,
                };
            }
            let name = entry.file_name();
            // Hidden entries are no documents: .git, .obsidian, .trash.
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = path.join(&name);
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                self.enter(path);
            } else if is_document(&path) {
                let file = match fs::metadata(self.root.join(&path)) {
                    Ok(file) if file.is_file() => Ok(file),
                    Ok(_) if kind.is_symlink() => {
                        Err("it is a link to something that is no file".to_owned())
                    }
                    Ok(_) => Err("it is no ordinary file".to_owned()),
                    Err(_) if kind.is_symlink() => {
                        Err("it is a link that leads nowhere".to_owned())
                    }
                    Err(error) => Err(error.to_string()),
                };
                found.push(FoundFile { path, file });
            }
        }
        WalkStep {
            found,
            is_over: self.open.is_empty(),
        }
    }

    fn enter(&mut self, path: PathBuf) {
        let folder = self.root.join(&path);
        if self.open.len() >= DEPTH_MAX {
            let what = format!("{}: deeper than {DEPTH_MAX} folders", folder.display());
            self.problems.push(what);
            return;
        }
        match fs::read_dir(&folder) {
            Ok(open) => self.open.push((open, path)),
            Err(error) => self.problems.push(format!("{}: {error}", folder.display())),
        }
    }
}

/// The identity of a folder or file on its disk: distinguishes it from another one of the same path.
pub(super) fn identity(file: &Metadata) -> String {
    format!("{}:{}", file.dev(), file.ino())
}

/// The stamp of a file: changed content gives another stamp. Empty if it was changed just now, as a second change may
/// be too close to the first to be noticed.
pub(super) fn stamp(file: &Metadata, now_ms: i64) -> String {
    /// The longest tick of a file-system clock in use.
    const TICK_MS: i64 = 2_000;
    let changed_ms = file.ctime().saturating_mul(1_000);
    if (now_ms - changed_ms).abs() < TICK_MS {
        return String::new();
    }
    format!(
        "{} {}.{} {}.{} {}",
        file.len(),
        file.mtime(),
        file.mtime_nsec(),
        file.ctime(),
        file.ctime_nsec(),
        file.ino()
    )
}
