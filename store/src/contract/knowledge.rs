//! What is asked of the store about operators' documents, and answered.

use vocative_core::knowledge::Chunk;

/// What the store knows of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownDocument {
    /// Its row.
    pub id: i64,
    /// The configured path that it is below.
    pub root: String,
    /// Its path below that.
    pub path: String,
    /// The file's stamp when it was read; empty = to be read again.
    pub stamp: String,
    /// The hash of what was read; `None` = nothing was read.
    pub hash: Option<Vec<u8>>,
    /// Why nothing of it is kept.
    pub refused: Option<String>,
}

/// What was read of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadDocument {
    /// Its collection's row.
    pub collection: i64,
    /// The configured path that it is below.
    pub root: String,
    /// Its path below that.
    pub path: String,
    /// The file's stamp when it was read; empty = to be read again.
    pub stamp: String,
    /// The hash of what was read; `None` = nothing was read.
    pub hash: Option<Vec<u8>>,
    /// What it is called.
    pub title: String,
    /// The size of the file.
    pub bytes: u64,
    /// Its pieces.
    pub chunks: Vec<Chunk>,
    /// Whether it was longer than what is kept.
    pub is_cut: bool,
    /// Why nothing of it is kept.
    pub refused: Option<String>,
    /// When it was read, in milliseconds since the Unix epoch.
    pub read_at_ms: i64,
}

/// A collection that is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCollection {
    /// Its row.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// What its reader noted about its paths, in the reader's own format.
    pub roots: String,
    /// When an operator asked that all of it is read again.
    pub asked_at_ms: Option<i64>,
}

/// What became of one reading of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionReading {
    /// Its row.
    pub collection: i64,
    /// What is noted of its paths.
    pub roots: String,
    /// What could not be done.
    pub problems: Vec<String>,
    /// The request that it was an answer to.
    pub answers: Option<i64>,
    /// When it ended.
    pub now_ms: i64,
}

/// A collection at a glance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectionStatus {
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
    /// Whether an operator asked for another reading that has not happened yet.
    pub is_asked: bool,
    /// What the last reading could not do.
    pub problems: Vec<String>,
}

/// A document as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedDocument {
    /// Its path below the configured one.
    pub path: String,
    /// What it is called.
    pub title: String,
    /// The size of its file.
    pub bytes: u64,
    /// Its pieces.
    pub chunks: u64,
    /// Whether only its beginning is kept.
    pub is_cut: bool,
    /// Why nothing of it is kept.
    pub refused: Option<String>,
    /// When it was read, in milliseconds since the Unix epoch.
    pub read_at_ms: i64,
}

/// What is looked for in documents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnowledgeQuery {
    /// The names of the collections; nothing of any other is found.
    pub collections: Vec<String>,
    /// What to look for, in several wordings.
    pub queries: Vec<String>,
    /// The most hits.
    pub limit: usize,
    /// The most tokens of all hits' texts together.
    pub token_cap: usize,
    /// The length to which a hit's text is cut around its match, in characters.
    pub text_max_chars: usize,
}

/// A piece of a document that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct KnowledgeHit {
    /// The collection.
    pub collection: String,
    /// The document's path below its configured one.
    pub path: String,
    /// What the document is called.
    pub title: String,
    /// The headings above it.
    pub headings: Vec<String>,
    /// The line where the piece begins.
    pub line: u32,
    /// Its page, where the document has pages.
    pub page: Option<u32>,
    /// What it says, cut around the match.
    pub text: String,
    /// How well it answers: 1 = as well as can be.
    pub score: f64,
    /// How many other pieces say nearly the same.
    pub same: usize,
    /// When the document was read, in milliseconds since the Unix epoch.
    pub read_at_ms: i64,
}

/// What a search in documents found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnowledgeHits {
    /// The best answers, the best first.
    pub hits: Vec<KnowledgeHit>,
    /// Pieces that have any of the words.
    pub matches: usize,
    /// Whether there may be more than were looked at.
    pub is_bounded: bool,
    /// Whether the query was longer than its limits.
    pub is_query_cut: bool,
    /// Words that are in no piece, each with those that were looked for in its place.
    pub taken_for: Vec<(String, Vec<String>)>,
}
