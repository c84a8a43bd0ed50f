//! The refusals of the loopback Slack, each provoked over a real connection.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::deliveries::SOCKETS_MAX;
use super::faults::RetryPlan;
use super::requests::RequestUrls;
use super::server::SlackServer;
use super::world::SlackWorld;
use crate::probe::{self, RawSocket};
use crate::selfcheck::PlatformRefusal;
use crate::wire::{WireLog, WirePeer};

/// A call that is refused: section, what is tried, method, arguments as a form, expected error.
/// `{ann}` stands for the ts of a message of Ann's in `C0GENERAL`.
type RefusedCall = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

/// Calls with a good token and a bad argument.
const ARGUMENT_ROWS: &[RefusedCall] = &[
    (
        "slack.md §8",
        "stream outside of a thread",
        "chat.startStream",
        "channel=C0GENERAL&recipient_user_id=U0ANN&recipient_team_id=T0ACME&chunks=%5B%7B%22type%22%3A%22markdown_text%22%2C%22text%22%3A%22x%22%7D%5D",
        "invalid_thread_ts",
    ),
    (
        "slack.md §8",
        "stream in a channel for nobody",
        "chat.startStream",
        "channel=C0GENERAL&thread_ts={ann}&chunks=%5B%7B%22type%22%3A%22markdown_text%22%2C%22text%22%3A%22x%22%7D%5D",
        "missing_recipient_user_id",
    ),
    (
        "slack.md §8",
        "stream in a channel for a person of no team",
        "chat.startStream",
        "channel=C0GENERAL&thread_ts={ann}&recipient_user_id=U0ANN&chunks=%5B%7B%22type%22%3A%22markdown_text%22%2C%22text%22%3A%22x%22%7D%5D",
        "missing_recipient_team_id",
    ),
    (
        "slack.md §8",
        "stream for a bot",
        "chat.startStream",
        "channel=C0GENERAL&thread_ts={ann}&recipient_user_id=U0VOCATIVE&recipient_team_id=T0ACME&chunks=%5B%7B%22type%22%3A%22markdown_text%22%2C%22text%22%3A%22x%22%7D%5D",
        "invalid_arguments",
    ),
    (
        "slack.md §8",
        "stream chunks and markdown_text",
        "chat.startStream",
        "channel=C0GENERAL&thread_ts={ann}&recipient_user_id=U0ANN&recipient_team_id=T0ACME&markdown_text=x&chunks=%5B%7B%22type%22%3A%22markdown_text%22%2C%22text%22%3A%22x%22%7D%5D",
        "cannot_provide_both_markdown_text_and_chunks",
    ),
    (
        "slack.md §8",
        "stream chunks of a made-up type",
        "chat.startStream",
        "channel=C0GENERAL&thread_ts={ann}&recipient_user_id=U0ANN&recipient_team_id=T0ACME&chunks=%5B%7B%22type%22%3A%22poem%22%7D%5D",
        "invalid_chunks",
    ),
    (
        "slack.md §8",
        "add to a message that is not there",
        "chat.appendStream",
        "channel=C0GENERAL&ts=1000000000.000100&chunks=%5B%7B%22type%22%3A%22markdown_text%22%2C%22text%22%3A%22x%22%7D%5D",
        "message_not_found",
    ),
    (
        "slack.md §10",
        "ask for a file that is not there",
        "files.info",
        "file=F0NOWHERE",
        "file_not_found",
    ),
    (
        "slack.md §10",
        "upload without saying how much",
        "files.getUploadURLExternal",
        "filename=a.md",
        "invalid_arguments",
    ),
    (
        "slack.md §10",
        "share a file that was never uploaded",
        "files.completeUploadExternal",
        "files=%5B%7B%22id%22%3A%22F0NOWHERE%22%7D%5D&channel_id=C0GENERAL",
        "file_not_found",
    ),
    (
        "slack.md §11",
        "call a method that is not there",
        "chat.shout",
        "",
        "unknown_method",
    ),
    (
        "slack.md §11",
        "post into a channel that is not there",
        "chat.postMessage",
        "channel=C0NOWHERE&text=x",
        "channel_not_found",
    ),
    (
        "slack.md §6.1",
        "post into a channel by a name that no channel has",
        "chat.postMessage",
        "channel=%23nowhere&text=x",
        "channel_not_found",
    ),
    (
        "slack.md §6.3",
        "edit in a channel by its name",
        "chat.update",
        "channel=%23general&ts={ann}&text=x",
        "channel_not_found",
    ),
    (
        "slack.md §6.2",
        "post a button of a made-up style",
        "chat.postMessage",
        "channel=C0GENERAL&blocks=%5B%7B%22type%22%3A%22actions%22%2C%22elements%22%3A%5B%7B%22type%22%3A%22button%22%2C%22style%22%3A%22loud%22%2C%22text%22%3A%7B%22type%22%3A%22plain_text%22%2C%22text%22%3A%22x%22%7D%7D%5D%7D%5D",
        "invalid_blocks",
    ),
    (
        "slack.md §6.2",
        "post a header in mrkdwn",
        "chat.postMessage",
        "channel=C0GENERAL&blocks=%5B%7B%22type%22%3A%22header%22%2C%22text%22%3A%7B%22type%22%3A%22mrkdwn%22%2C%22text%22%3A%22x%22%7D%7D%5D",
        "invalid_blocks",
    ),
    (
        "slack.md §7.3",
        "open a modal without a person's act",
        "views.open",
        "trigger_id=1.2.3&view=%7B%22type%22%3A%22modal%22%2C%22blocks%22%3A%5B%5D%2C%22title%22%3A%7B%22type%22%3A%22plain_text%22%2C%22text%22%3A%22x%22%7D%7D",
        "invalid_trigger_id",
    ),
    (
        "slack.md §7.3",
        "change a modal that is not open",
        "views.update",
        "view_id=V0NOWHERE&view=%7B%22type%22%3A%22modal%22%2C%22blocks%22%3A%5B%5D%2C%22title%22%3A%7B%22type%22%3A%22plain_text%22%2C%22text%22%3A%22x%22%7D%7D",
        "not_found",
    ),
    (
        "slack.md §6.3",
        "ask for the reactions to a message that is not there",
        "reactions.get",
        "channel=C0GENERAL&timestamp=1000000000.000100",
        "message_not_found",
    ),
    (
        "slack.md §11",
        "join a channel without the scope",
        "conversations.join",
        "channel=C0ELSEWHERE",
        "missing_scope",
    ),
    (
        "slack.md §6.1",
        "post into a public channel without being in it",
        "chat.postMessage",
        "channel=C0ELSEWHERE&text=x",
        "not_in_channel",
    ),
    (
        "slack.md §11",
        "post into a private channel without being in it",
        "chat.postMessage",
        "channel=C0HIDDEN&text=x",
        "channel_not_found",
    ),
    (
        "slack.md §11",
        "post into an archived channel",
        "chat.postMessage",
        "channel=C0ATTIC&text=x",
        "is_archived",
    ),
    (
        "slack.md §8",
        "reply to something that is no ts",
        "chat.postMessage",
        "channel=C0GENERAL&text=x&thread_ts=0",
        "invalid_thread_ts",
    ),
    (
        "slack.md §6.1",
        "reply in a thread that is not there",
        "chat.postMessage",
        "channel=C0GENERAL&text=x&thread_ts=1000000000.000100",
        "thread_not_found",
    ),
    (
        "slack.md §6.3",
        "update a message that is not there",
        "chat.update",
        "channel=C0GENERAL&ts=1000000000.000100&text=x",
        "message_not_found",
    ),
    (
        "slack.md §6.3",
        "update somebody else's message",
        "chat.update",
        "channel=C0GENERAL&ts={ann}&text=x",
        "cant_update_message",
    ),
    (
        "slack.md §6.3",
        "update by a person's id",
        "chat.update",
        "channel=U0ANN&ts={ann}&text=x",
        "channel_not_found",
    ),
    (
        "slack.md §6.3",
        "delete somebody else's message",
        "chat.delete",
        "channel=C0GENERAL&ts={ann}",
        "cant_delete_message",
    ),
    (
        "slack.md §6.3",
        "delete a message that is not there",
        "chat.delete",
        "channel=C0GENERAL&ts=1000000000.000100",
        "message_not_found",
    ),
    (
        "slack.md §11",
        "whisper to somebody who is not in the channel",
        "chat.postEphemeral",
        "channel=C0GENERAL&user=U0STRANGER&text=x",
        "user_not_in_channel",
    ),
    (
        "slack.md §6.3",
        "take away a reaction that is not there",
        "reactions.remove",
        "channel=C0GENERAL&timestamp={ann}&name=tada",
        "no_reaction",
    ),
    (
        "slack.md §6.3",
        "react with a name in colons",
        "reactions.add",
        "channel=C0GENERAL&timestamp={ann}&name=:tada:",
        "invalid_name",
    ),
    (
        "slack.md §6.3",
        "react to a message that is not there",
        "reactions.add",
        "channel=C0GENERAL&timestamp=1000000000.000100&name=tada",
        "message_not_found",
    ),
    (
        "slack.md §5.4",
        "read the history of a channel without being in it",
        "conversations.history",
        "channel=C0ELSEWHERE",
        "not_in_channel",
    ),
    (
        "slack.md §5.4",
        "read 1,000 messages at once",
        "conversations.history",
        "channel=C0GENERAL&limit=1000",
        "invalid_limit",
    ),
    (
        "slack.md §5.5",
        "go on from a cursor that was made up",
        "conversations.history",
        "channel=C0GENERAL&cursor=page2",
        "invalid_cursor",
    ),
    (
        "slack.md §5.4",
        "read a thread of a channel without being in it",
        "conversations.replies",
        "channel=C0ELSEWHERE&ts={ann}",
        "not_in_channel",
    ),
    (
        "slack.md §5.4",
        "read a private channel that the bot can't see",
        "conversations.history",
        "channel=C0HIDDEN",
        "channel_not_found",
    ),
    (
        "slack.md §5.4",
        "read more of a thread at once than 1,000",
        "conversations.replies",
        "channel=C0GENERAL&ts={ann}&limit=1001",
        "invalid_limit",
    ),
    (
        "slack.md §5.4",
        "read a thread that is not there",
        "conversations.replies",
        "channel=C0GENERAL&ts=1000000000.000100",
        "thread_not_found",
    ),
    (
        "slack.md §5.4",
        "read a thread without saying which",
        "conversations.replies",
        "channel=C0GENERAL",
        "invalid_arguments",
    ),
    (
        "slack.md §4.5",
        "look up a user who is not there",
        "users.info",
        "user=U0NOBODY",
        "user_not_found",
    ),
    (
        "slack.md §4.5",
        "look up a bot that is not there",
        "bots.info",
        "bot=B0NOBODY",
        "bot_not_found",
    ),
    (
        "slack.md §4.5",
        "look into a private channel without being in it",
        "conversations.info",
        "channel=C0HIDDEN",
        "channel_not_found",
    ),
    (
        "slack.md §9",
        "set a status without a thread",
        "assistant.threads.setStatus",
        "channel_id=C0GENERAL&status=thinks",
        "invalid_arguments",
    ),
    (
        "slack.md §9",
        "set the title of no thread",
        "assistant.threads.setTitle",
        "channel_id=D0ANN&thread_ts=1.000100&title=Deploys",
        "invalid_thread_ts",
    ),
    (
        "slack.md §9",
        "suggest five prompts",
        "assistant.threads.setSuggestedPrompts",
        "channel_id=D0ANN&prompts=[{\"title\":\"a\",\"message\":\"a\"},{\"title\":\"a\",\"message\":\"a\"},{\"title\":\"a\",\"message\":\"a\"},{\"title\":\"a\",\"message\":\"a\"},{\"title\":\"a\",\"message\":\"a\"}]",
        "invalid_arguments",
    ),
];

