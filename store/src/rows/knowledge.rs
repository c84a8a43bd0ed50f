//! Operators' documents as rows: collections, files and their pieces, and the index over these.
//!
//! A document is exchanged in one transaction: its row, its pieces and their entries. Pieces that stay the same keep
//! their rows. What goes in and out of the index is a function of the piece's row, and is made beside the writer.

use std::collections::{BTreeSet, HashMap};

use vocative_core::knowledge::{CHUNKS_VERSION, Chunk};
use vocative_core::search::stems::{STEMS_VERSION, stems_of};

use crate::capability::MayIndex;
use crate::contract::{CollectionReading, KnownDocument, OpenCollection, ReadDocument};
use crate::engine::sql::{Connection, OptionalExtension, Row, params};
use crate::registry::{DOCUMENTS, STATE, StoreTable, nobody, text};
use crate::rows::columns::limit_of;
use crate::rows::stem_index::{is_vocabulary, quoted, stem_entry};
use crate::{Reader, Store, StoreError};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    nobody(
        "knowledge_chunks",
        DOCUMENTS,
        text(&[], &[], &["headings", "content"]),
        STATE,
    ),
    nobody(
        "knowledge_collections",
        DOCUMENTS,
        text(&[], &[], &["name", "roots", "problems"]),
        STATE,
    ),
    nobody(
        "knowledge_documents",
        DOCUMENTS,
        text(&[], &[], &["root", "path", "stamp", "title", "refused"]),
        STATE,
    ),
    nobody(
        "knowledge_stems",
        DOCUMENTS,
        text(&[], &[], &["stems"]),
        STATE,
    ),
    nobody(
        "knowledge_words",
        DOCUMENTS,
        text(&[], &[], &["stem"]),
        STATE,
    ),
];

/// How many documents of a collection that is no longer configured are deleted at a time.
const FORGOTTEN_AT_ONCE: i64 = 16;

/// The version of the rules by which pieces and their entries are made.
fn version() -> u32 {
    STEMS_VERSION * 1_000 + CHUNKS_VERSION
}

impl Reader {
    /// The configured collections.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn open_collections(&self) -> Result<Vec<OpenCollection>, StoreError> {
        self.read(open_collections).await
    }

    /// The files of a collection that are known, by their rows, after one of them.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn known_documents(
        &self,
        collection: i64,
        after: i64,
        limit: usize,
    ) -> Result<Vec<KnownDocument>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, root, path, stamp, hash, refused FROM knowledge_documents
                 WHERE collection_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
            )?;
            let rows = statement.query_map((collection, after, limit_of(limit)), known_row)?;
            Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
        })
        .await
    }
}

