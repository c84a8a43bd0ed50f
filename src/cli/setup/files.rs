//! Writes the files of a set-up, and shows before what would change.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use secrecy::ExposeSecret as _;

use super::answers::{DaemonPlace, PlaceKind};
use super::written::SetupFiles;
use crate::cli::CliError;

/// Longer texts are not compared line by line.
const DIFF_LINES_MAX: usize = 2_000;
/// The ending of the file that keeps the previous configuration.
const KEPT_ENDING: &str = "before-setup";

/// What writing the files would change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// The changed lines of the configuration, with `-` and `+`; `None` if there was none, or it is the same.
    pub diff: Option<String>,
    /// Files that are not there yet, or hold something else.
    pub files: Vec<PathBuf>,
}

/// What writing the files would change. Secrets are only said to differ.
///
/// # Errors
/// If what is there can't be read.
pub(super) fn changes(place: &DaemonPlace, written: &SetupFiles) -> Result<Changes, CliError> {
    let mut changes = Changes::default();
    let path = place.file();
    match read(&path)? {
        Some(there) if there == written.configuration => {}
        there => {
            changes.diff = there.map(|there| diff(&there, &written.configuration));
            changes.files.push(path);
        }
    }
    for (name, secret) in &written.secrets {
        let path = place.credentials().join(name);
        let there = read(&path)?;
        if there.as_deref().map(str::trim_end) != Some(secret.expose_secret()) {
            changes.files.push(path);
        }
    }
    Ok(changes)
}

fn read(path: &Path) -> Result<Option<String>, CliError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(CliError::failed(
            format!("{} can't be read", path.display()),
            cause,
        )),
    }
}

/// Writes all files, the configuration last: a daemon that starts in between finds the old one, or the new one with its
/// secrets. A previous configuration that differs is kept beside the new one; returns its path.
///
/// # Errors
/// If a file can't be written. The configuration that was there is there still; secrets before the failed file are new.
pub(super) fn write(
    place: &DaemonPlace,
    written: &SetupFiles,
) -> Result<Option<PathBuf>, CliError> {
    let (folder_mode, file_mode) = match place.kind {
        // The daemon runs as a user of its own and reads the configuration, which holds no secret.
        PlaceKind::System => (0o755, 0o644),
        PlaceKind::User | PlaceKind::Files => (0o700, 0o600),
    };
    make_folder(&place.folder, folder_mode)?;
    make_folder(&place.credentials(), 0o700)?;
    for (name, secret) in &written.secrets {
        let path = place.credentials().join(name);
        replace(&path, &format!("{}\n", secret.expose_secret()), 0o600)?;
    }
    let path = place.file();
    let kept = path.with_extension(format!("toml.{KEPT_ENDING}"));
    let before = read(&path)?.filter(|there| *there != written.configuration);
    if let Some(before) = &before {
        replace(&kept, before, 0o600)?;
    }
    replace(&path, &written.configuration, file_mode)?;
    Ok(before.map(|_| kept))
}

/// Makes a folder if it does not exist; an existing one keeps its mode.
fn make_folder(folder: &Path, mode: u32) -> Result<(), CliError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(mode);
    builder
        .create(folder)
        .map_err(|cause| unwritable(folder, cause))
}

/// Replaces a file in one step, so that a kill leaves either the old or the new one.
pub(super) fn replace(path: &Path, text: &str, mode: u32) -> Result<(), CliError> {
    let fail = |cause| unwritable(path, cause);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".setup");
    let beside = path.with_file_name(name);
    match std::fs::remove_file(&beside) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(fail(cause)),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(&beside).map_err(fail)?;
    file.write_all(text.as_bytes()).map_err(fail)?;
    file.set_permissions(Permissions::from_mode(mode))
        .map_err(fail)?;
    file.sync_all().map_err(fail)?;
    std::fs::rename(&beside, path).map_err(fail)
}

fn unwritable(path: &Path, cause: std::io::Error) -> CliError {
    let advice = (cause.kind() == ErrorKind::PermissionDenied)
        .then(|| "run it as root (sudo vocative setup), or choose another place".to_owned());
    CliError::Failed {
        what: format!("{} can't be written", path.display()),
        advice,
        cause: Some(Box::new(cause)),
    }
}

/// The lines that only one of the texts has, in order: `-` before those of the first, `+` before those of the second.
pub(super) fn diff(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    if old.len().max(new.len()) > DIFF_LINES_MAX {
        return format!("-{} lines\n+{} lines\n", old.len(), new.len());
    }
    // `common[i][j]`: how many lines the rest of the old text from `i` on and of the new one from `j` on have in
    // common.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = match old[i] == new[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let mut out = String::new();
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            out.push_str(&format!("-{}\n", old[i]));
            i += 1;
        } else {
            out.push_str(&format!("+{}\n", new[j]));
            j += 1;
        }
    }
    out
}
