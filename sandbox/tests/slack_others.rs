//! What other people's bots ask of the loopback Slack: uploads, menus, modals, answers, the control
//! surface as a process of its own sees it.
#![allow(clippy::unwrap_used)]

use std::sync::Once;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use vocative_sandbox::slack::{SlackServer, SlackWorld};
use vocative_sandbox::wire::WireLog;

const WAIT: Duration = Duration::from_secs(10);

type Stream = WebSocketStream<MaybeTlsStream<TcpStream>>;

struct Stage {
    slack: SlackServer,
    http: reqwest::Client,
}

impl Stage {
    async fn new() -> Self {
        static CRYPTO: Once = Once::new();
        CRYPTO.call_once(|| {
            let provider = rustls::crypto::ring::default_provider();
            provider.install_default().unwrap();
        });
        let any_port = ([127, 0, 0, 1], 0).into();
        let slack = SlackServer::start(SlackWorld::acme(), any_port, WireLog::new());
        Self {
            slack: slack.await.unwrap(),
            http: reqwest::Client::new(),
        }
    }

    async fn call(&self, method: &str, args: Value) -> Value {
        let url = format!("{}{method}", self.slack.api_url());
        let fields = args.as_object().unwrap().iter();
        let fields: Vec<(&String, String)> = fields
            .map(|(name, value)| match value.as_str() {
                Some(text) => (name, text.to_owned()),
                None => (name, value.to_string()),
            })
            .collect();
        let request = self
            .http
            .post(url)
            .bearer_auth(self.slack.world().bot_token);
        let sent = request.form(&fields).send().await.unwrap();
        sent.json().await.unwrap()
    }

    fn control(&self, act: &str) -> String {
        format!("http://{}/control/{act}", self.slack.addr())
    }

    /// An act of a person, over HTTP: the status and what it gives.
    async fn act(&self, act: &str, body: Value) -> (u16, Value) {
        let sent = self.http.post(self.control(act)).json(&body).send().await;
        let sent = sent.unwrap();
        (sent.status().as_u16(), sent.json().await.unwrap())
    }

    async fn done(&self, act: &str, body: Value) -> Value {
        let (status, answer) = self.act(act, body).await;
        assert_eq!(status, 200, "{act}: {answer}");
        answer
    }

    /// Why an act is refused.
    async fn refused(&self, act: &str, body: Value) -> String {
        let (status, answer) = self.act(act, body).await;
        assert_eq!(status, 400, "{act}: {answer}");
        answer["error"].as_str().unwrap().to_owned()
    }

    async fn look(&self, what: &str) -> Value {
        let seen = self.http.get(self.control(what)).send().await.unwrap();
        seen.json().await.unwrap()
    }

    async fn socket(&self) -> Stream {
        let url = format!("{}apps.connections.open", self.slack.api_url());
        let request = self
            .http
            .post(url)
            .bearer_auth(self.slack.world().app_token);
        let opened: Value = request.send().await.unwrap().json().await.unwrap();
        let (mut stream, _) = connect_async(opened["url"].as_str().unwrap())
            .await
            .unwrap();
        assert_eq!(frame(&mut stream).await["type"], "hello");
        stream
    }

    async fn post_card(&self) -> String {
        let posted = self
            .call(
                "chat.postMessage",
                json!({"channel": "C0OPS", "text": "deploy?", "blocks": card()}),
            )
            .await;
        assert_eq!(posted["ok"], true, "{posted}");
        posted["ts"].as_str().unwrap().to_owned()
    }
}

fn card() -> Value {
    let label = |text: &str| json!({"type": "plain_text", "text": text});
    json!([
        {"type": "section", "text": {"type": "mrkdwn", "text": "*deploy?*"}, "accessory": {
            "type": "static_select", "action_id": "where", "options": [
                {"text": label("Staging"), "value": "staging"},
                {"text": label("Production"), "value": "production"}]}},
        {"type": "actions", "block_id": "b", "elements": [
            {"type": "button", "action_id": "approve", "value": "7", "style": "primary",
             "text": label("Approve")}]}
    ])
}

