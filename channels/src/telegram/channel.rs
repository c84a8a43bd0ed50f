//! The Telegram channel: who the bot is, its two halves, and the live check.

use std::sync::Arc;

use secrecy::SecretString;

use crate::capability::{Capabilities, LengthUnit};
use crate::channel::{BoxFuture, Channel, CheckReach, Finding, FindingLevel, Inbound, Outbound};
use crate::error::ChannelError;
use crate::http::HttpTimeouts;
use crate::identity::{Identity, Platform};
use crate::markup::one_line as label;

use super::api::{Api, Parameters};
use super::outbound::TelegramOutbound;
use super::poll::{PollTimings, Poller};
use super::render::TEXT_MAX_UTF16;
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

/// What a Telegram channel needs.
#[derive(Clone, Debug)]
pub struct TelegramSettings {
    /// The configured channel's name.
    pub name: String,
    /// Where the Bot API is.
    pub api_url: String,
    /// The bot's token.
    pub token: SecretString,
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
    api: Arc<Api>,
}

impl TelegramChannel {
    /// Makes the channel; nothing is called yet.
    #[must_use]
    pub fn new(settings: TelegramSettings) -> Self {
        let timeouts = HttpTimeouts {
            total_ms: settings.call_timeout_ms,
            ..HttpTimeouts::default()
        };
        let api = Api::new(&settings.api_url, settings.token.clone(), timeouts);
        Self {
            settings,
            api: Arc::new(api),
        }
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
        let mut findings = vec![finding(
            FindingLevel::Fine,
            match waiting {
                1 => "1 update waits to be fetched".to_owned(),
                _ => format!("{waiting} updates wait to be fetched"),
            },
        )];
        if info.is_set() {
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
        Box::pin(async move { Ok(identity(&self.me().await?)) })
    }

    fn inbound(&self, identity: &Identity) -> Box<dyn Inbound> {
        Box::new(Poller::new(&self.settings, identity.clone()))
    }

    fn outbound(&self, _identity: &Identity) -> Arc<dyn Outbound> {
        Arc::new(TelegramOutbound::new(Arc::clone(&self.api)))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            text_max: TEXT_MAX_UTF16,
            text_unit: LengthUnit::Utf16,
            has_threads: false,
            has_replies: true,
            can_read_back: false,
            can_read_history: false,
            echoes_posts: false,
            // Shown for up to 5 seconds.
            working_sign_ms: 4_000,
            chat_interval_ms: 1_000,
            // A group takes 20 posts and edits a minute: half of them, so that answers don't wait.
            live_edit_ms: 6_000,
            live_preview_ms: 1_000,
        }
    }

    /// Never polls, however far it may go: a poll would take the place of the daemon's (409).
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
