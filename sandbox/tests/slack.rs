//! The loopback Slack over real sockets, with client libraries that know nothing of it.
#![allow(clippy::unwrap_used)]

use std::sync::Once;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use vocative_sandbox::slack::{
    BlockAction, CallFault, EventFault, RetryPlan, SlackServer, SlackWorld, UserPost,
    slack_refusals,
};
use vocative_sandbox::wire::{WireKind, WireLog};

/// Nothing on loopback takes longer.
const WAIT: Duration = Duration::from_secs(10);

/// A running Slack and an HTTP client with its bot token.
struct Stage {
    slack: SlackServer,
    http: reqwest::Client,
    world: SlackWorld,
    wire: WireLog,
}

impl Stage {
    async fn new() -> Self {
        static CRYPTO: Once = Once::new();
        CRYPTO.call_once(|| {
            let provider = rustls::crypto::ring::default_provider();
            provider.install_default().unwrap();
        });
        let (world, wire) = (SlackWorld::acme(), WireLog::new());
        let any_port = ([127, 0, 0, 1], 0).into();
        let slack = SlackServer::start(world.clone(), any_port, wire.clone());
        Self {
            slack: slack.await.unwrap(),
            http: reqwest::Client::new(),
            world,
            wire,
        }
    }

    /// Calls a method as a form; nested values as JSON text.
    async fn send(
        &self,
        method: &str,
        token: &str,
        args: &Value,
    ) -> reqwest::Result<reqwest::Response> {
        let fields: Vec<(&String, String)> = args
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| match value.as_str() {
                Some(text) => (name, text.to_owned()),
                None => (name, value.to_string()),
            })
            .collect();
        let url = format!("{}{method}", self.slack.api_url());
        let request = self.http.post(url).bearer_auth(token).form(&fields);
        request.send().await
    }

    async fn call(&self, method: &str, args: Value) -> Value {
        let answer = self.send(method, &self.world.bot_token, &args).await;
        answer.unwrap().json().await.unwrap()
    }

    async fn socket_url(&self) -> String {
        let token = &self.world.app_token;
        let answer = self.send("apps.connections.open", token, &json!({})).await;
        let body: Value = answer.unwrap().json().await.unwrap();
        body["url"].as_str().unwrap().to_owned()
    }

    /// Opens a socket and takes its `hello`.
    async fn socket(&self) -> Socket {
        let (stream, _) = connect_async(self.socket_url().await).await.unwrap();
        let mut socket = Socket(stream);
        assert_eq!(socket.frame().await["type"], "hello");
        socket
    }

    async fn texts(&self, method: &str, args: Value) -> Vec<String> {
        let body = self.call(method, args).await;
        let messages = body["messages"].as_array().unwrap();
        messages
            .iter()
            .map(|message| message["text"].as_str().unwrap().to_owned())
            .collect()
    }
}

struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    async fn next(&mut self) -> Option<Message> {
        let next = tokio::time::timeout(WAIT, self.0.next()).await;
        next.expect("a frame in time").and_then(Result::ok)
    }

    /// The next text frame as JSON; `null` at the end of the socket.
    async fn frame(&mut self) -> Value {
        loop {
            match self.next().await {
                Some(Message::Text(text)) => return serde_json::from_str(&text).unwrap(),
                Some(_) => {}
                None => return Value::Null,
            }
        }
    }

    async fn ack(&mut self, frame: &Value) {
        let ack = json!({"envelope_id": frame["envelope_id"]});
        self.0.send(Message::text(ack.to_string())).await.unwrap();
    }

    /// The next event, acknowledged.
    async fn event(&mut self) -> Value {
        let frame = self.frame().await;
        self.ack(&frame).await;
        frame["payload"]["event"].clone()
    }
}

#[tokio::test]
async fn every_refusal_of_the_list_happens() {
    let refusals = slack_refusals().await;
    let wrong: Vec<_> = refusals.iter().filter(|refusal| !refusal.ok).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(refusals.len() >= 25, "{}", refusals.len());
}

#[tokio::test]
async fn auth_test_tells_identity_and_scopes() {
    let stage = Stage::new().await;
    let answer = stage
        .send("auth.test", &stage.world.bot_token, &json!({}))
        .await
        .unwrap();
    let scopes = answer.headers()["x-oauth-scopes"]
        .to_str()
        .unwrap()
        .to_owned();
    let body: Value = answer.json().await.unwrap();
    let told = [&body["team_id"], &body["user_id"], &body["bot_id"]];
    assert_eq!(told, ["T0ACME", "U0VOCATIVE", "B0VOCATIVE"]);
    assert_eq!(scopes, stage.world.scopes.join(","));
}

