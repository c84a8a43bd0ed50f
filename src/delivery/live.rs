//! The live view: an answer that people see grow while it is written.
//!
//! The outbox delivers the real answer at the end; this is only a display, so any failure here is silent, and nothing
//! is retried. In a chat that takes previews the text so far is sent as one. Elsewhere a placeholder post is used:
//! committed like every post, sent by the delivery worker, and edited from here until the answer takes it over. If
//! the platform has posts to which text can be appended, new text is appended to such a post; as soon as that fails
//! it is edited like any other.
//!
//! Reading order: [`plan`] and `Pacing` (pure), [`LiveDesk`] (what showing one state does), [`LiveReply`] (the task
//! of a run, which the model never waits for).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;
use vocative_channels::render::prefixed;
use vocative_contract::capability::Capabilities;
use vocative_contract::crash::{self, Sabotage};
use vocative_contract::envelope::ChatKind;
use vocative_contract::error::ChannelError;
use vocative_contract::handles::{Renderer, Signs};
use vocative_contract::live::{LIVE_MAX_CHARS, LiveForm, LivePost, whole_words};
use vocative_contract::outbound::{Part, PartStream, Target};
use vocative_core::sending::policy::LivePolicy;

use crate::capture::clock::Clock;
use crate::capture::reply::Lead;
use crate::llm::Listener;
use vocative_core::ids::{LeaseToken, RunId};
use vocative_core::sending::policy::{Live, OnUnknown};
use vocative_store::contract::{NewPlaceholder, Placed, Placeholder};
use vocative_store::{Replying, Store, StoreError};

/// How much of a text is kept for display, in bytes; no platform would show more.
const HEARD_MAX_BYTES: usize = 4 * LIVE_MAX_CHARS + 1_024;
/// A preview disappears after 30 seconds; before that it is sent again, even if nothing was added.
const PREVIEW_RENEW: Duration = Duration::from_secs(20);
/// How often a placeholder is looked up to see whether it was posted, without a wake hint.
const POSTED_POLL: Duration = Duration::from_millis(500);
/// How long an answer waits for an edit that is still being made.
const END_WAIT: Duration = Duration::from_secs(3);
/// How long an edit by another attempt of the run, or by another process, may still be on its way.
pub const SETTLE_MS: i64 = 2_000;
/// How long an edit that the platform did not answer may still be on its way.
const UNANSWERED_SETTLE_MS: i64 = 10_000;

/// How an answer shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveWay {
    /// By a post that is edited.
    Post,
    /// By previews.
    Preview,
    /// By a post to which text is appended.
    Stream,
}

/// How, and how often, an answer is shown in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePlan {
    /// The way.
    pub way: LiveWay,
    /// The time from the first words until it begins.
    pub delay: Duration,
    /// The shortest time between two states.
    pub interval: Duration,
    /// The same once a post to which no more text can be appended is edited.
    pub edit_interval: Duration,
}

/// The place where an answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePlace {
    /// The kind of chat; `None` = unknown.
    pub kind: Option<ChatKind>,
    /// Whether it is a thread.
    pub is_thread: bool,
}

/// How an answer shows in that place; `None` = it does not. A chat of unknown kind does not count as direct. Where
/// posts of unknown outcome are held and can't be looked for, no placeholder is posted, since it might have to be
/// deleted.
#[must_use]
pub fn plan(
    policy: LivePolicy,
    on_unknown: OnUnknown,
    capabilities: &Capabilities,
    place: LivePlace,
) -> Option<LivePlan> {
    let is_direct = place.kind == Some(ChatKind::Direct);
    let is_streamed =
        policy.live == Live::Stream && place.is_thread && capabilities.live_stream_ms > 0;
    let is_wanted = match policy.live {
        Live::Off => false,
        Live::Auto => is_direct,
        Live::On | Live::Edit => true,
        Live::Stream => is_streamed || is_direct,
    };
    let has_previews = capabilities.live_preview_ms > 0 && is_direct && policy.live != Live::Edit;
    let (way, own_ms) = match (is_streamed, has_previews) {
        (true, _) => (LiveWay::Stream, capabilities.live_stream_ms),
        (false, true) => (LiveWay::Preview, capabilities.live_preview_ms),
        (false, false) => (LiveWay::Post, capabilities.live_edit_ms),
    };
    let is_lost = on_unknown == OnUnknown::Hold && !capabilities.can_read_back;
    if !is_wanted || own_ms == 0 || (way != LiveWay::Preview && is_lost) {
        return None;
    }
    let or_set = |own_ms| match policy.interval_ms {
        0 => Duration::from_millis(own_ms),
        set => Duration::from_millis(set),
    };
    Some(LivePlan {
        way,
        delay: Duration::from_millis(policy.delay_ms),
        interval: or_set(own_ms),
        edit_interval: or_set(capabilities.live_edit_ms),
    })
}

