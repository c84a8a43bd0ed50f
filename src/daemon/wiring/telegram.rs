//! Makes the Telegram adapter of a channel's settings.

use std::sync::Arc;

#[cfg(feature = "telegram")]
use vocative_channels::telegram::{
    TelegramChannel, TelegramSettings, TelegramTransport, WebhookSettings, WebhookTimings,
};
use vocative_contract::channel::Channel;
use vocative_contract::error::ChannelError;

use crate::config::{self, Secrets, platforms};

/// The adapter of a Telegram bot.
#[cfg(feature = "telegram")]
#[allow(clippy::unnecessary_wraps, reason = "like the other platforms")]
pub(super) fn channel(
    channel: &config::Channel,
    settings: &platforms::TelegramSettings,
    secrets: &Secrets,
) -> Result<Arc<dyn Channel>, ChannelError> {
    let token = secrets.get(&settings.token).clone();
    let transport = match &settings.transport {
        platforms::TelegramTransport::Poll => TelegramTransport::Poll,
        platforms::TelegramTransport::Webhook {
            public_url,
            secret,
            max_connections,
        } => TelegramTransport::Webhook(WebhookSettings {
            public_url: public_url.clone(),
            secret: secret.as_ref().map(|secret| secrets.get(secret).clone()),
            max_connections: *max_connections,
            timings: WebhookTimings::default(),
        }),
    };
    let telegram = TelegramSettings {
        api_url: settings.api_url.clone(),
        transport,
        ..TelegramSettings::new(&channel.name, token)
    };
    Ok(Arc::new(TelegramChannel::new(telegram)))
}

/// The same where the adapter is left out.
#[cfg(not(feature = "telegram"))]
pub(super) fn channel(
    _channel: &config::Channel,
    _settings: &platforms::TelegramSettings,
    _secrets: &Secrets,
) -> Result<Arc<dyn Channel>, ChannelError> {
    Err(super::left_out("built without the feature telegram"))
}
