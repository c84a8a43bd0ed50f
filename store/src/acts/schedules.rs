//! Schedules: made, changed, and fired. A firing is one transaction: its row, which is unique by schedule and time, with
//! what it starts and the time that is next. `core/scheduling` decides.

use crate::acts::command_giver::CommandGiver;
use crate::capability::MayReply;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::turn_rows::TurnRow;
use vocative_contract::crash;
use vocative_contract::outbound::Target;

use crate::acts::overlap::add_trigger_txn;
use crate::acts::triggers::involve_txn;
use crate::contract::{Fired, NewFiring, OperatorSchedule, Reminder, ScheduleChange};
use crate::rows::columns::{chat_kind_from_name, conversation_row_id};
use crate::rows::outbox_rows::{NewPosts, insert_posts_txn, said_to};
use crate::rows::participants::{DAEMON, HeardSender, upsert_participant_txn};
use crate::rows::places::{ConversationRow, conversation_at};
use crate::rows::run_rows::{NewRun, queue_run_txn};
use crate::rows::schedules::{schedule_of, schedules_of_chat};
use crate::rows::turns::{NewTurn, insert_turn_txn};
use crate::{Store, StoreError};
use vocative_core::command::ScheduleCommand;
use vocative_core::ids::{ChatId, ParticipantId, RunId, Seq, ToolCallId};
use vocative_core::scheduling::{
    DueFacts, Firing, FiringOutcome, Missed, NewSchedule, Next, ScheduleCounts, ScheduleOrder,
    ScheduleState, StoredSchedule, Timing, asked_text, changed_text, decide, is_doubtful,
    list_text, made_text, may_add, problem_text, read_order, refused_text, renewed,
};
use vocative_core::turn::{ParticipantKind, TurnKind};

/// The most that are listed in a room.
const LISTED_MAX: usize = 50;
/// So many firings of a schedule are kept.
const FIRINGS_KEPT: i64 = 1_000;
/// So many schedules of a chat are kept that are over.
const OVER_KEPT: i64 = 20;

impl<C: MayReply> Store<C> {
    /// Decides about a schedule whose time has come, and starts what it starts, in one transaction.
    ///
    /// # Errors
    /// Storage refuses; then nothing is written.
    pub async fn fire_schedule(&self, firing: NewFiring) -> Result<Fired, StoreError> {
        crash::point("firing.before-commit");
        let fired = self
            .write(move |connection| fire_txn(connection, &firing))
            .await?;
        crash::point("firing.after-commit");
        Ok(fired)
    }

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

