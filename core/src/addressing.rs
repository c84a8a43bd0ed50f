//! What the store knows about a message when it decides whom it addresses, and the decision.
//!
//! The facts are read and the verdict is written in one transaction; the decision in between is a
//! pure function handed in by capture.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use vocative_contract::envelope::{Belonging, ChatKind, InboundMessage};
use vocative_contract::outbound::Part;

use crate::approving::StoredApproval;
use crate::command::CommandVerdict;
use crate::ids::{AgentName, ApprovalId, QuestionId};
use crate::price::Spent;
use crate::questioning::ReplyFacts;
use crate::words::Language;

/// What the store knows about a message at its commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageFacts {
    /// Whether the message itself was captured before.
    pub is_known: bool,
    /// Whether the chat was seen before.
    pub is_known_chat: bool,
    /// The kind of chat: the event's word, else what was learnt before.
    pub chat_kind: Option<ChatKind>,
    /// The agent that wrote the message it replies to.
    pub replies_to_agent: Option<AgentName>,
    /// Whether its sender also wrote the message it replies to.
    pub replies_to_sender: bool,
    /// Whether its sender had all that they said forgotten within the last day.
    pub has_forgotten_lately: bool,
    /// The thread it is in, if it is in one (and not its root).
    pub thread: Option<ThreadFacts>,
    /// Agents it addressed before this event (an edit, the other event of the same post).
    pub addressed_before: Vec<AgentName>,
    /// Agents that have a run for it, whatever its state.
    pub has_run_for: Vec<AgentName>,
    /// When a backup was last put in place of the database, in milliseconds since the Unix epoch.
    pub restored_at_ms: Option<i64>,
    /// Runs of this person in the last hour.
    pub runs_by_person_last_hour: u32,
    /// Runs in this chat in the last hour.
    pub runs_in_chat_last_hour: u32,
    /// What this channel spent since the start of the UTC day.
    pub spent_today: Spent,
    /// What this person's questions and voice notes took of it.
    pub spent_by_person_today: Spent,
    /// When this chat was last told that it is not served, in milliseconds since the Unix epoch.
    pub refused_notice_at_ms: Option<i64>,
    /// When this chat was last told of a limit, in milliseconds since the Unix epoch.
    pub limit_notice_at_ms: Option<i64>,
    /// Messages of other bots that were answered in this chat since a person spoke there; one more once
    /// that was refused and told.
    pub bot_exchanges: u32,
    /// Up to when this chat was told that it is quiet, in milliseconds since the Unix epoch.
    pub quiet_told_until_ms: Option<i64>,
    /// A question of ours that it may be the answer to.
    pub question: Option<ReplyFacts>,
    /// The call that waits for people on the card that it replies to.
    pub waiting_call: Option<WaitingCall>,
    /// What the platform's directory says of the sender, if it was asked.
    pub belonging: Option<Belonging>,
}

/// What the store knows about a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadFacts {
    /// Agents that the root addressed, or that wrote it.
    pub root_addressed: Vec<AgentName>,
    /// Agents that have written in it.
    pub agents_in_it: Vec<AgentName>,
}

/// A call that waits for people, as a reply to its card may change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingCall {
    /// Its approval.
    pub approval: StoredApproval,
    /// The JSON schema of its tool's arguments.
    pub parameters: String,
    /// Whether the sender asked for its run.
    pub is_requester: bool,
    /// The name by which the sender is known.
    pub sender_name: Option<String>,
}

/// Other arguments for a call that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedCall {
    /// Its approval.
    pub approval: ApprovalId,
    /// All arguments, as JSON: held against the tool's schema.
    pub arguments: String,
    /// What takes the card's place.
    pub outcome: Part,
}