async fn frame(stream: &mut Stream) -> Value {
    loop {
        let next = tokio::time::timeout(WAIT, stream.next()).await.unwrap();
        match next.and_then(Result::ok) {
            Some(Message::Text(text)) => return serde_json::from_str(&text).unwrap(),
            Some(_) => {}
            None => return Value::Null,
        }
    }
}

async fn ack(stream: &mut Stream, frame: &Value, payload: Value) {
    let mut ack = json!({"envelope_id": frame["envelope_id"]});
    if !payload.is_null() {
        ack["payload"] = payload;
    }
    stream.send(Message::text(ack.to_string())).await.unwrap();
}

/// The next click, command or modal, after acknowledging the events before it.
async fn interaction(stream: &mut Stream) -> Value {
    loop {
        let next = frame(stream).await;
        if next["type"] != "events_api" {
            return next;
        }
        ack(stream, &next, Value::Null).await;
    }
}

#[tokio::test]
async fn a_file_is_taken_as_bytes_and_as_a_form() {
    let stage = Stage::new().await;
    let announced = json!({"filename": "a.txt", "length": "5"});
    let form = "--x\r\nContent-Disposition: form-data; name=\"filename\"; filename=\"a.txt\"\r\n\
                Content-Type: text/plain\r\n\r\nhello\r\n--x--\r\n";
    let bodies = [
        ("multipart/form-data; boundary=x", form),
        ("application/octet-stream", "hello"),
    ];
    for (content_type, body) in bodies {
        let ticket = stage
            .call("files.getUploadURLExternal", announced.clone())
            .await;
        let url = ticket["upload_url"].as_str().unwrap();
        let request = stage.http.post(url).header("content-type", content_type);
        let sent = request.body(body).send().await.unwrap();
        assert_eq!(sent.text().await.unwrap(), "OK - 5", "{content_type}");
        let file = json!([{"id": ticket["file_id"], "title": "A letter"}]);
        let shared = json!({"files": file, "channel_id": "C0OPS"});
        assert_eq!(
            stage.call("files.completeUploadExternal", shared).await["ok"],
            true
        );
        let id = ticket["file_id"].as_str().unwrap();
        assert_eq!(stage.slack.file_bytes(id).unwrap(), b"hello");
    }
    assert_eq!(stage.slack.posts("#ops")[0].files[0]["title"], "A letter");
}

#[tokio::test]
async fn arguments_count_in_the_query_and_in_a_form_of_parts() {
    let stage = Stage::new().await;
    let token = stage.slack.world().bot_token;
    let url = format!(
        "{}chat.postMessage?channel=C0OPS&text=asked",
        stage.slack.api_url()
    );
    let sent = stage
        .http
        .post(url)
        .bearer_auth(&token)
        .send()
        .await
        .unwrap();
    assert_eq!(
        sent.json::<Value>().await.unwrap()["message"]["text"],
        "asked"
    );
    let part = |name: &str, value: &str| {
        format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let body = part("channel", "C0OPS") + &part("text", "in parts") + "--x--\r\n";
    let url = format!("{}chat.postMessage", stage.slack.api_url());
    let request = stage.http.post(url).bearer_auth(&token).body(body);
    let request = request.header("content-type", "multipart/form-data; boundary=x");
    let posted: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(posted["message"]["text"], "in parts");
}

#[tokio::test]
async fn a_stream_without_words_takes_the_mode_of_its_first_words() {
    let stage = Stage::new().await;
    let root = stage.slack.say("#ops", "ann", "tell me");
    for first in [
        json!({"markdown_text": "a"}),
        json!({"chunks": [{"type": "markdown_text", "text": "a"}]}),
    ] {
        let begun = stage
            .call(
                "chat.startStream",
                json!({"channel": "C0OPS", "thread_ts": root,
                "recipient_user_id": "U0ANN", "recipient_team_id": "T0ACME"}),
            )
            .await;
        let with = |words: &Value| {
            let mut args = json!({"channel": "C0OPS", "ts": begun["ts"]});
            let fields = words.as_object().unwrap().clone();
            args.as_object_mut().unwrap().extend(fields);
            args
        };
        assert_eq!(
            stage.call("chat.appendStream", with(&first)).await["ok"],
            true,
            "{first}"
        );
        let other = match first.get("chunks") {
            Some(_) => json!({"markdown_text": "b"}),
            None => json!({"chunks": [{"type": "markdown_text", "text": "b"}]}),
        };
        let mixed = stage.call("chat.appendStream", with(&other)).await;
        assert_eq!(mixed["error"], "streaming_mode_mismatch");
    }
}

#[tokio::test]
async fn a_click_is_on_something_that_is_there_by_somebody_who_sees_it() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    let ts = stage.post_card().await;
    let click = |user: &str, action: &str, value: &str| json!({"channel": "#ops", "user": user, "ts": ts, "action_id": action, "value": value});
    let cases = [
        (
            click("ann", "deny", ""),
            "nothing to click is called deny; there is: where, approve",
        ),
        (
            click("ann", "approve", "8"),
            "the value of this button is \"7\"",
        ),
        (
            click("ann", "where", "moon"),
            "no option has the value moon",
        ),
        (
            click("sue", "approve", ""),
            "U0STRANGER is not in C0OPS and sees no buttons there",
        ),
        (click("eve", "approve", ""), "no user eve in this world"),
    ];
    for (body, why) in cases {
        assert_eq!(stage.refused("click", body).await, why);
    }
    let anns = stage.slack.say("#ops", "ann", "mine");
    let body = json!({"channel": "#ops", "user": "bob", "ts": anns, "action_id": "approve"});
    assert!(stage.refused("click", body).await.contains("not the app's"));
    stage
        .done("click", click("bob", "where", "production"))
        .await;
    let chosen = interaction(&mut socket).await;
    let action = &chosen["payload"]["actions"][0];
    assert_eq!(action["selected_option"]["text"]["text"], "Production");
    let held = &chosen["payload"]["state"]["values"];
    let block = action["block_id"].as_str().unwrap();
    assert_eq!(
        held[block]["where"]["selected_option"]["value"],
        "production"
    );
}

