//! Schedules: made, changed, ended and forgotten. `core/scheduling` decides; `firing` starts a schedule that is due.

use crate::acts::command_giver::CommandGiver;
use crate::capability::MayReply;
use crate::contract::{OperatorSchedule, ScheduleChange};
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::columns::conversation_row_id;
use crate::rows::places::{ConversationRow, conversation_at};
use crate::rows::schedules::{schedule_of, schedules_of_chat};
use crate::{Store, StoreError};
use vocative_core::command::ScheduleCommand;
use vocative_core::ids::{ChatId, ParticipantId, ToolCallId};
use vocative_core::scheduling::{
    Missed, NewSchedule, NextFiring, ScheduleCounts, ScheduleOrder, ScheduleState, StoredSchedule,
    Timing, changed_text, list_text, made_text, may_add, problem_text, read_order, refused_text,
    renewed,
};

/// The most schedules that are listed in a room.
const LISTED_MAX: usize = 50;
/// How many ended schedules of a chat are kept.
const OVER_KEPT: i64 = 20;

impl<C: MayReply> Store<C> {
    /// Pauses a schedule whose row can't be decoded.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn pause_broken_schedule(&self, id: i64) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection
                .prepare_cached(
                    "UPDATE schedules SET state = 'paused', reason = 'its row can''t be decoded' WHERE id = ?1",
                )?
                .execute([id])?;
            Ok(())
        })
        .await
    }

    /// Makes or updates a schedule as the configuration says; an existing one keeps its number, and whether it is
    /// paused. Returns whether anything changed.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn configure_schedule(&self, new: OperatorSchedule) -> Result<bool, StoreError> {
        self.write(move |connection| configure_txn(connection, &new))
            .await
    }

    /// Ends schedules of the configuration whose names are not in it any more. Returns how many.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn end_unconfigured_schedules(
        &self,
        names: Vec<String>,
    ) -> Result<usize, StoreError> {
        self.write(move |connection| {
            let names = serde_json::json!(names).to_string();
            Ok(connection
                .prepare_cached(
                    "UPDATE schedules SET state = 'cancelled', name = NULL, at_ms = NULL, due_ms = NULL,
                            reason = 'it is not configured any more'
                     WHERE name IS NOT NULL AND name NOT IN (SELECT value FROM json_each(?1))",
                )?
                .execute([names])?)
        })
        .await
    }
}

impl Store {
    /// An operator makes a schedule. Returns its number.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn add_schedule(&self, new: OperatorSchedule) -> Result<i64, StoreError> {
        self.write(move |connection| {
            let row = conversation_row_id(connection, new.conversation)?;
            let place = conversation_at(connection, row)?;
            let made = ScheduleOrigin {
                place: &place,
                owner: None,
                message: None,
                call: None,
                name: new.name.as_deref(),
            };
            insert_txn(connection, &made, &new.what, new.now_ms)
        })
        .await
    }

    /// An operator changes a schedule. Returns how it is then; `None` if there is no such one.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn change_schedule(
        &self,
        id: i64,
        change: ScheduleChange,
        now_ms: i64,
    ) -> Result<Option<StoredSchedule>, StoreError> {
        self.write(move |connection| {
            let Some(schedule) = schedule_of(connection, id)? else {
                return Ok(None);
            };
            change_txn(connection, &schedule, change, now_ms)?;
            schedule_of(connection, id)
        })
        .await
    }
}

/// Carries out what a person asks for in a room. Returns what they are told.
pub(crate) fn order_schedule_txn(
    connection: &Connection,
    asker: &CommandGiver<'_>,
    command: &ScheduleCommand,
) -> Result<String, StoreError> {
    let (now_ms, language) = (asker.now_ms, command.language);
    let order = match read_order(&command.text, now_ms, command.zone) {
        Ok(order) => order,
        Err(problem) => return Ok(problem_text(&problem, language)),
    };
    let (id, change) = match order {
        ScheduleOrder::Add { timing, task } => {
            return add_txn(connection, asker, command, (timing, task));
        }
        ScheduleOrder::List => {
            let found = schedules_of_chat(connection, asker.chat, LISTED_MAX)?;
            return Ok(list_text(&found, language));
        }
        ScheduleOrder::Pause(id) => (id, ScheduleChange::Pause),
        ScheduleOrder::Resume(id) => (id, ScheduleChange::Resume),
        ScheduleOrder::Run(id) => (id, ScheduleChange::Run),
        ScheduleOrder::Cancel(id) => (id, ScheduleChange::Cancel),
    };
    let found = schedule_of(connection, id)?.filter(|it| {
        let is_own = it
            .owner
            .as_ref()
            .is_some_and(|it| it.participant == asker.person);
        it.chat == asker.chat && it.state.is_open() && (is_own || command.is_admin)
    });
    let Some(schedule) = found else {
        return Ok(language.schedule_not_theirs(id));
    };
    let state = change_txn(connection, &schedule, change, now_ms)?;
    Ok(match change {
        ScheduleChange::Run if state == ScheduleState::Active => language.schedule_starts(id),
        _ => changed_text(id, state, &schedule.what.timing, now_ms, language),
    })
}

