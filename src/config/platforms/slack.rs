//! Slack's settings: their shape, their checks, and Slack's rules for ids and tokens.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{CheckedPlatform, PlatformDraft, PlatformFacts, PlatformSettings, token};
use crate::config::channels::{ChannelDraft, ChannelShape};
use crate::config::manners::SuggestedPromptShape;
use crate::config::resolve::Review;
use crate::config::secret::SecretRef;
use crate::config::settings::AgentView;
use vocative_core::sending::policy::Live;

/// The facts about Slack.
pub(in crate::config) const SLACK: PlatformFacts = PlatformFacts {
    name: "slack",
    title: "Slack",
    is_built: cfg!(feature = "slack"),
    shape: "SlackShape",
    sample: "#[channels.slack.acme]\n#app_token = \"env:SLACK_APP_TOKEN\"\n#bot_token = \"env:SLACK_BOT_TOKEN\"\n",
    sample_chat: "slack.acme.chats.C0123ABCD",
    has_streams: true,
    tells_privately: true,
    // On Slack, no slash command can be given in a thread.
    has_mentioned_commands: true,
    is_called_by_username: false,
    people: "a member",
    anybody: None,
    has_strangers: true,
    reaction: "its name on Slack (\"eyes\")",
    strange_secret,
    refused_secret: |_, _| None,
    #[cfg(test)]
    taken: &[
        "answer_guests",
        "answer_strangers",
        "custom_names",
        "thread_replies",
    ],
    from_start: &[
        "agent_view",
        "api_url",
        "app_token",
        "bot_token",
        "signing_secret",
        "sockets",
        "suggested_prompts",
        "transport",
    ],
};

/// How a Slack workspace's events come in.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum SlackTransportShape {
    /// Over sockets that the daemon opens (Socket Mode).
    Socket,
    /// Over requests that Slack makes (Events API).
    Http,
}

/// A Slack workspace.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub(in crate::config) struct SlackShape {
    /// How events come in.
    pub transport: SlackTransportShape,
    /// Where the app-level token (`xapp-`) is. Required with `transport = "socket"`.
    pub app_token: Option<SecretRef>,
    /// Where the app's signing secret is. Required with `transport = "http"`.
    pub signing_secret: Option<SecretRef>,
    /// Where the bot token (`xoxb-`) is. Required.
    pub bot_token: Option<SecretRef>,
    /// Address of the Web API.
    pub api_url: String,
    /// Sockets held open at the same time.
    #[schemars(range(min = 1, max = 10))]
    pub sockets: usize,
    /// Answer in a thread in channels.
    pub thread_replies: bool,
    /// Whether the app declares Slack's agent view.
    pub agent_view: bool,
    /// What people are suggested to ask there.
    #[schemars(length(max = 4))]
    pub suggested_prompts: Vec<SuggestedPromptShape>,
    /// Serve people of other organisations in shared channels.
    pub answer_strangers: bool,
    /// Serve guests of the workspace.
    pub answer_guests: bool,
    /// Whether posts of an agent stand under its name and icon, in place of a prefix.
    pub custom_names: bool,
    /// What it has like channels of other platforms.
    #[serde(flatten)]
    pub common: ChannelShape,
}

impl SlackShape {
    pub(super) fn draft(self, name: String) -> ChannelDraft {
        ChannelDraft {
            name,
            shape: self.common,
            serves_strangers: self.answer_strangers,
            serves_guests: self.answer_guests,
            custom_names: self.custom_names,
            answers_in_threads: self.thread_replies,
            commands: Vec::new(),
            // On Slack, a single message is never looked up.
            on_undecided: None,
            agent_view: self.agent_view.then(|| AgentView {
                prompts: self
                    .suggested_prompts
                    .into_iter()
                    .map(|prompt| (prompt.title, prompt.message))
                    .collect(),
            }),
            platform: Box::new(SlackDraft {
                transport: self.transport,
                app_token: self.app_token,
                signing_secret: self.signing_secret,
                bot_token: self.bot_token,
                api_url: self.api_url,
                sockets: self.sockets,
            }),
        }
    }
}

/// The settings that only a Slack channel has, as they are written.
struct SlackDraft {
    transport: SlackTransportShape,
    app_token: Option<SecretRef>,
    signing_secret: Option<SecretRef>,
    bot_token: Option<SecretRef>,
    api_url: String,
    sockets: usize,
}