#[tokio::test]
async fn an_answer_replaces_or_deletes_what_was_clicked() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    let ts = stage.post_card().await;
    let click = json!({"channel": "#ops", "user": "ann", "ts": ts, "action_id": "approve"});
    stage.done("click", click).await;
    let clicked = interaction(&mut socket).await;
    ack(&mut socket, &clicked, Value::Null).await;
    let url = clicked["payload"]["response_url"]
        .as_str()
        .unwrap()
        .to_owned();
    let answer = async |body: Value| {
        let sent = stage.http.post(&url).json(&body).send().await.unwrap();
        sent.text().await.unwrap()
    };
    assert_eq!(
        answer(json!({"replace_original": true, "text": "approved"})).await,
        "ok"
    );
    let post = stage.slack.posts("#ops")[0].clone();
    assert_eq!(
        (post.text.as_str(), post.blocks, post.deleted),
        ("approved", None, false)
    );
    assert_eq!(answer(json!({"delete_original": true})).await, "ok");
    assert!(stage.slack.posts("#ops")[0].deleted);
    assert_eq!(stage.slack.posts("#ops").len(), 1);
    let bad = json!({"text": "x", "blocks": [{"type": "poem"}]});
    assert_eq!(answer(bad).await, "invalid_blocks");
}

#[tokio::test]
async fn an_ephemeral_card_is_clicked_by_its_reader_only() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    let card = json!({"channel": "C0OPS", "user": "U0ANN", "text": "psst", "blocks": card()});
    let ts = stage.call("chat.postEphemeral", card).await["message_ts"].clone();
    let click =
        |user: &str| json!({"channel": "C0OPS", "user": user, "ts": ts, "action_id": "approve"});
    assert_eq!(
        stage.refused("click", click("bob")).await,
        "only U0ANN sees this message"
    );
    stage.done("click", click("ann")).await;
    let clicked = interaction(&mut socket).await["payload"].clone();
    assert_eq!(clicked["container"]["is_ephemeral"], true);
    assert_eq!(clicked.get("message"), None);
    let url = clicked["response_url"].as_str().unwrap();
    let body = json!({"replace_original": "true", "text": "done"});
    stage.http.post(url).json(&body).send().await.unwrap();
    assert_eq!(stage.slack.ephemerals()[0].text, "done");
    let body = json!({"delete_original": true});
    stage.http.post(url).json(&body).send().await.unwrap();
    assert_eq!(stage.slack.ephemerals(), []);
}

