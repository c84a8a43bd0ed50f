//! Memory writes of tool calls: all that one call asks for is written in one transaction, once, however often the call
//! is made. `core/remembering` decides whose words count and who may change what.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use vocative_contract::crash;

use crate::acts::reply_room::{ReplyRoom, room_of};
use crate::capability::MayRemember;
use crate::contract::{
    IsServed, MemoryAbout, MemoryDone, MemoryFilter, MemoryWrite, MemoryWritten, NewMemory,
    OperatorChange, OperatorChanged,
};
use crate::engine::sql::{Connection, OptionalExtension, Row, params};
use crate::rows::columns::limit_of;
use crate::rows::delegations::asked_run;
use crate::rows::leases::leased_run;
use crate::rows::memories::{
    NewEntry, change_text_txn, delete_memories_txn, insert_memory_txn, listed, memories_in,
    replace_memory_txn, share_txn,
};
use crate::{Store, StoreError};
use vocative_core::ids::{AgentName, ParticipantId, ToolCallId};
use vocative_core::remembering::{
    AskedRoom, MemoryChange, MemoryId, MemoryKind, MemoryOrigin, MemoryRef, MemoryRefusal,
    MemoryScope, RoomUse, SOURCE_TURNS_MAX, StoredMemory, has_words, judge_change, judge_room,
    own_words, room_use, share_refusal,
};
use vocative_core::words::Language;

impl<C: MayRemember> Store<C> {
    /// Writes what a tool call asks for: all of it or, if one part is refused, nothing.
    ///
    /// # Errors
    /// Storage refuses; then nothing is written.
    pub async fn write_memory(&self, write: MemoryWrite) -> Result<MemoryWritten, StoreError> {
        crash::point("memory.before-commit");
        let written = self
            .write(move |connection| write_txn(connection, &write))
            .await?;
        crash::point("memory.after-commit");
        Ok(written)
    }
}

impl Store {
    /// An operator changes an entry.
    ///
    /// # Errors
    /// Storage refuses; then nothing is changed.
    pub async fn change_memory(
        &self,
        id: MemoryId,
        change: OperatorChange,
        now_ms: i64,
    ) -> Result<OperatorChanged, StoreError> {
        self.write(move |connection| operator_txn(connection, id, &change, now_ms))
            .await
    }
}

fn operator_txn(
    connection: &Connection,
    id: MemoryId,
    change: &OperatorChange,
    now_ms: i64,
) -> Result<OperatorChanged, StoreError> {
    let one = MemoryFilter {
        only: Some(id),
        with_replaced: true,
        limit: 1,
        ..MemoryFilter::default()
    };
    let Some(entry) = listed(connection, &one)?.pop() else {
        return Ok(OperatorChanged::Missing);
    };
    match change {
        OperatorChange::Forget => {
            delete_memories_txn(connection, &[id])?;
            return Ok(OperatorChanged::Done(Box::new(entry)));
        }
        OperatorChange::Edit { version, .. }
            if version.is_some_and(|it| it != entry.at.version) =>
        {
            return Ok(OperatorChanged::Changed);
        }
        OperatorChange::Edit { text, .. } => {
            change_text_txn(connection, id, text, MemoryOrigin::Operator, now_ms)?;
        }
        OperatorChange::Share(share) => {
            let refused = share_refusal(&entry.learnt, Language::English);
            if let Some(why) = refused.filter(|_| *share == MemoryScope::Team) {
                return Ok(OperatorChanged::Refused(why));
            }
            share_txn(connection, id, *share, now_ms)?;
        }
    }
    let entry = listed(connection, &one)?.pop().unwrap_or(entry);
    Ok(OperatorChanged::Done(Box::new(entry)))
}

/// A turn that may be a source.
struct SourceTurn {
    seq: i64,
    said_by: ParticipantId,
    platform_id: String,
    is_person: bool,
    content: String,
    sent_at_ms: i64,
}

impl SourceTurn {
    fn read(row: &Row<'_>) -> crate::engine::sql::Result<Self> {
        Ok(Self {
            seq: row.get("seq")?,
            said_by: row.get("participant_id")?,
            platform_id: row.get("platform_id")?,
            is_person: row.get("is_person")?,
            content: row.get("content")?,
            sent_at_ms: row.get("sent_at_ms")?,
        })
    }

