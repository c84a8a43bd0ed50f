//! The inbound half: long polling.
//!
//! The life of an update: fetched in a batch, translated alone, handed to the intake together with
//! the rest of its batch, committed there, and confirmed by the offset of the next poll. The offset
//! never passes an update that was not committed; Telegram sends everything above it again. There
//! is no high-water mark, because ids may start again lower after a quiet week.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::http::HttpTimeouts;
use vocative_contract::channel::{Accepted, BoxFuture, ConnectionState, Inbound, Intake, Reporter};
use vocative_contract::clock::PlatformClock;
use vocative_contract::crash;
use vocative_contract::envelope::{Envelope, Event};
use vocative_contract::error::ChannelError;
use vocative_contract::identity::{Identity, Platform};

use super::api::{BotApiRefusal, CallFailure, Parameters, TelegramApi};
use super::channel::TelegramSettings;
use super::translate::{translate, update_id};
use super::wire::WebhookInfo;

/// A call that failed.
struct FailedCall {
    operation: &'static str,
    failure: CallFailure,
}

/// The failure of a call of that method.
fn of(operation: &'static str) -> impl Fn(CallFailure) -> FailedCall {
    move |failure| FailedCall { operation, failure }
}

const GET_UPDATES: &str = "getUpdates";
const GET_WEBHOOK_INFO: &str = "getWebhookInfo";
const DELETE_WEBHOOK: &str = "deleteWebhook";

/// The update kinds we ask for, also of a webhook. Sent with the first poll, because another program may have narrowed
/// the stored list.
pub(super) const ALLOWED_UPDATES: [&str; 7] = [
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "callback_query",
    "my_chat_member",
    "message_reaction",
];

/// The longest poll the server grants, in seconds.
const POLL_TIMEOUT_S_MAX: u32 = 50;

/// Most updates of one batch; the server's maximum.
const BATCH_MAX: u32 = 100;

/// The waits of the poll loop. Tests make them short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollTimings {
    /// How much longer a request may take than the poll it carries, in milliseconds.
    pub request_margin_ms: u64,
    /// The first wait after a failure, in milliseconds; it doubles.
    pub backoff_first_ms: u64,
    /// The longest wait after a failure, in milliseconds.
    pub backoff_max_ms: u64,
    /// The wait between tries while the account is refused, in milliseconds.
    pub refused_wait_ms: u64,
    /// How long another poller may take our updates before somebody must act, in milliseconds.
    pub conflict_alarm_ms: u64,
    /// The wait after an empty answer that came sooner than this, in milliseconds.
    pub empty_pause_ms: u64,
    /// How long the last confirmation at a stop may take, in milliseconds.
    pub last_confirm_ms: u64,
    /// The silence after which polls are doubted, in milliseconds.
    pub deaf_after_ms: u64,
}

impl Default for PollTimings {
    fn default() -> Self {
        Self {
            request_margin_ms: 15_000,
            backoff_first_ms: 1_000,
            backoff_max_ms: 30_000,
            refused_wait_ms: 60_000,
            conflict_alarm_ms: 60_000,
            empty_pause_ms: 500,
            last_confirm_ms: 5_000,
            deaf_after_ms: 300_000,
        }
    }
}

/// Polls for one bot.
#[derive(Debug)]
pub(super) struct Poller {
    channel: String,
    identity: Identity,
    timings: PollTimings,
    poll_timeout_s: u32,
    api: TelegramApi,
    /// The first update id that is not committed; `None` before the first batch.
    offset: Option<i64>,
    /// Whether the server received that offset in a poll that came back.
    is_confirmed: bool,
    is_webhook_removed: bool,
    has_sent_kinds: bool,
    backoff: Backoff,
    conflict: Option<Conflict>,
    /// Since when polls have brought nothing, or when they were last doubted.
    quiet_since: Option<Instant>,
    /// Whether updates were waiting when polls were last doubted.
    is_doubted: bool,
    /// Whether the last poll failed, so that the next one need not wait to say that all is well.
    is_recovering: bool,
    state: Option<ConnectionState>,
}

/// A time in which another program polls with our token.
#[derive(Clone, Copy, Debug)]
struct Conflict {
    since: Instant,
    last: Instant,
}

