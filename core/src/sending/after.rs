//! What becomes of an entry after an attempt. Pure.

use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::outbound::{Delivered, Operation, Part, ReadBack, Target};

use crate::outbox::OutboxEntry;
use crate::outbox::OutboxUpdate;
use crate::sending::limit_parts;
use crate::sending::policy::LivePolicy;
use crate::sending::policy::{OnUndecided, OnUnknown};
use crate::words::Language;

/// Settings of delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryPolicy {
    /// Where the platform shows bots no history.
    pub on_unknown: OnUnknown,
    /// What to do if it stays unknown whether a post arrived.
    pub on_undecided: OnUndecided,
    /// The first wait after an attempt that did not reach the platform; it grows. An entry is never given up for that:
    /// it waits, visibly.
    pub retry_first_ms: i64,
    /// The longest wait between such attempts.
    pub retry_max_ms: i64,
    /// When to look for a post of unknown outcome, after the attempt: grows with each look.
    pub look_first_ms: i64,
    /// How long after its last attempt a post is looked for, before it counts as not there. Longer
    /// than the platform takes to show a post in its history.
    pub look_back_ms: i64,
    /// A post is held if it could not be looked for within this time after its last attempt.
    pub look_give_up_ms: i64,
    /// A parked chat is tried again after this.
    pub park_ms: i64,
    /// A post is given up after it has waited this long for a parked chat.
    pub park_keep_ms: i64,
    /// Posts that one answer may be split into.
    pub max_parts: usize,
    /// Whether an answer may mention people of the conversation for real.
    pub mention_people: bool,
    /// In which language the daemon itself speaks there.
    pub language: Language,
    /// What is shown of answers while they are written.
    pub live: LivePolicy,
}

impl Default for DeliveryPolicy {
    fn default() -> Self {
        Self {
            on_unknown: OnUnknown::Look,
            on_undecided: OnUndecided::Hold,
            retry_first_ms: 1_000,
            retry_max_ms: 60_000,
            look_first_ms: 2_000,
            look_back_ms: 45_000,
            look_give_up_ms: 3_600_000,
            park_ms: 3_600_000,
            park_keep_ms: 86_400_000,
            max_parts: 20,
            mention_people: false,
            language: Language::English,
            live: LivePolicy::default(),
        }
    }
}

/// The waits before a post is sent again that the server answered with HTTP 5xx, in milliseconds. Each may
/// have arrived, so they are few: together they outlast a restart of the server, not an outage.
const SERVER_FAILURE_WAITS_MS: [i64; 5] = [1_000, 4_000, 15_000, 60_000, 300_000];
/// The most times that a post is sent again after a look did not find it.
const RESENDS_LOOKED_FOR_MAX: u32 = 5;

impl DeliveryPolicy {
    /// How long a post waits that looking for it left undecided, in milliseconds. With `resend` no longer than a late
    /// request may take to be applied.
    #[must_use]
    pub fn undecided_after_ms(&self) -> i64 {
        match self.on_undecided {
            OnUndecided::Resend => self.look_back_ms.saturating_mul(2),
            OnUndecided::Hold => self.look_give_up_ms,
        }
    }
}

/// Renders a fallback for a refused part.
pub type RenderFallback<'a> = &'a dyn Fn(&Part, Fallback) -> Vec<Part>;

