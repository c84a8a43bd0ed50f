//! The Telegram channel: who the bot is, its two halves, and the live check.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use secrecy::SecretString;

use crate::http::HttpTimeouts;
use vocative_contract::capability::{Capabilities, LengthUnit};
use vocative_contract::channel::{
    Announcement, BoxFuture, Channel, CheckReach, Finding, FindingLevel, Inbound,
};
use vocative_contract::clock::PlatformClock;
use vocative_contract::error::ChannelError;
use vocative_contract::file::FileSource;
use vocative_contract::handles::Outbound;
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::markup::one_line as label;
use vocative_contract::webhook::Receiver;

use super::api::{Parameters, TelegramApi};
use super::commands;
use super::dismissing::DismissingInbound;
use super::file::TelegramFiles;
use super::outbound::outbound;
use super::poll::{PollTimings, Poller};
use super::registration::{Registration, WantedWebhook, WebhookTimings, told};
use super::render::TEXT_MAX_UTF16;
use super::webhook::{Webhook, WebhookInbound, WebhookSecret};
use super::wire::{Me, WebhookInfo};

/// The public Bot API.
pub const DEFAULT_API_URL: &str = "https://api.telegram.org";

/// How long a poll waits at the server for an update, in seconds.
const DEFAULT_POLL_TIMEOUT_S: u32 = 30;

/// How long a call other than a poll may take by default, in milliseconds.
const DEFAULT_CALL_TIMEOUT_MS: u64 = 30_000;

const PRIVACY_MODE_WARNING: &str = "privacy mode is on: mentions of the bot in groups will not be \
    delivered, only replies to it and commands like /ask@bot. To hear mentions: in @BotFather send \
    /setprivacy, choose the bot, choose Disable, then remove the bot from each group and add it \
    again; or make the bot an administrator of the group";

/// Where Telegram delivers, and how.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// The part of the URL before `/telegram/NAME`, without a slash at its end.
    pub public_url: String,
    /// The secret that Telegram sends with every update; `None`: one that is derived from the token.
    pub secret: Option<SecretString>,
    /// How many chats are delivered at the same time, 1 to 100.
    pub max_connections: u32,
    /// The waits of the registration.
    pub timings: WebhookTimings,
}

/// How updates come in.
#[derive(Clone, Debug, Default)]
pub enum TelegramTransport {
    /// We ask for them.
    #[default]
    Poll,
    /// Telegram posts them.
    Webhook(WebhookSettings),
}

/// What a Telegram channel needs.
#[derive(Clone, Debug)]
pub struct TelegramSettings {
    /// The configured channel's name.
    pub name: String,
    /// Where the Bot API is.
    pub api_url: String,
    /// The bot's token.
    pub token: SecretString,
    /// How updates come in.
    pub transport: TelegramTransport,
    /// How long a poll waits at the server for an update, in seconds; the server takes up to 50.
    pub poll_timeout_s: u32,
    /// How long a call other than a poll may take, in milliseconds. After it a post's outcome is
    /// unknown.
    pub call_timeout_ms: u64,
    /// The waits of the poll loop.
    pub timings: PollTimings,
}

impl TelegramSettings {
    /// Settings for the public Bot API.
    #[must_use]
    pub fn new(name: impl Into<String>, token: SecretString) -> Self {
        Self {
            name: name.into(),
            api_url: DEFAULT_API_URL.to_owned(),
            token,
            transport: TelegramTransport::default(),
            poll_timeout_s: DEFAULT_POLL_TIMEOUT_S,
            call_timeout_ms: DEFAULT_CALL_TIMEOUT_MS,
            timings: PollTimings::default(),
        }
    }
}

/// A configured connection to one Telegram bot.
#[derive(Debug)]
pub struct TelegramChannel {
    settings: TelegramSettings,
    api: Arc<TelegramApi>,
    /// Whether people can have the bot write messages in its own name (inline mode), as `getMe` last said.
    has_inline_mode: Arc<AtomicBool>,
    /// Set where updates come over HTTP.
    webhook: Option<(Arc<Webhook>, WantedWebhook, WebhookTimings)>,
}

