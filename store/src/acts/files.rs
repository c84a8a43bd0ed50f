//! Files of turns: which are to be fetched, what became of each, and what a prompt may use of them.
//!
//! A row comes with the turn that carries the file, in the same transaction, and goes with it. What the
//! file is called stands in the turn's attachments. The bytes are `contents`' business.

use crate::engine::sql::{Connection, OptionalExtension, Row, params};
use vocative_contract::crash;
use vocative_contract::envelope::Attachment;

use crate::acts::runs::WAIT_MAX_MS;
use crate::acts::triggers::refresh_triggers_txn;
use crate::contract::FileCounts;
use crate::rows::columns::{attachments_from, count_from, stored_attachments, stored_count};
use crate::rows::contents::{ContentWriter, place_txn};
use crate::rows::quarantine::Queue;
use crate::rows::turns::{Replacement, revise_turn_txn, turn_at};
use crate::{Store, StoreError};
use vocative_core::file::{
    ContentId, DueFile, FileFacts, FileKind, FileOutcome, FileState, TurnFile,
};
use vocative_core::ids::{AccountId, FileId, TurnId};

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
        connection
            .prepare_cached(
                "INSERT INTO files (turn_seq, platform_id, state, not_before_ms)
                 VALUES (?1, ?2, 'pending', ?3) ON CONFLICT DO NOTHING",
            )?
            .execute(params![turn_seq, id, now_ms])?;
    }
    Ok(())
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
    for sql in [
        "INSERT INTO dropped_contents (sha256)
         SELECT sha256 FROM files
         WHERE turn_seq = ?1 AND sha256 IS NOT NULL
           AND platform_id NOT IN (SELECT value FROM json_each(?2)) ON CONFLICT DO NOTHING",
        "DELETE FROM files
         WHERE turn_seq = ?1 AND platform_id NOT IN (SELECT value FROM json_each(?2))",
    ] {
        connection
            .prepare_cached(sql)?
            .execute(params![turn_seq, left])?;
    }
    Ok(())
}

/// The columns of [`due_from_row`].
macro_rules! due_files {
    ($tail:literal) => {
        concat!(
            "SELECT f.id, h.account_id, f.platform_id, f.attempts, t.sent_at_ms, t.captured_at_ms,
                    f.sha256, t.attachments
             FROM files f CROSS JOIN turns t ON t.seq = f.turn_seq
             CROSS JOIN conversations c ON c.id = t.conversation_id
             CROSS JOIN chats h ON h.id = c.chat_id
             WHERE ",
            $tail,
            " AND f.not_before_ms NOT BETWEEN ?1 + 1 AND ?1 + ?4
               AND h.account_id IN (SELECT value FROM json_each(?2))
             ORDER BY f.not_before_ms, f.id LIMIT ?3"
        )
    };
}

/// The same columns of files that may be voice notes and were never asked to be written down.
const UNHEARD_SQL: &str =
    "SELECT f.id, h.account_id, f.platform_id, f.attempts, t.sent_at_ms, t.captured_at_ms,
            f.sha256, t.attachments
     FROM files f CROSS JOIN turns t ON t.seq = f.turn_seq
     CROSS JOIN conversations c ON c.id = t.conversation_id
     CROSS JOIN chats h ON h.id = c.chat_id
     WHERE f.state = 'fetched' AND f.speech IS NULL AND f.finished_at_ms >= ?1
       AND t.attachments LIKE '%\"voice\"%'
     ORDER BY f.id DESC LIMIT ?2";

/// The same columns of files that were given up.
const GIVEN_UP_SQL: &str =
    "SELECT f.id, h.account_id, f.platform_id, f.attempts, t.sent_at_ms, t.captured_at_ms,
            f.sha256, t.attachments
     FROM files f CROSS JOIN turns t ON t.seq = f.turn_seq
     CROSS JOIN conversations c ON c.id = t.conversation_id
     CROSS JOIN chats h ON h.id = c.chat_id
     WHERE f.state IN ('refused', 'too_large', 'failed') AND f.finished_at_ms >= ?1
     ORDER BY f.id DESC LIMIT ?2";

