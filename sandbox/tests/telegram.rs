//! The loopback Telegram over real sockets, through an ordinary HTTP client.

#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Once;
use std::time::Duration;

use serde_json::{Value, json};
use vocative_sandbox::telegram::{
    MigrationOrder, TelegramFault, TelegramForward, TelegramMedia, TelegramServer, TelegramWorld,
    UserMessage, telegram_refusals,
};
use vocative_sandbox::wire::{WireKind, WireLog};

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const SUPERGROUP: i64 = TelegramWorld::SUPERGROUP;
const GROUP: i64 = TelegramWorld::GROUP;
const FORUM: i64 = TelegramWorld::FORUM;
const TOPIC: i64 = TelegramWorld::TOPIC_INCIDENT;
const CHANNEL: i64 = TelegramWorld::CHANNEL;
const BOUND: Duration = Duration::from_secs(10);

struct Bot {
    server: TelegramServer,
    client: reqwest::Client,
    wire: WireLog,
}

impl Bot {
    async fn start() -> Self {
        Self::start_in(TelegramWorld::team()).await
    }

    async fn start_in(world: TelegramWorld) -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            rustls::crypto::ring::default_provider()
                .install_default()
                .unwrap();
        });
        let wire = WireLog::new();
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            server: TelegramServer::start(world, addr, wire.clone())
                .await
                .unwrap(),
            client: reqwest::Client::new(),
            wire,
        }
    }

    fn url(&self, method: &str) -> String {
        format!(
            "{}/bot{}/{method}",
            self.server.api_url(),
            self.server.token()
        )
    }

    async fn post(&self, method: &str, body: Value) -> reqwest::Result<reqwest::Response> {
        self.client.post(self.url(method)).json(&body).send().await
    }

    /// The whole answer to a call.
    async fn answer(&self, method: &str, body: Value) -> Value {
        self.post(method, body).await.unwrap().json().await.unwrap()
    }

    /// The result of a call that must succeed.
    async fn call(&self, method: &str, body: Value) -> Value {
        let answer = self.answer(method, body).await;
        assert_eq!(answer["ok"], true, "{method}: {answer}");
        answer["result"].clone()
    }

    async fn send(&self, chat: i64, text: &str) -> Value {
        self.call("sendMessage", json!({"chat_id": chat, "text": text}))
            .await
    }

    /// Sends a multipart form that was written by hand.
    async fn multipart(&self, method: &str, parts: &[(&str, &str)]) -> Value {
        let mut body = String::new();
        for (head, content) in parts {
            body += &format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n");
        }
        let request = self.client.post(self.url(method)).body(body + "--b--\r\n");
        let request = request.header("content-type", "multipart/form-data; boundary=b");
        request.send().await.unwrap().json().await.unwrap()
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

    /// The texts of all queued messages.
    async fn heard(&self) -> Vec<String> {
        let updates = self.updates().await;
        updates
            .iter()
            .filter_map(|update| update["message"]["text"].as_str().map(str::to_owned))
            .collect()
    }

    fn texts_of_bot(&self, chat: i64) -> Vec<String> {
        let posts = self.server.bot_posts(chat).into_iter();
        posts.map(|post| post.text).collect()
    }
}

#[tokio::test]
async fn every_refusal_on_the_list_comes_as_the_sheet_words_it() {
    let refusals = telegram_refusals().await;
    let wrong: Vec<_> = refusals.iter().filter(|refusal| !refusal.ok).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(refusals.len() >= 40, "only {} refusals", refusals.len());
}

#[tokio::test]
async fn a_poll_wakes_at_once_and_delivers_until_it_is_confirmed() {
    let bot = Bot::start().await;
    let poll = bot.call("getUpdates", json!({"timeout": 30}));
    let speak = async {
        while bot.server.polls_waiting() == 0 {
            tokio::task::yield_now().await;
        }
        bot.server
            .say(SUPERGROUP, ANN, "👍 @vocative_bot what broke?")
    };
    let both = async { tokio::join!(poll, speak) };
    let (batch, message_id) = tokio::time::timeout(BOUND, both).await.unwrap();
    let update = batch[0].clone();
    assert_eq!(
        update["message"],
        json!({
            "message_id": message_id, "date": update["message"]["date"],
            "from": {"id": ANN, "is_bot": false, "first_name": "Ann", "username": "ann_dev", "language_code": "en"},
            "chat": {"id": SUPERGROUP, "title": "Platform team", "type": "supergroup"},
            "text": "👍 @vocative_bot what broke?",
            "entities": [{"type": "mention", "offset": 3, "length": 13}],
        })
    );
    assert_eq!(bot.call("getUpdates", json!({})).await, batch);
    let id = update["update_id"].as_i64().unwrap();
    assert!((2_000_000..=1_000_000_000).contains(&id));
    assert_eq!(bot.server.pending_updates(), 1);
    let after = bot.call("getUpdates", json!({"offset": id + 1})).await;
    assert_eq!(after, json!([]));
    assert!(bot.server.wait_until_confirmed(BOUND).await);
}

