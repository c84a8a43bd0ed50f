//! One message of a loopback room, and its JSON.
//!
//! Knows nothing of sockets or methods.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::world::SlackWorld;
use crate::wire::now_ms;

/// A message as the people in the room see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SlackPost {
    /// Identity within the channel.
    pub ts: String,
    /// Root of the thread that it was posted into; none at top level.
    pub thread_ts: Option<String>,
    /// Author, unless it is an old-style bot post.
    pub user: Option<String>,
    /// `B…` when an app posted it.
    pub bot_id: Option<String>,
    /// `A…` when an app posted it.
    pub app_id: Option<String>,
    /// Home workspace of the author.
    pub user_team: Option<String>,
    /// Message subtype.
    pub subtype: Option<String>,
    /// Text in wire form.
    pub text: String,
    /// Blocks, as posted.
    pub blocks: Option<Value>,
    /// Attachments, as posted or unfurled.
    pub attachments: Option<Value>,
    /// File objects.
    pub files: Vec<Value>,
    /// Message metadata.
    pub metadata: Option<Value>,
    /// Who edited it and at which ts.
    pub edited: Option<(String, String)>,
    /// Whether it was deleted.
    pub deleted: bool,
    /// Name shown instead of the author's.
    pub username: Option<String>,
    /// Picture shown instead of the author's.
    pub icons: Option<Value>,
    /// Set by Slack's own clients.
    pub client_msg_id: Option<String>,
    /// People by reaction name.
    pub reactions: BTreeMap<String, Vec<String>>,
    /// When history starts to show it, in milliseconds since the Unix epoch.
    pub visible_at_ms: i64,
    /// Set on a message that was started as a stream.
    pub stream: Option<SlackStream>,
}

/// The state of a streamed message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlackStream {
    /// Whether words come as `chunks`, else as `markdown_text`; undecided until the first words came.
    pub in_chunks: Option<bool>,
    /// Whether it was stopped.
    pub is_stopped: bool,
    /// Whether a person stopped it, by the button beside it.
    pub is_stopped_by_person: bool,
    /// Until when it takes words, in milliseconds since the Unix epoch.
    pub until_ms: i64,
    /// The person on whose screen it grows.
    pub recipient: Option<String>,
}

impl SlackStream {
    /// Whether it takes words.
    #[must_use]
    pub fn is_open(&self, now_ms: i64) -> bool {
        !self.is_stopped && now_ms < self.until_ms
    }

    /// The state as message objects show it.
    fn state(&self, now_ms: i64) -> &'static str {
        match (self.is_stopped, self.is_open(now_ms)) {
            (true, _) => "completed",
            (false, true) => "in_progress",
            (false, false) => "errored",
        }
    }
}

impl SlackPost {
    /// The words that people see: those of its blocks, else its text. Marks of Markdown stay; its
    /// escapes and Slack's are undone.
    #[must_use]
    pub fn shown(&self) -> String {
        let unescaped = |text: &str| {
            let text = text.replace("&lt;", "<").replace("&gt;", ">");
            text.replace("&amp;", "&")
        };
        let Some(blocks) = self.blocks.as_ref().and_then(Value::as_array) else {
            return unescaped(&self.text);
        };
        let words = blocks.iter().map(|block| match block["text"].as_str() {
            Some(markdown) => without_escapes(markdown),
            None => block_words(block),
        });
        words.collect::<Vec<_>>().join("\n")
    }

    /// Whether it shows at the top level of its channel.
    #[must_use]
    pub fn is_top_level(&self) -> bool {
        match &self.thread_ts {
            None => true,
            Some(root) => *root == self.ts || self.subtype.as_deref() == Some("thread_broadcast"),
        }
    }

    /// Whether it is a reply in this thread.
    #[must_use]
    pub fn is_reply_in(&self, root_ts: &str) -> bool {
        self.thread_ts.as_deref() == Some(root_ts) && self.ts != root_ts
    }