fn add_txn(
    connection: &Connection,
    asker: &CommandGiver<'_>,
    command: &ScheduleCommand,
    (timing, task): (Timing, String),
) -> Result<String, StoreError> {
    let new = NewSchedule {
        timing,
        jitter_ms: 0,
        missed: Missed::Once,
        agent: command.agent.clone(),
        task,
    };
    let counts = counts(connection, asker.person, asker.chat)?;
    if let Err(refused) = may_add(&new, counts) {
        return Ok(refused_text(refused, command.language));
    }
    let made = ScheduleOrigin {
        place: asker.conversation,
        owner: Some(asker.person),
        message: asker.target.reply_to.as_deref(),
        call: None,
        name: None,
    };
    let id = insert_txn(connection, &made, &new, asker.now_ms)?;
    Ok(made_text(id, &new, asker.now_ms, command.language))
}

pub(crate) fn counts(
    connection: &Connection,
    person: ParticipantId,
    chat: ChatId,
) -> Result<ScheduleCounts, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT (SELECT count(*) FROM schedules
                     WHERE participant_id = ?1 AND state IN ('active', 'paused')) AS of_person,
                    (SELECT count(*) FROM schedules
                     WHERE chat_id = ?2 AND state IN ('active', 'paused')) AS of_chat",
        )?
        .query_row((person, chat), |row| {
            Ok(ScheduleCounts {
                of_person: row.get("of_person")?,
                of_chat: row.get("of_chat")?,
            })
        })?)
}

/// Where a schedule is made, and by whom.
pub(crate) struct ScheduleOrigin<'a> {
    pub(crate) place: &'a ConversationRow,
    pub(crate) owner: Option<ParticipantId>,
    /// The platform's id of the message that asked for it.
    pub(crate) message: Option<&'a str>,
    /// The call of a tool.
    pub(crate) call: Option<ToolCallId>,
    /// The name in the configuration.
    pub(crate) name: Option<&'a str>,
}

pub(crate) fn insert_txn(
    connection: &Connection,
    made: &ScheduleOrigin<'_>,
    new: &NewSchedule,
    now_ms: i64,
) -> Result<i64, StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO schedules (name, chat_id, conversation_id, participant_id, made_by_message, agent, timing,
                    zone, jitter_ms, missed_rule, task, state, created_at_ms, made_by_call)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 'active', ?12, ?13)",
        )?
        .execute(params![
            made.name,
            made.place.chat,
            made.place.row,
            made.owner,
            made.message,
            new.agent,
            new.timing.text(),
            new.timing.zone().to_string(),
            new.jitter_ms,
            new.missed,
            new.task,
            now_ms,
            made.call,
        ])?;
    let id = connection.last_insert_rowid();
    set_next_txn(connection, id, new, renewed(&new.timing, now_ms), now_ms)?;
    forget_over_txn(connection, made.place.chat)?;
    Ok(id)
}

/// Removes the oldest ended schedules of a chat.
fn forget_over_txn(connection: &Connection, chat: ChatId) -> Result<(), StoreError> {
    for sql in [
        "DELETE FROM firings WHERE schedule_id IN (
             SELECT id FROM schedules WHERE chat_id = ?1 AND state IN ('done', 'cancelled')
             ORDER BY id DESC LIMIT -1 OFFSET ?2)",
        "DELETE FROM schedules WHERE id IN (
             SELECT id FROM schedules WHERE chat_id = ?1 AND state IN ('done', 'cancelled')
             ORDER BY id DESC LIMIT -1 OFFSET ?2)",
    ] {
        connection.prepare_cached(sql)?.execute((chat, OVER_KEPT))?;
    }
    Ok(())
}

/// Removes the schedules of the people and conversations that an erasure order names.
pub(crate) fn forget_schedules_txn(
    connection: &Connection,
    people: &str,
    rooms: &str,
    until_ms: i64,
) -> Result<(), StoreError> {
    for sql in [
        "DELETE FROM firings WHERE schedule_id IN (
             SELECT id FROM schedules WHERE created_at_ms <= ?3
                AND (participant_id IN (SELECT value FROM json_each(?1))
                     OR conversation_id IN (SELECT value FROM json_each(?2))))",
        "DELETE FROM schedules WHERE created_at_ms <= ?3
            AND (participant_id IN (SELECT value FROM json_each(?1))
                 OR conversation_id IN (SELECT value FROM json_each(?2)))",
    ] {
        connection
            .prepare_cached(sql)?
            .execute((people, rooms, until_ms))?;
    }
    Ok(())
}

