//! What other people's bots ask of the loopback Telegram: keyboards, media, copies, webhooks that answer
//! with a method, the control surface as a process of its own sees it.
#![allow(clippy::unwrap_used)]

use std::sync::Once;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use vocative_sandbox::telegram::{TelegramServer, TelegramWorld};
use vocative_sandbox::wire::WireLog;

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const SUPERGROUP: i64 = TelegramWorld::SUPERGROUP;
const GROUP: i64 = TelegramWorld::GROUP;
const FORUM: i64 = TelegramWorld::FORUM;
const BOUND: Duration = Duration::from_secs(10);
/// The beginning of a PNG of 3 × 2 points.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x08\x02\0\0\0";

struct Bot {
    server: TelegramServer,
    client: reqwest::Client,
}

impl Bot {
    async fn start() -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            let provider = rustls::crypto::ring::default_provider();
            provider.install_default().unwrap();
        });
        let any_port = ([127, 0, 0, 1], 0).into();
        let server = TelegramServer::start(TelegramWorld::team(), any_port, WireLog::new());
        Self {
            server: server.await.unwrap(),
            client: reqwest::Client::new(),
        }
    }

    fn url(&self, method: &str) -> String {
        let (api, token) = (self.server.api_url(), self.server.token());
        format!("{api}/bot{token}/{method}")
    }

    async fn answer(&self, method: &str, body: Value) -> Value {
        let sent = self.client.post(self.url(method)).json(&body).send().await;
        sent.unwrap().json().await.unwrap()
    }

    async fn call(&self, method: &str, body: Value) -> Value {
        let answer = self.answer(method, body).await;
        assert_eq!(answer["ok"], true, "{method}: {answer}");
        answer["result"].clone()
    }

    async fn refused(&self, method: &str, body: Value) -> String {
        let answer = self.answer(method, body).await;
        assert_eq!(answer["ok"], false, "{method}: {answer}");
        answer["description"].as_str().unwrap().to_owned()
    }

    /// Sends a form of parts: fields, then files by name.
    async fn upload(
        &self,
        method: &str,
        fields: &[(&str, &str)],
        files: &[(&str, &[u8])],
    ) -> Value {
        let mut body = Vec::new();
        for (name, value) in fields {
            let head = format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
            body.extend([head.as_bytes(), value.as_bytes(), b"\r\n"].concat());
        }
        for (name, bytes) in files {
            let head = format!(
                "--b\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}.png\"\r\n\
                 Content-Type: image/png\r\n\r\n"
            );
            body.extend([head.as_bytes(), bytes, b"\r\n"].concat());
        }
        body.extend(b"--b--\r\n");
        let request = self.client.post(self.url(method)).body(body);
        let request = request.header("content-type", "multipart/form-data; boundary=b");
        request.send().await.unwrap().json().await.unwrap()
    }

    fn control(&self, act: &str) -> String {
        format!("{}/control/{act}", self.server.api_url())
    }

    async fn act(&self, act: &str, body: Value) -> (u16, Value) {
        let sent = self.client.post(self.control(act)).json(&body).send().await;
        let sent = sent.unwrap();
        (sent.status().as_u16(), sent.json().await.unwrap())
    }

    async fn done(&self, act: &str, body: Value) -> Value {
        let (status, answer) = self.act(act, body).await;
        assert_eq!(status, 200, "{act}: {answer}");
        answer
    }

    async fn forbidden(&self, act: &str, body: Value) -> String {
        let (status, answer) = self.act(act, body).await;
        assert_eq!(status, 400, "{act}: {answer}");
        answer["error"].as_str().unwrap().to_owned()
    }

    async fn look(&self, what: &str) -> Value {
        let seen = self.client.get(self.control(what)).send().await.unwrap();
        seen.json().await.unwrap()
    }

    /// Takes and confirms everything that is queued.
    async fn updates(&self) -> Vec<Value> {
        let batch = self.call("getUpdates", json!({"timeout": 0})).await;
        let batch = batch.as_array().unwrap().clone();
        if let Some(last) = batch.last() {
            let offset = last["update_id"].as_i64().unwrap() + 1;
            self.call("getUpdates", json!({"offset": offset})).await;
        }
        batch
    }
}

fn keyboard(text: &str) -> Value {
    json!({"inline_keyboard": [[{"text": text, "callback_data": "retry:1"},
        {"text": "Docs", "url": "https://example.org/"}]]})
}

