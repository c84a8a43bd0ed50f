//! Firings of schedules that are due. One transaction writes the firing's row, which is unique by schedule and time,
//! what it starts, and the schedule's next time. `core/scheduling` decides.

use crate::acts::overlap::add_trigger_txn;
use crate::acts::schedules::set_next_txn;
use crate::acts::triggers::involve_txn;
use crate::capability::MayReply;
use crate::contract::{Fired, NewFiring, Reminder};
use crate::engine::sql::{Connection, params};
use crate::rows::columns::{chat_kind_from_name, conversation_row_id};
use crate::rows::outbox_rows::{NewPosts, insert_posts_txn, said_to};
use crate::rows::participants::{DAEMON, HeardSender, upsert_participant_txn};
use crate::rows::places::{ConversationRow, conversation_at};
use crate::rows::run_rows::{NewRun, queue_run_txn};
use crate::rows::schedules::schedule_of;
use crate::rows::turn_rows::TurnRow;
use crate::rows::turns::{NewTurn, insert_turn_txn};
use crate::{Store, StoreError};
use vocative_contract::crash;
use vocative_contract::outbound::Target;
use vocative_core::ids::{RunId, Seq};
use vocative_core::scheduling::{
    DueFacts, Firing, FiringOutcome, ScheduleState, StoredSchedule, asked_text, decide,
    is_doubtful, renewed,
};
use vocative_core::turn::{ParticipantKind, TurnKind};

/// The most firings that are kept of a schedule: the newest.
const FIRINGS_KEPT: i64 = 1_000;

impl<C: MayReply> Store<C> {
    /// Decides about a schedule that is due, and starts its run or posts, in one transaction.
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

/// Records the outcome of a schedule's due time; returns whether this is its first record.
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

/// Moves a schedule to its next time, and stores the outcome of this one.
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

/// Writes a firing's turn of the system, and its run or posts. Returns the run.
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

/// Inserts a turn of the system with the owner's id, so that an erasure of the owner also erases it.
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
            // The time of the newest turn there; the new turn's seq orders it after that.
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
