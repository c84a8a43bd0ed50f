//! What the loopback platforms post to an app: signed, secret, in order, again after a refusal.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use vocative_sandbox::slack::{
    EventFault, RequestUrls, RetryPlan, SlackServer, SlackWorld, signature,
};
use vocative_sandbox::telegram::{TelegramServer, TelegramWorld};
use vocative_sandbox::wire::WireLog;

const WAIT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
struct Heard {
    path: String,
    headers: HeaderMap,
    body: String,
}

impl Heard {
    fn header(&self, name: &str) -> String {
        let value = self.headers.get(name);
        value.map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
    }
}

/// An app that remembers what it is sent, and answers with the statuses it was told, then with 200.
struct App {
    heard: watch::Sender<Vec<Heard>>,
    statuses: Arc<Mutex<Vec<u16>>>,
    base: String,
    serving: JoinHandle<()>,
}

impl Drop for App {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

type Shared = (watch::Sender<Vec<Heard>>, Arc<Mutex<Vec<u16>>>);

impl App {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (heard, statuses): Shared = Default::default();
        let router = Router::new()
            .fallback(answer)
            .with_state((heard.clone(), Arc::clone(&statuses)));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            heard,
            statuses,
            base,
            serving,
        }
    }

    fn refuse(&self, statuses: &[u16]) {
        self.statuses.lock().unwrap().extend(statuses);
    }

    async fn until(&self, count: usize) -> Vec<Heard> {
        let mut heard = self.heard.subscribe();
        let come = heard.wait_for(|heard| heard.len() >= count);
        let come = tokio::time::timeout(WAIT, come).await;
        come.expect("it comes in time").unwrap().clone()
    }
}

async fn answer(
    State((heard, statuses)): State<Shared>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let body = String::from_utf8(body.to_vec()).unwrap();
    let json: Value = serde_json::from_str(&body).unwrap_or_default();
    if json["type"] == "url_verification" {
        return (
            StatusCode::OK,
            json["challenge"].as_str().unwrap().to_owned(),
        );
    }
    let path = uri.to_string();
    heard.send_modify(|all| {
        all.push(Heard {
            path,
            headers,
            body,
        });
    });
    let mut statuses = statuses.lock().unwrap();
    let status = match statuses.is_empty() {
        true => 200,
        false => statuses.remove(0),
    };
    (StatusCode::from_u16(status).unwrap(), String::new())
}

async fn slack() -> (SlackServer, App) {
    let any_port = ([127, 0, 0, 1], 0).into();
    let server = SlackServer::start(SlackWorld::acme(), any_port, WireLog::new());
    let (server, app) = (server.await.unwrap(), App::start().await);
    server.faults().set_retry_plan(RetryPlan {
        http_after_ms: vec![20, 20, 20],
        ..RetryPlan::default()
    });
    let urls = RequestUrls::under(&format!("{}/slack", app.base));
    server.set_request_urls(urls).await.unwrap();
    (server, app)
}

#[tokio::test]
async fn slack_posts_signed_bodies_to_three_addresses() {
    let (server, app) = slack().await;
    server.say("#general", "ann", "hello & welcome");
    app.until(1).await;
    server.slash_command("#general", "ann", "/agent", "a&b=c d");
    let heard = app.until(2).await;
    assert!(server.wait_until_all_acked(WAIT).await);
    let secret = server.world().signing_secret;
    for one in &heard {
        let at_s = one.header("x-slack-request-timestamp");
        let wanted = signature(&secret, &at_s, one.body.as_bytes());
        assert_eq!(one.header("x-slack-signature"), wanted);
        assert_eq!(one.header("x-slack-retry-num"), "");
    }
    assert_eq!(heard[0].path, "/slack/events");
    let event: Value = serde_json::from_str(&heard[0].body).unwrap();
    assert_eq!(event["event"]["text"], "hello &amp; welcome");
    assert_eq!(heard[1].path, "/slack/commands");
    assert!(
        heard[1].body.contains("text=a%26b%3Dc+d"),
        "{}",
        heard[1].body
    );
    assert_eq!(server.open_sockets(), 0);
}

#[tokio::test]
async fn slack_sends_again_with_a_mark_and_gives_up_after_three_times() {
    let (server, app) = slack().await;
    app.refuse(&[503, 500]);
    server.say("#general", "ann", "again");
    let heard = app.until(3).await;
    assert!(server.wait_until_all_acked(WAIT).await);
    let marks = heard.iter().map(|one| one.header("x-slack-retry-num"));
    assert_eq!(marks.collect::<Vec<_>>(), ["", "1", "2"]);
    assert_eq!(heard[2].header("x-slack-retry-reason"), "http_error");
    assert_eq!(heard[0].body, heard[2].body);
    app.refuse(&[503; 4]);
    server.say("#general", "ann", "in vain");
    app.until(7).await;
    assert!(server.wait_until_all_acked(WAIT).await);
    assert_eq!(server.lost_payloads().len(), 1);
}