#[tokio::test]
async fn a_ticket_opens_one_socket_once() {
    let stage = Stage::new().await;
    let url = stage.socket_url().await;
    let (_open, _) = connect_async(url.as_str()).await.unwrap();
    let again = connect_async(url.as_str()).await.unwrap_err().to_string();
    assert!(again.contains("401"), "{again}");
}

#[tokio::test]
async fn hello_counts_sockets_and_the_eleventh_is_refused() {
    let stage = Stage::new().await;
    let mut open = Vec::new();
    for n in 1..=10 {
        let (stream, _) = connect_async(stage.socket_url().await).await.unwrap();
        let mut socket = Socket(stream);
        assert_eq!(socket.frame().await["num_connections"], n);
        open.push(socket);
    }
    let (stream, _) = connect_async(stage.socket_url().await).await.unwrap();
    let mut eleventh = Socket(stream);
    let refusal = eleventh.frame().await;
    assert_eq!(refusal["reason"], "too_many_websockets");
    assert_eq!(refusal["num_connections"], 11);
    assert_eq!(eleventh.frame().await, Value::Null);
    assert_eq!(stage.slack.open_sockets(), 10);
}

#[tokio::test]
async fn a_mention_comes_as_message_and_app_mention() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    let ts = stage.slack.say("#general", "ann", "@vocative 1 < 2");
    let (first, second) = (socket.frame().await, socket.frame().await);
    socket.ack(&first).await;
    socket.ack(&second).await;
    let ids = |frame: &Value| {
        [
            frame["envelope_id"].clone(),
            frame["payload"]["event_id"].clone(),
        ]
    };
    assert_ne!(ids(&first)[0], ids(&second)[0]);
    assert_ne!(ids(&first)[1], ids(&second)[1]);
    let mut events = [first, second].map(|frame| frame["payload"]["event"].clone());
    events.sort_by_key(|event| event["type"].to_string());
    for event in &events {
        assert_eq!(event["ts"], ts);
        assert_eq!(event["text"], "<@U0VOCATIVE> 1 &lt; 2");
        assert_eq!(event["client_msg_id"], events[0]["client_msg_id"]);
        let elements = &event["blocks"][0]["elements"][0]["elements"];
        assert_eq!(
            elements[0],
            json!({"type": "user", "user_id": "U0VOCATIVE"})
        );
        assert_eq!(elements[1], json!({"type": "text", "text": " 1 < 2"}));
    }
    assert_eq!(events[0]["type"], "app_mention");
    assert_eq!(events[0].get("channel_type"), None);
    assert_eq!(events[1]["channel_type"], "channel");
    assert!(stage.slack.wait_until_all_acked(WAIT).await);
}

#[tokio::test]
async fn the_order_of_twins_can_be_set() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    for (mention_first, first) in [(true, "app_mention"), (false, "message")] {
        let faults = stage.slack.faults();
        faults.set_knobs(|knobs| knobs.mention_first = Some(mention_first));
        for _ in 0..5 {
            stage.slack.say("#general", "ann", "@vocative hi");
            assert_eq!(socket.event().await["type"], first);
            socket.event().await;
        }
    }
}

#[tokio::test]
async fn a_mention_in_a_direct_chat_has_no_twin() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    stage.slack.say("D0ANN", "ann", "@vocative hi");
    stage.slack.say("D0ANN", "ann", "bye");
    let (first, second) = (socket.event().await, socket.event().await);
    assert_eq!([&first["type"], &first["channel_type"]], ["message", "im"]);
    assert_eq!(second["text"], "bye");
}

#[tokio::test]
async fn what_the_bot_may_not_hear_is_not_sent() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    stage.slack.say("#elsewhere", "ann", "not for the bot");
    stage
        .slack
        .change_world(|world| world.scopes.retain(|scope| scope != "groups:history"));
    stage.slack.say("#secret", "ann", "not for the bot either");
    stage
        .slack
        .change_world(|world| world.events.retain(|event| event != "message.mpim"));
    stage.slack.say("G0GROUP", "ann", "not subscribed");
    stage.slack.say("#ops", "ann", "heard");
    assert_eq!(socket.event().await["text"], "heard");
}

#[tokio::test]
async fn an_unacknowledged_event_comes_again_until_it_is_lost() {
    let stage = Stage::new().await;
    stage.slack.faults().set_retry_plan(RetryPlan {
        after_ms: vec![20, 20],
        ..RetryPlan::default()
    });
    let mut socket = stage.socket().await;
    stage.slack.say("#ops", "ann", "anybody?");
    let frames = [
        socket.frame().await,
        socket.frame().await,
        socket.frame().await,
    ];
    let marks = frames.clone().map(|frame| {
        (
            frame["retry_attempt"].clone(),
            frame["retry_reason"].clone(),
        )
    });
    assert_eq!(
        marks,
        [
            (json!(0), json!("")),
            (json!(1), json!("timeout")),
            (json!(2), json!("timeout"))
        ]
    );
    assert_eq!(frames[0]["payload"], frames[2]["payload"]);
    assert_ne!(frames[0]["envelope_id"], frames[2]["envelope_id"]);
    assert!(stage.slack.wait_until_all_acked(WAIT).await);
    assert_eq!(stage.slack.lost_payloads(), [frames[0]["payload"].clone()]);
    assert_eq!(stage.slack.acked_envelopes(), []);
}