#[tokio::test]
async fn a_button_is_shown_pressed_answered_and_taken_away() {
    let bot = Bot::start().await;
    let send = json!({"chat_id": SUPERGROUP, "text": "Retry?", "reply_markup": keyboard("Retry")});
    let id = bot.call("sendMessage", send).await["message_id"].clone();
    let posts = bot.look(&format!("posts?chat={SUPERGROUP}")).await;
    assert_eq!(posts[0]["keyboard"], keyboard("Retry"));
    let press = |user: i64, button: &str| json!({"chat": SUPERGROUP, "user": user, "message_id": id, "button": button});
    assert_eq!(
        bot.forbidden("press", press(ANN, "Stop")).await,
        "no button Stop; there is: Retry, Docs"
    );
    assert!(
        bot.forbidden("press", press(ANN, "Docs"))
            .await
            .contains("hears nothing")
    );
    assert!(
        bot.forbidden("press", press(77, "Retry"))
            .await
            .contains("77 is not in")
    );
    let pressed = bot.done("press", press(ANN, "Retry")).await["callback_id"].clone();
    let query = bot.updates().await[0]["callback_query"].clone();
    assert_eq!(
        [&query["id"], &query["data"]],
        [&pressed, &json!("retry:1")]
    );
    assert_eq!(query["message"]["message_id"], id);
    let answer = json!({"callback_query_id": pressed, "text": "on it"});
    assert_eq!(bot.call("answerCallbackQuery", answer).await, true);
    let path = format!("callback?id={}", pressed.as_str().unwrap());
    assert_eq!(bot.look(&path).await["answer"]["text"], "on it");

    let edit = json!({"chat_id": SUPERGROUP, "message_id": id, "reply_markup": keyboard("Again")});
    let edited = bot.call("editMessageReplyMarkup", edit.clone()).await;
    assert_eq!(
        edited["reply_markup"]["inline_keyboard"][0][0]["text"],
        "Again"
    );
    assert!(
        bot.refused("editMessageReplyMarkup", edit)
            .await
            .contains("message is not modified")
    );
    let bare = json!({"chat_id": SUPERGROUP, "message_id": id});
    assert_eq!(
        bot.call("editMessageReplyMarkup", bare)
            .await
            .get("reply_markup"),
        None
    );
    assert_eq!(
        bot.look(&format!("posts?chat={SUPERGROUP}")).await[0]["keyboard"],
        Value::Null
    );
}

#[tokio::test]
async fn a_press_is_answered_once_and_a_changed_client_may_send_any() {
    let bot = Bot::start().await;
    let send = json!({"chat_id": SUPERGROUP, "text": "Retry?", "reply_markup": keyboard("Retry")});
    let id = bot.call("sendMessage", send).await["message_id"].clone();
    let callback = |user: i64, data: &str| json!({"chat": SUPERGROUP, "user": user, "message_id": id, "data": data});
    let first = bot.done("callback", callback(ANN, "other")).await["callback_id"].clone();
    bot.done("callback", callback(1_087_968_824, "x")).await;
    bot.done("delete", json!({"chat": SUPERGROUP, "message_id": id}))
        .await;
    bot.done("callback", callback(ANN, "late")).await;
    let inline = json!({"user": ANN, "inline_message_id": "AgAA", "data": "x"});
    bot.done("callback", inline).await;
    let queries: Vec<Value> = bot.updates().await;
    let queries: Vec<&Value> = queries.iter().map(|it| &it["callback_query"]).collect();
    assert_eq!(queries[0]["data"], "other");
    assert_eq!(queries[1]["from"]["username"], "GroupAnonymousBot");
    assert_eq!(queries[2]["message"]["date"], 0);
    assert_eq!(queries[2]["message"].get("text"), None);
    assert_eq!(queries[3]["inline_message_id"], "AgAA");
    assert_eq!(queries[3].get("message"), None);
    let answer = json!({"callback_query_id": first});
    assert_eq!(bot.call("answerCallbackQuery", answer.clone()).await, true);
    let again = bot.refused("answerCallbackQuery", answer).await;
    assert!(again.contains("query is too old"), "{again}");
}

#[tokio::test]
async fn a_press_that_nobody_takes_is_forgotten_after_150_seconds() {
    let bot = Bot::start().await;
    let send = json!({"chat_id": SUPERGROUP, "text": "Retry?", "reply_markup": keyboard("Retry")});
    let id = bot.call("sendMessage", send).await["message_id"].clone();
    let press = json!({"chat": SUPERGROUP, "user": ANN, "message_id": id, "button": "Retry"});
    bot.done("press", press.clone()).await;
    bot.done("clock", json!({"advance_s": 149})).await;
    bot.done("press", press).await;
    bot.done("clock", json!({"advance_s": 2})).await;
    let queries = bot.updates().await;
    assert_eq!(queries.len(), 1, "{queries:?}");
}

