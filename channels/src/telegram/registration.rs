//! Registers the webhook: sets it when it differs from the configuration, and checks it now and then.
//!
//! `setWebhook` is called only when URL, kinds or parallelism differ from the configuration; updates that wait at
//! Telegram are never dropped. A webhook is never removed here: it stays while the daemon is stopped, and messages of
//! that time are delivered after the next start. Polling removes it (`poll`).

use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use vocative_contract::channel::{ConnectionState, Reporter};
use vocative_contract::error::ChannelError;

use super::api::{BotApiRefusal, CallFailure, Parameters, TelegramApi};
use super::poll::ALLOWED_UPDATES;
use super::webhook::Webhook;
use super::wire::WebhookInfo;

/// How often in a row another URL may be set as the webhook before a person must act.
const TAKEN_MAX: u32 = 3;

/// The waits of a webhook's registration, in milliseconds. Tests make them short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookTimings {
    /// Between two looks at what Telegram says of the webhook.
    pub look_every_ms: u64,
    /// The first wait after a failure; it doubles.
    pub backoff_first_ms: u64,
    /// The longest wait after a failure.
    pub backoff_max_ms: u64,
    /// Between tries while the account or the URL is refused.
    pub refused_wait_ms: u64,
}

impl Default for WebhookTimings {
    fn default() -> Self {
        Self {
            look_every_ms: 30_000,
            backoff_first_ms: 1_000,
            backoff_max_ms: 30_000,
            refused_wait_ms: 60_000,
        }
    }
}

/// The webhook that is to be set.
#[derive(Clone, Debug)]
pub(super) struct WantedWebhook {
    /// The whole URL; its fingerprint changes with the secret.
    pub(super) url: String,
    pub(super) secret: SecretString,
    pub(super) max_connections: u32,
}

impl WantedWebhook {
    /// Whether exactly this webhook is set. The secret is in the URL's fingerprint.
    pub(super) fn is_set(&self, info: &WebhookInfo) -> bool {
        let mut kinds: Vec<&str> = info.allowed_updates.iter().map(String::as_str).collect();
        kinds.sort_unstable();
        let mut wanted = ALLOWED_UPDATES;
        wanted.sort_unstable();
        info.url.as_deref() == Some(&self.url)
            && kinds == wanted
            && info.max_connections == Some(self.max_connections)
    }

    fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::new();
        parameters.insert("url".to_owned(), json!(self.url));
        parameters.insert("allowed_updates".to_owned(), json!(ALLOWED_UPDATES));
        parameters.insert("max_connections".to_owned(), json!(self.max_connections));
        let secret = self.secret.expose_secret();
        parameters.insert("secret_token".to_owned(), json!(secret));
        parameters
    }
}

/// Keeps the webhook registered.
pub(super) struct Registration {
    channel: String,
    api: TelegramApi,
    wanted: WantedWebhook,
    timings: WebhookTimings,
    backoff: Backoff,
    /// Whether it was as wanted at the last look.
    was_set: bool,
    /// How often in a row another URL was set after ours had been.
    taken: u32,
    /// How many updates were committed at the last look, if any waited then.
    waiting_at: Option<u64>,
    state: Option<ConnectionState>,
}

impl Registration {
    pub(super) fn new(
        channel: &str,
        api: TelegramApi,
        wanted: WantedWebhook,
        timings: WebhookTimings,
    ) -> Self {
        Self {
            channel: channel.to_owned(),
            api,
            wanted,
            backoff: Backoff::new(timings.backoff_first_ms, timings.backoff_max_ms),
            timings,
            was_set: false,
            taken: 0,
            waiting_at: None,
            state: None,
        }
    }