#[tokio::test]
async fn an_event_without_a_socket_comes_as_a_retry_with_the_same_envelope_if_so_set() {
    let stage = Stage::new().await;
    stage.slack.faults().set_retry_plan(RetryPlan {
        after_ms: vec![3_600_000],
        same_envelope_id: true,
        reason: "http_timeout".into(),
        ..RetryPlan::default()
    });
    stage.slack.say("#ops", "ann", "nobody is there");
    let mut socket = stage.socket().await;
    stage.slack.redeliver_unacked_now();
    let first = socket.frame().await;
    stage.slack.redeliver_unacked_now();
    let second = socket.frame().await;
    assert_eq!([&first["retry_attempt"], &second["retry_attempt"]], [1, 2]);
    assert_eq!(first["envelope_id"], second["envelope_id"]);
    socket.ack(&first).await;
    socket.ack(&second).await;
    assert!(stage.slack.wait_until_all_acked(WAIT).await);
    assert_eq!(stage.slack.acked_envelopes()[0].attempts, 3);
}

#[tokio::test]
async fn an_acknowledgement_counts_on_any_socket() {
    let stage = Stage::new().await;
    let mut old = stage.socket().await;
    stage.slack.say("#ops", "ann", "hello");
    let frame = old.frame().await;
    let mut new = stage.socket().await;
    new.ack(&frame).await;
    assert!(stage.slack.wait_until_all_acked(WAIT).await);
    assert!(!stage.slack.acked_envelopes()[0].on_same_socket);
}

#[tokio::test]
async fn pings_get_the_same_bytes_back() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    socket
        .0
        .send(Message::Ping("session:17".into()))
        .await
        .unwrap();
    assert_eq!(
        socket.next().await,
        Some(Message::Pong("session:17".into()))
    );
    stage
        .slack
        .faults()
        .set_knobs(|knobs| knobs.ping_every_ms = 20);
    let mut pinged = stage.socket().await;
    assert_eq!(
        pinged.next().await,
        Some(Message::Ping("Ping from applink-10".into()))
    );
}

#[tokio::test]
async fn disconnects_stalls_and_aborts() {
    let stage = Stage::new().await;
    stage
        .slack
        .faults()
        .set_knobs(|knobs| knobs.disconnect_grace_ms = 20);
    for reason in ["warning", "refresh_requested", "link_disabled"] {
        let mut socket = stage.socket().await;
        stage.slack.disconnect(reason);
        assert_eq!(socket.frame().await["reason"], reason);
        assert_eq!(socket.frame().await, Value::Null);
        assert!(stage.slack.wait_for_socket_count(0, WAIT).await);
    }
    let mut stalled = stage.socket().await;
    stage.slack.stall_sockets();
    stalled.0.send(Message::Ping("x".into())).await.unwrap();
    let silence = tokio::time::timeout(Duration::from_millis(100), stalled.0.next()).await;
    assert!(silence.is_err(), "{silence:?}");
    stage.slack.abort_sockets();
    let end = tokio::time::timeout(WAIT, stalled.0.next())
        .await
        .unwrap()
        .unwrap();
    let end = end.unwrap_err().to_string().to_lowercase();
    assert!(end.contains("reset"), "{end}");
}

#[tokio::test]
async fn a_draining_socket_gets_events_only_when_there_is_no_other() {
    let stage = Stage::new().await;
    let mut old = stage.socket().await;
    stage.slack.disconnect("warning");
    assert_eq!(old.frame().await["type"], "disconnect");
    stage.slack.say("#ops", "ann", "one");
    assert_eq!(old.event().await["text"], "one");
    let mut new = stage.socket().await;
    for n in 0..10 {
        let text = format!("two {n}");
        stage.slack.say("#ops", "ann", &text);
        assert_eq!(new.event().await["text"], text);
    }
}

