//! Files of turns: which are to be fetched, what is known of each, and what a prompt may use of them.
//!
//! A row comes with the turn that carries the file, in the same transaction, and goes with it; so does the job
//! that fetches it. What the file is called stands in the turn's attachments. The bytes are the engine's business.

use crate::engine::sql::{Connection, OptionalExtension, Row, params};
use vocative_contract::envelope::Attachment;

use crate::contract::FileCounts;
use crate::registry::{BackupRule, ExportRule, Fate, OF_TURN, StoreTable, account, text};
use crate::rows::columns::{attachments_from, count_from};
use crate::rows::jobs::{enqueue_txn, forget_job_txn};
use crate::{Reader, StoreError};
use vocative_core::file::{ContentId, FileFacts, FileKind, FileState, TurnFile, WantedFile};
use vocative_core::ids::{FileId, TurnId};
use vocative_core::job::{Job, JobKind};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account(
    "files",
    text(
        &["transcript"],
        &[],
        &["platform_id", "state", "reason", "speech"],
    ),
    Fate {
        export: ExportRule::Exported,
        backup: BackupRule::WithFiles,
        ..OF_TURN
    },
)
.follows(&["turn_seq"])];

/// The most files of one turn that are stored; platforms allow ten.
const FILES_OF_TURN_MAX: usize = 32;

/// Queues what is attached to a turn and not known yet.
pub(crate) fn queue_files_txn(
    connection: &Connection,
    turn_seq: i64,
    attachments: &[Attachment],
    now_ms: i64,
) -> Result<(), StoreError> {
    let ids = attachments.iter().filter_map(|it| it.file_id.as_deref());
    for id in ids.take(FILES_OF_TURN_MAX) {
        let queued = connection
            .prepare_cached(
                "INSERT INTO files (turn_seq, platform_id, state)
                 VALUES (?1, ?2, 'pending') ON CONFLICT DO NOTHING RETURNING id",
            )?
            .query_row(params![turn_seq, id], |row| row.get("id"))
            .optional()?;
        if let Some(file) = queued {
            enqueue_for_file_txn(connection, Job::FetchFile { file }, file, now_ms)?;
        }
    }
    Ok(())
}

/// Queues a job about a file, for the account that the file came through.
pub(crate) fn enqueue_for_file_txn(
    connection: &Connection,
    job: Job,
    file: FileId,
    now_ms: i64,
) -> Result<(), StoreError> {
    let account = connection
        .prepare_cached(
            "SELECT h.account_id FROM files f CROSS JOIN turns t ON t.seq = f.turn_seq
             CROSS JOIN conversations c ON c.id = t.conversation_id
             CROSS JOIN chats h ON h.id = c.chat_id WHERE f.id = ?1",
        )?
        .query_row([file], |row| row.get("account_id"))?;
    enqueue_txn(connection, &job, Some(account), now_ms)
}

/// Forgets the files of a turn but for those that it still names.
pub(crate) fn forget_files_txn(
    connection: &Connection,
    turn_seq: i64,
    left: Option<&str>,
) -> Result<(), StoreError> {
    let left = attachments_from(left)?;
    let left: Vec<&str> = left.iter().filter_map(|it| it.file_id.as_deref()).collect();
    let left = serde_json::to_string(&left)?;
    let mut statement = connection.prepare_cached(
        "SELECT id, sha256 FROM files
         WHERE turn_seq = ?1 AND platform_id NOT IN (SELECT value FROM json_each(?2))",
    )?;
    let gone: Vec<(FileId, Option<ContentId>)> = statement
        .query_map(params![turn_seq, left], |row| {
            Ok((row.get("id")?, row.get("sha256")?))
        })?
        .collect::<crate::engine::sql::Result<_>>()?;
    for (file, content) in gone {
        for kind in [JobKind::FetchFile, JobKind::TranscribeFile] {
            forget_job_txn(connection, kind, &file.to_string())?;
        }
        connection
            .prepare_cached("DELETE FROM files WHERE id = ?1")?
            .execute([file])?;
        if let Some(content) = content {
            drop_content_txn(connection, content)?;
        }
    }
    Ok(())
}

