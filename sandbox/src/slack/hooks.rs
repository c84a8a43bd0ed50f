//! `response_url`: answers to slash commands and clicks, five times within thirty minutes
//! (slack.md §7.1).
//!
//! Needs no token; the URL is the secret. Takes JSON only, and no `markdown_text`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::blocks::{check_attachments, check_blocks, fallback_text};
use super::deliveries::AckedEnvelope;
use super::elements::with_ids;
use super::events::{self, PostChange};
use super::post::{SlackEphemeral, SlackPost};
use super::state::{SharedSlack, SlackCore};
use super::text::posted_to_stored;
use crate::wire::{WireKind, WirePeer};

/// How often one URL works.
const USES_MAX: u32 = 5;
/// How long one URL works, in seconds.
const LIFE_S: u64 = 30 * 60;

/// What an answer is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HookSource {
    /// A slash command: there is no message to replace.
    Command,
    /// The message with this ts.
    Message(String),
    /// The ephemeral message with this ts.
    Ephemeral(String),
}

/// One `response_url`.
pub(super) struct ResponseUrl {
    place: HookPlace,
    uses: u32,
    made: Instant,
}

/// Where an answer goes, and what it may replace.
#[derive(Clone)]
struct HookPlace {
    source: HookSource,
    channel: String,
    user: String,
}

/// Makes a URL that answers this person in this channel.
pub(super) fn response_url(
    core: &mut SlackCore,
    source: HookSource,
    channel: &str,
    user: &str,
) -> String {
    let token = Uuid::new_v4().simple().to_string();
    let kind = match source {
        HookSource::Command => "commands",
        HookSource::Message(_) | HookSource::Ephemeral(_) => "actions",
    };
    let url = format!(
        "http://{}/hooks/{kind}/{}/{token}",
        core.addr, core.world.team_id
    );
    let hook = ResponseUrl {
        place: HookPlace {
            source,
            channel: channel.to_owned(),
            user: user.to_owned(),
        },
        uses: 0,
        made: Instant::now(),
    };
    core.hooks.insert(token, hook);
    url
}

/// `POST /hooks/<kind>/<team>/<token>`.
pub(super) async fn hook(
    State(shared): State<Arc<SharedSlack>>,
    Path((_kind, _team, token)): Path<(String, String, String)>,
    body: Bytes,
) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let wire = &shared.wire;
    let peer = WirePeer::Slack;
    wire.append(peer, WireKind::Request, "response_url", None, body.clone());
    let outcome = shared.change(|core| answer(&shared, core, &token, &body));
    let (status, words) = match outcome {
        Ok(()) => (StatusCode::OK, "ok"),
        Err(refusal) => refusal,
    };
    let code = Some(status.as_u16());
    wire.append(peer, WireKind::Response, "response_url", code, json!(words));
    (status, words).into_response()
}