    /// Sets the webhook, and checks it until cancelled.
    pub(super) async fn keep(
        &mut self,
        webhook: &Webhook,
        reporter: &dyn Reporter,
        cancel: &CancellationToken,
    ) {
        self.report(reporter, ConnectionState::Connecting);
        loop {
            let looked = tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                looked = self.look() => looked,
            };
            let (state, wait_ms) = match looked {
                Ok(info) => {
                    self.backoff.reset();
                    let state = self.judge(&info, webhook.committed(), reporter);
                    (state, self.timings.look_every_ms)
                }
                Err(failure) => self.trouble(failure),
            };
            self.report(reporter, state);
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
            }
        }
    }

    /// Asks where Telegram delivers, and sets the webhook if that differs.
    async fn look(&mut self) -> Result<WebhookInfo, CallFailure> {
        let none = Parameters::new();
        let info: WebhookInfo = self.api.call("getWebhookInfo", &none).await?;
        if self.wanted.is_set(&info) {
            self.was_set = true;
            self.taken = 0;
            return Ok(info);
        }
        if self.was_set {
            self.taken += 1;
            tracing::warn!(
                channel.id = %self.channel, times = self.taken,
                "Another program changed this bot's webhook; it is set again"
            );
        }
        self.api
            .call_raw("setWebhook", &self.wanted.parameters())
            .await?;
        self.was_set = true;
        tracing::info!(channel.id = %self.channel, "The webhook is set");
        Ok(info)
    }

    /// What Telegram reports about its deliveries.
    fn judge(
        &mut self,
        info: &WebhookInfo,
        committed: u64,
        reporter: &dyn Reporter,
    ) -> ConnectionState {
        if self.taken >= TAKEN_MAX {
            return alarm(
                "another program sets this bot's webhook again and again: stop it, or give this channel \
                 a bot of its own",
            );
        }
        let waiting = info.pending_update_count.unwrap_or_default();
        // Updates that wait at one look only may have just come; and while updates are committed, delivery works.
        let is_stuck = waiting > 0 && self.waiting_at == Some(committed);
        self.waiting_at = (waiting > 0).then_some(committed);
        if !is_stuck {
            return ConnectionState::Connected { connections: 1 };
        }
        let was_stuck = matches!(self.state, Some(ConnectionState::Alarm { .. }));
        if !was_stuck {
            reporter.deaf();
        }
        let reason = match info.last_error_message.as_deref() {
            Some(message) => format!(
                "Telegram cannot deliver: {}; {waiting} updates wait. Check public_url, the proxy in front of \
                 [webhooks], and its certificate",
                told(message)
            ),
            None => format!("{waiting} updates wait and Telegram delivers none of them"),
        };
        if !was_stuck {
            tracing::error!(channel.id = %self.channel, reason, "The webhook is deaf");
        }
        alarm(&reason)
    }

    /// What to report of a failed call, and how long to wait.
    fn trouble(&mut self, failure: CallFailure) -> (ConnectionState, u64) {
        if let CallFailure::Refused(BotApiRefusal {
            code: 400,
            description,
            ..
        }) = &failure
        {
            let reason = format!("Telegram refuses the webhook ({description}): check public_url");
            tracing::error!(channel.id = %self.channel, reason, "The webhook cannot be set");
            return (alarm(&reason), self.timings.refused_wait_ms);
        }
        match failure.into_error("setWebhook") {
            ChannelError::Unauthorized { reason, .. } => {
                let advice = "check that it was not revoked in @BotFather, and api_url";
                let reason = format!("Telegram refuses the bot token ({reason}): {advice}");
                (alarm(&reason), self.timings.refused_wait_ms)
            }
            error => {
                let wait_ms = match &error {
                    ChannelError::RetryAfter { wait_ms, .. } => *wait_ms,
                    _ => {
                        self.api.drop_connections();
                        self.backoff.next_ms()
                    }
                };
                let reason = error.reason();
                tracing::warn!(channel.id = %self.channel, wait_ms, reason, "The webhook could not be looked at");
                // Telegram still delivers to the webhook that was set before.
                let state = match self.was_set {
                    true => ConnectionState::Connected { connections: 1 },
                    false => ConnectionState::Retrying { reason, wait_ms },
                };
                (state, wait_ms)
            }
        }
    }

    fn report(&mut self, reporter: &dyn Reporter, state: ConnectionState) {
        if self.state.as_ref() != Some(&state) {
            reporter.state(state.clone());
            self.state = Some(state);
        }
    }
}

/// Telegram's description of a failed delivery, on one line and shortened.
pub(super) fn told(message: &str) -> String {
    let chars = message.chars().filter(|c| !c.is_control());
    chars.take(200).collect()
}

fn alarm(reason: &str) -> ConnectionState {
    ConnectionState::Alarm {
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> WantedWebhook {
        WantedWebhook {
            url: "https://bot.example.org/telegram/team?v=1".to_owned(),
            secret: SecretString::from("s".to_owned()),
            max_connections: 8,
        }
    }

    fn info() -> WebhookInfo {
        let mut kinds = ALLOWED_UPDATES.map(str::to_owned).to_vec();
        kinds.reverse();
        WebhookInfo {
            url: Some(wanted().url),
            allowed_updates: kinds,
            max_connections: Some(8),
            ..WebhookInfo::default()
        }
    }

    #[test]
    fn a_webhook_is_set_only_when_it_differs() {
        assert!(wanted().is_set(&info()));
        let url = Some("https://bot.example.org/telegram/team?v=2".to_owned());
        let allowed_updates = vec!["message".to_owned()];
        let others = [
            WebhookInfo::default(),
            WebhookInfo { url, ..info() },
            WebhookInfo {
                allowed_updates,
                ..info()
            },
            WebhookInfo {
                max_connections: None,
                ..info()
            },
        ];
        for other in others {
            assert!(!wanted().is_set(&other), "{other:?}");
        }
    }

    #[test]
    fn nothing_that_waits_is_dropped_by_setting_it() {
        let parameters = wanted().parameters();
        assert!(!parameters.contains_key("drop_pending_updates"));
        assert!(parameters.values().all(|value| !value.is_null()));
    }
}