#[tokio::test]
async fn a_keyboard_of_replies_writes_its_words() {
    let bot = Bot::start().await;
    let markup = json!({"keyboard": [["Yes", "No"]]});
    let send = json!({"chat_id": ANN, "text": "Sure?", "reply_markup": markup});
    let id = bot.call("sendMessage", send).await["message_id"].clone();
    bot.done(
        "press",
        json!({"chat": ANN, "user": ANN, "message_id": id, "button": "No"}),
    )
    .await;
    assert_eq!(bot.updates().await[0]["message"]["text"], "No");
    let wrong = json!({"chat_id": ANN, "text": "x", "reply_markup": {"keyboard": "Yes"}});
    assert!(
        bot.refused("sendMessage", wrong)
            .await
            .contains("must be an Array")
    );
}

#[tokio::test]
async fn a_callback_of_a_raw_update_can_be_answered() {
    let bot = Bot::start().await;
    let query = json!({"id": "777", "from": {"id": ANN, "is_bot": false, "first_name": "Ann"}, "data": "x"});
    bot.done("update", json!({"callback_query": query})).await;
    assert_eq!(bot.updates().await[0]["callback_query"]["id"], "777");
    assert_eq!(
        bot.call("answerCallbackQuery", json!({"callback_query_id": "777"}))
            .await,
        true
    );
    let unknown = json!({"callback_query_id": "778"});
    assert!(
        bot.refused("answerCallbackQuery", unknown)
            .await
            .contains("query is too old")
    );
}

#[tokio::test]
async fn paths_are_percent_decoded() {
    let bot = Bot::start().await;
    let sent = bot
        .upload("sendPhoto", &[("chat_id", "5001")], &[("photo", PNG)])
        .await;
    let photo = &sent["result"]["photo"][0];
    assert_eq!([&photo["width"], &photo["height"]], [3, 2]);
    let file = bot
        .call("getFile", json!({"file_id": photo["file_id"]}))
        .await;
    let token = bot.server.token().replace(':', "%3A");
    let path = file["file_path"].as_str().unwrap();
    assert!(path.starts_with("photos/"));
    let url = format!("{}/file/bot{token}/{path}", bot.server.api_url());
    let bytes = bot
        .client
        .get(url)
        .send()
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    assert_eq!(&bytes[..], PNG);
    let me = format!("{}/bot{token}/getMe", bot.server.api_url());
    let me: Value = bot
        .client
        .get(me)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(me["ok"], true);
}

#[tokio::test]
async fn photos_are_pictures_and_files_are_known() {
    let bot = Bot::start().await;
    let to = [
        ("chat_id", "5001"),
        ("caption", "*look*"),
        ("parse_mode", "MarkdownV2"),
    ];
    let sent = bot.upload("sendPhoto", &to, &[("photo", PNG)]).await["result"].clone();
    assert_eq!(
        [&sent["caption"], &sent["caption_entities"][0]["type"]],
        ["look", "bold"]
    );
    let photo = sent["photo"][0]["file_id"].clone();
    let again = bot
        .call("sendPhoto", json!({"chat_id": ANN, "photo": photo}))
        .await;
    assert_eq!(again["photo"][0]["file_id"], photo);
    let wrong = bot
        .upload("sendPhoto", &to, &[("photo", b"no picture")])
        .await;
    assert_eq!(wrong["description"], "Bad Request: IMAGE_PROCESS_FAILED");
    let cases = [
        (
            json!({"chat_id": ANN}),
            "Bad Request: there is no voice in the request",
        ),
        (
            json!({"chat_id": ANN, "voice": "x"}),
            "Bad Request: wrong file identifier/HTTP URL specified",
        ),
        (
            json!({"chat_id": ANN, "voice": photo}),
            "Bad Request: can't use file of type Photo as VoiceNote",
        ),
        (
            json!({"chat_id": ANN, "voice": "https://e.org/a.ogg"}),
            "Bad Request: failed to get HTTP URL content",
        ),
    ];
    for (body, why) in cases {
        assert_eq!(bot.refused("sendVoice", body).await, why);
    }
}