#[tokio::test]
async fn a_command_is_answered_with_its_acknowledgement() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    let typed = json!({"channel": "#ops", "user": "ann", "command": "/ask", "text": "x"});
    stage.done("command", typed.clone()).await;
    let asked = interaction(&mut socket).await;
    ack(&mut socket, &asked, json!({"text": "to you"})).await;
    stage.done("command", typed).await;
    let asked = interaction(&mut socket).await;
    let to_all = json!({"text": "to all", "response_type": "in_channel"});
    ack(&mut socket, &asked, to_all).await;
    assert!(
        stage
            .slack
            .wait_for_post("#ops", |post| post.text == "to all", WAIT)
            .await
            .is_some()
    );
    assert_eq!(stage.slack.ephemerals()[0].text, "to you");
}

fn modal(title: &str) -> Value {
    let label = |text: &str| json!({"type": "plain_text", "text": text});
    json!({"type": "modal", "callback_id": "alias", "title": label(title), "submit": label("Save"),
        "notify_on_close": true, "blocks": [{"type": "input", "block_id": "b1", "label": label("Alias"),
            "element": {"type": "plain_text_input", "action_id": "a1"}}]})
}

#[tokio::test]
async fn a_modal_is_opened_filled_in_corrected_and_closed() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    let typed = json!({"channel": "#ops", "user": "ann", "command": "/alias"});
    stage.done("command", typed).await;
    let asked = interaction(&mut socket).await;
    ack(&mut socket, &asked, Value::Null).await;
    let trigger = asked["payload"]["trigger_id"].clone();
    let open = json!({"trigger_id": trigger, "view": modal("Alias")});
    let opened = stage.call("views.open", open.clone()).await;
    assert_eq!(opened["view"]["callback_id"], "alias", "{opened}");
    assert_eq!(
        stage.call("views.open", open).await["error"],
        "exchanged_trigger_id"
    );
    let id = opened["view"]["id"].clone();

    assert_eq!(
        stage.refused("submit", json!({"user": "bob"})).await,
        "U0BOB has no modal open"
    );
    let empty = stage.refused("submit", json!({"user": "ann"})).await;
    assert_eq!(empty, "the input a1 must be filled in");
    stage
        .done("submit", json!({"user": "ann", "values": {"a1": "root"}}))
        .await;
    let sent = interaction(&mut socket).await;
    assert_eq!(
        sent["payload"]["view"]["state"]["values"]["b1"]["a1"]["value"],
        "root"
    );
    let errors = json!({"response_action": "errors", "errors": {"b1": "Already taken"}});
    ack(&mut socket, &sent, errors).await;
    assert!(stage.slack.wait_until_all_acked(WAIT).await);
    assert_eq!(
        stage.look("views").await["views"][0]["errors"]["b1"],
        "Already taken"
    );

    let stale = json!({"view_id": id, "hash": "1.x", "view": modal("Again")});
    assert_eq!(
        stage.call("views.update", stale).await["error"],
        "hash_conflict"
    );
    let update = json!({"view_id": id, "view": modal("Again")});
    assert_eq!(
        stage.call("views.update", update).await["view"]["title"]["text"],
        "Again"
    );
    stage.done("close", json!({"user": "ann"})).await;
    assert_eq!(
        interaction(&mut socket).await["payload"]["type"],
        "view_closed"
    );
    assert_eq!(stage.look("views").await["views"], json!([]));

    let mut wrong = modal("A title of more than 24 characters");
    wrong["blocks"] = json!([]);
    let wrong = json!({"view_id": id, "view": wrong});
    assert_eq!(
        stage.call("views.update", wrong).await["error"],
        "invalid_arguments"
    );
}

