//! A command that somebody gave and may use: what its decision hangs on, and the verdicts that commands share.

use crate::command::{CommandName, CommandVerdict, Effect};
use crate::ids::AgentName;
use crate::wall_clock::Zone;
use crate::words::Language;

/// What may stand behind the word of a command.
pub(crate) enum BehindWord {
    /// Nothing that counts.
    Nothing,
    /// The name of an agent.
    Agent,
    /// What the command reads by itself. The function says whether a text is meant for it where it might be a question
    /// to a model as well, behind a mention; the zone is that of times in it.
    Order(fn(&str, Zone) -> bool),
}

/// How commands are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandForm {
    /// Behind a command of the app's own: `/vocative new`.
    Behind,
    /// By themselves: `/new`.
    Plain,
    /// Behind a mention of the bot: `@Vocative new`.
    Mention,
}

/// A command as it was asked for, by somebody who may.
pub(crate) struct AskedCommand<'a> {
    /// The text behind its word.
    pub(crate) rest: &'a str,
    /// The agent that is named there, where one may be.
    pub(crate) agent: Option<AgentName>,
    /// The platform's id of its person.
    pub(crate) sender: &'a str,
    /// Whether they are an administrator.
    pub(crate) is_admin: bool,
    /// Whether it is a direct chat.
    pub(crate) is_direct: bool,
    /// Whether only they will see the answer.
    pub(crate) is_private: bool,
    /// The message it replies to, and whether its person wrote that.
    pub(crate) replied_to: Option<(&'a str, bool)>,
    /// Whether its person had all that they said forgotten within the last day.
    pub(crate) has_forgotten_lately: bool,
    /// How commands are written there.
    pub(crate) form: CommandForm,
    /// Where it was given.
    pub(crate) room: CommandRoom<'a>,
}

/// What commands need to know of the channel they are given in.
pub(crate) struct CommandRoom<'a> {
    /// The configured channel's name.
    pub(crate) channel: &'a str,
    /// The agents that serve it.
    pub(crate) agents: Vec<AgentName>,
    /// Who answers where none is named.
    pub(crate) default_agent: &'a AgentName,
    /// In which language people are answered.
    pub(crate) language: Language,
    /// The zone of times that people say.
    pub(crate) zone: Zone,
    /// Commands that only administrators may use.
    pub(crate) admins_only: &'a [CommandName],
    /// The bot's name, where a mention of it may stand before a command.
    pub(crate) mentioned_as: Option<&'a str>,
}

impl AskedCommand<'_> {
    /// It is only answered.
    pub(crate) fn told(&self, answer: String) -> CommandVerdict {
        self.done(Effect::Nothing, answer)
    }

    /// It does something, and its person is told at once.
    pub(crate) fn done(&self, effect: Effect, answer: String) -> CommandVerdict {
        CommandVerdict {
            effect,
            ..CommandVerdict::told(answer).told_in(self.is_private)
        }
    }

    /// It does something, and what its person is told is known only once it is carried out.
    pub(crate) fn told_later(&self, effect: Effect) -> CommandVerdict {
        CommandVerdict {
            is_admitted: true,
            effect,
            answer: None,
            is_private: self.is_private,
        }
    }

    /// It does something that everybody there sees the answer to, as it concerns them, too.
    pub(crate) fn told_to_all(&self, effect: Effect, answer: String) -> CommandVerdict {
        let is_private = self.is_private && self.is_direct;
        self.done(effect, answer).told_in(is_private)
    }
}
