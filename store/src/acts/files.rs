//! Files of turns: their states, and how their turns name them.

use crate::capability::{MayUseModels, MayWork};
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::turn_rows::turn_at;
use vocative_contract::crash;
use vocative_contract::envelope::Attachment;

use crate::acts::triggers::refresh_triggers_txn;
use crate::engine::contents::{ContentWriter, place_txn};
use crate::rows::columns::{attachments_from, stored_attachments, stored_count};
use crate::rows::files::{
    enqueue_for_file_txn, give_file_up_txn, give_speech_up_txn, lose_content_txn, queue_speech_txn,
    with_words,
};
use crate::rows::turns::{Replacement, revise_turn_txn};
use crate::{Store, StoreError};
use vocative_core::file::{ContentId, FileFacts, FileState};
use vocative_core::ids::FileId;
use vocative_core::job::Job;

impl<C: MayWork> Store<C> {
    /// Stores the platform's description of a file that its message did not describe; the message names it from
    /// then on.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn describe_file(
        &self,
        id: FileId,
        facts: FileFacts,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| describe_txn(connection, id, &facts, now_ms))
            .await
    }

    /// Notes that a file is not fetched and why; it is only named.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn give_file_up(
        &self,
        id: FileId,
        state: FileState,
        reason: String,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| give_file_up_txn(connection, id, state, &reason, now_ms))
            .await
    }

    /// Stores the bytes of a file under their hash. Returns `false` if the message was deleted meanwhile. A voice
    /// note that is to be transcribed is queued for it.
    ///
    /// # Errors
    /// Storage refuses; the file is still to be fetched then.
    pub async fn keep_content(
        &self,
        id: FileId,
        content: ContentWriter,
        is_to_be_heard: bool,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let synced = tokio::task::spawn_blocking(move || content.finish());
        let content = synced.await.map_err(|_| StoreError::Closed)??;
        crash::point("file.before-commit");
        let folder = self.files_folder().to_owned();
        let kept = self
            .write(move |connection| {
                // A transcript that exists is kept when the content has to be fetched again.
                let speech = is_to_be_heard.then_some("pending");
                let changed = connection
                    .prepare_cached(
                        "UPDATE files SET state = 'fetched', reason = NULL, sha256 = ?2, size_bytes = ?3,
                                speech = coalesce(speech, ?4), finished_at_ms = ?5
                         WHERE id = ?1 AND state = 'pending'",
                    )?
                    .execute(params![
                        id,
                        content.id(),
                        stored_count(content.size_bytes()),
                        speech,
                        now_ms
                    ])?;
                if changed == 0 {
                    return Ok(false);
                }
                if is_to_be_heard {
                    queue_speech_txn(connection, id, now_ms)?;
                }
                // If the commit fails, the next start removes the bytes, which no row refers to.
                place_txn(&folder, content).map(|()| true)
            })
            .await?;
        crash::point("file.after-commit");
        Ok(kept)
    }

    /// Stores the transcript of a voice note, and adds it to its turn, where models and searches find it.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn keep_transcript(
        &self,
        id: FileId,
        transcript: String,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| transcript_txn(connection, id, &transcript, now_ms))
            .await
    }

    /// Notes that a voice note will never be transcribed.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn give_speech_up(&self, id: FileId, reason: String) -> Result<(), StoreError> {
        self.write(move |connection| give_speech_up_txn(connection, id, &reason))
            .await
    }

    /// Queues voice notes for transcription that never were queued; returns how many.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn queue_speech(&self, notes: Vec<FileId>, now_ms: i64) -> Result<u64, StoreError> {
        self.write(move |connection| {
            let mut queue = connection.prepare_cached(
                "UPDATE files SET speech = 'pending'
                 WHERE id = ?1 AND state = 'fetched' AND speech IS NULL",
            )?;
            let mut count = 0;
            for note in notes {
                if queue.execute([note])? > 0 {
                    queue_speech_txn(connection, note, now_ms)?;
                    count += 1;
                }
            }
            Ok(count)
        })
        .await
    }

    /// Queues given-up files to be fetched again and, with `hears_since_ms`, voice notes given up since then to be
    /// transcribed again; returns how many.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn try_files_again(
        &self,
        files: Vec<FileId>,
        hears_since_ms: Option<i64>,
        now_ms: i64,
    ) -> Result<u64, StoreError> {
        self.write(move |connection| {
            let mut fetch = connection.prepare_cached(
                "UPDATE files SET state = 'pending', finished_at_ms = NULL
                 WHERE id = ?1 AND state IN ('refused', 'too_large', 'failed')",
            )?;
            let mut count = 0;
            for file in files {
                if fetch.execute([file])? > 0 {
                    enqueue_for_file_txn(connection, Job::FetchFile { file }, file, now_ms)?;
                    count += 1;
                }
            }
            let mut unheard = connection.prepare_cached(
                "UPDATE files SET speech = 'pending'
                 WHERE state = 'fetched' AND speech = 'failed' AND finished_at_ms >= ?1 RETURNING id",
            )?;
            let unheard: Vec<FileId> = match hears_since_ms {
                Some(since_ms) => unheard
                    .query_map([since_ms], |row| row.get("id"))?
                    .collect::<crate::engine::sql::Result<_>>()?,
                None => Vec::new(),
            };
            for note in unheard {
                queue_speech_txn(connection, note, now_ms)?;
                count += 1;
            }
            Ok(count)
        })
        .await
    }
}

