//! How the loopback Slack fails on demand.
//!
//! Two kinds: queues, where each entry is used once (`next`, `next_event`, `next_upgrade`), and knobs,
//! which hold until they are changed. Knows nothing of what the methods do.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

/// What happens to one Web API call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// The call is applied and answered this many milliseconds later.
    Latency(u64),
    /// An HTTP status without applying the call.
    Status(u16),
    /// The call is applied, then an HTTP status comes back.
    StatusAfterApply(u16),
    /// 429 with `Retry-After` in seconds; not applied.
    RateLimited(u64),
    /// HTTP 200, `ok:false` with this error; not applied.
    Error(String),
    /// HTTP 200, `ok:false` with this error, although the call was applied.
    ErrorAfterApply(String),
    /// The connection is reset before the call is applied.
    ResetBefore,
    /// The call is applied, then the connection is reset.
    ResetAfter,
    /// The call is applied and never answered.
    LoseResponse,
    /// HTTP 200 with a page of HTML; not applied.
    Html,
    /// HTTP 302 to this address; transfers of files only.
    Redirect(String),
}

/// What happens to one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventFault {
    /// Never sent.
    Drop,
    /// The same envelope is sent this many times more.
    Duplicate(u32),
    /// Sent this many times more with new event and envelope ids and no retry mark.
    DuplicateEvent(u32),
    /// Sent this many milliseconds later.
    Delay(u64),
}

/// When unacknowledged events are sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPlan {
    /// Wait before retry 1, 2, … in milliseconds; after the last one the event is lost.
    pub after_ms: Vec<u64>,
    /// Whether a retry carries the envelope id of the first attempt.
    pub same_envelope_id: bool,
    /// `retry_reason` of every retry.
    pub reason: String,
    /// The same waits over HTTP, from the failure on.
    pub http_after_ms: Vec<u64>,
    /// From this many requests in an hour on, an app that fails to answer them is disabled.
    pub disable_from: usize,
}

impl Default for RetryPlan {
    /// About 4 s (a live log), then the waits that Slack documents for HTTP.
    fn default() -> Self {
        Self {
            after_ms: vec![4_000, 60_000, 300_000],
            same_envelope_id: false,
            reason: "timeout".to_owned(),
            http_after_ms: vec![100, 60_000, 300_000],
            disable_from: 1_000,
        }
    }
}

/// Behaviour that holds until it is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlackKnobs {
    /// Added before every Web API call, in milliseconds.
    pub latency_ms: u64,
    /// How long a new post stays out of `conversations.history` and `.replies`, in milliseconds.
    pub visibility_delay_ms: u64,
    /// Whether the app's own posts come back as events.
    pub echo_own_posts: bool,
    /// Whether the echo is acknowledged (or a second passes) before the call is answered.
    pub echo_before_response: bool,
    /// Whether an edit that adds a mention also sends `app_mention`.
    pub mention_on_edit: bool,
    /// Whether `app_mention` comes before its `message`; by chance when not set.
    pub mention_first: Option<bool>,
    /// Shortest time between two posts in one channel, in milliseconds; 0 for no limit.
    pub post_gap_ms: u64,
    /// Whether the method tiers of the sheet are enforced.
    pub tiers_enforced: bool,
    /// Shortest time between two calls of `conversations.history`, and between two of
    /// `conversations.replies`, in milliseconds; 0 for their tier. Apps that are distributed outside
    /// the Marketplace get 60,000 (slack.md §5.4).
    pub history_gap_ms: u64,
    /// Most messages on a page of either, whatever the call asks for; 0 for the usual. Those apps get
    /// 15.
    pub history_page_max: u64,
    /// Time between two server pings, in milliseconds.
    pub ping_every_ms: u64,
    /// How long a socket lives on after a `warning` or `refresh_requested`, in milliseconds.
    pub disconnect_grace_ms: u64,
    /// When unacknowledged events are sent again.
    pub retry: RetryPlan,
    /// Error that every call with either token gets, for example `token_revoked`.
    pub account_error: Option<String>,
    /// Whether a client that downloads a file without a right to it is redirected to the sign-in page, instead of being
    /// shown it.
    pub sign_in_redirects: bool,
    /// Whether a share shows in `files.info` only after this many milliseconds (Slack scans files).
    pub shares_delay_ms: u64,
    /// How long a person's act lets the app open a modal, in milliseconds (slack.md §7.1).
    pub trigger_life_ms: u64,
    /// How long after its start a streamed message takes words, in milliseconds (slack.md §8).
    pub stream_life_ms: u64,
}