type HookRefusal = (StatusCode, &'static str);

fn answer(
    shared: &SharedSlack,
    core: &mut SlackCore,
    token: &str,
    body: &Value,
) -> Result<(), HookRefusal> {
    let unknown = (StatusCode::NOT_FOUND, "no_service");
    let hook = core.hooks.get_mut(token).ok_or(unknown)?;
    if hook.made.elapsed() >= Duration::from_secs(LIFE_S) {
        return Err((StatusCode::NOT_FOUND, "expired_url"));
    }
    if hook.uses >= USES_MAX {
        return Err((StatusCode::NOT_FOUND, "used_url"));
    }
    let place = hook.place.clone();
    let said = HookMessage::of(body)?;
    if let Some(hook) = core.hooks.get_mut(token) {
        hook.uses += 1;
    }
    show(shared, core, &place, said)
}

/// Shows the words with which the app acknowledged a command.
pub(super) fn show_answer(shared: &SharedSlack, core: &mut SlackCore, acked: &AckedEnvelope) {
    let Some(said) = acked.response.as_ref().map(HookMessage::of) else {
        return;
    };
    let text = |name: &str| acked.payload[name].as_str().unwrap_or_default().to_owned();
    let place = HookPlace {
        source: HookSource::Command,
        channel: text("channel_id"),
        user: text("user_id"),
    };
    let shown = said.and_then(|said| show(shared, core, &place, said));
    if let Err((_, why)) = shown {
        let complaint = format!("the answer to a command can't be shown: {why}");
        core.deliveries.complain(complaint);
    }
}

/// The checked content of an answer.
struct HookMessage {
    text: String,
    blocks: Option<Value>,
    attachments: Option<Value>,
    thread_ts: Option<String>,
    is_in_channel: bool,
    replaces: bool,
    deletes: bool,
}

impl HookMessage {
    fn of(body: &Value) -> Result<Self, HookRefusal> {
        let bad = |why| (StatusCode::BAD_REQUEST, why);
        if !body.is_object() {
            return Err(bad("invalid_payload"));
        }
        let list = |name: &str| body.get(name).filter(|it| it.is_array()).cloned();
        let (blocks, attachments) = (list("blocks"), list("attachments"));
        let text = body["text"].as_str().unwrap_or_default();
        let is_empty = text.is_empty() && blocks.is_none() && attachments.is_none();
        // SDKs write these two as booleans or as words.
        let is_set = |name: &str| body[name] == true || body[name] == "true";
        if is_empty && !is_set("delete_original") {
            return Err(bad("no_text"));
        }
        if let Some(blocks) = &blocks {
            check_blocks(blocks).map_err(|(code, _)| bad(code))?;
        }
        if let Some(attachments) = &attachments {
            check_attachments(attachments).map_err(|(code, _)| bad(code))?;
        }
        let text = match (&blocks, text.is_empty()) {
            (Some(blocks), true) => fallback_text(blocks),
            _ => text.to_owned(),
        };
        Ok(Self {
            text: posted_to_stored(&text),
            blocks: blocks.map(with_ids),
            attachments,
            thread_ts: body["thread_ts"].as_str().map(str::to_owned),
            is_in_channel: body["response_type"] == "in_channel",
            replaces: is_set("replace_original"),
            deletes: is_set("delete_original"),
        })
    }
}

fn show(
    shared: &SharedSlack,
    core: &mut SlackCore,
    place: &HookPlace,
    said: HookMessage,
) -> Result<(), HookRefusal> {
    match &place.source {
        HookSource::Message(ts) if said.deletes => delete(shared, core, place, ts),
        HookSource::Message(ts) if said.replaces => replace(shared, core, place, ts, said),
        HookSource::Ephemeral(ts) if said.deletes => {
            core.ephemerals.retain(|it| it.ts != *ts);
            Ok(())
        }
        HookSource::Ephemeral(ts) if said.replaces => {
            let mut shown = core.ephemerals.iter_mut();
            if let Some(shown) = shown.find(|it| it.ts == *ts) {
                (shown.text, shown.blocks) = (said.text, said.blocks);
            }
            Ok(())
        }
        _ => add(shared, core, place, said),
    }
}

fn add(
    shared: &SharedSlack,
    core: &mut SlackCore,
    place: &HookPlace,
    said: HookMessage,
) -> Result<(), HookRefusal> {
    if said.text.is_empty() && said.blocks.is_none() && said.attachments.is_none() {
        return Ok(());
    }
    let knobs = shared.faults.knobs();
    if !said.is_in_channel {
        let ts = core.next_ts();
        core.ephemerals.push(SlackEphemeral {
            channel: place.channel.clone(),
            user: place.user.clone(),
            thread_ts: said.thread_ts,
            ts,
            text: said.text,
            blocks: said.blocks,
        });
        return Ok(());
    }
    let unknown = (StatusCode::NOT_FOUND, "no_service");
    let channel = core.channel(&place.channel).map_err(|_| unknown)?;
    let post = SlackPost {
        thread_ts: said.thread_ts,
        text: said.text,
        blocks: said.blocks,
        attachments: said.attachments,
        ..core.own_post(&knobs)
    };
    let events = core.insert(&channel, post);
    shared.emit(core, events);
    Ok(())
}

fn replace(
    shared: &SharedSlack,
    core: &mut SlackCore,
    place: &HookPlace,
    ts: &str,
    said: HookMessage,
) -> Result<(), HookRefusal> {
    let gone = (StatusCode::NOT_FOUND, "message_not_found");
    let channel = core.channel(&place.channel).map_err(|_| gone)?;
    let change_ts = core.next_ts();
    let post = core.existing(&channel.id, ts).map_err(|_| gone)?;
    let before = post.clone();
    post.text = said.text;
    post.blocks = said.blocks;
    post.attachments = said.attachments;
    let after = post.clone();
    let change = PostChange {
        before: &before,
        after: &after,
        ts: change_ts,
        counters: Map::new(),
    };
    let events = events::of_change(&core.world, &channel, &change, false);
    let events = core.heard(&channel, events);
    shared.emit(core, events);
    Ok(())
}

fn delete(
    shared: &SharedSlack,
    core: &mut SlackCore,
    place: &HookPlace,
    ts: &str,
) -> Result<(), HookRefusal> {
    let gone = (StatusCode::NOT_FOUND, "message_not_found");
    let events = core.delete(&place.channel, ts).map_err(|_| gone)?;
    shared.emit(core, events);
    Ok(())
}
