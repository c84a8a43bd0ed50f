//! Slack's settings: their shape, their checks, and what Slack says of ids and tokens.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{PlatformDraft, PlatformFacts, PlatformSettings, token};
use crate::config::channels::ChannelDraft;
use crate::config::manners::{MannersShape, SuggestedPromptShape};
use crate::config::resolve::Review;
use crate::config::secret::SecretRef;
use crate::config::settings::{AgentView, PlatformId, ReplyPrefix, RetentionDays};
use crate::config::shape::{CHAT_PATTERN, ChatShape};
use vocative_core::judging::policy::ThreadPolicy;
use vocative_core::sending::policy::{Live, OnUnknown};
use vocative_core::words::Language;

/// What the configuration needs to know of Slack.
pub(in crate::config) const SLACK: PlatformFacts = PlatformFacts {
    name: "slack",
    title: "Slack",
    is_built: cfg!(feature = "slack"),
    shape: "SlackShape",
    sample: "#[channels.slack.acme]\n#app_token = \"env:SLACK_APP_TOKEN\"\n#bot_token = \"env:SLACK_BOT_TOKEN\"\n",
    sample_chat: "slack.acme.chats.C0123ABCD",
    has_streams: true,
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
#[serde(deny_unknown_fields)]
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
    /// The agent that answers when no alias picks one.
    pub default_agent: Option<String>,
    /// Chats that are served, by id, or `*`.
    pub allow_chats: Vec<PlatformId>,
    /// People who are served, by id, or `*`.
    pub allow_people: Vec<PlatformId>,
    /// Whether whoever is not listed is told a code in a direct chat, with which an operator lets them in there.
    pub pairing: bool,
    /// People who may use admin commands, by id.
    pub admins: Vec<PlatformId>,
    /// Other bots that may address an agent, by id, or `*`.
    pub allow_bots: Vec<PlatformId>,
    /// What counts as a follow-up in a thread.
    pub thread_policy: ThreadPolicy,
    /// Whether an answer starts with its agent's name.
    pub reply_prefix: ReplyPrefix,
    /// Whether posts of an agent stand under its name and icon, in place of a prefix.
    pub custom_names: bool,
    /// Whether `@Name` in an answer tells somebody who spoke in the conversation.
    pub mention_people: bool,
    /// The language of notices, answers to commands and cards. Agents answer in the language that they are asked in.
    pub language: Language,
    /// As in `[capture]`, for this channel.
    #[schemars(range(min = 1, max = 5_256_000))]
    pub max_trigger_age_minutes: Option<u64>,
    /// As in `[delivery]`, for this channel.
    pub on_unknown: Option<OnUnknown>,
    /// As in `[delivery]`, for this channel.
    pub live: Option<Live>,
    /// As in `[limits]`, for this channel.
    pub max_runs_per_hour_person: Option<u32>,
    /// As in `[limits]`, for this channel.
    pub max_runs_per_hour_chat: Option<u32>,
    /// As in `[limits]`, for this channel.
    pub tokens_per_day: Option<u64>,
    /// As in `[limits]`, for this channel.
    pub tokens_per_day_person: Option<u64>,
    /// As in `[limits]`, for this channel.
    #[schemars(range(min = 0.0))]
    pub cost_per_day: Option<f64>,
    /// As in `[limits]`, for this channel.
    #[schemars(range(min = 0.0))]
    pub cost_per_day_person: Option<f64>,
    /// Settings of single chats, by the platform's id of the chat.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "pattern": CHAT_PATTERN }))]
    pub chats: BTreeMap<String, ChatShape>,
    /// Days for which its data is kept.
    pub retention_days: RetentionDays,
    /// How the bot behaves there.
    pub manners: MannersShape,
}

impl SlackShape {
    pub(super) fn draft(self, name: String) -> ChannelDraft {
        ChannelDraft {
            name,
            default_agent: self.default_agent,
            lists: [
                ("allow_chats", self.allow_chats),
                ("allow_people", self.allow_people),
                ("admins", self.admins),
                ("allow_bots", self.allow_bots),
            ],
            has_pairing: self.pairing,
            serves_strangers: self.answer_strangers,
            serves_guests: self.answer_guests,
            thread_policy: self.thread_policy,
            reply_prefix: self.reply_prefix,
            custom_names: self.custom_names,
            mention_people: self.mention_people,
            language: self.language,
            answers_in_threads: self.thread_replies,
            commands: Vec::new(),
            max_trigger_age_minutes: self.max_trigger_age_minutes,
            on_unknown: self.on_unknown,
            // Slack is never asked about single messages.
            on_undecided: None,
            live: self.live,
            max_runs_per_hour_person: self.max_runs_per_hour_person,
            max_runs_per_hour_chat: self.max_runs_per_hour_chat,
            tokens_per_day: self.tokens_per_day,
            tokens_per_day_person: self.tokens_per_day_person,
            cost_per_day: self.cost_per_day,
            cost_per_day_person: self.cost_per_day_person,
            chats: self.chats,
            retention_days: self.retention_days,
            manners: self.manners,
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

/// What only a Slack channel has, as written.
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
    /// How events come in.
    pub transport: SlackTransport,
    /// Where the bot token is.
    pub bot_token: SecretRef,
    /// Address of the Web API, without a slash at its end.
    pub api_url: String,
    /// Sockets held open at the same time.
    pub sockets: usize,
}

/// How a Slack workspace's events come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlackTransport {
    /// Over sockets that the daemon opens.
    Socket {
        /// Where the app-level token is.
        app_token: SecretRef,
    },
    /// Over requests that Slack makes.
    Http {
        /// Where the secret is with which Slack signs them.
        signing_secret: SecretRef,
        /// Where the app-level token is; only a live check has a use for it.
        app_token: Option<SecretRef>,
    },
}

impl SlackSettings {
    /// The references to secrets, by their settings.
    pub(super) fn secrets(&self) -> Vec<(&'static str, &SecretRef)> {
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

/// What Slack's tokens begin with, and what each is.
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

/// What is strange about the secret of a setting. It shows of the secret only the prefix that Slack gives to all
/// of its kind.
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
