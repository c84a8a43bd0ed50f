//! The whole decision on one inbound message: access, addressing, age, limits. Pure.

use std::collections::BTreeMap;

use vocative_contract::envelope::{ChatKind, InboundMessage, SenderKind};

use crate::addressing::{
    Access, AckReaction, MessageFacts, Notice, NoticeKind, Overlap, Rule, RunVerdict, Verdict,
};
use crate::code::is_alive;
use crate::command::{CommandVerdict, stopped};
use crate::ids::AgentName;
use crate::judging::access::access;
use crate::judging::addressees::{addressing, is_unsure, may_follow_up};
use crate::judging::asked_model::asked_model;
use crate::judging::commands::{self, is_private, read_message};
use crate::judging::policy::{ChannelPolicy, SpentUp};
use crate::judging::stop::says_stop;
use crate::pairing::PAIRING_CODE_LIFE_MS;
use crate::presence::AskedAt;
use crate::questioning::{AnswerVerdict, Nearness, not_counted_text};
use crate::wall_clock::QuietHours;
use crate::words::Language;

/// The most runs that a bot which may address our agents starts in an hour, whatever the limits say: two bots
/// that answer each other must come to rest.
pub const BOT_RUNS_PER_HOUR_MAX: u32 = 10;

/// How long an answer that would open a thread waits to learn the kind of its chat. Slack sends a mention
/// twice, and the kind only with one of the two; that one ends the wait.
const KIND_WAIT_MS: i64 = 1_000;

/// The shortest time between two notices of a limit in one chat.
const LIMIT_NOTICE_INTERVAL_MS: i64 = 3_600_000;
const DAY_MS: i64 = 86_400_000;

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
    let (rule, mut addressed_to) = addressing(message, facts, policy);
    let access = access(
        &message.place,
        kind,
        &message.sender,
        facts.belonging,
        policy,
    );
    if access != Access::Served {
        let refused = AccessRefused { access, kind };
        let is_addressed = !addressed_to.is_empty();
        return refusal(message, facts, is_addressed, &refused, policy, now_ms);
    }
    let is_old = now_ms.saturating_sub(said_at_ms) > policy.limits.max_trigger_age_ms;
    if let Some(command) = read_message(message, facts, policy).filter(|_| !is_old) {
        return carried_out(command);
    }
    let is_stop = !is_old && !addressed_to.is_empty() && says_stop(message, policy);
    if let Some(command) = commands::refused_stop(message, kind, policy).filter(|_| is_stop) {
        return carried_out(command);
    }
    if !is_stop && let Some(verdict) = replied(message, facts, rule, kind, policy, now_ms) {
        return verdict;
    }
    // A message that is not answered, or may be meant for somebody else, is no request for a model: no error is told.
    let is_wish = !is_old && !is_stop && !is_unsure(rule, message, facts);
    let asked_model = match asked_model(message, &addressed_to, policy) {
        Ok(asked) => asked,
        Err(told) if is_wish => return carried_out(told.told_in(is_private(kind, policy))),
        Err(_) => None,
    };
    let limit = limit_met(message, facts, policy);
    let resting = match is_stop {
        true => Vec::new(),
        false => without_resting(&mut addressed_to, message, policy, said_at_ms),
    };
    let runs = match is_stop {
        _ if is_old => RunVerdict::TooOld,
        true => stop_of(message, policy),
        false if limit.is_some() => RunVerdict::LimitMet,
        false => RunVerdict::Run,
    };
    let opens_thread = opens_thread(message, kind, policy);
    let is_asked = !addressed_to.is_empty();
    let quiet = quiet_there(message, kind, policy);
    let quiet_until_ms = quiet.and_then(|quiet| quiet.until_ms(now_ms));
    let lacks_kind = opens_thread && kind.is_none();
    let wait_until_ms = wait_until(message, lacks_kind, policy, now_ms);
    Verdict {
        is_admitted: true,
        opens_thread,
        not_before_ms: wait_until_ms.max(quiet_until_ms.unwrap_or(0)),
        notice: notice(
            (message, facts, policy),
            Occasion {
                runs,
                limit,
                quiet_until: quiet.zip(quiet_until_ms),
                is_asked,
                resting: resting.first().filter(|_| calls_an_agent(rule)),
                can_be_private: is_private(kind, policy),
                now_ms,
            },
        ),
        reaction: reaction(policy).filter(|_| is_asked),
        edit_answer_within_ms: policy.manners.edit_answer_within_ms,
        command: None,
        answers: None,
        changes: None,
        overlaps: overlaps(&addressed_to, message, policy),
        would_follow_up: addressed_to.is_empty()
            && resting.is_empty()
            && may_follow_up(message, facts, policy),
        access,
        asked_model,
        addressed_to,
        is_unsure: is_unsure(rule, message, facts),
        rule,
        runs,
    }
}