#[tokio::test]
async fn slack_can_deliver_one_event_many_times_at_once() {
    let (server, app) = slack().await;
    server.faults().next_event(EventFault::Duplicate(4));
    server.say("#general", "ann", "five");
    let heard = app.until(5).await;
    assert!(heard.iter().all(|one| one.body == heard[0].body));
}

#[tokio::test]
async fn slack_gives_a_busy_app_up_that_never_answers_well() {
    let (server, app) = slack().await;
    server.faults().set_retry_plan(RetryPlan {
        http_after_ms: Vec::new(),
        disable_from: 20,
        ..RetryPlan::default()
    });
    app.refuse(&[500; 40]);
    for n in 0..30 {
        server.say("#general", "ann", &format!("{n}"));
    }
    assert!(server.wait_until_all_acked(WAIT).await);
    assert!(server.is_given_up());
    server.say("#general", "ann", "not sent");
    assert_eq!(server.lost_payloads().len(), 31);
}

async fn telegram() -> (TelegramServer, App) {
    let any_port = ([127, 0, 0, 1], 0).into();
    let server = TelegramServer::start(TelegramWorld::team(), any_port, WireLog::new());
    let (server, app) = (server.await.unwrap(), App::start().await);
    server.faults().take_loopback_webhooks(true);
    server.faults().set_webhook_second_ms(5);
    (server, app)
}

async fn call(server: &TelegramServer, method: &str, body: Value) -> Value {
    static CRYPTO: std::sync::Once = std::sync::Once::new();
    CRYPTO.call_once(|| {
        let provider = rustls::crypto::ring::default_provider();
        provider.install_default().unwrap();
    });
    let url = format!("{}/bot{}/{method}", server.api_url(), server.token());
    let answer = reqwest::Client::new().post(url).json(&body).send().await;
    answer.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn telegram_delivers_with_the_secret_and_again_until_it_is_taken() {
    let (server, app) = telegram().await;
    server.say(TelegramWorld::ANN, TelegramWorld::ANN, "before");
    let hook = json!({"url": format!("{}/tg?v=1", app.base), "secret_token": "open-sesame"});
    app.refuse(&[500, 302, 401]);
    let set = call(&server, "setWebhook", hook).await;
    assert_eq!(set["description"], "Webhook was set");
    let heard = app.until(4).await;
    assert!(server.wait_until_confirmed(WAIT).await);
    assert!(heard.iter().all(|one| one.body == heard[0].body));
    assert_eq!(heard[0].path, "/tg?v=1");
    assert_eq!(
        heard[0].header("x-telegram-bot-api-secret-token"),
        "open-sesame"
    );
    let info = call(&server, "getWebhookInfo", json!({})).await;
    assert_eq!(info["result"]["max_connections"], 40);
    assert_eq!(info["result"]["pending_update_count"], 0);
    let message = "Wrong response from the webhook: 401 Unauthorized";
    assert_eq!(info["result"]["last_error_message"], message);
    // Removed, what comes next waits for a poll.
    call(&server, "deleteWebhook", json!({})).await;
    server.say(TelegramWorld::ANN, TelegramWorld::ANN, "after");
    let polled = call(&server, "getUpdates", json!({})).await;
    assert_eq!(polled["result"][0]["message"]["text"], "after");
    assert_eq!(app.heard.borrow().len(), 4);
}

#[tokio::test]
async fn telegram_holds_up_only_the_chat_whose_update_fails() {
    let (server, app) = telegram().await;
    server.faults().set_webhook_second_ms(60_000);
    let (held, free) = (TelegramWorld::ANN, TelegramWorld::SUPERGROUP);
    app.refuse(&[500, 500]);
    let hook = json!({"url": format!("{}/tg", app.base)});
    call(&server, "setWebhook", hook).await;
    for n in 0..3 {
        server.say(held, held, &format!("held {n}"));
    }
    // The first failure is followed by a retry at once, the second by a long wait.
    app.until(2).await;
    for n in 0..3 {
        server.say(free, TelegramWorld::BOB, &format!("free {n}"));
    }
    let heard = app.until(5).await;
    let text = |one: &Heard| {
        let update: Value = serde_json::from_str(&one.body).unwrap();
        update["message"]["text"].as_str().unwrap().to_owned()
    };
    let texts: Vec<String> = heard.iter().map(text).collect();
    assert_eq!(texts, ["held 0", "held 0", "free 0", "free 1", "free 2"]);
    // The answer to the last of them may still be on its way.
    let rest = async {
        while server.pending_updates() > 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(WAIT, rest).await.unwrap();
    assert_eq!(server.pending_updates(), 3);
}