impl<C: MayIndex> Store<C> {
    /// Says which collections are configured, and returns them. The others are to go
    /// ([`Self::forget_unconfigured`]). What was made by other rules is set aside, to be made anew.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn configure_collections(
        &self,
        names: Vec<String>,
    ) -> Result<Vec<OpenCollection>, StoreError> {
        self.write(move |connection| {
            let others: i64 = connection
                .prepare_cached("SELECT count(*) AS others FROM knowledge_collections WHERE version <> ?1")?
                .query_row([version()], |row| row.get("others"))?;
            if others > 0 {
                connection.execute_batch(
                    "INSERT INTO knowledge_stems (knowledge_stems) VALUES ('delete-all');
                     DELETE FROM knowledge_chunks;
                     DELETE FROM knowledge_words;
                     UPDATE knowledge_documents SET stamp = '', hash = NULL, chunks = 0;",
                )?;
                connection.execute("UPDATE knowledge_collections SET version = ?1", [version()])?;
            }
            for name in &names {
                connection
                    .prepare_cached(
                        "INSERT OR IGNORE INTO knowledge_collections (name, version, roots, problems)
                         VALUES (?1, ?2, '{}', '[]')",
                    )?
                    .execute((name, version()))?;
            }
            let known = open_collections(connection)?;
            Ok(known.into_iter().filter(|it| names.contains(&it.name)).collect())
        })
        .await
    }

    /// Lets go some documents of collections that are not among these; returns whether there are more.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn forget_unconfigured(&self, names: Vec<String>) -> Result<bool, StoreError> {
        let (known, gone) = {
            let names = names.clone();
            self.read(move |connection| {
                let all = open_collections(connection)?;
                let gone: Vec<i64> = all
                    .into_iter()
                    .filter(|it| !names.contains(&it.name))
                    .map(|it| it.id)
                    .collect();
                let mut known = Vec::new();
                for collection in &gone {
                    let mut statement = connection.prepare_cached(
                        "SELECT id FROM knowledge_documents WHERE collection_id = ?1 LIMIT ?2",
                    )?;
                    let rows = statement
                        .query_map((collection, FORGOTTEN_AT_ONCE), |row| row.get("id"))?;
                    known.extend(rows.collect::<crate::engine::sql::Result<Vec<i64>>>()?);
                }
                Ok((known, gone))
            })
            .await?
        };
        for document in &known {
            self.forget_document(*document).await?;
        }
        if known.is_empty() && !gone.is_empty() {
            self.write(move |connection| {
                for collection in gone {
                    connection.execute(
                        "DELETE FROM knowledge_words WHERE collection_id = ?1",
                        [collection],
                    )?;
                    connection.execute(
                        "DELETE FROM knowledge_collections WHERE id = ?1",
                        [collection],
                    )?;
                }
                Ok(())
            })
            .await?;
        }
        Ok(!known.is_empty())
    }

    /// Notes that a file was looked at and has not changed.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn stamp_document(&self, document: i64, stamp: String) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection
                .prepare_cached("UPDATE knowledge_documents SET stamp = ?2 WHERE id = ?1")?
                .execute((document, stamp))?;
            Ok(())
        })
        .await
    }

    /// Puts what was read of a file in the place of what was known of it. One caller at a time for a document.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn exchange_document(&self, read: ReadDocument) -> Result<(), StoreError> {
        let (read, exchange) = self
            .read(move |connection| {
                let exchange = ChunkExchange::of(connection, &read)?;
                Ok((read, exchange))
            })
            .await?;
        self.write(move |connection| exchange.carry_out_txn(connection, &read))
            .await
    }

    /// Lets a document go that is not there any more. One caller at a time for a document.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn forget_document(&self, document: i64) -> Result<(), StoreError> {
        let removed = self
            .read(move |connection| {
                let mut removed = Vec::new();
                if let Some((collection, title)) = owner_of(connection, document)? {
                    for (id, chunk) in chunks_of(connection, document)? {
                        removed.push((id, Entries::of(collection, &title, &chunk)));
                    }
                    return Ok(Some((collection, removed)));
                }
                Ok(None)
            })
            .await?;
        let Some((collection, removed)) = removed else {
            return Ok(());
        };
        self.write(move |connection| {
            remove_txn(connection, collection, &removed)?;
            connection.execute("DELETE FROM knowledge_documents WHERE id = ?1", [document])?;
            Ok(())
        })
        .await
    }

    /// Notes what became of a reading.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn note_reading(&self, reading: CollectionReading) -> Result<(), StoreError> {
        self.write(move |connection| {
            let problems = serde_json::to_string(&reading.problems).expect("strings are JSON");
            connection
                .prepare_cached(
                    "UPDATE knowledge_collections SET roots = ?2, problems = ?3, read_at_ms = ?4,
                            asked_at_ms = nullif(asked_at_ms, ?5) WHERE id = ?1",
                )?
                .execute((
                    reading.collection,
                    &reading.roots,
                    problems,
                    reading.now_ms,
                    reading.answers,
                ))?;
            Ok(())
        })
        .await
    }

    /// Asks that a collection, or all, is read again, every file of it. Returns which.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn ask_for_reading(
        &self,
        name: Option<String>,
        now_ms: i64,
    ) -> Result<Vec<String>, StoreError> {
        self.write(move |connection| {
            let all = open_collections(connection)?.into_iter();
            let asked: Vec<OpenCollection> = all
                .filter(|it| name.as_ref().is_none_or(|name| *name == it.name))
                .collect();
            for collection in &asked {
                connection
                    .prepare_cached(
                        "UPDATE knowledge_collections SET asked_at_ms = ?2 WHERE id = ?1",
                    )?
                    .execute((collection.id, now_ms))?;
            }
            Ok(asked.into_iter().map(|it| it.name).collect())
        })
        .await
    }
}

/// What the index has of a piece: what it is found by, and its stems.
struct Entries {
    text: String,
    stems: BTreeSet<String>,
}