    /// Makes a schedule of the configuration what it says; one that is there already keeps its number, and whether it
    /// is paused. Returns whether anything changed.
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
            let made = Made {
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
    let made = Made {
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
pub(crate) struct Made<'a> {
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
    made: &Made<'_>,
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

/// Lets the oldest schedules of a chat go that are over.
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

/// Takes the schedules of people and of conversations away, as of an order to erase.
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

/// Takes the schedules away that a deleted message made.
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

/// Writes when a schedule is due; without a time it is over.
fn set_next_txn(
    connection: &Connection,
    id: i64,
    what: &NewSchedule,
    next: Next,
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
        // What came while it was paused is nobody's to make up for.
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
        let made = Made {
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

fn fire_txn(connection: &Connection, new: &NewFiring) -> Result<Fired, StoreError> {
    let found = schedule_of(connection, new.id)?;
    let found = found.filter(|it| it.state == ScheduleState::Active && it.at_ms == new.at_ms);
    let Some(schedule) = found else {
        return Ok(Fired::Stale);
    };
    let what = &schedule.what;
    if is_doubtful(schedule.set_at_ms, new.now_ms) {
        let next = renewed(&what.timing, new.now_ms);
        set_next_txn(connection, schedule.id, what, next, new.now_ms)?;
        return Ok(Fired::Renewed);
    }
    let Some(at_ms) = schedule.at_ms.filter(|at_ms| *at_ms <= new.now_ms) else {
        return Ok(Fired::Stale);
    };
    let firing = decide(&DueFacts {
        timing: &what.timing,
        missed: what.missed,
        at_ms,
        now_ms: new.now_ms,
        is_last_open: schedule.is_last_open,
        is_allowed: new.is_allowed,
    });
    let is_first = note_firing_txn(connection, schedule.id, &firing, new.now_ms)?;
    let mut run = None;
    if is_first && firing.outcome == FiringOutcome::Fired {
        run = start_txn(connection, &schedule, &firing, new)?;
    }
    settle_txn(connection, &schedule, &firing, (is_first, run), new.now_ms)?;
    let outcome = match is_first {
        true => Fired::Decided(firing.outcome, run.map(|(_, id)| id)),
        false => Fired::Stale,
    };
    Ok(outcome)
}

/// Notes what becomes of a time; returns whether nothing did before.
fn note_firing_txn(
    connection: &Connection,
    id: i64,
    firing: &Firing,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let added = connection
        .prepare_cached(
            "INSERT INTO firings (schedule_id, at_ms, decided_at_ms, outcome, missed_before)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            id,
            firing.at_ms,
            now_ms,
            firing.outcome,
            firing.missed_before
        ])?;
    connection
        .prepare_cached(
            "DELETE FROM firings WHERE schedule_id = ?1 AND at_ms <= (
                 SELECT at_ms FROM firings WHERE schedule_id = ?1 ORDER BY at_ms DESC LIMIT 1 OFFSET ?2)",
        )?
        .execute((id, FIRINGS_KEPT))?;
    Ok(added > 0)
}

/// Moves a schedule to its next time, with what became of this one.
fn settle_txn(
    connection: &Connection,
    schedule: &StoredSchedule,
    firing: &Firing,
    (is_first, run): (bool, Option<(i64, RunId)>),
    now_ms: i64,
) -> Result<(), StoreError> {
    let id = schedule.id;
    set_next_txn(connection, id, &schedule.what, firing.next, now_ms)?;
    if !is_first {
        return Ok(());
    }
    let has_fired = firing.outcome == FiringOutcome::Fired;
    connection
        .prepare_cached(
            "UPDATE schedules SET fired = fired + ?2, missed = missed + ?3,
                    last_run_id = coalesce(?4, last_run_id) WHERE id = ?1",
        )?
        .execute(params![
            id,
            i64::from(has_fired),
            i64::from(firing.missed_before) + i64::from(!has_fired),
            run.map(|(row, _)| row),
        ])?;
    if let Some((row, _)) = run {
        connection
            .prepare_cached("UPDATE firings SET run_id = ?3 WHERE schedule_id = ?1 AND at_ms = ?2")?
            .execute((id, firing.at_ms, row))?;
    }
    if firing.outcome == FiringOutcome::Refused {
        connection
            .prepare_cached(
                "UPDATE schedules SET state = 'paused',
                        reason = 'its owner, its chat or its agent is not served any more'
                 WHERE id = ?1",
            )?
            .execute([id])?;
    }
    Ok(())
}

/// Starts what a firing starts: a turn of the system, and a run or posts. Returns the run.
fn start_txn(
    connection: &Connection,
    schedule: &StoredSchedule,
    firing: &Firing,
    new: &NewFiring,
) -> Result<Option<(i64, RunId)>, StoreError> {
    let row = conversation_row_id(connection, schedule.conversation)?;
    let place = conversation_at(connection, row)?;
    match (&schedule.what.agent, &new.reminder) {
        (Some(agent), _) => {
            let text = asked_text(schedule, firing.at_ms, firing.missed_before);
            let said = (TurnKind::Message, text.as_str());
            let turn = say_txn(connection, schedule, &place, said, new.now_ms)?;
            involve_txn(connection, &turn, agent)?;
            let run = NewRun {
                conversation: place.row,
                chat: place.chat,
                agent,
                not_before_ms: new.now_ms,
                person: schedule.owner.as_ref().map(|it| it.participant),
                now_ms: new.now_ms,
            };
            let run = queue_run_txn(connection, &run)?;
            add_trigger_txn(connection, run.0, &turn, agent)?;
            Ok(Some(run))
        }
        (None, Some(reminder)) => {
            remind_txn(connection, schedule, &place, reminder, new.now_ms)?;
            Ok(None)
        }
        (None, None) => Ok(None),
    }
}

fn remind_txn(
    connection: &Connection,
    schedule: &StoredSchedule,
    place: &ConversationRow,
    reminder: &Reminder,
    now_ms: i64,
) -> Result<(), StoreError> {
    let said = (TurnKind::Notice, reminder.text.as_str());
    let turn = say_txn(connection, schedule, place, said, now_ms)?;
    let key = Some(place.thread.clone()).filter(|key| !key.is_empty());
    let (thread, topic) = match place.is_topic {
        true => (None, key),
        false => (key, None),
    };
    let target = Target {
        chat: schedule.platform_chat.clone(),
        thread,
        topic,
        reply_to: None,
    };
    let posts = NewPosts {
        account: schedule.account,
        chat: place.chat,
        turn: Some(Seq(turn.seq)),
        run_row: None,
        operation: &said_to(None),
        target: &target,
        parts: &reminder.parts,
        now_ms,
    };
    insert_posts_txn(connection, &posts).map(drop)
}

/// A turn of the system on behalf of the owner, whose id it bears: what is erased of them takes it along.
fn say_txn(
    connection: &Connection,
    schedule: &StoredSchedule,
    place: &ConversationRow,
    (kind, content): (TurnKind, &str),
    now_ms: i64,
) -> Result<TurnRow, StoreError> {
    let owner = schedule.owner.as_ref();
    let system = HeardSender {
        kind: ParticipantKind::System,
        platform_id: owner.map_or(DAEMON, |it| &it.id),
        display_name: None,
        username: None,
        is_bot: None,
    };
    let participant = upsert_participant_txn(connection, schedule.account, system, now_ms)?;
    let (chat_kind, newest): (Option<String>, Option<i64>) = connection
        .prepare_cached(
            "SELECT (SELECT kind FROM chats WHERE id = ?1) AS kind,
                    (SELECT max(sent_at_ms) FROM turns WHERE conversation_id = ?2) AS newest",
        )?
        .query_row((place.chat, place.row), |row| {
            Ok((row.get("kind")?, row.get("newest")?))
        })?;
    let sent_at_ms = newest.unwrap_or(now_ms);
    let ordinal: Option<i64> = connection
        .prepare_cached(
            "SELECT max(ordinal) AS ordinal FROM turns WHERE conversation_id = ?1 AND sent_at_ms = ?2",
        )?
        .query_row((place.row, sent_at_ms), |row| row.get("ordinal"))?;
    insert_turn_txn(
        connection,
        &NewTurn {
            conversation: place,
            // That of the newest turn there: its seq puts it behind.
            sent_at_ms,
            ordinal: ordinal.unwrap_or_default(),
            kind,
            scope: place.scope(chat_kind.as_deref().and_then(chat_kind_from_name)),
            participant,
            content,
            attachments: None,
            reply_to_seq: None,
            reply_to_message: None,
            quote: None,
            album: None,
            tokens: None,
            is_inbound: false,
            captured_at_ms: now_ms,
        },
    )
}
