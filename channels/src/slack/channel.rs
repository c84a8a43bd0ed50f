//! A configured Slack workspace: who we are there, and the two halves.

use std::sync::Arc;

use secrecy::SecretString;

use crate::http::HttpTimeouts;
use vocative_contract::capability::{Capabilities, LengthUnit};
use vocative_contract::channel::{BoxFuture, Channel, CheckReach, Finding, Inbound};
use vocative_contract::clock::PlatformClock;
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::file::FileSource;
use vocative_contract::handles::Outbound;
use vocative_contract::history::HistoryReader;
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::webhook::Receiver;

use super::api::{Granted, SlackApi, Token};
use super::events_api::{EventsApi, HttpInbound};
use super::file::SlackFiles;
use super::history::SlackHistory;
use super::names::NameMemory;
use super::outbound::outbound;
use super::socket::SocketTimings;
use super::socket_pool::SlackInbound;
use super::wire::IdOr;
use super::{API_URL, REQUIRED_SCOPES, SOCKETS_MAX, check, render, text};

/// How Slack's events come in.
#[derive(Clone, Debug, Default)]
pub enum SlackTransport {
    /// Over sockets that we open (Socket Mode).
    #[default]
    Socket,
    /// Over requests that Slack makes (Events API).
    Http {
        /// What Slack signs them with.
        signing_secret: SecretString,
    },
}

/// What a Slack channel needs to be told.
#[derive(Clone, Debug)]
pub struct SlackSettings {
    /// The configured channel's name.
    pub name: String,
    /// Where the Web API is; [`API_URL`], except for GovSlack and tests.
    pub api_url: String,
    /// How events come in.
    pub transport: SlackTransport,
    /// The app-level token (`xapp-`), which opens sockets; may be empty where none are.
    pub app_token: SecretString,
    /// The bot token (`xoxb-`), for everything else.
    pub bot_token: SecretString,
    /// Whether posts appear under agents' own names, which needs the scope `chat:write.customize`.
    pub customizes: bool,
    /// How many sockets to hold open, 1 to [`SOCKETS_MAX`]; others are brought into that range.
    pub sockets: usize,
    /// How long requests may take.
    pub http: HttpTimeouts,
    /// How patient the sockets are.
    pub timings: SocketTimings,
}

impl SlackSettings {
    /// Settings with the usual values: one socket to Slack itself.
    #[must_use]
    pub fn new(name: impl Into<String>, app_token: SecretString, bot_token: SecretString) -> Self {
        Self {
            name: name.into(),
            api_url: API_URL.to_owned(),
            transport: SlackTransport::default(),
            app_token,
            bot_token,
            customizes: false,
            sockets: 1,
            http: HttpTimeouts::default(),
            timings: SocketTimings::default(),
        }
    }

    /// Settings with the usual values for a workspace whose events come over HTTP.
    #[must_use]
    pub fn over_http(
        name: impl Into<String>,
        bot_token: SecretString,
        signing_secret: SecretString,
    ) -> Self {
        Self {
            transport: SlackTransport::Http { signing_secret },
            ..Self::new(name, SecretString::from(String::new()), bot_token)
        }
    }
}

/// A configured Slack workspace.
#[derive(Debug)]
pub struct SlackChannel {
    settings: SlackSettings,
    api: Arc<SlackApi>,
    names: Arc<NameMemory>,
    /// Set where events come over HTTP.
    events_api: Option<Arc<EventsApi>>,
}

impl SlackChannel {
    /// Prepares a channel; nothing is sent.
    ///
    /// # Errors
    /// [`ChannelError::NotSent`] if TLS cannot be set up.
    ///
    /// # Panics
    /// If no rustls crypto provider is installed.
    pub fn new(settings: SlackSettings) -> Result<Self, ChannelError> {
        let api = Arc::new(SlackApi::new(&settings)?);
        let sockets = settings.sockets.clamp(1, SOCKETS_MAX);
        let names = Arc::<NameMemory>::default();
        let events_api = match &settings.transport {
            SlackTransport::Socket => None,
            SlackTransport::Http { signing_secret } => {
                let (secret, names) = (signing_secret.clone(), Arc::clone(&names));
                let clock = Arc::clone(api.clock());
                Some(Arc::new(EventsApi::new(
                    &settings.name,
                    secret,
                    names,
                    clock,
                )))
            }
        };
        Ok(Self {
            settings: SlackSettings {
                sockets,
                ..settings
            },
            api,
            names,
            events_api,
        })
    }
}

