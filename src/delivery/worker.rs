//! Claims committed posts and sends them: one in flight per chat, many chats at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};
use vocative_contract::crash::{self, Sabotage};
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::handles::Poster;
use vocative_contract::outbound::{Delivered, Operation, Post, ReadBack};
use vocative_contract::probe::Prober;

use crate::capture::clock::Clock;
use crate::capture::wake::Wake;
use crate::delivery::rooms::{Posters, Room, Rooms};
use vocative_core::file::ContentId;
use vocative_core::ids::{AccountId, ChatId, LeaseToken, OutboxId, OwnerId};
use vocative_core::outbox::OutboxUpdate;
use vocative_core::outbox::{ClaimedEntry, OutboxEntry};
use vocative_core::sending::after::{after_look, after_send, after_unknown, is_aside};
use vocative_core::sending::policy::OnUnknown;
use vocative_core::timing::{BOUNDS_SLOW_MS, Timings};
use vocative_store::contract::{ClaimRequest, LeaseOutcome};
use vocative_store::{Delivering, Store, StoreError};

/// Posts in flight at once, over all chats of an account. A platform that hangs holds up no other.
pub const POSTS_IN_FLIGHT_MAX: usize = 64;

/// A lease outlasts the longest send (the HTTP client gives up before) and the pacing wait.
const LEASE_MS: i64 = 120_000;

/// How far before its first attempt a post that replies to no stored message is looked for, in milliseconds: the time
/// of the attempt is by our clock.
const LOOK_MARGIN_MS: i64 = 86_400_000;

/// How often due posts are looked for without a wake hint.
const POLL: Duration = Duration::from_millis(1_000);

/// When the daemon stops, it waits for posts that are due within this time, in milliseconds. Later ones go out
/// after the next start, so that a platform that is down doesn't hold up every stop.
const DRAIN_WAIT_MS: i64 = 5_000;

/// A post that must wait longer for the platform's rate is put off on disk.
const MOMENT: Duration = Duration::from_millis(500);

/// The most calls that an upload may need before it shows; an address that expired is requested again.
const PREPARING_CALLS_MAX: usize = 6;
/// A preparing call that failed waits as long as a post does after this many attempts.
const PREPARING_PATIENCE: u32 = 4;

/// The wait between attempts to record what became of a post while storage refuses it.
const RECORD_AGAIN: Duration = Duration::from_millis(500);

/// How long people waited for an answer since the start, by channel.
pub static ANSWERED: Timings = Timings::new(BOUNDS_SLOW_MS);

/// The delivery worker.
pub struct DeliveryWorker {
    /// The store with the posts.
    pub store: Store<Delivering>,
    /// The accounts.
    pub rooms: Rooms,
    /// The handles for posting through them.
    pub posters: Posters,
    /// The id of this process.
    pub owner: OwnerId,
    /// Wake hints.
    pub wake: Wake,
    /// The time.
    pub clock: Clock,
}

impl DeliveryWorker {
    /// Sends until `stop`, after which nothing more is committed; then what is in flight, due or
    /// due soon, until `drain_until`.
    pub async fn run(self, stop: CancellationToken, drain_until: CancellationToken) {
        let worker = Arc::new(self);
        let memory = Arc::new(Memory::default());
        let mut places = PostSlots::default();
        let mut in_flight = JoinSet::new();
        let mut held = HashMap::new();
        loop {
            let notified = worker.wake.posts.notified();
            let now_ms = (worker.clock)();
            let claimed = worker.claim(&places, now_ms).await;
            let is_idle = claimed.is_empty();
            for entry in claimed {
                let worker = Arc::clone(&worker);
                let memory = Arc::clone(&memory);
                let place = places.take(entry.entry.account);
                let lease = (entry.entry.id, entry.token);
                let task = in_flight.spawn(async move {
                    worker.handle(entry, &memory).await;
                    drop(place);
                });
                held.insert(task.id(), lease);
            }
            if !is_idle {
                continue;
            }
            let due_ms = worker.next_due_ms(now_ms).await;
            let is_soon = due_ms.is_some_and(|due_ms| due_ms <= now_ms + DRAIN_WAIT_MS);
            if stop.is_cancelled() && in_flight.is_empty() && !is_soon {
                return;
            }
            tokio::select! {
                // In this order, so that a simulation can be repeated; whichever branch is taken, the loop checks
                // everything.
                biased;
                Some(ended) = in_flight.join_next_with_id(), if !in_flight.is_empty() => {
                    let task = ended.as_ref().map_or_else(JoinError::id, |(task, ())| *task);
                    let lease = held.remove(&task);
                    if let (Err(cause), Some((entry, token))) = (ended, lease) {
                        error!(error = %cause, post.id = %entry, "a delivery panicked");
                        let (worker, memory) = (Arc::clone(&worker), Arc::clone(&memory));
                        in_flight.spawn(async move { worker.abandon(entry, token, &memory).await });
                    }
                }
                () = notified => {}
                () = tokio::time::sleep(pause_until(due_ms, now_ms, POLL)) => {}
                () = stop.cancelled(), if !stop.is_cancelled() => {}
                () = drain_until.cancelled() => return,
            }
        }
    }