#[tokio::test]
async fn a_post_lands_in_its_thread_and_comes_back_as_an_event() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    let root = stage.slack.say("#ops", "ann", "question");
    socket.event().await;
    let metadata = json!({"event_type": "reply", "event_payload": {"outbox_id": "7"}});
    let args = json!({"channel": "C0OPS", "thread_ts": root, "text": "1 < 2, see https://x.y", "metadata": metadata});
    let body = stage.call("chat.postMessage", args).await;
    assert_eq!(body["ok"], true);
    assert_eq!(body["message"]["text"], "1 &lt; 2, see <https://x.y>");
    assert_eq!(body["message"]["parent_user_id"], "U0ANN");
    let echo = socket.event().await;
    assert_eq!(
        [&echo["ts"], &echo["bot_id"], &echo["thread_ts"]],
        [&body["ts"], &json!("B0VOCATIVE"), &json!(root)]
    );
    assert_eq!(echo["metadata"], metadata);
    let seen = stage
        .slack
        .wait_for_post("#ops", |post| post.bot_id.is_some(), WAIT)
        .await
        .unwrap();
    assert_eq!(
        (seen.thread_ts, seen.metadata),
        (Some(root), Some(metadata))
    );
}

#[tokio::test]
async fn json_and_form_tokens_are_taken_too() {
    let stage = Stage::new().await;
    let url = |method: &str| format!("{}{method}", stage.slack.api_url());
    let post = stage
        .http
        .post(url("chat.postMessage"))
        .bearer_auth(&stage.world.bot_token);
    let blocks = json!([{"type": "markdown", "text": "**hi**"}]);
    let sent = post
        .json(&json!({"channel": "C0OPS", "blocks": blocks}))
        .send()
        .await
        .unwrap();
    let body: Value = sent.json().await.unwrap();
    let shown = &body["message"]["blocks"][0];
    assert_eq!([&shown["type"], &shown["text"]], ["markdown", "**hi**"]);
    let form = [("token", stage.world.bot_token.as_str())];
    let sent = stage
        .http
        .post(url("auth.test"))
        .form(&form)
        .send()
        .await
        .unwrap();
    assert_eq!(sent.json::<Value>().await.unwrap()["ok"], true);
    let logged = serde_json::to_string(&stage.wire.records()).unwrap();
    assert!(!logged.contains(&stage.world.bot_token));
}

#[tokio::test]
async fn long_texts_are_cut_with_a_warning_and_updates_refused() {
    let stage = Stage::new().await;
    let body = stage
        .call(
            "chat.postMessage",
            json!({"channel": "C0OPS", "text": "x".repeat(40_001)}),
        )
        .await;
    assert_eq!(body["warning"], "message_truncated");
    assert_eq!(
        body["response_metadata"]["warnings"],
        json!(["message_truncated"])
    );
    assert_eq!(stage.slack.posts("#ops")[0].text.len(), 40_000);
    let mut update = json!({"channel": "C0OPS", "ts": body["ts"], "text": "x".repeat(4_001)});
    assert_eq!(
        stage.call("chat.update", update.clone()).await["error"],
        "msg_too_long"
    );
    update["text"] = json!("x".repeat(4_000));
    assert_eq!(stage.call("chat.update", update).await["ok"], true);
}

#[tokio::test]
async fn an_update_replaces_words_and_keeps_metadata() {
    let stage = Stage::new().await;
    let metadata = json!({"event_type": "reply", "event_payload": {"n": 1}});
    let blocks = json!([{"type": "divider"}]);
    let args = json!({"channel": "C0OPS", "text": "a", "blocks": blocks, "metadata": metadata});
    let ts = stage.call("chat.postMessage", args).await["ts"].clone();
    stage
        .call(
            "chat.update",
            json!({"channel": "C0OPS", "ts": ts, "text": "b"}),
        )
        .await;
    let post = stage.slack.posts("#ops").remove(0);
    assert_eq!(
        (post.text.as_str(), post.blocks, post.metadata),
        ("b", None, Some(metadata))
    );
    assert!(post.edited.is_some());
    stage
        .call("chat.delete", json!({"channel": "C0OPS", "ts": ts}))
        .await;
    assert!(stage.slack.posts("#ops")[0].deleted);
}

#[tokio::test]
async fn a_stream_takes_words_until_it_is_stopped() {
    let stage = Stage::new().await;
    let root = stage.slack.say("#ops", "ann", "when?");
    let chunks = |text: &str| json!([{"type": "markdown_text", "text": text}]);
    let start = json!({
        "channel": "C0OPS", "thread_ts": root, "recipient_user_id": "U0ANN",
        "recipient_team_id": stage.world.team_id, "chunks": chunks("Tomorrow"),
    });
    let ts = stage.call("chat.startStream", start).await["ts"].clone();
    let item = json!({"channel": "C0OPS", "ts": ts});
    let with = |name: &str, value: Value| {
        let mut args = item.clone();
        args[name] = value;
        args
    };
    let state = || async {
        let args = json!({"channel": "C0OPS", "ts": root});
        let body = stage.call("conversations.replies", args).await;
        body["messages"][1]["streaming_state"].clone()
    };
    let added = with("chunks", chunks(" at nine"));
    assert_eq!(
        stage.call("chat.appendStream", added.clone()).await["ok"],
        true
    );
    assert_eq!(stage.slack.posts("#ops")[1].text, "Tomorrow at nine");
    assert_eq!(state().await, "in_progress");
    let update = with("text", json!("x"));
    let refused = stage.call("chat.update", update.clone()).await;
    assert_eq!(refused["error"], "streaming_state_conflict");
    let metadata = json!({"event_type": "reply", "event_payload": {"n": 1}});
    let stopped = stage
        .call("chat.stopStream", with("metadata", metadata.clone()))
        .await;
    assert_eq!(stopped["message"]["text"], "Tomorrow at nine");
    assert_eq!(stage.slack.posts("#ops")[1].metadata, Some(metadata));
    assert_eq!(state().await, "completed");
    let late = stage.call("chat.appendStream", added).await;
    assert_eq!(late["error"], "message_not_in_streaming_state");
    assert_eq!(stage.call("chat.update", update).await["ok"], true);
}

