//! Telegram's settings: their shape, their checks, and Telegram's rules for ids, tokens and webhooks.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{CheckedPlatform, PlatformDraft, PlatformFacts, PlatformSettings, token};
use crate::config::channels::{ChannelDraft, ChannelShape};
use crate::config::resolve::Review;
use crate::config::secret::SecretRef;
use vocative_core::sending::policy::{Live, OnUndecided};

/// The facts about Telegram.
pub(in crate::config) const TELEGRAM: PlatformFacts = PlatformFacts {
    name: "telegram",
    title: "Telegram",
    is_built: cfg!(feature = "telegram"),
    shape: "TelegramShape",
    sample: "#[channels.telegram.home]\n#token = \"env:TELEGRAM_TOKEN\"\n#allow_chats = [-1001234567890]\n#allow_people = [1234567]\n",
    sample_chat: "telegram.home.chats.-1001234567890",
    has_streams: false,
    tells_privately: false,
    has_mentioned_commands: false,
    is_called_by_username: true,
    people: "whoever is served",
    anybody: Some("anybody on Telegram"),
    has_strangers: false,
    reaction: "the emoji itself on Telegram",
    strange_secret: |setting, secret| match setting {
        "token" => strange_token(secret),
        _ => None,
    },
    refused_secret: |setting, secret| match setting {
        "webhook_secret" => refused_secret(secret),
        _ => None,
    },
    #[cfg(test)]
    taken: &["commands", "on_undecided"],
    from_start: &[
        "api_url",
        "max_connections",
        "public_url",
        "token",
        "transport",
        "webhook_secret",
    ],
};

/// The ports to which Telegram delivers. Source: Bot API, `setWebhook`.
const TELEGRAM_PORTS: [u16; 4] = [443, 80, 88, 8443];
/// The API host whose webhooks must be public. Any other host is the operator's own Bot API server, which accepts more.
const TELEGRAM_HOST: &str = "api.telegram.org";

/// How a Telegram bot's updates come in.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum TelegramTransportShape {
    /// The daemon asks for them (long polling).
    Poll,
    /// Telegram posts them.
    Webhook,
}

/// A Telegram bot.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub(in crate::config) struct TelegramShape {
    /// Where the bot's token is. Required.
    pub token: Option<SecretRef>,
    /// Address of the Bot API.
    pub api_url: String,
    /// How updates come in.
    pub transport: TelegramTransportShape,
    /// The address under which Telegram reaches `[webhooks]`. Required with `transport = "webhook"`.
    pub public_url: Option<String>,
    /// Where the secret is that Telegram sends with every update.
    pub webhook_secret: Option<SecretRef>,
    /// Chats that Telegram delivers at the same time.
    #[schemars(range(min = 1, max = 100))]
    pub max_connections: u32,
    /// Commands that address the default agent, without the slash.
    pub commands: Vec<String>,
    /// As in `[delivery]`, for this channel.
    pub on_undecided: Option<OnUndecided>,
    /// What it has like channels of other platforms.
    #[serde(flatten)]
    pub common: ChannelShape,
}

impl TelegramShape {
    pub(super) fn draft(self, name: String) -> ChannelDraft {
        ChannelDraft {
            name,
            shape: self.common,
            // Telegram has no organisations, so nobody who is listed is a stranger.
            serves_strangers: true,
            serves_guests: true,
            custom_names: false,
            answers_in_threads: false,
            commands: self.commands,
            on_undecided: self.on_undecided,
            agent_view: None,
            platform: Box::new(TelegramDraft {
                token: self.token,
                api_url: self.api_url,
                transport: self.transport,
                public_url: self.public_url,
                webhook_secret: self.webhook_secret,
                max_connections: self.max_connections,
            }),
        }
    }
}

/// The settings that only a Telegram channel has, as they are written.
struct TelegramDraft {
    token: Option<SecretRef>,
    api_url: String,
    transport: TelegramTransportShape,
    public_url: Option<String>,
    webhook_secret: Option<SecretRef>,
    max_connections: u32,
}

impl TelegramDraft {
    fn transport(
        &self,
        table: &str,
        api_url: &str,
        review: &mut Review<'_>,
    ) -> Option<TelegramTransport> {
        match self.transport {
            TelegramTransportShape::Poll => {
                for (setting, is_set) in [
                    ("public_url", self.public_url.is_some()),
                    ("webhook_secret", self.webhook_secret.is_some()),
                ] {
                    if is_set {
                        review.warn(
                            &format!("{table}.{setting}"),
                            "is not used: transport = \"poll\" asks Telegram; to be called set transport = \
                             \"webhook\"",
                        );
                    }
                }
                Some(TelegramTransport::Poll)
            }
            TelegramTransportShape::Webhook => {
                let key = format!("{table}.public_url");
                let Some(public_url) = &self.public_url else {
                    review.advise(
                        &key,
                        "is missing: transport = \"webhook\" needs the address under which Telegram reaches \
                         [webhooks]",
                        Some("public_url = \"https://bot.example.org\"".to_owned()),
                    );
                    return None;
                };
                let public_url = review.url(&key, public_url);
                if is_host(api_url, TELEGRAM_HOST) {
                    check_public(&key, &public_url, review);
                }
                if public_url.contains(['?', '#']) {
                    review.problem(
                        &key,
                        "must end before any ? or #; /telegram/NAME is added to it",
                    );
                }
                Some(TelegramTransport::Webhook {
                    public_url,
                    secret: self.webhook_secret.clone(),
                    max_connections: self.max_connections,
                })
            }
        }
    }
}