#[tokio::test]
async fn an_album_is_one_group_and_captions_can_be_edited() {
    let bot = Bot::start().await;
    let media = json!([
        {"type": "photo", "media": "attach://one", "caption": "first"},
        {"type": "photo", "media": "attach://two"}
    ])
    .to_string();
    let fields = [("chat_id", "5001"), ("media", media.as_str())];
    let sent = bot
        .upload("sendMediaGroup", &fields, &[("one", PNG), ("two", PNG)])
        .await;
    let album = sent["result"].as_array().unwrap();
    assert_eq!(album.len(), 2, "{sent}");
    assert_eq!(album[0]["media_group_id"], album[1]["media_group_id"]);
    let missing = bot.upload("sendMediaGroup", &fields, &[("one", PNG)]).await;
    assert_eq!(
        missing["description"],
        "Bad Request: failed to send message #2 with the error message \"wrong file identifier/HTTP URL specified\""
    );
    let edit = |caption: &str| json!({"chat_id": ANN, "message_id": album[0]["message_id"], "caption": caption});
    let edited = bot.call("editMessageCaption", edit("second")).await;
    assert_eq!(edited["caption"], "second");
    assert!(
        bot.refused("editMessageCaption", edit("second"))
            .await
            .contains("not modified")
    );
    let text = bot
        .call("sendMessage", json!({"chat_id": ANN, "text": "words"}))
        .await;
    let edit = json!({"chat_id": ANN, "message_id": text["message_id"], "caption": "x"});
    assert_eq!(
        bot.refused("editMessageCaption", edit).await,
        "Bad Request: there is no caption in the message to edit"
    );
    let photo = album[0]["photo"][0]["file_id"].clone();
    let other = json!({"chat_id": ANN, "message_id": album[1]["message_id"],
        "media": {"type": "document", "media": photo, "caption": "as a file"}});
    let changed = bot.call("editMessageMedia", other).await;
    assert_eq!(
        (changed.get("photo"), &changed["caption"]),
        (None, &json!("as a file"))
    );
}

#[tokio::test]
async fn messages_are_copied_and_forwarded() {
    let bot = Bot::start().await;
    let said = bot
        .done(
            "say",
            json!({"chat": GROUP, "user": BOB, "text": "/start it"}),
        )
        .await;
    let id = said["message_id"].clone();
    let from =
        |to: i64, id: &Value| json!({"chat_id": to, "from_chat_id": GROUP, "message_id": id});
    let copy = bot.call("copyMessage", from(ANN, &id)).await;
    assert_eq!(copy.as_object().unwrap().len(), 1);
    let post = bot.server.posts(ANN).pop().unwrap();
    assert_eq!((post.text.as_str(), post.by_bot), ("/start it", true));
    assert_eq!(post.wire.get("forward_origin"), None);
    let forward = bot.call("forwardMessage", from(ANN, &id)).await;
    assert_eq!(forward["forward_origin"]["sender_user"]["id"], BOB);
    let missing = bot.refused("copyMessage", from(ANN, &json!(9_999))).await;
    assert_eq!(missing, "Bad Request: message to copy not found");
    let many = json!({"chat_id": ANN, "from_chat_id": GROUP, "message_ids": [id, 9_999]});
    assert_eq!(
        bot.call("copyMessages", many)
            .await
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

/// Answers one request with this body, as a bot's webhook.
async fn webhook_that_says(body: &'static str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 65_536];
            let mut length = 0;
            // The update ends the request; its last byte closes the object.
            while !request[..length].ends_with(b"}") {
                length += stream.read(&mut request[length..]).await.unwrap();
            }
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(body.as_bytes()).await.unwrap();
        }
    });
    url
}

