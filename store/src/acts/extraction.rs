//! Stores what is learnt from one reading of a conversation: new entries, replaced entries and how far it was read, in
//! one transaction. Entries from a line that is gone or was changed by then are dropped, and so is the whole reading if
//! the conversation was read elsewhere meanwhile. `core/remembering` decides.

use std::collections::HashMap;

use vocative_contract::crash;

use crate::capability::MayRemember;
use crate::contract::{Extracted, Extraction, ExtractionDone};
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::columns::{chat_kind_from_name, conversation_row_id};
use crate::rows::memories::{NewEntry, insert_memory_txn, memories_in, replace_memory_txn};
use crate::rows::memory_marks::{forget_rereads_txn, put_mark_txn, read_again_txn, read_through};
use crate::{Store, StoreError};
use vocative_contract::envelope::ChatKind;
use vocative_core::ids::{ParticipantId, TurnId};
use vocative_core::remembering::extracting::ReadEntry;
use vocative_core::remembering::{
    AskedRoom, MemoryChange, MemoryId, MemoryOrigin, MemoryRef, StoredMemory, judge_change,
    judge_room, room_use,
};

impl<C: MayRemember> Store<C> {
    /// Stores what was learnt from a reading, and how far was read.
    ///
    /// # Errors
    /// Storage refuses; then nothing is written, and the conversation is read again.
    pub async fn write_extraction(&self, extraction: Extraction) -> Result<Extracted, StoreError> {
        crash::point("memory.before-commit");
        let written = self
            .write(move |connection| write_txn(connection, &extraction))
            .await?;
        crash::point("memory.after-commit");
        Ok(written)
    }
}

/// A turn whose text is still what was read.
struct UnchangedTurn {
    seq: i64,
    said_by: ParticipantId,
    sent_at_ms: i64,
}

/// The room of a reading.
struct LearningRoom {
    at: AskedRoom,
    kind: Option<ChatKind>,
}

fn write_txn(connection: &Connection, extraction: &Extraction) -> Result<Extracted, StoreError> {
    let conversation = match conversation_row_id(connection, extraction.conversation) {
        Ok(row) => row,
        Err(StoreError::NotFound { .. }) => return Ok(Extracted::Outdated),
        Err(cause) => return Err(cause),
    };
    let read = read_through(connection, conversation, &extraction.agent)?;
    if read != extraction.mark.after.0 {
        return Ok(Extracted::Outdated);
    }
    let room = room_of(connection, conversation)?;
    let mut lines: Vec<Option<UnchangedTurn>> = Vec::with_capacity(extraction.lines.len());
    for (turn, content) in &extraction.lines {
        lines.push(line_txn(
            connection,
            extraction,
            conversation,
            *turn,
            content,
        )?);
    }
    let mut learning = Learning {
        extraction,
        entries: memories_in(connection, room.at, &extraction.agent, true, None)?,
        room,
        lines,
        done: ExtractionDone::default(),
        over: HashMap::new(),
    };
    for entry in &extraction.entries {
        learning.learn_txn(connection, entry)?;
    }
    let done = learning.done;
    put_mark_txn(
        connection,
        conversation,
        &extraction.agent,
        extraction.mark,
        extraction.now_ms,
    )?;
    // Only now that the mark has moved past it can a changed line be queued to be read again.
    for (turn, content) in &extraction.lines {
        note_read_txn(connection, *turn, content)?;
    }
    for turn in &extraction.passed_over {
        let seq = seq_of(connection, *turn)?;
        seq.map_or(Ok(()), |seq| forget_rereads_txn(connection, seq))?;
    }
    Ok(Extracted::Done(done))
}

fn room_of(connection: &Connection, conversation: i64) -> Result<LearningRoom, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT c.chat_id, h.account_id, h.kind FROM conversations c JOIN chats h ON h.id = c.chat_id WHERE c.id = ?1",
        )?
        .query_row([conversation], |row| {
            let kind: Option<String> = row.get("kind")?;
            Ok(LearningRoom {
                at: AskedRoom {
                    account: row.get("account_id")?,
                    chat: row.get("chat_id")?,
                },
                kind: kind.as_deref().and_then(chat_kind_from_name),
            })
        })?)
}

/// The turn of a line that was read, if it is a served person's and its text is unchanged.
fn line_txn(
    connection: &Connection,
    extraction: &Extraction,
    conversation: i64,
    turn: TurnId,
    content: &str,
) -> Result<Option<UnchangedTurn>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT t.seq, t.participant_id, t.sent_at_ms, p.platform_id FROM turns t JOIN participants p ON p.id = t.participant_id
             WHERE t.uuid = ?1 AND t.conversation_id = ?2 AND t.content = ?3 AND t.visibility = 'room' AND t.kind = 'message'
               AND p.kind = 'user' AND NOT p.is_bot",
        )?
        .query_row(params![turn, conversation, content], |row| {
            let line = UnchangedTurn {
                seq: row.get("seq")?,
                said_by: row.get("participant_id")?,
                sent_at_ms: row.get("sent_at_ms")?,
            };
            Ok((line, row.get::<_, String>("platform_id")?))
        })
        .optional()?;
    Ok(found
        .filter(|(_, person)| (extraction.is_served)(person))
        .map(|(line, _)| line))
}

