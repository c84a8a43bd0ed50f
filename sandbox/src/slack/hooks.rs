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
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::post::{SlackEphemeral, SlackPost};
use super::state::{Core, Shared, visible_at_ms};
use super::text::posted_to_stored;
use crate::wire::{WireKind, WirePeer};

/// How often one URL works.
const USES_MAX: u32 = 5;
/// How long one URL works, in seconds.
const LIFE_S: u64 = 30 * 60;

/// One `response_url`.
pub(super) struct Hook {
    channel: String,
    user: String,
    uses: u32,
    made: Instant,
}

/// Makes a URL that answers this person in this channel; `kind` is `commands` or `actions`.
pub(super) fn response_url(core: &mut Core, kind: &str, channel: &str, user: &str) -> String {
    let token = Uuid::new_v4().simple().to_string();
    let url = format!(
        "http://{}/hooks/{kind}/{}/{token}",
        core.addr, core.world.team_id
    );
    let hook = Hook {
        channel: channel.to_owned(),
        user: user.to_owned(),
        uses: 0,
        made: Instant::now(),
    };
    core.hooks.insert(token, hook);
    url
}

/// `POST /hooks/<kind>/<team>/<token>`.
pub(super) async fn hook(
    State(shared): State<Arc<Shared>>,
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

type Refused = (StatusCode, &'static str);

fn answer(shared: &Shared, core: &mut Core, token: &str, body: &Value) -> Result<(), Refused> {
    let unknown = (StatusCode::NOT_FOUND, "no_service");
    let hook = core.hooks.get_mut(token).ok_or(unknown)?;
    if hook.made.elapsed() >= Duration::from_secs(LIFE_S) {
        return Err((StatusCode::NOT_FOUND, "expired_url"));
    }
    if hook.uses >= USES_MAX {
        return Err((StatusCode::NOT_FOUND, "used_url"));
    }
    if !body.is_object() {
        return Err((StatusCode::BAD_REQUEST, "invalid_payload"));
    }
    let text = body["text"].as_str().unwrap_or_default();
    let blocks = body.get("blocks").filter(|blocks| blocks.is_array());
    if text.is_empty() && blocks.is_none() && body["delete_original"] != true {
        return Err((StatusCode::BAD_REQUEST, "no_text"));
    }
    hook.uses += 1;
    let (channel, user) = (hook.channel.clone(), hook.user.clone());
    let ts = core.next_ts();
    let thread_ts = body["thread_ts"].as_str().map(str::to_owned);
    let text = posted_to_stored(text);
    let blocks = blocks.cloned();
    if body["response_type"] != "in_channel" {
        core.ephemerals.push(SlackEphemeral {
            channel,
            user,
            thread_ts,
            ts,
            text,
            blocks,
        });
        return Ok(());
    }
    let place = core.channel(&channel).map_err(|_| unknown)?;
    let post = SlackPost {
        ts,
        thread_ts,
        user: Some(core.world.bot_user_id.clone()),
        bot_id: Some(core.world.bot_id.clone()),
        app_id: Some(core.world.app_id.clone()),
        user_team: Some(core.world.team_id.clone()),
        text,
        blocks,
        visible_at_ms: visible_at_ms(&shared.faults.knobs()),
        ..SlackPost::default()
    };
    let events = core.insert(&place, post);
    shared.emit(core, events);
    Ok(())
}
