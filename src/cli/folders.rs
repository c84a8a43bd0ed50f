//! Checks whether the daemon will be able to use its folders, without making them.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use super::error::CliError;
use crate::config::Config;

/// How many bytes are written to see whether the disk has room.
const TRIED_BYTES: usize = 4_096;

/// Checks the data folder and the runtime folder; returns warnings.
///
/// # Errors
/// What no user could make work: a file in the way, a full or failing disk. That this process may not
/// write is a warning: the daemon may run as another user, in another unit.
pub(super) fn look(config: &Config) -> Result<Vec<String>, CliError> {
    let folders = [
        ("daemon.data_dir", &config.daemon.data_dir),
        ("daemon.runtime_dir", &config.daemon.runtime_dir),
    ];
    let mut warnings = Vec::new();
    for (setting, folder) in folders {
        let Err((place, cause)) = try_folder(folder) else {
            continue;
        };
        let place = place.display();
        // Another user may be able to, or the same one outside of a unit that makes the file system read-only.
        if matches!(
            cause.kind(),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
        ) {
            warnings.push(format!(
                "{setting}: {place} can't be written from here ({cause}); the daemon needs to, where and \
                 as whom it runs"
            ));
            continue;
        }
        return Err(CliError::Storage {
            what: format!("{setting} can't be used: {place}: {cause}"),
            advice: vocative_store::advice_on(&cause),
        });
    }
    Ok(warnings)
}

/// Writes a file in the folder, or in its nearest ancestor that exists, and removes it again.
fn try_folder(folder: &Path) -> Result<(), (&Path, std::io::Error)> {
    let place = folder
        .ancestors()
        .find(|place| place.symlink_metadata().is_ok());
    let place = place.unwrap_or(folder);
    let path = place.join(format!(".vocative-check-{}", std::process::id()));
    let tried = write(&path);
    let _ = std::fs::remove_file(&path);
    tried.map_err(|cause| (place, cause))
}

fn write(path: &Path) -> std::io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(&[0; TRIED_BYTES])?;
    file.sync_all()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::try_folder;

    #[test]
    fn a_folder_is_tried_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("a/b/c");
        assert!(try_folder(&missing).is_ok());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let below = file.join("data");
        let (place, cause) = try_folder(&below).unwrap_err();
        assert_eq!(place, file);
        assert_eq!(cause.kind(), std::io::ErrorKind::NotADirectory);
    }
}
