//! Who a channel turns out to be on its platform, and who wrote a message.

/// Makes [`Platform`] of a table: variant, name, and how a text without markup is written in a post.
macro_rules! platforms {
    ($($(#[$doc:meta])* $variant:ident: $name:literal, $as_text:path;)*) => {
        /// A chat platform.
        ///
        /// The name is stored with every account, so it never changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Platform {
            $($(#[$doc])* $variant,)*
        }

        impl Platform {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The stored and configured name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// A text without markup as the platform takes it in a post.
            #[must_use]
            pub fn as_text(self, text: &str) -> String {
                match self {
                    $(Self::$variant => $as_text(text),)*
                }
            }
        }
    };
}

platforms! {
    /// Slack.
    Slack: "slack", without_control_characters;
    /// Telegram.
    Telegram: "telegram", str::to_owned;
    /// The daemon's own API: what programs ask is captured like people's messages, and nothing is posted anywhere.
    Api: "api", str::to_owned;
}

impl Platform {
    /// The platform of a stored name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|platform| platform.name() == name)
    }
}

/// *Source:* Slack's control characters are `&`, `<` and `>`.
fn without_control_characters(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
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

#[cfg(test)]
mod tests {
    use super::Platform;

    /// Names are stored: this list only grows.
    #[test]
    fn a_platform_is_found_by_the_name_that_is_stored() {
        let names = ["slack", "telegram", "api"];
        assert_eq!(Platform::ALL.len(), names.len());
        for (platform, name) in Platform::ALL.iter().zip(names) {
            assert_eq!(platform.name(), name);
            assert_eq!(Platform::from_name(name), Some(*platform));
        }
        assert_eq!(Platform::from_name("Slack"), None);
    }

    #[test]
    fn a_text_is_written_as_its_platform_takes_it() {
        let text = "<a> & b";
        assert_eq!(Platform::Slack.as_text(text), "&lt;a&gt; &amp; b");
        assert_eq!(Platform::Telegram.as_text(text), text);
    }
}
