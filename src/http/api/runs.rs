//! Runs that programs start and stop, and what was said in their conversations.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::json;
use std::net::SocketAddr;
use tracing::info;

use super::ApiState;
use super::asked::{
    EmptyBody, IdInPath, InBody, RequestQuery, conversation_id, read_object, run_id,
};
use super::asking::{AskedQuestion, ProgramQuestion, QUESTION_MAX_BYTES};
use super::callers::{ApiCaller, Caller, Needed, Sight, need};
use super::gate;
use super::refusal::ApiRefusal;
use crate::admin::operations::AdminOperation;
use crate::config::ApiScope::{Act, Ask, Read};
use vocative_core::given::{Given, GivenLine, GivenSpeaker};
use vocative_core::ids::Seq;

/// The paths. Requests that start something are accepted from programs alone, not from web pages.
pub(super) fn routes(address: Option<SocketAddr>) -> Router<ApiState> {
    let guarded = |needed: Needed, paths: Router<ApiState>| {
        paths.route_layer(from_fn_with_state(needed, need))
    };
    let asked = Router::new()
        .route("/v1/runs", post(start))
        .route("/v1/conversations/{id}/runs", post(start_in))
        .route("/v1/conversations/{id}/messages", post(say_in))
        .route("/v1/conversations/{id}/fork", post(fork))
        .route("/v1/conversations/{id}/read", post(mark_read))
        .layer(DefaultBodyLimit::max(QUESTION_MAX_BYTES));
    let stopped = Router::new().route("/v1/runs/{id}/stop", post(stop));
    let read = Router::new().route("/v1/conversations/{id}/turns", get(turns));
    guarded(&[Ask], asked)
        .merge(guarded(&[Ask, Act], stopped))
        .route_layer(from_fn_with_state(address, gate::from_program))
        .merge(guarded(&[Read, Ask], read))
}

/// A question.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartBody {
    text: String,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    conversation: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    history: Vec<LineBody>,
    #[serde(default)]
    context: Option<String>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    tools: Option<Vec<String>>,
}

/// An earlier line of the conversation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineBody {
    role: LineRole,
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum LineRole {
    User,
    Assistant,
}

impl From<LineBody> for GivenLine {
    fn from(line: LineBody) -> Self {
        Self {
            speaker: match line.role {
                LineRole::User => GivenSpeaker::User,
                LineRole::Assistant => GivenSpeaker::Agent,
            },
            text: line.text,
        }
    }
}

impl From<StartBody> for ProgramQuestion {
    fn from(body: StartBody) -> Self {
        Self {
            agent: body.agent,
            model: body.model,
            conversation: body.conversation,
            text: body.text,
            given: Given {
                earlier: body.history.into_iter().map(Into::into).collect(),
                context: body.context,
                user: body.user,
                instructions: body.instructions,
                tools: body.tools,
            },
        }
    }
}

async fn start(
    State(desk): State<ApiState>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiRefusal> {
    let read: StartBody = read_object(&body)?;
    started(&desk, &caller, &headers, &body, read.into()).await
}

async fn start_in(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiRefusal> {
    let read: StartBody = read_object(&body)?;
    if read.conversation.is_some() {
        let advice = "leave conversation out of the body: the path names it";
        return Err(ApiRefusal::wrong("the conversation is named twice", advice));
    }
    let wish = ProgramQuestion {
        conversation: Some(conversation_id(id)?.to_string()),
        ..read.into()
    };
    started(&desk, &caller, &headers, &body, wish).await
}

/// Up to where a conversation was read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadBody {
    seq: i64,
}

async fn mark_read(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    body: Bytes,
) -> Result<Response, ApiRefusal> {
    let ReadBody { seq } = read_object(&body)?;
    let conversation = conversation_id(id)?;
    let read = desk.mark_read(&caller, (conversation, Seq(seq))).await?;
    let told = json!({ "conversation": conversation.to_string(), "last_read_seq": read.0 });
    Ok(axum::Json(told).into_response())
}

/// Where a conversation is to go on from.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    at: i64,
}