/// Decides when the next state is shown. Pure.
#[derive(Debug)]
struct Pacing {
    plan: LivePlan,
    /// When there was first something to show.
    began_at: Option<Instant>,
    /// The state that is shown, and since when.
    shown: Option<(u64, Instant)>,
    /// The wait that the platform asked for.
    not_before: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Now,
    At(Instant),
    /// At that time at the latest: sooner if text is added.
    Again(Instant),
    /// Once text is added.
    Later,
}

impl Pacing {
    fn new(plan: LivePlan) -> Self {
        Self {
            plan,
            began_at: None,
            shown: None,
            not_before: None,
        }
    }

    /// `state` counts the additions; `None` while there is nothing to show.
    fn due(&mut self, now: Instant, state: Option<u64>) -> Due {
        let Some(state) = state else {
            return Due::Later;
        };
        let began_at = *self.began_at.get_or_insert(now);
        let first = began_at + self.plan.delay;
        let (next, is_new) = match self.shown {
            None => (first, true),
            Some((shown, at)) if shown != state => (at + self.plan.interval, true),
            Some((_, at)) if self.plan.way == LiveWay::Preview => (at + PREVIEW_RENEW, false),
            Some(_) => return Due::Later,
        };
        let at = self.not_before.map_or(next, |at| at.max(next));
        match is_new {
            _ if at <= now => Due::Now,
            true => Due::At(at),
            false => Due::Again(at),
        }
    }

    fn edit_from_now_on(&mut self) {
        self.plan.way = LiveWay::Post;
        self.plan.interval = self.plan.edit_interval;
    }

    fn note_shown(&mut self, now: Instant, state: u64) {
        self.shown = Some((state, now));
    }

    /// The platform asked to wait this long.
    fn note_wait(&mut self, now: Instant, wait: Duration) {
        self.not_before = Some(now + wait);
    }
}

/// The text so far.
#[derive(Debug, Default)]
struct TextSoFar {
    text: String,
    /// Increases with every change of what is shown.
    state: u64,
}

/// Hears the model; called on the model's task, so it only stores the text.
#[derive(Debug)]
struct LiveEar(watch::Sender<TextSoFar>);

impl Listener for LiveEar {
    fn text(&self, delta: &str) {
        self.0.send_if_modified(|heard| {
            let room = HEARD_MAX_BYTES.saturating_sub(heard.text.len());
            // Text that does not fit as a whole is not shown anyway.
            let fits = delta.len() <= room;
            if fits {
                heard.text.push_str(delta);
                heard.state += 1;
            }
            fits
        });
    }

    fn restart(&self) {
        // The shown text stays until there is other text to show.
        self.0.send_modify(|heard| heard.text.clear());
    }

    fn interlude(&self) {
        self.restart();
    }
}

/// What is needed to show the answer of one run.
#[derive(Clone)]
pub struct LiveDesk {
    /// Where the placeholder is committed.
    pub store: Store<Replying>,
    /// Renders the text.
    pub renderer: Arc<dyn Renderer>,
    /// Shows previews and edits.
    pub signs: Arc<dyn Signs>,
    /// The run.
    pub run: RunId,
    /// Its lease: without it nothing is shown.
    pub token: LeaseToken,
    /// Where the answer is shown.
    pub target: Target,
    /// The person for whom it is written, by the platform's id.
    pub person: Option<String>,
    /// How the room sees the speaker.
    pub lead: Lead,
    /// Notified when a post was committed.
    pub posts: Arc<Notify>,
    /// Notified when a post was sent.
    pub posted: Arc<Notify>,
    /// The time.
    pub clock: Clock,
}