#[tokio::test]
async fn parameters_may_come_as_query_form_json_or_multipart_in_any_case() {
    let bot = Bot::start().await;
    let query = bot.url(&format!("SENDMESSAGE?chat_id={ANN}&text=query"));
    bot.client.get(query).send().await.unwrap();
    let form = [
        ("chat_id", ANN.to_string()),
        ("text", "form & more".to_owned()),
    ];
    let url = bot.url("SendMessage");
    bot.client.post(url).form(&form).send().await.unwrap();
    let json = json!({"chat_id": ANN.to_string(), "text": "json"});
    bot.call("sendmessage", json).await;
    let parts = [("name=\"chat_id\"", "5001"), ("name=\"text\"", "multipart")];
    assert_eq!(bot.multipart("sendMessage", &parts).await["ok"], true);
    assert_eq!(
        bot.texts_of_bot(ANN),
        ["query", "form & more", "json", "multipart"]
    );
}

#[tokio::test]
async fn privacy_mode_lets_only_commands_replies_and_service_messages_through() {
    let mut world = TelegramWorld::team();
    world.bot.can_read_all_group_messages = false;
    let bot = Bot::start_in(world).await;
    let mine = bot.send(SUPERGROUP, "mine").await["message_id"]
        .as_i64()
        .unwrap();
    bot.server.say(SUPERGROUP, ANN, "@vocative_bot hello");
    bot.server.say(SUPERGROUP, ANN, "/ask@vocative_bot named");
    bot.server.say(SUPERGROUP, ANN, "/ask bare");
    bot.server.say(SUPERGROUP, ANN, "/ask@other_bot not mine");
    bot.server.reply(SUPERGROUP, BOB, mine, "a reply");
    bot.server
        .say(GROUP, ANN, "/ask where the bot never posted");
    bot.server.say(ANN, ANN, "private");
    bot.server
        .say(SUPERGROUP, TelegramWorld::OTHER_BOT, "a bot");
    let heard = ["/ask@vocative_bot named", "/ask bare", "a reply", "private"];
    assert_eq!(bot.heard().await, heard);
    bot.server.rename(SUPERGROUP, ANN, "Renamed");
    assert_eq!(
        bot.updates().await[0]["message"]["new_chat_title"],
        "Renamed"
    );
    bot.server.promote_bot(SUPERGROUP, ANN);
    bot.server.say(SUPERGROUP, ANN, "@vocative_bot hears");
    assert_eq!(bot.heard().await, ["@vocative_bot hears"]);
}

#[tokio::test]
async fn a_topic_message_replies_to_its_topic_by_implication_only() {
    let bot = Bot::start().await;
    let plain = bot.server.say_in_topic(FORUM, TOPIC, ANN, "any news?");
    bot.server.say(FORUM, ANN, "in General");
    let updates = bot.updates().await;
    let topic = &updates[0]["message"];
    assert_eq!(topic["message_thread_id"], TOPIC);
    assert_eq!(topic["is_topic_message"], true);
    let root = &topic["reply_to_message"];
    assert_eq!(root["message_id"], TOPIC);
    assert_eq!(root["forum_topic_created"]["name"], "Incident 42");
    let general = &updates[1]["message"];
    assert_eq!(general.get("message_thread_id"), None);
    assert_eq!(general.get("reply_to_message"), None);
    let reply = json!({"chat_id": FORUM, "text": "yes", "reply_parameters": {"message_id": plain}});
    assert_eq!(
        bot.call("sendMessage", reply).await["message_thread_id"],
        TOPIC
    );
    let posts = bot.server.posts(FORUM);
    let answer = posts.iter().find(|post| post.text == "yes").unwrap();
    assert_eq!((answer.thread, answer.reply_to), (Some(TOPIC), Some(plain)));
    let asked = posts.iter().find(|post| post.text == "any news?").unwrap();
    assert_eq!(asked.reply_to, None);
}