impl Store {
    /// The files that are due to be fetched through these accounts, oldest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn due_files(
        &self,
        accounts: &[AccountId],
        now_ms: i64,
        limit: usize,
    ) -> Result<Vec<DueFile>, StoreError> {
        let sql = due_files!("f.state = 'pending'");
        self.due(Queue::Files, sql, accounts, now_ms, limit).await
    }

    /// The voice notes that are due to be written down, oldest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn due_speech(
        &self,
        accounts: &[AccountId],
        now_ms: i64,
        limit: usize,
    ) -> Result<Vec<DueFile>, StoreError> {
        let sql = due_files!("f.speech = 'pending'");
        self.due(Queue::VoiceNotes, sql, accounts, now_ms, limit)
            .await
    }

    async fn due(
        &self,
        queue: Queue,
        sql: &'static str,
        accounts: &[AccountId],
        now_ms: i64,
        limit: usize,
    ) -> Result<Vec<DueFile>, StoreError> {
        let accounts: Vec<i64> = accounts.iter().map(|account| account.0).collect();
        let accounts = serde_json::to_string(&accounts)?;
        let read = self.read(move |connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let mut rows = statement.query(params![now_ms, accounts, limit, WAIT_MAX_MS])?;
            let (mut due, mut set_aside) = (Vec::new(), Vec::new());
            while let Some(row) = rows.next()? {
                match due_from_row(&row).map_err(StoreError::from) {
                    Ok(file) => due.push(file),
                    Err(StoreError::Undecodable { what }) => set_aside.push((row.get(0)?, what)),
                    Err(other) => return Err(other),
                }
            }
            Ok((due, set_aside))
        });
        let (due, set_aside) = read.await?;
        self.set_aside(queue, set_aside, now_ms).await?;
        Ok(due)
    }

    /// When the next file comes due to be fetched or written down.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn next_file_due_ms(&self) -> Result<Option<i64>, StoreError> {
        self.read(|connection| {
            Ok(connection
                .prepare_cached(
                    "SELECT min(due) FROM (
                         SELECT min(not_before_ms) AS due FROM files WHERE state = 'pending'
                         UNION ALL
                         SELECT min(not_before_ms) FROM files WHERE speech = 'pending')",
                )?
                .query_row([], |row| row.get(0))?)
        })
        .await
    }

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

    /// Notes what became of an attempt to fetch a file.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn note_file(
        &self,
        id: FileId,
        outcome: FileOutcome,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| note_txn(connection, id, &outcome, now_ms))
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
                        "UPDATE files SET state = 'fetched', reason = NULL, sha256 = ?2,
                                size_bytes = ?3, speech = coalesce(speech, ?4), attempts = 0, not_before_ms = ?5,
                                finished_at_ms = ?5
                         WHERE id = ?1 AND state = 'pending'",
                    )?
                    .execute(params![
                        id,
                        content.id(),
                        stored_count(content.size_bytes()),
                        speech,
                        now_ms
                    ])?;
                match changed {
                    0 => Ok(false),
                    // If the commit fails, the next start removes the bytes, which no row refers to.
                    _ => place_txn(&folder, content).map(|()| true),
                }
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

    /// Notes that a voice note was not written down this time, or never will be.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn note_speech(&self, id: FileId, outcome: FileOutcome) -> Result<(), StoreError> {
        self.write(move |connection| {
            let (speech, not_before_ms, counts, reason) = match &outcome {
                FileOutcome::Again {
                    not_before_ms,
                    counts,
                    reason,
                } => ("pending", Some(*not_before_ms), *counts, reason),
                FileOutcome::GivenUp { reason, .. } => ("failed", None, true, reason),
            };
            connection
                .prepare_cached(
                    "UPDATE files SET speech = ?2, not_before_ms = coalesce(?3, not_before_ms),
                            reason = ?4, attempts = attempts + ?5
                     WHERE id = ?1 AND speech = 'pending'",
                )?
                .execute(params![id, speech, not_before_ms, reason, counts])?;
            Ok(())
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
    ) -> Result<Vec<DueFile>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(GIVEN_UP_SQL)?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![since_ms, limit], due_from_row)?;
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
            let rows = statement.query_map(params![since_ms, limit], due_from_row)?;
            let rows: Vec<DueFile> = rows.collect::<crate::engine::sql::Result<_>>()?;
            let notes = rows.into_iter();
            let notes = notes.filter(|file| file.facts.content_kind() == FileKind::Voice);
            Ok(notes.map(|file| file.id).collect())
        })
        .await
    }

    /// Queues voice notes to be written down that never were; how many.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn queue_speech(&self, notes: Vec<FileId>, now_ms: i64) -> Result<u64, StoreError> {
        self.write(move |connection| {
            let mut queue = connection.prepare_cached(
                "UPDATE files SET speech = 'pending', attempts = 0, not_before_ms = ?2
                 WHERE id = ?1 AND state = 'fetched' AND speech IS NULL",
            )?;
            let mut count = 0;
            for note in &notes {
                count += queue.execute(params![note, now_ms])?;
            }
            Ok(count as u64)
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
                "UPDATE files SET state = 'pending', attempts = 0, not_before_ms = ?2,
                        finished_at_ms = NULL
                 WHERE id = ?1 AND state IN ('refused', 'too_large', 'failed')",
            )?;
            let mut count = 0;
            for file in &files {
                count += fetch.execute(params![file, now_ms])?;
            }
            if let Some(since_ms) = hears_since_ms {
                count += connection
                    .prepare_cached(
                        "UPDATE files SET speech = 'pending', attempts = 0, not_before_ms = ?2
                         WHERE state = 'fetched' AND speech = 'failed' AND finished_at_ms >= ?1",
                    )?
                    .execute(params![since_ms, now_ms])?;
            }
            Ok(count as u64)
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
                f.speech = 'pending', t.attachments
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
            "SELECT count(*), coalesce(sum(size_bytes), 0),
                    (SELECT count(*) FROM files WHERE state = 'pending'),
                    (SELECT count(*) FROM files WHERE speech = 'pending')
             FROM (SELECT DISTINCT sha256, size_bytes FROM files WHERE sha256 IS NOT NULL)",
        )?
        .query_row([], |row| {
            Ok(FileCounts {
                stored: count_from(row.get(0)?),
                bytes: count_from(row.get(1)?),
                waiting: count_from(row.get(2)?),
                to_be_heard: count_from(row.get(3)?),
            })
        })?)
}

