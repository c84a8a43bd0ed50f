//! Makes the Slack adapter of a channel's settings.

use std::sync::Arc;

#[cfg(feature = "slack")]
use vocative_channels::slack::{SlackChannel, SlackSettings};
use vocative_contract::channel::Channel;
use vocative_contract::error::ChannelError;

use crate::config::{self, Secrets, platforms};

/// The adapter of a Slack workspace.
#[cfg(feature = "slack")]
pub(super) fn channel(
    channel: &config::Channel,
    settings: &platforms::SlackSettings,
    secrets: &Secrets,
) -> Result<Arc<dyn Channel>, ChannelError> {
    let name = channel.name.as_str();
    let secret = |reference| secrets.get(reference).clone();
    let bot_token = secret(&settings.bot_token);
    let slack = match &settings.transport {
        platforms::SlackTransport::Socket { app_token } => {
            SlackSettings::new(name, secret(app_token), bot_token)
        }
        platforms::SlackTransport::Http {
            signing_secret,
            app_token,
        } => {
            let over_http = SlackSettings::over_http(name, bot_token, secret(signing_secret));
            SlackSettings {
                app_token: app_token.as_ref().map_or(over_http.app_token, secret),
                ..over_http
            }
        }
    };
    let slack = SlackSettings {
        api_url: settings.api_url.clone(),
        sockets: settings.sockets,
        customizes: channel.custom_names,
        ..slack
    };
    Ok(Arc::new(SlackChannel::new(slack)?))
}

/// The same where the adapter is left out.
#[cfg(not(feature = "slack"))]
pub(super) fn channel(
    _channel: &config::Channel,
    _settings: &platforms::SlackSettings,
    _secrets: &Secrets,
) -> Result<Arc<dyn Channel>, ChannelError> {
    Err(super::left_out("built without the feature slack"))
}