/// Notes that a line was read; if its text has changed since, it is queued to be read again.
fn note_read_txn(connection: &Connection, turn: TurnId, content: &str) -> Result<(), StoreError> {
    let Some(seq) = seq_of(connection, turn)? else {
        return Ok(());
    };
    forget_rereads_txn(connection, seq)?;
    let now: String = connection
        .prepare_cached("SELECT content FROM turns WHERE seq = ?1")?
        .query_row([seq], |row| row.get("content"))?;
    if now != content && !now.is_empty() {
        read_again_txn(connection, seq)?;
    }
    Ok(())
}

fn seq_of(connection: &Connection, turn: TurnId) -> Result<Option<i64>, StoreError> {
    Ok(connection
        .prepare_cached("SELECT seq FROM turns WHERE uuid = ?1")?
        .query_row([turn], |row| row.get("seq"))
        .optional()?)
}

/// One reading that is being stored.
struct Learning<'a> {
    extraction: &'a Extraction,
    room: LearningRoom,
    entries: Vec<StoredMemory>,
    lines: Vec<Option<UnchangedTurn>>,
    done: ExtractionDone,
    /// Entries that this reading has replaced, and by what.
    over: HashMap<MemoryId, MemoryId>,
}

impl Learning<'_> {
    fn learn_txn(&mut self, connection: &Connection, entry: &ReadEntry) -> Result<(), StoreError> {
        let lines: Option<Vec<&UnchangedTurn>> = entry
            .lines
            .iter()
            .map(|place| self.lines.get(*place).and_then(Option::as_ref))
            .collect();
        let lines = lines.filter(|lines| lines.iter().all(|line| line.said_by == entry.teller));
        let Some((lines, since_ms)) = lines.and_then(|lines| {
            let since_ms = lines.iter().map(|line| line.sent_at_ms).max()?;
            Some((lines, since_ms))
        }) else {
            self.done.gone += 1;
            return Ok(());
        };
        let sources: Vec<i64> = lines.iter().map(|line| line.seq).collect();
        let is_same = |it: &StoredMemory| {
            it.until_ms.is_none()
                && it.chat() == self.room.at.chat
                && it.text == entry.text
                && it.teller.row == entry.teller
                && it.subject.as_ref().map(|it| it.row) == entry.about
        };
        if self.entries.iter().any(is_same) {
            return Ok(());
        }
        let replaced = self.replaced(entry, since_ms);
        if replaced == Replaced::IsNewer {
            self.done.older += 1;
            return Ok(());
        }
        let used = room_use(&self.entries, self.room.at.chat, self.done.written.len());
        if let Err(refusal) = judge_room(used, entry.kind, entry.text.chars().count()) {
            self.done.refused.push(refusal);
            return Ok(());
        }
        let new = NewEntry {
            account: self.room.at.account,
            agent: &self.extraction.agent,
            kind: entry.kind,
            chat: self.room.at.chat,
            chat_kind: self.room.kind,
            teller: entry.teller,
            subject: entry.about,
            text: &entry.text,
            since_ms,
            origin: MemoryOrigin::Conversation,
            sources: &sources,
            now_ms: self.extraction.now_ms,
        };
        let at = insert_memory_txn(connection, &new)?;
        if let Replaced::By(old) = replaced {
            replace_memory_txn(connection, old.id, at.id, since_ms, new.now_ms)?;
            self.over.insert(old.id, at.id);
            self.done.replaced.push(old.id);
        }
        self.done.written.push(at);
        Ok(())
    }

    /// What becomes of the note that an entry is said to replace. It is replaced only if the teller may change it; else
    /// both stay.
    fn replaced(&self, entry: &ReadEntry, since_ms: i64) -> Replaced {
        let Some(named) = entry.replaces.filter(|it| !self.over.contains_key(&it.id)) else {
            return Replaced::Nothing;
        };
        let Some(old) = self.entries.iter().find(|it| it.at.id == named.id) else {
            return Replaced::Nothing;
        };
        let askers = [entry.teller];
        let facts = old.change_facts(named, self.room.at.chat, &askers);
        match judge_change(MemoryChange::Replace, &facts) {
            // A line that was captured late may be older than the existing note.
            Ok(()) if old.since_ms > since_ms => Replaced::IsNewer,
            Ok(()) => Replaced::By(named),
            Err(_) => Replaced::Nothing,
        }
    }
}

/// What an entry replaces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replaced {
    Nothing,
    By(MemoryRef),
    /// The existing note is newer.
    IsNewer,
}
