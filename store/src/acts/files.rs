//! Files of turns: which are to be fetched, what became of each, and what a prompt may use of them.
//!
//! A row comes with the turn that carries the file, in the same transaction, and goes with it; so does the job
//! that fetches it. What the file is called stands in the turn's attachments. The bytes are `contents`' business.

use crate::capability::{MayUseModels, MayWork};
use crate::engine::sql::{Connection, OptionalExtension, Row, params};
use vocative_contract::crash;
use vocative_contract::envelope::Attachment;

use crate::acts::triggers::refresh_triggers_txn;
use crate::contract::FileCounts;
use crate::rows::columns::{attachments_from, count_from, stored_attachments, stored_count};
use crate::rows::contents::{ContentWriter, place_txn};
use crate::rows::jobs::{enqueue_txn, forget_job_txn};
use crate::rows::turns::{Replacement, revise_turn_txn, turn_at};
use crate::{Reader, Store, StoreError};
use vocative_core::file::{ContentId, FileFacts, FileKind, FileState, TurnFile, WantedFile};
use vocative_core::ids::{FileId, TurnId};
use vocative_core::job::{Job, JobKind};

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
fn enqueue_for_file_txn(
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
    /// A file that is to be fetched; `None` = it was, or nobody wants it any more.
    ///
    /// # Errors
    /// `Undecodable` if its turn can't be decoded.
    pub async fn file_to_fetch(&self, id: FileId) -> Result<Option<WantedFile>, StoreError> {
        self.wanted(id, wanted_file!("f.state = 'pending'")).await
    }

    /// A voice note that is to be written down; `None` = it was, or nobody wants it any more.
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

impl<C: MayWork> Store<C> {
    /// Stores what the platform says of a file of which its message said nothing; the message names it from
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

    /// Keeps the bytes of a file under their hash. Returns `false` where nobody wants them any more: the
    /// message was deleted meanwhile. A voice note that is to be written down is queued for it.
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

    /// Stores what is said in a voice note, and adds it to its turn: there models and searches find it.
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

    /// Notes that a voice note never will be written down.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn give_speech_up(&self, id: FileId, reason: String) -> Result<(), StoreError> {
        self.write(move |connection| give_speech_up_txn(connection, id, &reason))
            .await
    }

    /// Queues voice notes to be written down that never were; how many.
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

    /// Sends files that were given up back to be fetched, and with `hears_since_ms` voice notes back to be
    /// written down that were given up since then; how many.
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
    /// Sends files back to be fetched whose content is not on the disk any more.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn fetch_again(&self, content: ContentId, now_ms: i64) -> Result<(), StoreError> {
        self.write(move |connection| lose_content_txn(connection, content, now_ms))
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

/// Files without their content are to be fetched again.
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

fn queue_speech_txn(connection: &Connection, file: FileId, now_ms: i64) -> Result<(), StoreError> {
    enqueue_for_file_txn(connection, Job::TranscribeFile { file }, file, now_ms)
}

/// A file is not fetched.
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

/// A voice note is not written down.
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

/// A file that was given up is wanted after all.
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

/// Whether a file still refers to a content.
pub(crate) fn is_referred_to(
    connection: &Connection,
    content: ContentId,
) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM files WHERE sha256 = ?1) AS is_so")?
        .query_row([content], |row| row.get("is_so"))?)
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
    // As messages that say it are labelled.
    let label = match facts.name.as_deref().filter(|_| facts.kind != "photo") {
        Some(name) => format!("[{} {name}]", facts.kind),
        None => format!("[{}]", facts.kind),
    };
    let replacement = Replacement {
        content: turn.content.replacen("[file]", &label, 1),
        attachments: stored_attachments(&attachments),
        tokens: None,
        // Nothing is replaced: the message is told in full.
        keep_revision: false,
        now_ms,
    };
    revise_turn_txn(connection, &mut turn, replacement)?;
    refresh_triggers_txn(connection, &turn)
}

/// What is known of files whose message, told again, says nothing of them.
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
        // Nothing is replaced: the message is heard.
        keep_revision: false,
        now_ms,
    };
    revise_turn_txn(connection, &mut turn, replacement)?;
    refresh_triggers_txn(connection, &turn)
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

/// Words behind the label of what they are said in, or below what was written.
fn with_words(text: &str, words: &str) -> String {
    let is_label_alone = text.ends_with(']') && !text.contains('\n');
    let between = if is_label_alone { " " } else { "\n[voice] " };
    format!("{text}{between}{words}")
}

/// What the attachments of a turn say of one file.
fn facts_of(attachments: Option<&str>, platform_id: &str) -> crate::engine::sql::Result<FileFacts> {
    let attachments = attachments_from(attachments).map_err(|error| {
        let kind = crate::engine::sql::Type::Text;
        crate::engine::sql::Error::FromSqlConversionFailure(7, kind, Box::new(error))
    })?;
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
    let attachments: Option<String> = row.get("attachments")?;
    Ok(WantedFile {
        id: row.get("id")?,
        account: row.get("account_id")?,
        facts: facts_of(attachments.as_deref(), &platform_id)?,
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
    let attachments: Option<String> = row.get("attachments")?;
    Ok(TurnFile {
        id: row.get("id")?,
        turn,
        facts: facts_of(attachments.as_deref(), &platform_id)?,
        platform_id,
        state: row.get("state")?,
        reason: row.get("reason")?,
        content: content.zip(size_bytes.and_then(|size| u64::try_from(size).ok())),
        is_to_be_heard: row
            .get::<_, Option<bool>>("is_to_be_heard")?
            .unwrap_or(false),
    })
}