/// A request that is refused whole: section, what is tried, method, authorization, content type,
/// body, expected error. `{bot}` and `{app}` stand for the tokens.
type RequestRow = [&'static str; 7];

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json; charset=utf-8";

/// Requests whose token or encoding is refused.
const REQUEST_ROWS: &[RequestRow] = &[
    [
        "slack.md §11",
        "call without a token",
        "auth.test",
        "",
        FORM,
        "",
        "not_authed",
    ],
    [
        "slack.md §11",
        "call with a token that is none",
        "auth.test",
        "Bearer xoxb-none",
        FORM,
        "",
        "invalid_auth",
    ],
    [
        "slack.md §1.1",
        "open a socket with the bot token",
        "apps.connections.open",
        "Bearer {bot}",
        FORM,
        "",
        "not_allowed_token_type",
    ],
    [
        "slack.md §1.1",
        "open a socket with the token as a parameter",
        "apps.connections.open",
        "",
        FORM,
        "token={app}",
        "not_authed",
    ],
    [
        "slack.md §1.1",
        "post with the app token",
        "chat.postMessage",
        "Bearer {app}",
        FORM,
        "channel=C0GENERAL&text=x",
        "not_allowed_token_type",
    ],
    [
        "slack.md §5.1",
        "send the token inside JSON",
        "auth.test",
        "",
        JSON,
        "{\"token\":\"{bot}\"}",
        "not_authed",
    ],
    [
        "slack.md §5.1",
        "send broken JSON",
        "chat.postMessage",
        "Bearer {bot}",
        JSON,
        "{",
        "invalid_json",
    ],
    [
        "slack.md §5.1",
        "send a JSON array",
        "chat.postMessage",
        "Bearer {bot}",
        JSON,
        "[]",
        "json_not_object",
    ],
    [
        "slack.md §11",
        "send XML",
        "chat.postMessage",
        "Bearer {bot}",
        "text/xml",
        "<x/>",
        "invalid_post_type",
    ],
    [
        "slack.md §11",
        "send a body without a type",
        "chat.postMessage",
        "Bearer {bot}",
        "",
        "text=x",
        "missing_post_type",
    ],
    [
        "slack.md §11",
        "send a form with a broken escape",
        "chat.postMessage",
        "Bearer {bot}",
        FORM,
        "text=%zz",
        "invalid_form_data",
    ],
    [
        "slack.md §5.1",
        "send JSON to a method that takes forms",
        "users.info",
        "Bearer {bot}",
        JSON,
        "{\"user\":\"U0ANN\"}",
        "user_not_found",
    ],
    [
        "slack.md §5.1",
        "ask for history in JSON",
        "conversations.history",
        "Bearer {bot}",
        JSON,
        "{\"channel\":\"C0GENERAL\"}",
        "invalid_arguments",
    ],
];

/// Provokes what the loopback Slack refuses, on a server of its own.
///
/// When no server can be started at all, the list holds one entry that says so.
pub async fn slack_refusals() -> Vec<PlatformRefusal> {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = match SlackServer::start(SlackWorld::acme(), any_port, WireLog::new()).await {
        Ok(server) => server,
        Err(error) => {
            let (section, what) = ("slack.md §17.1", "start the loopback Slack");
            return vec![judge(section, what, "started", error.to_string())];
        }
    };
    let check = Check {
        addr: server.addr(),
        world: server.world(),
    };
    let mut refusals = Vec::new();
    let anns_ts = server.post("C0GENERAL", "U0ANN", "hello");
    for (section, what, method, form, expected) in ARGUMENT_ROWS {
        let got = check.call(method, &form.replace("{ann}", &anns_ts)).await;
        refusals.push(judge(section, what, expected, got));
    }
    for (section, what, args, expected) in content_rows()
        .into_iter()
        .chain(metadata_and_author_rows())
        .chain(button_rows())
    {
        let got = check.call("chat.postMessage", &form(&args)).await;
        refusals.push(judge(section, what, expected, got));
    }
    refusals.extend(check.stream_cases(&server, &anns_ts).await);
    refusals.extend(check.request_cases().await);
    refusals.extend(check.scope_cases(&server).await);
    refusals.extend(check.pace_cases(&server).await);
    refusals.extend(check.socket_cases(&server).await);
    refusals.extend(check.request_url_cases(&server).await);
    server.stop().await;
    refusals
}

fn judge(
    section: &'static str,
    what: &'static str,
    expected: &'static str,
    got: String,
) -> PlatformRefusal {
    PlatformRefusal::judge(WirePeer::Slack, section, what, expected, got)
}

/// A post whose content is refused: section, what is tried, arguments, expected error.
type ContentRow = (&'static str, &'static str, Value, &'static str);

fn post(
    section: &'static str,
    what: &'static str,
    mut args: Value,
    expected: &'static str,
) -> ContentRow {
    args["channel"] = json!("C0GENERAL");
    (section, what, args, expected)
}

fn long(chars: usize) -> String {
    "x".repeat(chars)
}

/// Posts whose text, blocks or attachments are refused.
fn content_rows() -> Vec<ContentRow> {
    let dividers = Value::Array(vec![json!({"type": "divider"}); 51]);
    let attachments = Value::Array(vec![json!({"text": "x"}); 101]);
    let section = |chars: usize| json!([{"type": "section", "text": {"type": "mrkdwn", "text": long(chars)}}]);
    vec![
        post("slack.md §11", "post nothing", json!({}), "no_text"),
        post(
            "slack.md §6.2",
            "post 51 blocks",
            json!({"blocks": dividers}),
            "invalid_blocks",
        ),
        post(
            "slack.md §6.2",
            "post a section of 3,001 characters",
            json!({"blocks": section(3_001)}),
            "invalid_blocks",
        ),
        post(
            "slack.md §11",
            "post a block of a made-up type",
            json!({"blocks": [{"type": "poem"}]}),
            "invalid_blocks",
        ),
        post(
            "slack.md §11",
            "post blocks that are no array",
            json!({"blocks": "{"}),
            "invalid_blocks_format",
        ),
        post(
            "slack.md §6.2",
            "post markdown blocks of 12,001 characters",
            json!({"blocks": [{"type": "markdown", "text": long(12_001)}]}),
            "msg_blocks_too_long",
        ),
        post(
            "slack.md §6.2",
            "post markdown_text of 12,001 characters",
            json!({"markdown_text": long(12_001)}),
            "msg_too_long",
        ),
        post(
            "slack.md §6.3",
            "post text and markdown_text",
            json!({"text": "x", "markdown_text": "x"}),
            "markdown_text_conflict",
        ),
        post(
            "slack.md §6.2",
            "post 101 attachments",
            json!({"attachments": attachments}),
            "too_many_attachments",
        ),
    ]
}

/// Posts whose buttons are refused.
fn button_rows() -> Vec<ContentRow> {
    let button = |change: &[(&str, Value)]| {
        let text = json!({"type": "plain_text", "text": "Approve"});
        let mut button = json!({"type": "button", "action_id": "a", "value": "v", "text": text});
        for (name, value) in change {
            button[*name] = value.clone();
        }
        button
    };
    let refused = |what, buttons: Vec<Value>| {
        let blocks = json!([{"type": "actions", "elements": buttons}]);
        post(
            "slack.md §6.2",
            what,
            json!({"blocks": blocks}),
            "invalid_blocks",
        )
    };
    let words = |kind: &str, chars| json!({"type": kind, "text": long(chars)});
    let many = (0..26).map(|n| button(&[("action_id", json!(n.to_string()))]));
    let with = |name, value| vec![button(&[(name, value)])];
    vec![
        refused("post 26 buttons in a row", many.collect()),
        refused(
            "post two buttons of one action_id",
            vec![button(&[]), button(&[])],
        ),
        refused(
            "post a button of 76 characters",
            with("text", words("plain_text", 76)),
        ),
        refused("post a button in mrkdwn", with("text", words("mrkdwn", 5))),
        refused(
            "post a button value of 2,001 characters",
            with("value", json!(long(2_001))),
        ),
        refused(
            "post an action_id of 256 characters",
            with("action_id", json!(long(256))),
        ),
        refused(
            "post a label for screen readers of 76 characters",
            with("accessibility_label", json!(long(76))),
        ),
    ]
}

/// Posts whose metadata or author is refused.
fn metadata_and_author_rows() -> Vec<ContentRow> {
    vec![
        post(
            "slack.md §6.6",
            "post metadata without a payload",
            json!({"text": "x", "metadata": {"event_type": "reply"}}),
            "invalid_metadata_format",
        ),
        post(
            "slack.md §6.6",
            "post an event_type with a dash",
            json!({"text": "x", "metadata": {"event_type": "a-b", "event_payload": {}}}),
            "invalid_metadata_format",
        ),
        post(
            "slack.md §6.6",
            "post very large metadata",
            json!({"text": "x", "metadata": {"event_type": "ab", "event_payload": {"x": long(20_000)}}}),
            "metadata_too_large",
        ),
        post(
            "slack.md §6.1",
            "post as a person",
            json!({"text": "x", "as_user": true}),
            "as_user_not_supported",
        ),
        post(
            "slack.md §6.1",
            "post under another name without the scope",
            json!({"text": "x", "username": "boss"}),
            "missing_scope",
        ),
    ]
}

/// One running server, and how to talk to it.
struct Check {
    addr: SocketAddr,
    world: SlackWorld,
}

impl Check {
    async fn request_cases(&self) -> Vec<PlatformRefusal> {
        let mut refusals = Vec::new();
        for [
            section,
            what,
            method,
            authorization,
            content_type,
            body,
            expected,
        ] in REQUEST_ROWS
        {
            let authorization = self.with_tokens(authorization);
            let headers: Vec<(&str, &str)> = [
                ("Authorization", authorization.as_str()),
                ("Content-Type", content_type),
            ]
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect();
            let body = self.with_tokens(body);
            let got = self.send(method, &headers, body.as_bytes()).await;
            refusals.push(judge(section, what, expected, got));
        }
        refusals
    }

    fn with_tokens(&self, text: &str) -> String {
        text.replace("{bot}", &self.world.bot_token)
            .replace("{app}", &self.world.app_token)
    }

    /// What a streamed message refuses while it takes words, and afterwards.
    async fn stream_cases(&self, server: &SlackServer, thread_ts: &str) -> Vec<PlatformRefusal> {
        const SECTION: &str = "slack.md §8";
        let chunks = json!([{"type": "markdown_text", "text": "x"}]);
        let started = json!({
            "channel": "C0GENERAL", "thread_ts": thread_ts, "recipient_user_id": "U0ANN",
            "recipient_team_id": self.world.team_id, "chunks": chunks,
        });
        let mut refusals = Vec::new();
        for life_ms in [300_000, 0] {
            server
                .faults()
                .set_knobs(|knobs| knobs.stream_life_ms = life_ms);
            let got = self.call("chat.startStream", &form(&started)).await;
            let posts = server.posts("C0GENERAL");
            let ts = posts.last().map(|post| post.ts.clone()).unwrap_or_default();
            let item = |more: Value| {
                let mut args = json!({"channel": "C0GENERAL", "ts": ts});
                let fields = more.as_object().cloned().unwrap_or_default();
                args.as_object_mut()
                    .into_iter()
                    .for_each(|args| args.extend(fields.clone()));
                form(&args)
            };
            let rows: &[(&str, &str, Value, &str)] = match life_ms {
                0 => &[
                    (
                        "add to a stream that is over",
                        "chat.appendStream",
                        json!({"chunks": chunks}),
                        "message_not_in_streaming_state",
                    ),
                    (
                        "stop a stream that is over",
                        "chat.stopStream",
                        json!({}),
                        "message_not_in_streaming_state",
                    ),
                ],
                _ => &[
                    (
                        "change the form of a stream",
                        "chat.appendStream",
                        json!({"markdown_text": "x"}),
                        "streaming_mode_mismatch",
                    ),
                    (
                        "update an open stream",
                        "chat.update",
                        json!({"text": "x"}),
                        "streaming_state_conflict",
                    ),
                    (
                        "delete an open stream",
                        "chat.delete",
                        json!({}),
                        "cant_delete_message",
                    ),
                ],
            };
            if got != "no error" {
                refusals.push(judge(SECTION, "start a stream", "no error", got));
            }
            for (what, method, more, expected) in rows {
                let got = self.call(method, &item(more.clone())).await;
                refusals.push(judge(SECTION, what, expected, got));
            }
            if life_ms > 0 {
                server.press_stop("C0GENERAL", "U0ANN", &ts);
                let more = item(json!({"chunks": chunks}));
                let got = self.call("chat.appendStream", &more).await;
                let what = "add to a stream that a person has stopped";
                refusals.push(judge(SECTION, what, "stopped_by_user", got));
            }
        }
        server
            .faults()
            .set_knobs(|knobs| knobs.stream_life_ms = 300_000);
        refusals
    }

    async fn scope_cases(&self, server: &SlackServer) -> Vec<PlatformRefusal> {
        server.change_world(|world| world.scopes.retain(|scope| scope != "im:history"));
        let got = self.call("conversations.history", "channel=D0ANN").await;
        server.change_world(|world| world.scopes = SlackWorld::acme().scopes);
        let history = judge(
            "slack.md §5.2",
            "read a direct chat without im:history",
            "missing_scope",
            got,
        );
        server.faults().set_account_error(Some("token_revoked"));
        let got = self.call("auth.test", "").await;
        server.faults().set_account_error(None);
        let revoked = judge(
            "slack.md §11",
            "call after the token was revoked",
            "token_revoked",
            got,
        );
        vec![history, revoked]
    }

    async fn pace_cases(&self, server: &SlackServer) -> Vec<PlatformRefusal> {
        server
            .faults()
            .set_knobs(|knobs| knobs.post_gap_ms = 60_000);
        let body = "channel=C0OPS&text=x";
        self.call("chat.postMessage", body).await;
        let got = self.call("chat.postMessage", body).await;
        let fast = judge(
            "slack.md §5.3",
            "post twice within a second",
            "429 ratelimited",
            got,
        );
        server.faults().set_knobs(|knobs| {
            knobs.post_gap_ms = 0;
            knobs.tiers_enforced = true;
        });
        let mut got = String::new();
        for _ in 0..=20 {
            got = self.call("users.list", "").await;
        }
        server
            .faults()
            .set_knobs(|knobs| knobs.tiers_enforced = false);
        let tier = judge(
            "slack.md §5.3",
            "list users 21 times in a minute",
            "429 ratelimited",
            got,
        );
        vec![fast, tier]
    }

    /// Upgrades and sockets that are refused, and acknowledgements that do not count.
    async fn socket_cases(&self, server: &SlackServer) -> Vec<PlatformRefusal> {
        let mut refusals = Vec::new();
        let got = self.upgrade_status("/link/?ticket=made-up").await;
        let what = "open a socket with a ticket that was made up";
        refusals.push(judge("slack.md §1.1", what, "401", got));
        let mut sockets = Vec::new();
        let mut used = String::new();
        for _ in 0..SOCKETS_MAX {
            used = self.ticket_path().await;
            if let Ok(mut socket) = RawSocket::upgrade(self.addr, &used).await {
                // `hello` says that the socket counts.
                let _ = socket.text().await;
                sockets.push(socket);
            }
        }
        let got = self.upgrade_status(&used).await;
        refusals.push(judge(
            "slack.md §1.1",
            "open a second socket with one ticket",
            "401",
            got,
        ));
        let got = self.first_reason().await;
        let what = "open an eleventh socket";
        refusals.push(judge("slack.md §1.6", what, "too_many_websockets", got));
        for (status, expected) in [(408, "408"), (409, "409")] {
            server.faults().next_upgrade(status);
            let path = self.ticket_path().await;
            let got = self.upgrade_status(&path).await;
            refusals.push(judge(
                "slack.md §1.5",
                "be turned away at the upgrade",
                expected,
                got,
            ));
        }
        refusals.push(self.unacked_case(server, sockets).await);
        refusals
    }

    /// An event that nobody acknowledges comes again, marked as a retry.
    async fn unacked_case(&self, server: &SlackServer, sockets: Vec<RawSocket>) -> PlatformRefusal {
        drop(sockets);
        let wait = std::time::Duration::from_secs(5);
        let mut got = "no retry".to_owned();
        if server.wait_for_socket_count(0, wait).await {
            server.faults().set_retry_plan(RetryPlan {
                after_ms: vec![10],
                ..RetryPlan::default()
            });
            let path = self.ticket_path().await;
            if let Ok(mut socket) = RawSocket::upgrade(self.addr, &path).await {
                let _ = socket.text().await;
                server.post("C0GENERAL", "U0ANN", "listen");
                let _ = socket.text().await;
                let again = socket.text().await.unwrap_or_default();
                let frame: Value = serde_json::from_str(&again).unwrap_or_default();
                got = format!("retry_attempt {}", frame["retry_attempt"]);
            }
        }
        judge(
            "slack.md §1.6",
            "leave an event unacknowledged",
            "retry_attempt 1",
            got,
        )
    }

    /// Request URLs that are not taken, and answers to requests that do not count.
    async fn request_url_cases(&self, server: &SlackServer) -> Vec<PlatformRefusal> {
        const SECTION: &str = "slack.md §2";
        let (app, base) = match AnsweringApp::start().await {
            Ok(started) => started,
            Err(error) => return vec![judge(SECTION, "start an app", "an app", error.to_string())],
        };
        let mut refusals = Vec::new();
        let verified = |base: &str| server.set_request_urls(RequestUrls::under(base));
        for (what, base, expected) in [
            (
                "save a request URL without TLS",
                "http://bot.example.org",
                "a request URL must be https (here: http on a loopback address)",
            ),
            (
                "save a request URL that does not answer with the challenge",
                &base,
                "the URL did not answer with the challenge",
            ),
        ] {
            let got = verified(base).await.err().unwrap_or_default();
            refusals.push(judge(SECTION, what, expected, got));
        }
        server.use_request_urls(RequestUrls::under(&base));
        let got = self.app_call("apps.connections.open").await;
        let what = "open a socket while Socket Mode is off";
        refusals.push(judge(SECTION, what, "link_disabled", got));
        server.faults().set_retry_plan(RetryPlan {
            http_after_ms: vec![10, 10, 10],
            ..RetryPlan::default()
        });
        for (status, no_retry, what, expected) in [
            (500, false, "answer an event with 500", "1 to 3, then lost"),
            (302, false, "redirect nowhere", "1 to 3, then lost"),
            (
                500,
                true,
                "refuse an event with X-Slack-No-Retry",
                "none, then lost",
            ),
        ] {
            app.answer_with(status, no_retry);
            let lost = server.lost_payloads().len();
            server.post("C0GENERAL", "U0ANN", "listen");
            let is_lost = || server.lost_payloads().len() > lost;
            let got = match self.within(is_lost).await {
                true => app.retries(),
                false => "not given up".to_owned(),
            };
            refusals.push(judge("slack.md §2.5", what, expected, got));
        }
        server.use_sockets();
        refusals
    }

    async fn within(&self, is_so: impl Fn() -> bool) -> bool {
        let looks = 500;
        for _ in 0..looks {
            if is_so() {
                return true;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        false
    }

    /// Calls a method with the app-level token.
    async fn app_call(&self, method: &str) -> String {
        let token = format!("Bearer {}", self.world.app_token);
        let headers = [("Authorization", token.as_str())];
        self.send(method, &headers, b"").await
    }

    async fn first_reason(&self) -> String {
        let path = self.ticket_path().await;
        let first = match RawSocket::upgrade(self.addr, &path).await {
            Ok(mut socket) => socket.text().await,
            Err(error) => Err(error),
        };
        match first {
            Ok(text) => {
                let frame: Value = serde_json::from_str(&text).unwrap_or_default();
                frame["reason"].as_str().unwrap_or(&text).to_owned()
            }
            Err(error) => error.to_string(),
        }
    }

    async fn upgrade_status(&self, path: &str) -> String {
        match RawSocket::upgrade(self.addr, path).await {
            Ok(socket) => socket.status().to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// The path of a fresh socket URL.
    async fn ticket_path(&self) -> String {
        let token = format!("Bearer {}", self.world.app_token);
        let headers = [("Authorization", token.as_str())];
        let path = "/api/apps.connections.open";
        let answer = probe::http(self.addr, "POST", path, &headers, b"").await;
        let body: Value = answer
            .ok()
            .and_then(|(_, _, body)| serde_json::from_slice(&body).ok())
            .unwrap_or_default();
        let url = body["url"].as_str().unwrap_or_default();
        let path_at = url.find("/link/").unwrap_or(url.len());
        url[path_at..].to_owned()
    }

    /// Calls a method with the bot token and a form.
    async fn call(&self, method: &str, form: &str) -> String {
        let token = format!("Bearer {}", self.world.bot_token);
        let headers = [
            ("Authorization", token.as_str()),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        self.send(method, &headers, form.as_bytes()).await
    }

    /// Sends a request; gives the error name, with the status before it unless that is 200.
    async fn send(&self, method: &str, headers: &[(&str, &str)], body: &[u8]) -> String {
        let path = format!("/api/{method}");
        match probe::http(self.addr, "POST", &path, headers, body).await {
            Ok((status, _, body)) => {
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                let error = body["error"].as_str().unwrap_or("no error");
                match status {
                    200 => error.to_owned(),
                    _ => format!("{status} {error}"),
                }
            }
            Err(error) => error.to_string(),
        }
    }
}

/// An app that answers requests as it is told to, and remembers their retry marks.
struct AnsweringApp {
    state: AppState,
    serving: tokio::task::JoinHandle<()>,
}

type AppState = std::sync::Arc<std::sync::Mutex<(u16, bool, Vec<u32>)>>;

impl Drop for AnsweringApp {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl AnsweringApp {
    /// The app, and the address under which it is called.
    async fn start() -> std::io::Result<(Self, String)> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let base = format!("http://{}", listener.local_addr()?);
        let state = AppState::default();
        state.lock().expect("no holder of this lock panics").0 = 200;
        let router = axum::Router::new()
            .fallback(Self::answer)
            .with_state(state.clone());
        let serving = tokio::spawn(async move {
            // It ends with the check.
            let _ = axum::serve(listener, router).await;
        });
        Ok((Self { state, serving }, base))
    }

    fn answer_with(&self, status: u16, no_retry: bool) {
        *self.state.lock().expect("no holder of this lock panics") = (status, no_retry, Vec::new());
    }

    /// What retries there were after the first attempt.
    fn retries(&self) -> String {
        let marks = &self.state.lock().expect("no holder of this lock panics").2;
        match marks.as_slice() {
            [0] => "none, then lost".to_owned(),
            [0, 1, 2, 3] => "1 to 3, then lost".to_owned(),
            other => format!("{other:?}"),
        }
    }

    async fn answer(
        axum::extract::State(state): axum::extract::State<AppState>,
        headers: axum::http::HeaderMap,
    ) -> axum::response::Response {
        let mut state = state.lock().expect("no holder of this lock panics");
        let mark = headers.get("x-slack-retry-num");
        let mark = mark.and_then(|mark| mark.to_str().ok()?.parse().ok());
        state.2.push(mark.unwrap_or(0));
        let answer = axum::http::Response::builder()
            .status(state.0)
            .header("x-slack-no-retry", if state.1 { "1" } else { "0" });
        answer
            .body(axum::body::Body::empty())
            .expect("the parts of the answer are sound")
    }
}

/// Arguments as a form, nested values as JSON text.
fn form(args: &Value) -> String {
    let fields = args.as_object().into_iter().flatten();
    let pairs = fields.map(|(name, value)| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        format!("{name}={}", percent_encoded(&text))
    });
    pairs.collect::<Vec<_>>().join("&")
}

fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    })
}
