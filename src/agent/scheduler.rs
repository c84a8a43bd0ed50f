//! Fires schedules that are due. The transaction that starts one decides what becomes of it (`core/scheduling`,
//! `store/acts/schedules`); this file finds out whether its owner is still served, and formats a reminder for its
//! platform.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use vocative_contract::markup::mention_token;
use vocative_contract::people::{People, Person};

use crate::agent::registry::Registry;
use crate::capture::clock::Clock;
use crate::capture::wake::Wake;
use crate::config::ConfiguredSchedule;
use crate::delivery::rooms::Rooms;
use crate::delivery::worker::pause_until;
use vocative_core::scheduling::{FiringOutcome, StoredSchedule, reminder_text};
use vocative_store::contract::{Fired, NewFiring, OperatorSchedule, Reminder};
use vocative_store::{Replying, Store, StoreError};

/// How often due schedules are looked for.
const POLL: Duration = Duration::from_millis(1_000);
/// The most due schedules read in one pass.
const AT_ONCE: usize = 100;
/// How often a configured schedule is retried whose conversation does not exist yet, in milliseconds.
const CONFIGURE_EVERY_MS: i64 = 30_000;

/// Fires schedules.
pub struct Scheduler {
    /// The store with the schedules.
    pub store: Store<Replying>,
    /// Who can be served where.
    pub rooms: Rooms,
    /// The agents.
    pub registry: Registry,
    /// Wakes the workers for what it starts.
    pub wake: Wake,
    /// The time.
    pub clock: Clock,
    /// The schedules of the configuration.
    pub configured: Vec<ConfiguredSchedule>,
}

impl Scheduler {
    /// Fires what is due until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut pending = std::mem::take(&mut self.configured);
        let names = pending.iter().map(|it| it.name.clone()).collect();
        if let Err(cause) = self.store.end_unconfigured_schedules(names).await {
            warn!(error = %cause, "schedules that are not configured any more could not be ended");
        }
        let mut configured_at_ms = None;
        while !stop.is_cancelled() {
            let now_ms = (self.clock)();
            let is_time = configured_at_ms
                .is_none_or(|at_ms: i64| !(at_ms..at_ms + CONFIGURE_EVERY_MS).contains(&now_ms));
            if !pending.is_empty() && is_time {
                pending = self
                    .configure(pending, configured_at_ms.is_none(), now_ms)
                    .await;
                configured_at_ms = Some(now_ms);
            }
            let has_more = self.fire_due(now_ms).await.unwrap_or_else(|cause| {
                warn!(error = %cause, "schedules could not be looked at; trying again");
                false
            });
            if has_more {
                continue;
            }
            let due_ms = self.store.next_schedule_due_ms().await.unwrap_or(None);
            let due_ms = due_ms.filter(|due_ms| *due_ms > now_ms);
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause_until(due_ms, now_ms, POLL)) => {}
            }
        }
    }

    /// Stores the configured schedules as rows; returns those whose conversation does not exist yet.
    async fn configure(
        &self,
        configured: Vec<ConfiguredSchedule>,
        is_first: bool,
        now_ms: i64,
    ) -> Vec<ConfiguredSchedule> {
        let mut left = Vec::new();
        for schedule in configured {
            match self.configure_one(&schedule, now_ms).await {
                Ok(()) => {}
                Err(cause) => {
                    let what = "a schedule waits until something is heard in its conversation";
                    match is_first {
                        true => warn!(error = %cause, schedule.name = schedule.name, "{what}"),
                        false => debug!(error = %cause, schedule.name = schedule.name, "{what}"),
                    }
                    left.push(schedule);
                }
            }
        }
        left
    }

    async fn configure_one(
        &self,
        schedule: &ConfiguredSchedule,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let place = self.store.find_conversation(&schedule.conversation).await?;
        let new = OperatorSchedule {
            name: Some(schedule.name.clone()),
            conversation: place.id,
            what: schedule.what.clone(),
            now_ms,
        };
        if self.store.configure_schedule(new).await? {
            info!(schedule.name = schedule.name, "a schedule is as configured");
        }
        Ok(())
    }

    /// Fires the schedules that are due at a time; returns whether there may be more.
    async fn fire_due(&self, now_ms: i64) -> Result<bool, StoreError> {
        let accounts = self.rooms.accounts();
        if accounts.is_empty() {
            return Ok(false);
        }
        let found = self.store.due_schedules(accounts, now_ms, AT_ONCE).await?;
        for id in &found.broken {
            warn!(
                schedule.id = id,
                "the row of a schedule can't be decoded; it is paused"
            );
            self.store.pause_broken_schedule(*id).await?;
        }
        let mut decided = 0;
        for schedule in &found.due {
            match self.fire(schedule, now_ms).await? {
                Fired::Stale => {}
                Fired::Renewed => decided += 1,
                Fired::Decided(outcome, run) => {
                    decided += 1;
                    let run = run.map(|run| run.to_string()).unwrap_or_default();
                    info!(
                        schedule.id = schedule.id,
                        outcome = outcome.name(),
                        run.id = run,
                        "a schedule was due"
                    );
                    if outcome == FiringOutcome::Fired {
                        self.wake.runs.notify_one();
                        self.wake.posts.notify_one();
                    }
                }
            }
        }
        Ok(decided > 0 && found.due.len() >= AT_ONCE)
    }

    async fn fire(&self, schedule: &StoredSchedule, now_ms: i64) -> Result<Fired, StoreError> {
        let firing = NewFiring {
            id: schedule.id,
            at_ms: schedule.at_ms,
            is_allowed: self.is_allowed(schedule).await?,
            reminder: self.reminder(schedule, now_ms),
            now_ms,
        };
        self.store.fire_schedule(firing).await
    }

    /// Whether its place and its owner are served now, and its agent serves there.
    async fn is_allowed(&self, schedule: &StoredSchedule) -> Result<bool, StoreError> {
        let agent = schedule.what.agent.as_ref();
        if agent.is_some_and(|agent| self.registry.get(agent).is_none()) {
            return Ok(false);
        }
        let place = self.store.place_of(schedule.chat).await?;
        let person = schedule.owner.as_ref().map(|owner| owner.id.as_str());
        let rooms = &self.rooms;
        Ok(rooms
            .admits_now(schedule.account, &place, person, agent)
            .await)
    }

    /// The text of a reminder; `None` if the schedule is no reminder.
    fn reminder(&self, schedule: &StoredSchedule, now_ms: i64) -> Option<Reminder> {
        let room = self.rooms.get(schedule.account)?;
        let at_ms = schedule.at_ms?;
        if schedule.what.agent.is_some() {
            return None;
        }
        let owner = schedule.owner.as_ref();
        let mention = owner.map(|owner| mention_token(&owner.id));
        let named = owner.map(|owner| format!("@{}", owner.name));
        let people = owner.map(|owner| Person {
            name: owner.name.clone(),
            id: owner.id.clone(),
        });
        let says = |person| reminder_text(schedule, person, at_ms, now_ms, room.language());
        let shown = says(named.as_deref());
        Some(Reminder {
            text: says(mention.as_deref()),
            parts: room.renderer.render(&shown, &People::known(people)),
        })
    }
}