#[tokio::test]
async fn a_webhook_may_answer_with_a_method_but_not_with_any() {
    let cases = [
        (
            r#"{"method":"sendMessage","chat_id":5001,"text":"in the answer"}"#,
            true,
        ),
        (r#"{"method":"deleteWebhook"}"#, false),
    ];
    for (says, is_carried_out) in cases {
        let bot = Bot::start().await;
        bot.done("knobs", json!({"take_loopback_webhooks": true}))
            .await;
        let url = webhook_that_says(says).await;
        bot.call("setWebhook", json!({"url": url})).await;
        bot.done("say", json!({"chat": ANN, "user": ANN, "text": "hi"}))
            .await;
        assert!(bot.server.wait_until_confirmed(BOUND).await, "{says}");
        assert_eq!(
            bot.server.bot_posts(ANN).len(),
            usize::from(is_carried_out),
            "{says}"
        );
        assert_eq!(bot.server.webhook_url(), url, "{says}");
        let journal = bot.look("journal?kind=response").await;
        let logged = journal["records"].to_string();
        assert_eq!(
            logged.contains("not carried out"),
            !is_carried_out,
            "{logged}"
        );
    }
}

#[tokio::test]
async fn people_chats_and_topics_are_made_over_http() {
    let bot = Bot::start().await;
    let unknown = json!({"chat": SUPERGROUP, "user": 77, "text": "x"});
    assert!(bot.forbidden("say", unknown).await.contains("no user 77"));
    assert!(
        bot.forbidden("say", json!({"chat": 1, "user": ANN, "text": "x"}))
            .await
            .contains("no chat 1")
    );
    bot.done(
        "user",
        json!({"id": 77, "first_name": "Eve", "username": "eve"}),
    )
    .await;
    let wrong = json!({"id": -5, "kind": "supergroup"});
    assert_eq!(
        bot.forbidden("chat", wrong).await,
        "no supergroup has the id -5"
    );
    let chat = json!({"id": -1_009_999_999_999_i64, "kind": "supergroup", "title": "Lab",
        "is_forum": true, "members": [77], "bot_status": "administrator"});
    let lab = bot.done("chat", chat).await["id"].clone();
    let topic = bot
        .done("topic", json!({"chat": lab, "user": 77, "name": "Ideas"}))
        .await["topic"]
        .clone();
    let file = bot.control("file?name=a.txt&type=text/plain");
    let file: Value = bot
        .client
        .post(file)
        .body("hi")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let say = json!({"chat": lab, "user": 77, "topic": topic, "text": "see", "file": file});
    let id = bot.done("say", say).await["message_id"].clone();
    bot.done(
        "react",
        json!({"chat": lab, "user": 77, "message_id": id, "emoji": "👍"}),
    )
    .await;
    bot.done(
        "topic",
        json!({"chat": lab, "user": 77, "topic": topic, "closed": true}),
    )
    .await;
    bot.done(
        "bot_status",
        json!({"chat": lab, "user": 77, "status": "left"}),
    )
    .await;
    let kinds: Vec<String> = bot.updates().await.iter().map(kind_of).collect();
    let seen = [
        "forum_topic_created",
        "document",
        "forum_topic_closed",
        "my_chat_member",
    ];
    assert_eq!(kinds, seen);
    bot.done("delete", json!({"chat": lab, "message_id": id}))
        .await;
    let gone = bot
        .forbidden("edit", json!({"chat": lab, "message_id": id, "text": "x"}))
        .await;
    assert!(gone.contains("no message"));
}

#[tokio::test]
async fn a_world_is_put_back_and_ids_go_on() {
    let bot = Bot::start().await;
    let album = json!({"items": [{"chat": FORUM, "user": ANN, "media": {"kind": "photo"}},
        {"chat": FORUM, "user": ANN, "media": {"kind": "voice", "duration_s": 3}}]});
    assert_eq!(
        bot.done("album", album).await["message_ids"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let migrated = bot.done("migrate", json!({"chat": GROUP})).await["chat"].clone();
    assert!(
        bot.forbidden("migrate", json!({"chat": GROUP}))
            .await
            .contains("no basic group")
    );
    assert_eq!(
        bot.refused("sendMessage", json!({"chat_id": GROUP, "text": "x"}))
            .await,
        "Bad Request: group chat was upgraded to a supergroup chat"
    );

    let last = bot.server.posts(FORUM).pop().unwrap().message_id;
    bot.done("reset", json!({})).await;
    let state = bot.look("state").await;
    assert_eq!(
        [&state["pending_updates"], &state["faults_applied"]],
        [0, 0]
    );
    let chats: Vec<&Value> = state["chats"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert!(!chats.contains(&&migrated));
    bot.call(
        "sendMessage",
        json!({"chat_id": GROUP, "text": "as before"}),
    )
    .await;
    let again = bot
        .done("say", json!({"chat": FORUM, "user": ANN, "text": "again"}))
        .await;
    assert!(again["message_id"].as_i64().unwrap() > last);
    assert_eq!(bot.updates().await.len(), 1);
}

fn kind_of(update: &Value) -> String {
    let fields = ["forum_topic_created", "document", "forum_topic_closed"];
    let found = fields
        .iter()
        .find(|field| update["message"].get(**field).is_some());
    let own = || {
        update
            .as_object()
            .unwrap()
            .keys()
            .find(|key| *key != "update_id")
    };
    found.map_or_else(|| own().unwrap().clone(), |field| (*field).to_owned())
}