#[tokio::test]
async fn a_thread_outside_a_forum_is_ignored_and_shown_on_replies() {
    let bot = Bot::start().await;
    let root = bot.server.say(SUPERGROUP, ANN, "root");
    bot.server.reply(SUPERGROUP, BOB, root, "answer");
    let reply = bot.updates().await[1]["message"].clone();
    assert_eq!(reply["message_thread_id"], root);
    assert_eq!(reply.get("is_topic_message"), None);
    let body = json!({"chat_id": SUPERGROUP, "text": "x", "message_thread_id": 4711});
    let sent = bot.call("sendMessage", body).await;
    assert_eq!(sent.get("message_thread_id"), None);
}

#[tokio::test]
async fn what_is_sent_comes_back_cleaned_and_is_never_echoed() {
    let bot = Bot::start().await;
    let body = json!({"chat_id": SUPERGROUP, "text": "  see\tmain.rs and code\r\n",
        "entities": [{"type": "code", "offset": 18, "length": 4}]});
    let sent = bot.call("sendMessage", body).await;
    assert_eq!(sent["text"], "see main.rs and code");
    let url = json!({"type": "url", "offset": 4, "length": 7});
    let code = json!({"type": "code", "offset": 16, "length": 4});
    assert_eq!(sent["entities"], json!([url, code]));
    let message = json!({"chat_id": SUPERGROUP, "message_id": sent["message_id"]});
    let mut edit = message.clone();
    edit["text"] = json!("changed");
    assert_eq!(
        bot.call("editMessageText", edit.clone()).await["text"],
        "changed"
    );
    let again = bot.answer("editMessageText", edit).await;
    let why = again["description"].as_str().unwrap();
    assert!(why.contains("message is not modified"));
    let post = bot.server.bot_posts(SUPERGROUP).pop().unwrap();
    assert_eq!((post.edited, post.text.as_str()), (true, "changed"));
    bot.call("deleteMessage", message).await;
    assert!(bot.server.bot_posts(SUPERGROUP).pop().unwrap().deleted);
    assert_eq!(bot.server.pending_updates(), 0);
}

#[tokio::test]
async fn allowed_kinds_persist_and_count_when_updates_are_made() {
    let bot = Bot::start().await;
    let said = bot.server.say(ANN, ANN, "before");
    let only_edits = json!({"allowed_updates": ["edited_message"], "limit": 1});
    bot.call("getUpdates", only_edits).await;
    bot.server.say(ANN, ANN, "unheard");
    bot.server.edit(ANN, said, "edited");
    let updates = bot.updates().await;
    let edits = updates
        .iter()
        .map(|update| update.get("edited_message").is_some());
    assert_eq!(edits.collect::<Vec<_>>(), [false, true]);
    bot.call("getUpdates", json!({"allowed_updates": []})).await;
    bot.server.say(ANN, ANN, "heard");
    assert_eq!(bot.heard().await, ["heard"]);
}

#[tokio::test]
async fn unconfirmed_updates_expire_after_a_day_and_numbering_can_restart() {
    let bot = Bot::start().await;
    bot.server.say(ANN, ANN, "lost");
    bot.server.advance_clock(24 * 3600 + 1);
    assert_eq!(bot.server.pending_updates(), 0);
    bot.server.restart_update_ids(5);
    bot.server.say(ANN, ANN, "after a week");
    assert_eq!(bot.updates().await[0]["update_id"], 5);
}

#[tokio::test]
async fn an_upgraded_group_answers_with_its_new_id() {
    for (order, first) in [
        (MigrationOrder::OldFirst, "migrate_to_chat_id"),
        (MigrationOrder::NewFirst, "migrate_from_chat_id"),
    ] {
        let bot = Bot::start().await;
        bot.send(GROUP, "before").await;
        let new = bot.server.migrate_in_order(GROUP, order);
        let updates = bot.updates().await;
        assert!(updates[0]["message"].get(first).is_some());
        assert_eq!(updates.len(), 2);
        let body = json!({"chat_id": GROUP, "text": "x"});
        let refused = bot.answer("sendMessage", body).await;
        assert_eq!(refused["parameters"], json!({"migrate_to_chat_id": new}));
        assert_eq!(bot.send(new, "after").await["chat"]["type"], "supergroup");
    }
}