async fn fork(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiRefusal> {
    let ForkBody { at } = read_object(&body)?;
    let parent = conversation_id(id)?;
    let forked = desk.fork(&caller, &headers, (parent, Seq(at))).await?;
    let (conversation, is_known) = forked;
    info!(token = %caller.name, conversation.id = %conversation, parent.id = %parent, is_known, "a conversation was forked");
    let code = match is_known {
        true => StatusCode::OK,
        false => StatusCode::CREATED,
    };
    let told = json!({
        "conversation": conversation.to_string(),
        "parent": parent.to_string(),
        "at": at,
        "is_known": is_known,
    });
    Ok((code, axum::Json(told)).into_response())
}

/// Something that is said to an agent without asking it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SayBody {
    text: String,
    #[serde(default)]
    agent: Option<String>,
}

async fn say_in(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiRefusal> {
    let SayBody { text, agent } = read_object(&body)?;
    let wish = ProgramQuestion {
        agent,
        model: None,
        conversation: Some(conversation_id(id)?.to_string()),
        text,
        given: Given::default(),
    };
    let (turn, is_known) = desk.note(&caller, &headers, wish).await?;
    info!(token = %caller.name, turn.id = %turn.turn, is_known, "said through the API");
    let code = match is_known {
        true => StatusCode::OK,
        false => StatusCode::CREATED,
    };
    let told = json!({
        "turn": turn.turn.to_string(),
        "conversation": turn.conversation.to_string(),
        "is_known": is_known,
    });
    Ok((code, axum::Json(told)).into_response())
}

async fn started(
    desk: &ApiState,
    caller: &ApiCaller,
    headers: &HeaderMap,
    body: &[u8],
    wish: ProgramQuestion,
) -> Result<Response, ApiRefusal> {
    let asked = desk.ask(caller, headers, body, wish).await;
    let AskedQuestion {
        run,
        agent,
        is_known,
    } = asked.map_err(|(_, refusal)| refusal)?;
    info!(token = %caller.name, run.id = %run.run, is_known, "asked through the API");
    let code = match is_known {
        true => StatusCode::OK,
        false => StatusCode::ACCEPTED,
    };
    let told = json!({
        "run": run.run.to_string(),
        "conversation": run.conversation.to_string(),
        "turn": run.turn.to_string(),
        "agent": agent.as_str(),
        "is_known": is_known,
    });
    Ok((code, axum::Json(told)).into_response())
}

async fn stop(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    body: InBody<EmptyBody>,
) -> Result<Response, ApiRefusal> {
    body.0?;
    let id = run_id(id)?;
    // A caller that acts for everybody may stop every run.
    if !caller.may_act() {
        desk.run_for(&caller, id).await?;
    }
    desk.operations.store.run(id).await?;
    let is_stopped = desk.operations.stop_run(id, &caller.name).await?;
    info!(token = %caller.name, run.id = %id, is_stopped, "a run was stopped through the API");
    Ok(axum::Json(json!({ "run": id.to_string(), "stopped": is_stopped })).into_response())
}

/// What was said in a conversation, the newest turns or those before one.
async fn turns(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    asked: RequestQuery,
) -> Result<Response, ApiRefusal> {
    let conversation = desk.conversation_for(&caller, conversation_id(id)?).await?;
    let limit = asked.limit()?;
    let before = match asked.text("before")? {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| {
            let advice = "send what older_before said, or leave it out";
            ApiRefusal::wrong("before must be a whole number", advice)
        })?),
    };
    let operation = AdminOperation::Conversation {
        name: conversation.id.to_string(),
        limit,
        timeline: false,
        before,
    };
    let mut found = desk.operations.execute(operation).await?;
    let (turns, older) = (found["turns"].take(), found["older_before"].take());
    Ok(axum::Json(json!({ "turns": turns, "older_before": older })).into_response())
}

/// Whether a caller sees a question to a person.
pub(super) fn sees_question(sight: &Sight, channel: Option<&str>, chat: &str) -> bool {
    match sight {
        Sight::Everything => true,
        Sight::Own(owner) => channel == Some(crate::config::API_CHANNEL) && owner.has(chat),
    }
}
