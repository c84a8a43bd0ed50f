//! Operators' documents: folders that are read repeatedly, and the parts of their files that are stored for search.
//!
//! Knows no agents, models or conversations. `core/knowledge` decides what a document becomes, the store what is
//! stored in one transaction. Reading order: this page, `walk` (which files exist), `opening` (a file's bytes, only
//! from below its folder), `converting` (PDF, by a program of the operator's), `reading` (a file as a document),
//! `keeper` (the loop).

mod converting;
mod keeper;
pub(crate) mod opening;
mod reading;
mod walk;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub use keeper::{KnowledgeKeeper, Problems};
use vocative_core::knowledge::Format;
use vocative_core::place::ChatName;

use crate::tools::program::{Program, ProgramSettings};

/// The most files of a collection, unless the settings say otherwise.
pub const FILES_MAX_DEFAULT: usize = 20_000;
/// The largest file that is read, unless the settings say otherwise, in bytes.
pub const FILE_BYTES_MAX_DEFAULT: u64 = 2 << 20;
/// How often a collection is read, unless the settings say otherwise, in milliseconds.
pub const REFRESH_MS_DEFAULT: u64 = 60_000;

/// A collection of documents, as it is configured.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionSettings {
    /// Its name.
    pub name: String,
    /// Its folders and files.
    pub paths: Vec<PathBuf>,
    /// The chats where it may be searched; `None` = wherever its agents are.
    pub chats: Option<BTreeSet<ChatName>>,
    /// How often it is read, in milliseconds.
    pub refresh_ms: u64,
    /// The most files that are kept.
    pub files_max: usize,
    /// The largest file that is read, in bytes.
    pub file_bytes_max: u64,
    /// The program that converts PDF to text; `None` = such files are skipped.
    pub pdf: Option<ProgramSettings>,
}

impl CollectionSettings {
    /// Whether it may be searched in a chat.
    #[must_use]
    pub fn is_in(&self, chat: &ChatName) -> bool {
        self.chats.as_ref().is_none_or(|chats| chats.contains(chat))
    }
}

/// A collection with the programs that read its files.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Its settings.
    pub settings: CollectionSettings,
    /// The program that converts PDF to text.
    pub pdf: Option<Program>,
}

impl Collection {
    /// The format of a file, by the extension of its name; `None` = it is no document.
    fn format_of(&self, path: &Path) -> Option<Format> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "md" | "markdown" => Some(Format::Markdown),
            "txt" | "text" => Some(Format::Plain),
            "html" | "htm" | "xhtml" => Some(Format::Html),
            "pdf" if self.pdf.is_some() => Some(Format::Pages),
            _ => None,
        }
    }
}
