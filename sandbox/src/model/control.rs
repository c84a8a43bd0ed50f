//! `/control/`: scripting the model server from another process.
//!
//! Owns the JSON of replies, faults and knobs; what they do is in `reply` and `server`. Every request
//! with its fields is in the README of the crate.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::reply::{ModelAct, ModelPace, ModelReply, ModelToolCall, ModelUsage};
use super::server::{ReplyScript, SharedModel};
use crate::journal::{self, JournalQuery};
use crate::wire::WirePeer;

/// Most times that one reply is queued by one request.
const TIMES_MAX: usize = 10_000;

pub(super) fn routes() -> Router<SharedModel> {
    Router::new()
        .route("/reply", post(reply))
        .route("/transcript", post(transcript))
        .route("/knobs", post(knobs))
        .route("/hold", post(hold))
        .route("/release", post(release))
        .route("/reset", post(reset))
        .route("/requests", get(requests))
        .route("/journal", get(read_journal))
        .route("/state", get(state))
}

/// A refusal, as HTTP 400.
struct ModelControlRefusal(String);

impl IntoResponse for ModelControlRefusal {
    fn into_response(self) -> Response {
        let body = Json(json!({"error": self.0}));
        (StatusCode::BAD_REQUEST, body).into_response()
    }
}

type ModelControlAnswer = Result<Json<Value>, ModelControlRefusal>;

fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, ModelControlRefusal> {
    let body: &[u8] = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|why| ModelControlRefusal(why.to_string()))
}

fn done() -> ModelControlAnswer {
    Ok(Json(json!({})))
}

/// One scripted reply: text, tool calls, or a fault.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ReplyEntry {
    text: String,
    tool_calls: Vec<ToolCallEntry>,
    /// The token limit cuts the answer here.
    cut: bool,
    thinking: Option<String>,
    latency_ms: u64,
    usage: Option<UsageEntry>,
    pace: Option<PaceEntry>,
    /// What goes wrong instead; `text` is what comes before it.
    fault: Option<FaultEntry>,
    /// How often; once by default.
    times: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCallEntry {
    id: Option<String>,
    name: String,
    #[serde(default)]
    arguments: Value,
}

