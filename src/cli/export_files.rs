//! The attached files of an export: each is copied once into a folder, under its hash.

use std::collections::HashMap;
use std::path::PathBuf;

use super::error::CliError;
use crate::admin::view::ExportMessageView;
use vocative_core::file::ContentId;
use vocative_store::copy_stored_file;

/// The longest file name extension that a copy keeps.
const ENDING_MAX_CHARS: usize = 8;

/// Copies stored files into a folder.
pub(super) struct FileCopies {
    database: PathBuf,
    folder: PathBuf,
    /// The path of each copy.
    done: HashMap<ContentId, PathBuf>,
    /// Why files could not be copied.
    lost: Vec<String>,
}

impl FileCopies {
    pub(super) fn new(database: PathBuf, folder: PathBuf) -> Self {
        Self {
            database,
            folder,
            done: HashMap::new(),
            lost: Vec::new(),
        }
    }

    /// Copies the attached files of messages, and sets their paths to the copies.
    ///
    /// # Errors
    /// The folder can't be written.
    pub(super) fn take(&mut self, messages: &mut [ExportMessageView]) -> Result<(), CliError> {
        for attachment in messages
            .iter_mut()
            .flat_map(|message| &mut message.line.attachments)
        {
            let id = attachment.sha256.as_deref().and_then(ContentId::from_name);
            let Some(id) = id else {
                continue;
            };
            let path = self.copy(id, attachment.name.as_deref().unwrap_or_default())?;
            attachment.path = path.map(|path| path.display().to_string());
        }
        Ok(())
    }

    fn copy(&mut self, id: ContentId, name: &str) -> Result<Option<PathBuf>, CliError> {
        if let Some(path) = self.done.get(&id) {
            return Ok(Some(path.clone()));
        }
        let path = self.folder.join(format!("{id}{}", ending_of(name)));
        match copy_stored_file(&self.database, id, &path)? {
            Ok(()) => {
                self.done.insert(id, path.clone());
                Ok(Some(path))
            }
            Err(what) => {
                self.lost.push(what);
                Ok(None)
            }
        }
    }

    /// Reports the files that could not be copied.
    ///
    /// # Errors
    /// Something could not.
    pub(super) fn finish(self) -> Result<(), CliError> {
        if self.lost.is_empty() {
            return Ok(());
        }
        Err(CliError::Failed {
            what: format!(
                "{} attached files are not in {}:\n  {}",
                self.lost.len(),
                self.folder.display(),
                self.lost.join("\n  ")
            ),
            advice: Some(
                "run it as the user of the daemon, who may read them; the export itself is whole"
                    .to_owned(),
            ),
            cause: None,
        })
    }
}

/// The extension of a file name with its dot, which programs go by; empty unless it is short and alphanumeric.
fn ending_of(name: &str) -> String {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_plain = ending.len() <= ENDING_MAX_CHARS
        && !ending.is_empty()
        && ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match is_plain {
        true => format!(".{}", ending.to_ascii_lowercase()),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_ending_of_a_name_is_taken_on() {
        let table = [
            ("notes.MD", ".md"),
            ("a.tar.gz", ".gz"),
            ("notes", ""),
            ("../../etc/passwd", ""),
            ("a./../b", ""),
            ("a.\u{202e}gpj", ""),
            ("a.", ""),
            ("a.ninechars", ""),
        ];
        for (name, expected) in table {
            assert_eq!(ending_of(name), expected, "{name}");
        }
    }
}
