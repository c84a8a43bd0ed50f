//! Files that tools returned: attachments of the turns of their results, stored in the same transaction.

use std::path::Path;

use crate::capability::MayReply;
use crate::contract::{CallFile, StoredCallFile};
use crate::engine::contents::{ContentWriter, FinishedContent, place_txn};
use crate::engine::sql::{Connection, params};
use crate::rows::columns::{stored_attachments, stored_count};
use crate::rows::files::file_from_row;
use crate::{Reader, Store, StoreError};
use vocative_contract::envelope::Attachment;
use vocative_core::file::tool_file_id;
use vocative_core::ids::RunId;

const OF_RUN_SQL: &str = "SELECT k.step, k.call_id, t.uuid, f.id, f.platform_id, f.state, f.reason, f.sha256, f.size_bytes,
            t.attachments, NULL AS is_to_be_heard
     FROM runs r CROSS JOIN turns t ON t.run_id = r.id AND t.kind = 'tool_result' AND t.attachments IS NOT NULL
     CROSS JOIN turns c ON c.seq = t.reply_to_seq
     CROSS JOIN tool_calls k ON k.uuid = c.uuid AND k.step IS NOT NULL
     CROSS JOIN files f ON f.turn_seq = t.seq
     WHERE r.uuid = ?1 ORDER BY k.step, k.n, f.id";

impl Reader {
    /// The files that the calls of a run returned, in the order of the calls.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn files_of_calls(&self, run: RunId) -> Result<Vec<StoredCallFile>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(OF_RUN_SQL)?;
            let files = statement.query_map([run], |row| {
                Ok(StoredCallFile {
                    step: row.get("step")?,
                    call_id: row.get("call_id")?,
                    file: file_from_row(row.get("uuid")?, row)?,
                })
            })?;
            Ok(files.collect::<crate::engine::sql::Result<_>>()?)
        })
        .await
    }
}

impl<C: MayReply> Store<C> {
    /// The bytes of a call's files on the disk, not yet under their hashes.
    pub(crate) async fn written_files(
        &self,
        files: &[CallFile],
    ) -> Result<Vec<FinishedContent>, StoreError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let folder = self.files_folder().to_owned();
        let bytes: Vec<_> = files.iter().map(|file| file.bytes.clone()).collect();
        let writing = tokio::task::spawn_blocking(move || {
            let written = bytes.iter().map(|bytes| {
                let mut content = ContentWriter::new(&folder)?;
                content.take_all(bytes)?;
                content.finish()
            });
            written.collect()
        });
        writing.await.map_err(|_| StoreError::Closed)?
    }
}

/// Attaches files to the turn of a call's result.
pub(crate) fn attach_txn(
    connection: &Connection,
    folder: &Path,
    turn_seq: i64,
    (files, contents): (&[CallFile], Vec<FinishedContent>),
    now_ms: i64,
) -> Result<(), StoreError> {
    if files.is_empty() {
        return Ok(());
    }
    let ids = (0..).zip(files);
    let ids: Vec<String> = ids
        .map(|(n, file)| tool_file_id(n, file.is_for_people))
        .collect();
    let attachment = |(file, id): (&CallFile, &String)| Attachment {
        kind: kind_of(&file.mime_type).to_owned(),
        file_id: Some(id.clone()),
        name: Some(file.name.clone()),
        mime_type: Some(file.mime_type.clone()),
        size_bytes: Some(file.bytes.len() as u64),
    };
    let attachments: Vec<Attachment> = files.iter().zip(&ids).map(attachment).collect();
    connection
        .prepare_cached("UPDATE turns SET attachments = ?2 WHERE seq = ?1")?
        .execute((turn_seq, stored_attachments(&attachments)))?;
    for (id, content) in ids.iter().zip(contents) {
        connection
            .prepare_cached(
                "INSERT INTO files (turn_seq, platform_id, state, sha256, size_bytes, finished_at_ms)
                 VALUES (?1, ?2, 'fetched', ?3, ?4, ?5)",
            )?
            .execute(params![
                turn_seq,
                id,
                content.id(),
                stored_count(content.size_bytes()),
                now_ms
            ])?;
        // If the commit fails, the next start removes the bytes, which no row refers to.
        place_txn(folder, content)?;
    }
    Ok(())
}

fn kind_of(mime_type: &str) -> &'static str {
    match mime_type.split('/').next() {
        Some("image") => "photo",
        Some("audio") => "audio",
        _ => "document",
    }
}
