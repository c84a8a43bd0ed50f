//! One claimed run from prompt to committed answer. How it ends in its room: `ending`.

use std::sync::Arc;

use tracing::warn;
use vocative_contract::envelope::Place;

use crate::agent::clocks::WorkClock;
use crate::agent::ending::{end_unserved, end_without_agent};
use crate::agent::failing::{Again, GiveUpNotice};
use crate::agent::letting_go::{STORAGE_WAIT_MS, give_back, requeue};
use crate::agent::sharing::{whole_of, with_what_is_left};
use crate::agent::step;
use crate::agent::worker::AgentWorker;
use crate::agent::working::{Claim, FinishedRun, RunEnd, Working};
use vocative_core::given::Given;
use vocative_core::ids::RunId;
use vocative_store::StoreError;

/// Works on a claimed run until it is answered, given back, given up or cancelled.
pub(super) async fn work_on(worker: Arc<AgentWorker>, claim: Claim) {
    let run_id = claim.run.run.id;
    if let Err(cause) = Box::pin(attempt(&worker, &claim)).await {
        warn!(error = %cause, run.id = %run_id, "a run could not be worked on; trying again");
        let reason = "storage failed";
        give_back(&worker, run_id, claim.run.token, STORAGE_WAIT_MS, reason).await;
    }
    // Frees the place before another run is looked for.
    drop(claim);
    worker.wake.runs.notify_one();
}

async fn attempt(worker: &AgentWorker, claim: &Claim) -> Result<(), StoreError> {
    let claimed = &claim.run;
    let (route, steps, calls, used, task, of_children) = tokio::try_join!(
        worker.store.reply_route(claimed.run.id),
        worker.store.steps(claimed.run.id),
        worker.store.tool_calls(claimed.run.id),
        worker.store.run_use(claimed.run.id),
        worker.store.task_of_run(claimed.run.id),
        worker.store.children_use(claimed.run.id),
    )?;
    let Some(room) = worker.rooms.get(route.account) else {
        let again = Again::counted(claimed.attempts_used());
        return requeue(worker, claimed, again, "the channel is not connected").await;
    };
    let asked_in = Place {
        chat: route.target.chat.clone(),
        kind: route.chat_kind,
        ..Place::default()
    };
    let person = route.person.as_deref();
    if !worker.rooms.still_admits(route.account, &asked_in, person) {
        return end_unserved(worker, claimed, &room, &route).await;
    }
    let spec = worker.spec_of(claimed);
    let (Some(spec), Some(place)) = (spec, &claim.place) else {
        return end_without_agent(worker, claimed, &room, &route).await;
    };
    let (given, undecodable) = given_of(worker, claimed.run.id).await?;
    let whole = whole_of(&spec, task.as_ref());
    let spec = with_what_is_left(&spec, whole, of_children);
    let working = Working {
        worker,
        claimed,
        place,
        room: &room,
        route: &route,
        clock: WorkClock::after(used.worked_ms),
        given: &given,
        is_fallback: false,
        seat: None,
        task: task.as_ref(),
        delegating: whole,
    };
    if let Some(what) = undecodable {
        return working.give_up(&spec, GiveUpNotice::Failed, what).await;
    }
    // Messages that came together were admitted together; once the day's tokens are spent, the rest of them are not
    // answered.
    let asker = claimed.asker;
    let now_ms = (worker.clock)();
    let spent_up = worker
        .rooms
        .spent_up(&worker.store, asker.account, asker.person, now_ms);
    if steps.is_empty()
        && let Some(spent_up) = spent_up.await?
    {
        return working.end_spent_up(&spec, spent_up).await;
    }
    if claimed.attempts_used() > spec.max_attempts {
        let reason = format!("given up after {} attempts", spec.max_attempts);
        return working.give_up(&spec, GiveUpNotice::Failed, reason).await;
    }
    if let Some(network) = &spec.network {
        return Box::pin(working.work_as_network(&spec, network, claim.age)).await;
    }
    let recorded = step::replay(&steps, &calls);
    let (spec, worked) = Box::pin(working.work_with_any(&spec, recorded)).await?;
    let FinishedRun {
        work,
        live_settle_ms,
    } = worked;
    working.keep_worked_time(&spec).await;
    match work {
        RunEnd::Answered(answer) => working.answer(&spec, answer, live_settle_ms).await,
        RunEnd::UsedUp(usage) => working.end_used_up(&spec, usage).await,
        RunEnd::Misshapen(misshapen) => working.end_misshapen(&spec, misshapen).await,
        RunEnd::Failed(failure) => working.fail(&spec, claim.age, failure).await,
        other => working.end_otherwise(&spec, other, claim.age).await,
    }
}

/// What a program gave along with its question; if it can't be read, the reason.
async fn given_of(worker: &AgentWorker, run: RunId) -> Result<(Given, Option<String>), StoreError> {
    match worker.store.given(run).await {
        Ok(given) => Ok((given, None)),
        Err(StoreError::Undecodable { what }) => Ok((Given::default(), Some(what))),
        Err(cause) => Err(cause),
    }
}
