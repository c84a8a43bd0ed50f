//! Operators' documents: their settings as people write them, and the checks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::programs::{ProgramShape, resolve_program};
use super::resolve::Review;
use crate::knowledge::{
    CollectionSettings, FILE_BYTES_MAX_DEFAULT, FILES_MAX_DEFAULT, REFRESH_MS_DEFAULT,
};
use vocative_core::place::ChatName;
use vocative_store::COLLECTIONS_MAX;

/// The most folders and files of a collection.
const PATHS_MAX: usize = 64;

/// A collection of documents that agents may search: Markdown, text and HTML, and PDF with a program.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KnowledgeShape {
    /// Its folders, with all below them, and single files.
    pub paths: Vec<PathBuf>,
    /// The chats where it may be searched, as CHANNEL/CHAT; not set: wherever the agents are that name it.
    pub chats: Option<Vec<String>>,
    /// Seconds between two looks at its files; not set: 60.
    #[schemars(range(min = 1, max = 86_400))]
    pub refresh_s: Option<u64>,
    /// The most files that are kept; not set: 20,000.
    #[schemars(range(min = 1, max = 100_000))]
    pub files_max: Option<usize>,
    /// The largest file that is read, in KiB; not set: 2,048.
    #[schemars(range(min = 1, max = 16_384))]
    pub file_max_kib: Option<u64>,
    /// The program that reads PDF on its standard input and says its text: ["pdftotext", "-", "-"]; not set: PDF is left
    /// out.
    #[serde(default)]
    pub pdf: Vec<String>,
    /// Files and folders that this program may read and execute, beside the system's programs.
    #[serde(default)]
    pub pdf_read: Vec<PathBuf>,
    /// Memory of this program, in MiB; not set: 256.
    #[schemars(range(min = 16, max = 1_048_576))]
    pub pdf_memory_max_mib: Option<u64>,
    /// Whether this program is run where the machine can't keep it from the archive.
    #[serde(default)]
    pub pdf_trusted: bool,
}

/// Checks all collections. The result is to be used only if no problem was found.
pub(super) fn resolve_knowledge(
    shapes: BTreeMap<String, KnowledgeShape>,
    channels: &[&str],
    review: &mut Review<'_>,
) -> BTreeMap<String, CollectionSettings> {
    if shapes.len() > COLLECTIONS_MAX {
        review.problem(
            "knowledge",
            format!("has more than {COLLECTIONS_MAX} collections"),
        );
    }
    let mut collections = BTreeMap::new();
    for (name, shape) in shapes {
        let collection = collection(&name, shape, channels, review);
        collections.insert(name, collection);
    }
    collections
}

fn collection(
    name: &str,
    shape: KnowledgeShape,
    channels: &[&str],
    review: &mut Review<'_>,
) -> CollectionSettings {
    let table = format!("knowledge.{name}");
    if shape.paths.is_empty() || shape.paths.len() > PATHS_MAX {
        let what = format!("must name 1 to {PATHS_MAX} folders or files: [\"/srv/handbook\"]");
        review.problem(&format!("{table}.paths"), what);
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in &shape.paths {
        let path = review.base_dir.join(path);
        if path.to_str().is_none() {
            review.problem(&format!("{table}.paths"), "holds a name that is not UTF-8");
        }
        let is_inside = |other: &PathBuf| path.starts_with(other) || other.starts_with(&path);
        if paths.iter().any(is_inside) {
            let what = format!("{} is in it twice", path.display());
            review.problem(&format!("{table}.paths"), what);
        }
        paths.push(path);
    }
    let key = format!("{table}.chats");
    let chats = shape.chats.map(|chats| {
        let named = chats
            .iter()
            .map(|chat| chat_name(&key, chat, channels, review));
        named
            .collect::<Vec<_>>()
            .into_iter()
            .flatten()
            .collect::<BTreeSet<_>>()
    });
    let pdf = (!shape.pdf.is_empty()).then(|| {
        let program = ProgramShape {
            argv: shape.pdf,
            folder: None,
            environment: Vec::new(),
            secrets: Vec::new(),
            read: shape.pdf_read,
            write: Vec::new(),
            connect_ports: Vec::new(),
            memory_max_mib: shape.pdf_memory_max_mib,
            processes_max: None,
            is_trusted: shape.pdf_trusted,
        };
        resolve_program(&format!("{table}.pdf"), program, review)
    });
    CollectionSettings {
        name: name.to_owned(),
        paths,
        chats,
        refresh_ms: shape
            .refresh_s
            .map_or(REFRESH_MS_DEFAULT, |seconds| seconds * 1_000),
        files_max: shape.files_max.unwrap_or(FILES_MAX_DEFAULT),
        file_bytes_max: shape
            .file_max_kib
            .map_or(FILE_BYTES_MAX_DEFAULT, |kib| kib << 10),
        pdf: pdf.flatten().map(|(program, _)| program),
    }
}

fn chat_name(
    key: &str,
    chat: &str,
    channels: &[&str],
    review: &mut Review<'_>,
) -> Option<ChatName> {
    match chat.split_once('/') {
        Some((channel, id)) if channels.contains(&channel) && !id.is_empty() => Some(ChatName {
            channel: channel.to_owned(),
            chat: id.to_owned(),
        }),
        _ => {
            let what =
                format!("\"{chat}\" is not a channel and a chat of it: write \"acme/C012AB3CD\"");
            review.problem(key, what);
            None
        }
    }
}