/// Decides after a send. `can_look` says whether a post of unknown outcome is looked for.
#[must_use]
pub fn after_send(
    entry: &OutboxEntry,
    outcome: Result<Delivered, ChannelError>,
    can_look: bool,
    render_fallback: RenderFallback<'_>,
    policy: &DeliveryPolicy,
    now_ms: i64,
) -> OutboxUpdate {
    let error = match outcome {
        Ok(delivered) => return OutboxUpdate::Sent(delivered),
        Err(error) => error,
    };
    let reason = error.reason();
    let is_server_failure = error.is_server_failure();
    if is_aside(&entry.operation)
        && let Some(dropped) = after_aside(entry, &error, &reason)
    {
        return dropped;
    }
    match error {
        ChannelError::NotSent { .. } => OutboxUpdate::Retry {
            not_before_ms: now_ms + retry_wait_ms(entry, policy),
            reason,
        },
        ChannelError::RetryAfter { wait_ms, .. } => {
            let wait_ms = i64::try_from(wait_ms).unwrap_or(i64::MAX / 2);
            let until_ms = now_ms.saturating_add(wait_ms);
            if is_aside(&entry.operation) {
                OutboxUpdate::Retry {
                    not_before_ms: until_ms,
                    reason,
                }
            } else {
                OutboxUpdate::Rest { until_ms, reason }
            }
        }
        ChannelError::Unauthorized { .. } => OutboxUpdate::HoldAccount { reason },
        ChannelError::ChatRefused { .. } => OutboxUpdate::ParkChat {
            not_before_ms: now_ms + policy.park_ms,
            keep_ms: policy.park_keep_ms,
            reason,
        },
        ChannelError::ChatMoved { to_chat, .. } => {
            let target = Target {
                chat: to_chat,
                reply_to: None,
                ..entry.target.clone()
            };
            OutboxUpdate::Replace {
                parts: vec![entry.part.clone()],
                target,
                // The message has another id in the other chat.
                operation: anew(&entry.operation),
                reason,
            }
        }
        ChannelError::Rejected { fallback, .. } => {
            let update = after_rejection(entry, fallback, render_fallback, reason);
            limit_replacement(entry, update, policy)
        }
        ChannelError::OutcomeUnknown { .. } if entry.operation.is_repeatable() => {
            OutboxUpdate::Retry {
                not_before_ms: now_ms + retry_wait_ms(entry, policy),
                reason,
            }
        }
        ChannelError::OutcomeUnknown { .. } => {
            let update = after_unknown(entry, can_look, policy, reason, now_ms);
            match is_server_failure {
                true => after_server_failure(entry, update, policy, now_ms),
                false => update,
            }
        }
    }
}

/// Whether an operation is a side operation: a reaction, a word to one person, or the answer to a press. If it is
/// refused, no person has to decide about it; and no chat waits for it.
#[must_use]
pub fn is_aside(operation: &Operation) -> bool {
    operation.is_reaction()
        || matches!(
            operation,
            Operation::Ephemeral { .. } | Operation::Answer { .. }
        )
}

/// A side operation is dropped after this many failed attempts.
const ASIDE_ATTEMPTS_MAX: u32 = 5;

/// A side operation is tried a few times, and dropped where it is refused; `None` = as any other.
fn after_aside(entry: &OutboxEntry, error: &ChannelError, reason: &str) -> Option<OutboxUpdate> {
    let is_refused = match error {
        ChannelError::Rejected { fallback, .. } => *fallback == Fallback::None,
        ChannelError::ChatRefused { .. } => true,
        ChannelError::NotSent { .. }
        | ChannelError::RetryAfter { .. }
        | ChannelError::OutcomeUnknown { .. } => entry.attempts >= ASIDE_ATTEMPTS_MAX,
        ChannelError::Unauthorized { .. } | ChannelError::ChatMoved { .. } => false,
    };
    is_refused.then(|| OutboxUpdate::Drop {
        reason: reason.to_owned(),
    })
}

/// Text in place of a file is no longer than an answer may be.
fn limit_replacement(
    entry: &OutboxEntry,
    mut update: OutboxUpdate,
    policy: &DeliveryPolicy,
) -> OutboxUpdate {
    if let OutboxUpdate::Replace { parts, .. } = &mut update
        && entry.operation == Operation::Upload
    {
        // The posts before it count.
        let rest = entry.part.file.as_ref().and_then(|file| file.rest.as_ref());
        let max_parts = rest.map_or(policy.max_parts, |rest| rest.parts_max);
        limit_parts(parts, max_parts, policy.language);
    }
    update
}

