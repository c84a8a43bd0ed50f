//! The platforms, in a file each: the shape of their settings, the checks, their secrets and samples, and the facts by
//! which other rooms tell them apart. Nothing else in the configuration names a platform.

mod api;
mod slack;
mod telegram;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Deserialize;

use self::slack::{SLACK, SlackShape};
use self::telegram::{TELEGRAM, TelegramShape};
use super::channels::ChannelDraft;
use super::resolve::Review;
use super::secret::SecretRef;
use super::settings::{AgentSettings, ModelConfig};
use vocative_core::ids::AgentName;
use vocative_core::sending::policy::Live;

pub(super) use self::api::add_api_channel;
pub use self::api::{API_CHANNEL, ApiChannelSettings};
pub use self::slack::{SlackSettings, SlackTransport};
pub use self::telegram::{TelegramSettings, TelegramTransport};

/// All platforms, in the order in which they are shown to people.
pub(super) const PLATFORMS: [&PlatformFacts; 2] = [&SLACK, &TELEGRAM];

/// The platform with messages to which text can be appended.
pub(super) fn with_streams() -> &'static PlatformFacts {
    let mut platforms = PLATFORMS.into_iter();
    platforms
        .find(|it| it.has_streams)
        .expect("one platform has them")
}

/// The tables of channels that can be added, as advice names them.
#[must_use]
pub fn channel_tables() -> String {
    PLATFORMS
        .map(|it| format!("[{}]", it.table("NAME")))
        .join(" or ")
}

/// What is different about a platform, for whoever does not name one.
pub struct PlatformFacts {
    /// Its name in tables: `[channels.NAME.acme]`, `[defaults.NAME]`.
    pub name: &'static str,
    /// Its name as people write it.
    pub title: &'static str,
    /// Whether this program has its adapter.
    pub is_built: bool,
    /// The name of its shape in the schema.
    pub shape: &'static str,
    /// A channel for the example file, commented out.
    pub sample: &'static str,
    /// The table of one chat of that channel.
    pub sample_chat: &'static str,
    /// Whether it has messages to which text can be appended.
    pub has_streams: bool,
    /// Whether something can be shown to one person alone.
    pub tells_privately: bool,
    /// Whether commands may stand behind a mention of the bot, because the platform's own can't be given everywhere.
    pub has_mentioned_commands: bool,
    /// Whether an account is called by the bot's username.
    pub is_called_by_username: bool,
    /// What its people are called, one of them.
    pub people: &'static str,
    /// What they are called where the bot serves anybody who finds it; `None` where it can't be found.
    pub anybody: Option<&'static str>,
    /// Whether its rooms may have people of other organisations.
    pub has_strangers: bool,
    /// How a reaction is written.
    pub reaction: &'static str,
    /// What looks wrong about the secret of a setting; `None` if nothing does, or if nothing is known about such
    /// secrets. It shows no more of a secret than the prefix that all of its kind have.
    pub strange_secret: fn(setting: &str, secret: &str) -> Option<String>,
    /// Why the platform does not accept the secret of a setting.
    pub refused_secret: fn(setting: &str, secret: &str) -> Option<&'static str>,
    /// Settings that only its channels have and that a reload applies.
    #[cfg(test)]
    pub taken: &'static [&'static str],
    /// Settings of its channels that apply only from the next start.
    pub from_start: &'static [&'static str],
}

impl PlatformFacts {
    /// The table of a channel.
    pub(super) fn table(&self, channel: &str) -> String {
        format!("channels.{}.{channel}", self.name)
    }

    /// The platform and the setting of a path like `channels.PLATFORM.CHANNEL.SETTING`.
    pub(super) fn of_key(key: &str) -> Option<(&'static Self, &str)> {
        let (platform, rest) = key.strip_prefix("channels.")?.split_once('.')?;
        let (_, setting) = rest.rsplit_once('.')?;
        let facts = PLATFORMS.into_iter().find(|it| it.name == platform)?;
        Some((facts, setting))
    }
}

/// The settings that only channels of one platform have, as they are written.
pub(super) trait PlatformDraft {
    /// Which platform it is.
    fn facts(&self) -> &'static PlatformFacts;