/// Queues a content to be removed from the disk unless a file still refers to it.
pub(crate) fn drop_content_txn(
    connection: &Connection,
    content: ContentId,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("INSERT INTO dropped_contents (sha256) VALUES (?1) ON CONFLICT DO NOTHING")?
        .execute([content])?;
    // Due at once, whatever the time is.
    enqueue_txn(connection, &Job::RemoveContents, None, 0)
}

/// A file that is still wanted: to be fetched, or to be written down.
macro_rules! wanted_file {
    ($wanted:literal) => {
        concat!(
            "SELECT f.id, h.account_id, f.platform_id, t.sent_at_ms, t.captured_at_ms, f.sha256,
                    t.attachments
             FROM files f CROSS JOIN turns t ON t.seq = f.turn_seq
             CROSS JOIN conversations c ON c.id = t.conversation_id
             CROSS JOIN chats h ON h.id = c.chat_id
             WHERE f.id = ?1 AND ",
            $wanted
        )
    };
}

/// The same columns of files that may be voice notes and were never asked to be written down.
const UNHEARD_SQL: &str =
    "SELECT f.id, h.account_id, f.platform_id, t.sent_at_ms, t.captured_at_ms,
            f.sha256, t.attachments
     FROM files f CROSS JOIN turns t ON t.seq = f.turn_seq
     CROSS JOIN conversations c ON c.id = t.conversation_id
     CROSS JOIN chats h ON h.id = c.chat_id
     WHERE f.state = 'fetched' AND f.speech IS NULL AND f.finished_at_ms >= ?1
       AND t.attachments LIKE '%\"voice\"%'
     ORDER BY f.id DESC LIMIT ?2";

/// The same columns of files that were given up.
const GIVEN_UP_SQL: &str =
    "SELECT f.id, h.account_id, f.platform_id, t.sent_at_ms, t.captured_at_ms,
            f.sha256, t.attachments
     FROM files f CROSS JOIN turns t ON t.seq = f.turn_seq
     CROSS JOIN conversations c ON c.id = t.conversation_id
     CROSS JOIN chats h ON h.id = c.chat_id
     WHERE f.state IN ('refused', 'too_large', 'failed') AND f.finished_at_ms >= ?1
     ORDER BY f.id DESC LIMIT ?2";

impl Reader {
    /// A file that is to be fetched; `None` = it was, or is no longer wanted.
    ///
    /// # Errors
    /// `Undecodable` if its turn can't be decoded.
    pub async fn file_to_fetch(&self, id: FileId) -> Result<Option<WantedFile>, StoreError> {
        self.wanted(id, wanted_file!("f.state = 'pending'")).await
    }

    /// A voice note that is to be transcribed; `None` = it was, or is no longer wanted.
    ///
    /// # Errors
    /// `Undecodable` if its turn can't be decoded.
    pub async fn note_to_transcribe(&self, id: FileId) -> Result<Option<WantedFile>, StoreError> {
        self.wanted(id, wanted_file!("f.speech = 'pending'")).await
    }