    /// The message object, without metadata and thread counters.
    #[must_use]
    pub fn to_json(&self, world: &SlackWorld) -> Map<String, Value> {
        let team_id = &world.team_id;
        let mut message = Map::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                message.insert(name.to_owned(), value);
            }
        };
        put("type", json!("message"));
        put("subtype", json!(self.subtype));
        put("user", json!(self.user));
        put("text", json!(self.text));
        put("ts", json!(self.ts));
        put("thread_ts", json!(self.thread_ts));
        put("client_msg_id", json!(self.client_msg_id));
        // A message object of a shared file does not contain the author's workspace.
        let tells_team = self.subtype.as_deref() != Some("file_share");
        if tells_team {
            put("team", json!(team_id));
        }
        put("username", json!(self.username));
        put("icons", json!(self.icons));
        put("blocks", json!(self.blocks));
        put("attachments", json!(self.attachments));
        let is_persons = self.subtype.as_deref() != Some("bot_message") && self.bot_id.is_none();
        if is_persons && tells_team {
            put("user_team", json!(self.user_team));
            put("source_team", json!(self.user_team));
        }
        if !self.files.is_empty() {
            put("files", json!(self.files));
            put("upload", json!(true));
        }
        if let Some((user, ts)) = &self.edited {
            put("edited", json!({"user": user, "ts": ts}));
        }
        let stream = self.stream.as_ref();
        put(
            "streaming_state",
            json!(stream.map(|it| it.state(now_ms()))),
        );
        put("bot_id", json!(self.bot_id));
        put("app_id", json!(self.app_id));
        if let (Some(bot_id), Some(app_id), None) = (&self.bot_id, &self.app_id, &self.username) {
            put(
                "bot_profile",
                json!({"id": bot_id, "name": world.bot_label(bot_id), "app_id": app_id, "team_id": team_id,
                       "icons": {}, "updated": 1_700_000_000, "deleted": false}),
            );
        }
        if !self.reactions.is_empty() {
            put("reactions", self.reactions_json());
        }
        message
    }

    fn reactions_json(&self) -> Value {
        let list: Vec<Value> = self
            .reactions
            .iter()
            .map(|(name, users)| json!({"name": name, "users": users, "count": users.len()}))
            .collect();
        Value::Array(list)
    }
}

/// Markdown without its backslashes and invisible characters.
fn without_escapes(markdown: &str) -> String {
    let mut out = String::new();
    let mut chars = markdown.chars().peekable();
    while let Some(c) = chars.next() {
        let is_escape = c == '\\' && chars.peek().is_some_and(char::is_ascii_punctuation);
        match is_escape {
            true => out.extend(chars.next()),
            false if c == '\u{2060}' => {}
            false => out.push(c),
        }
    }
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// The cells of a table, a row a line.
/// The words of a block that is not Markdown: those of its buttons in brackets.
fn block_words(block: &Value) -> String {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match block["type"].as_str() {
        Some("header" | "section") => block["text"]["text"].as_str().unwrap_or("").to_owned(),
        Some("rich_text") => {
            let inner = list(&block["elements"]).into_iter().map(|section| {
                let leaves = list(&section["elements"]);
                let words = leaves.iter().filter_map(|it| it["text"].as_str());
                words.collect::<String>()
            });
            inner.collect::<Vec<_>>().join("\n")
        }
        Some("actions") => {
            let buttons = list(&block["elements"]);
            let words = buttons.iter().filter_map(|it| it["text"]["text"].as_str());
            words
                .map(|it| format!("[{it}]"))
                .collect::<Vec<_>>()
                .join(" ")
        }
        _ => table_words(block),
    }
}

fn table_words(block: &Value) -> String {
    let cell = |cell: &Value| match cell["text"].as_str() {
        Some(text) => text.to_owned(),
        None => {
            let elements = cell["elements"][0]["elements"].as_array();
            let words = elements.into_iter().flatten();
            words
                .filter_map(|it| it["text"].as_str().or(it["url"].as_str()))
                .collect()
        }
    };
    let rows = block["rows"].as_array().into_iter().flatten();
    let lines = rows.map(|row| {
        let cells = row.as_array().into_iter().flatten().map(cell);
        cells.collect::<Vec<_>>().join(" | ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A message that only one person sees.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlackEphemeral {
    /// Where.
    pub channel: String,
    /// For whom.
    pub user: String,
    /// In which thread.
    pub thread_ts: Option<String>,
    /// Its `message_ts`.
    pub ts: String,
    /// Text in wire form.
    pub text: String,
    /// Blocks, as posted.
    pub blocks: Option<Value>,
}

/// What a person posts; everything but channel, user and text may be left at its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserPost {
    /// Id or name.
    pub channel: String,
    /// Id or name of the author.
    pub user: String,
    /// Text in wire form (already escaped).
    pub text: String,
    /// Root of the thread to reply in.
    pub thread_ts: Option<String>,
    /// Message subtype (`me_message`, `file_share`, `bot_message`, …).
    pub subtype: Option<String>,
    /// File objects.
    pub files: Vec<Value>,
    /// Posts as this bot instead of as a person.
    pub bot_id: Option<String>,
    /// Whether a reply also shows in the channel (`thread_broadcast`).
    pub broadcast: bool,
    /// Instead of a made-up one.
    pub client_msg_id: Option<String>,
    /// Instead of the author's home workspace.
    pub user_team: Option<String>,
    /// Metadata of the message.
    pub metadata: Option<Value>,
    /// Blocks instead of the made-up `rich_text` mirror; `[]` for none.
    pub blocks: Option<Value>,
    /// Shown name of a `bot_message`.
    pub username: Option<String>,
}