impl TelegramChannel {
    /// Makes the channel; nothing is called yet.
    #[must_use]
    pub fn new(settings: TelegramSettings) -> Self {
        let api = Arc::new(api(&settings));
        let webhook = match &settings.transport {
            TelegramTransport::Poll => None,
            TelegramTransport::Webhook(webhook) => {
                let secret = WebhookSecret::new(&settings.token, webhook.secret.as_ref());
                let wanted = WantedWebhook {
                    url: format!(
                        "{}{}?v={}",
                        webhook.public_url.trim_end_matches('/'),
                        Webhook::path(&settings.name),
                        secret.fingerprint
                    ),
                    secret: secret.secret.clone(),
                    max_connections: webhook.max_connections.clamp(1, 100),
                };
                let receiver = Arc::new(Webhook::new(
                    &settings.name,
                    secret.secret,
                    Arc::clone(api.clock()),
                ));
                Some((receiver, wanted, webhook.timings.clone()))
            }
        };
        Self {
            api,
            has_inline_mode: Arc::default(),
            settings,
            webhook,
        }
    }

    /// Another API client of the same bot, with connections of its own.
    fn another_api(&self) -> TelegramApi {
        api(&self.settings).timed_by(self.api.clock())
    }

    async fn me(&self) -> Result<Me, ChannelError> {
        self.api
            .call("getMe", &Parameters::new())
            .await
            .map_err(|failure| failure.into_error("getMe"))
    }

    async fn webhook_findings(&self) -> Vec<Finding> {
        let info: WebhookInfo = match self.api.call("getWebhookInfo", &Parameters::new()).await {
            Ok(info) => info,
            Err(failure) => {
                let reason = failure.into_error("getWebhookInfo").reason();
                return vec![finding(FindingLevel::Warning, reason)];
            }
        };
        let waiting = info.pending_update_count.unwrap_or_default();
        let what = match self.webhook {
            None => "fetched",
            Some(_) => "delivered",
        };
        let mut findings = vec![finding(
            FindingLevel::Fine,
            match waiting {
                1 => format!("1 update waits to be {what}"),
                _ => format!("{waiting} updates wait to be {what}"),
            },
        )];
        if let Some((_, wanted, _)) = &self.webhook {
            findings.extend(delivery_findings(&info, wanted));
        } else if info.is_set() {
            findings.push(finding(
                FindingLevel::Warning,
                "a webhook is set for this bot, so polling gets nothing; the daemon removes it \
                 when it starts. If another program needs it, give this channel a bot of its own",
            ));
        }
        findings
    }
}

impl Channel for TelegramChannel {
    fn identify(&self) -> BoxFuture<'_, Result<Identity, ChannelError>> {
        Box::pin(async move {
            let me = self.me().await?;
            let has_inline_mode = me.supports_inline_queries;
            self.has_inline_mode
                .store(has_inline_mode, Ordering::Relaxed);
            Ok(identity(&me))
        })
    }

    fn inbound(&self, identity: &Identity) -> Box<dyn Inbound> {
        let inbound: Box<dyn Inbound> = match &self.webhook {
            Some((webhook, wanted, timings)) => {
                let (api, timings) = (self.another_api(), timings.clone());
                let name = &self.settings.name;
                Box::new(WebhookInbound {
                    webhook: Arc::clone(webhook),
                    identity: identity.clone(),
                    registration: Registration::new(name, api, wanted.clone(), timings),
                })
            }
            None => Box::new(Poller::new(
                &self.settings,
                identity.clone(),
                self.api.clock(),
            )),
        };
        Box::new(DismissingInbound {
            api: Arc::clone(&self.api),
            inbound,
        })
    }

    fn outbound(&self, _identity: &Identity) -> Outbound {
        let has_inline_mode = Arc::clone(&self.has_inline_mode);
        outbound(Arc::clone(&self.api), has_inline_mode)
    }

    fn receiver(&self) -> Option<Arc<dyn Receiver>> {
        let (webhook, ..) = self.webhook.as_ref()?;
        Some(Arc::clone(webhook) as Arc<dyn Receiver>)
    }

    fn announce<'a>(
        &'a self,
        announcement: &'a Announcement,
    ) -> BoxFuture<'a, Result<bool, ChannelError>> {
        Box::pin(commands::announce(&self.api, announcement))
    }

    fn files(&self, _identity: &Identity) -> Option<Arc<dyn FileSource>> {
        Some(Arc::new(TelegramFiles::new(Arc::clone(&self.api))))
    }

    fn clock(&self) -> Option<Arc<PlatformClock>> {
        Some(Arc::clone(self.api.clock()))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            text_max: TEXT_MAX_UTF16,
            text_unit: LengthUnit::Utf16,
            has_threads: false,
            has_replies: true,
            can_read_back: false,
            can_read_history: false,
            uploads_files: true,
            echoes_posts: false,
            // Telegram shows the sign for up to 5 seconds.
            working_sign_ms: 4_000,
            chat_interval_ms: 1_000,
            // A group takes 20 posts and edits a minute; live edits use half of them, so that answers don't wait.
            live_edit_ms: 6_000,
            live_preview_ms: 1_000,
            live_stream_ms: 0,
        }
    }

    /// Never polls, whatever the reach: a poll would replace the daemon's own (409).
    fn check(&self, _reach: CheckReach) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(async move {
            let me = match self.me().await {
                Ok(me) => me,
                Err(error) => return vec![unreachable_finding(&error)],
            };
            let identity = identity(&me);
            let mut findings = vec![finding(
                FindingLevel::Fine,
                format!("the token is that of @{}", identity.account_name),
            )];
            let warnings = identity.warnings.into_iter();
            findings.extend(warnings.map(|text| finding(FindingLevel::Warning, text)));
            if me.can_read_all_group_messages == Some(true) {
                findings.push(finding(
                    FindingLevel::Fine,
                    "privacy mode is off: the bot hears its groups",
                ));
            }
            findings.extend(self.webhook_findings().await);
            findings
        })
    }
}

