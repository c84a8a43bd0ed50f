//! The whole decision on one inbound message: access, addressing, age, limits. Pure.

use vocative_channels::envelope::{ChatKind, InboundMessage, SenderKind};

use crate::capture::access::{Access, access};
use crate::capture::addressing::addressed_agents;
use crate::capture::policy::{ChannelPolicy, Limits};
use crate::domain::addressing::{MessageFacts, Notice, NoticeKind, RunVerdict, Verdict};

/// A bot that may address our agents starts at most so many runs in an hour, whatever the limits
/// say: two bots that answer each other must come to rest.
pub const BOT_RUNS_PER_HOUR_MAX: u32 = 10;

/// A chat is told of a limit at most once in this time.
const LIMIT_NOTICE_INTERVAL_MS: i64 = 3_600_000;

/// Decides whether a message is stored, whom it addresses, and whether they run.
///
/// `said_at_ms` is when it was said or last edited, by platform time; `now_ms` when it was received.
#[must_use]
pub fn judge(
    message: &InboundMessage,
    facts: &MessageFacts,
    policy: &ChannelPolicy,
    said_at_ms: i64,
    now_ms: i64,
) -> Verdict {
    let kind = message.place.kind.or(facts.chat_kind);
    let addressed_to = addressed_agents(message, facts, policy);
    let access = access(&message.place, kind, &message.sender, policy);
    if access != Access::Served {
        return refusal(message, facts, !addressed_to.is_empty());
    }
    let limit = limit_met(message, facts, &policy.limits);
    let runs = if now_ms - said_at_ms > policy.limits.max_trigger_age_ms {
        RunVerdict::TooOld
    } else if limit.is_some() {
        RunVerdict::LimitMet
    } else {
        RunVerdict::Run
    };
    let is_limited = runs == RunVerdict::LimitMet && !addressed_to.is_empty();
    Verdict {
        is_admitted: true,
        opens_thread: opens_thread(message, kind, policy),
        not_before_ms: message
            .album
            .as_ref()
            .map_or(0, |_| now_ms + policy.limits.album_wait_ms),
        notice: limit
            .filter(|_| is_limited)
            .and_then(|text| limit_notice(text, facts, now_ms)),
        addressed_to,
        runs,
    }
}

fn refusal(message: &InboundMessage, facts: &MessageFacts, is_addressed: bool) -> Verdict {
    let is_first = facts.refused_notice_at_ms.is_none();
    let is_person = message.sender.kind == SenderKind::Person;
    let notice = (is_addressed && is_first && is_person).then(|| Notice {
        kind: NoticeKind::NotServed,
        text: format!(
            "I am not set up to answer here. Whoever runs me can allow it; the id of this chat is {}.",
            message.place.chat
        ),
    });
    Verdict {
        is_admitted: false,
        notice,
        ..Verdict::default()
    }
}

/// Which limit is met, in words for the room.
fn limit_met(
    message: &InboundMessage,
    facts: &MessageFacts,
    limits: &Limits,
) -> Option<&'static str> {
    let is_over = |count: u64, max: u64| max > 0 && count >= max;
    let is_bot = message.sender.kind == SenderKind::Bot;
    if is_bot && facts.runs_by_person_last_hour >= BOT_RUNS_PER_HOUR_MAX {
        return Some("I have answered another bot often enough for this hour.");
    }
    if is_over(
        facts.runs_by_person_last_hour.into(),
        limits.runs_per_hour_person.into(),
    ) {
        return Some(
            "You have asked me as often as I may answer one person in an hour; please try again later.",
        );
    }
    if is_over(
        facts.runs_in_chat_last_hour.into(),
        limits.runs_per_hour_chat.into(),
    ) {
        return Some("I have answered here as often as I may in an hour; please try again later.");
    }
    is_over(facts.tokens_today, limits.tokens_per_day)
        .then_some("I have used up what I may spend on answers today; please try again tomorrow.")
}

fn limit_notice(text: &str, facts: &MessageFacts, now_ms: i64) -> Option<Notice> {
    let is_due = facts
        .limit_notice_at_ms
        .is_none_or(|last| now_ms - last >= LIMIT_NOTICE_INTERVAL_MS);
    is_due.then(|| Notice {
        kind: NoticeKind::LimitMet,
        text: text.to_owned(),
    })
}

/// An answer opens a thread in channels, not in direct or group-direct chats, and not where the
/// message already is in a thread or topic.
fn opens_thread(message: &InboundMessage, kind: Option<ChatKind>, policy: &ChannelPolicy) -> bool {
    policy.answers_in_threads
        && message.place.thread.is_none()
        && message.place.topic.is_none()
        && !matches!(
            kind,
            Some(ChatKind::Direct | ChatKind::GroupDirect | ChatKind::Broadcast)
        )
}