/// Files without their content are to be fetched again.
pub(crate) fn lose_content_txn(
    connection: &Connection,
    content: ContentId,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE files SET state = 'pending', sha256 = NULL, size_bytes = NULL, attempts = 0,
                    not_before_ms = ?2, reason = 'its content was lost', finished_at_ms = NULL,
                    speech = CASE WHEN transcript IS NULL THEN NULL ELSE speech END
             WHERE sha256 = ?1",
        )?
        .execute(params![content, now_ms])?;
    Ok(())
}

/// Whether a file still refers to a content.
pub(crate) fn is_referred_to(
    connection: &Connection,
    content: ContentId,
) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM files WHERE sha256 = ?1)")?
        .query_row([content], |row| row.get(0))?)
}

fn describe_txn(
    connection: &Connection,
    id: FileId,
    facts: &FileFacts,
    now_ms: i64,
) -> Result<(), StoreError> {
    let found: Option<(i64, String)> = connection
        .prepare_cached("SELECT turn_seq, platform_id FROM files WHERE id = ?1")?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
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
        .query_row(params![id, transcript], |row| row.get(0))
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
    let transcripts = statement.query_map([turn_seq], |row| row.get::<_, String>(0))?;
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

fn note_txn(
    connection: &Connection,
    id: FileId,
    outcome: &FileOutcome,
    now_ms: i64,
) -> Result<(), StoreError> {
    let (state, reason, not_before_ms, counts) = match outcome {
        FileOutcome::Again {
            not_before_ms,
            counts,
            reason,
        } => (FileState::Pending, reason, *not_before_ms, *counts),
        FileOutcome::GivenUp { state, reason } => (*state, reason, now_ms, true),
    };
    let finished_at_ms = (state != FileState::Pending).then_some(now_ms);
    connection
        .prepare_cached(
            "UPDATE files SET state = ?2, reason = ?3, not_before_ms = ?4,
                    attempts = attempts + ?6, finished_at_ms = ?5
             WHERE id = ?1 AND state = 'pending'",
        )?
        .execute(params![
            id,
            state,
            reason,
            not_before_ms,
            finished_at_ms,
            counts
        ])?;
    Ok(())
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

fn due_from_row(row: &Row<'_>) -> crate::engine::sql::Result<DueFile> {
    let platform_id: String = row.get(2)?;
    let attachments: Option<String> = row.get(7)?;
    Ok(DueFile {
        id: row.get(0)?,
        account: row.get(1)?,
        facts: facts_of(attachments.as_deref(), &platform_id)?,
        platform_id,
        attempts: row.get(3)?,
        sent_at_ms: row.get(4)?,
        captured_at_ms: row.get(5)?,
        content: row.get(6)?,
    })
}

fn file_from_row(turn: TurnId, row: &Row<'_>) -> crate::engine::sql::Result<TurnFile> {
    let platform_id: String = row.get(1)?;
    let content: Option<ContentId> = row.get(4)?;
    let size_bytes: Option<i64> = row.get(5)?;
    let attachments: Option<String> = row.get(7)?;
    Ok(TurnFile {
        id: row.get(0)?,
        turn,
        facts: facts_of(attachments.as_deref(), &platform_id)?,
        platform_id,
        state: row.get(2)?,
        reason: row.get(3)?,
        content: content.zip(size_bytes.and_then(|size| u64::try_from(size).ok())),
        is_to_be_heard: row.get::<_, Option<bool>>(6)?.unwrap_or(false),
    })
}