impl PlatformDraft for TelegramDraft {
    fn facts(&self) -> &'static PlatformFacts {
        &TELEGRAM
    }

    /// Source: Telegram's limit of 20 messages a minute in a group, of which edits may take half.
    fn live_pace(&self, live: Live) -> Option<(&'static str, u64)> {
        match live {
            Live::Off => None,
            _ if !self.api_url.contains(TELEGRAM_HOST) => None,
            Live::Auto => Some(("Telegram takes drafts", 1_000)),
            _ => Some(("Telegram lets a message be edited", 6_000)),
        }
    }

    fn tokens(&self) -> Vec<(&'static str, Option<&SecretRef>)> {
        vec![("token", self.token.as_ref())]
    }

    fn refuses_id(&self, id: &str) -> Option<&'static str> {
        id.parse::<i64>().is_err().then_some(
            "Telegram ids are numbers: `vocative check` and the log name those of chats that are \
             not served yet",
        )
    }

    fn resolve(&self, table: &str, review: &mut Review<'_>) -> Option<PlatformSettings> {
        let api_url = review.url(&format!("{table}.api_url"), &self.api_url);
        let what = "the token from BotFather";
        let own = token(table, "token", what, self.token.clone(), review);
        let transport = self.transport(table, &api_url, review);
        Some(PlatformSettings::Telegram(TelegramSettings {
            token: own?,
            api_url,
            transport: transport?,
        }))
    }
}

/// A Telegram bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelegramSettings {
    /// Where the token is.
    pub token: SecretRef,
    /// Address of the Bot API, without a slash at its end.
    pub api_url: String,
    /// How updates are received.
    pub transport: TelegramTransport,
}

/// How updates of a Telegram bot are received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TelegramTransport {
    /// The daemon requests them.
    Poll,
    /// Telegram posts them.
    Webhook {
        /// The URL in front of `/telegram/NAME`, without a slash at its end.
        public_url: String,
        /// Where the secret is that Telegram sends; `None` = it is derived from the token.
        secret: Option<SecretRef>,
        /// The number of chats that are delivered at the same time.
        max_connections: u32,
    },
}

impl CheckedPlatform for TelegramSettings {
    fn facts(&self) -> &'static PlatformFacts {
        &TELEGRAM
    }

    fn secrets(&self) -> Vec<(&'static str, &SecretRef)> {
        let mut secrets = vec![("token", &self.token)];
        if let TelegramTransport::Webhook {
            secret: Some(secret),
            ..
        } = &self.transport
        {
            secrets.push(("webhook_secret", secret));
        }
        secrets
    }
}

/// Why Telegram does not accept a text as a secret; `None` if it does.
fn refused_secret(secret: &str) -> Option<&'static str> {
    let is_taken = (1..=256).contains(&secret.len())
        && secret
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    (!is_taken).then_some(
        "is no secret that Telegram takes: 1 to 256 of A-Z, a-z, 0-9, _ and -; leave it out for one that \
         follows from the token",
    )
}

fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

fn is_host(url: &str, host: &str) -> bool {
    authority(url).split(':').next() == Some(host)
}

/// Checks Telegram's own rules for an address to deliver to.
fn check_public(key: &str, url: &str, review: &mut Review<'_>) {
    if url.starts_with("http://") {
        review.problem(
            key,
            "must start with https://: Telegram delivers only with TLS; a proxy in front of [webhooks] \
             brings it",
        );
    }
    let port = authority(url).rsplit_once(':').map(|(_, port)| port);
    let port = port.filter(|port| !port.ends_with(']'));
    let is_port = |port: &str| {
        port.parse()
            .is_ok_and(|port| TELEGRAM_PORTS.contains(&port))
    };
    if let Some(port) = port.filter(|port| !is_port(port)) {
        review.problem(
            key,
            format!("has port {port}; Telegram delivers to 443, 80, 88 and 8443 only"),
        );
    }
}

/// Source: Telegram Bot API, "Authorizing your bot": `123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11`.
fn strange_token(secret: &str) -> Option<String> {
    let is_token = secret.split_once(':').is_some_and(|(id, rest)| {
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) && !rest.is_empty()
    });
    (!is_token).then(|| {
        "is no token of a bot: @BotFather's are digits, a colon and letters, like 123456:ABC-DEF"
            .to_owned()
    })
}