/// What to do before the next poll.
#[derive(Debug, PartialEq, Eq)]
enum NextPoll {
    Poll,
    Wait(u64),
}

/// A batch of raw updates, and how long the poll took.
struct UpdateBatch {
    updates: Vec<String>,
    took: Duration,
}

impl Poller {
    pub(super) fn new(
        settings: &TelegramSettings,
        identity: Identity,
        clock: &Arc<PlatformClock>,
    ) -> Self {
        let timings = settings.timings.clone();
        let poll_timeout_s = settings.poll_timeout_s.min(POLL_TIMEOUT_S_MAX);
        let total_ms = u64::from(poll_timeout_s) * 1_000 + timings.request_margin_ms;
        let timeouts = HttpTimeouts {
            read_ms: total_ms,
            total_ms,
            ..HttpTimeouts::default()
        };
        Self {
            channel: settings.name.clone(),
            identity,
            poll_timeout_s,
            api: TelegramApi::new(&settings.api_url, settings.token.clone(), timeouts)
                .timed_by(clock),
            offset: None,
            is_confirmed: true,
            is_webhook_removed: false,
            has_sent_kinds: false,
            backoff: Backoff::new(timings.backoff_first_ms, timings.backoff_max_ms),
            timings,
            conflict: None,
            quiet_since: None,
            is_doubted: false,
            is_recovering: false,
            state: None,
        }
    }