    async fn wanted(
        &self,
        id: FileId,
        sql: &'static str,
    ) -> Result<Option<WantedFile>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(sql)?;
            Ok(statement.query_row([id], wanted_from_row).optional()?)
        })
        .await
    }

    /// Files that were given up since a time, and could not be had or were not wanted then; the newest.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn given_up_files(
        &self,
        since_ms: i64,
        limit: usize,
    ) -> Result<Vec<WantedFile>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(GIVEN_UP_SQL)?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![since_ms, limit], wanted_from_row)?;
            Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
        })
        .await
    }

    /// Voice notes that were fetched since a time and never asked to be written down, the newest.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn unheard_notes(
        &self,
        since_ms: i64,
        limit: usize,
    ) -> Result<Vec<FileId>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(UNHEARD_SQL)?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![since_ms, limit], wanted_from_row)?;
            let rows: Vec<WantedFile> = rows.collect::<crate::engine::sql::Result<_>>()?;
            let notes = rows.into_iter();
            let notes = notes.filter(|file| file.facts.content_kind() == FileKind::Voice);
            Ok(notes.map(|file| file.id).collect())
        })
        .await
    }

    /// The files of turns, in the order of the turns and of their attachments.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn files_of(&self, turns: Vec<TurnId>) -> Result<Vec<TurnFile>, StoreError> {
        self.read(move |connection| {
            let mut found = Vec::new();
            for turn in turns {
                found.extend(files_of(connection, turn)?);
            }
            Ok(found)
        })
        .await
    }

    /// Bytes of all contents, each counted once.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn content_bytes(&self) -> Result<u64, StoreError> {
        self.read(|connection| Ok(count_files(connection)?.bytes))
            .await
    }
}

/// The files of a turn, in the order of its attachments.
pub(crate) fn files_of(connection: &Connection, turn: TurnId) -> Result<Vec<TurnFile>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT f.id, f.platform_id, f.state, f.reason, f.sha256, f.size_bytes,
                f.speech = 'pending' AS is_to_be_heard, t.attachments
         FROM turns t JOIN files f ON f.turn_seq = t.seq
         WHERE t.uuid = ?1 AND t.visibility = 'room' ORDER BY f.id",
    )?;
    let files = statement.query_map([turn], |row| file_from_row(turn, row))?;
    Ok(files.collect::<crate::engine::sql::Result<_>>()?)
}

/// Counts files: what is stored, each content once, and what waits.
pub(crate) fn count_files(connection: &Connection) -> Result<FileCounts, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT count(*) AS stored, coalesce(sum(size_bytes), 0) AS bytes,
                    (SELECT count(*) FROM jobs WHERE kind = 'fetch-file' AND state IN ('pending', 'leased', 'waiting')) AS waiting,
                    (SELECT count(*) FROM jobs
                     WHERE kind = 'transcribe-file' AND state IN ('pending', 'leased', 'waiting')) AS to_be_heard
             FROM (SELECT DISTINCT sha256, size_bytes FROM files WHERE sha256 IS NOT NULL)",
        )?
        .query_row([], |row| {
            Ok(FileCounts {
                stored: count_from(row.get("stored")?),
                bytes: count_from(row.get("bytes")?),
                waiting: count_from(row.get("waiting")?),
                to_be_heard: count_from(row.get("to_be_heard")?),
            })
        })?)
}

/// Notes that a content was lost: its files are to be fetched again.
pub(crate) fn lose_content_txn(
    connection: &Connection,
    content: ContentId,
    now_ms: i64,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "UPDATE files SET state = 'pending', sha256 = NULL, size_bytes = NULL,
                reason = 'its content was lost', finished_at_ms = NULL,
                speech = CASE WHEN transcript IS NULL THEN NULL ELSE speech END
         WHERE sha256 = ?1 RETURNING id",
    )?;
    let lost: Vec<FileId> = statement
        .query_map([content], |row| row.get("id"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    for file in lost {
        forget_job_txn(connection, JobKind::TranscribeFile, &file.to_string())?;
        enqueue_for_file_txn(connection, Job::FetchFile { file }, file, now_ms)?;
    }
    Ok(())
}

/// Queues a voice note to be transcribed.
pub(crate) fn queue_speech_txn(
    connection: &Connection,
    file: FileId,
    now_ms: i64,
) -> Result<(), StoreError> {
    enqueue_for_file_txn(connection, Job::TranscribeFile { file }, file, now_ms)
}

/// Gives a file up: it is not fetched.
pub(crate) fn give_file_up_txn(
    connection: &Connection,
    id: FileId,
    state: FileState,
    reason: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE files SET state = ?2, reason = ?3, finished_at_ms = ?4
             WHERE id = ?1 AND state = 'pending'",
        )?
        .execute(params![id, state, reason, now_ms])?;
    Ok(())
}

