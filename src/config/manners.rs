//! Checks of a channel's `manners`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::platforms::PLATFORMS;
use super::resolve::Review;
use vocative_core::command::CommandName;
use vocative_core::manners::Manners;
use vocative_core::wall_clock::{QuietHours, Zone};
use vocative_core::words::Language;

/// The longest introduction, in characters.
const INTRODUCTION_MAX_CHARS: usize = 2_000;
/// The longest name of a reaction, in characters.
const REACTION_MAX_CHARS: usize = 100;

/// What becomes of the reaction once the message is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum AfterAnswer {
    /// It is taken away.
    Remove,
    /// It stays.
    Keep,
}

/// Something people may want to ask.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SuggestedPromptShape {
    /// What is shown.
    pub title: String,
    /// What is said when it is chosen.
    pub message: String,
}

/// How the bot behaves in a channel.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MannersShape {
    /// Whether commands (`/vocative` on Slack, `/help` and the like on Telegram) are carried out.
    pub commands: bool,
    /// Commands that only `admins` may use.
    pub admin_commands: Vec<CommandName>,
    /// The reaction to a message that will be answered; empty = none.
    pub ack_reaction: String,
    /// What becomes of it once the message is answered.
    pub ack_reaction_after: AfterAnswer,
    /// Answers to other bots in a row, in one chat, without a word of a person.
    #[schemars(range(min = 1, max = 100))]
    pub bot_exchanges_max: u32,
    /// When nothing is answered, like `22:00-07:00`; empty = never.
    pub quiet_hours: String,
    /// The zone of these hours, and of times that people say to /remind and /schedule: a place of the IANA
    /// database like `Europe/Berlin`, whose summer time is followed, `UTC`, or a distance from it like `+01:00`.
    pub time_zone: String,
    /// Whether they hold in direct chats, too.
    pub quiet_in_direct: bool,
    /// Whether a word to everybody (`@here`, `@channel`) addresses the default agent.
    pub broadcast_addresses: bool,
    /// What is said in a room that the bot was added to; empty = nothing.
    pub introduction: String,
    /// Seconds within which an edit of a question changes its answer; 0 = never.
    #[schemars(range(min = 0, max = 86_400))]
    pub edit_answer_within_s: u32,
}

impl MannersShape {
    /// Checks the settings. The result is to be used only if no problem was found.
    pub(super) fn resolve(
        &self,
        table: &str,
        language: Language,
        review: &mut Review<'_>,
    ) -> Manners {
        let table = format!("{table}.manners");
        let quiet = QuietHours::read(&self.quiet_hours, &self.time_zone);
        let has_zone = Zone::read(&self.time_zone).is_some();
        if !has_zone || (!self.quiet_hours.is_empty() && quiet.is_none()) {
            let (key, what, hint) = if has_zone {
                let what = format!("\"{}\" is no part of a day", self.quiet_hours);
                ("quiet_hours", what, "write \"22:00-07:00\": from and until")
            } else {
                let what = format!("\"{}\" is no time zone", self.time_zone);
                let hint = "write a place of the IANA database as it is spelt there (\"Europe/Berlin\"), \
                            \"UTC\", or a distance from it (\"+01:00\")";
                ("time_zone", what, hint)
            };
            review.advise(&format!("{table}.{key}"), what, Some(hint.to_owned()));
        }
        let reaction = self.ack_reaction.trim_matches(':');
        let is_word = !reaction.chars().any(char::is_whitespace);
        if !is_word || reaction.chars().count() > REACTION_MAX_CHARS {
            review.advise(
                &format!("{table}.ack_reaction"),
                "is no single emoji",
                Some(format!(
                    "write {}",
                    PLATFORMS.map(|it| it.reaction).join(", ")
                )),
            );
        }
        if self.introduction.chars().count() > INTRODUCTION_MAX_CHARS {
            review.problem(
                &format!("{table}.introduction"),
                format!("has more than {INTRODUCTION_MAX_CHARS} characters"),
            );
        }
        Manners {
            language,
            commands: self.commands,
            admins_only: self.admin_commands.clone(),
            ack_reaction: reaction.to_owned(),
            keeps_ack_reaction: self.ack_reaction_after == AfterAnswer::Keep,
            bot_exchanges_max: self.bot_exchanges_max,
            zone: Zone::read(&self.time_zone).unwrap_or_default(),
            quiet,
            is_quiet_in_direct: self.quiet_in_direct,
            quiet_in: BTreeMap::new(),
            broadcast_addresses: self.broadcast_addresses,
            introduction: self.introduction.trim().to_owned(),
            edit_answer_within_ms: i64::from(self.edit_answer_within_s) * 1_000,
        }
    }
}