    async fn poll_until(
        &mut self,
        intake: &dyn Intake,
        reporter: &dyn Reporter,
        cancel: &CancellationToken,
    ) {
        self.report(reporter, ConnectionState::Connecting);
        loop {
            let heard = tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                heard = self.hear(reporter) => heard,
            };
            // A batch that was fetched is still committed before a stop.
            let next = match heard {
                Ok(batch) => self.take_in(batch, intake, reporter).await,
                Err(failed) => {
                    self.tell_of_other_sender(&failed.failure, intake).await;
                    self.setback(failed, reporter)
                }
            };
            if let NextPoll::Wait(wait_ms) = next {
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
                }
            }
        }
    }

    /// One completed poll. May be dropped at any time: updates that were not committed come again.
    async fn hear(&mut self, reporter: &dyn Reporter) -> Result<UpdateBatch, FailedCall> {
        if !self.is_webhook_removed {
            self.remove_webhook(reporter).await?;
            reporter.heard();
            self.report(reporter, ConnectionState::Connected { connections: 1 });
        }
        self.doubt(reporter).await;
        let started = Instant::now();
        if !self.is_confirmed {
            crash::point("ack.before");
        }
        let result = self.watched(&self.poll_parameters()).await;
        let result = result.map_err(of(GET_UPDATES))?;
        if !self.is_confirmed {
            crash::point("ack.after");
        }
        reporter.heard();
        self.is_confirmed = true;
        self.has_sent_kinds = true;
        let updates = read_batch(&result).map_err(of(GET_UPDATES))?;
        Ok(UpdateBatch {
            updates,
            took: started.elapsed(),
        })
    }

    /// If polls bring nothing for long while updates wait, polls again from the oldest update that was never confirmed.
    /// At the first look the waiting update may have just come; at the second it has not.
    async fn doubt(&mut self, reporter: &dyn Reporter) {
        let deaf_after = Duration::from_millis(self.timings.deaf_after_ms);
        if self
            .quiet_since
            .is_none_or(|since| since.elapsed() < deaf_after)
        {
            return;
        }
        self.quiet_since = Some(Instant::now());
        let info: WebhookInfo = match self.api.call(GET_WEBHOOK_INFO, &Parameters::new()).await {
            Ok(info) => info,
            Err(failure) => {
                // Polls themselves show whether they work.
                let reason = failure.into_error(GET_WEBHOOK_INFO).reason();
                tracing::warn!(
                    channel.id = %self.channel, reason,
                    "Whether updates wait can't be asked; polling goes on"
                );
                return;
            }
        };
        let waiting = info.pending_update_count.unwrap_or_default();
        let is_deaf = waiting > 0 && self.is_doubted;
        self.is_doubted = waiting > 0 && !is_deaf;
        if is_deaf {
            tracing::warn!(
                channel.id = %self.channel, waiting,
                "Updates wait and polls bring none of them; polling begins anew"
            );
            reporter.deaf();
            self.offset = None;
            self.has_sent_kinds = false;
        }
    }

    /// A poll that ends even if the client never reports its own time-out.
    async fn watched(&self, parameters: &Parameters) -> Result<Box<RawValue>, CallFailure> {
        let window_ms = u64::from(self.poll_timeout_s) * 1_000 + self.timings.request_margin_ms;
        let limit = Duration::from_millis(window_ms.saturating_mul(2));
        let call = self.api.call_raw(GET_UPDATES, parameters);
        timeout(limit, call).await.unwrap_or_else(|_| {
            Err(CallFailure::Unanswered(ChannelError::OutcomeUnknown {
                operation: GET_UPDATES,
                cause: "the poll did not come back".into(),
            }))
        })
    }

    fn poll_parameters(&self) -> Parameters {
        let mut parameters = Parameters::new();
        let wait_s = if self.is_recovering {
            0
        } else {
            self.poll_timeout_s
        };
        parameters.insert("timeout".to_owned(), json!(wait_s));
        parameters.insert("limit".to_owned(), json!(BATCH_MAX));
        if let Some(offset) = self.offset {
            parameters.insert("offset".to_owned(), json!(offset));
        }
        if !self.has_sent_kinds {
            parameters.insert("allowed_updates".to_owned(), json!(ALLOWED_UPDATES));
        }
        parameters
    }

    /// Polling gets nothing while a webhook is set. Waiting updates are kept.
    async fn remove_webhook(&mut self, reporter: &dyn Reporter) -> Result<(), FailedCall> {
        let none = Parameters::new();
        let info = self.api.call(GET_WEBHOOK_INFO, &none).await;
        let info: WebhookInfo = info.map_err(of(GET_WEBHOOK_INFO))?;
        if info.is_set() {
            tracing::warn!(
                channel.id = %self.channel,
                "A webhook is set for this bot and is removed, because this channel polls; if \
                 another program needs it, give this channel a bot of its own"
            );
            let reason = "a webhook was set for this bot and is being removed; if another program \
                          sets it again, give this channel a bot of its own";
            self.report(reporter, alarm(reason));
            let removed = self.api.call_raw(DELETE_WEBHOOK, &none).await;
            removed.map_err(of(DELETE_WEBHOOK))?;
        }
        self.is_webhook_removed = true;
        Ok(())
    }

    /// Commits a batch and moves the offset.
    async fn take_in(
        &mut self,
        batch: UpdateBatch,
        intake: &dyn Intake,
        reporter: &dyn Reporter,
    ) -> NextPoll {
        if batch.updates.is_empty() {
            self.healthy(reporter);
            self.quiet_since.get_or_insert_with(Instant::now);
            let pause_ms = self.timings.empty_pause_ms;
            let is_instant = batch.took < Duration::from_millis(pause_ms);
            return if is_instant {
                NextPoll::Wait(pause_ms)
            } else {
                NextPoll::Poll
            };
        }
        self.quiet_since = None;
        self.is_doubted = false;
        let received = Instant::now();
        let received_at_ms = self.api.clock().now_ms();
        let (ids, envelopes) = self.translated(&batch.updates, received_at_ms, reporter);
        let Some(last_id) = ids.iter().flatten().max().copied() else {
            // Nothing in the batch can be confirmed, so it would come again at once.
            let wait_ms = self.backoff.next_ms();
            let reason = "Telegram sends updates without a readable update_id".to_owned();
            tracing::error!(channel.id = %self.channel, wait_ms, "{reason}");
            self.report(reporter, ConnectionState::Retrying { reason, wait_ms });
            return NextPoll::Wait(wait_ms);
        };
        let results = join_all(envelopes.into_iter().map(|it| intake.accept(it))).await;
        let lag_ms = u64::try_from(received.elapsed().as_millis()).unwrap_or_default();
        let failure = results.iter().position(Result::is_err);
        let accepted = failure.unwrap_or(ids.len());
        for _ in 0..accepted {
            reporter.acknowledged(lag_ms);
        }
        let Some(failure) = failure else {
            let before = self.offset.replace(last_id.saturating_add(1));
            self.is_confirmed = false;
            self.healthy(reporter);
            let has_moved = before.is_none_or(|before| last_id >= before);
            let pause_ms = self.timings.empty_pause_ms;
            return if has_moved {
                NextPoll::Poll
            } else {
                NextPoll::Wait(pause_ms)
            };
        };
        self.hold_offset(&ids, failure);
        self.storage_failed(&results, reporter)
    }

    /// Translates each update alone. One without a readable id is counted and kept raw: the ids of
    /// its batch confirm it.
    fn translated(
        &self,
        updates: &[String],
        received_at_ms: i64,
        reporter: &dyn Reporter,
    ) -> (Vec<Option<i64>>, Vec<Envelope>) {
        let mut ids = Vec::with_capacity(updates.len());
        let mut envelopes = Vec::with_capacity(updates.len());
        for raw in updates {
            let id = update_id(raw);
            if id.is_none() {
                reporter.malformed();
            }
            ids.push(id);
            let envelope = translate(&self.channel, &self.identity, raw, received_at_ms);
            envelopes.push(envelope.heard_by(self.api.clock()));
        }
        (ids, envelopes)
    }

    /// Moves the offset up to the first update that was not committed.
    fn hold_offset(&mut self, ids: &[Option<i64>], failure: usize) {
        let committed = ids[..failure].iter().flatten().max();
        let not_committed = ids[failure..].iter().flatten().min();
        let Some(committed) = committed else { return };
        let next = committed.saturating_add(1);
        let next = not_committed.map_or(next, |id| next.min(*id));
        self.offset = Some(next);
        self.is_confirmed = false;
    }

    /// Reports another program that polls with our token: it may post with it, too.
    async fn tell_of_other_sender(&self, failure: &CallFailure, intake: &dyn Intake) {
        let CallFailure::Refused(refusal) = failure else {
            return;
        };
        let words = refusal.description.to_ascii_lowercase();
        if refusal.code != 409 || !words.contains("other getupdates") {
            return;
        }
        let received_at_ms = self.api.clock().now_ms();
        let told = Envelope {
            channel: self.channel.clone(),
            platform: Platform::Telegram,
            account: self.identity.account.clone(),
            delivery_id: String::new(),
            received_at_ms,
            event: Event::OtherSender {
                seen_at_ms: refusal.date_ms.unwrap_or(received_at_ms),
            },
            numbered: None,
            raw: String::new(),
        };
        if let Err(error) = intake.accept(told).await {
            let cause = error.0.to_string();
            tracing::error!(channel.id = %self.channel, cause, "Another poller could not be noted");
        }
    }

    fn storage_failed(
        &mut self,
        results: &[Result<Accepted, vocative_contract::channel::IntakeError>],
        reporter: &dyn Reporter,
    ) -> NextPoll {
        let wait_ms = self.backoff.next_ms();
        let failed = results.iter().filter(|result| result.is_err()).count();
        let cause = results.iter().find_map(|result| result.as_ref().err());
        let cause = cause.map(|error| error.0.to_string()).unwrap_or_default();
        tracing::error!(
            channel.id = %self.channel,
            updates = failed,
            wait_ms,
            cause,
            "Updates could not be stored; they are not confirmed and Telegram sends them again"
        );
        let reason = "updates could not be stored".to_owned();
        self.report(reporter, ConnectionState::Retrying { reason, wait_ms });
        NextPoll::Wait(wait_ms)
    }

    fn healthy(&mut self, reporter: &dyn Reporter) {
        self.backoff.reset();
        self.is_recovering = false;
        self.report(reporter, ConnectionState::Connected { connections: 1 });
    }

    /// Decides how to go on after a failed call. It never gives up.
    fn setback(
        &mut self,
        FailedCall { operation, failure }: FailedCall,
        reporter: &dyn Reporter,
    ) -> NextPoll {
        let (state, wait_ms) = match failure {
            CallFailure::Refused(BotApiRefusal {
                code: 409,
                description,
                ..
            }) => {
                // A poll that does not wait never conflicts, so it would only hide the other program.
                self.is_recovering = false;
                if description.to_ascii_lowercase().contains("webhook") {
                    // A webhook was set since, by another program or by this channel's predecessor before a switch: it
                    // is looked for and removed again.
                    self.is_webhook_removed = false;
                }
                self.conflict(description)
            }
            failure => {
                self.is_recovering = true;
                self.trouble(failure.into_error(operation))
            }
        };
        // The reporter writes it to the log.
        self.report(reporter, state);
        NextPoll::Wait(wait_ms)
    }

    fn trouble(&mut self, error: ChannelError) -> (ConnectionState, u64) {
        match error {
            ChannelError::RetryAfter { wait_ms, .. } => {
                let reason = error.reason();
                (ConnectionState::Retrying { reason, wait_ms }, wait_ms)
            }
            ChannelError::Unauthorized { reason, .. } => {
                let advice = "check that it was not revoked in @BotFather, and api_url";
                let reason = format!("Telegram refuses the bot token ({reason}): {advice}");
                (alarm(&reason), self.timings.refused_wait_ms)
            }
            error => {
                // A connection may be dead without saying so; the next poll gets a new one.
                self.api.drop_connections();
                let wait_ms = self.backoff.next_ms();
                let reason = error.reason();
                (ConnectionState::Retrying { reason, wait_ms }, wait_ms)
            }
        }
    }

    /// Reports that another program polls with our token, or set a webhook. Usual for a moment at a restart.
    fn conflict(&mut self, description: String) -> (ConnectionState, u64) {
        let now = Instant::now();
        // Between two conflicts a poll may well succeed; only a longer quiet time ends the trouble.
        let quiet_ms = u64::from(self.poll_timeout_s) * 3_000;
        let quiet = Duration::from_millis(quiet_ms.max(self.timings.conflict_alarm_ms));
        let since = self
            .conflict
            .filter(|conflict| now - conflict.last < quiet)
            .map_or(now, |conflict| conflict.since);
        self.conflict = Some(Conflict { since, last: now });
        let wait_ms = self.backoff.next_ms();
        if now - since < Duration::from_millis(self.timings.conflict_alarm_ms) {
            let reason = description;
            return (ConnectionState::Retrying { reason, wait_ms }, wait_ms);
        }
        let advice = "another program uses this bot's token: stop it, or give this channel a bot \
                      of its own";
        (alarm(&format!("{advice} ({description})")), wait_ms)
    }

    fn report(&mut self, reporter: &dyn Reporter, state: ConnectionState) {
        if self.state.as_ref() != Some(&state) {
            reporter.state(state.clone());
            self.state = Some(state);
        }
    }

    /// Tells the server what was committed last, so that it does not come again after the restart. If this fails, it
    /// comes again, and capture recognises the duplicates.
    async fn confirm_last(&mut self) {
        let Some(offset) = self.offset.filter(|_| !self.is_confirmed) else {
            return;
        };
        let mut parameters = Parameters::new();
        parameters.insert("offset".to_owned(), json!(offset));
        parameters.insert("limit".to_owned(), json!(1));
        parameters.insert("timeout".to_owned(), json!(0));
        let limit = Duration::from_millis(self.timings.last_confirm_ms);
        let call = self.api.call_raw(GET_UPDATES, &parameters);
        match timeout(limit, call).await {
            Ok(Ok(_)) => self.is_confirmed = true,
            Ok(Err(_)) | Err(_) => {
                tracing::debug!(channel.id = %self.channel, "The last updates were not confirmed");
            }
        }
    }
}

impl Inbound for Poller {
    fn run<'a>(
        &'a mut self,
        intake: Arc<dyn Intake>,
        reporter: Arc<dyn Reporter>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            self.poll_until(&*intake, &*reporter, &cancel).await;
            self.confirm_last().await;
            Ok(())
        })
    }
}

/// The updates of a batch, each as its own JSON.
pub(super) fn read_batch(result: &RawValue) -> Result<Vec<String>, CallFailure> {
    let updates: Vec<&RawValue> = serde_json::from_str(result.get()).map_err(|_| {
        CallFailure::Unanswered(ChannelError::OutcomeUnknown {
            operation: GET_UPDATES,
            cause: "the result is not a list".into(),
        })
    })?;
    Ok(updates.iter().map(|raw| raw.get().to_owned()).collect())
}

fn alarm(reason: &str) -> ConnectionState {
    ConnectionState::Alarm {
        reason: reason.to_owned(),
    }
}