#[tokio::test]
async fn history_shows_roots_and_replies_show_threads() {
    let stage = Stage::new().await;
    let root = stage.slack.say("#ops", "ann", "root");
    stage.slack.say_in("#ops", "bob", &root, "reply");
    let broadcast = UserPost {
        channel: "#ops".into(),
        user: "bob".into(),
        text: "broadcast".into(),
        thread_ts: Some(root.clone()),
        broadcast: true,
        ..UserPost::default()
    };
    stage.slack.post_with(broadcast);
    let gone = stage.slack.say("#ops", "ann", "gone");
    stage.slack.delete("#ops", &gone);
    let history = json!({"channel": "C0OPS"});
    assert_eq!(
        stage.texts("conversations.history", history).await,
        ["broadcast", "root"]
    );
    let thread = json!({"channel": "C0OPS", "ts": root});
    assert_eq!(
        stage.texts("conversations.replies", thread.clone()).await,
        ["root", "reply", "broadcast"]
    );
    stage.slack.delete("#ops", &root);
    let placeholder = stage.call("conversations.replies", thread).await["messages"][0].clone();
    assert_eq!(
        [&placeholder["subtype"], &placeholder["reply_count"]],
        [&json!("tombstone"), &json!(2)]
    );
}

#[tokio::test]
async fn history_pages_and_windows() {
    let stage = Stage::new().await;
    let stamps: Vec<String> = (0..5)
        .map(|n| stage.slack.say("#ops", "ann", &n.to_string()))
        .collect();
    let mut texts = Vec::new();
    let mut cursor = String::new();
    loop {
        let args = json!({"channel": "C0OPS", "limit": "2", "cursor": cursor});
        let body = stage.call("conversations.history", args).await;
        let page = body["messages"].as_array().unwrap().clone();
        texts.extend(
            page.iter()
                .map(|message| message["text"].as_str().unwrap().to_owned()),
        );
        cursor = body["response_metadata"]["next_cursor"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert_eq!(body["has_more"], !cursor.is_empty());
        if cursor.is_empty() {
            break;
        }
    }
    assert_eq!(texts, ["4", "3", "2", "1", "0"]);
    let mut window = json!({"channel": "C0OPS", "oldest": stamps[1], "latest": stamps[3]});
    assert_eq!(
        stage.texts("conversations.history", window.clone()).await,
        ["2"]
    );
    window["inclusive"] = json!(true);
    assert_eq!(
        stage.texts("conversations.history", window).await,
        ["3", "2", "1"]
    );
}

#[tokio::test]
async fn an_app_that_is_distributed_reads_few_messages_a_page_and_a_page_a_minute() {
    let stage = Stage::new().await;
    for n in 0..4 {
        stage.slack.say("#ops", "ann", &n.to_string());
    }
    stage.slack.faults().set_knobs(|knobs| {
        knobs.history_gap_ms = 60_000;
        knobs.history_page_max = 3;
    });
    let args = json!({"channel": "C0OPS", "limit": "200"});
    let page = stage.call("conversations.history", args.clone()).await;
    assert_eq!(page["messages"].as_array().unwrap().len(), 3);
    assert_eq!(page["has_more"], true);
    let again = stage.call("conversations.history", args.clone()).await;
    assert_eq!(again["error"], "ratelimited");
    // Each method has its own minute, and the others have none.
    let thread = stage.slack.posts("#ops")[0].ts.clone();
    let replies = stage.call(
        "conversations.replies",
        json!({"channel": "C0OPS", "ts": thread}),
    );
    assert_eq!(replies.await["ok"], true);
    assert_eq!(stage.call("conversations.info", args).await["ok"], true);
}

#[tokio::test]
async fn metadata_shows_only_when_asked_for_and_posts_only_after_the_delay() {
    let stage = Stage::new().await;
    let metadata = json!({"event_type": "reply", "event_payload": {"n": 1}});
    let args = json!({"channel": "C0OPS", "text": "a", "metadata": metadata});
    stage.call("chat.postMessage", args).await;
    let history = json!({"channel": "C0OPS"});
    let plain = stage.call("conversations.history", history.clone()).await;
    assert_eq!(plain["messages"][0].get("metadata"), None);
    let all = json!({"channel": "C0OPS", "include_all_metadata": true});
    let full = stage.call("conversations.history", all).await;
    assert_eq!(full["messages"][0]["metadata"], metadata);
    stage.slack.faults().set_visibility_delay_ms(3_600_000);
    stage
        .call(
            "chat.postMessage",
            json!({"channel": "C0OPS", "text": "later"}),
        )
        .await;
    assert_eq!(stage.texts("conversations.history", history).await, ["a"]);
    assert_eq!(stage.slack.posts("#ops").len(), 2);
}

#[tokio::test]
async fn call_faults_strike_before_or_after_the_write() {
    let stage = Stage::new().await;
    let faults = stage.slack.faults();
    let token = stage.world.bot_token.clone();
    let args = json!({"channel": "C0OPS", "text": "a"});
    let method = "chat.postMessage";
    let cases = [
        (CallFault::ResetBefore, None, 0),
        (CallFault::ResetAfter, None, 1),
        (CallFault::Status(503), Some(503), 0),
        (CallFault::StatusAfterApply(500), Some(500), 1),
        (CallFault::RateLimited(7), Some(429), 0),
        (CallFault::Error("internal_error".into()), Some(200), 0),
        (
            CallFault::ErrorAfterApply("internal_error".into()),
            Some(200),
            1,
        ),
        (CallFault::Html, Some(200), 0),
        (CallFault::Latency(10), Some(200), 1),
    ];
    for (fault, expected, written) in cases {
        let before = stage.slack.posts("#ops").len();
        faults.next(method, fault.clone());
        let answer = stage.send(method, &token, &args).await;
        let status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
        assert_eq!(status, expected, "{fault:?}");
        assert_eq!(
            stage.slack.posts("#ops").len() - before,
            written,
            "{fault:?}"
        );
        if let CallFault::RateLimited(_) = fault {
            assert_eq!(answer.unwrap().headers()["retry-after"], "7");
        }
    }
    faults.next(method, CallFault::LoseResponse);
    let before = stage.slack.posts("#ops").len();
    let short = Duration::from_millis(200);
    let lost = tokio::time::timeout(short, stage.send(method, &token, &args)).await;
    assert!(lost.is_err());
    assert_eq!(stage.slack.posts("#ops").len(), before + 1);
    assert_eq!(stage.call(method, args).await["ok"], true);
}

#[tokio::test]
async fn event_faults_drop_double_delay_and_reorder() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    let faults = stage.slack.faults();
    faults.next_event(EventFault::Drop);
    faults.next_event(EventFault::Duplicate(1));
    stage.slack.say("#ops", "ann", "dropped");
    stage.slack.say("#ops", "ann", "twice");
    let (first, second) = (socket.frame().await, socket.frame().await);
    assert_eq!(first["payload"]["event"]["text"], "twice");
    assert_eq!(first, second);
    socket.ack(&first).await;
    socket.ack(&second).await;
    faults.next_event(EventFault::DuplicateEvent(1));
    stage.slack.say("#ops", "ann", "new ids");
    let (first, second) = (socket.frame().await, socket.frame().await);
    assert_eq!(first["payload"]["event"], second["payload"]["event"]);
    assert_ne!(first["payload"]["event_id"], second["payload"]["event_id"]);
    assert_eq!(second["retry_attempt"], 0);
    socket.ack(&first).await;
    socket.ack(&second).await;
    faults.next_event(EventFault::Delay(30));
    for text in ["late", "early"] {
        stage.slack.say("#ops", "ann", text);
    }
    let order = [socket.event().await, socket.event().await];
    assert_eq!(order.map(|event| event["text"].clone()), ["early", "late"]);
    stage.slack.reorder_next(3);
    for text in ["1", "2", "3"] {
        stage.slack.say("#ops", "ann", text);
    }
    let order = [
        socket.event().await,
        socket.event().await,
        socket.event().await,
    ];
    assert_eq!(order.map(|event| event["text"].clone()), ["3", "2", "1"]);
    assert!(stage.slack.wait_until_all_acked(WAIT).await);
    assert_eq!(stage.slack.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn an_echo_can_come_before_the_answer() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    stage.slack.faults().set_echo_before_response(true);
    let call = stage.call("chat.postMessage", json!({"channel": "C0OPS", "text": "a"}));
    let (echo, body) = tokio::join!(socket.event(), call);
    assert_eq!(echo["ts"], body["ts"]);
    let ack_at = |name: &str, kind| {
        let records = stage.wire.records();
        records
            .iter()
            .rposition(|record| record.name == name && record.kind == kind)
    };
    assert!(ack_at("ack", WireKind::FrameIn) < ack_at("chat.postMessage", WireKind::Response));
}

#[tokio::test]
async fn edits_deletes_and_unfurls_are_hidden_messages() {
    let stage = Stage::new().await;
    let ts = stage.slack.say("#ops", "ann", "hello");
    let mut socket = stage.socket().await;
    stage.slack.edit("#ops", &ts, "<@U0VOCATIVE> hello");
    let (changed, mention) = (socket.event().await, socket.event().await);
    assert_eq!(
        [&changed["subtype"], &changed["message"]["ts"]],
        ["message_changed", ts.as_str()]
    );
    assert_eq!(changed["previous_message"]["text"], "hello");
    assert_eq!(
        [&mention["type"], &mention["ts"]],
        ["app_mention", ts.as_str()]
    );
    stage
        .slack
        .unfurl("#ops", &ts, json!([{"from_url": "https://x.y"}]));
    let unfurl = socket.event().await;
    assert_eq!(
        unfurl["message"]["edited"],
        unfurl["previous_message"]["edited"]
    );
    assert_eq!(
        unfurl["message"]["attachments"][0]["from_url"],
        "https://x.y"
    );
    stage.slack.delete("#ops", &ts);
    let deleted = socket.event().await;
    assert_eq!(
        [&deleted["subtype"], &deleted["deleted_ts"]],
        ["message_deleted", ts.as_str()]
    );
}

#[tokio::test]
async fn commands_and_clicks_take_an_answer_with_their_acknowledgement() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    stage.slack.slash_command("#ops", "ann", "/agent", "status");
    let frame = socket.frame().await;
    assert_eq!(
        [&frame["type"], &frame["accepts_response_payload"]],
        [&json!("slash_commands"), &json!(true)]
    );
    assert_eq!(frame.get("retry_attempt"), None);
    let answer = json!({"text": "fine"});
    let ack = json!({"envelope_id": frame["envelope_id"], "payload": answer});
    socket.0.send(Message::text(ack.to_string())).await.unwrap();
    assert!(stage.slack.wait_until_all_acked(WAIT).await);
    assert_eq!(stage.slack.acked_envelopes()[0].response, Some(answer));
    let button = json!({"type": "button", "action_id": "approve", "value": "7",
        "text": {"type": "plain_text", "text": "Approve"}});
    let blocks = json!([{"type": "actions", "elements": [button]}]);
    let posted = json!({"channel": "C0OPS", "text": "press", "blocks": blocks});
    let message_ts = stage.call("chat.postMessage", posted).await["ts"].clone();
    let message_ts = message_ts.as_str().unwrap().to_owned();
    socket.event().await;
    let click = BlockAction {
        channel: "#ops".into(),
        user: "bob".into(),
        message_ts: message_ts.clone(),
        action_id: "approve".into(),
        ..BlockAction::default()
    };
    stage.slack.block_action(&click);
    let frame = socket.frame().await;
    let action = &frame["payload"]["actions"][0];
    assert_eq!([&action["action_id"], &action["value"]], ["approve", "7"]);
    assert_eq!(action["block_id"].as_str().unwrap().len(), 5);
    assert_eq!(frame["payload"]["container"]["message_ts"], message_ts);
}