/// Whether a message is stored, and whom it addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is stored at all; `false` outside access.
    pub is_admitted: bool,
    /// Who is refused, where it is not stored.
    pub access: Access,
    /// The agents it addresses.
    pub addressed_to: Vec<AgentName>,
    /// The rule that says so.
    pub rule: Rule,
    /// Whether it may be meant for somebody else.
    pub is_unsure: bool,
    /// Whether addressed agents run; `false` where the trigger is too old or a limit is met.
    pub runs: RunVerdict,
    /// What becomes of it where an earlier message to the agent still waits for its answer; an agent
    /// that is not named: [`Overlap::Queue`].
    pub overlaps: BTreeMap<AgentName, Overlap>,
    /// Whether the answer to a message in a channel opens a thread.
    pub opens_thread: bool,
    /// The run waits at least until then (an album being complete), in milliseconds since the Unix
    /// epoch.
    pub not_before_ms: i64,
    /// The configured name of the model that it asks for; `None` = each agent asks its own.
    pub asked_model: Option<String>,
    /// A line to post into the chat (not served here, limit met).
    pub notice: Option<Notice>,
    /// The message addresses no agent, but would be a follow-up if its thread were an agent's. It is judged
    /// again when the thread turns out to be one.
    pub would_follow_up: bool,
    /// The reaction that says that it was heard, where it is to be answered.
    pub reaction: Option<AckReaction>,
    /// How long after its answer an edit of the message is answered again, in milliseconds; 0 = never.
    pub edit_answer_within_ms: i64,
    /// It is a command to the daemon: carried out where the message is new.
    pub command: Option<CommandVerdict>,
    /// The question that it is the answer to, where the message is new.
    pub answers: Option<QuestionId>,
    /// How it changes the call on whose card it replies, where the message is new.
    pub changes: Option<ChangedCall>,
}

impl Verdict {
    /// What is told of the message itself, whether or not it addresses an agent. What answers a question of ours
    /// is told nothing.
    #[must_use]
    pub fn notice_of_message(&self) -> Option<&Notice> {
        let notice = self.notice.as_ref();
        notice.filter(|notice| self.answers.is_none() && notice.kind.is_of_message())
    }
}

/// Whether a message is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// It is stored and may be answered.
    #[default]
    Served,
    /// The chat is not on `allow_chats`.
    ChatNotAllowed,
    /// The person is not on `allow_people`.
    PersonNotAllowed,
    /// The person belongs to another organisation, or may, and `answer_strangers` is off.
    Stranger,
    /// The person is a guest of ours, or may be, and `answer_guests` is off.
    Guest,
}

impl Access {
    /// The setting that would admit it.
    #[must_use]
    pub fn setting(self) -> &'static str {
        match self {
            Self::Served | Self::ChatNotAllowed => "allow_chats",
            Self::PersonNotAllowed => "allow_people",
            Self::Stranger => "answer_strangers",
            Self::Guest => "answer_guests",
        }
    }
}

/// Why a message addresses an agent, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Its sender can't address anybody: ourselves, a bot that is not in `allow_bots`, the platform.
    Sender,
    /// It is a command for another bot.
    AnotherBot,
    /// It names an agent.
    Name,
    /// It replies to what an agent wrote.
    Reply,
    /// It is a command for us.
    Command,
    /// It is a word to everybody, and those address here.
    Everybody,
    /// It was said in a direct chat.
    Direct,
    /// It mentions the bot.
    Mention,
    /// It goes on with a thread that is an agent's.
    FollowUp,
    /// It was said into the room.
    #[default]
    Chatter,
}

impl Rule {
    /// Its word in log lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender can't address",
            Self::AnotherBot => "command for another bot",
            Self::Name => "name",
            Self::Reply => "reply",
            Self::Command => "command",
            Self::Everybody => "everybody",
            Self::Direct => "direct chat",
            Self::Mention => "mention",
            Self::FollowUp => "follow-up",
            Self::Chatter => "not addressed",
        }
    }
}

/// A reaction that says that a message was heard and will be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckReaction {
    /// As the platform names it.
    pub emoji: String,
    /// Whether it stays once the message is answered.
    pub stays: bool,
}

/// Whether addressed agents run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunVerdict {
    /// Each gets a run.
    #[default]
    Run,
    /// The trigger is older than `max_trigger_age`: captured, counted, not answered.
    TooOld,
    /// A limit is met: captured, told, not answered.
    LimitMet,
    /// It is said to the agent, which is not asked for an answer.
    NotAsked,
    /// It says stop: what was asked in its conversation before it, and is not answered yet, ends.
    Stop {
        /// Whether other people's questions end, too.
        of_everybody: bool,
    },
}