#[tokio::test]
async fn faults_happen_in_order_and_say_what_the_platform_says() {
    let bot = Bot::start().await;
    let faults = bot.server.faults();
    faults.next(
        "sendMessage",
        TelegramFault::RateLimited { retry_after_s: 17 },
    );
    faults.next("sendMessage", TelegramFault::Gateway { code: 502 });
    faults.next("sendMessage", TelegramFault::ResetBefore);
    faults.next("sendMessage", TelegramFault::ResetAfter);
    let body = |text: &str| json!({"chat_id": ANN, "text": text});
    let limited = bot.post("sendMessage", body("1")).await.unwrap();
    assert_eq!(limited.status(), 429);
    assert_eq!(limited.headers()["retry-after"], "17");
    let limited: Value = limited.json().await.unwrap();
    assert_eq!(limited["parameters"], json!({"retry_after": 17}));
    let gateway = bot.post("sendMessage", body("2")).await.unwrap();
    assert_eq!(gateway.status(), 502);
    assert!(gateway.json::<Value>().await.is_err());
    bot.post("sendMessage", body("3")).await.unwrap_err();
    bot.post("sendMessage", body("4")).await.unwrap_err();
    bot.send(ANN, "5").await;
    assert_eq!(bot.texts_of_bot(ANN), ["4", "5"]);
    assert_eq!(faults.applied(), 4);
}

#[tokio::test]
async fn a_lost_confirmation_delivers_again() {
    let bot = Bot::start().await;
    bot.server.say(ANN, ANN, "twice");
    let batch = bot.call("getUpdates", json!({})).await;
    let confirm = json!({"offset": batch[0]["update_id"].as_i64().unwrap() + 1});
    bot.server
        .faults()
        .next("getUpdates", TelegramFault::IgnoreOffset);
    assert_eq!(bot.call("getUpdates", confirm.clone()).await, batch);
    assert_eq!(bot.call("getUpdates", confirm).await, json!([]));
}

#[tokio::test]
async fn senders_that_are_no_plain_people_have_the_platforms_shapes() {
    let bot = Bot::start().await;
    let message = |text: &str| UserMessage {
        chat: SUPERGROUP,
        user: ANN,
        text: text.to_owned(),
        ..UserMessage::default()
    };
    bot.server.send_with(UserMessage {
        anonymous_admin: true,
        ..message("frozen")
    });
    bot.server.send_with(UserMessage {
        sender_chat: Some(CHANNEL),
        ..message("as a channel")
    });
    bot.server.send_with(UserMessage {
        automatic_forward_of: Some(CHANNEL),
        ..message("forwarded post")
    });
    bot.server.send_with(UserMessage {
        forward: Some(TelegramForward::Hidden("Eve".to_owned())),
        ..message("forwarded")
    });
    bot.server.channel_post(CHANNEL, "news");
    let updates = bot.updates().await;
    let senders = updates[..3].iter().map(|update| {
        let message = &update["message"];
        json!([message["from"]["id"], message["sender_chat"]["id"]])
    });
    let wanted = [
        json!([1_087_968_824, SUPERGROUP]),
        json!([136_817_688, CHANNEL]),
        json!([777_000, CHANNEL]),
    ];
    assert_eq!(senders.collect::<Vec<_>>(), wanted);
    assert_eq!(updates[2]["message"]["is_automatic_forward"], true);
    let origin = &updates[3]["message"]["forward_origin"];
    assert_eq!(origin["sender_user_name"], "Eve");
    let post = &updates[4]["channel_post"];
    assert_eq!(
        (post.get("from"), &post["sender_chat"]["id"]),
        (None, &json!(CHANNEL))
    );
}

#[tokio::test]
async fn media_has_captions_and_albums_have_one_group() {
    let bot = Bot::start().await;
    let item = |text: &str| UserMessage {
        chat: GROUP,
        user: ANN,
        text: text.to_owned(),
        media: Some(TelegramMedia::Photo),
        ..UserMessage::default()
    };
    bot.server.album(vec![item("look @vocative_bot"), item("")]);
    bot.server.send_with(UserMessage {
        media: Some(TelegramMedia::Voice { duration_s: 12 }),
        ..item("")
    });
    let updates = bot.updates().await;
    let (first, second) = (&updates[0]["message"], &updates[1]["message"]);
    assert!(first["media_group_id"].is_string());
    assert_eq!(first["media_group_id"], second["media_group_id"]);
    assert_eq!(first["caption_entities"][0]["type"], "mention");
    assert!(first["photo"].is_array() && first.get("text").is_none());
    assert_eq!(updates[2]["message"]["voice"]["duration"], 12);
    assert_eq!(updates[2]["message"].get("media_group_id"), None);
}