fn api(settings: &TelegramSettings) -> TelegramApi {
    let timeouts = HttpTimeouts {
        total_ms: settings.call_timeout_ms,
        ..HttpTimeouts::default()
    };
    TelegramApi::new(&settings.api_url, settings.token.clone(), timeouts)
}

/// What Telegram says of a webhook that this channel relies on.
fn delivery_findings(info: &WebhookInfo, wanted: &WantedWebhook) -> Vec<Finding> {
    let mut findings = Vec::new();
    if wanted.is_set(info) {
        findings.push(finding(
            FindingLevel::Fine,
            "Telegram delivers to this channel's public_url",
        ));
    } else if info.is_set() {
        findings.push(finding(
            FindingLevel::Warning,
            "Telegram delivers somewhere else or other things; the daemon changes that when it starts. If \
             another program needs its webhook, give this channel a bot of its own",
        ));
    } else {
        findings.push(finding(
            FindingLevel::Warning,
            "no webhook is set yet; the daemon sets it when it starts",
        ));
    }
    if let Some(message) = info.last_error_message.as_deref() {
        findings.push(finding(
            FindingLevel::Warning,
            format!("the last delivery that failed: {}", told(message)),
        ));
    }
    findings
}

fn identity(me: &Me) -> Identity {
    let username = me.username.as_deref().and_then(label);
    let id = me.id.to_string();
    let mut warnings = Vec::new();
    if me.can_read_all_group_messages != Some(true) {
        warnings.push(PRIVACY_MODE_WARNING.to_owned());
    }
    Identity {
        platform: Platform::Telegram,
        account: id.clone(),
        account_name: username.clone().unwrap_or_else(|| id.clone()),
        user_id: id.clone(),
        other_ids: Vec::new(),
        display_name: me
            .first_name
            .as_deref()
            .and_then(label)
            .or_else(|| username.clone())
            .unwrap_or(id),
        username,
        warnings,
        organisation: None,
    }
}

fn unreachable_finding(error: &ChannelError) -> Finding {
    let text = match error {
        ChannelError::Unauthorized { reason, .. } => format!(
            "Telegram refuses the token: {reason}; copy it again from @BotFather, and if api_url is \
             set, check that too"
        ),
        ChannelError::RetryAfter { .. } => format!("{}; try again later", error.reason()),
        _ => format!(
            "Telegram cannot be asked: {}; check the network and api_url",
            error.reason()
        ),
    };
    finding(FindingLevel::of(error), text)
}

fn finding(level: FindingLevel, text: impl Into<String>) -> Finding {
    Finding {
        level,
        text: text.into(),
    }
}
