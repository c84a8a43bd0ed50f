//! Refusals of the loopback Telegram, each provoked over the wire.
//!
//! Owns the list: what is tried, and the exact answer that the protocol sheet asks for. Starts a
//! server of its own and speaks to it like any client.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};

use super::message::UserMessage;
use super::server::TelegramServer;
use super::world::TelegramWorld;
use crate::probe::{RawHttpAnswer, http};
use crate::selfcheck::PlatformRefusal;
use crate::wire::{WireLog, WirePeer};

const GROUP: i64 = TelegramWorld::GROUP;
const SUPERGROUP: i64 = TelegramWorld::SUPERGROUP;
const FORUM: i64 = TelegramWorld::FORUM;
const CHANNEL: i64 = TelegramWorld::CHANNEL;
const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;

/// One refusal to provoke: section, what is tried, method, body, expected answer.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    Value,
    &'static str,
);

/// Provokes every refusal on the list against a fresh server.
///
/// An answer is shown as `<status> <description>`, with `parameters` behind it where there are some.
pub async fn telegram_refusals() -> Vec<PlatformRefusal> {
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = match TelegramServer::start(TelegramWorld::team(), addr, WireLog::new()).await {
        Ok(server) => server,
        Err(failure) => {
            let got = failure.to_string();
            return vec![judge("telegram.md §2", "start a server", "a server", got)];
        }
    };
    let probe = MethodProbe { server: &server };
    let mut refusals = probe.routing().await;
    let cases = [
        text_cases(),
        markup_cases(),
        button_cases(),
        place_cases(),
        message_cases(&server),
        press_cases(&server),
        draft_cases(),
        webhook_cases(),
    ];
    for case in cases.into_iter().flatten() {
        refusals.push(probe.try_case(case).await);
    }
    refusals.extend(probe.own_message_cases().await);
    refusals.extend(probe.membership_cases().await);
    refusals.extend(probe.conflicts().await);
    refusals.push(probe.revoked().await);
    server.stop().await;
    refusals
}

fn judge(
    section: &'static str,
    what: &'static str,
    expected: &'static str,
    got: String,
) -> PlatformRefusal {
    PlatformRefusal::judge(WirePeer::Telegram, section, what, expected, got)
}

/// A send of "hello" to Ann with these parameters more or instead.
fn send(section: &'static str, what: &'static str, more: Value, expected: &'static str) -> Case {
    let mut body = json!({"chat_id": ANN, "text": "hello"});
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    (section, what, "sendMessage", body, expected)
}

fn text_cases() -> Vec<Case> {
    vec![
        send(
            "telegram.md §8.3",
            "send an empty text",
            json!({"text": ""}),
            "400 Bad Request: message text is empty",
        ),
        send(
            "telegram.md §8.3",
            "send only white space",
            json!({"text": " \n "}),
            "400 Bad Request: text must be non-empty",
        ),
        send(
            "telegram.md §9.1",
            "send 4097 characters",
            json!({"text": "a".repeat(4097)}),
            "400 Bad Request: message is too long",
        ),
        send(
            "telegram.md §9.1",
            "send over 32768 bytes",
            json!({"text": "a".repeat(32_769)}),
            "400 Bad Request: text is too long",
        ),
        send(
            "telegram.md §2.3",
            "send `parse_mode` null",
            json!({"parse_mode": null}),
            "400 Bad Request: unsupported parse_mode",
        ),
        send(
            "telegram.md §2.3",
            "send `reply_markup` null",
            json!({"reply_markup": null}),
            "400 Bad Request: object expected as reply markup",
        ),
        send(
            "telegram.md §2.3",
            "send `reply_parameters` null",
            json!({"reply_parameters": null}),
            "400 Bad Request: object expected as reply parameters",
        ),
    ]
}

