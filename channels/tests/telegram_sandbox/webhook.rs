//! The inbound half that Telegram calls: where it is told to deliver, and what it says of that.

use secrecy::SecretString;
use serde_json::{Value, json};
use vocative_channels::telegram::{
    TelegramChannel, TelegramSettings, TelegramTransport, WebhookSettings, WebhookTimings,
};
use vocative_contract::channel::{Channel as _, CheckReach, ConnectionState};
use vocative_sandbox::telegram::{TelegramFault, TelegramServer, TelegramWorld};

use crate::recorder::{BOUND, Running, settings, telegram};

const ANN: i64 = TelegramWorld::ANN;
/// Where nobody listens.
const NOWHERE: &str = "http://127.0.0.1:1";

async fn loopback() -> TelegramServer {
    let server = telegram().await;
    server.faults().take_loopback_webhooks(true);
    server.faults().set_webhook_second_ms(20);
    server
}

fn channel(server: &TelegramServer, public_url: &str, secret: Option<&str>) -> TelegramChannel {
    let webhook = WebhookSettings {
        public_url: public_url.to_owned(),
        secret: secret.map(|secret| SecretString::from(secret.to_owned())),
        max_connections: 4,
        timings: WebhookTimings {
            look_every_ms: 30,
            backoff_first_ms: 20,
            backoff_max_ms: 100,
            refused_wait_ms: 50,
        },
    };
    TelegramChannel::new(TelegramSettings {
        transport: TelegramTransport::Webhook(webhook),
        ..settings(&server.api_url(), &server.token())
    })
}

async fn call(server: &TelegramServer, method: &str, body: Value) -> Value {
    let url = format!("{}/bot{}/{method}", server.api_url(), server.token());
    let answer = reqwest::Client::new().post(url).json(&body).send().await;
    answer.unwrap().json().await.unwrap()
}

/// Waits until Telegram delivers to an address that is as wanted.
async fn until_url(server: &TelegramServer, is_wanted: impl Fn(&str) -> bool) -> String {
    let wait = async {
        loop {
            let url = server.webhook_url();
            if is_wanted(&url) {
                return url;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(BOUND, wait).await.expect("in time")
}

fn is_connected(state: &ConnectionState) -> bool {
    matches!(state, ConnectionState::Connected { .. })
}

fn is_alarm(state: &ConnectionState, word: &str) -> bool {
    matches!(state, ConnectionState::Alarm { reason } if reason.contains(word))
}

#[tokio::test]
async fn updates_that_wait_and_do_not_come_are_told_with_what_telegram_says() {
    let server = loopback().await;
    let channel = channel(&server, NOWHERE, None);
    let running = Running::start(&channel).await;
    running.recorder.until_state(is_connected).await;
    server.say(ANN, ANN, "nobody hears me");
    running
        .recorder
        .until_state(|state| is_alarm(state, "Connection refused; 1 updates wait"))
        .await;
    assert_eq!(running.recorder.look(|heard| heard.deaf), 1);
    let findings = channel.check(CheckReach::Calls).await;
    let said: Vec<String> = findings.into_iter().map(|it| it.text).collect();
    for wanted in [
        "1 update waits to be delivered",
        "Telegram delivers to this channel's public_url",
        "the last delivery that failed: Connection refused",
    ] {
        assert!(said.iter().any(|it| it == wanted), "{wanted}: {said:?}");
    }
    running.stop().await;
    // The webhook stays, and what waits.
    assert!(!server.webhook_url().is_empty());
    assert_eq!(server.pending_updates(), 1);
}

#[tokio::test]
async fn another_programs_webhook_is_replaced() {
    let server = loopback().await;
    let running = Running::start(&channel(&server, NOWHERE, None)).await;
    let ours = until_url(&server, |url| url.starts_with(NOWHERE)).await;
    let other = json!({"url": "https://other.example.org/hook"});
    // Telegram takes one a second.
    while call(&server, "setWebhook", other.clone()).await["ok"] != true {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    until_url(&server, |url| url == ours).await;
    running.stop().await;
}

#[tokio::test]
async fn a_changed_secret_is_a_changed_address() {
    let server = loopback().await;
    let mut urls = Vec::new();
    for secret in [None, Some("one"), Some("two"), None] {
        let running = Running::start(&channel(&server, NOWHERE, secret)).await;
        running.recorder.until_state(is_connected).await;
        urls.push(until_url(&server, |url| Some(&url.to_owned()) != urls.last()).await);
        running.stop().await;
    }
    assert_eq!(urls[0], urls[3]);
    let different: std::collections::BTreeSet<&String> = urls.iter().collect();
    assert_eq!(different.len(), 3, "{urls:?}");
    assert!(!format!("{urls:?}").contains("one"));
}

#[tokio::test]
async fn a_refused_address_or_token_raises_an_alarm() {
    let server = telegram().await;
    let running = Running::start(&channel(&server, "https://bot.example.org:8444", None)).await;
    running
        .recorder
        .until_state(|state| is_alarm(state, "only on ports 80, 88, 443 or 8443"))
        .await;
    let refused = TelegramFault::Refused {
        code: 401,
        description: "Unauthorized".to_owned(),
    };
    server.faults().always("getWebhookInfo", refused);
    running
        .recorder
        .until_state(|state| is_alarm(state, "refuses the bot token"))
        .await;
    assert!(running.is_running());
    running.stop().await;
}

#[tokio::test]
async fn a_poll_that_cannot_ask_for_webhooks_says_what_failed_and_how() {
    let server = loopback().await;
    let broken = TelegramFault::Refused {
        code: 500,
        description: "Internal Server Error".to_owned(),
    };
    server.faults().always("getWebhookInfo", broken);
    let poller = TelegramChannel::new(settings(&server.api_url(), &server.token()));
    let running = Running::start(&poller).await;
    let says = |state: &ConnectionState| match state {
        ConnectionState::Retrying { reason, .. } => {
            reason.contains("getWebhookInfo") && reason.contains("HTTP 500")
        }
        _ => false,
    };
    running.recorder.until_state(says).await;
    running.stop().await;
}

#[tokio::test]
async fn a_poll_that_meets_a_webhook_removes_it_and_goes_on() {
    let server = loopback().await;
    let poller = TelegramChannel::new(settings(&server.api_url(), &server.token()));
    let running = Running::start(&poller).await;
    running.recorder.polls(1).await;
    let set = json!({"url": "https://other.example.org/hook"});
    assert_eq!(call(&server, "setWebhook", set).await["ok"], true);
    until_url(&server, str::is_empty).await;
    server.say(ANN, ANN, "heard again");
    running.recorder.message("heard again").await;
    running.stop().await;
}