#[tokio::test]
async fn a_modal_has_bounds_and_so_has_what_is_entered() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    let mut bounded = modal("Amount");
    bounded["blocks"][0]["element"]["min_length"] = json!(2);
    bounded["blocks"][0]["element"]["max_length"] = json!(4);
    let mut endless = bounded.clone();
    endless["blocks"][0]["element"]["max_length"] = json!(3_001);
    let mut large = bounded.clone();
    large["blocks"][0]["hint"] = json!({"type": "plain_text", "text": "x".repeat(250_000)});
    for (view, error) in [
        (endless, "invalid_arguments"),
        (large, "view_too_large"),
        (bounded, ""),
    ] {
        let typed = json!({"channel": "#ops", "user": "ann", "command": "/amount"});
        stage.done("command", typed).await;
        let trigger = interaction(&mut socket).await["payload"]["trigger_id"].clone();
        let open = json!({"trigger_id": trigger, "view": view});
        let opened = stage.call("views.open", open).await;
        assert_eq!(opened["error"].as_str().unwrap_or_default(), error);
    }
    let enter = |text: &str| json!({"user": "ann", "values": {"a1": text}});
    for wrong in ["1", "12345"] {
        let refused = stage.refused("submit", enter(wrong)).await;
        assert_eq!(refused, "the input a1 takes no text of this length");
    }
    stage.done("submit", enter("120")).await;
    let sent = interaction(&mut socket).await;
    let entered = &sent["payload"]["view"]["state"]["values"]["b1"]["a1"]["value"];
    assert_eq!(entered, "120");
}

#[tokio::test]
async fn a_click_may_name_a_button_by_its_words() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    let blocks = json!([{"type": "actions", "elements": [
        {"type": "button", "action_id": "a0", "value": "yes", "text": {"type": "plain_text", "text": "Approve"}},
        {"type": "button", "action_id": "a1", "value": "no", "text": {"type": "plain_text", "text": "Deny"}},
    ]}]);
    let send = json!({"channel": "C0GENERAL", "text": "Refund?", "blocks": blocks});
    let ts = stage.call("chat.postMessage", send).await["ts"].clone();
    let click =
        |button: &str| json!({"channel": "C0GENERAL", "user": "ann", "ts": ts, "button": button});
    stage.done("click", click("Deny")).await;
    let clicked = interaction(&mut socket).await;
    let action = &clicked["payload"]["actions"][0];
    assert_eq!(
        (&action["action_id"], &action["value"]),
        (&json!("a1"), &json!("no"))
    );
    let refused = stage.refused("click", click("Perhaps")).await;
    assert_eq!(
        refused,
        "nothing to click is called Perhaps; there is: a0, a1"
    );
}

#[tokio::test]
async fn a_trigger_opens_nothing_when_its_time_is_over() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    stage.done("knobs", json!({"trigger_life_ms": 0})).await;
    stage
        .done(
            "command",
            json!({"channel": "#ops", "user": "ann", "command": "/x"}),
        )
        .await;
    let trigger = interaction(&mut socket).await["payload"]["trigger_id"].clone();
    let open = json!({"trigger_id": trigger, "view": modal("Alias")});
    assert_eq!(
        stage.call("views.open", open).await["error"],
        "expired_trigger_id"
    );
}

#[tokio::test]
async fn the_home_tab_is_published_and_opened() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    let section = json!({"type": "section", "text": {"type": "mrkdwn", "text": "hi"}});
    let home = json!({"type": "home", "blocks": [section]});
    let publish = json!({"user_id": "U0ANN", "view": home});
    assert_eq!(stage.call("views.publish", publish).await["ok"], true);
    stage.done("open", json!({"user": "ann"})).await;
    let event = frame(&mut socket).await["payload"]["event"].clone();
    assert_eq!([&event["type"], &event["tab"]], ["app_home_opened", "home"]);
    assert_eq!(event["view"]["blocks"][0]["text"]["text"], "hi");
}

