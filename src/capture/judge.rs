//! The whole decision on one inbound message: access, addressing, age, limits. Pure.

use std::collections::BTreeMap;

use vocative_channels::envelope::{ChatKind, InboundMessage, SenderKind};

use crate::capture::access::{Access, access};
use crate::capture::addressing::{addressed_agents, may_follow_up};
use crate::capture::policy::{ChannelPolicy, Limits};
use crate::capture::stop::says_stop;
use crate::domain::addressing::{MessageFacts, Notice, NoticeKind, Overlap, RunVerdict, Verdict};
use crate::domain::ids::AgentName;

/// A bot that may address our agents starts at most so many runs in an hour, whatever the limits
/// say: two bots that answer each other must come to rest.
pub const BOT_RUNS_PER_HOUR_MAX: u32 = 10;

/// An answer that would open a thread waits so long for word of what kind of chat it is in. Slack
/// tells of a mention twice, and the kind only with one of the two. That one ends the wait.
const KIND_WAIT_MS: i64 = 1_000;

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
    let runs = if now_ms.saturating_sub(said_at_ms) > policy.limits.max_trigger_age_ms {
        RunVerdict::TooOld
    } else if !addressed_to.is_empty() && says_stop(message, policy) {
        RunVerdict::Stop {
            of_everybody: policy.admins.contains(&message.sender.id),
        }
    } else if limit.is_some() {
        RunVerdict::LimitMet
    } else {
        RunVerdict::Run
    };
    let opens_thread = opens_thread(message, kind, policy);
    let is_limited = runs == RunVerdict::LimitMet && !addressed_to.is_empty();
    Verdict {
        is_admitted: true,
        opens_thread,
        not_before_ms: if message.album.is_some() {
            now_ms + policy.limits.album_wait_ms
        } else if opens_thread && kind.is_none() {
            now_ms + KIND_WAIT_MS
        } else {
            0
        },
        notice: match runs {
            RunVerdict::Stop { of_everybody } => Some(stop_notice(of_everybody)),
            _ => limit
                .filter(|_| is_limited)
                .and_then(|text| limit_notice(text, facts, now_ms)),
        },
        overlaps: overlaps(&addressed_to, message, policy),
        would_follow_up: addressed_to.is_empty() && may_follow_up(message, facts, policy),
        addressed_to,
        runs,
    }
}

fn overlaps(
    addressed_to: &[AgentName],
    message: &InboundMessage,
    policy: &ChannelPolicy,
) -> BTreeMap<AgentName, Overlap> {
    let overlap = |agent: &AgentName| policy.overlap(agent, &message.place.chat);
    addressed_to
        .iter()
        .map(|agent| (agent.clone(), overlap(agent)))
        .collect()
}

