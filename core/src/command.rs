//! What people ask the daemon itself for, and what comes of it. Never anything for a model.

use schemars::JsonSchema;
use serde::Deserialize;
use vocative_contract::envelope::{Belonging, ChatKind};
use vocative_contract::outbound::Target;

use crate::approving::ApprovalsCommand;
use crate::ids::{AccountId, AgentName, ChatId, ConversationId, InquiryId};
use crate::linking::LinkCommand;
use crate::remembering::MemoryCommand;
use crate::title::TitleCommand;
use crate::wall_clock::Zone;
use crate::words::Language;

/// A command of people to the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandName {
    /// What there is.
    Help,
    /// A fresh start: prompts read nothing that was said before.
    New,
    /// What waits for an answer ends.
    Stop,
    /// How things stand.
    Status,
    /// What an agent would be sent.
    Context,
    /// What an agent keeps of older turns.
    Summary,
    /// Something is said here at a time.
    Remind,
    /// An agent does something here at a time.
    Schedule,
    /// What waits here for a person's decision.
    Approvals,
    /// What is remembered of them here.
    Memory,
    /// What the conversation is called.
    Title,
    /// Another account of the same person.
    Link,
    /// Something goes for good.
    Forget,
}

impl CommandName {
    /// All, in the order in which people are told of them.
    pub const ALL: [Self; 13] = [
        Self::Help,
        Self::New,
        Self::Stop,
        Self::Status,
        Self::Context,
        Self::Summary,
        Self::Remind,
        Self::Schedule,
        Self::Approvals,
        Self::Memory,
        Self::Title,
        Self::Link,
        Self::Forget,
    ];

    /// The word people say.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Help => "help",
            Self::New => "new",
            Self::Stop => "stop",
            Self::Status => "status",
            Self::Context => "context",
            Self::Summary => "summary",
            Self::Remind => "remind",
            Self::Schedule => "schedule",
            Self::Approvals => "approvals",
            Self::Memory => "memory",
            Self::Title => "title",
            Self::Link => "link",
            Self::Forget => "forget",
        }
    }

    /// The command of that word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// What it does, for people.
    #[must_use]
    pub fn description(self, language: Language) -> String {
        match self {
            Self::Help => language.command_help(),
            Self::New => language.command_new(),
            Self::Stop => language.command_stop(),
            Self::Status => language.command_status(),
            Self::Context => language.command_context(),
            Self::Summary => language.command_summary(),
            Self::Remind => language.command_remind(),
            Self::Schedule => language.command_schedule(),
            Self::Memory => language.command_memory(),
            Self::Title => language.command_title(),
            Self::Link => language.command_link(),
            Self::Approvals => language.command_approvals(),
            Self::Forget => language.command_forget(),
        }
    }
}

/// What is known where a command is given that is no message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandFacts {
    /// The kind of the chat.
    pub kind: Option<ChatKind>,
    /// Whether the bot was heard to be in the chat: others can be told something there.
    pub is_in_room: bool,
    /// What the platform's directory says of the person who gives it, if it was asked.
    pub belonging: Option<Belonging>,
    /// Whether its person had all that they said forgotten within the last day.
    pub has_forgotten_lately: bool,
}

/// What was decided about a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandVerdict {
    /// Whether its person is served; if not, nothing of it is stored but the answer.
    pub is_admitted: bool,
    /// What it does, in the transaction that captures it.
    pub effect: Effect,
    /// What its person is told; `None` where the effect says it later.
    pub answer: Option<String>,
    /// Whether only its person is to see the answer.
    pub is_private: bool,
}

impl CommandVerdict {
    /// A command of somebody who is not served: nothing is stored, nothing is said.
    #[must_use]
    pub fn unheard() -> Self {
        Self {
            is_admitted: false,
            effect: Effect::Nothing,
            answer: None,
            is_private: true,
        }
    }

    /// The same, told to its person alone or to all.
    #[must_use]
    pub fn told_in(self, is_private: bool) -> Self {
        Self { is_private, ..self }
    }

    /// A command that is only answered.
    #[must_use]
    pub fn told(answer: impl Into<String>) -> Self {
        Self {
            is_admitted: true,
            effect: Effect::Nothing,
            answer: Some(answer.into()),
            is_private: true,
        }
    }
}

/// What becomes of a command that is not a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandFate {
    /// Its event is kept, and nothing is done: it is none of ours.
    Keep,
    /// Nothing of it is stored: its person is not served.
    Ignore,
    /// Its person is not served, and told so; nothing else of it is stored.
    Refuse(CommandVerdict),
    /// It is carried out, where it is told for the first time.
    CarryOut(CommandVerdict),
}