fn markup_cases() -> Vec<Case> {
    let bold =
        |offset: i64, length: i64| json!([{"type": "bold", "offset": offset, "length": length}]);
    vec![
        send(
            "telegram.md §8.4",
            "begin an entity inside a surrogate pair",
            json!({"text": "abcde👍", "entities": bold(6, 1)}),
            "400 Bad Request: entity begins in a middle of a UTF-16 symbol at byte offset 5",
        ),
        send(
            "telegram.md §8.4",
            "end an entity after the text",
            json!({"entities": bold(4, 30)}),
            "400 Bad Request: entity beginning at UTF-16 offset 4 ends after the end of the text at UTF-16 offset 34",
        ),
        send(
            "telegram.md §8.4",
            "begin an entity before the text",
            json!({"entities": bold(-1, 2)}),
            "400 Bad Request: receive an entity with incorrect offset -1",
        ),
        send(
            "telegram.md §8.1",
            "send an entity of an unknown type",
            json!({"entities": [{"type": "blink", "offset": 0, "length": 2}]}),
            "400 Bad Request: can't parse MessageEntity: Unsupported type specified",
        ),
        send(
            "telegram.md §10.2",
            "leave a dot unescaped in MarkdownV2",
            json!({"text": "done.", "parse_mode": "markdownv2"}),
            "400 Bad Request: can't parse entities: Character '.' is reserved and must be escaped with the preceding '\\'",
        ),
        send(
            "telegram.md §10.2",
            "leave italics open in MarkdownV2",
            json!({"text": "see _x", "parse_mode": "MarkdownV2"}),
            "400 Bad Request: can't parse entities: Can't find end of Italic entity at byte offset 4",
        ),
        send(
            "telegram.md §10.3",
            "send `<br>` in HTML",
            json!({"text": "<br>", "parse_mode": "HTML"}),
            "400 Bad Request: can't parse entities: Unsupported start tag \"br\" at byte offset 0",
        ),
        (
            "telegram.md §2.3",
            "send a body that is no JSON",
            "sendMessage",
            json!("not an object"),
            "400 Bad Request: message text is empty",
        ),
        (
            "telegram.md §2.3",
            "send no chat",
            "sendMessage",
            json!({"text": "hello"}),
            "400 Bad Request: chat_id is empty",
        ),
    ]
}

fn webhook_cases() -> Vec<Case> {
    let set = |what, more: Value, expected| {
        let mut body = json!({"url": "https://bot.example.org/hook"});
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        ("telegram.md §4.1", what, "setWebhook", body, expected)
    };
    vec![
        set(
            "set a webhook without TLS",
            json!({"url": "http://bot.example.org/hook"}),
            "400 Bad Request: bad webhook: An HTTPS URL must be provided for webhook",
        ),
        set(
            "set a webhook on another port",
            json!({"url": "https://bot.example.org:8444/hook"}),
            "400 Bad Request: bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443",
        ),
        set(
            "set a secret with a space",
            json!({"secret_token": "open sesame"}),
            "400 Bad Request: secret token contains unallowed characters",
        ),
        set(
            "set a secret of 257 characters",
            json!({"secret_token": "s".repeat(257)}),
            "400 Bad Request: secret token is too long",
        ),
    ]
}

fn place_cases() -> Vec<Case> {
    vec![
        send(
            "telegram.md §11.2",
            "write to an unknown chat",
            json!({"chat_id": 99, "text": "x"}),
            "400 Bad Request: chat not found",
        ),
        send(
            "telegram.md §11.2",
            "write first to a person",
            json!({"chat_id": BOB, "text": "x"}),
            "403 Forbidden: bot can't initiate conversation with a user",
        ),
        send(
            "telegram.md §11.2",
            "write to another bot",
            json!({"chat_id": TelegramWorld::OTHER_BOT, "text": "x"}),
            "403 Forbidden: the bot can't send messages to the bot",
        ),
        send(
            "telegram.md §6.6",
            "name the General topic",
            json!({"chat_id": FORUM, "text": "x", "message_thread_id": 1}),
            "400 Bad Request: message thread not found",
        ),
        send(
            "telegram.md §6.6",
            "name a topic that is not there",
            json!({"chat_id": FORUM, "text": "x", "message_thread_id": 999}),
            "400 Bad Request: message thread not found",
        ),
        send(
            "telegram.md §9.1",
            "reply to a message that is not there",
            json!({"chat_id": SUPERGROUP, "text": "x", "reply_parameters": {"message_id": 999}}),
            "400 Bad Request: message to be replied not found",
        ),
    ]
}

