//! What people do, over HTTP: they post, edit, click, fill in modals. Raw events, too.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::deliveries::{EnvelopeKind, SocketCommand};
use super::super::events;
use super::super::interactions::{self, BlockAction};
use super::super::post::UserPost;
use super::super::state::SlackCore;
use super::{Server, SlackControlAnswer, SlackControlRefusal, act, done, read, wire_text};
use crate::wire::now_ms;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SlackPosting {
    channel: String,
    #[serde(default)]
    user: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    raw: bool,
    #[serde(default)]
    broadcast: bool,
    thread_ts: Option<String>,
    subtype: Option<String>,
    /// Ids of files, or file objects as they are.
    #[serde(default)]
    files: Vec<Value>,
    bot_id: Option<String>,
    username: Option<String>,
    client_msg_id: Option<String>,
    user_team: Option<String>,
    metadata: Option<Value>,
    blocks: Option<Value>,
}

pub(super) async fn post_message(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let posting: SlackPosting = read(&body)?;
    let text = wire_text(&shared, &posting.text, posting.raw);
    let knobs = shared.faults.knobs();
    let ts = shared.change(|core| {
        check_place(core, &posting)?;
        let files = posting.files.iter().map(|file| file_object(core, file));
        let files = files.collect::<Result<Vec<Value>, String>>()?;
        if text.is_empty() && files.is_empty() && posting.blocks.is_none() {
            return Err("`text`, `blocks` or `files` must be given".to_owned());
        }
        let post = UserPost {
            channel: posting.channel,
            user: posting.user,
            text,
            thread_ts: posting.thread_ts,
            subtype: posting.subtype,
            files,
            bot_id: posting.bot_id,
            broadcast: posting.broadcast,
            client_msg_id: posting.client_msg_id,
            user_team: posting.user_team,
            metadata: posting.metadata,
            blocks: posting.blocks,
            username: posting.username,
        };
        let (ts, events) = core.user_post(post, &knobs)?;
        shared.emit(core, events);
        Ok::<_, String>(ts)
    })?;
    Ok(Json(json!({"ts": ts})))
}

/// Checks a posting: a person can post only where they are a member, and reply only to an existing thread.
fn check_place(core: &SlackCore, posting: &SlackPosting) -> Result<(), String> {
    let channel = core.channel(&posting.channel)?;
    if posting.bot_id.is_none() {
        let person = core.person(&posting.user)?;
        if !channel.members.contains(&person.id) {
            return Err(format!(
                "{} is not in {}; let them join",
                person.id, channel.id
            ));
        }
    }
    match &posting.thread_ts {
        Some(ts) if !core.is_thread(&channel.id, ts) => {
            Err(format!("no message {ts} in {} to reply to", channel.id))
        }
        _ => Ok(()),
    }
}

fn file_object(core: &SlackCore, file: &Value) -> Result<Value, String> {
    let Some(id) = file.as_str() else {
        return Ok(file.clone());
    };
    let stored = core.files.get(id);
    let stored = stored.ok_or_else(|| format!("no file {id} in this world"))?;
    Ok(stored.to_json(core))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SlackEditing {
    channel: String,
    ts: String,
    text: String,
    #[serde(default)]
    raw: bool,
}

pub(super) async fn edit(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let edit: SlackEditing = read(&body)?;
    let text = wire_text(&shared, &edit.text, edit.raw);
    let knobs = shared.faults.knobs();
    act(&shared, |core| {
        core.user_edit(&edit.channel, &edit.ts, &text, &knobs)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SlackItem {
    channel: String,
    ts: String,
}

pub(super) async fn delete(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let item: SlackItem = read(&body)?;
    act(&shared, |core| core.delete(&item.channel, &item.ts))
}

pub(super) async fn count_replies(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let item: SlackItem = read(&body)?;
    act(&shared, |core| {
        core.hidden_change(&item.channel, &item.ts, None)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unfurling {
    channel: String,
    ts: String,
    attachments: Value,
}

pub(super) async fn unfurl(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let unfurl: Unfurling = read(&body)?;
    let attachments = Some(unfurl.attachments);
    act(&shared, |core| {
        core.hidden_change(&unfurl.channel, &unfurl.ts, attachments)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SlackReacting {
    channel: String,
    ts: String,
    user: String,
    reaction: String,
    #[serde(default)]
    remove: bool,
}

pub(super) async fn react(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let react: SlackReacting = read(&body)?;
    let item = (react.channel.as_str(), react.ts.as_str());
    act(&shared, |core| {
        core.user_react(item, &react.user, &react.reaction, !react.remove)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StopPress {
    channel: String,
    ts: String,
    user: String,
}

pub(super) async fn stop(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let stop: StopPress = read(&body)?;
    act(&shared, |core| {
        core.press_stop(&stop.channel, &stop.user, &stop.ts)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commanding {
    channel: String,
    user: String,
    command: String,
    #[serde(default)]
    text: String,
}

pub(super) async fn command(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let it: Commanding = read(&body)?;
    let words = [&it.channel, &it.user, &it.command, &it.text];
    interactions::slash_command(&shared, words.map(String::as_str))?;
    done()
}

pub(super) async fn click(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let action: BlockAction = read(&body)?;
    interactions::click(&shared, &action)?;
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Modal {
    user: String,
    view_id: Option<String>,
    #[serde(default)]
    values: Map<String, Value>,
}

pub(super) async fn submit(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let modal: Modal = read(&body)?;
    let which = (modal.user.as_str(), modal.view_id.as_deref());
    interactions::send_view(&shared, which, &modal.values)?;
    done()
}

pub(super) async fn close(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let modal: Modal = read(&body)?;
    interactions::close_view(&shared, &modal.user, modal.view_id.as_deref())?;
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Opening {
    user: String,
    tab: Option<String>,
}

pub(super) async fn open(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let open: Opening = read(&body)?;
    let tab = open.tab.as_deref().unwrap_or("home");
    act(&shared, |core| {
        interactions::open_tab(core, &open.user, tab)
    })
}

/// An inner event as it is, whatever the subscriptions.
pub(super) async fn raw_event(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let inner: Map<String, Value> = read(&body)?;
    if !inner.get("type").is_some_and(Value::is_string) {
        return Err(SlackControlRefusal("an event has a `type`".to_owned()));
    }
    let payload = shared.read(|core| {
        let event = events::plain(&core.world, Value::Object(inner));
        event.into_payload(&core.world, now_ms() / 1_000)
    });
    submit_payload(&shared, payload)
}

/// A whole `events_api` payload as it is.
pub(super) async fn raw_payload(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let payload: Map<String, Value> = read(&body)?;
    submit_payload(&shared, Value::Object(payload))
}

fn submit_payload(shared: &super::SharedSlack, payload: Value) -> SlackControlAnswer {
    let plan = shared.faults.knobs().retry;
    let fault = shared.faults.take_event();
    shared.change(|core| {
        let kind = EnvelopeKind::EventsApi;
        core.deliveries.submit(kind, payload, fault.as_ref(), &plan);
    });
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FrameEntry {
    text: String,
}

/// A text frame as it is, on every open socket.
pub(super) async fn raw_frame(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let frame: FrameEntry = read(&body)?;
    shared.change(|core| {
        core.deliveries.tell_all(|| SocketCommand::Frame {
            name: "raw".to_owned(),
            text: frame.text.clone(),
        });
    });
    done()
}