/// What becomes of a message to an agent while an earlier one in the conversation still waits for its
/// answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// What one person asks while they wait is answered together; other people's apart.
    Auto,
    /// Each is answered by itself, in order.
    Queue,
    /// All waiting messages are answered together, whoever sent them.
    Collect,
    /// What is being answered is given up, and all is answered together.
    Interrupt,
    /// It is not answered, whoever asked.
    Drop,
}

/// A line the daemon posts into a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Which notice: at most one per kind and chat in its interval.
    pub kind: NoticeKind,
    /// Its text.
    pub text: String,
    /// Whether only the author of the message sees it.
    pub is_private: bool,
}

/// Which notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// This chat or person is not served.
    NotServed,
    /// The same of a person who may be let in by a code: they are told one, if one can be had.
    Unpaired {
        /// In which language.
        language: Language,
    },
    /// A limit on runs or tokens is met.
    LimitMet,
    /// The agent that is asked does not work there, for them, or then.
    NotAtWork,
    /// A person said stop.
    Stopped,
    /// A reply to a question is not its answer.
    NotCounted,
    /// Quiet hours: nothing is answered before that time, in milliseconds since the Unix epoch.
    Quiet {
        /// The time.
        until_ms: i64,
    },
}

impl NoticeKind {
    /// Whether it is told of the message itself. The others are told of what is not stored, or with the runs of
    /// the agents that a message addresses.
    fn is_of_message(self) -> bool {
        match self {
            Self::NotCounted | Self::NotAtWork => true,
            Self::NotServed
            | Self::Unpaired { .. }
            | Self::LimitMet
            | Self::Stopped
            | Self::Quiet { .. } => false,
        }
    }
}

/// Decides for one message. Pure.
pub type Judge = Box<dyn FnOnce(&MessageFacts) -> Verdict + Send>;

/// Decides anew for follow-ups that were captured before their thread was known to be an agent's.
/// The message is as it was stored. Pure.
pub type FollowUpJudge = Arc<dyn Fn(&InboundMessage, &MessageFacts) -> Verdict + Send + Sync>;

/// When an edit was made, in milliseconds since the Unix epoch: both platforms' markers are that
/// time, in seconds with or without a fraction.
#[must_use]
pub fn edited_at_ms(marker: &str) -> Option<i64> {
    let (seconds, fraction) = marker.split_once('.').unwrap_or((marker, ""));
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    let seconds_ms = seconds.parse::<i64>().ok()?.checked_mul(1_000)?;
    seconds_ms.checked_add(digits.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_answers_a_question_is_told_nothing_and_others_what_is_told_of_them() {
        let table = [
            (NoticeKind::NotCounted, true),
            (NoticeKind::NotAtWork, true),
            (NoticeKind::NotServed, false),
            (NoticeKind::LimitMet, false),
            (NoticeKind::Stopped, false),
            (NoticeKind::Quiet { until_ms: 1 }, false),
        ];
        for (kind, expected) in table {
            let notice = Notice {
                kind,
                text: "a line".to_owned(),
                is_private: false,
            };
            let mut verdict = Verdict {
                notice: Some(notice.clone()),
                ..Verdict::default()
            };
            let told = verdict.notice_of_message();
            assert_eq!(told, expected.then_some(&notice), "{kind:?}");
            verdict.answers = Some(QuestionId(uuid::Uuid::nil()));
            assert_eq!(verdict.notice_of_message(), None, "{kind:?}");
        }
    }

    #[test]
    fn an_edit_marker_is_a_time() {
        let table = [
            ("1700000000", Some(1_700_000_000_000)),
            ("1700000000.000200", Some(1_700_000_000_000)),
            ("1700000000.25", Some(1_700_000_000_250)),
            ("1700000000.123456", Some(1_700_000_000_123)),
            ("9223372036854775807", None),
            ("1700000000.é", None),
            ("m1", None),
            ("", None),
        ];
        for (marker, expected) in table {
            assert_eq!(edited_at_ms(marker), expected, "{marker:?}");
        }
    }
}