    /// What the platform accepts of an answer that is shown while it is written, and how often, in milliseconds. `None`
    /// if nothing is known, as for a sandbox.
    fn live_pace(&self, live: Live) -> Option<(&'static str, u64)>;

    /// The settings of tokens for signing in, and where their secrets are.
    fn tokens(&self) -> Vec<(&'static str, Option<&SecretRef>)>;

    /// Why a text can't be an id on this platform; `None` if it can.
    fn refuses_id(&self, id: &str) -> Option<&'static str>;

    /// The checked settings; `None` if a required one is missing.
    fn resolve(&self, table: &str, review: &mut Review<'_>) -> Option<PlatformSettings>;
}

/// Connections to platforms.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct ChannelsShape {
    /// Slack workspaces by name.
    #[serde(default)]
    pub slack: BTreeMap<String, SlackShape>,
    /// Telegram bots by name.
    #[serde(default)]
    pub telegram: BTreeMap<String, TelegramShape>,
}

impl ChannelsShape {
    /// All channels with their tables.
    pub(super) fn drafts(self) -> Vec<(String, ChannelDraft)> {
        let mut drafts = drafts_of(&SLACK, self.slack, SlackShape::draft);
        drafts.extend(drafts_of(&TELEGRAM, self.telegram, TelegramShape::draft));
        drafts
    }
}

fn drafts_of<S>(
    platform: &PlatformFacts,
    shapes: BTreeMap<String, S>,
    draft: fn(S, String) -> ChannelDraft,
) -> Vec<(String, ChannelDraft)> {
    let shapes = shapes.into_iter();
    shapes
        .map(|(name, shape)| (platform.table(&name), draft(shape, name)))
        .collect()
}

/// Values for all models, agents and channels that don't set their own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "merged into each table before this is read")]
pub(in crate::config) struct DefaultsShape {
    /// For every `[models.NAME]`.
    #[schemars(with = "ModelConfig")]
    pub model: serde_json::Map<String, serde_json::Value>,
    /// For every `[agents.NAME]`.
    #[schemars(with = "AgentSettings")]
    pub agent: serde_json::Map<String, serde_json::Value>,
    /// For every `[channels.slack.NAME]`.
    #[schemars(with = "SlackShape")]
    pub slack: serde_json::Map<String, serde_json::Value>,
    /// For every `[channels.telegram.NAME]`.
    #[schemars(with = "TelegramShape")]
    pub telegram: serde_json::Map<String, serde_json::Value>,
}

/// The checked settings that only one platform has.
trait CheckedPlatform {
    /// Which platform it is.
    fn facts(&self) -> &'static PlatformFacts;

    /// The references to secrets, by their settings.
    fn secrets(&self) -> Vec<(&'static str, &SecretRef)>;

    /// The agents that answer on the channel by the platform's settings; `None` = each agent's own settings decide.
    fn asked_agents(&self) -> Option<&BTreeSet<AgentName>> {
        None
    }
}

/// The settings that only one platform has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlatformSettings {
    /// A Slack workspace.
    Slack(SlackSettings),
    /// A Telegram bot.
    Telegram(TelegramSettings),
    /// The API's own channel.
    Api(ApiChannelSettings),
}

impl PlatformSettings {
    fn checked(&self) -> &dyn CheckedPlatform {
        match self {
            Self::Slack(slack) => slack,
            Self::Telegram(telegram) => telegram,
            Self::Api(api) => api,
        }
    }

    /// What is different about the platform.
    #[must_use]
    pub fn facts(&self) -> &'static PlatformFacts {
        self.checked().facts()
    }

    /// The agents that answer on the channel by the platform's settings; `None` = each agent's own settings decide.
    pub(super) fn asked_agents(&self) -> Option<&BTreeSet<AgentName>> {
        self.checked().asked_agents()
    }

    /// The references to secrets, by their settings' paths.
    pub(super) fn secrets(&self, channel: &str) -> Vec<(String, &SecretRef)> {
        super::under(&self.facts().table(channel), self.checked().secrets())
    }
}

/// The reference to a required secret.
fn token(
    table: &str,
    setting: &str,
    what: &str,
    reference: Option<SecretRef>,
    review: &mut Review<'_>,
) -> Option<SecretRef> {
    if reference.is_none() {
        review.advise(
            &format!("{table}.{setting}"),
            format!("is missing: say where {what} is"),
            Some(format!("{setting} = \"env:{}\"", setting.to_uppercase())),
        );
    }
    reference
}

#[cfg(test)]
mod tests {
    use vocative_contract::identity::Platform;

    use super::{PLATFORMS, PlatformFacts};

    #[test]
    fn every_platform_but_the_api_has_tables() {
        let all = Platform::ALL.iter().filter(|it| **it != Platform::Api);
        let all: Vec<&str> = all.map(|it| it.name()).collect();
        assert_eq!(PLATFORMS.map(|it| it.name).to_vec(), all);
    }

    #[test]
    fn tokens_in_each_others_place_are_seen_and_not_shown() {
        let table = [
            ("channels.slack.acme.app_token", "xapp-1-A", false),
            ("channels.slack.acme.app_token", "xoxb-1-B", true),
            ("channels.slack.acme.bot_token", "xapp-1-A", true),
            ("channels.slack.acme.bot_token", "xoxp-1-C", true),
            ("channels.slack.acme.bot_token", "xoxb-1-B", false),
            // A secret of an unknown kind is not judged.
            ("channels.slack.acme.bot_token", "loopback", false),
            ("channels.slack.acme.signing_secret", "xoxb-1-B", true),
            (
                "channels.slack.acme.signing_secret",
                "8f742231b10e8888",
                false,
            ),
            ("channels.telegram.home.token", "12:value", false),
            ("channels.telegram.home.token", "xoxb-1-B", true),
            ("channels.telegram.home.token", "@my_bot", true),
            ("api.token", "anything", false),
        ];
        for (key, secret, is_strange) in table {
            let found = PlatformFacts::of_key(key)
                .and_then(|(platform, setting)| (platform.strange_secret)(setting, secret));
            assert_eq!(found.is_some(), is_strange, "{key}: {found:?}");
            let shown = found.unwrap_or_default();
            assert!(!shown.contains("1-A") && !shown.contains("1-B") && !shown.contains("my_bot"));
        }
    }
}