/// The result of showing one state.
#[derive(Debug)]
enum ShowingOutcome {
    Yes,
    /// Not shown yet: the platform asked to wait, or could not be reached.
    Wait(Duration),
    /// It is unknown whether the state shows.
    Unknown,
    /// Nothing can be shown in this run, or not in this way.
    Never(String),
    /// The chat does not want any more.
    Unwanted(String),
}

impl From<Result<(), ChannelError>> for ShowingOutcome {
    fn from(result: Result<(), ChannelError>) -> Self {
        match result {
            Ok(()) => Self::Yes,
            Err(ChannelError::RetryAfter { wait_ms, .. }) => {
                Self::Wait(Duration::from_millis(wait_ms))
            }
            Err(ChannelError::NotSent { .. }) => Self::Wait(Duration::from_secs(1)),
            Err(ChannelError::OutcomeUnknown { .. }) => Self::Unknown,
            Err(error @ ChannelError::ChatRefused { .. }) => Self::Unwanted(error.reason()),
            Err(error) => Self::Never(error.reason()),
        }
    }
}

impl From<StoreError> for ShowingOutcome {
    fn from(error: StoreError) -> Self {
        Self::Never(error.to_string())
    }
}

impl LiveDesk {
    fn render(&self, text: &str) -> Option<Part> {
        let text = prefixed(&self.lead.prefix(), text);
        let part = self.renderer.render_live(&text)?;
        Some(self.lead.on(part))
    }

    /// The words of a text; the text that is appended to a post is a part of them.
    fn words(&self, text: &str) -> Option<String> {
        whole_words(&prefixed(&self.lead.prefix(), text)).map(str::to_owned)
    }

    async fn show(&self, form: LiveForm, part: Part) -> ShowingOutcome {
        let live = LivePost {
            target: self.target.clone(),
            form,
            part,
        };
        crash::point("live.before");
        let shown = self.signs.show_live(&live).await;
        crash::point("live.after");
        shown.into()
    }

    /// The number of a run's previews: any but 0.
    fn preview_id(&self) -> i64 {
        let bytes = self.run.to_string();
        let hash = bytes.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        // The largest whole number that every JSON reader takes as one.
        i64::try_from(hash >> 12).unwrap_or(1).max(1)
    }

    /// Commits the placeholder; returns whether it is a new one.
    async fn place(&self, part: Part) -> Result<Placed, StoreError> {
        let placed = self
            .store
            .commit_placeholder(NewPlaceholder {
                run: self.run,
                token: self.token,
                target: self.target.clone(),
                part,
                now_ms: (self.clock)(),
            })
            .await?;
        self.posts.notify_one();
        Ok(placed)
    }

    /// The placeholder once it is posted; `None` when there will be none or the run ends.
    async fn posted(&self, stop: &CancellationToken) -> Result<Option<LivePost>, StoreError> {
        loop {
            let notified = self.posted.notified();
            match self.store.placeholder(self.run, self.token).await? {
                None | Some(Placeholder::Over) => return Ok(None),
                Some(Placeholder::Shown { chat, message_id }) => {
                    return Ok(Some(LivePost {
                        target: Target {
                            chat,
                            ..self.target.clone()
                        },
                        form: LiveForm::Post { message_id },
                        part: Part::plain(""),
                    }));
                }
                Some(Placeholder::Waiting) => {}
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(None),
                () = notified => {}
                () = tokio::time::sleep(POSTED_POLL) => {}
            }
        }
    }
}

/// The task that shows one run's answer.
struct AnswerShowing {
    desk: LiveDesk,
    pacing: Pacing,
    heard: watch::Receiver<TextSoFar>,
    stop: CancellationToken,
    is_visible: Arc<AtomicBool>,
    /// Whether this run's placeholder is posted, or is on its way.
    is_placed: bool,
    /// The words that a post to which text is appended shows so far.
    said: String,
    /// How long an edit may still be on its way.
    settle_ms: i64,
}