/// What a message that says stop ends.
fn stop_of(message: &InboundMessage, policy: &ChannelPolicy) -> RunVerdict {
    RunVerdict::Stop {
        of_everybody: policy.admins.contains(&message.sender.id),
    }
}

/// Until when the message's run waits for the rest of the message.
fn wait_until(
    message: &InboundMessage,
    lacks_kind: bool,
    policy: &ChannelPolicy,
    now_ms: i64,
) -> i64 {
    if message.album.is_some() {
        now_ms + policy.limits.album_wait_ms
    } else if lacks_kind {
        now_ms + KIND_WAIT_MS
    } else {
        0
    }
}

/// What a room may be told of a message.
struct Occasion<'a> {
    runs: RunVerdict,
    limit: Option<LimitMet>,
    /// The hours in which nothing is answered, and when they are over.
    quiet_until: Option<(QuietHours, i64)>,
    is_asked: bool,
    /// The agent that is called and does not work now.
    resting: Option<&'a AgentName>,
    can_be_private: bool,
    now_ms: i64,
}

/// What the room is told.
fn notice(
    (message, facts, policy): (&InboundMessage, &MessageFacts, &ChannelPolicy),
    occasion: Occasion<'_>,
) -> Option<Notice> {
    let now_ms = occasion.now_ms;
    let is_person = message.sender.kind == SenderKind::Person;
    match occasion.runs {
        RunVerdict::Stop { of_everybody } => {
            Some(stop_notice(of_everybody, policy.manners.language))
        }
        RunVerdict::LimitMet if occasion.is_asked => {
            limit_notice(occasion.limit?, facts, occasion.can_be_private, now_ms)
        }
        RunVerdict::Run if occasion.is_asked => occasion
            .quiet_until
            .filter(|_| is_person)
            .and_then(|quiet| quiet_notice(quiet, facts, policy)),
        RunVerdict::Run => occasion
            .resting
            .filter(|_| is_person)
            .and_then(|agent| resting_notice(agent, facts, policy, now_ms)),
        _ => None,
    }
}

/// Removes agents that do not work in this chat, for this person or at this hour, and returns them.
fn without_resting(
    addressed_to: &mut Vec<AgentName>,
    message: &InboundMessage,
    policy: &ChannelPolicy,
    said_at_ms: i64,
) -> Vec<AgentName> {
    let asked = AskedAt {
        channel: &policy.channel,
        chat: &message.place.chat,
        person: &message.sender.id,
        at_ms: said_at_ms,
    };
    let rests = |name: &mut AgentName| {
        let agent = policy.agent(name);
        agent.is_some_and(|agent| !agent.presence.holds(&asked))
    };
    addressed_to.extract_if(.., rests).collect()
}

/// Whether a message that addresses by this rule is meant for an agent, and not only said in its thread or to all.
fn calls_an_agent(rule: Rule) -> bool {
    match rule {
        Rule::Name | Rule::Reply | Rule::Command | Rule::Direct | Rule::Mention => true,
        Rule::Sender | Rule::AnotherBot | Rule::Everybody | Rule::FollowUp | Rule::Chatter => false,
    }
}

/// Said where an agent is asked that does not work, once an hour in a chat.
fn resting_notice(
    agent: &AgentName,
    facts: &MessageFacts,
    policy: &ChannelPolicy,
    now_ms: i64,
) -> Option<Notice> {
    let name = &policy.agent(agent)?.display_name;
    is_notice_due(facts, now_ms).then(|| Notice {
        kind: NoticeKind::NotAtWork,
        text: policy.manners.language.not_at_work(name),
        is_private: false,
    })
}

/// Whether the chat was not told of a limit, or of an agent that does not work, within the last hour.
fn is_notice_due(facts: &MessageFacts, now_ms: i64) -> bool {
    facts
        .limit_notice_at_ms
        .is_none_or(|last| !(0..LIMIT_NOTICE_INTERVAL_MS).contains(&(now_ms - last)))
}

