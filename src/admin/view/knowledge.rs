//! Collections of documents.

use serde::{Deserialize, Serialize};

use crate::tools::knowledge::source_of;
use vocative_store::contract::{CollectionStatus, KnowledgeHit, KnowledgeHits, ListedDocument};

/// A collection of documents at a glance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionView {
    /// Its name.
    pub name: String,
    /// Documents that are kept.
    pub documents: u64,
    /// Files of which nothing is kept.
    pub refused: u64,
    /// Documents of which only the beginning is kept.
    pub cut: u64,
    /// Pieces of documents.
    pub chunks: u64,
    /// Bytes of the documents' files.
    pub bytes: u64,
    /// When it was last read through, in milliseconds since the Unix epoch.
    pub read_at_ms: Option<i64>,
    /// Whether it is to be read again because somebody asked for it.
    pub is_asked: bool,
    /// What the last reading could not do, in plain words.
    pub problems: Vec<String>,
}

impl From<&CollectionStatus> for CollectionView {
    fn from(status: &CollectionStatus) -> Self {
        Self {
            name: status.name.clone(),
            documents: status.documents,
            refused: status.refused,
            cut: status.cut,
            chunks: status.chunks,
            bytes: status.bytes,
            read_at_ms: status.read_at_ms,
            is_asked: status.is_asked,
            problems: status.problems.clone(),
        }
    }
}

/// A file of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentView {
    /// Its path below the configured one.
    pub path: String,
    /// What it is called.
    pub title: String,
    /// The size of the file.
    pub bytes: u64,
    /// Its pieces.
    pub chunks: u64,
    /// Whether only its beginning is kept.
    pub is_cut: bool,
    /// Why nothing of it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// When it was read, in milliseconds since the Unix epoch.
    pub read_at_ms: i64,
}

impl From<&ListedDocument> for DocumentView {
    fn from(document: &ListedDocument) -> Self {
        Self {
            path: document.path.clone(),
            title: document.title.clone(),
            bytes: document.bytes,
            chunks: document.chunks,
            is_cut: document.is_cut,
            refused: document.refused.clone(),
            read_at_ms: document.read_at_ms,
        }
    }
}

/// What a search in documents found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KnowledgeView {
    /// The pieces, the best first.
    pub hits: Vec<KnowledgeHitView>,
    /// Pieces that match, as far as they were looked at.
    pub matches: usize,
    /// Whether there may be more than were looked at.
    pub is_bounded: bool,
    /// Words that no document has, and what was looked for in their place.
    pub notes: Vec<String>,
}

/// A piece of a document that was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KnowledgeHitView {
    /// Where it stands, as an agent names it.
    pub source: String,
    /// The collection.
    pub collection: String,
    /// The document's path below its configured one.
    pub path: String,
    /// What the document is called.
    pub title: String,
    /// The headings above it, the outermost first.
    pub headings: Vec<String>,
    /// The line where it begins.
    pub line: u32,
    /// Its page, where the document has pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// What it says, around the match.
    pub text: String,
    /// How well it answers; 1 = as well as can be.
    pub score: f64,
    /// Pieces that say nearly the same and are not given.
    pub similar: usize,
}

impl From<&KnowledgeHit> for KnowledgeHitView {
    fn from(hit: &KnowledgeHit) -> Self {
        Self {
            source: source_of(hit),
            collection: hit.collection.clone(),
            path: hit.path.clone(),
            title: hit.title.clone(),
            headings: hit.headings.clone(),
            line: hit.line,
            page: hit.page,
            text: hit.text.clone(),
            score: hit.score,
            similar: hit.same,
        }
    }
}

impl From<&KnowledgeHits> for KnowledgeView {
    fn from(found: &KnowledgeHits) -> Self {
        let note = |(word, others): &(String, Vec<String>)| {
            format!("no document has {word:?}; looked for {}", others.join(", "))
        };
        Self {
            hits: found.hits.iter().map(Into::into).collect(),
            matches: found.matches,
            is_bounded: found.is_bounded,
            notes: found.taken_for.iter().map(note).collect(),
        }
    }
}