impl AnswerShowing {
    /// Works until the run ends or nothing more can be shown. Returns how long an edit may still be on its way.
    async fn work(mut self) -> i64 {
        while !self.stop.is_cancelled() {
            let state = {
                let heard = self.heard.borrow_and_update();
                let has_words = !heard.text.trim().is_empty();
                has_words.then_some(heard.state)
            };
            match (self.pacing.due(Instant::now(), state), state) {
                (Due::Now, Some(state)) => {
                    let shown = self.show().await;
                    if !self.note(shown, state) {
                        break;
                    }
                }
                (Due::At(at), _) => {
                    tokio::select! {
                        biased;
                        () = self.stop.cancelled() => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                (Due::Again(at), _) => {
                    tokio::select! {
                        biased;
                        () = self.stop.cancelled() => {}
                        () = tokio::time::sleep_until(at) => {}
                        changed = self.heard.changed() => if changed.is_err() { break },
                    }
                }
                (Due::Later | Due::Now, _) => {
                    tokio::select! {
                        biased;
                        () = self.stop.cancelled() => {}
                        changed = self.heard.changed() => if changed.is_err() { break },
                    }
                }
            }
        }
        self.settle_ms
    }

    /// Shows the present state. Not cancelled half-way: a request that was sent and not answered might arrive after
    /// the answer.
    async fn show(&mut self) -> ShowingOutcome {
        let text = self.heard.borrow().text.clone();
        let Some(part) = self.desk.render(&text) else {
            return ShowingOutcome::Yes;
        };
        match self.pacing.plan.way {
            LiveWay::Preview => {
                let id = self.desk.preview_id();
                self.desk.show(LiveForm::Preview { id }, part).await
            }
            LiveWay::Post if !self.is_placed => match self.place(part).await {
                Ok(shown) => shown,
                Err(error) => error.into(),
            },
            LiveWay::Stream => self.stream(&text, part).await,
            LiveWay::Post => match self.desk.posted(&self.stop).await {
                Ok(Some(live)) => {
                    self.desk.target.chat.clone_from(&live.target.chat);
                    self.desk.show(live.form, part).await
                }
                Ok(None) => ShowingOutcome::Never("the placeholder is not there".to_owned()),
                Err(error) => error.into(),
            },
        }
    }

    async fn place(&mut self, part: Part) -> Result<ShowingOutcome, StoreError> {
        self.is_placed = true;
        match self.desk.place(part).await? {
            Placed::Refused => return Ok(ShowingOutcome::Never("the run is another's".to_owned())),
            Placed::Found => {
                self.settle_ms = SETTLE_MS;
                // The text of the post is not known.
                if self.pacing.plan.way == LiveWay::Stream {
                    self.pacing.edit_from_now_on();
                }
                return Ok(ShowingOutcome::Wait(Duration::ZERO));
            }
            Placed::Committed => {}
        }
        // The interval of edits is counted from here.
        Ok(match self.desk.posted(&self.stop).await? {
            Some(_) => ShowingOutcome::Yes,
            None => ShowingOutcome::Never("it was not posted".to_owned()),
        })
    }

    /// Appends new text to the placeholder. If that is impossible, fails, or has an unknown outcome, the placeholder
    /// is edited from then on: an edit may be made twice.
    async fn stream(&mut self, text: &str, part: Part) -> ShowingOutcome {
        let Some(words) = self.desk.words(text) else {
            return ShowingOutcome::Yes;
        };
        if !self.is_placed {
            let part = part.streamed(PartStream {
                text: words.clone(),
                person: self.desk.person.clone(),
            });
            self.said = words;
            return self.place(part).await.unwrap_or_else(ShowingOutcome::from);
        }
        let Some(added) = words.strip_prefix(self.said.as_str()) else {
            return self.edit_from_now_on();
        };
        if added.is_empty() {
            return ShowingOutcome::Yes;
        }
        let live = match self.desk.posted(&self.stop).await {
            Ok(Some(live)) => live,
            Ok(None) => return ShowingOutcome::Never("the placeholder is not there".to_owned()),
            Err(error) => return error.into(),
        };
        let LiveForm::Post { message_id } = live.form else {
            return self.edit_from_now_on();
        };
        self.desk.target.chat.clone_from(&live.target.chat);
        let form = LiveForm::Stream {
            message_id,
            added: added.to_owned(),
        };
        match self.desk.show(form, Part::plain("")).await {
            ShowingOutcome::Yes => {
                self.said = words;
                ShowingOutcome::Yes
            }
            shown @ (ShowingOutcome::Wait(_) | ShowingOutcome::Unwanted(_)) => shown,
            ShowingOutcome::Unknown => {
                self.settle_ms = self.settle_ms.max(SETTLE_MS);
                self.edit_from_now_on()
            }
            ShowingOutcome::Never(reason) => {
                debug!(run.id = %self.desk.run, reason, "a post takes no more words; it is edited");
                self.edit_from_now_on()
            }
        }
    }

    fn edit_from_now_on(&mut self) -> ShowingOutcome {
        self.pacing.edit_from_now_on();
        ShowingOutcome::Wait(Duration::ZERO)
    }

    /// Notes the result; returns whether there may be more to show.
    fn note(&mut self, shown: ShowingOutcome, state: u64) -> bool {
        let now = Instant::now();
        match shown {
            ShowingOutcome::Yes => {
                self.is_visible.store(true, Ordering::Relaxed);
                self.pacing.note_shown(now, state);
            }
            ShowingOutcome::Unknown => {
                self.settle_ms = self.settle_ms.max(SETTLE_MS);
                self.pacing.note_shown(now, state);
            }
            ShowingOutcome::Wait(wait) => self.pacing.note_wait(now, wait),
            ShowingOutcome::Never(reason) | ShowingOutcome::Unwanted(reason) => {
                debug!(run.id = %self.desk.run, reason, "an answer is not shown while it is written");
                return false;
            }
        }
        true
    }
}

/// An answer that people see while it is written. Dropping it ends the live view.
pub struct LiveReply {
    ear: Arc<LiveEar>,
    stop: CancellationToken,
    task: JoinHandle<i64>,
    is_visible: Arc<AtomicBool>,
}

impl LiveReply {
    /// Begins to listen.
    #[must_use]
    pub fn begin(desk: LiveDesk, plan: LivePlan) -> Self {
        let (ear, heard) = watch::channel(TextSoFar::default());
        let stop = CancellationToken::new();
        let is_visible = Arc::new(AtomicBool::new(false));
        let showing = AnswerShowing {
            desk,
            pacing: Pacing::new(plan),
            heard,
            stop: stop.clone(),
            is_visible: Arc::clone(&is_visible),
            is_placed: false,
            said: String::new(),
            settle_ms: 0,
        };
        Self {
            ear: Arc::new(LiveEar(ear)),
            stop,
            task: tokio::spawn(showing.work()),
            is_visible,
        }
    }

    /// The listener that hears the model.
    #[must_use]
    pub fn listener(&self) -> Arc<dyn Listener> {
        Arc::clone(&self.ear) as Arc<dyn Listener>
    }

    /// Whether people see a part of it.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        self.is_visible.load(Ordering::Relaxed)
    }

    /// Ends the live view after the state that is being shown. Returns how long an edit may still be on its way, in
    /// milliseconds: the answer must come after it.
    pub async fn end(mut self) -> i64 {
        self.stop.cancel();
        if crash::is_sabotaged(Sabotage::NoSettling) {
            return 0;
        }
        match tokio::time::timeout(END_WAIT, &mut self.task).await {
            Ok(Ok(settle_ms)) => settle_ms,
            Ok(Err(_)) | Err(_) => UNANSWERED_SETTLE_MS,
        }
    }
}

impl Drop for LiveReply {
    fn drop(&mut self) {
        self.stop.cancel();
        self.task.abort();
    }
}

#[cfg(test)]
#[path = "tests/live.rs"]
mod tests;