    /// When the next post comes due after now. A post that is due and was not claimed waits for something other than
    /// time.
    async fn next_due_ms(&self, now_ms: i64) -> Option<i64> {
        let due_ms = self.store.next_post_due_ms().await.unwrap_or(None);
        due_ms.filter(|due_ms| *due_ms > now_ms)
    }

    async fn claim(&self, places: &PostSlots, now_ms: i64) -> Vec<ClaimedEntry> {
        let mut accounts = self.rooms.accounts();
        accounts.retain(|account| places.free(*account) > 0);
        // A number that fits any account; the caller claims again until nothing is due.
        let fits = accounts.iter().map(|account| places.free(*account)).min();
        let Some(limit) = fits else {
            return Vec::new();
        };
        let request = ClaimRequest {
            owner: self.owner,
            lease_ms: LEASE_MS,
            now_ms,
            accounts,
        };
        self.store
            .claim_posts(request, limit)
            .await
            .unwrap_or_else(|cause| {
                warn!(error = %cause, "posts could not be claimed; trying again");
                Vec::new()
            })
    }

    /// Gives back an entry whose handling ended without a result.
    async fn abandon(&self, entry: OutboxId, token: LeaseToken, memory: &Memory) {
        memory.attempts.note_end(entry);
        let write = || self.store.abandon_post(entry, token, (self.clock)());
        persist(entry, write).await;
    }

    async fn handle(&self, claimed: ClaimedEntry, memory: &Memory) {
        let id = claimed.entry.id;
        let account = claimed.entry.account;
        let (Some(room), Some(poster)) = (self.rooms.get(account), self.posters.get(account))
        else {
            self.abandon(id, claimed.token, memory).await;
            return;
        };
        crash::point("post.claimed");
        let is_looked_for = claimed.is_unknown
            && !claimed.entry.operation.is_repeatable()
            && !crash::is_sabotaged(Sabotage::ResendAlways);
        let update = if is_looked_for {
            let since_end = memory.attempts.since_end(id);
            match self.look(&claimed, &room, since_end).await {
                Some(update) => update,
                None => return,
            }
        } else {
            // Operations that make no message in the room don't count towards its rate.
            let is_paced = !is_aside(&claimed.entry.operation);
            if is_paced {
                memory
                    .pacer
                    .wait(claimed.entry.chat, room.capabilities.chat_interval_ms)
                    .await;
            }
            if is_paced && let Some(until_ms) = self.wait_before(&claimed, &*poster).await {
                self.put_off(&claimed, until_ms).await;
                return;
            }
            match self.send(&claimed, &room, &*poster).await {
                Some(update) => update,
                None => return,
            }
        };
        match &update {
            OutboxUpdate::Look { .. } if is_looked_for => {}
            OutboxUpdate::Look { .. } => memory.attempts.note_end(id),
            _ => memory.attempts.forget(id),
        }
        self.record(&claimed, &room, update).await;
    }