    fn is_of_served(&self, is_served: &IsServed) -> bool {
        self.is_person && is_served(&self.platform_id)
    }

    /// Whether the whole turn is its speaker's own words.
    fn is_all_own(&self) -> bool {
        let has_forward = self
            .content
            .lines()
            .any(|line| line.trim_start().starts_with("forwarded from "));
        !has_forward && !own_words(&self.content).is_empty()
    }
}

/// A call that writes memory, with its room.
struct WritingCall<'a> {
    room: &'a ReplyRoom,
    agent: AgentName,
    /// The triggers of the call's run, oldest first.
    triggers: Vec<SourceTurn>,
    /// The entries that may be shown in that room.
    entries: Vec<StoredMemory>,
}

/// A new entry with its source, once its words were found.
struct Sourced<'a> {
    new: &'a NewMemory,
    teller: ParticipantId,
    seqs: Vec<i64>,
    since_ms: i64,
}

fn write_txn(connection: &Connection, write: &MemoryWrite) -> Result<MemoryWritten, StoreError> {
    let Some(leased) = leased_run(connection, write.run, write.token)? else {
        return Ok(MemoryWritten::Stale);
    };
    if let Some(done) = done_before(connection, write.call)? {
        return Ok(MemoryWritten::Done(done));
    }
    let room = room_of(connection, &leased)?;
    let agent: String = connection
        .prepare_cached("SELECT agent FROM runs WHERE id = ?1")?
        .query_row([leased.row], |row| row.get("agent"))?;
    let agent = AgentName::trusted(&agent);
    let asking = AskedRoom {
        account: room.account,
        chat: room.conversation.chat,
    };
    let place = WritingCall {
        triggers: triggers_of(connection, leased.row)?,
        entries: memories_in(connection, asking, &agent, true, None)?,
        room: &room,
        agent,
    };
    let judged = place.judge(connection, write)?;
    let sourced = match judged {
        Ok(sourced) => sourced,
        Err(refusal) => return Ok(MemoryWritten::Refused(refusal)),
    };
    let done = place.apply_txn(connection, write, &sourced)?;
    connection
        .prepare_cached(
            "INSERT INTO memory_writes (call, run_id, outcome, at_ms) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            write.call,
            leased.row,
            text_of(&done),
            write.now_ms
        ])?;
    Ok(MemoryWritten::Done(done))
}

fn triggers_of(connection: &Connection, run_row: i64) -> Result<Vec<SourceTurn>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT t.seq, t.participant_id, p.platform_id, t.content, t.sent_at_ms,
                p.kind = 'user' AND NOT p.is_bot AND t.visibility = 'room' AS is_person
         FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq JOIN participants p ON p.id = t.participant_id
         WHERE g.run_id = ?1 ORDER BY t.sent_at_ms, t.ordinal, t.seq",
    )?;
    let turns = statement.query_map([asked_run(connection, run_row)?], SourceTurn::read)?;
    Ok(turns.collect::<crate::engine::sql::Result<_>>()?)
}

type JudgedSources<'a> = Result<Vec<Sourced<'a>>, MemoryRefusal>;