fn button_cases() -> Vec<Case> {
    vec![
        send(
            "telegram.md §9.5",
            "send 65 bytes of button data",
            json!({"reply_markup": {"inline_keyboard": [[{"text": "b", "callback_data": "d".repeat(65)}]]}}),
            "400 Bad Request: BUTTON_DATA_INVALID",
        ),
        send(
            "telegram.md §9.5",
            "send a button without data",
            json!({"reply_markup": {"inline_keyboard": [[{"text": "b", "callback_data": ""}]]}}),
            "400 Bad Request: BUTTON_DATA_INVALID",
        ),
        send(
            "telegram.md §9.5",
            "send 101 buttons",
            json!({"reply_markup": {"inline_keyboard": vec![json!([{"text": "b", "callback_data": "d"}]); 101]}}),
            "400 Bad Request: reply markup is too long",
        ),
        send(
            "telegram.md §9.5",
            "send a button of another style",
            json!({"reply_markup": {"inline_keyboard": [[{"text": "b", "callback_data": "d", "style": "blue"}]]}}),
            "400 Bad Request: can't parse inline keyboard button: unknown style specified",
        ),
        send(
            "telegram.md §9.5",
            "send a button that does nothing",
            json!({"reply_markup": {"inline_keyboard": [[{"text": "b"}]]}}),
            "400 Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
        ),
    ]
}

fn press_cases(server: &TelegramServer) -> Vec<Case> {
    let theirs = server.say(SUPERGROUP, ANN, "press me");
    let pressed = server.callback(SUPERGROUP, ANN, theirs, "x");
    server.advance_clock(200);
    let answered = server.callback(SUPERGROUP, ANN, theirs, "x");
    server.act(|rooms| {
        if let Some((_, answer)) = rooms.callbacks.get_mut(&answered) {
            *answer = Some(json!({}));
        }
    });
    let open = server.callback(SUPERGROUP, ANN, theirs, "x");
    vec![
        (
            "telegram.md §9.5",
            "answer a button after 200 seconds",
            "answerCallbackQuery",
            json!({"callback_query_id": pressed}),
            "400 Bad Request: query is too old and response timeout expired or query ID is invalid",
        ),
        (
            "telegram.md §9.5",
            "answer a button a second time",
            "answerCallbackQuery",
            json!({"callback_query_id": answered}),
            "400 Bad Request: query is too old and response timeout expired or query ID is invalid",
        ),
        (
            "telegram.md §9.5",
            "answer a button in 201 characters",
            "answerCallbackQuery",
            json!({"callback_query_id": open, "text": "x".repeat(201)}),
            "400 Bad Request: MESSAGE_TOO_LONG",
        ),
    ]
}

fn message_cases(server: &TelegramServer) -> Vec<Case> {
    let theirs = server.say(SUPERGROUP, ANN, "mine, not yours");
    vec![
        (
            "telegram.md §9.2",
            "edit somebody else's message",
            "editMessageText",
            json!({"chat_id": SUPERGROUP, "message_id": theirs, "text": "x"}),
            "400 Bad Request: message can't be edited",
        ),
        (
            "telegram.md §9.2",
            "edit a message that is not there",
            "editMessageText",
            json!({"chat_id": SUPERGROUP, "message_id": 999, "text": "x"}),
            "400 Bad Request: message to edit not found",
        ),
        (
            "telegram.md §9.2",
            "delete somebody else's message",
            "deleteMessage",
            json!({"chat_id": SUPERGROUP, "message_id": theirs}),
            "400 Bad Request: message can't be deleted",
        ),
        (
            "telegram.md §9.2",
            "delete a message that is not there",
            "deleteMessage",
            json!({"chat_id": SUPERGROUP, "message_id": 999}),
            "400 Bad Request: message to delete not found",
        ),
        (
            "telegram.md §9.2",
            "react with an emoji that is not allowed",
            "setMessageReaction",
            json!({"chat_id": SUPERGROUP, "message_id": theirs, "reaction": [{"type": "emoji", "emoji": "🛠"}]}),
            "400 Bad Request: REACTION_INVALID",
        ),
        (
            "telegram.md §9.3",
            "stream a draft into a group",
            "sendMessageDraft",
            json!({"chat_id": SUPERGROUP, "draft_id": 7, "text": "x"}),
            "400 Bad Request: TEXTDRAFT_PEER_INVALID",
        ),
        (
            "telegram.md §9.4",
            "ask for a file that is not there",
            "getFile",
            json!({"file_id": "x"}),
            "400 Bad Request: invalid file_id",
        ),
        (
            "telegram.md §2.4",
            "call an unknown method",
            "sendTelepathy",
            json!({}),
            "404 Not Found: method not found",
        ),
    ]
}

fn draft_cases() -> Vec<Case> {
    vec![
        (
            "telegram.md §9.3",
            "show a draft without a number",
            "sendMessageDraft",
            json!({"chat_id": ANN, "draft_id": 0, "text": "x"}),
            "400 Bad Request: TEXTDRAFT_PEER_INVALID",
        ),
        (
            "telegram.md §9.3",
            "show a draft of 4097 characters",
            "sendMessageDraft",
            json!({"chat_id": ANN, "draft_id": 7, "text": "a".repeat(4097)}),
            "400 Bad Request: message is too long",
        ),
    ]
}