/// A fallback where one exists and would change something, else dead.
fn after_rejection(
    entry: &OutboxEntry,
    fallback: Fallback,
    render_fallback: RenderFallback<'_>,
    reason: String,
) -> OutboxUpdate {
    let mut operation = entry.operation.clone();
    let (parts, target) = match fallback {
        Fallback::None => return OutboxUpdate::Dead { reason },
        Fallback::NewPost => {
            operation = anew(&operation);
            (vec![entry.part.clone()], entry.target.clone())
        }
        Fallback::Plain | Fallback::Resplit => {
            let speaker = entry.part.speaker.as_deref();
            let parts = render_fallback(&entry.part, fallback).into_iter();
            let parts = parts.map(|part| match speaker {
                Some(speaker) => part.spoken_by(speaker.clone()),
                None => part,
            });
            (parts.collect(), entry.target.clone())
        }
        Fallback::WithoutThread => {
            let target = Target {
                thread: None,
                topic: None,
                reply_to: None,
                ..entry.target.clone()
            };
            (vec![entry.part.clone()], target)
        }
        Fallback::WithoutReply => (
            vec![entry.part.clone()],
            Target {
                reply_to: None,
                ..entry.target.clone()
            },
        ),
    };
    let changes_nothing =
        parts == [entry.part.clone()] && target == entry.target && operation == entry.operation;
    if parts.is_empty() || changes_nothing {
        return OutboxUpdate::Dead { reason };
    }
    OutboxUpdate::Replace {
        parts,
        target,
        operation,
        reason,
    }
}

/// The operation if the message that an edit was for does not exist.
fn anew(operation: &Operation) -> Operation {
    match operation {
        Operation::Edit { .. } => Operation::Post,
        other => other.clone(),
    }
}

/// The outcome is unknown: look for it where the platform can say, else as configured.
#[must_use]
pub fn after_unknown(
    entry: &OutboxEntry,
    can_look: bool,
    policy: &DeliveryPolicy,
    reason: String,
    now_ms: i64,
) -> OutboxUpdate {
    if can_look {
        return OutboxUpdate::Look {
            not_before_ms: now_ms + policy.look_first_ms,
            reason,
        };
    }
    resend_or_hold(entry, policy, reason)
}

/// A server that reports a failure is asked more often than one that does not answer: where a post of unknown outcome
/// may be sent again, it is, with growing waits, before a person is asked.
fn after_server_failure(
    entry: &OutboxEntry,
    update: OutboxUpdate,
    policy: &DeliveryPolicy,
    now_ms: i64,
) -> OutboxUpdate {
    let resends = usize::try_from(entry.resends).unwrap_or(usize::MAX);
    let reason = match update {
        OutboxUpdate::Resend { reason } => reason,
        OutboxUpdate::Hold { reason } if policy.on_unknown == OnUnknown::Resend => reason,
        other => return other,
    };
    match SERVER_FAILURE_WAITS_MS.get(resends) {
        Some(wait_ms) => OutboxUpdate::ResendLater {
            not_before_ms: now_ms.saturating_add(*wait_ms),
            reason,
        },
        None => OutboxUpdate::Hold { reason },
    }
}

fn resend_or_hold(entry: &OutboxEntry, policy: &DeliveryPolicy, reason: String) -> OutboxUpdate {
    match policy.on_unknown {
        OnUnknown::Resend if entry.resends == 0 => OutboxUpdate::Resend { reason },
        OnUnknown::Resend => OutboxUpdate::Hold {
            reason: format!("unknown again after one resend: {reason}"),
        },
        OnUnknown::Hold => OutboxUpdate::Hold { reason },
        OnUnknown::Look => after_undecided(entry, policy, &reason),
    }
}

/// Decides about a post of which it stays unknown whether it arrived: as configured.
#[must_use]
pub fn after_undecided(entry: &OutboxEntry, policy: &DeliveryPolicy, reason: &str) -> OutboxUpdate {
    OutboxUpdate::Undecided {
        resend: policy.on_undecided == OnUndecided::Resend && entry.resends == 0,
        reason: format!("nobody can say whether it arrived: {reason}"),
    }
}