    /// Waits until the platform takes another post there. If that takes longer than a moment, returns the time
    /// instead: the post is put off on disk, and takes no place in flight and delays no stop.
    async fn wait_before(&self, claimed: &ClaimedEntry, poster: &dyn Poster) -> Option<i64> {
        loop {
            let wait = poster.wait_before(&claimed.entry.target);
            if wait.is_zero() {
                return None;
            }
            if wait > MOMENT {
                let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX / 2);
                return Some((self.clock)().saturating_add(wait_ms));
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Gives back a post of which nothing was sent, to be claimed again at that time. Its chat waits with it.
    async fn put_off(&self, claimed: &ClaimedEntry, until_ms: i64) {
        let id = claimed.entry.id;
        debug!(post.id = %id, until_ms, "a post waits for the platform's rate");
        let update = OutboxUpdate::Rest {
            until_ms,
            reason: "the platform takes only so many posts there in a minute".to_owned(),
        };
        let write = || {
            self.store
                .update_post(id, claimed.token, update.clone(), (self.clock)())
        };
        persist(id, write).await;
    }

    /// Sends once. `None` if the lease was lost meanwhile.
    async fn send(
        &self,
        claimed: &ClaimedEntry,
        room: &Room,
        poster: &dyn Poster,
    ) -> Option<OutboxUpdate> {
        let entry = &claimed.entry;
        let mut post = post_of(claimed);
        if let Err(error) = self.load(&mut post).await {
            return Some(self.unprepared(claimed, room, error));
        }
        if entry.operation == Operation::Upload
            && let Err(update) = self.prepare(claimed, room, poster, &mut post).await?
        {
            return Some(update);
        }
        let prober = room.prober.as_deref();
        let sequence = prober.and_then(|prober| prober.sequence(&entry.target.chat));
        let start = || {
            let (sequence, now_ms) = (sequence.clone(), (self.clock)());
            self.store
                .mark_send_started(entry.id, claimed.token, sequence, now_ms)
        };
        let is_late = crash::is_sabotaged(Sabotage::CommitAfterSend);
        if !is_late && persist(entry.id, start).await == LeaseOutcome::Stale {
            return None;
        }
        crash::point("send.started");
        let mut attempted = entry.clone();
        attempted.attempts += 1;
        let is_final = matches!(post.operation, Operation::Edit { .. });
        if is_final {
            crash::point("final.before");
        }
        debug!(
            channel.id = %room.channel, post.id = %entry.id, operation = entry.operation.name(),
            part = entry.part_number, attempt = attempted.attempts, "a post is sent"
        );
        let outcome = poster.deliver(&post).await;
        if is_final {
            crash::point("final.after");
        }
        Some(self.after(&attempted, outcome, room))
    }

    /// Reads the stored bytes of a post's file.
    async fn load(&self, post: &mut Post) -> Result<(), ChannelError> {
        let operation = "upload";
        let Some(file) = &mut post.part.file else {
            return Ok(());
        };
        let Some(stored) = &file.stored else {
            return Ok(());
        };
        let found = match ContentId::from_name(&stored.sha256) {
            Some(content) => self.store.content(content, stored.size_bytes).await,
            None => Ok(None),
        };
        let bytes = found.map_err(|cause| ChannelError::NotSent {
            operation,
            cause: cause.into(),
        })?;
        file.loaded = Some(
            bytes
                .map(Into::into)
                .ok_or_else(|| ChannelError::Rejected {
                    operation,
                    reason: "its stored bytes are gone".to_owned(),
                    fallback: Fallback::Plain,
                })?,
        );
        Ok(())
    }

    /// Makes the calls that come before an upload shows, and stores the result of each, so that a kill in between
    /// costs one call. `None` if the lease was lost; `Err` if it can't be delivered now.
    async fn prepare(
        &self,
        claimed: &ClaimedEntry,
        room: &Room,
        poster: &dyn Poster,
        post: &mut Post,
    ) -> Option<Result<(), OutboxUpdate>> {
        for _ in 0..PREPARING_CALLS_MAX {
            let progress = match poster.prepare(post).await {
                Ok(None) => return Some(Ok(())),
                Ok(Some(progress)) => progress,
                Err(error) => return Some(Err(self.unprepared(claimed, room, error))),
            };
            let keep = || {
                let progress = progress.clone();
                self.store
                    .keep_progress(claimed.entry.id, claimed.token, progress)
            };
            if persist(claimed.entry.id, keep).await == LeaseOutcome::Stale {
                return None;
            }
            crash::point("upload.prepared");
            if let Some(file) = &mut post.part.file {
                file.progress = Some(progress).filter(|progress| !progress.is_empty());
            }
        }
        let cause = "the platform takes no bytes at the addresses it names".into();
        let operation = "upload";
        let error = ChannelError::NotSent { operation, cause };
        Some(Err(self.unprepared(claimed, room, error)))
    }

    /// The update for an upload of which nothing shows yet.
    fn unprepared(&self, claimed: &ClaimedEntry, room: &Room, error: ChannelError) -> OutboxUpdate {
        // Nothing is in the room, whatever became of the call.
        let error = match error {
            ChannelError::OutcomeUnknown { operation, cause } => {
                ChannelError::NotSent { operation, cause }
            }
            error => error,
        };
        let mut attempted = claimed.entry.clone();
        attempted.attempts = attempted.attempts.max(PREPARING_PATIENCE);
        self.after(&attempted, Err(error), room)
    }

    fn after(
        &self,
        attempted: &OutboxEntry,
        outcome: Result<Delivered, ChannelError>,
        room: &Room,
    ) -> OutboxUpdate {
        let fallback = |part: &_, fallback| room.renderer.render_fallback(part, fallback);
        let can_look = room.capabilities.can_read_back || prober_of(room).is_some();
        let now_ms = (self.clock)();
        after_send(
            attempted,
            outcome,
            can_look,
            &fallback,
            &room.delivery,
            now_ms,
        )
    }

    /// Looks for a post of unknown outcome, given the time since its last attempt; if the platform can't say, decides
    /// without. `None` if the lease was lost.
    async fn look(
        &self,
        claimed: &ClaimedEntry,
        room: &Room,
        since_end: Duration,
    ) -> Option<OutboxUpdate> {
        let entry = &claimed.entry;
        if !room.capabilities.can_read_back {
            if let Some(prober) = prober_of(room) {
                return self.probe(claimed, room, prober).await;
            }
            let reason = "the process ended while it was being sent".to_owned();
            let now_ms = (self.clock)();
            return Some(after_unknown(entry, false, &room.delivery, reason, now_ms));
        }
        let since_ms = looked_for_since_ms(entry);
        crash::point("look.before");
        let found = match crash::is_sabotaged(Sabotage::NoReadback) {
            true => Ok(ReadBack::NotFound),
            false => room.look_ups.read_back(&post_of(claimed), since_ms).await,
        };
        crash::point("look.after");
        let since_end_ms = i64::try_from(since_end.as_millis()).unwrap_or(i64::MAX);
        let now_ms = (self.clock)();
        Some(after_look(
            entry,
            found,
            &room.delivery,
            since_end_ms,
            now_ms,
        ))
    }

    async fn record(&self, claimed: &ClaimedEntry, room: &Room, update: OutboxUpdate) {
        let id = claimed.entry.id;
        log_update(claimed, room, &update);
        let is_sent = matches!(update, OutboxUpdate::Sent(_));
        if is_sent {
            note_answer(&claimed.entry, &room.channel, (self.clock)());
        }
        let is_refused = matches!(update, OutboxUpdate::HoldAccount { .. });
        let write = || {
            self.store
                .update_post(id, claimed.token, update.clone(), (self.clock)())
        };
        crash::point("delivery.before-commit");
        let recorded = persist(id, write).await;
        crash::point("delivery.after-commit");
        match recorded {
            // The next part of the same chat may be sent now. If the lease is gone, the post was already recorded:
            // the platform's echo of it came before the answer to the request.
            _ if is_sent => {
                self.wake.posts.notify_one();
                self.wake.posted.notify_waiters();
            }
            LeaseOutcome::Written if is_refused => room.refused.notify_one(),
            LeaseOutcome::Written => {}
            LeaseOutcome::Stale => {
                warn!(post.id = %id, "the lease of a post was lost before its outcome was recorded");
            }
        }
    }
}

/// How long to sleep at most: until something is due, and no longer than `poll`; never so short
/// that a loop spins.
#[must_use]
pub fn pause_until(due_ms: Option<i64>, now_ms: i64, poll: Duration) -> Duration {
    const SHORTEST: Duration = Duration::from_millis(20);
    let wait = due_ms.map_or(poll, |due_ms| {
        Duration::from_millis(u64::try_from(due_ms.saturating_sub(now_ms)).unwrap_or(0))
    });
    wait.clamp(SHORTEST, poll)
}

/// The handle that asks about single messages, if posts of unknown outcome are looked for that way.
fn prober_of(room: &Room) -> Option<&dyn Prober> {
    let prober = room.prober.as_deref();
    prober.filter(|_| room.delivery.on_unknown == OnUnknown::Look)
}

fn post_of(claimed: &ClaimedEntry) -> Post {
    Post {
        marker: claimed.entry.id.to_string(),
        target: claimed.entry.target.clone(),
        operation: claimed.entry.operation.clone(),
        part: claimed.entry.part.clone(),
    }
}

/// Records how long people waited for an answer: from the platform's time of their question to its first part in the
/// room. Clocks of two machines are compared: a negative time counts as zero.
fn note_answer(entry: &OutboxEntry, channel: &str, now_ms: i64) {
    let is_first = entry.part_number == 0 && matches!(entry.operation, Operation::Post);
    if let Some(asked_ms) = entry.later_than_ms.filter(|_| is_first) {
        let waited_ms = now_ms.saturating_sub(asked_ms);
        ANSWERED.note(channel, "posted", u64::try_from(waited_ms).unwrap_or(0));
    }
}

fn log_update(claimed: &ClaimedEntry, room: &Room, update: &OutboxUpdate) {
    let id = claimed.entry.id;
    let channel = &room.channel;
    match update {
        OutboxUpdate::Sent(_) => log_sent(claimed, channel),
        OutboxUpdate::Look { reason, .. } if claimed.is_unknown => {
            debug!(channel.id = %channel, post.id = %id, reason, "a post is looked for");
        }
        OutboxUpdate::Retry { reason, .. }
        | OutboxUpdate::Rest { reason, .. }
        | OutboxUpdate::Look { reason, .. }
        | OutboxUpdate::Resend { reason }
        | OutboxUpdate::ResendLater { reason, .. }
        | OutboxUpdate::Replace { reason, .. } => {
            warn!(channel.id = %channel, post.id = %id, reason, next = update_name(update), "a post needs another attempt");
        }
        OutboxUpdate::Drop { reason } => {
            let operation = claimed.entry.operation.name();
            warn!(channel.id = %channel, post.id = %id, operation, reason, "not done, and not tried again");
        }
        OutboxUpdate::Undecided {
            resend: true,
            reason,
        } => {
            warn!(channel.id = %channel, post.id = %id, reason, next = update_name(update), "a post may show twice");
        }
        OutboxUpdate::Undecided {
            resend: false,
            reason,
        }
        | OutboxUpdate::Hold { reason }
        | OutboxUpdate::Dead { reason }
        | OutboxUpdate::ParkChat { reason, .. }
        | OutboxUpdate::HoldAccount { reason } => {
            error!(channel.id = %channel, post.id = %id, reason, next = update_name(update), "a post needs a person");
        }
    }
}

/// Logs posts that show in the room; signs, which come and go, at debug level.
fn log_sent(claimed: &ClaimedEntry, channel: &str) {
    let entry = &claimed.entry;
    let id = entry.id;
    match &entry.operation {
        Operation::Post | Operation::Upload => {
            info!(channel.id = %channel, post.id = %id, part = entry.part_number, "posted");
        }
        Operation::Edit { .. } | Operation::Delete { .. } | Operation::Ephemeral { .. } => {
            let operation = entry.operation.name();
            info!(channel.id = %channel, post.id = %id, operation, part = entry.part_number, "done in the room");
        }
        Operation::React { .. } | Operation::Unreact { .. } | Operation::Answer { .. } => {
            let operation = entry.operation.name();
            debug!(channel.id = %channel, post.id = %id, operation, "done in the room");
        }
    }
}

fn update_name(update: &OutboxUpdate) -> &'static str {
    match update {
        OutboxUpdate::Sent(_) => "sent",
        OutboxUpdate::Retry { .. } | OutboxUpdate::Rest { .. } => "retry",
        OutboxUpdate::Look { .. } => "look",
        OutboxUpdate::Resend { .. }
        | OutboxUpdate::ResendLater { .. }
        | OutboxUpdate::Undecided { resend: true, .. } => "resend",
        OutboxUpdate::Undecided { resend: false, .. } | OutboxUpdate::Hold { .. } => "held",
        OutboxUpdate::Dead { .. } => "dead",
        OutboxUpdate::Drop { .. } => "dropped",
        OutboxUpdate::Replace { .. } => "replaced",
        OutboxUpdate::ParkChat { .. } => "chat parked",
        OutboxUpdate::HoldAccount { .. } => "channel held",
    }
}

/// Repeats a write while storage refuses it: without it, a post that is known to have arrived would be sent twice.
pub(super) async fn persist<T, W>(id: OutboxId, write: impl Fn() -> W) -> T
where
    W: Future<Output = Result<T, StoreError>>,
{
    loop {
        match write().await {
            Ok(written) => return written,
            Err(cause) => {
                warn!(error = %cause, post.id = %id, "storage refuses what becomes of a post; trying again");
                tokio::time::sleep(RECORD_AGAIN).await;
            }
        }
    }
}

/// The time from which a post is looked for, by the platform's clock.
fn looked_for_since_ms(entry: &OutboxEntry) -> i64 {
    let attempted_ms = entry.first_attempt_ms.unwrap_or(entry.created_at_ms);
    match entry.later_than_ms {
        Some(later_than_ms) if !crash::is_sabotaged(Sabotage::OwnClock) => later_than_ms,
        Some(_) => attempted_ms,
        None => attempted_ms.saturating_sub(LOOK_MARGIN_MS),
    }
}

/// The places for posts in flight, per account. Dropping the guard frees a place, even in a panic.
#[derive(Default)]
struct PostSlots {
    taken: HashMap<AccountId, Arc<()>>,
}

impl PostSlots {
    fn free(&self, account: AccountId) -> usize {
        let taken = self.taken.get(&account);
        let count = taken.map_or(0, |place| Arc::strong_count(place) - 1);
        POSTS_IN_FLIGHT_MAX.saturating_sub(count)
    }