impl Default for SlackKnobs {
    fn default() -> Self {
        Self {
            latency_ms: 0,
            visibility_delay_ms: 0,
            echo_own_posts: true,
            echo_before_response: false,
            mention_on_edit: true,
            mention_first: None,
            post_gap_ms: 0,
            tiers_enforced: false,
            history_gap_ms: 0,
            history_page_max: 0,
            ping_every_ms: 10_000,
            disconnect_grace_ms: 10_000,
            retry: RetryPlan::default(),
            account_error: None,
            sign_in_redirects: false,
            shares_delay_ms: 0,
            trigger_life_ms: 3_000,
            stream_life_ms: 300_000,
        }
    }
}

#[derive(Debug, Default)]
struct FaultScript {
    methods: HashMap<String, VecDeque<CallFault>>,
    events: VecDeque<EventFault>,
    upgrades: VecDeque<u16>,
    knobs: SlackKnobs,
}

/// The scripted faults of one server.
#[derive(Debug, Default)]
pub struct SlackFaults {
    script: Mutex<FaultScript>,
}

impl SlackFaults {
    /// Queues a fault for the next call of `method`; `*` stands for any method.
    pub fn next(&self, method: &str, fault: CallFault) {
        let mut script = self.lock();
        let queue = script.methods.entry(method.to_owned()).or_default();
        queue.push_back(fault);
    }

    /// Queues a fault for the next event.
    pub fn next_event(&self, fault: EventFault) {
        self.lock().events.push_back(fault);
    }

    /// Queues an HTTP status (408, 409, 429, 503) for the next WebSocket upgrade.
    pub fn next_upgrade(&self, status: u16) {
        self.lock().upgrades.push_back(status);
    }

    /// Changes the knobs.
    pub fn set_knobs(&self, change: impl FnOnce(&mut SlackKnobs)) {
        change(&mut self.lock().knobs);
    }

    /// Sets how long new posts stay out of history, in milliseconds.
    pub fn set_visibility_delay_ms(&self, delay_ms: u64) {
        self.lock().knobs.visibility_delay_ms = delay_ms;
    }

    /// Sets whether an own post is heard on the socket before its call is answered.
    pub fn set_echo_before_response(&self, before: bool) {
        self.lock().knobs.echo_before_response = before;
    }

    /// Sets when unacknowledged events are sent again.
    pub fn set_retry_plan(&self, plan: RetryPlan) {
        self.lock().knobs.retry = plan;
    }

    /// Sets the error of every authenticated call (`token_revoked`, `account_inactive`), or clears it.
    pub fn set_account_error(&self, error: Option<&str>) {
        self.lock().knobs.account_error = error.map(str::to_owned);
    }

    /// The knobs as they are.
    #[must_use]
    pub fn knobs(&self) -> SlackKnobs {
        self.lock().knobs.clone()
    }

    /// Removes every queued fault and resets the knobs.
    pub fn clear(&self) {
        *self.lock() = FaultScript::default();
    }

    pub(super) fn take(&self, method: &str) -> Option<CallFault> {
        let mut script = self.lock();
        let named = script.methods.get_mut(method).and_then(VecDeque::pop_front);
        named.or_else(|| script.methods.get_mut("*").and_then(VecDeque::pop_front))
    }

    pub(super) fn take_event(&self) -> Option<EventFault> {
        self.lock().events.pop_front()
    }

    pub(super) fn take_upgrade(&self) -> Option<u16> {
        self.lock().upgrades.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, FaultScript> {
        self.script.lock().expect("no holder of this lock panics")
    }
}
