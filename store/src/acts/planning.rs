//! Schedules that agents make: a tool call makes one, once, in the name of the person who asked for its run.

use crate::capability::MayReply;
use crate::engine::sql::{Connection, OptionalExtension};

use crate::acts::schedules::{ScheduleOrigin, counts, insert_txn};
use crate::contract::{PlanOfCall, Planned};
use crate::rows::delegations::asked_run;
use crate::rows::places::conversation_at;
use crate::rows::schedules::schedule_of;
use crate::{Store, StoreError};
use vocative_core::ids::{ParticipantId, ToolCallId};
use vocative_core::scheduling::{made_text, may_add};
use vocative_core::turn::ParticipantKind;
use vocative_core::words::Language;

impl<C: MayReply> Store<C> {
    /// Makes the schedule of a call, in its run's conversation, for the person whose message triggered the run. If the
    /// call is repeated, it finds the schedule that it made.
    ///
    /// # Errors
    /// Storage refuses; then nothing is written.
    pub async fn plan_by_call(&self, plan: PlanOfCall) -> Result<Planned, StoreError> {
        self.write(move |connection| plan_txn(connection, &plan))
            .await
    }
}

/// The run that a call belongs to.
struct CallingRun {
    conversation_row: i64,
    person: Option<ParticipantId>,
    kind: Option<ParticipantKind>,
    is_scheduled: bool,
    /// The message that is answered.
    message: Option<String>,
}

fn plan_txn(connection: &Connection, plan: &PlanOfCall) -> Result<Planned, StoreError> {
    let refused = |why: &str| Ok(Planned::Refused(why.to_owned()));
    if let Some(id) = made_before(connection, plan.call)? {
        return Ok(match schedule_of(connection, id)? {
            Some(made) => Planned::Made(made_text(
                id,
                &made.what,
                made.created_at_ms,
                Language::English,
            )),
            None => Planned::Refused("what it had planned is gone".to_owned()),
        });
    }
    let Some(caller) = caller(connection, plan.call)? else {
        return refused("its run is over");
    };
    let Some(person) = caller
        .person
        .filter(|_| caller.kind == Some(ParticipantKind::User))
    else {
        return refused("only what a person asks for can be planned");
    };
    if caller.is_scheduled {
        return refused("what a schedule starts can't plan anything");
    }
    let place = conversation_at(connection, caller.conversation_row)?;
    if let Err(why) = may_add(&plan.what, counts(connection, person, place.chat)?) {
        return refused(&why.to_string());
    }
    let made = ScheduleOrigin {
        place: &place,
        owner: Some(person),
        message: caller.message.as_deref(),
        call: Some(plan.call),
        name: None,
    };
    let id = insert_txn(connection, &made, &plan.what, plan.now_ms)?;
    Ok(Planned::Made(made_text(
        id,
        &plan.what,
        plan.now_ms,
        Language::English,
    )))
}

fn made_before(connection: &Connection, call: ToolCallId) -> Result<Option<i64>, StoreError> {
    Ok(connection
        .prepare_cached("SELECT id FROM schedules WHERE made_by_call = ?1")?
        .query_row([call], |row| row.get("id"))
        .optional()?)
}

/// The run that makes a call; `None` if the call is not being made.
fn caller(connection: &Connection, call: ToolCallId) -> Result<Option<CallingRun>, StoreError> {
    let run: i64 = connection
        .prepare_cached(
            "SELECT coalesce((SELECT run_id FROM tool_calls WHERE uuid = ?1), -1) AS id",
        )?
        .query_row([call], |row| row.get("id"))?;
    Ok(connection
        .prepare_cached(
            "SELECT r.conversation_id, r.person_participant_id, p.kind,
                    EXISTS (SELECT 1 FROM firings f WHERE f.run_id = ?2) AS is_scheduled,
                    (SELECT m.platform_id FROM run_triggers g JOIN messages m ON m.turn_seq = g.turn_seq
                     WHERE g.run_id = ?2 ORDER BY g.turn_seq DESC, m.part LIMIT 1) AS message
             FROM tool_calls c JOIN runs r ON r.id = c.run_id
             LEFT JOIN participants p ON p.id = r.person_participant_id
             WHERE c.uuid = ?1 AND c.state = 'running' AND r.state = 'leased' AND r.stop_cause IS NULL",
        )?
        .query_row((call, asked_run(connection, run)?), |row| {
            Ok(CallingRun {
                conversation_row: row.get("conversation_id")?,
                person: row.get("person_participant_id")?,
                kind: row.get("kind")?,
                is_scheduled: row.get("is_scheduled")?,
                message: row.get("message")?,
            })
        })
        .optional()?)
}