    fn take(&mut self, account: AccountId) -> Arc<()> {
        Arc::clone(self.taken.entry(account).or_default())
    }
}

/// What is remembered about posts that were sent.
#[derive(Default)]
struct Memory {
    pacer: Pacer,
    attempts: Attempts,
}

/// When attempts of unknown outcome ended, by the monotonic clock.
struct Attempts {
    began: Instant,
    ended: Mutex<HashMap<OutboxId, Instant>>,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            ended: Mutex::default(),
        }
    }
}

impl Attempts {
    /// How long the end of an attempt is remembered: longer waits need not be told apart.
    const REMEMBERED: Duration = Duration::from_secs(7_200);

    fn note_end(&self, id: OutboxId) {
        let now = Instant::now();
        let mut ended = self.ended();
        ended.retain(|_, at| now.duration_since(*at) < Self::REMEMBERED);
        ended.insert(id, now);
    }

    fn forget(&self, id: OutboxId) {
        self.ended().remove(&id);
    }

    /// The time since its last attempt ended; for an attempt of an earlier process, since this process started.
    fn since_end(&self, id: OutboxId) -> Duration {
        self.ended().get(&id).unwrap_or(&self.began).elapsed()
    }

    fn ended(&self) -> std::sync::MutexGuard<'_, HashMap<OutboxId, Instant>> {
        self.ended.lock().expect("no holder of this lock panics")
    }
}