impl Entries {
    fn of(collection: i64, title: &str, chunk: &Chunk) -> Self {
        let mut above = chunk.headings.join("\n");
        if !chunk.headings.iter().any(|it| it == title) {
            above = format!("{title}\n{above}");
        }
        let above_stems = stems_of(&above);
        let stems = stems_of(&format!("{above}\n{}", chunk.text));
        let entries = stems.iter().map(|stem| stem_entry(collection, stem));
        let above = above_stems
            .iter()
            .map(|stem| heading_entry(collection, stem));
        Self {
            text: entries.chain(above).collect::<Vec<_>>().join(" "),
            // A heading may be taken for another language than the text under it.
            stems: stems.into_iter().chain(above_stems).collect(),
        }
    }
}

/// The entry of a stem that a piece has above it.
pub(crate) fn heading_entry(collection: i64, stem: &str) -> String {
    format!("{collection}h{stem}")
}

/// What becomes of the pieces of a document.
struct ChunkExchange {
    document: Option<i64>,
    kept: Vec<(i64, u32, Option<u32>)>,
    removed: Vec<(i64, Entries)>,
    added: Vec<(usize, Entries)>,
}

impl ChunkExchange {
    fn of(connection: &Connection, read: &ReadDocument) -> Result<Self, StoreError> {
        let known: Option<(i64, String)> = connection
            .prepare_cached(
                "SELECT id, title FROM knowledge_documents
                 WHERE collection_id = ?1 AND root = ?2 AND path = ?3",
            )?
            .query_row((read.collection, &read.root, &read.path), |row| {
                Ok((row.get("id")?, row.get("title")?))
            })
            .optional()?;
        let (document, title) = known.unzip();
        let before = match document {
            Some(document) => chunks_of(connection, document)?,
            None => Vec::new(),
        };
        let title = title.unwrap_or_default();
        // Another title changes the entries of every piece.
        let is_same_title = title == read.title;
        let mut same: HashMap<(&[String], &str), Vec<i64>> = HashMap::new();
        for (id, chunk) in before.iter().rev().filter(|_| is_same_title) {
            same.entry((&chunk.headings, &chunk.text))
                .or_default()
                .push(*id);
        }
        let (mut kept, mut added) = (Vec::new(), Vec::new());
        for (n, chunk) in read.chunks.iter().enumerate() {
            let known = same.get_mut(&(chunk.headings.as_slice(), chunk.text.as_str()));
            match known.and_then(Vec::pop) {
                Some(id) => kept.push((id, chunk.line, chunk.page)),
                None => added.push((n, Entries::of(read.collection, &read.title, chunk))),
            }
        }
        let stays: BTreeSet<i64> = kept.iter().map(|(id, ..)| *id).collect();
        let removed = before.iter().filter(|(id, _)| !stays.contains(id));
        let removed = removed
            .map(|(id, chunk)| (*id, Entries::of(read.collection, &title, chunk)))
            .collect();
        Ok(Self {
            document,
            kept,
            removed,
            added,
        })
    }

    fn carry_out_txn(self, connection: &Connection, read: &ReadDocument) -> Result<(), StoreError> {
        remove_txn(connection, read.collection, &self.removed)?;
        let document: i64 = connection
            .prepare_cached(
                "INSERT INTO knowledge_documents (id, collection_id, root, path, stamp, hash, title, bytes, chunks,
                        is_cut, refused, read_at_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
                 ON CONFLICT (id) DO UPDATE SET stamp = ?5, hash = ?6, title = ?7, bytes = ?8, chunks = ?9,
                        is_cut = ?10, refused = ?11, read_at_ms = ?12
                 RETURNING id",
            )?
            .query_row(
                params![
                    self.document,
                    read.collection,
                    read.root,
                    read.path,
                    read.stamp,
                    read.hash,
                    read.title,
                    i64::try_from(read.bytes).unwrap_or(i64::MAX),
                    limit_of(read.chunks.len()),
                    read.is_cut,
                    read.refused,
                    read.read_at_ms
                ],
                |row| row.get("id"),
            )?;
        let mut moved = connection
            .prepare_cached("UPDATE knowledge_chunks SET line = ?2, page = ?3 WHERE id = ?1 AND (line, page) IS NOT (?2, ?3)")?;
        for (id, line, page) in &self.kept {
            moved.execute((id, line, page))?;
        }
        for (n, entries) in &self.added {
            add_txn(
                connection,
                read.collection,
                document,
                &read.chunks[*n],
                entries,
            )?;
        }
        Ok(())
    }
}