impl From<Option<CommandVerdict>> for CommandFate {
    fn from(verdict: Option<CommandVerdict>) -> Self {
        match verdict {
            None => Self::Keep,
            Some(verdict) if verdict.is_admitted => Self::CarryOut(verdict),
            Some(verdict) if verdict.answer.is_some() => Self::Refuse(verdict),
            Some(_) => Self::Ignore,
        }
    }
}

/// What a command does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// Prompts of these agents read nothing that was said there before.
    BeginAfresh {
        /// The agents.
        agents: Vec<AgentName>,
    },
    /// What was asked there, and is not answered yet, ends: in the whole chat, or in the thread that it
    /// was said in.
    Stop {
        /// Whether other people's questions end, too.
        of_everybody: bool,
    },
    /// Something is looked up and told later.
    Inquire {
        /// What.
        inquiry: Inquiry,
        /// About which agent.
        agent: AgentName,
    },
    /// Something is planned for a time, or what is planned is listed or changed.
    Schedule(ScheduleCommand),
    /// Calls that wait for a person are listed, or forbidden.
    Approvals(ApprovalsCommand),
    /// What is remembered is listed, taken away or corrected.
    Memory(MemoryCommand),
    /// What the conversation is called is told or changed.
    Title(TitleCommand),
    /// Another account of the same person is joined to this one, or left.
    Link(LinkCommand),
    /// One message goes.
    ForgetMessage {
        /// The platform's id of it, in the same chat.
        message_id: String,
    },
    /// All that its person said goes, in every chat of the account.
    ForgetPerson,
    /// All that was said in the chat goes, in its threads and topics, too.
    ForgetChat,
}

/// What somebody said about what is to start at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleCommand {
    /// Who is to do it; `None` = it is said as it is, without a model.
    pub agent: Option<AgentName>,
    /// What stands behind the command.
    pub text: String,
    /// The zone of times in it that name none.
    pub zone: Zone,
    /// Whether its person may change what is others', too.
    pub is_admin: bool,
    /// In which language they are answered.
    pub language: Language,
}

/// What is looked up for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inquiry {
    /// How things stand in the chat.
    Status,
    /// What an agent would be sent.
    Context,
    /// What an agent keeps of the older turns.
    Summary,
}

impl Inquiry {
    const ALL: [Self; 3] = [Self::Status, Self::Context, Self::Summary];

    /// The stored name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Context => "context",
            Self::Summary => "summary",
        }
    }

    /// The inquiry of that stored name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// An inquiry that is not answered yet.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenInquiry {
    /// Which: its answer ends it.
    pub id: InquiryId,
    /// What is asked.
    pub inquiry: Inquiry,
    /// About which agent.
    pub agent: AgentName,
    /// Through which account.
    pub account: AccountId,
    /// In which chat.
    pub chat: ChatId,
    /// In which conversation.
    pub conversation: ConversationId,
    /// Where the answer goes.
    pub target: Target,
    /// Who alone sees it, by the platform's id.
    pub person: Option<String>,
}

/// What the store knows of a chat that a person asks about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatStanding {
    /// Runs that wait for their answer, in every conversation of the chat.
    pub runs_waiting: u64,
    /// Runs that are being worked on.
    pub runs_working: u64,
    /// Posts that wait to be sent there.
    pub posts_waiting: u64,
    /// Turns of its conversations.
    pub turns: u64,
    /// Runs there in the last hour.
    pub runs_last_hour: u64,
    /// Since when the agent's prompts start afresh in the conversation, in milliseconds since the
    /// Unix epoch.
    pub afresh_since_ms: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_somebody_who_is_not_served_is_refused_or_not_heard() {
        let told = CommandVerdict::told("Done.");
        let refused = CommandVerdict {
            is_admitted: false,
            ..told.clone()
        };
        let silent = CommandVerdict {
            answer: None,
            ..told.clone()
        };
        let table = [
            (None, CommandFate::Keep),
            (Some(told.clone()), CommandFate::CarryOut(told)),
            (Some(silent.clone()), CommandFate::CarryOut(silent)),
            (Some(refused.clone()), CommandFate::Refuse(refused)),
            (Some(CommandVerdict::unheard()), CommandFate::Ignore),
        ];
        for (verdict, expected) in table {
            assert_eq!(CommandFate::from(verdict), expected);
        }
    }

    #[test]
    fn every_command_is_found_by_its_word() {
        for name in CommandName::ALL {
            assert_eq!(CommandName::from_name(name.name()), Some(name));
            for language in Language::ALL {
                assert!((1..=256).contains(&name.description(language).chars().count()));
            }
        }
        assert_eq!(CommandName::from_name("dance"), None);
    }
}