/// Gives a voice note up: it is not transcribed.
pub(crate) fn give_speech_up_txn(
    connection: &Connection,
    id: FileId,
    reason: &str,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE files SET speech = 'failed', reason = ?2 WHERE id = ?1 AND speech = 'pending'",
        )?
        .execute(params![id, reason])?;
    Ok(())
}

/// Marks a file, or its transcript, that was given up as wanted again.
pub(crate) fn want_again_txn(connection: &Connection, id: FileId) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE files SET state = iif(state = 'failed', 'pending', state),
                    speech = iif(speech = 'failed', 'pending', speech)
             WHERE id = ?1",
        )?
        .execute([id])?;
    Ok(())
}

/// A message's text with what is said in its voice notes, for an edit that brings the text alone.
pub(crate) fn with_transcripts(
    connection: &Connection,
    turn_seq: i64,
    text: String,
) -> Result<String, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT transcript FROM files
         WHERE turn_seq = ?1 AND transcript IS NOT NULL AND transcript <> '' ORDER BY id",
    )?;
    let transcripts = statement.query_map([turn_seq], |row| row.get::<_, String>("transcript"))?;
    let mut text = text;
    for transcript in transcripts {
        text = with_words(&text, &transcript?);
    }
    Ok(text)
}

/// Joins words to a text: behind a label if that is all the text, else on a line of their own below it.
pub(crate) fn with_words(text: &str, words: &str) -> String {
    let is_label_alone = text.ends_with(']') && !text.contains('\n');
    let between = if is_label_alone { " " } else { "\n[voice] " };
    format!("{text}{between}{words}")
}

/// What the attachments of a turn say of one file.
fn facts_of(row: &Row<'_>, platform_id: &str) -> crate::engine::sql::Result<FileFacts> {
    let attachments: Option<String> = row.get("attachments")?;
    let attachments = attachments_from(attachments.as_deref())
        .map_err(|error| row.undecodable("attachments", error))?;
    let mut attachments = attachments.into_iter();
    let found = attachments.find(|it| it.file_id.as_deref() == Some(platform_id));
    Ok(found.map_or_else(
        || FileFacts {
            kind: "file".to_owned(),
            name: None,
            mime_type: None,
            size_bytes: None,
        },
        |it| FileFacts {
            kind: it.kind,
            name: it.name,
            mime_type: it.mime_type,
            size_bytes: it.size_bytes,
        },
    ))
}

fn wanted_from_row(row: &Row<'_>) -> crate::engine::sql::Result<WantedFile> {
    let platform_id: String = row.get("platform_id")?;
    Ok(WantedFile {
        id: row.get("id")?,
        account: row.get("account_id")?,
        facts: facts_of(row, &platform_id)?,
        platform_id,
        sent_at_ms: row.get("sent_at_ms")?,
        captured_at_ms: row.get("captured_at_ms")?,
        content: row.get("sha256")?,
    })
}

pub(crate) fn file_from_row(turn: TurnId, row: &Row<'_>) -> crate::engine::sql::Result<TurnFile> {
    let platform_id: String = row.get("platform_id")?;
    let content: Option<ContentId> = row.get("sha256")?;
    let size_bytes: Option<i64> = row.get("size_bytes")?;
    Ok(TurnFile {
        id: row.get("id")?,
        turn,
        facts: facts_of(row, &platform_id)?,
        platform_id,
        state: row.get("state")?,
        reason: row.get("reason")?,
        content: content.zip(size_bytes.and_then(|size| u64::try_from(size).ok())),
        is_to_be_heard: row
            .get::<_, Option<bool>>("is_to_be_heard")?
            .unwrap_or(false),
    })
}