/// Removes the schedules that a deleted message made.
pub(crate) fn forget_schedules_of_message_txn(
    connection: &Connection,
    chat: ChatId,
    message_id: &str,
) -> Result<(), StoreError> {
    for sql in [
        "DELETE FROM firings WHERE schedule_id IN (
             SELECT id FROM schedules WHERE chat_id = ?1 AND made_by_message = ?2)",
        "DELETE FROM schedules WHERE chat_id = ?1 AND made_by_message = ?2",
    ] {
        connection
            .prepare_cached(sql)?
            .execute((chat, message_id))?;
    }
    Ok(())
}

/// Writes when a schedule is due; without a time it has ended.
pub(crate) fn set_next_txn(
    connection: &Connection,
    id: i64,
    what: &NewSchedule,
    next: NextFiring,
    now_ms: i64,
) -> Result<(), StoreError> {
    let at_ms = next.at_ms();
    let due_ms = at_ms.map(|at_ms| at_ms.saturating_add(Timing::offset_ms(id, what.jitter_ms)));
    connection
        .prepare_cached(
            "UPDATE schedules SET at_ms = ?2, due_ms = ?3, set_at_ms = ?4,
                    state = iif(?2 IS NULL AND state = 'active', 'done', state)
             WHERE id = ?1",
        )?
        .execute((id, at_ms, due_ms, now_ms))?;
    Ok(())
}

fn change_txn(
    connection: &Connection,
    schedule: &StoredSchedule,
    change: ScheduleChange,
    now_ms: i64,
) -> Result<ScheduleState, StoreError> {
    let (id, what) = (schedule.id, &schedule.what);
    let state = match (change, schedule.state) {
        (_, over) if !over.is_open() => return Ok(over),
        (ScheduleChange::Cancel, _) => ScheduleState::Cancelled,
        (ScheduleChange::Pause, _) => ScheduleState::Paused,
        (ScheduleChange::Resume, _) => ScheduleState::Active,
        (ScheduleChange::Run, state) => state,
    };
    connection
        .prepare_cached("UPDATE schedules SET state = ?2, reason = NULL WHERE id = ?1")?
        .execute((id, state))?;
    match change {
        // Times that passed while it was paused are not made up for.
        ScheduleChange::Resume if schedule.state == ScheduleState::Paused => {
            set_next_txn(connection, id, what, renewed(&what.timing, now_ms), now_ms)?;
        }
        ScheduleChange::Run if state == ScheduleState::Active => {
            connection
                .prepare_cached(
                    "UPDATE schedules SET at_ms = ?2, due_ms = ?2, set_at_ms = ?2 WHERE id = ?1",
                )?
                .execute((id, now_ms))?;
        }
        _ => {}
    }
    let state = schedule_of(connection, id)?.map_or(state, |it| it.state);
    Ok(state)
}

fn configure_txn(connection: &Connection, new: &OperatorSchedule) -> Result<bool, StoreError> {
    let row = conversation_row_id(connection, new.conversation)?;
    let place = conversation_at(connection, row)?;
    let known: Option<i64> = connection
        .prepare_cached("SELECT id FROM schedules WHERE name = ?1")?
        .query_row([&new.name], |row| row.get("id"))
        .optional()?;
    let Some(id) = known else {
        let made = ScheduleOrigin {
            place: &place,
            owner: None,
            message: None,
            call: None,
            name: new.name.as_deref(),
        };
        insert_txn(connection, &made, &new.what, new.now_ms)?;
        return Ok(true);
    };
    let known = schedule_of(connection, id)?;
    if known.is_some_and(|it| it.what == new.what && it.conversation == new.conversation) {
        return Ok(false);
    }
    let what = &new.what;
    connection
        .prepare_cached(
            "UPDATE schedules SET chat_id = ?2, conversation_id = ?3, agent = ?4, timing = ?5, zone = ?6, jitter_ms = ?7,
                    missed_rule = ?8, task = ?9, state = iif(state = 'done', 'active', state)
             WHERE id = ?1",
        )?
        .execute(params![
            id,
            place.chat,
            place.row,
            what.agent,
            what.timing.text(),
            what.timing.zone().to_string(),
            what.jitter_ms,
            what.missed,
            what.task,
        ])?;
    let next = renewed(&what.timing, new.now_ms);
    set_next_txn(connection, id, what, next, new.now_ms)?;
    Ok(true)
}