impl Channel for SlackChannel {
    fn identify(&self) -> BoxFuture<'_, Result<Identity, ChannelError>> {
        Box::pin(async { sign_in(&self.api).await.map(|(identity, _)| identity) })
    }

    fn inbound(&self, identity: &Identity) -> Box<dyn Inbound> {
        if let Some(events_api) = &self.events_api {
            return Box::new(HttpInbound {
                events_api: Arc::clone(events_api),
                identity: identity.clone(),
            });
        }
        Box::new(SlackInbound {
            channel: self.settings.name.clone(),
            sockets: self.settings.sockets,
            timings: self.settings.timings,
            identity: identity.clone(),
            api: Arc::clone(&self.api),
            names: Arc::clone(&self.names),
        })
    }

    fn outbound(&self, identity: &Identity) -> Outbound {
        let (api, names) = (Arc::clone(&self.api), Arc::clone(&self.names));
        outbound(api, names, identity.clone())
    }

    fn history(&self, identity: &Identity) -> Option<Arc<dyn HistoryReader>> {
        let channel = self.settings.name.clone();
        let api = Arc::clone(&self.api);
        Some(Arc::new(SlackHistory::new(channel, identity.clone(), api)))
    }

    fn receiver(&self) -> Option<Arc<dyn Receiver>> {
        let events_api = self.events_api.as_ref()?;
        Some(Arc::clone(events_api) as Arc<dyn Receiver>)
    }

    fn files(&self, _identity: &Identity) -> Option<Arc<dyn FileSource>> {
        Some(Arc::new(SlackFiles::new(Arc::clone(&self.api))))
    }

    fn clock(&self) -> Option<Arc<PlatformClock>> {
        Some(Arc::clone(self.api.clock()))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            text_max: render::TEXT_MAX_CHARS,
            text_unit: LengthUnit::Chars,
            has_threads: true,
            has_replies: false,
            can_read_back: true,
            can_read_history: true,
            uploads_files: true,
            echoes_posts: true,
            // A status line disappears after two minutes; it is shown again before that.
            working_sign_ms: 110_000,
            // About one post per second and channel. Source: Slack's rate limit page.
            chat_interval_ms: 1_000,
            // Source: Slack's guide for agents.
            live_edit_ms: 3_000,
            live_preview_ms: 0,
            // `chat.appendStream` is of tier 4, 100 a minute and more.
            live_stream_ms: 1_000,
        }
    }

    fn check(&self, reach: CheckReach) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(check::check(&self.settings, &self.api, reach))
    }
}

/// Asks `auth.test` who we are, and which scopes the token has if Slack says so.
pub(super) async fn sign_in(
    api: &SlackApi,
) -> Result<(Identity, Option<Vec<String>>), ChannelError> {
    let operation = "auth.test";
    let Granted { answer, scopes } = api.call(operation, Token::Bot, &[]).await?;
    let warnings = warnings(scopes.as_deref(), answer.bot_id.is_some());
    let (Some(account), Some(user_id)) = (answer.team_id.0, answer.user_id.0) else {
        return Err(ChannelError::Rejected {
            operation,
            reason: "the answer names no team or no user".to_owned(),
            fallback: Fallback::None,
        });
    };
    let username = match &answer.user.0 {
        Some(IdOr::Id(name)) => text::name(Some(name)),
        _ => None,
    };
    let identity = Identity {
        platform: Platform::Slack,
        account_name: text::name(answer.team.as_deref()).unwrap_or_else(|| account.clone()),
        account,
        display_name: username.clone().unwrap_or_else(|| user_id.clone()),
        user_id,
        other_ids: answer.bot_id.0.into_iter().collect(),
        username,
        warnings,
        organisation: answer.enterprise_id.0,
    };
    Ok((identity, scopes))
}

/// The required scopes that are not granted; `None` if Slack did not say which are.
pub(super) fn missing_scopes(granted: Option<&[String]>) -> Option<Vec<&'static str>> {
    let granted = granted?;
    let is_missing = |scope: &&&str| !granted.iter().any(|it| it == **scope);
    Some(REQUIRED_SCOPES.iter().filter(is_missing).copied().collect())
}

fn warnings(scopes: Option<&[String]>, is_bot: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let missing = missing_scopes(scopes).unwrap_or_default();
    if !missing.is_empty() {
        warnings.push(format!(
            "the bot token lacks the scopes {}; add them under OAuth & Permissions and reinstall the app",
            missing.join(", ")
        ));
    }
    if !is_bot {
        warnings.push("bot_token is not a bot's token; it should start with xoxb-".to_owned());
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_scopes_are_named() {
        let all: Vec<String> = REQUIRED_SCOPES.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(missing_scopes(None), None);
        assert_eq!(missing_scopes(Some(&all)), Some(vec![]));
        assert_eq!(
            missing_scopes(Some(&all[1..])),
            Some(vec!["app_mentions:read"])
        );
        assert!(warnings(Some(&all[1..]), true)[0].contains("app_mentions:read"));
        assert_eq!(warnings(Some(&all), true), Vec::<String>::new());
    }
}