impl WritingCall<'_> {
    /// Whether all of a call may be written, and the sources of its new entries.
    fn judge<'w>(
        &self,
        connection: &Connection,
        write: &'w MemoryWrite,
    ) -> Result<JudgedSources<'w>, StoreError> {
        let askers: BTreeSet<ParticipantId> = self.triggers.iter().map(|it| it.said_by).collect();
        let askers: Vec<ParticipantId> = askers.into_iter().collect();
        let replaced = write.new.iter().filter_map(|new| new.replaces);
        let replaced = replaced.map(|named| (MemoryChange::Replace, named));
        let forgotten = write.forget.iter().map(|it| (MemoryChange::Forget, *it));
        let mut room = room_use(&self.entries, self.room.conversation.chat, 0);
        let mut changed: Vec<MemoryId> = Vec::new();
        for (change, named) in forgotten.chain(replaced) {
            if changed.contains(&named.id) {
                return Ok(Err(MemoryRefusal::Replaced { entry: named }));
            }
            changed.push(named.id);
            if let Err(refusal) = self.judge_change(change, named, &askers) {
                return Ok(Err(refusal));
            }
            self.give_back(&mut room, change, named.id);
        }
        let mut sourced = Vec::new();
        for new in &write.new {
            let source = match self.source_of(connection, new, &write.is_served)? {
                Ok(source) => source,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let chars = new.text.chars().count();
            if let Err(refusal) = judge_room(room, new.kind, chars) {
                return Ok(Err(refusal));
            }
            room.entries += 1;
            if new.kind == MemoryKind::Core {
                room.core_notes += 1;
                room.core_chars += chars;
            }
            sourced.push(source);
        }
        Ok(Ok(sourced))
    }

    fn judge_change(
        &self,
        change: MemoryChange,
        named: MemoryRef,
        askers: &[ParticipantId],
    ) -> Result<(), MemoryRefusal> {
        let Some(entry) = self.entries.iter().find(|it| it.at.id == named.id) else {
            return Err(MemoryRefusal::NoSuchEntry { entry: named });
        };
        let facts = entry.change_facts(named, self.room.conversation.chat, askers);
        judge_change(change, &facts)
    }

    fn of_room(&self) -> impl Iterator<Item = &StoredMemory> {
        let chat = self.room.conversation.chat;
        self.entries.iter().filter(move |it| it.chat() == chat)
    }

    /// Subtracts an entry that is changed or forgotten from the room's use.
    fn give_back(&self, room: &mut RoomUse, change: MemoryChange, id: MemoryId) {
        let Some(entry) = self.of_room().find(|it| it.at.id == id) else {
            return;
        };
        if change == MemoryChange::Forget {
            room.entries -= 1;
        }
        if entry.kind == MemoryKind::Core && entry.until_ms.is_none() {
            room.core_notes -= 1;
            room.core_chars -= entry.text.chars().count();
        }
    }

    /// The source of a new entry: the line that has its words; if it names no words, the triggers of the last person
    /// who asks.
    fn source_of<'w>(
        &self,
        connection: &Connection,
        new: &'w NewMemory,
        is_served: &IsServed,
    ) -> Result<Result<Sourced<'w>, MemoryRefusal>, StoreError> {
        let sourced = |turns: &[&SourceTurn]| {
            let last = turns.last()?;
            Some(Sourced {
                new,
                teller: last.said_by,
                seqs: turns.iter().map(|turn| turn.seq).collect(),
                since_ms: last.sent_at_ms,
            })
        };
        let Some(words) = &new.words else {
            let fit = |turn: &&SourceTurn| turn.is_of_served(is_served) && turn.is_all_own();
            let asked: Vec<&SourceTurn> = self.triggers.iter().filter(fit).collect();
            let teller = asked.last().map(|turn| turn.said_by);
            let theirs: Vec<&SourceTurn> = asked
                .into_iter()
                .filter(|turn| Some(turn.said_by) == teller)
                .collect();
            return Ok(sourced(&theirs).ok_or(MemoryRefusal::NobodySaidIt));
        };
        let mut statement = connection.prepare_cached(
            "SELECT t.seq, t.participant_id, p.platform_id, t.content, t.sent_at_ms,
                    p.kind = 'user' AND NOT p.is_bot AND t.visibility = 'room' AS is_person
             FROM turns t JOIN participants p ON p.id = t.participant_id
             WHERE t.conversation_id = ?1 AND t.kind = 'message'
             ORDER BY t.sent_at_ms DESC, t.ordinal DESC, t.seq DESC LIMIT ?2",
        )?;
        let rows = statement.query_map(
            (self.room.conversation.row, limit_of(SOURCE_TURNS_MAX)),
            SourceTurn::read,
        )?;
        let turns: Vec<SourceTurn> = rows.collect::<crate::engine::sql::Result<_>>()?;
        // The line that opens a thread is a trigger, but stands in the room and not in the thread.
        let turns = self.triggers.iter().rev().chain(&turns);
        let says =
            |turn: &&SourceTurn| turn.is_of_served(is_served) && has_words(&turn.content, words);
        let found: Vec<&SourceTurn> = turns.filter(says).take(1).collect();
        let refusal = || MemoryRefusal::WordsNotFound {
            words: words.clone(),
        };
        Ok(sourced(&found).ok_or_else(refusal))
    }

    fn apply_txn(
        &self,
        connection: &Connection,
        write: &MemoryWrite,
        sourced: &[Sourced<'_>],
    ) -> Result<MemoryDone, StoreError> {
        let mut done = MemoryDone {
            forgotten: write.forget.iter().map(|named| named.id).collect(),
            ..MemoryDone::default()
        };
        delete_memories_txn(connection, &done.forgotten)?;
        for source in sourced {
            let at = self.insert_txn(connection, source, &done, write.now_ms)?;
            if let Some(replaced) = source.new.replaces.filter(|it| it.id != at.id) {
                replace_memory_txn(
                    connection,
                    replaced.id,
                    at.id,
                    source.since_ms,
                    write.now_ms,
                )?;
                done.replaced.push(replaced.id);
            }
            done.written.push(at);
        }
        Ok(done)
    }

    /// Writes an entry, unless the same words of the same person are remembered already.
    fn insert_txn(
        &self,
        connection: &Connection,
        source: &Sourced<'_>,
        done: &MemoryDone,
        now_ms: i64,
    ) -> Result<MemoryRef, StoreError> {
        let new = source.new;
        let subject = match new.about {
            MemoryAbout::Teller => Some(source.teller),
            MemoryAbout::Room => None,
            MemoryAbout::Person(person) => Some(person),
        };
        let is_same = |it: &&StoredMemory| {
            it.until_ms.is_none()
                && it.text == new.text
                && it.kind == new.kind
                && it.teller.row == source.teller
                && it.subject.as_ref().map(|it| it.row) == subject
                && !done.forgotten.contains(&it.at.id)
        };
        if let Some(same) = self.of_room().find(is_same) {
            return Ok(same.at);
        }
        let entry = NewEntry {
            account: self.room.account,
            agent: &self.agent,
            kind: new.kind,
            chat: self.room.conversation.chat,
            chat_kind: self.room.kind,
            teller: source.teller,
            subject,
            text: &new.text,
            since_ms: source.since_ms,
            origin: MemoryOrigin::Call,
            sources: &source.seqs,
            now_ms,
        };
        insert_memory_txn(connection, &entry)
    }
}