impl<C: MayUseModels> Store<C> {
    /// Queues files to be fetched again whose content is no longer on the disk.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn fetch_again(&self, content: ContentId, now_ms: i64) -> Result<(), StoreError> {
        self.write(move |connection| lose_content_txn(connection, content, now_ms))
            .await
    }
}

fn describe_txn(
    connection: &Connection,
    id: FileId,
    facts: &FileFacts,
    now_ms: i64,
) -> Result<(), StoreError> {
    let found: Option<(i64, String)> = connection
        .prepare_cached("SELECT turn_seq, platform_id FROM files WHERE id = ?1")?
        .query_row([id], |row| {
            Ok((row.get("turn_seq")?, row.get("platform_id")?))
        })
        .optional()?;
    let Some((turn_seq, platform_id)) = found else {
        return Ok(());
    };
    let mut turn = turn_at(connection, turn_seq)?;
    let mut attachments = attachments_from(turn.attachments.as_deref())?;
    let is_it = |it: &&mut Attachment| it.file_id.as_deref() == Some(&platform_id);
    let Some(attachment) = attachments.iter_mut().find(is_it) else {
        return Ok(());
    };
    attachment.kind.clone_from(&facts.kind);
    attachment.name.clone_from(&facts.name);
    attachment.mime_type.clone_from(&facts.mime_type);
    attachment.size_bytes = facts.size_bytes;
    // The same label as for messages that describe their file.
    let label = match facts.name.as_deref().filter(|_| facts.kind != "photo") {
        Some(name) => format!("[{} {name}]", facts.kind),
        None => format!("[{}]", facts.kind),
    };
    let replacement = Replacement {
        content: turn.content.replacen("[file]", &label, 1),
        attachments: stored_attachments(&attachments),
        tokens: None,
        // No revision is kept: the text is only completed, not replaced.
        keep_revision: false,
        now_ms,
    };
    revise_turn_txn(connection, &mut turn, replacement)?;
    refresh_triggers_txn(connection, &turn)
}

fn transcript_txn(
    connection: &Connection,
    id: FileId,
    transcript: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let turn_seq: Option<i64> = connection
        .prepare_cached(
            "UPDATE files SET speech = 'done', transcript = ?2, reason = NULL
             WHERE id = ?1 AND speech = 'pending' RETURNING turn_seq",
        )?
        .query_row(params![id, transcript], |row| row.get("turn_seq"))
        .optional()?;
    let Some(turn_seq) = turn_seq.filter(|_| !transcript.is_empty()) else {
        return Ok(());
    };
    let mut turn = turn_at(connection, turn_seq)?;
    let replacement = Replacement {
        content: with_words(&turn.content, transcript),
        attachments: turn.attachments.clone(),
        tokens: None,
        // No revision is kept: the transcript is added, nothing is replaced.
        keep_revision: false,
        now_ms,
    };
    revise_turn_txn(connection, &mut turn, replacement)?;
    refresh_triggers_txn(connection, &turn)
}

/// Completes attachments of a message that was received again with the known descriptions of its files.
pub(crate) fn with_known_facts(
    attachments: &[Attachment],
    known: Option<&str>,
) -> Result<Vec<Attachment>, StoreError> {
    let known = attachments_from(known)?;
    let told = |attachment: &Attachment| {
        let says_nothing = attachment.name.is_none() && attachment.mime_type.is_none();
        let before = known
            .iter()
            .find(|before| before.file_id.is_some() && before.file_id == attachment.file_id);
        before
            .filter(|_| says_nothing)
            .unwrap_or(attachment)
            .clone()
    };
    Ok(attachments.iter().map(told).collect())
}
