//! The stored bytes of files: reading one, writing one, and removing those that no file refers to any more.

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::capability::MayWork;
use crate::engine::contents::{ContentWriter, is_referred_to, path_of, read_at_most, remove};
use crate::engine::sql::Connection;
use crate::registry::{STATE, StoreTable, nobody, text};
use crate::{Reader, Store, StoreError};
use vocative_core::file::ContentId;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[nobody(
    "dropped_contents",
    "hashes of files that are about to be removed",
    text(&[], &[], &[]),
    STATE,
)];

/// The most contents that are removed in one transaction.
const DROPPED_MAX: usize = 100;

impl Reader {
    /// The bytes of a content, if they are there, are those that were stored, and are no more than
    /// `bytes_max`.
    ///
    /// # Errors
    /// The disk refuses.
    pub async fn content(
        &self,
        id: ContentId,
        bytes_max: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let path = path_of(self.files_folder(), id);
        let reading = tokio::task::spawn_blocking(move || {
            let bytes = read_at_most(&path, bytes_max)?;
            Ok(bytes.filter(|bytes| ContentId(Sha256::digest(bytes).into()) == id))
        });
        reading.await.map_err(|_| StoreError::Closed)?
    }
}

impl<C: MayWork> Store<C> {
    /// A place for the bytes of a file.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn new_content(&self) -> Result<ContentWriter, StoreError> {
        ContentWriter::new(self.files_folder())
    }

    /// Removes contents whose last reference has gone; how many.
    ///
    /// # Errors
    /// Storage refuses; what is left is removed the next time.
    pub async fn remove_dropped(&self) -> Result<u64, StoreError> {
        let mut removed = 0;
        loop {
            let has_any: bool = self
                .read(|connection| {
                    let sql = "SELECT EXISTS (SELECT 1 FROM dropped_contents) AS has_any";
                    Ok(connection
                        .prepare_cached(sql)?
                        .query_row([], |row| row.get("has_any"))?)
                })
                .await?;
            if !has_any {
                return Ok(removed);
            }
            let folder = self.files_folder().to_owned();
            let batch = self.write(move |connection| remove_dropped_txn(connection, &folder));
            removed += batch.await?;
        }
    }
}

fn remove_dropped_txn(connection: &Connection, folder: &Path) -> Result<u64, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT sha256 FROM dropped_contents LIMIT ?1")?;
    let dropped: Vec<ContentId> = statement
        .query_map([DROPPED_MAX as i64], |row| row.get("sha256"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    let mut removed = 0;
    for id in dropped {
        if !is_referred_to(connection, id)? {
            remove(&path_of(folder, id))?;
            removed += 1;
        }
        connection
            .prepare_cached("DELETE FROM dropped_contents WHERE sha256 = ?1")?
            .execute([id])?;
    }
    Ok(removed)
}