/// The stored outcome of a call that was made before.
fn done_before(
    connection: &Connection,
    call: ToolCallId,
) -> Result<Option<MemoryDone>, StoreError> {
    let outcome: Option<String> = connection
        .prepare_cached("SELECT outcome FROM memory_writes WHERE call = ?1")?
        .query_row([call], |row| row.get("outcome"))
        .optional()?;
    Ok(outcome.map(|outcome| done_of(&outcome)))
}

fn text_of(done: &MemoryDone) -> String {
    let numbers = |ids: &[MemoryId]| ids.iter().map(|id| id.0).collect::<Vec<i64>>();
    let written = done.written.iter().map(ToString::to_string);
    json!({
        "written": written.collect::<Vec<String>>(),
        "replaced": numbers(&done.replaced),
        "forgotten": numbers(&done.forgotten),
    })
    .to_string()
}

/// Decodes a stored outcome; one that can't be decoded still shows that the call was made.
fn done_of(outcome: &str) -> MemoryDone {
    let outcome: Value = serde_json::from_str(outcome).unwrap_or_default();
    let list = |name: &str| outcome[name].as_array().cloned().unwrap_or_default();
    let numbers = |name: &str| -> Vec<MemoryId> {
        let list = list(name);
        let ids = list.iter().filter_map(Value::as_i64);
        ids.map(MemoryId).collect()
    };
    let written = list("written");
    let written = written.iter().filter_map(Value::as_str);
    MemoryDone {
        written: written.filter_map(MemoryRef::read).collect(),
        replaced: numbers("replaced"),
        forgotten: numbers("forgotten"),
    }
}

#[cfg(test)]
#[path = "../tests/memories.rs"]
mod tests;