/// Decides after a look for a post of unknown outcome.
///
/// What counts is the time since the last attempt ended, which may be long after the first one began: until then the
/// platform may have taken the post. `since_attempt_ms` is that time by the monotonic clock.
#[must_use]
pub fn after_look(
    entry: &OutboxEntry,
    found: Result<ReadBack, ChannelError>,
    policy: &DeliveryPolicy,
    since_attempt_ms: i64,
    now_ms: i64,
) -> OutboxUpdate {
    let tried_ms = now_ms.saturating_sub(since_attempt_ms);
    let look_again = |reason: String| OutboxUpdate::Look {
        not_before_ms: next_look_ms(entry, policy, tried_ms, now_ms),
        reason,
    };
    match found {
        Ok(ReadBack::Found(delivered)) => OutboxUpdate::Sent(delivered),
        Ok(ReadBack::Unsupported) => resend_or_hold(
            entry,
            policy,
            "the platform can't say whether it arrived".to_owned(),
        ),
        Ok(ReadBack::NotFound) => {
            let is_past = since_attempt_ms >= policy.look_back_ms;
            // Two looks at least: the first may have come before the platform showed the post.
            if is_past && entry.looks >= 2 {
                after_not_found(entry)
            } else {
                look_again("not found yet".to_owned())
            }
        }
        Err(ChannelError::Unauthorized { reason, .. }) => OutboxUpdate::HoldAccount { reason },
        Err(error) if since_attempt_ms >= policy.look_give_up_ms => OutboxUpdate::Hold {
            reason: format!(
                "it may have arrived and can't be looked for: {}",
                error.reason()
            ),
        },
        Err(ref error @ ChannelError::RetryAfter { wait_ms, .. }) => OutboxUpdate::Look {
            not_before_ms: now_ms.saturating_add(i64::try_from(wait_ms).unwrap_or(i64::MAX / 2)),
            reason: error.reason(),
        },
        Err(error) => look_again(error.reason()),
    }
}

/// The post was looked for long enough and is not there: it is safe to send. A room in which posts never show gets a
/// few copies at most.
pub fn after_not_found(entry: &OutboxEntry) -> OutboxUpdate {
    if entry.resends < RESENDS_LOOKED_FOR_MAX {
        OutboxUpdate::Resend {
            reason: "looked for and not there".to_owned(),
        }
    } else {
        OutboxUpdate::Hold {
            reason: format!("not there after {RESENDS_LOOKED_FOR_MAX} resends"),
        }
    }
}

fn retry_wait_ms(entry: &OutboxEntry, policy: &DeliveryPolicy) -> i64 {
    let doublings = entry.attempts.saturating_sub(1).min(20);
    (policy.retry_first_ms << doublings).clamp(policy.retry_first_ms, policy.retry_max_ms)
}

/// How long to wait before the post is looked for, in milliseconds.
pub fn look_wait_ms(entry: &OutboxEntry, policy: &DeliveryPolicy) -> i64 {
    let doublings = entry.looks.min(4);
    (policy.look_first_ms << doublings).min(policy.look_back_ms)
}

/// When to look again. The look that may decide comes when the look-back is over, not after it.
fn next_look_ms(entry: &OutboxEntry, policy: &DeliveryPolicy, tried_ms: i64, now_ms: i64) -> i64 {
    let next_ms = now_ms.saturating_add(look_wait_ms(entry, policy));
    let over_ms = tried_ms.saturating_add(policy.look_back_ms);
    if now_ms < over_ms {
        next_ms.min(over_ms)
    } else {
        next_ms
    }
}

#[cfg(test)]
mod tests {
    use vocative_contract::error::ServerFailed;

    use super::*;
    use crate::ids::{AccountId, ChatId, OutboxId, TurnId};
    use crate::outbox::OutboxState;