#[tokio::test]
async fn a_document_goes_up_and_can_be_fetched_again() {
    let bot = Bot::start().await;
    let parts = [
        ("name=\"chat_id\"", "5001"),
        ("name=\"document\"; filename=\"a.md\"", "# long"),
    ];
    let sent = bot.multipart("sendDocument", &parts).await;
    let document = &sent["result"]["document"];
    assert_eq!(document["file_name"], "a.md");
    let id = json!({"file_id": document["file_id"]});
    let file = bot.call("getFile", id).await;
    let path = file["file_path"].as_str().unwrap();
    let root = bot.server.api_url();
    let url = format!("{root}/file/bot{}/{path}", bot.server.token());
    let answer = bot.client.get(url).send().await.unwrap();
    assert_eq!(answer.bytes().await.unwrap().as_ref(), b"# long");
}

#[tokio::test]
async fn coming_and_going_of_the_bot_is_told_and_enforced() {
    let bot = Bot::start().await;
    bot.server.kick_bot(SUPERGROUP, ANN);
    bot.server.say(SUPERGROUP, ANN, "unheard");
    let updates = bot.updates().await;
    assert_eq!(updates.len(), 1);
    let change = &updates[0]["my_chat_member"];
    assert_eq!(change["old_chat_member"]["status"], "member");
    assert_eq!(change["new_chat_member"]["status"], "kicked");
    bot.server.add_bot(SUPERGROUP, ANN);
    let updates = bot.updates().await;
    let change = &updates[0]["my_chat_member"];
    assert_eq!(change["new_chat_member"]["status"], "member");
    let came = &updates[1]["message"]["new_chat_members"];
    assert_eq!(came[0]["username"], "vocative_bot");
}

#[tokio::test]
async fn buttons_are_pressed_and_answered_in_time() {
    let bot = Bot::start().await;
    let keyboard = json!({"inline_keyboard": [[{"text": "Retry", "callback_data": "retry:1"}]]});
    let body = json!({"chat_id": GROUP, "text": "Retry?", "reply_markup": keyboard});
    let sent = bot.call("sendMessage", body).await;
    assert_eq!(sent["reply_markup"], keyboard);
    let message = sent["message_id"].as_i64().unwrap();
    let id = bot.server.callback(GROUP, ANN, message, "retry:1");
    let query = bot.updates().await[0]["callback_query"].clone();
    assert_eq!(
        (&query["id"], &query["data"]),
        (&json!(id), &json!("retry:1"))
    );
    let answer = json!({"callback_query_id": id, "text": "done"});
    bot.call("answerCallbackQuery", answer).await;
    assert_eq!(bot.server.callback_answer(&id).unwrap()["text"], "done");
}

#[tokio::test]
async fn another_process_can_act_through_the_control_surface() {
    let bot = Bot::start().await;
    let root = bot.server.api_url();
    let post = |path: &str, body: Value| {
        let url = format!("{root}/control/{path}");
        bot.client.post(url).json(&body).send()
    };
    let say = json!({"chat": FORUM, "user": BOB, "text": "@vocative_bot hi", "topic": TOPIC});
    let said: Value = post("say", say).await.unwrap().json().await.unwrap();
    let edit = json!({"chat": FORUM, "message_id": said["message_id"], "text": "edited"});
    assert_eq!(post("edit", edit).await.unwrap().status(), 200);
    let nowhere = json!({"chat": 1, "user": BOB, "text": "x"});
    assert_eq!(post("say", nowhere).await.unwrap().status(), 400);
    let description = "Internal Server Error: restart";
    let fault =
        json!({"method": "getMe", "fault": "refused", "code": 500, "description": description});
    assert_eq!(post("fault", fault).await.unwrap().status(), 200);
    assert_eq!(
        bot.answer("getMe", json!({})).await["description"],
        description
    );
    let get = async |path: &str| -> Value {
        let url = format!("{root}/control/{path}");
        bot.client
            .get(url)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    };
    let posts = get(&format!("posts?chat={FORUM}")).await;
    let posts = posts.as_array().unwrap();
    let last = posts.iter().find(|post| post["text"] == "edited").unwrap();
    assert_eq!(
        (&last["thread"], &last["edited"]),
        (&json!(TOPIC), &json!(true))
    );
    let state = get("state").await;
    assert_eq!(state["pending_updates"], 2);
    assert_eq!(state["faults_applied"], 1);
}