impl SlackDraft {
    fn transport(&self, table: &str, review: &mut Review<'_>) -> Option<SlackTransport> {
        let (app_token, signing_secret) = (self.app_token.clone(), self.signing_secret.clone());
        match self.transport {
            SlackTransportShape::Socket => {
                if signing_secret.is_some() {
                    review.warn(
                        &format!("{table}.signing_secret"),
                        "is not used: transport = \"socket\" needs app_token; for requests that Slack signs \
                         set transport = \"http\"",
                    );
                }
                let what = "the app-level token (xapp-...)";
                let app_token = token(table, "app_token", what, app_token, review)?;
                Some(SlackTransport::Socket { app_token })
            }
            SlackTransportShape::Http => {
                let what = "the app's Signing Secret (Basic Information), which transport = \"http\" needs,";
                let signing_secret = token(table, "signing_secret", what, signing_secret, review)?;
                Some(SlackTransport::Http {
                    signing_secret,
                    app_token,
                })
            }
        }
    }
}

impl PlatformDraft for SlackDraft {
    fn facts(&self) -> &'static PlatformFacts {
        &SLACK
    }

    /// Source: Slack's guide for apps that stream.
    fn live_pace(&self, live: Live) -> Option<(&'static str, u64)> {
        let is_real = live != Live::Off && self.api_url.contains("//slack.com/");
        is_real.then_some(("Slack wants a message edited", 3_000))
    }

    fn tokens(&self) -> Vec<(&'static str, Option<&SecretRef>)> {
        vec![
            ("app_token", self.app_token.as_ref()),
            ("bot_token", self.bot_token.as_ref()),
        ]
    }

    fn refuses_id(&self, id: &str) -> Option<&'static str> {
        let is_id = id.len() > 1
            && id.starts_with(|c: char| c.is_ascii_uppercase())
            && id
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
        (!is_id).then_some(
            "Slack ids look like C0123ABCD: names change, ids don't; it is at the bottom of \
             the channel's or person's details",
        )
    }

    fn resolve(&self, table: &str, review: &mut Review<'_>) -> Option<PlatformSettings> {
        let api_url = review.url(&format!("{table}.api_url"), &self.api_url);
        let transport = self.transport(table, review);
        let what = "the bot token (xoxb-...)";
        let bot_token = token(table, "bot_token", what, self.bot_token.clone(), review);
        Some(PlatformSettings::Slack(SlackSettings {
            transport: transport?,
            bot_token: bot_token?,
            api_url,
            sockets: self.sockets,
        }))
    }
}

/// A Slack workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlackSettings {
    /// How events are received.
    pub transport: SlackTransport,
    /// Where the bot token is.
    pub bot_token: SecretRef,
    /// Address of the Web API, without a slash at its end.
    pub api_url: String,
    /// The number of sockets that are open at the same time.
    pub sockets: usize,
}

/// How events of a Slack workspace are received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlackTransport {
    /// Over sockets that the daemon opens.
    Socket {
        /// Where the app-level token is.
        app_token: SecretRef,
    },
    /// Over HTTP requests from Slack.
    Http {
        /// Where the secret is with which Slack signs its requests.
        signing_secret: SecretRef,
        /// Where the app-level token is; only a live check uses it.
        app_token: Option<SecretRef>,
    },
}

impl CheckedPlatform for SlackSettings {
    fn facts(&self) -> &'static PlatformFacts {
        &SLACK
    }

    fn secrets(&self) -> Vec<(&'static str, &SecretRef)> {
        let mut secrets = vec![("bot_token", &self.bot_token)];
        match &self.transport {
            SlackTransport::Socket { app_token } => secrets.insert(0, ("app_token", app_token)),
            SlackTransport::Http {
                signing_secret,
                app_token,
            } => {
                secrets.push(("signing_secret", signing_secret));
                secrets.extend(app_token.as_ref().map(|token| ("app_token", token)));
            }
        }
        secrets
    }
}

/// The prefixes of Slack's tokens, and the kind of each.
const SLACK_KINDS: [(&str, &str); 5] = [
    ("xapp-", "an app-level token"),
    ("xoxb-", "a bot token"),
    ("xoxp-", "a user's token"),
    ("xoxa-", "a workspace token"),
    (
        "xoxe",
        "a token that expires (token rotation, which is to be off)",
    ),
];

/// What looks wrong about the secret of a setting. It shows only the prefix that Slack gives to all secrets of the
/// kind.
fn strange_secret(setting: &str, secret: &str) -> Option<String> {
    match setting {
        "app_token" => another_kind(secret, "xapp-"),
        "bot_token" => another_kind(secret, "xoxb-"),
        "signing_secret" => {
            let kind = kind_of(secret)?;
            Some(format!(
                "begins like {kind}; the signing secret is under Basic Information, App Credentials"
            ))
        }
        _ => None,
    }
}

fn kind_of(secret: &str) -> Option<&'static str> {
    let found = SLACK_KINDS
        .iter()
        .find(|(prefix, _)| secret.starts_with(prefix));
    found.map(|(_, kind)| *kind)
}

fn another_kind(secret: &str, wanted: &str) -> Option<String> {
    let kind = kind_of(secret).filter(|_| !secret.starts_with(wanted))?;
    Some(format!(
        "begins like {kind}; this one begins with {wanted} (are two tokens in each other's place?)"
    ))
}