    fn entry() -> OutboxEntry {
        OutboxEntry {
            id: OutboxId(uuid::Uuid::nil()),
            turn: Some(TurnId(uuid::Uuid::nil())),
            account: AccountId(1),
            chat: ChatId(1),
            part_number: 0,
            target: Target {
                chat: "C1".into(),
                thread: None,
                topic: Some("7".into()),
                reply_to: Some("5".into()),
            },
            operation: Operation::Post,
            part: Part::plain("hello"),
            state: OutboxState::Leased { until_ms: 0 },
            attempts: 1,
            first_attempt_ms: Some(1_000),
            later_than_ms: None,
            last_attempt_ms: Some(1_000),
            looks: 0,
            resends: 0,
            is_undecided: false,
            created_at_ms: 1_000,
        }
    }

    fn send(entry: &OutboxEntry, error: ChannelError, can_read_back: bool) -> OutboxUpdate {
        let plain = |part: &Part, _| vec![Part::plain(format!("plain {}", part.text))];
        after_send(
            entry,
            Err(error),
            can_read_back,
            &plain,
            &DeliveryPolicy::default(),
            10_000,
        )
    }

    const OP: &str = "post";

    #[test]
    fn what_did_not_reach_the_platform_is_sent_again_with_growing_waits() {
        let waits: Vec<i64> = [1, 2, 3, 7, 30]
            .into_iter()
            .map(|attempts| {
                let entry = OutboxEntry {
                    attempts,
                    ..entry()
                };
                let error = ChannelError::NotSent {
                    operation: OP,
                    cause: "refused".into(),
                };
                match send(&entry, error, true) {
                    OutboxUpdate::Retry { not_before_ms, .. } => not_before_ms - 10_000,
                    other => panic!("{other:?}"),
                }
            })
            .collect();
        assert_eq!(waits, [1_000, 2_000, 4_000, 60_000, 60_000]);
    }

    #[test]
    fn a_rate_limit_parks_until_it_says() {
        let error = ChannelError::RetryAfter {
            operation: OP,
            wait_ms: 240_000,
        };
        assert!(matches!(
            send(&entry(), error, true),
            OutboxUpdate::Rest {
                until_ms: 250_000,
                ..
            }
        ));
    }

    #[test]
    fn what_may_be_done_twice_is_done_again_after_an_unknown_outcome() {
        let message_id = "1.000100".to_owned();
        let edit = OutboxEntry {
            operation: Operation::Edit { message_id },
            attempts: 2,
            ..entry()
        };
        for can_read_back in [true, false] {
            let error = ChannelError::OutcomeUnknown {
                operation: OP,
                cause: "reset".into(),
            };
            assert!(matches!(
                send(&edit, error, can_read_back),
                OutboxUpdate::Retry {
                    not_before_ms: 12_000,
                    ..
                }
            ));
        }
    }

    #[test]
    fn an_unknown_outcome_is_looked_for_or_handled_as_configured() {
        let unknown = || ChannelError::OutcomeUnknown {
            operation: OP,
            cause: "reset".into(),
        };
        assert!(matches!(
            send(&entry(), unknown(), true),
            OutboxUpdate::Look {
                not_before_ms: 12_000,
                ..
            }
        ));
        let decided = |on_unknown, on_undecided, resends| {
            let policy = DeliveryPolicy {
                on_unknown,
                on_undecided,
                ..DeliveryPolicy::default()
            };
            let entry = OutboxEntry { resends, ..entry() };
            match after_unknown(&entry, false, &policy, "reset".into(), 0) {
                OutboxUpdate::Resend { .. } => "resend",
                OutboxUpdate::Hold { .. } => "hold",
                OutboxUpdate::Undecided { resend: true, .. } => "undecided, resend",
                OutboxUpdate::Undecided { resend: false, .. } => "undecided, hold",
                other => panic!("{other:?}"),
            }
        };
        let table = [
            (OnUnknown::Resend, OnUndecided::Hold, 0, "resend"),
            (OnUnknown::Resend, OnUndecided::Resend, 1, "hold"),
            (OnUnknown::Hold, OnUndecided::Resend, 0, "hold"),
            (OnUnknown::Look, OnUndecided::Resend, 0, "undecided, resend"),
            (OnUnknown::Look, OnUndecided::Resend, 1, "undecided, hold"),
            (OnUnknown::Look, OnUndecided::Hold, 0, "undecided, hold"),
        ];
        for (on_unknown, on_undecided, resends, expected) in table {
            let decided = decided(on_unknown, on_undecided, resends);
            assert_eq!(
                decided, expected,
                "{on_unknown:?} {on_undecided:?} {resends}"
            );
        }
    }