fn stop_notice(of_everybody: bool) -> Notice {
    let text = if of_everybody {
        "Stopped. Nothing waits for an answer here now."
    } else {
        "Stopped. Nothing of yours waits for an answer here now."
    };
    Notice {
        kind: NoticeKind::Stopped,
        text: text.to_owned(),
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
/// message already is in a thread or topic. The root of a thread, whoever opened it, is not in it.
fn opens_thread(message: &InboundMessage, kind: Option<ChatKind>, policy: &ChannelPolicy) -> bool {
    let thread = message.place.thread.as_ref();
    policy.answers_in_threads
        && thread.is_none_or(|root| *root == message.message_id)
        && message.place.topic.is_none()
        && !matches!(
            kind,
            Some(ChatKind::Direct | ChatKind::GroupDirect | ChatKind::Broadcast)
        )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_channels::markup::mention_token;

    use super::*;
    use crate::capture::policy::AllowList;
    use crate::capture::testing::{agent, message, policy};

    const NOW_MS: i64 = 1_000_500;

    fn mention() -> InboundMessage {
        message(&format!("{} hi", mention_token("UBOT")))
    }

    fn decide(message: &InboundMessage, facts: &MessageFacts, policy: &ChannelPolicy) -> Verdict {
        judge(message, facts, policy, message.sent_at_ms, NOW_MS)
    }

    #[test]
    fn an_answer_waits_for_the_kind_of_chat_where_that_decides_about_a_thread() {
        let table = [
            (None, None, NOW_MS + KIND_WAIT_MS),
            (None, Some(ChatKind::Public), 0),
            (Some(ChatKind::GroupDirect), None, 0),
        ];
        for (told, learnt, expected) in table {
            let mut message = mention();
            message.place.kind = told;
            let facts = MessageFacts {
                chat_kind: learnt,
                ..MessageFacts::default()
            };
            let verdict = judge(&message, &facts, &policy(), NOW_MS, NOW_MS);
            assert_eq!(verdict.not_before_ms, expected, "{told:?} {learnt:?}");
        }
    }

    #[test]
    fn a_mention_in_a_channel_runs_and_opens_a_thread() {
        let verdict = decide(&mention(), &MessageFacts::default(), &policy());
        let expected = Verdict {
            is_admitted: true,
            addressed_to: vec![agent("kael")],
            runs: RunVerdict::Run,
            opens_thread: true,
            not_before_ms: 0,
            notice: None,
            overlaps: BTreeMap::from([(agent("kael"), Overlap::Auto)]),
            would_follow_up: false,
        };
        assert_eq!(verdict, expected);
    }

    #[test]
    fn a_stop_is_not_answered_and_reaches_as_far_as_the_person() {
        let stop = |sender: &str, facts: &MessageFacts| {
            let mut message = message(&format!("{} stop", mention_token("UBOT")));
            message.sender.id = sender.into();
            decide(&message, facts, &policy())
        };
        let limited = MessageFacts {
            runs_by_person_last_hour: 99,
            ..MessageFacts::default()
        };
        for (sender, of_everybody) in [("U1", false), ("UADMIN", true)] {
            let verdict = stop(sender, &limited);
            assert_eq!(verdict.runs, RunVerdict::Stop { of_everybody });
            let told = verdict.notice.map(|notice| notice.kind);
            assert_eq!(told, Some(NoticeKind::Stopped));
        }
        let mut nobody = message("stop");
        nobody.mentions_bot = false;
        let verdict = decide(&nobody, &MessageFacts::default(), &policy());
        assert_eq!((verdict.runs, verdict.notice), (RunVerdict::Run, None));
    }

    #[test]
    fn a_chat_says_before_its_agents_what_becomes_of_messages_meanwhile() {
        let mut there = policy();
        there.agents[0].overlap = Overlap::Queue;
        let overlap = |policy: &ChannelPolicy| {
            let verdict = decide(&mention(), &MessageFacts::default(), policy);
            verdict.overlaps[&agent("kael")]
        };
        assert_eq!(overlap(&there), Overlap::Queue);
        there
            .chat_overlaps
            .insert("C1".to_owned(), Overlap::Interrupt);
        assert_eq!(overlap(&there), Overlap::Interrupt);
    }

    #[test]
    fn an_old_trigger_is_captured_and_not_answered() {
        let mut late = policy();
        late.limits.max_trigger_age_ms = 400;
        let verdict = decide(&mention(), &MessageFacts::default(), &late);
        assert_eq!(
            (verdict.is_admitted, verdict.runs),
            (true, RunVerdict::TooOld)
        );
    }

    #[test]
    fn a_limit_is_told_once_an_hour() {
        let mut facts = MessageFacts {
            runs_by_person_last_hour: 60,
            ..MessageFacts::default()
        };
        let verdict = decide(&mention(), &facts, &policy());
        assert_eq!(verdict.runs, RunVerdict::LimitMet);
        assert_eq!(
            verdict.notice.map(|notice| notice.kind),
            Some(NoticeKind::LimitMet)
        );
        facts.limit_notice_at_ms = Some(NOW_MS - 3_599_999);
        assert_eq!(decide(&mention(), &facts, &policy()).notice, None);
        facts.limit_notice_at_ms = Some(NOW_MS - 3_600_000);
        assert!(decide(&mention(), &facts, &policy()).notice.is_some());
        assert_eq!(decide(&message("chatter"), &facts, &policy()).notice, None);
    }

    #[test]
    fn two_bots_come_to_rest() {
        let mut allowed = policy();
        allowed.allow_bots = AllowList::new(vec!["*".into()]);
        allowed.limits.runs_per_hour_person = 0;
        let mut bot = mention();
        bot.sender.kind = SenderKind::Bot;
        let facts = |runs| MessageFacts {
            runs_by_person_last_hour: runs,
            ..Default::default()
        };
        assert_eq!(decide(&bot, &facts(9), &allowed).runs, RunVerdict::Run);
        assert_eq!(
            decide(&bot, &facts(10), &allowed).runs,
            RunVerdict::LimitMet
        );
    }

    #[test]
    fn outside_access_nothing_is_stored_and_one_polite_line_is_said() {
        let mut closed = policy();
        closed.allow_chats = AllowList::default();
        let first = decide(&mention(), &MessageFacts::default(), &closed);
        assert!(!first.is_admitted && first.addressed_to.is_empty());
        assert_eq!(
            first.notice.map(|notice| notice.kind),
            Some(NoticeKind::NotServed)
        );
        let told = MessageFacts {
            refused_notice_at_ms: Some(1),
            ..MessageFacts::default()
        };
        assert_eq!(decide(&mention(), &told, &closed).notice, None);
        assert_eq!(
            decide(&message("hi"), &MessageFacts::default(), &closed).notice,
            None
        );
    }

    #[test]
    fn an_album_waits_for_its_items() {
        let mut album = mention();
        album.album = Some("a1".into());
        let verdict = decide(&album, &MessageFacts::default(), &policy());
        assert_eq!(verdict.not_before_ms, NOW_MS + 1_000);
    }

    #[test]
    fn direct_group_direct_and_threaded_messages_open_no_thread() {
        let opens = |change: &dyn Fn(&mut InboundMessage)| {
            let mut message = mention();
            change(&mut message);
            decide(&message, &MessageFacts::default(), &policy()).opens_thread
        };
        assert!(opens(&|_| ()));
        assert!(opens(&|message| message.place.kind = None));
        assert!(!opens(
            &|message| message.place.kind = Some(ChatKind::Direct)
        ));
        assert!(!opens(
            &|message| message.place.kind = Some(ChatKind::GroupDirect)
        ));
        assert!(!opens(&|message| message.place.thread = Some("1.0".into())));
        // Others have replied to it already.
        let own_id = |message: &mut InboundMessage| {
            message.place.thread = Some(message.message_id.clone());
        };
        assert!(opens(&own_id));
        assert!(!opens(&|message| message.place.topic = Some("7".into())));
    }
}
