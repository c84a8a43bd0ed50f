//! What people ask the daemon itself for, and what comes of it. Never anything for a model.
//!
//! `commands!` lists the commands and the function that decides about each, in the file of its subject. How they are
//! read, and who may give them, stands in `judging/commands.rs`.
//!
//! Reading order: this file, `asked`, then any command.

mod afresh;
mod approvals;
mod asked;
mod forget;
mod help;
mod inquiring;
mod link;
mod memory;
mod planning;
mod stop;
mod title;

use schemars::JsonSchema;
use serde::Deserialize;
use vocative_contract::channel::Audience;
use vocative_contract::envelope::{Belonging, ChatKind};
use vocative_contract::outbound::Target;

use crate::approving::ApprovalsCommand;
use crate::ids::{AccountId, AgentName, ChatId, ConversationId, InquiryId};
use crate::linking::LinkCommand;
use crate::remembering::MemoryCommand;
use crate::title::TitleCommand;
use crate::wall_clock::Zone;
use crate::words::Language;

pub(crate) use asked::{AskedCommand, BehindWord, CommandForm, CommandRoom};
pub(crate) use help::help;
pub(crate) use stop::stopped;

/// Declares the commands, in the order in which people are told of them. Each line is a variant with its description in
/// the schema of settings; its word; what may stand behind that; whom it is announced to; and what decides about it.
/// What it says of itself is `command_<word>` in the catalogues.
macro_rules! commands {
    ($($(#[$about:meta])+ $name:ident = $word:literal, $behind:expr, $audience:ident, $decide:expr;)+) => {
        /// A command of people to the daemon.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum CommandName {
            $($(#[$about])+ $name,)+
        }

        impl CommandName {
            /// All, in the order in which people are told of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The word people say.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }

            /// What may stand behind the word.
            pub(crate) fn behind(self) -> BehindWord {
                use BehindWord::{Agent, Nothing, Order};
                match self {
                    $(Self::$name => $behind,)+
                }
            }

            /// The people to whom it is announced, unless the settings leave it to administrators.
            #[must_use]
            pub fn audience(self) -> Audience {
                match self {
                    $(Self::$name => Audience::$audience,)+
                }
            }

            /// Decides about one that somebody gave who may.
            pub(crate) fn decide(self, asked: &AskedCommand<'_>) -> CommandVerdict {
                match self {
                    $(Self::$name => $decide(asked),)+
                }
            }
        }
    };
}

commands! {
    /// What there is.
    Help = "help", Nothing, Everybody, help::decide;
    /// A fresh start: prompts read nothing that was said before.
    New = "new", Agent, Everybody, afresh::decide;
    /// What waits for an answer ends.
    Stop = "stop", Nothing, Everybody, stop::decide;
    /// How things stand.
    Status = "status", Agent, Everybody, inquiring::status;
    /// What an agent would be sent.
    Context = "context", Agent, WhoeverIsAlone, inquiring::context;
    /// What an agent keeps of older turns.
    Summary = "summary", Agent, Everybody, inquiring::summary;
    /// Something is said here at a time.
    Remind = "remind", Order(planning::is_order), Everybody, planning::remind;
    /// An agent does something here at a time.
    Schedule = "schedule", Order(planning::is_order), Everybody, planning::schedule;
    /// What waits here for a person's decision.
    Approvals = "approvals", Order(approvals::is_order), Everybody, approvals::decide;
    /// What is remembered of them here.
    Memory = "memory", Order(memory::is_order), Everybody, memory::decide;
    /// What the conversation is called.
    Title = "title", Order(title::is_order), Everybody, title::decide;
    /// Another account of the same person.
    Link = "link", Order(link::is_order), WhoeverIsAlone, link::decide;
    /// Something goes for good.
    Forget = "forget", Order(forget::is_order), Everybody, forget::decide;
}

impl CommandName {
    /// The command of that word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.name() == name)
    }

    /// What it does, for people.
    #[must_use]
    pub fn description(self, language: Language) -> String {
        language.about_command(self.name())
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

impl Effect {
    /// Whether it is carried out with the rights of an administrator, where it goes by them.
    #[must_use]
    pub fn is_by_admin(&self) -> bool {
        match self {
            Self::Stop { of_everybody } => *of_everybody,
            Self::Schedule(command) => command.is_admin,
            Self::Approvals(command) => command.is_admin,
            Self::Memory(command) => command.is_admin,
            Self::Title(command) => command.is_admin,
            Self::Nothing
            | Self::BeginAfresh { .. }
            | Self::Inquire { .. }
            | Self::Link(_)
            | Self::ForgetMessage { .. }
            | Self::ForgetPerson
            | Self::ForgetChat => false,
        }
    }
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

crate::named! {
    /// What is looked up for a person, with the stored name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Inquiry {
        /// How things stand in the chat.
        Status = "status",
        /// What an agent would be sent.
        Context = "context",
        /// What an agent keeps of the older turns.
        Summary = "summary",
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
    use crate::words::check_text;

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
        for &name in CommandName::ALL {
            assert_eq!(CommandName::from_name(name.name()), Some(name));
            check_text(&format!("command_{}", name.name()), &[], false);
            for language in Language::ALL {
                assert!((1..=256).contains(&name.description(language).chars().count()));
            }
        }
        assert_eq!(CommandName::from_name("dance"), None);
    }
}