    fn look(entry: &OutboxEntry, found: Result<ReadBack, ChannelError>, now_ms: i64) -> String {
        let since_ms = now_ms - entry.last_attempt_ms.unwrap_or(entry.created_at_ms);
        match after_look(entry, found, &DeliveryPolicy::default(), since_ms, now_ms) {
            OutboxUpdate::Look { not_before_ms, .. } => {
                format!("look in {}", not_before_ms - now_ms)
            }
            OutboxUpdate::Resend { .. } => "resend".to_owned(),
            OutboxUpdate::Hold { reason } => format!("hold: {reason}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_post_is_sent_again_only_when_looks_outlast_the_look_back() {
        let not_found = |looks, now_ms| {
            let entry = OutboxEntry { looks, ..entry() };
            look(&entry, Ok(ReadBack::NotFound), now_ms)
        };
        assert_eq!(not_found(1, 3_000), "look in 4000");
        assert_eq!(not_found(5, 31_000), "look in 15000");
        assert_eq!(not_found(5, 45_999), "look in 1");
        assert_eq!(not_found(1, 60_000), "look in 4000");
        assert_eq!(not_found(2, 46_000), "resend");
        let of_late = OutboxEntry {
            last_attempt_ms: Some(40_000),
            looks: 5,
            ..entry()
        };
        let update = look(&of_late, Ok(ReadBack::NotFound), 54_999);
        assert!(update.starts_with("look in"), "{update}");
        let resent = |resends| {
            let entry = OutboxEntry {
                looks: 4,
                resends,
                ..entry()
            };
            look(&entry, Ok(ReadBack::NotFound), 90_000)
        };
        assert_eq!(resent(1), "resend");
        assert_eq!(resent(4), "resend");
        assert_eq!(resent(5), "hold: not there after 5 resends");
    }

    #[test]
    fn the_last_look_comes_when_the_look_back_is_over() {
        for look_back_ms in [3_000, 45_000, 60_000, 600_000] {
            let policy = DeliveryPolicy {
                look_back_ms,
                ..DeliveryPolicy::default()
            };
            let mut entry = OutboxEntry {
                looks: 1,
                ..entry()
            };
            let mut now_ms = 1_000 + policy.look_first_ms;
            while let OutboxUpdate::Look { not_before_ms, .. } = after_look(
                &entry,
                Ok(ReadBack::NotFound),
                &policy,
                now_ms - 1_000,
                now_ms,
            ) {
                assert!(not_before_ms > now_ms && entry.looks < 40);
                now_ms = not_before_ms;
                entry.looks += 1;
            }
            assert_eq!(now_ms - 1_000, look_back_ms);
        }
    }

    #[test]
    fn a_server_that_says_that_it_failed_is_asked_again_before_a_person_is() {
        let failed = |on_unknown, resends| {
            let policy = DeliveryPolicy {
                on_unknown,
                ..DeliveryPolicy::default()
            };
            let entry = OutboxEntry { resends, ..entry() };
            let error = ChannelError::OutcomeUnknown {
                operation: OP,
                cause: ServerFailed { status: 502 }.into(),
            };
            let plain = |part: &Part, _| vec![part.clone()];
            match after_send(&entry, Err(error), false, &plain, &policy, 10_000) {
                OutboxUpdate::ResendLater { not_before_ms, .. } => {
                    format!("in {}", not_before_ms - 10_000)
                }
                OutboxUpdate::Hold { .. } => "hold".to_owned(),
                other => format!("{other:?}"),
            }
        };
        let waits: Vec<String> = (0..7).map(|n| failed(OnUnknown::Resend, n)).collect();
        let expected = [
            "in 1000",
            "in 4000",
            "in 15000",
            "in 60000",
            "in 300000",
            "hold",
            "hold",
        ];
        assert_eq!(waits, expected);
        assert_eq!(failed(OnUnknown::Hold, 0), "hold");
        let error = ChannelError::OutcomeUnknown {
            operation: OP,
            cause: ServerFailed { status: 502 }.into(),
        };
        assert!(matches!(
            send(&entry(), error, true),
            OutboxUpdate::Look { .. }
        ));
    }

    #[test]
    fn the_look_back_begins_when_the_last_attempt_ended() {
        // Refused for minutes, then sent without any answer for a minute.
        let late = OutboxEntry {
            attempts: 4,
            looks: 2,
            last_attempt_ms: Some(300_000),
            ..entry()
        };
        assert_eq!(look(&late, Ok(ReadBack::NotFound), 344_999), "look in 1");
        assert_eq!(look(&late, Ok(ReadBack::NotFound), 345_000), "resend");
    }

    #[test]
    fn looks_that_fail_go_on_more_and_more_rarely_and_are_given_up_visibly() {
        let failed = |looks, now_ms| {
            let entry = OutboxEntry { looks, ..entry() };
            let error = ChannelError::ChatRefused {
                operation: "read back",
                reason: "not_in_channel".into(),
            };
            look(&entry, Err(error), now_ms)
        };
        assert_eq!(failed(1, 2_000), "look in 4000");
        assert_eq!(failed(9, 3_600_999), "look in 32000");
        let given_up = failed(9, 3_601_000);
        assert!(
            given_up.starts_with("hold: it may have arrived"),
            "{given_up}"
        );
        let limited = ChannelError::RetryAfter {
            operation: "read back",
            wait_ms: 61_000,
        };
        assert_eq!(look(&entry(), Err(limited), 2_000), "look in 61000");
    }

    #[test]
    fn refusals_take_the_fallback_that_changes_something() {
        let rejected = |fallback| ChannelError::Rejected {
            operation: OP,
            reason: "too_long".into(),
            fallback,
        };
        assert!(matches!(
            send(&entry(), rejected(Fallback::None), true),
            OutboxUpdate::Dead { .. }
        ));
        let OutboxUpdate::Replace { parts, target, .. } =
            send(&entry(), rejected(Fallback::Plain), true)
        else {
            panic!("no replacement");
        };
        assert_eq!(
            (parts[0].text.as_str(), target),
            ("plain hello", entry().target)
        );
        let OutboxUpdate::Replace { target, .. } =
            send(&entry(), rejected(Fallback::WithoutThread), true)
        else {
            panic!("no replacement");
        };
        assert_eq!(
            target,
            Target {
                topic: None,
                reply_to: None,
                ..entry().target
            }
        );
        let bare = OutboxEntry {
            target: Target {
                reply_to: None,
                ..entry().target
            },
            ..entry()
        };
        assert!(matches!(
            send(&bare, rejected(Fallback::WithoutReply), true),
            OutboxUpdate::Dead { .. }
        ));
    }

    #[test]
    fn accounts_and_chats_that_refuse_are_waited_for() {
        let unauthorized = ChannelError::Unauthorized {
            operation: OP,
            reason: "token_revoked".into(),
        };
        assert!(matches!(
            send(&entry(), unauthorized, true),
            OutboxUpdate::HoldAccount { .. }
        ));
        let refused = ChannelError::ChatRefused {
            operation: OP,
            reason: "kicked".into(),
        };
        assert!(matches!(
            send(&entry(), refused, true),
            OutboxUpdate::ParkChat { .. }
        ));
        let moved = ChannelError::ChatMoved {
            operation: OP,
            to_chat: "C2".into(),
        };
        let OutboxUpdate::Replace { target, .. } = send(&entry(), moved, true) else {
            panic!("no replacement");
        };
        assert_eq!((target.chat.as_str(), target.reply_to), ("C2", None));
    }
}