fn add_txn(
    connection: &Connection,
    collection: i64,
    document: i64,
    chunk: &Chunk,
    entries: &Entries,
) -> Result<(), StoreError> {
    let headings = serde_json::to_string(&chunk.headings).expect("strings are JSON");
    let id: i64 = connection
        .prepare_cached(
            "INSERT INTO knowledge_chunks (document_id, headings, line, page, content)
             VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id",
        )?
        .query_row(
            (document, headings, chunk.line, chunk.page, &chunk.text),
            |row| row.get("id"),
        )?;
    connection
        .prepare_cached("INSERT INTO knowledge_stems (rowid, stems) VALUES (?1, ?2)")?
        .execute((id, &entries.text))?;
    let mut learn = connection.prepare_cached(
        "INSERT OR IGNORE INTO knowledge_words (collection_id, stem) VALUES (?1, ?2)",
    )?;
    for stem in entries.stems.iter().filter(|stem| is_vocabulary(stem)) {
        learn.execute((collection, stem))?;
    }
    Ok(())
}

/// Takes pieces out, and their words out of the vocabulary where they were the last to have them.
fn remove_txn(
    connection: &Connection,
    collection: i64,
    removed: &[(i64, Entries)],
) -> Result<(), StoreError> {
    let mut stems: BTreeSet<&str> = BTreeSet::new();
    for (id, entries) in removed {
        connection
            .prepare_cached(
                "INSERT INTO knowledge_stems (knowledge_stems, rowid, stems) VALUES ('delete', ?1, ?2)",
            )?
            .execute((id, &entries.text))?;
        connection
            .prepare_cached("DELETE FROM knowledge_chunks WHERE id = ?1")?
            .execute([id])?;
        let known = entries.stems.iter().filter(|stem| is_vocabulary(stem));
        stems.extend(known.map(String::as_str));
    }
    let mut find = connection.prepare_cached(
        "SELECT rowid FROM knowledge_stems WHERE knowledge_stems MATCH ?1 LIMIT 1",
    )?;
    let mut forget = connection
        .prepare_cached("DELETE FROM knowledge_words WHERE collection_id = ?1 AND stem = ?2")?;
    for stem in stems {
        let asked = format!(
            "{} OR {}",
            quoted(&stem_entry(collection, stem)),
            quoted(&heading_entry(collection, stem))
        );
        let other: Option<i64> = find.query_row([asked], |row| row.get("rowid")).optional()?;
        if other.is_none() {
            forget.execute((collection, stem))?;
        }
    }
    Ok(())
}

fn open_collections(connection: &Connection) -> Result<Vec<OpenCollection>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, name, roots, asked_at_ms FROM knowledge_collections ORDER BY name",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(OpenCollection {
            id: row.get("id")?,
            name: row.get("name")?,
            roots: row.get("roots")?,
            asked_at_ms: row.get("asked_at_ms")?,
        })
    })?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}

fn known_row(row: &Row<'_>) -> crate::engine::sql::Result<KnownDocument> {
    Ok(KnownDocument {
        id: row.get("id")?,
        root: row.get("root")?,
        path: row.get("path")?,
        stamp: row.get("stamp")?,
        hash: row.get("hash")?,
        refused: row.get("refused")?,
    })
}

fn owner_of(connection: &Connection, document: i64) -> Result<Option<(i64, String)>, StoreError> {
    Ok(connection
        .prepare_cached("SELECT collection_id, title FROM knowledge_documents WHERE id = ?1")?
        .query_row([document], |row| {
            Ok((row.get("collection_id")?, row.get("title")?))
        })
        .optional()?)
}

fn chunks_of(connection: &Connection, document: i64) -> Result<Vec<(i64, Chunk)>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, headings, line, page, content FROM knowledge_chunks WHERE document_id = ?1 ORDER BY id",
    )?;
    let rows = statement.query_map([document], |row| Ok((row.get("id")?, chunk_row(row)?)))?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}

/// A piece; headings that can't be decoded are none.
pub(crate) fn chunk_row(row: &Row<'_>) -> crate::engine::sql::Result<Chunk> {
    let headings: String = row.get("headings")?;
    Ok(Chunk {
        headings: serde_json::from_str(&headings).unwrap_or_default(),
        line: row.get("line")?,
        page: row.get("page")?,
        text: row.get("content")?,
    })
}