impl ToolCallEntry {
    fn into_call(self, n: usize) -> ModelToolCall {
        let arguments = match self.arguments {
            Value::Null => json!({}),
            arguments => arguments,
        };
        ModelToolCall {
            id: self.id.unwrap_or_else(|| format!("call_{}", n + 1)),
            name: self.name,
            arguments,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageEntry {
    input: u32,
    output: u32,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaceEntry {
    deltas: usize,
    every_ms: u64,
}

impl From<PaceEntry> for ModelPace {
    fn from(pace: PaceEntry) -> Self {
        Self {
            deltas: pace.deltas,
            every: Duration::from_millis(pace.every_ms),
        }
    }
}

/// What goes wrong with one request.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum FaultEntry {
    Status {
        status: u16,
        #[serde(default)]
        headers: Vec<(String, String)>,
        body: Option<String>,
    },
    RateLimited {
        retry_after_s: u32,
    },
    Hang,
    Reset,
    Malformed,
    Truncated,
    StreamError {
        message: String,
    },
    Stalled,
    BrokenOff,
    Unmarked,
    Endless,
    EndlessEvent,
    Stream {
        bytes: String,
    },
    ToolCallWithoutIndex {
        name: String,
        #[serde(default)]
        arguments: Value,
    },
}

impl FaultEntry {
    fn into_reply(self, text: String) -> Result<ModelReply, ModelControlRefusal> {
        let act = match self {
            Self::Status { status, .. } if !(100..=599).contains(&status) => {
                return Err(ModelControlRefusal(
                    "`status` must be an HTTP status".to_owned(),
                ));
            }
            Self::Status {
                status,
                headers,
                body,
            } => ModelAct::Status {
                status,
                headers,
                body,
            },
            Self::RateLimited { retry_after_s } => {
                return Ok(ModelReply::rate_limited(retry_after_s));
            }
            Self::Hang => ModelAct::Hang,
            Self::Reset => ModelAct::Reset,
            Self::Malformed => ModelAct::Malformed,
            Self::Truncated => ModelAct::Truncated { text },
            Self::StreamError { message } => ModelAct::StreamError { text, message },
            Self::Stalled => ModelAct::Stalled { text },
            Self::BrokenOff => ModelAct::BrokenOff { text },
            Self::Unmarked => ModelAct::Unmarked { text },
            Self::Endless => ModelAct::Endless { text },
            Self::EndlessEvent => ModelAct::EndlessEvent,
            Self::Stream { bytes } => ModelAct::Stream(bytes),
            Self::ToolCallWithoutIndex { name, arguments } => {
                let call = ToolCallEntry {
                    id: None,
                    name,
                    arguments,
                };
                ModelAct::ToolCallWithoutIndex(call.into_call(0))
            }
        };
        Ok(ModelReply::new(act))
    }
}

impl ReplyEntry {
    fn into_reply(self) -> Result<ModelReply, ModelControlRefusal> {
        let is_empty = self.text.is_empty() && self.tool_calls.is_empty();
        let calls = self.tool_calls.into_iter().enumerate();
        let tool_calls: Vec<ModelToolCall> = calls.map(|(n, call)| call.into_call(n)).collect();
        let mut reply = match self.fault {
            Some(_) if !tool_calls.is_empty() || self.cut => {
                return Err(ModelControlRefusal(
                    "a fault has no `tool_calls` and no `cut`".to_owned(),
                ));
            }
            Some(fault) => fault.into_reply(self.text)?,
            None if is_empty => {
                return Err(ModelControlRefusal(
                    "`text`, `tool_calls` or `fault` must be given".to_owned(),
                ));
            }
            None if self.cut => ModelReply::new(ModelAct::Cut { text: self.text }),
            None => ModelReply::new(ModelAct::Answer {
                text: self.text,
                tool_calls,
            }),
        };
        reply.latency = Duration::from_millis(self.latency_ms);
        reply.usage = self.usage.map(|it| ModelUsage {
            input: it.input,
            output: it.output,
            ..ModelUsage::default()
        });
        reply.pace = self.pace.map(ModelPace::from);
        reply.thinking = self.thinking;
        Ok(reply)
    }
}

/// Adds replies to the end of the script: one, or a list.
async fn reply(State(shared): State<SharedModel>, body: Bytes) -> ModelControlAnswer {
    let replies: Vec<ReplyEntry> = match read::<Value>(&body)? {
        Value::Array(list) => list
            .into_iter()
            .map(|it| {
                serde_json::from_value(it).map_err(|why| ModelControlRefusal(why.to_string()))
            })
            .collect::<Result<_, _>>()?,
        _ => vec![read(&body)?],
    };
    let mut scripted = Vec::new();
    for reply in replies {
        let times = reply.times.unwrap_or(1).min(TIMES_MAX);
        let reply = reply.into_reply()?;
        scripted.extend(std::iter::repeat_n(reply, times));
    }
    let left = shared.script(|script| {
        script.next.extend(scripted);
        script.next.len()
    });
    Ok(Json(json!({"replies_left": left})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TranscriptEntry {
    text: Option<String>,
    status: Option<u16>,
}

/// The text of the next voice note, or the status with which it is refused.
async fn transcript(State(shared): State<SharedModel>, body: Bytes) -> ModelControlAnswer {
    let it: TranscriptEntry = read(&body)?;
    let transcript = match (it.text, it.status) {
        (Some(text), None) => Ok(text),
        (None, Some(status)) => Err(status),
        _ => {
            return Err(ModelControlRefusal(
                "either `text` or `status` must be given".to_owned(),
            ));
        }
    };
    shared.script(|script| script.transcripts.push_back(transcript));
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LookUp {
    word: String,
    name: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelKnobs {
    echo_all: Option<bool>,
    refuse_streams: Option<bool>,
    /// 0 lifts the limit.
    context_tokens: Option<u32>,
    pace: Option<PaceEntry>,
    look_up: Option<LookUp>,
}

async fn knobs(State(shared): State<SharedModel>, body: Bytes) -> ModelControlAnswer {
    let knobs: ModelKnobs = read(&body)?;
    shared.script(|script| {
        script.echoes_all = knobs.echo_all.unwrap_or(script.echoes_all);
        script.refuses_streams = knobs.refuse_streams.unwrap_or(script.refuses_streams);
        if let Some(tokens) = knobs.context_tokens {
            script.context_tokens = Some(tokens).filter(|tokens| *tokens > 0);
        }
        script.pace = knobs.pace.map(ModelPace::from).or(script.pace);
        if let Some(it) = knobs.look_up {
            let call = ToolCallEntry {
                id: Some(String::new()),
                name: it.name,
                arguments: it.arguments,
            };
            script.looks_up = Some((it.word, vec![call.into_call(0)]));
        }
    });
    done()
}

/// Keeps every call that comes from now on pending.
async fn hold(State(shared): State<SharedModel>) -> ModelControlAnswer {
    shared.passes().send_replace(Some(0));
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    /// How many calls to let go on; without it all.
    count: Option<usize>,
}

async fn release(State(shared): State<SharedModel>, body: Bytes) -> ModelControlAnswer {
    let release: Release = read(&body)?;
    match release.count {
        Some(count) => shared.passes().send_modify(|passes| {
            *passes = passes.map(|left| left + count);
        }),
        None => {
            shared.passes().send_replace(None);
        }
    }
    done()
}

/// No script, no knobs, no requests; held calls go on.
async fn reset(State(shared): State<SharedModel>) -> ModelControlAnswer {
    shared.script(|script| *script = ReplyScript::default());
    shared.passes().send_replace(None);
    done()
}

#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: usize,
}

/// Every request to a model, oldest first, from a place in the list on.
async fn requests(State(shared): State<SharedModel>, Query(query): Query<After>) -> Json<Value> {
    let requests = shared.script(|script| {
        let from = query.after.min(script.requests.len());
        script.requests[from..].to_vec()
    });
    let next = query.after + requests.len();
    Json(json!({"requests": requests, "next_after": next}))
}

async fn read_journal(
    State(shared): State<SharedModel>,
    Query(query): Query<JournalQuery>,
) -> Json<Value> {
    Json(journal::page(shared.wire(), WirePeer::Model, &query))
}

async fn state(State(shared): State<SharedModel>) -> Json<Value> {
    let held = shared.passes().borrow().is_some();
    Json(shared.script(|script| {
        json!({
            "replies_left": script.next.len(), "requests": script.requests.len(),
            "voice_notes": script.voice_notes, "holds": held,
        })
    }))
}
