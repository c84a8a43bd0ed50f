//! The transcript, made from the frames on the wire: what the platforms sent and what was posted.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use vocative_sandbox::slack::SlackWorld;
use vocative_sandbox::wire::{WireKind, WireLog, WirePeer, WireRecord};

use super::say_line;
use super::stage::DemoStage;

/// Prints what is said and posted as it happens, until the task is aborted.
pub(super) fn print(stage: &DemoStage) -> JoinHandle<()> {
    let mut live = stage.wire.subscribe();
    let mut reader = TranscriptReader {
        world: stage.slack.world(),
        seen: HashSet::new(),
    };
    tokio::spawn(async move {
        loop {
            match live.recv().await {
                Ok(record) => {
                    for line in reader.lines(&record) {
                        say_line(&line);
                    }
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    })
}

/// Waits until nothing new has been on the wire for a moment, so that the lines so far are printed.
pub(super) async fn settle(wire: &WireLog) {
    let mut live = wire.subscribe();
    let quiet = Duration::from_millis(60);
    let settled = async { while tokio::time::timeout(quiet, live.recv()).await.is_ok() {} };
    let _ = tokio::time::timeout(Duration::from_secs(2), settled).await;
}

struct TranscriptReader {
    world: SlackWorld,
    /// The messages printed so far: a platform may send one twice.
    seen: HashSet<String>,
}

impl TranscriptReader {
    fn lines(&mut self, record: &WireRecord) -> Vec<String> {
        match (record.peer, record.kind, record.name.as_str()) {
            (WirePeer::Slack, WireKind::FrameOut, "events_api") => {
                self.slack_event(&record.body).into_iter().collect()
            }
            (WirePeer::Slack, WireKind::Response, "chat.postMessage") => {
                self.slack_post(&record.body).into_iter().collect()
            }
            (WirePeer::Telegram, WireKind::Response, "getUpdates") => {
                let updates = record.body["result"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                updates
                    .iter()
                    .filter_map(|update| self.telegram_message(&update["message"], false))
                    .collect()
            }
            (WirePeer::Telegram, WireKind::Response, "sendMessage") => self
                .telegram_message(&record.body["result"], true)
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }

    fn slack_event(&mut self, frame: &Value) -> Option<String> {
        let event = &frame["payload"]["event"];
        let is_message = event["type"] == "message" && event["subtype"].is_null();
        if !is_message || !event["bot_id"].is_null() {
            return None;
        }
        self.slack_line(event["channel"].as_str()?, event)
    }

    fn slack_post(&mut self, response: &Value) -> Option<String> {
        if response["ok"] != true {
            let error = response["error"].as_str().unwrap_or("an error");
            return Some(format!("Slack     a post was refused: {error}"));
        }
        self.slack_line(response["channel"].as_str()?, &response["message"])
    }

    fn slack_line(&mut self, channel: &str, message: &Value) -> Option<String> {
        let ts = message["ts"].as_str()?;
        if !self.seen.insert(format!("{channel} {ts}")) {
            return None;
        }
        let place = match self.world.channel(channel) {
            Some(known) if !known.name.is_empty() => format!("#{}", known.name),
            _ => "dm".to_owned(),
        };
        let in_thread = message["thread_ts"].as_str().is_some_and(|root| root != ts);
        let name = message["user"]
            .as_str()
            .map_or("?".to_owned(), |id| self.slack_name(id));
        let text = self.slack_text(message["text"].as_str().unwrap_or_default());
        Some(line("Slack", &place, in_thread, &name, &text))
    }

    fn slack_name(&self, id: &str) -> String {
        if id == self.world.bot_user_id {
            return self.world.bot_name.clone();
        }
        self.world
            .user(id)
            .map_or_else(|| id.to_owned(), |user| user.display_name.clone())
    }

    /// Shows mentions as names.
    fn slack_text(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("<@") {
            let Some((id, tail)) = after.split_once('>') else {
                break;
            };
            out.push_str(before);
            out.push('@');
            out.push_str(&self.slack_name(id));
            rest = tail;
        }
        out.push_str(rest);
        out.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&")
    }

    fn telegram_message(&mut self, message: &Value, is_ours: bool) -> Option<String> {
        let (chat, id) = (
            message["chat"]["id"].as_i64()?,
            message["message_id"].as_i64()?,
        );
        if !self.seen.insert(format!("{chat} {id}")) {
            return None;
        }
        let place = if message["chat"]["type"] == "private" {
            "private"
        } else {
            "group"
        };
        let name = message["from"]["first_name"].as_str().unwrap_or("?");
        let is_reply = is_ours && message["reply_to_message"].is_object();
        Some(line(
            "Telegram",
            place,
            is_reply,
            name,
            message["text"].as_str()?,
        ))
    }
}

fn line(platform: &str, place: &str, is_answer: bool, name: &str, text: &str) -> String {
    let arrow = if is_answer { "  \u{21b3} " } else { "" };
    format!(
        "{platform:<9} {place:<9} {arrow}{name}: {}",
        text.replace('\n', "\n                      ")
    )
}
