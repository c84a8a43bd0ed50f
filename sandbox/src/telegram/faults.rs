//! Faults on demand: what goes wrong with the next calls of a method.
//!
//! Owns one queue of faults per method and a few knobs. Knows nothing of what methods do.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;

use super::failure::ApiFailure;

/// Something that goes wrong with one call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum TelegramFault {
    /// The call is handled only after this many milliseconds.
    Latency {
        /// How long.
        ms: u64,
    },
    /// The call takes effect at once, and is answered only after this many milliseconds.
    LateAnswer {
        /// How long.
        ms: u64,
    },
    /// 429 with `parameters.retry_after` and a `Retry-After` header; the call has no effect.
    RateLimited {
        /// Seconds to wait.
        retry_after_s: u32,
    },
    /// An error answer of the API with exactly this description; the call has no effect.
    Refused {
        /// HTTP status and `error_code`.
        code: u16,
        /// The whole description, with its prefix.
        description: String,
    },
    /// An HTML answer of a gateway in front of the API; the call has no effect.
    Gateway {
        /// HTTP status, for example 502.
        code: u16,
    },
    /// An HTML answer of a gateway, though the call took effect.
    GatewayAfter {
        /// HTTP status, for example 502.
        code: u16,
    },
    /// The connection is reset; the call has no effect.
    ResetBefore,
    /// The call takes effect, then the connection is reset.
    ResetAfter,
    /// Nothing is ever answered; the call has no effect.
    Stall,
    /// The call takes effect and nothing is ever answered.
    StallAfter,
    /// `getUpdates` only: the offset is not applied, so that what was delivered comes again.
    IgnoreOffset,
    /// `getUpdates` only: this poll is refused because another one took its place.
    Conflict,
    /// The answer is a 200 that is no JSON.
    Garbage,
}

impl TelegramFault {
    /// The answer of a fault that is a refusal.
    pub(super) fn refusal(&self) -> Option<ApiFailure> {
        match self {
            Self::RateLimited { retry_after_s } => Some(ApiFailure::flood(*retry_after_s)),
            Self::Refused { code, description } => Some(ApiFailure::plain(*code, description)),
            Self::Conflict => Some(super::polling::other_poll()),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
struct Queued {
    next: HashMap<String, VecDeque<TelegramFault>>,
    always: HashMap<String, TelegramFault>,
    applied: usize,
    sends_per_minute_max: Option<usize>,
    guards_short_polls: bool,
    takes_loopback_webhooks: bool,
    webhook_second_ms: Option<u64>,
}

/// The faults to come. Cloning shares them. A method name is compared without case; `*` means any.
#[derive(Clone, Debug, Default)]
pub struct TelegramFaults(Arc<Mutex<Queued>>);

impl TelegramFaults {
    fn with<R>(&self, act: impl FnOnce(&mut Queued) -> R) -> R {
        act(&mut self.0.lock().expect("no holder of this lock panics"))
    }

    /// Adds a fault for one coming call of a method.
    pub fn next(&self, method: &str, fault: TelegramFault) {
        self.with(|queued| {
            let key = method.to_ascii_lowercase();
            queued.next.entry(key).or_default().push_back(fault);
        });
    }

    /// Makes every call of a method fail like this, after the queued faults, until `clear`.
    pub fn always(&self, method: &str, fault: TelegramFault) {
        self.with(|queued| queued.always.insert(method.to_ascii_lowercase(), fault));
    }

    /// Removes all scripted faults; knobs stay.
    pub fn clear(&self) {
        self.with(|queued| {
            queued.next.clear();
            queued.always.clear();
        });
    }

    /// Removes all scripted faults and resets the knobs.
    pub(super) fn reset(&self) {
        self.with(|queued| *queued = Queued::default());
    }

    /// How many faults took place.
    #[must_use]
    pub fn applied(&self) -> usize {
        self.with(|queued| queued.applied)
    }

    /// Refuses sends and edits over this number per chat and minute with 429, as flood control does.
    /// `None`, the default, is no limit.
    pub fn limit_sends_per_minute(&self, max: Option<usize>) {
        self.with(|queued| queued.sends_per_minute_max = max);
    }

    /// Turns repeated short polls into polls of three seconds, as the platform does. Off by default.
    pub fn guard_short_polls(&self, on: bool) {
        self.with(|queued| queued.guards_short_polls = on);
    }

    /// Takes webhooks on loopback addresses without TLS, as a Bot API server of one's own does. Off by
    /// default.
    pub fn take_loopback_webhooks(&self, on: bool) {
        self.with(|queued| queued.takes_loopback_webhooks = on);
    }

    /// How many milliseconds a second of a webhook's retries takes; 1,000 by default.
    pub fn set_webhook_second_ms(&self, ms: u64) {
        self.with(|queued| queued.webhook_second_ms = Some(ms));
    }

    pub(super) fn takes_loopback_webhooks(&self) -> bool {
        self.with(|queued| queued.takes_loopback_webhooks)
    }

    pub(super) fn webhook_second_ms(&self) -> u64 {
        self.with(|queued| queued.webhook_second_ms.unwrap_or(1_000))
    }

    pub(super) fn sends_per_minute_max(&self) -> Option<usize> {
        self.with(|queued| queued.sends_per_minute_max)
    }

    pub(super) fn guards_short_polls(&self) -> bool {
        self.with(|queued| queued.guards_short_polls)
    }

    /// The fault of a call that begins.
    pub(super) fn take(&self, method: &str) -> Option<TelegramFault> {
        let method = method.to_ascii_lowercase();
        self.with(|queued| {
            let keys = [method.as_str(), "*"];
            let once = keys
                .iter()
                .find_map(|&key| queued.next.get_mut(key)?.pop_front());
            let fault =
                once.or_else(|| keys.iter().find_map(|&key| queued.always.get(key).cloned()));
            queued.applied += usize::from(fault.is_some());
            fault
        })
    }
}

/// How long a fault delays the handling of its call.
pub(super) fn delay_before(fault: Option<&TelegramFault>) -> Duration {
    match fault {
        Some(TelegramFault::Latency { ms }) => Duration::from_millis(*ms),
        _ => Duration::ZERO,
    }
}
