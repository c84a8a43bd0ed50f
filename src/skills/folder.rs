//! The files of one skill: limited in number and size, without links, and only from its folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::knowledge::opening::{UnreadFile, bytes};

/// The most files of a skill.
const FILES_MAX: usize = 256;
/// The most bytes of all its files together.
const BYTES_MAX: u64 = 4 << 20;
/// The greatest depth of folders below its own.
const DEPTH_MAX: usize = 6;

/// The names of the folders in a folder, and whether these are all.
pub(super) fn skills_of(folder: &Path, max: usize) -> std::io::Result<(BTreeSet<String>, bool)> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        if name.starts_with('.') || !(kind.is_dir() || kind.is_symlink()) {
            continue;
        }
        if names.len() >= max {
            return Ok((names, false));
        }
        names.insert(name);
    }
    Ok((names, true))
}

/// All files of a skill by their paths below its folder. Names that begin with a dot are skipped.
pub(super) fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let about = fs::symlink_metadata(folder).map_err(|error| error.to_string())?;
    if !about.is_dir() {
        return Err("it is a link; put the folder itself there".to_owned());
    }
    let mut paths = Vec::new();
    list(folder, Path::new(""), 0, &mut paths)?;
    let (mut files, mut left) = (BTreeMap::new(), BYTES_MAX);
    for (path, name) in paths {
        let content = bytes(folder, Some(&path), left).map_err(|unread| match unread {
            UnreadFile::Gone => format!("{name}: it went away while it was read"),
            UnreadFile::Refused(_) if left < BYTES_MAX || is_larger(&folder.join(&path)) => {
                format!("its files have more than {} MiB", BYTES_MAX >> 20)
            }
            UnreadFile::Refused(why) | UnreadFile::Failed(why) => format!("{name}: {why}"),
        })?;
        left -= content.len() as u64;
        files.insert(name, content);
    }
    Ok(files)
}

fn is_larger(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() > BYTES_MAX)
}

fn list(
    root: &Path,
    below: &Path,
    depth: usize,
    paths: &mut Vec<(PathBuf, String)>,
) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!(
            "{}: deeper than {DEPTH_MAX} folders",
            below.display()
        ));
    }
    let failed = |error: std::io::Error| format!("{}: {error}", root.join(below).display());
    for entry in fs::read_dir(root.join(below)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = below.join(entry.file_name());
        let Some(name) = path
            .to_str()
            .filter(|name| !name.contains(char::is_control))
        else {
            return Err(format!("{}: its name is not plain UTF-8", path.display()));
        };
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            list(root, &path, depth + 1, paths)?;
        } else if kind.is_file() {
            if paths.len() >= FILES_MAX {
                return Err(format!("it has more than {FILES_MAX} files"));
            }
            let name = name.to_owned();
            paths.push((path, name));
        } else {
            return Err(format!(
                "{name} is a link or no ordinary file, which a skill must not have"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn skill() -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let skill = home.path().join("pdf-forms");
        fs::create_dir_all(skill.join("references/deep")).unwrap();
        fs::create_dir_all(skill.join(".git")).unwrap();
        fs::write(skill.join("SKILL.md"), "text").unwrap();
        fs::write(skill.join("references/deep/a.md"), "a").unwrap();
        fs::write(skill.join(".git/config"), "hidden").unwrap();
        (home, skill)
    }

    #[test]
    fn a_folder_is_read_with_all_below_it() {
        let (home, skill) = skill();
        let read = files(&skill).unwrap();
        let expected = [("SKILL.md", "text"), ("references/deep/a.md", "a")];
        let expected = expected.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
        assert_eq!(read, BTreeMap::from(expected));
        fs::write(home.path().join("readme.md"), "no folder").unwrap();
        let named = skills_of(home.path(), 9).unwrap();
        assert_eq!(named, (BTreeSet::from(["pdf-forms".to_owned()]), true));
        fs::create_dir(home.path().join("other")).unwrap();
        assert!(!skills_of(home.path(), 1).unwrap().1);
    }

    #[test]
    fn nothing_leads_out_of_a_folder() {
        let (home, skill) = skill();
        fs::write(home.path().join("secret"), "secret").unwrap();
        let linked = home.path().join("linked");
        symlink(&skill, &linked).unwrap();
        assert!(files(&linked).unwrap_err().contains("it is a link"));
        symlink("../secret", skill.join("out.md")).unwrap();
        assert!(files(&skill).unwrap_err().contains("out.md is a link"));
        fs::remove_file(skill.join("out.md")).unwrap();
        symlink(home.path(), skill.join("up")).unwrap();
        assert!(files(&skill).unwrap_err().contains("up is a link"));
    }

    #[test]
    fn a_folder_has_bounds() {
        let (_home, skill) = skill();
        let large = vec![b'a'; (BYTES_MAX >> 1) as usize + 1];
        fs::write(skill.join("one"), &large).unwrap();
        assert!(files(&skill).is_ok());
        fs::write(skill.join("two"), &large).unwrap();
        assert_eq!(files(&skill).unwrap_err(), "its files have more than 4 MiB");
        fs::remove_file(skill.join("one")).unwrap();
        fs::remove_file(skill.join("two")).unwrap();
        for n in 0..FILES_MAX {
            fs::write(skill.join(format!("f{n}")), "").unwrap();
        }
        assert_eq!(files(&skill).unwrap_err(), "it has more than 256 files");
        let (_home, skill) = self::skill();
        fs::create_dir_all(skill.join("a/b/c/d/e/f/g")).unwrap();
        assert!(files(&skill).unwrap_err().contains("deeper than 6 folders"));
    }
}