#[tokio::test]
async fn a_response_url_works_five_times() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    stage.slack.slash_command("#ops", "ann", "/agent", "status");
    let frame = socket.frame().await;
    let url = frame["payload"]["response_url"].as_str().unwrap();
    let send = async |body: Value| {
        let sent = stage.http.post(url).json(&body).send().await.unwrap();
        sent.text().await.unwrap()
    };
    assert_eq!(send(json!({"markdown_text": "x"})).await, "no_text");
    let room = json!({"text": "to all", "response_type": "in_channel"});
    assert_eq!(send(room).await, "ok");
    for _ in 0..4 {
        assert_eq!(send(json!({"text": "to ann"})).await, "ok");
    }
    assert_eq!(send(json!({"text": "once more"})).await, "used_url");
    assert_eq!(stage.slack.posts("#ops")[0].text, "to all");
    let whispers = stage.slack.ephemerals();
    assert_eq!((whispers.len(), whispers[0].user.as_str()), (4, "U0ANN"));
}

#[tokio::test]
async fn a_channel_takes_its_messages_along_when_its_id_changes() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    stage.slack.say("#ops", "ann", "before");
    assert_eq!(socket.event().await["channel"], "C0OPS");
    stage.slack.change_channel_id("C0OPS", "C0SHARED");
    let changed = socket.event().await;
    assert_eq!(
        [
            &changed["type"],
            &changed["old_channel_id"],
            &changed["new_channel_id"]
        ],
        ["channel_id_changed", "C0OPS", "C0SHARED"]
    );
    let post = |channel| json!({"channel": channel, "text": "after"});
    let refused = stage.call("chat.postMessage", post("C0OPS")).await;
    assert_eq!(refused["error"], "channel_not_found");
    let taken = stage.call("chat.postMessage", post("C0SHARED")).await;
    assert_eq!(taken["channel"], "C0SHARED");
    let texts: Vec<String> = stage
        .slack
        .posts("#ops")
        .into_iter()
        .map(|it| it.text)
        .collect();
    assert_eq!(texts, ["before", "after"]);
}

