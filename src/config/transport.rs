//! Checks of how a channel's events come in: what each transport needs, and what it has no use for.

use super::channels::token;
use super::resolve::Review;
use super::secret::SecretRef;
use super::settings::{SlackTransport, TelegramTransport};
use super::shape::{SlackTransportShape, TelegramTransportShape};

/// The ports to which Telegram delivers. Source: Bot API, `setWebhook`.
const TELEGRAM_PORTS: [u16; 4] = [443, 80, 88, 8443];
/// Whose webhooks must be public; any other API is a Bot API server of one's own, which takes more.
pub(super) const TELEGRAM_HOST: &str = "api.telegram.org";

/// How Slack's events come in, as written.
pub(super) struct SlackDraft {
    pub transport: SlackTransportShape,
    pub app_token: Option<SecretRef>,
    pub signing_secret: Option<SecretRef>,
}

impl SlackDraft {
    pub(super) fn resolve(self, table: &str, review: &mut Review<'_>) -> Option<SlackTransport> {
        match self.transport {
            SlackTransportShape::Socket => {
                if self.signing_secret.is_some() {
                    review.warn(
                        &format!("{table}.signing_secret"),
                        "is not used: transport = \"socket\" needs app_token; for requests that Slack signs \
                         set transport = \"http\"",
                    );
                }
                let what = "the app-level token (xapp-...)";
                let app_token = token(table, "app_token", what, self.app_token, review)?;
                Some(SlackTransport::Socket { app_token })
            }
            SlackTransportShape::Http => {
                let what = "the app's Signing Secret (Basic Information), which transport = \"http\" needs,";
                let signing_secret =
                    token(table, "signing_secret", what, self.signing_secret, review)?;
                Some(SlackTransport::Http {
                    signing_secret,
                    app_token: self.app_token,
                })
            }
        }
    }
}

/// How Telegram's updates come in, as written.
pub(super) struct TelegramDraft {
    pub transport: TelegramTransportShape,
    pub public_url: Option<String>,
    pub webhook_secret: Option<SecretRef>,
    pub max_connections: u32,
}

impl TelegramDraft {
    pub(super) fn resolve(
        self,
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
                let Some(public_url) = self.public_url else {
                    review.advise(
                        &key,
                        "is missing: transport = \"webhook\" needs the address under which Telegram reaches \
                         [webhooks]",
                        Some("public_url = \"https://bot.example.org\"".to_owned()),
                    );
                    return None;
                };
                let public_url = review.url(&key, &public_url);
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
                    secret: self.webhook_secret,
                    max_connections: self.max_connections,
                })
            }
        }
    }
}

/// Why Telegram does not take a text as a secret; none if it does.
pub(super) fn refused_secret(secret: &str) -> Option<&'static str> {
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

/// What Telegram itself asks of an address to deliver to.
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