#[tokio::test]
async fn acts_take_names_and_refuse_strangers() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    let ts = stage.post_card().await;
    let react =
        |user: &str| json!({"channel": "#ops", "ts": ts, "user": user, "reaction": ":eyes:"});
    assert_eq!(
        stage.refused("react", react("eve")).await,
        "no user eve in this world"
    );
    stage.done("react", react("bob")).await;
    let mut event = frame(&mut socket).await;
    while event["payload"]["event"]["type"] != "reaction_added" {
        event = frame(&mut socket).await;
    }
    let reacted = &event["payload"]["event"];
    assert_eq!([&reacted["user"], &reacted["reaction"]], ["U0BOB", "eyes"]);
    let seen = stage
        .call(
            "reactions.get",
            json!({"channel": "C0OPS", "timestamp": ts}),
        )
        .await;
    assert_eq!(seen["message"]["reactions"][0]["users"], json!(["U0BOB"]));
    let invite = json!({"channel": "#elsewhere", "user": "eve"});
    assert_eq!(
        stage.refused("invite", invite).await,
        "no user eve in this world"
    );
    stage
        .done("invite", json!({"channel": "#elsewhere", "user": "ann"}))
        .await;
    let mut event = frame(&mut socket).await;
    while event["payload"]["event"]["type"] != "member_joined_channel" {
        event = frame(&mut socket).await;
    }
    let joined = &event["payload"]["event"];
    assert_eq!(
        [&joined["type"], &joined["inviter"]],
        ["member_joined_channel", "U0ANN"]
    );
    let typo = json!({"channel": "#ops", "user": "ann", "text": "x", "thread": "1.2"});
    assert!(
        stage
            .refused("post", typo)
            .await
            .contains("unknown field `thread`")
    );
}

#[tokio::test]
async fn another_apps_bot_has_its_own_name() {
    let stage = Stage::new().await;
    let post = json!({"channel": "#ops", "user": "otherbot", "text": "beep"});
    stage.done("post", post).await;
    let page = stage
        .call("conversations.history", json!({"channel": "C0OPS"}))
        .await;
    let profile = &page["messages"][0]["bot_profile"];
    assert_eq!(
        [&profile["id"], &profile["name"]],
        ["B0OTHER", "Otherbot Example"]
    );
}

#[tokio::test]
async fn blocks_get_ids_and_ids_stand_once() {
    let stage = Stage::new().await;
    stage.post_card().await;
    let blocks = stage.slack.posts("#ops")[0].blocks.clone().unwrap();
    assert_eq!(blocks[0]["block_id"].as_str().unwrap().len(), 5);
    assert_eq!(blocks[1]["block_id"], "b");
    let button = |text: Value, id: &str| json!({"type": "button", "action_id": id, "text": text});
    let plain = json!({"type": "plain_text", "text": "x"});
    let actions = |elements: Value| json!([{"type": "actions", "elements": elements}]);
    let section = |text: Value| json!([{"type": "section", "text": text}]);
    let wrong = [
        actions(json!([
            button(plain.clone(), "a"),
            button(plain.clone(), "a")
        ])),
        actions(json!([button(json!({"type": "mrkdwn", "text": "x"}), "a")])),
        actions(json!([button(Value::Null, "a")])),
        actions(json!([{"type": "plain_text_input", "action_id": "a"}])),
        actions(json!([{"type": "static_select", "action_id": "a", "options": []}])),
        section(json!({"text": "no type"})),
        section(json!("bare")),
        json!([{"type": "divider", "block_id": "d"}, {"type": "divider", "block_id": "d"}]),
        json!([{"type": "image", "alt_text": "of nothing"}]),
        json!([{"type": "context", "elements": [{"type": "button", "text": plain}]}]),
    ];
    for blocks in wrong {
        let post = json!({"channel": "C0OPS", "text": "x", "blocks": blocks});
        let refused = stage.call("chat.postMessage", post).await;
        assert_eq!(refused["error"], "invalid_blocks", "{blocks}");
    }
}