#[tokio::test]
async fn membership_names_and_strangers() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    stage.slack.invite_bot("#elsewhere", "U0ANN");
    assert_eq!(socket.event().await["type"], "member_joined_channel");
    stage.slack.rename_channel("#elsewhere", "here");
    assert_eq!(socket.event().await["channel"]["name"], "here");
    stage.slack.remove_bot("#here", "U0ANN");
    assert_eq!(socket.event().await["type"], "member_left_channel");
    assert_eq!(socket.event().await["type"], "channel_left");
    stage.slack.say("#partners", "sue", "hi");
    let frame = socket.frame().await;
    let payload = &frame["payload"];
    assert_eq!(
        [
            &payload["team_id"],
            &payload["authorizations"][0]["team_id"]
        ],
        ["T0OTHER", "T0ACME"]
    );
    assert_eq!(payload["is_ext_shared_channel"], true);
    let sue = stage
        .call("users.info", json!({"user": "U0STRANGER"}))
        .await;
    assert_eq!(sue["user"]["is_stranger"], true);
    let open = stage
        .call("conversations.open", json!({"users": "U0BOB"}))
        .await;
    let posted = stage
        .call(
            "chat.postMessage",
            json!({"channel": "U0BOB", "text": "hi"}),
        )
        .await;
    assert_eq!(open["channel"]["id"], posted["channel"]);
    let group = json!({"users": "U0BOB,U0ANN"});
    let refused = stage.call("conversations.open", group.clone()).await;
    let told = [&refused["error"], &refused["needed"]];
    assert_eq!(told, ["missing_scope", "mpim:write"]);
    stage
        .slack
        .change_world(|world| world.scopes.push("mpim:write".into()));
    let opened = stage.call("conversations.open", group).await;
    assert_eq!(opened["channel"]["id"], "G0GROUP");
}