#[tokio::test]
async fn the_wire_log_holds_both_sides_and_no_token() {
    let bot = Bot::start().await;
    bot.send(ANN, "hello").await;
    let records = bot.wire.records();
    let shape = records
        .iter()
        .map(|record| (record.kind, record.name.as_str(), record.status));
    let wanted = [
        (WireKind::Request, "sendMessage", None),
        (WireKind::Response, "sendMessage", Some(200)),
    ];
    assert_eq!(shape.collect::<Vec<_>>(), wanted);
    assert_eq!(records[0].body, json!({"chat_id": ANN, "text": "hello"}));
    let token = bot.server.token();
    let secret = token.split(':').nth(1).unwrap();
    assert!(!format!("{records:?}").contains(secret));
}

#[tokio::test]
async fn a_stopped_server_cuts_a_waiting_poll() {
    let Bot { server, client, .. } = Bot::start().await;
    let url = format!(
        "{}/bot{}/getUpdates?timeout=50",
        server.api_url(),
        server.token()
    );
    let poll = tokio::spawn(client.get(url).send());
    while server.polls_waiting() == 0 {
        tokio::task::yield_now().await;
    }
    server.stop().await;
    let ended = tokio::time::timeout(BOUND, poll).await.unwrap().unwrap();
    assert!(ended.is_err());
}

#[tokio::test]
async fn lists_of_commands_are_kept_by_scope_and_language_and_wrong_ones_refused() {
    let bot = Bot::start().await;
    let command = |name: &str| json!([{"command": name, "description": "What it does"}]);
    let scope = |kind: &str| json!({"type": kind});
    let of_chat = |kind: &str, chat: i64| json!({"type": kind, "chat_id": chat});
    let set = async |scope: Value, commands: Value| {
        let body = json!({"scope": scope, "commands": commands});
        bot.answer("setMyCommands", body).await["description"]
            .as_str()
            .map(|text| text.trim_start_matches("Bad Request: ").to_owned())
    };
    let get = async |scope: Value| bot.call("getMyCommands", json!({"scope": scope})).await;
    let everywhere = [
        scope("default"),
        scope("all_private_chats"),
        scope("all_group_chats"),
        scope("all_chat_administrators"),
        of_chat("chat", ANN),
        of_chat("chat_administrators", SUPERGROUP),
        json!({"type": "chat_member", "chat_id": SUPERGROUP, "user_id": ANN}),
    ];
    for scope in &everywhere {
        assert_eq!(get(scope.clone()).await, json!([]), "{scope}");
        assert_eq!(set(scope.clone(), command(" /help ")).await, None);
        assert_eq!(get(scope.clone()).await, command("help"), "{scope}");
    }
    for scope in &everywhere {
        bot.call("deleteMyCommands", json!({"scope": scope})).await;
        assert_eq!(get(scope.clone()).await, json!([]), "{scope}");
    }
    let refused = [
        (
            scope("everyone"),
            "help",
            "can't parse BotCommandScope: Unsupported type specified",
        ),
        (
            json!(["chat"]),
            "help",
            "can't parse BotCommandScope: BotCommandScope must be an Object",
        ),
        (
            scope("chat"),
            "help",
            "can't parse BotCommandScope: Can't find field \"chat_id\"",
        ),
        (
            of_chat("chat_member", GROUP),
            "help",
            "can't parse BotCommandScope: Can't find field \"user_id\"",
        ),
        (of_chat("chat", 77_077), "help", "chat not found"),
        (
            of_chat("chat_administrators", ANN),
            "help",
            "can't use specified scope in private chats",
        ),
        (
            of_chat("chat", CHANNEL),
            "help",
            "can't change commands in channel chats",
        ),
        (scope("default"), "Help", "BOT_COMMAND_INVALID"),
        (scope("default"), "/", "command must be non-empty"),
        (
            scope("default"),
            "a_name_of_more_than_thirty_two_chars",
            "command length must not exceed 32",
        ),
    ];
    for (scope, name, why) in refused {
        assert_eq!(set(scope, command(name)).await.as_deref(), Some(why));
    }
    let german = json!({"language_code": "german", "commands": []});
    let answer = bot.answer("setMyCommands", german).await;
    assert_eq!(answer["error_code"], 400, "{answer}");
}