struct MethodProbe<'s> {
    server: &'s TelegramServer,
}

impl MethodProbe<'_> {
    /// Posts JSON to a path and shows the answer.
    async fn post(&self, path: &str, body: &[u8]) -> String {
        let headers = [("Content-Type", "application/json")];
        let answer = http(self.server.addr(), "POST", path, &headers, body).await;
        shown(answer)
    }

    async fn call(&self, method: &str, body: &Value) -> String {
        let path = format!("/bot{}/{method}", self.server.token());
        self.post(&path, body.to_string().as_bytes()).await
    }

    async fn try_case(&self, (section, what, method, body, expected): Case) -> PlatformRefusal {
        judge(section, what, expected, self.call(method, &body).await)
    }

    async fn routing(&self) -> Vec<PlatformRefusal> {
        let bot = self.server.token();
        let secret = bot.split(':').next().unwrap_or("");
        let cases = [
            ("call without a token", "/getMe".to_owned(), "404 Not Found"),
            (
                "call with a token without a colon",
                "/bot123/getMe".to_owned(),
                "401 Unauthorized: invalid token specified",
            ),
            (
                "call with a wrong secret",
                format!("/bot{secret}:AAwrong/getMe"),
                "401 Unauthorized",
            ),
        ];
        let mut refusals = Vec::new();
        for (what, path, expected) in cases {
            let got = self.post(&path, b"{}").await;
            refusals.push(judge("telegram.md §2.4", what, expected, got));
        }
        refusals
    }

    async fn own_message_cases(&self) -> Vec<PlatformRefusal> {
        let body = json!({"chat_id": ANN, "text": "same"});
        self.call("sendMessage", &body).await;
        let posts = self.server.bot_posts(ANN);
        let id = posts.last().map_or(0, |post| post.message_id);
        let edit = json!({"chat_id": ANN, "message_id": id, "text": "same"});
        let unchanged = judge(
            "telegram.md §9.2",
            "edit without a change",
            "400 Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
            self.call("editMessageText", &edit).await,
        );
        let old = self.server.send_with(UserMessage {
            chat: ANN,
            user: ANN,
            text: "old".to_owned(),
            date_s: Some(1_700_000_000),
            ..UserMessage::default()
        });
        let delete = json!({"chat_id": ANN, "message_id": old});
        let too_old = judge(
            "telegram.md §9.2",
            "delete a message after 48 hours",
            "400 Bad Request: message can't be deleted for everyone",
            self.call("deleteMessage", &delete).await,
        );
        let again = json!({"chat_id": GROUP, "text": "x"});
        self.server.faults().limit_sends_per_minute(Some(1));
        self.call("sendMessage", &again).await;
        let flood = judge(
            "telegram.md §2.2",
            "send more than a chat may take",
            "429 Too Many Requests: retry after 60 {\"retry_after\":60} Retry-After: 60",
            // A second may have passed between the two sends.
            self.call("sendMessage", &again).await.replace("59", "60"),
        );
        let groups = self.server.bot_posts(GROUP);
        let sent = groups.last().map_or(0, |post| post.message_id);
        let edit = json!({"chat_id": GROUP, "message_id": sent, "text": "y"});
        let edit_flood = judge(
            "telegram.md §11.1",
            "edit more than a chat may take",
            "429 Too Many Requests: retry after 60 {\"retry_after\":60} Retry-After: 60",
            self.call("editMessageText", &edit)
                .await
                .replace("59", "60"),
        );
        self.server.faults().limit_sends_per_minute(None);
        let same = json!({"chat_id": GROUP, "message_id": sent, "text": "x"});
        let untouched = judge(
            "telegram.md §11.3",
            "edit to what it said before a refused edit",
            "400 Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
            self.call("editMessageText", &same).await,
        );
        vec![unchanged, too_old, flood, edit_flood, untouched]
    }

    async fn membership_cases(&self) -> Vec<PlatformRefusal> {
        let server = self.server;
        server.close_topic(FORUM, ANN, TelegramWorld::TOPIC_DEPLOYS);
        let topic = json!({"chat_id": FORUM, "text": "x", "message_thread_id": TelegramWorld::TOPIC_DEPLOYS});
        let mut refusals = vec![judge(
            "telegram.md §6.6",
            "write into a closed topic",
            "400 Bad Request: TOPIC_CLOSED",
            self.call("sendMessage", &topic).await,
        )];
        server.kick_bot(ANN, ANN);
        server.kick_bot(SUPERGROUP, ANN);
        server.remove_bot(FORUM, ANN);
        server.add_bot(CHANNEL, ANN);
        let new = server.migrate_to_supergroup(GROUP);
        let cases = [
            (
                "write to a person who blocked the bot",
                ANN,
                "403 Forbidden: bot was blocked by the user",
            ),
            (
                "write where the bot was kicked",
                SUPERGROUP,
                "403 Forbidden: bot was kicked from the supergroup chat",
            ),
            (
                "write where the bot is not inside",
                FORUM,
                "403 Forbidden: bot is not a member of the supergroup chat",
            ),
            (
                "post in a channel without being an administrator",
                CHANNEL,
                "400 Bad Request: need administrator rights in the channel chat",
            ),
        ];
        for (what, chat, expected) in cases {
            let got = self
                .call("sendMessage", &json!({"chat_id": chat, "text": "x"}))
                .await;
            refusals.push(judge("telegram.md §11.2", what, expected, got));
        }
        let got = self
            .call("sendMessage", &json!({"chat_id": GROUP, "text": "x"}))
            .await;
        refusals.push(judge(
            "telegram.md §6.5",
            "write to a group that became a supergroup",
            "400 Bad Request: group chat was upgraded to a supergroup chat {\"migrate_to_chat_id\":<new id>}",
            got.replace(&new.to_string(), "<new id>"),
        ));
        refusals
    }

    /// Two polls at once, and a poll while a webhook is set.
    async fn conflicts(&self) -> Vec<PlatformRefusal> {
        // Confirms everything, so that polls wait.
        self.call("getUpdates", &json!({"offset": -1})).await;
        self.server.act(|rooms| rooms.queue.clear());
        let waits = json!({"timeout": 5});
        let (older, newer) = (
            self.call("getUpdates", &waits),
            self.call("getUpdates", &waits),
        );
        let older = tokio::select! {
            got = older => got,
            got = newer => got,
        };
        // The other poll was hung up on; wait until the server has noticed.
        while self.server.polls_waiting() > 0 {
            tokio::task::yield_now().await;
        }
        let hook = json!({"url": "https://bot.example.org/hook"});
        let waiting = self.call("getUpdates", &waits);
        let setting = async {
            while self.server.polls_waiting() == 0 {
                tokio::task::yield_now().await;
            }
            self.call("setWebhook", &hook).await;
            self.call("setWebhook", &hook).await
        };
        let (terminated, again) = tokio::join!(waiting, setting);
        let during_webhook = self.call("getUpdates", &json!({})).await;
        self.call("deleteWebhook", &json!({})).await;
        vec![
            judge(
                "telegram.md §3.4",
                "poll until a webhook is set",
                "409 Conflict: terminated by setWebhook request",
                terminated,
            ),
            judge(
                "telegram.md §4.1",
                "set a webhook twice within a second",
                "429 Too Many Requests: retry after 1 {\"retry_after\":1} Retry-After: 1",
                again,
            ),
            judge(
                "telegram.md §3.4",
                "poll while another poll waits",
                "409 Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
                older,
            ),
            judge(
                "telegram.md §3.4",
                "poll while a webhook is set",
                "409 Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
                during_webhook,
            ),
        ]
    }

    async fn revoked(&self) -> PlatformRefusal {
        self.server.revoke_token();
        let got = self.call("getMe", &json!({})).await;
        judge(
            "telegram.md §2.4",
            "call with a revoked token",
            "401 Unauthorized",
            got,
        )
    }
}

/// Shows an answer as `<status> <description> <parameters> <Retry-After>`.
fn shown(answer: io::Result<RawHttpAnswer>) -> String {
    let (status, headers, body) = match answer {
        Ok(answer) => answer,
        Err(failure) => return failure.to_string(),
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let mut line = format!("{status} {}", body["description"].as_str().unwrap_or(""));
    if body["error_code"] != status && body["ok"] != true {
        line.push_str(" (error_code differs from the status)");
    }
    if let Some(parameters) = body.get("parameters") {
        line.push_str(&format!(" {parameters}"));
    }
    let retry_after = headers.iter().find(|(name, _)| name == "retry-after");
    if let Some((_, seconds)) = retry_after {
        line.push_str(&format!(" Retry-After: {seconds}"));
    }
    line
}