/// Keeps the shortest time between two posts in one chat.
#[derive(Default)]
struct Pacer {
    last: Mutex<HashMap<ChatId, Instant>>,
}

impl Pacer {
    /// Once this many chats are remembered, those whose interval is over are dropped.
    const CHATS_MAX: usize = 4_096;

    async fn wait(&self, chat: ChatId, interval_ms: u64) {
        let interval = Duration::from_millis(interval_ms);
        let due = {
            let mut last = self.last.lock().expect("no holder of this lock panics");
            let now = Instant::now();
            if last.len() >= Self::CHATS_MAX {
                last.retain(|_, at| now.saturating_duration_since(*at) < interval);
            }
            let due = last.get(&chat).map_or(now, |at| (*at + interval).max(now));
            last.insert(chat, due);
            due
        };
        tokio::time::sleep_until(due).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_sleeps_until_something_is_due_and_never_spins() {
        let poll = Duration::from_secs(1);
        let table = [
            (None, 1_000),
            (Some(10_300), 300),
            (Some(99_000), 1_000),
            (Some(10_001), 20),
            (Some(9_000), 20),
        ];
        for (due_ms, expected_ms) in table {
            let pause = pause_until(due_ms, 10_000, poll);
            assert_eq!(pause.as_millis(), expected_ms, "{due_ms:?}");
        }
    }
}