/// A command is no message to an agent.
fn carried_out(command: CommandVerdict) -> Verdict {
    Verdict {
        is_admitted: true,
        command: Some(command),
        ..Verdict::default()
    }
}

/// What a message is that belongs to a question of ours: its answer, or a reply to it that is not. Neither is a new
/// question. In the question's thread people talk about other things, too: there a message counts only if it comes from
/// a person who is asked, and calls no agent.
fn replied(
    message: &InboundMessage,
    facts: &MessageFacts,
    rule: Rule,
    kind: Option<ChatKind>,
    policy: &ChannelPolicy,
    now_ms: i64,
) -> Option<Verdict> {
    let reply = facts.question.as_ref()?;
    let verdict = reply.verdict(now_ms);
    let calls_nobody = match rule {
        Rule::Chatter | Rule::FollowUp | Rule::Direct | Rule::Reply => message.mentions.is_empty(),
        Rule::Sender
        | Rule::AnotherBot
        | Rule::Name
        | Rule::Command
        | Rule::Everybody
        | Rule::Mention => false,
    };
    let quiet = Verdict {
        is_admitted: true,
        ..Verdict::default()
    };
    match (reply.nearness, verdict) {
        (Nearness::IsAnswer, _) => Some(quiet),
        (Nearness::InThread, AnswerVerdict::Counts) if calls_nobody => Some(Verdict {
            answers: Some(reply.question),
            ..quiet
        }),
        (Nearness::InThread, _) => None,
        (Nearness::AtPost, AnswerVerdict::Counts) => Some(Verdict {
            answers: Some(reply.question),
            ..quiet
        }),
        // Experts may talk on below their answer; only who calls the bot there asks it something.
        (Nearness::AtPost, AnswerVerdict::Not(_)) if reply.is_for_experts => {
            calls_nobody.then_some(quiet)
        }
        (Nearness::AtPost, AnswerVerdict::Not(not)) => {
            let is_told = message.sender.kind == SenderKind::Person && is_private(kind, policy);
            let notice = is_told.then(|| Notice {
                kind: NoticeKind::NotCounted,
                text: not_counted_text(not, &reply.asked, policy.manners.language),
                is_private: true,
            });
            Some(Verdict { notice, ..quiet })
        }
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

fn stop_notice(of_everybody: bool, language: Language) -> Notice {
    Notice {
        kind: NoticeKind::Stopped,
        text: stopped(of_everybody, language),
        is_private: false,
    }
}

fn reaction(policy: &ChannelPolicy) -> Option<AckReaction> {
    let manners = &policy.manners;
    (!manners.ack_reaction.is_empty()).then(|| AckReaction {
        emoji: manners.ack_reaction.clone(),
        stays: manners.keeps_ack_reaction,
    })
}

/// The hours in which nothing is answered in such a chat: its own, or the channel's.
fn quiet_there(
    message: &InboundMessage,
    kind: Option<ChatKind>,
    policy: &ChannelPolicy,
) -> Option<QuietHours> {
    let manners = &policy.manners;
    if let Some(own) = manners.quiet_in.get(&message.place.chat) {
        return *own;
    }
    let is_direct = kind == Some(ChatKind::Direct);
    manners
        .quiet
        .filter(|_| !is_direct || manners.is_quiet_in_direct)
}

/// Said once in quiet hours.
fn quiet_notice(
    (quiet, until_ms): (QuietHours, i64),
    facts: &MessageFacts,
    policy: &ChannelPolicy,
) -> Option<Notice> {
    // A notice from a clock that was wrong by more than a day is not one of this night.
    let is_told = facts
        .quiet_told_until_ms
        .is_some_and(|told| (until_ms..until_ms.saturating_add(DAY_MS)).contains(&told));
    (!is_told).then(|| Notice {
        kind: NoticeKind::Quiet { until_ms },
        text: policy.manners.language.quiet_until(quiet.end()),
        is_private: false,
    })
}

/// Why somebody is not served.
struct AccessRefused {
    access: Access,
    kind: Option<ChatKind>,
}

fn refusal(
    message: &InboundMessage,
    facts: &MessageFacts,
    is_addressed: bool,
    refused: &AccessRefused,
    policy: &ChannelPolicy,
    now_ms: i64,
) -> Verdict {
    // A chat that is not served concerns everybody there, a person only themselves.
    let is_private = refused.access != Access::ChatNotAllowed && is_private(refused.kind, policy);
    let is_unpaired = policy.has_pairing
        && refused.access == Access::PersonNotAllowed
        && refused.kind == Some(ChatKind::Direct);
    let is_first = match facts.refused_notice_at_ms {
        // Once the last pairing code is too old, another one is told.
        Some(last_ms) if is_unpaired => !is_alive(last_ms, now_ms, PAIRING_CODE_LIFE_MS),
        last => last.is_none(),
    };
    let is_person = message.sender.kind == SenderKind::Person;
    let access = match is_private {
        true => refused.access,
        false => Access::ChatNotAllowed,
    };
    let text = || commands::refused(access, &message.place.chat, policy.manners.language);
    let notice = (is_addressed && is_first && is_person).then(|| Notice {
        kind: match is_unpaired {
            true => NoticeKind::Unpaired {
                language: policy.manners.language,
            },
            false => NoticeKind::NotServed,
        },
        text: text(),
        is_private,
    });
    Verdict {
        is_admitted: false,
        access: refused.access,
        notice,
        ..Verdict::default()
    }
}

/// A limit that is met, in words.
pub(super) struct LimitMet {
    pub(super) text: String,
    whose: Whose,
    /// The number at which a row of bots is told.
    at: u32,
}

/// Whom a limit concerns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// One person.
    Person,
    /// Everybody in the room.
    Room,
    /// Bots that talk with ours.
    Bots,
}

/// Which limit is met.
pub(super) fn limit_met(
    message: &InboundMessage,
    facts: &MessageFacts,
    policy: &ChannelPolicy,
) -> Option<LimitMet> {
    let (limits, language) = (&policy.limits, policy.manners.language);
    let at = policy.manners.bot_exchanges_max;
    let met = |whose, text| Some(LimitMet { text, whose, at });
    let is_over = |count: u64, max: u64| max > 0 && count >= max;
    let is_bot = message.sender.kind == SenderKind::Bot;
    if is_bot && facts.bot_exchanges >= at {
        return met(Whose::Bots, language.bots_answered_enough());
    }
    if is_bot && facts.runs_by_person_last_hour >= BOT_RUNS_PER_HOUR_MAX {
        return met(Whose::Room, language.bot_answered_enough_hour());
    }
    if is_over(
        facts.runs_by_person_last_hour.into(),
        limits.runs_per_hour_person.into(),
    ) {
        return met(Whose::Person, language.person_answered_enough_hour());
    }
    if is_over(
        facts.runs_in_chat_last_hour.into(),
        limits.runs_per_hour_chat.into(),
    ) {
        return met(Whose::Room, language.room_answered_enough_hour());
    }
    match limits.spent(facts.spent_by_person_today, facts.spent_today) {
        Some(spent @ SpentUp::Person) => met(Whose::Person, spent.text(language)),
        Some(spent @ SpentUp::Channel) => met(Whose::Room, spent.text(language)),
        None => None,
    }
}

/// Whether and how a limit is told: to a room now and then, to a person each time if only they see it, to bots once in
/// a row.
fn limit_notice(
    limit: LimitMet,
    facts: &MessageFacts,
    can_be_private: bool,
    now_ms: i64,
) -> Option<Notice> {
    let is_private = can_be_private && limit.whose == Whose::Person;
    let is_due = match limit.whose {
        Whose::Bots => facts.bot_exchanges == limit.at,
        Whose::Person if is_private => true,
        Whose::Person | Whose::Room => is_notice_due(facts, now_ms),
    };
    is_due.then_some(Notice {
        kind: NoticeKind::LimitMet,
        text: limit.text,
        is_private,
    })
}

/// An answer opens a thread in channels, not in direct or group-direct chats, and not where the
/// message already is in a thread or topic. The root of a thread, whoever opened it, is not in it.
fn opens_thread(message: &InboundMessage, kind: Option<ChatKind>, policy: &ChannelPolicy) -> bool {
    let thread = message.place.thread.as_ref();
    policy.answers_in_threads
        && thread.is_none_or(|root| *root == message.message_id)
        && message.place.topic.is_none()
        && match kind {
            // With an agent view, whatever is said to the bot directly begins a thread.
            Some(ChatKind::Direct) => policy.has_agent_view,
            Some(ChatKind::GroupDirect | ChatKind::Broadcast) => false,
            Some(ChatKind::Private | ChatKind::Public) | None => true,
        }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_contract::envelope::{CommandTarget, CommandWord};
    use vocative_contract::markup::mention_token;

    use super::*;
    use crate::approving::ApprovalDeadline;
    use crate::command::CommandName;
    use crate::judging::policy::AllowList;
    use crate::judging::testing::{agent, message, policy};
    use crate::presence::Presence;
    use crate::price::Spent;
    use crate::questioning::{QuestionState, ReplyFacts};
    use crate::wall_clock::QuietHours;

    const NOW_MS: i64 = 1_000_500;

    fn mention() -> InboundMessage {
        message(&format!("{} hi", mention_token("UBOT")))
    }

    fn decide(message: &InboundMessage, facts: &MessageFacts, policy: &ChannelPolicy) -> Verdict {
        judge(message, facts, policy, message.sent_at_ms, NOW_MS)
    }

    #[test]
    fn a_stop_that_only_admins_may_say_ends_nothing_and_is_no_question() {
        let mut strict = policy();
        strict.manners.admins_only = vec![CommandName::Stop];
        let stop = message(&format!("{} stop", mention_token("UBOT")));
        let verdict = decide(&stop, &MessageFacts::default(), &strict);
        let answer = verdict.command.and_then(|command| command.answer);
        assert!(answer.unwrap().contains("administer"));
        assert_eq!(verdict.addressed_to, []);
        for (sender, policy) in [("UADMIN", &strict), ("U1", &policy())] {
            let mut stop = stop.clone();
            stop.sender.id = sender.into();
            let verdict = decide(&stop, &MessageFacts::default(), policy);
            assert_eq!(verdict.command, None, "{sender}");
            assert!(matches!(verdict.runs, RunVerdict::Stop { .. }), "{sender}");
        }
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
    fn a_reply_to_a_question_is_its_answer_or_nothing_and_never_a_new_question() {
        let id = "0198c5de-1234-7abc-8def-0123456789ab".parse().unwrap();
        let facts = |nearness, is_asked, state| MessageFacts {
            replies_to_agent: Some(agent("kael")),
            chat_kind: Some(ChatKind::Public),
            question: Some(ReplyFacts {
                question: id,
                state,
                expiry: ApprovalDeadline {
                    asked_at_ms: 0,
                    expires_at_ms: Some(NOW_MS + 1),
                },
                nearness,
                is_asked,
                asked: "Ann".to_owned(),
                is_for_experts: false,
            }),
            ..MessageFacts::default()
        };
        let mut policy = policy();
        policy.tells_privately = true;
        let (asked, other) = (true, false);
        use Nearness::{AtPost, InThread, IsAnswer};
        use QuestionState::{Answered, Open};
        // What is said, where, by whom; whether it answers, is asked anew, and is told something.
        let table = [
            ("blue", AtPost, asked, Open, (true, false, false)),
            ("blue", AtPost, other, Open, (false, false, true)),
            ("blue", AtPost, asked, Answered, (false, false, true)),
            ("blue", IsAnswer, asked, Answered, (false, false, false)),
            ("blue", InThread, asked, Open, (true, false, false)),
            ("blue", InThread, other, Open, (false, true, false)),
            ("blue", InThread, asked, Answered, (false, true, false)),
        ];
        for (text, nearness, is_asked, state, expected) in table {
            let facts = facts(nearness, is_asked, state);
            let verdict = decide(&message(text), &facts, &policy);
            assert!(verdict.is_admitted);
            let found = (
                verdict.answers == Some(id),
                !verdict.addressed_to.is_empty(),
                verdict.notice.is_some_and(|notice| notice.is_private),
            );
            assert_eq!(found, expected, "{nearness:?} {is_asked} {state:?}");
        }
        // In the thread, who calls the bot asks it something; at the post even that is an answer.
        let called = format!("{} blue", mention_token("UBOT"));
        for (nearness, answers) in [(InThread, false), (AtPost, true)] {
            let mut message = message(&called);
            message.mentions_bot = true;
            let facts = MessageFacts {
                replies_to_agent: None,
                ..facts(nearness, asked, Open)
            };
            let verdict = decide(&message, &facts, &policy);
            assert_eq!(verdict.answers.is_some(), answers, "{nearness:?}");
            assert_eq!(verdict.addressed_to.is_empty(), answers, "{nearness:?}");
        }
        // A person who says stop ends the run that asked.
        let stop = decide(&message("stop"), &facts(AtPost, asked, Open), &policy);
        assert!(matches!(stop.runs, RunVerdict::Stop { .. }));
        assert_eq!(stop.answers, None);
    }

    #[test]
    fn a_mention_in_a_channel_runs_and_opens_a_thread() {
        let verdict = decide(&mention(), &MessageFacts::default(), &policy());
        let expected = Verdict {
            is_admitted: true,
            access: Access::Served,
            addressed_to: vec![agent("kael")],
            rule: Rule::Mention,
            is_unsure: false,
            runs: RunVerdict::Run,
            opens_thread: true,
            not_before_ms: 0,
            asked_model: None,
            notice: None,
            overlaps: BTreeMap::from([(agent("kael"), Overlap::Auto)]),
            would_follow_up: false,
            reaction: None,
            edit_answer_within_ms: 0,
            command: None,
            answers: None,
            changes: None,
        };
        assert_eq!(verdict, expected);
    }

    #[test]
    fn an_agent_that_does_not_work_is_not_addressed_and_who_calls_it_is_told_once_an_hour() {
        let mut policy = policy();
        policy.agents[0].presence.people = vec!["acme/U9".to_owned()];
        let facts = MessageFacts::default();
        let asked = mention();
        let resting = judge(&asked, &facts, &policy, 0, 0);
        assert!(resting.is_admitted && resting.addressed_to.is_empty());
        let notice = resting.notice.unwrap();
        assert_eq!(notice.kind, NoticeKind::NotAtWork);
        assert_eq!(notice.text, "kael is not at work here now.");
        let told = MessageFacts {
            limit_notice_at_ms: Some(0),
            ..MessageFacts::default()
        };
        assert_eq!(judge(&asked, &told, &policy, 0, 3_599_999).notice, None);
        assert!(
            judge(&asked, &told, &policy, 3_600_000, 3_600_000)
                .notice
                .is_some()
        );
        // Another agent works.
        let other = judge(&message("ops: restart it"), &facts, &policy, 0, 0);
        assert_eq!(
            (other.addressed_to, other.notice),
            (vec![agent("ops")], None)
        );
        // What it works on is stopped by those who asked it.
        let stop = judge(
            &message(&format!("{} stop", mention_token("UBOT"))),
            &facts,
            &policy,
            0,
            0,
        );
        assert!(matches!(stop.runs, RunVerdict::Stop { .. }));
        assert_eq!(stop.addressed_to, [agent("kael")]);
        // It is judged by the time at which it was said.
        policy.agents[0].presence = Presence {
            hours: QuietHours::read("08:00-18:00", "UTC"),
            ..Presence::default()
        };
        let at = |hour: i64| judge(&asked, &facts, &policy, hour * 3_600_000, 23 * 3_600_000);
        assert_eq!(at(9).addressed_to, [agent("kael")]);
        assert_eq!(at(19).addressed_to, []);
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
            runs_in_chat_last_hour: 120,
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
        // A time in the future was noted by a wrong clock: it silences nothing.
        for last_ms in [NOW_MS - 3_600_000, NOW_MS + 60_000, i64::MAX] {
            facts.limit_notice_at_ms = Some(last_ms);
            assert!(
                decide(&mention(), &facts, &policy()).notice.is_some(),
                "{last_ms}"
            );
        }
        assert_eq!(decide(&message("chatter"), &facts, &policy()).notice, None);
    }

    #[test]
    fn a_limit_of_one_person_is_told_to_them_alone_each_time() {
        let facts = MessageFacts {
            runs_by_person_last_hour: 60,
            limit_notice_at_ms: Some(NOW_MS - 1),
            ..MessageFacts::default()
        };
        let told = |policy: &ChannelPolicy| decide(&mention(), &facts, policy).notice;
        assert!(told(&policy()).unwrap().is_private);
        let mut openly = policy();
        openly.tells_privately = false;
        assert_eq!(told(&openly), None);
    }

    #[test]
    fn tokens_of_the_day_end_for_a_person_before_they_end_for_all() {
        let mut capped = policy();
        capped.limits.tokens_per_day = 1_000;
        capped.limits.tokens_per_day_person = 100;
        let spent = |tokens| Spent {
            tokens,
            cost_micros: 0,
        };
        let verdict = |by_person, by_channel| {
            let facts = MessageFacts {
                spent_by_person_today: spent(by_person),
                spent_today: spent(by_channel),
                ..MessageFacts::default()
            };
            let verdict = decide(&mention(), &facts, &capped);
            let told = verdict
                .notice
                .map(|notice| (notice.is_private, notice.text));
            (verdict.runs, told)
        };
        let person = (true, SpentUp::Person.text(Language::English));
        let channel = (false, SpentUp::Channel.text(Language::English));
        assert_eq!(verdict(99, 999), (RunVerdict::Run, None));
        assert_eq!(verdict(100, 999), (RunVerdict::LimitMet, Some(person)));
        assert_eq!(verdict(99, 1_000), (RunVerdict::LimitMet, Some(channel)));
        capped.limits.tokens_per_day = 0;
        capped.limits.tokens_per_day_person = 0;
        let everything = Spent {
            tokens: u64::MAX,
            cost_micros: u64::MAX,
        };
        assert_eq!(capped.limits.spent(everything, everything), None);
        capped.limits.cost_micros_per_day = 1_000;
        capped.limits.cost_micros_per_day_person = 100;
        let cost = |cost_micros| Spent {
            tokens: 9,
            cost_micros,
        };
        let of = |person, channel| capped.limits.spent(cost(person), cost(channel));
        assert_eq!(of(99, 999), None);
        assert_eq!(of(100, 999), Some(SpentUp::Person));
        assert_eq!(of(99, 1_000), Some(SpentUp::Channel));
        let costly = |person, channel, most| {
            let too_costly = capped.limits.too_costly(cost(person), cost(channel), most);
            too_costly.map(|it| (it.whose, it.left_micros))
        };
        assert_eq!(costly(40, 900, 60), None);
        assert_eq!(costly(40, 900, 61), Some((SpentUp::Person, 60)));
        assert_eq!(costly(40, 950, 61), Some((SpentUp::Channel, 50)));
        assert_eq!(costly(140, 0, 1), Some((SpentUp::Person, 0)));
        capped.limits.cost_micros_per_day = 0;
        capped.limits.cost_micros_per_day_person = 0;
        let nothing = capped.limits.too_costly(everything, everything, u64::MAX);
        assert_eq!(nothing, None);
    }

    #[test]
    fn a_row_of_bots_ends_and_is_told_once() {
        let mut allowed = policy();
        allowed.allow_bots = AllowList::new(vec!["*".into()]);
        let mut bot = mention();
        bot.sender.kind = SenderKind::Bot;
        let verdict = |bot_exchanges| {
            let facts = MessageFacts {
                bot_exchanges,
                limit_notice_at_ms: Some(NOW_MS - 1),
                ..MessageFacts::default()
            };
            let verdict = decide(&bot, &facts, &allowed);
            (verdict.runs, verdict.notice.is_some())
        };
        assert_eq!(verdict(2), (RunVerdict::Run, false));
        assert_eq!(verdict(3), (RunVerdict::LimitMet, true));
        assert_eq!(verdict(4), (RunVerdict::LimitMet, false));
    }

    #[test]
    fn quiet_hours_put_an_answer_off_and_say_so_once() {
        let mut quiet = policy();
        // Around the time of the tests, which is 00:16 on the first day.
        quiet.manners.quiet = QuietHours::read("23:00-01:00", "UTC");
        let until_ms = 3_600_000;
        let told = |facts: &MessageFacts, kind| {
            let mut message = mention();
            message.place.kind = Some(kind);
            let verdict = decide(&message, facts, &quiet);
            assert_eq!(verdict.runs, RunVerdict::Run);
            (
                verdict.not_before_ms,
                verdict.notice.map(|notice| notice.text),
            )
        };
        let new = MessageFacts::default();
        let line = "It is quiet here now; I answer at 01:00 (UTC).".to_owned();
        assert_eq!(told(&new, ChatKind::Public), (until_ms, Some(line)));
        let known = MessageFacts {
            quiet_told_until_ms: Some(until_ms),
            ..MessageFacts::default()
        };
        assert_eq!(told(&known, ChatKind::Public), (until_ms, None));
        // By a clock that was a year ahead.
        let misled = MessageFacts {
            quiet_told_until_ms: Some(until_ms + 365 * DAY_MS),
            ..MessageFacts::default()
        };
        assert!(told(&misled, ChatKind::Public).1.is_some());
        assert_eq!(told(&new, ChatKind::Direct), (0, None));
    }

    #[test]
    fn a_chat_may_have_quiet_hours_of_its_own() {
        let quiet = QuietHours::read("23:00-01:00", "UTC");
        let mut elsewhere = policy();
        elsewhere.manners.quiet_in.insert("C1".to_owned(), quiet);
        let mut always = policy();
        always.manners.quiet = quiet;
        always.manners.quiet_in.insert("C1".to_owned(), None);
        let put_off = |policy: &ChannelPolicy, chat: &str| {
            let mut message = mention();
            message.place.chat = chat.to_owned();
            let verdict = decide(&message, &MessageFacts::default(), policy);
            verdict.not_before_ms > 0 && verdict.notice.is_some()
        };
        assert!(put_off(&elsewhere, "C1") && !put_off(&elsewhere, "C2"));
        assert!(!put_off(&always, "C1") && put_off(&always, "C2"));
    }

    #[test]
    fn what_will_be_answered_gets_a_sign() {
        let mut nodding = policy();
        nodding.manners.ack_reaction = "eyes".into();
        let sign =
            |message: &InboundMessage| decide(message, &MessageFacts::default(), &nodding).reaction;
        let eyes = AckReaction {
            emoji: "eyes".into(),
            stays: false,
        };
        assert_eq!(sign(&mention()), Some(eyes));
        assert_eq!(sign(&message("chatter")), None);
    }

    #[test]
    fn a_command_is_carried_out_and_addresses_nobody() {
        let mut asked = message("/help");
        asked.command = Some(CommandWord {
            name: "help".into(),
            target: CommandTarget::Anyone,
            opens_chat: false,
        });
        let verdict = decide(&asked, &MessageFacts::default(), &policy());
        assert!(verdict.command.is_some() && verdict.addressed_to.is_empty());
        let mut late = policy();
        late.limits.max_trigger_age_ms = 400;
        assert_eq!(
            decide(&asked, &MessageFacts::default(), &late).command,
            None
        );
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
    fn whoever_may_be_let_in_is_told_a_code_once_an_hour() {
        let policy = ChannelPolicy {
            allow_people: AllowList::default(),
            has_pairing: true,
            ..policy()
        };
        let mut direct = message("hi");
        direct.place.kind = Some(ChatKind::Direct);
        let noticed = |message: &InboundMessage, last: Option<i64>| {
            let facts = MessageFacts {
                refused_notice_at_ms: last,
                ..MessageFacts::default()
            };
            decide(message, &facts, &policy).notice.map(|it| it.kind)
        };
        let language = policy.manners.language;
        let offer = Some(NoticeKind::Unpaired { language });
        assert_eq!(noticed(&direct, None), offer);
        let hour_ms = PAIRING_CODE_LIFE_MS;
        for (last_ms, expected) in [
            (NOW_MS - hour_ms + 1, None),
            (NOW_MS - hour_ms, offer),
            // The clock was ahead when it was told.
            (NOW_MS + hour_ms, None),
            (NOW_MS + hour_ms + 1, offer),
        ] {
            assert_eq!(noticed(&direct, Some(last_ms)), expected, "{last_ms}");
        }
        // No code is told in a room, and none to people of other organisations.
        direct.sender.is_stranger = true;
        assert_eq!(noticed(&direct, None), Some(NoticeKind::NotServed));
        assert_eq!(noticed(&mention(), None), None);
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
        let mut own_surface = policy();
        own_surface.has_agent_view = true;
        let mut direct = mention();
        direct.place.kind = Some(ChatKind::Direct);
        assert!(decide(&direct, &MessageFacts::default(), &own_surface).opens_thread);
        assert!(!opens(&|message| message.place.thread = Some("1.0".into())));
        // Others have replied to it already.
        let own_id = |message: &mut InboundMessage| {
            message.place.thread = Some(message.message_id.clone());
        };
        assert!(opens(&own_id));
        assert!(!opens(&|message| message.place.topic = Some("7".into())));
    }
}
