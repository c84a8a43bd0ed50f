//! Reads a file only if it is below its folder: the kernel refuses a path that leads out of it, even if links are
//! changed meanwhile.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnreadFile {
    /// It may not be read, or is no document: its document is removed.
    Refused(String),
    /// It no longer exists.
    Gone,
    /// It may be read later: the known document is kept.
    Failed(String),
}

impl UnreadFile {
    fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Gone,
            io::ErrorKind::PermissionDenied => {
                Self::Refused("the daemon may not read it".to_owned())
            }
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// The bytes of a file below a folder, or of the file `root` itself where `path` is `None`.
pub(crate) fn bytes(root: &Path, path: Option<&Path>, max: u64) -> Result<Vec<u8>, UnreadFile> {
    let file = match path {
        Some(path) => below(root, path)?,
        None => opened(root).map_err(|error| UnreadFile::of(&error))?,
    };
    let about = file.metadata().map_err(|error| UnreadFile::of(&error))?;
    if !about.is_file() {
        return Err(UnreadFile::Refused("it is no ordinary file".to_owned()));
    }
    let mut bytes = Vec::new();
    // A file that grows meanwhile is not read to its end.
    let read = file.take(max + 1).read_to_end(&mut bytes);
    read.map_err(|error| UnreadFile::of(&error))?;
    match bytes.len() as u64 > max {
        true => Err(too_large(max)),
        false => Ok(bytes),
    }
}

/// A file is larger than what is read.
pub(super) fn too_large(max: u64) -> UnreadFile {
    UnreadFile::Refused(format!("it is larger than {} KiB", max >> 10))
}

/// Opening never blocks: a pipe without a writer opens at once, and is no ordinary file.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

fn opened(path: &Path) -> io::Result<File> {
    Ok(File::from(rustix::fs::open(path, FLAGS, Mode::empty())?))
}

fn leads_out() -> UnreadFile {
    UnreadFile::Refused("it is a link that leads out of its folder".to_owned())
}

#[cfg(target_os = "linux")]
fn below(root: &Path, path: &Path) -> Result<File, UnreadFile> {
    use rustix::fs::{ResolveFlags, open, openat2};
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder =
        open(root, folder, Mode::empty()).map_err(|error| UnreadFile::of(&error.into()))?;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match openat2(&folder, path, FLAGS, Mode::empty(), beneath) {
        Ok(file) => Ok(File::from(file)),
        Err(Errno::XDEV | Errno::LOOP) => Err(leads_out()),
        // An old kernel, or a container that forbids it.
        Err(Errno::NOSYS | Errno::PERM) => checked(root, path),
        Err(error) => Err(UnreadFile::of(&error.into())),
    }
}

#[cfg(not(target_os = "linux"))]
fn below(root: &Path, path: &Path) -> Result<File, UnreadFile> {
    checked(root, path)
}

/// Checks where a path leads before it is opened: the best that is possible if the kernel can't do both in one step.
fn checked(root: &Path, path: &Path) -> Result<File, UnreadFile> {
    let real = |path: &Path| path.canonicalize().map_err(|error| UnreadFile::of(&error));
    let file = real(&root.join(path))?;
    if !file.starts_with(real(root)?) {
        return Err(leads_out());
    }
    match rustix::fs::open(&file, FLAGS | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(file) => Ok(File::from(file)),
        Err(Errno::LOOP) => Err(leads_out()),
        Err(error) => Err(UnreadFile::of(&error.into())),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_lies_outside_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("docs");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(home.path().join("secret.md"), "secret").unwrap();
        fs::write(root.join("a.md"), "inside").unwrap();
        symlink("../secret.md", root.join("out.md")).unwrap();
        symlink(home.path(), root.join("up")).unwrap();
        symlink("../a.md", root.join("sub/in.md")).unwrap();
        symlink("loop.md", root.join("loop.md")).unwrap();
        let of = |path: &str| bytes(&root, Some(Path::new(path)), 6);
        let checked_of = |path: &str| checked(&root, Path::new(path)).map(|_| ());
        assert_eq!(of("a.md"), Ok(b"inside".to_vec()));
        assert_eq!(of("sub/in.md"), Ok(b"inside".to_vec()));
        assert_eq!(checked_of("sub/in.md"), Ok(()));
        for path in ["out.md", "up/secret.md", "../secret.md"] {
            assert_eq!(of(path), Err(leads_out()), "{path}");
            assert_eq!(checked_of(path), Err(leads_out()), "{path}");
        }
        assert_eq!(of("loop.md"), Err(leads_out()));
        assert_eq!(of("none.md"), Err(UnreadFile::Gone));
        assert_eq!(bytes(&root.join("a.md"), None, 6), Ok(b"inside".to_vec()));
        assert_eq!(bytes(&root.join("a.md"), None, 5), Err(too_large(5)));
    }

    #[test]
    fn a_pipe_and_a_folder_are_no_documents() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe.md");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let refused = Err(UnreadFile::Refused("it is no ordinary file".to_owned()));
        assert_eq!(bytes(home.path(), Some(Path::new("pipe.md")), 9), refused);
        assert_eq!(bytes(home.path(), Some(Path::new(".")), 9), refused);
    }
}