#[tokio::test]
async fn the_bot_joins_lists_links_and_tests() {
    let stage = Stage::new().await;
    let posted = stage
        .call(
            "chat.postMessage",
            json!({"channel": "#ops", "text": "by name"}),
        )
        .await;
    assert_eq!(posted["channel"], "C0OPS");
    let link = stage
        .call(
            "chat.getPermalink",
            json!({"channel": "C0OPS", "message_ts": posted["ts"]}),
        )
        .await;
    let digits = posted["ts"].as_str().unwrap().replace('.', "");
    let expected = format!("https://acme.slack.com/archives/C0OPS/p{digits}");
    assert_eq!(link["permalink"], expected);
    let mut scopes = stage.slack.world().scopes;
    scopes.push("channels:join".to_owned());
    stage.done("app", json!({"scopes": scopes})).await;
    let names = async || {
        let listed = stage.call("users.conversations", json!({})).await;
        let channels = listed["channels"].as_array().unwrap().clone();
        channels.iter().any(|it| it["id"] == "C0ELSEWHERE")
    };
    assert!(!names().await);
    let join = json!({"channel": "C0ELSEWHERE"});
    assert_eq!(
        stage.call("conversations.join", join.clone()).await["channel"]["id"],
        "C0ELSEWHERE"
    );
    assert_eq!(
        stage.call("conversations.join", join).await["warning"],
        "already_in_channel"
    );
    assert!(names().await);
    let url = format!("{}api.test?foo=bar", stage.slack.api_url());
    let tested: Value = stage
        .http
        .post(url)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(tested, json!({"ok": true, "args": {"foo": "bar"}}));
    let failed = stage.call("api.test", json!({"error": "my_error"})).await;
    assert_eq!(failed["error"], "my_error");
}

#[tokio::test]
async fn a_stalled_socket_gets_nothing_more_and_goes_when_its_client_does() {
    let stage = Stage::new().await;
    let mut silent = stage.socket().await;
    stage.done("disconnect", json!({"reason": "stall"})).await;
    let mut fresh = stage.socket().await;
    for _ in 0..20 {
        stage.slack.say("#ops", "ann", "hello");
        assert_eq!(frame(&mut fresh).await["type"], "events_api");
    }
    silent.close(None).await.unwrap();
    assert!(stage.slack.wait_for_socket_count(1, WAIT).await);
    let bad = json!({"reason": "boredom"});
    assert!(stage.refused("disconnect", bad).await.contains("boredom"));
}

#[tokio::test]
async fn a_world_is_made_and_put_back_over_http() {
    let stage = Stage::new().await;
    let mut socket = stage.socket().await;
    assert_eq!(
        stage.done("user", json!({"name": "eve"})).await["id"],
        "U0EVE"
    );
    stage
        .done("user", json!({"id": "U0EVE", "guest": true}))
        .await;
    let shown = stage.call("users.info", json!({"user": "U0EVE"})).await;
    assert_eq!(shown["user"]["is_restricted"], true);
    let room = json!({"name": "lab", "kind": "private", "members": ["eve", "ann"]});
    assert_eq!(stage.done("channel", room).await["id"], "C0LAB");
    let post = json!({"channel": "#lab", "user": "eve", "text": "@vocative & co"});
    stage.done("post", post.clone()).await;
    assert_eq!(
        frame(&mut socket).await["payload"]["event"]["user"],
        "U0EVE"
    );
    assert!(
        stage
            .refused(
                "post",
                json!({"channel": "#ops", "user": "eve", "text": "x"})
            )
            .await
            .contains("U0EVE is not in C0OPS")
    );
    let file = stage.control("file?name=a.txt&type=text/plain");
    let file: Value = stage
        .http
        .post(file)
        .body("hi")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let with_file = json!({"channel": "#lab", "user": "ann", "text": "see", "files": [file["id"]]});
    stage.done("post", with_file).await;
    let posts = stage.look("posts?channel=%23lab").await["posts"].clone();
    assert_eq!(posts[1]["files"][0]["name"], "a.txt");
    let journal = stage.look("journal?kind=frame_out&name=events_api").await;
    assert!(
        journal["records"].as_array().unwrap().len() >= 2,
        "{journal}"
    );
    let after = &journal["next_after"];
    let rest = stage
        .look(&format!("journal?after={after}&kind=request"))
        .await;
    assert_eq!(rest["records"], json!([]));

    stage.done("reset", json!({})).await;
    assert_eq!(
        stage.refused("post", post).await,
        "no channel #lab in this world"
    );
    let state = stage.look("state").await;
    assert_eq!(
        [&state["open_sockets"], &state["unacked"]],
        [&json!(1), &json!(0)]
    );
    assert_eq!(state["violations"], json!([]));
    stage.slack.say("#ops", "ann", "still here");
    let mut event = frame(&mut socket).await;
    while event["payload"]["event"]["channel"] != "C0OPS" {
        event = frame(&mut socket).await;
    }
}
