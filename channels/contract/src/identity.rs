//! Who a channel turns out to be on its platform, and who wrote a message.

/// A chat platform.
///
/// The name is stored with every account, so it never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Platform {
    /// Slack.
    Slack,
    /// Telegram.
    Telegram,
    /// The daemon's own API: what programs ask is captured like people's messages, and nothing is posted anywhere.
    Api,
}

impl Platform {
    /// The stored and configured name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Slack => "slack",
            Self::Telegram => "telegram",
            Self::Api => "api",
        }
    }

    /// A text without markup as the platform takes it in a post. *Source:* Slack's control characters are `&`, `<` and
    /// `>`.
    #[must_use]
    pub fn as_text(self, text: &str) -> String {
        match self {
            Self::Slack => text
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;"),
            Self::Telegram | Self::Api => text.to_owned(),
        }
    }

    /// The platform of a stored name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Slack, Self::Telegram, Self::Api]
            .into_iter()
            .find(|platform| platform.name() == name)
    }
}

/// The platform identity of a channel, learnt at start (`auth.test`, `getMe`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Which platform.
    pub platform: Platform,
    /// The account: Slack team id, Telegram bot id.
    pub account: String,
    /// What people call the account: the Slack workspace name, the Telegram bot's username.
    pub account_name: String,
    /// The bot's own user id, as it appears as a sender and in mentions.
    pub user_id: String,
    /// Other ids under which the bot's own posts may appear (Slack `bot_id`).
    pub other_ids: Vec<String>,
    /// The bot's username without `@`, where the platform has one.
    pub username: Option<String>,
    /// The bot's display name.
    pub display_name: String,
    /// Warnings for the operator at start, in plain words (privacy mode hides mentions, missing scopes).
    pub warnings: Vec<String>,
    /// The organisation that the account belongs to, if it is one of several (Slack `enterprise_id`).
    pub organisation: Option<String>,
}

impl Identity {
    /// Whether a platform user id is the bot itself.
    #[must_use]
    pub fn is_self(&self, id: &str) -> bool {
        self.user_id == id || self.other_ids.iter().any(|other| other == id)
    }
}