#[tokio::test]
async fn the_control_surface_acts_and_watches() {
    let stage = Stage::new().await;
    let control = stage.slack.api_url().replace("/api/", "/control/");
    let send = async |path: &str, body: Value| -> (u16, Value) {
        let sent = stage
            .http
            .post(format!("{control}{path}"))
            .json(&body)
            .send()
            .await
            .unwrap();
        (sent.status().as_u16(), sent.json().await.unwrap())
    };
    let post = json!({"channel": "#ops", "user": "ann", "text": "@vocative & co"});
    let (_, posted) = send("post", post).await;
    let edit = json!({"channel": "#ops", "ts": posted["ts"], "text": "better"});
    assert_eq!(send("edit", edit).await, (200, json!({})));
    let fault = json!({"method": "chat.postMessage", "kind": "error", "error": "fatal_error"});
    assert_eq!(send("fault", fault).await, (200, json!({})));
    let body = stage
        .call("chat.postMessage", json!({"channel": "C0OPS", "text": "x"}))
        .await;
    assert_eq!(body["error"], "fatal_error");
    let nobody = json!({"channel": "#ops", "user": "nobody", "text": "x"});
    let refused = json!({"error": "no user nobody in this world"});
    assert_eq!(send("post", nobody).await, (400, refused));
    let unknown = json!({"latency": 5});
    assert_eq!(send("knobs", unknown).await.0, 400);
    let url = format!("{control}posts?channel=%23ops");
    let posts: Value = stage
        .http
        .get(url)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(posts["posts"][0]["text"], "better");
    let state = stage
        .http
        .get(format!("{control}state"))
        .send()
        .await
        .unwrap();
    let state: Value = state.json().await.unwrap();
    assert_eq!([&state["unacked"], &state["open_sockets"]], [3, 0]);
}

#[tokio::test]
async fn stopping_ends_sockets_and_frees_the_port() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    let addr = stage.slack.addr();
    stage.slack.stop().await;
    assert_eq!(socket.frame().await, Value::Null);
    let again = SlackServer::start(SlackWorld::acme(), addr, WireLog::new()).await;
    assert_eq!(again.unwrap().addr(), addr);
}
