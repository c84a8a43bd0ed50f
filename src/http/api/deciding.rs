//! Calls, questions and schedules that wait for people: shown, and decided about.

use axum::Router;
use axum::extract::{Path, State};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tracing::info;

use super::ApiState;
use super::asked::{EmptyBody, IdInPath, InBody, RequestQuery, id_in};
use super::callers::{Caller, Needed, need};
use super::refusal::ApiRefusal;
use super::runs::sees_question;
use crate::admin::operations::{
    AdminOperation, AnsweredQuestion, ChangedSchedule, DecidedApproval, OperationError,
};
use crate::admin::view::QuestionView;
use crate::config::ApiScope::{Act, Admin, Ask, Read};
use vocative_store::contract::ApprovalFilter;

/// The paths, each with the scopes of which one is needed.
pub(super) fn routes() -> Router<ApiState> {
    let guarded = |needed: Needed, paths: Router<ApiState>| {
        paths.route_layer(from_fn_with_state(needed, need))
    };
    let seen = Router::new()
        .route("/v1/approvals", get(approvals))
        .route("/v1/approvals/report", get(report))
        .route("/v1/approvals/{id}", get(approval))
        .route("/v1/schedules", get(schedules))
        .route("/v1/schedules/{id}", get(schedule))
        .route("/v1/grants", get(grants));
    let asked = Router::new()
        .route("/v1/questions", get(questions))
        .route("/v1/questions/{id}", get(question));
    let answered = Router::new().route("/v1/questions/{id}/answer", post(answer_question));
    let decided = Router::new()
        .route("/v1/approvals/{id}/approve", post(approve))
        .route("/v1/approvals/{id}/deny", post(deny))
        .route("/v1/questions/{id}/cancel", post(cancel_question))
        .route("/v1/schedules/{id}/{change}", post(change_schedule));
    let revoked = Router::new().route("/v1/grants/{id}/revoke", post(revoke));
    guarded(&[Read, Act], seen)
        .merge(guarded(&[Read, Ask, Act], asked))
        .merge(guarded(&[Ask], answered))
        .merge(guarded(&[Act], decided))
        .merge(guarded(&[Admin], revoked))
}

async fn approvals(
    State(desk): State<ApiState>,
    asked: RequestQuery,
) -> Result<Response, ApiRefusal> {
    let limit = asked.limit()?;
    let filter = ApprovalFilter {
        is_open: !asked.is_set("all")?,
        conversation: None,
        before: asked.id("before", "an approval")?,
    };
    let found = desk.operations.approvals((filter, limit)).await?;
    let next = found.last().filter(|_| found.len() == limit);
    let next = next.map(|last| last.id.clone());
    Ok(axum::Json(json!({ "approvals": found, "next_before": next })).into_response())
}

async fn report(State(desk): State<ApiState>, asked: RequestQuery) -> Result<Response, ApiRefusal> {
    let since_ms = match asked.text("since_ms")? {
        None => 0,
        Some(text) => text.parse().map_err(|_| {
            let advice = "send milliseconds since the Unix epoch, or leave it out";
            ApiRefusal::wrong("since_ms must be a whole number", advice)
        })?,
    };
    let found = desk.operations.approvals_report(since_ms).await?;
    Ok(axum::Json(json!({ "tools": found })).into_response())
}

async fn approval(State(desk): State<ApiState>, id: IdInPath) -> Result<Response, ApiRefusal> {
    let found = desk.operations.approval(&id_in(id)).await?;
    Ok(axum::Json(json!({ "approval": found })).into_response())
}

/// The body of an approval.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApproveBody {
    /// The digest of the call that the caller saw: nobody allows what they have not seen.
    digest: String,
    #[serde(default)]
    note: Option<String>,
    #[serde(default)]
    grant: bool,
    /// All arguments that the call is to be made with instead.
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

/// The body of a refusal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DenyBody {
    #[serde(default)]
    digest: Option<String>,
    #[serde(default)]
    note: Option<String>,
}

async fn approve(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    body: InBody<ApproveBody>,
) -> Result<Response, ApiRefusal> {
    let body = body.0?;
    let decided = DecidedApproval {
        id: id_in(id),
        approve: true,
        grant: body.grant,
        arguments: body.arguments.map(|it| Value::Object(it).to_string()),
        by: caller.name.clone(),
        note: body.note,
        digest: Some(body.digest),
    };
    decide(&desk, &caller, decided).await
}

async fn deny(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    body: InBody<DenyBody>,
) -> Result<Response, ApiRefusal> {
    let body = body.0?;
    let decided = DecidedApproval {
        id: id_in(id),
        approve: false,
        grant: false,
        arguments: None,
        by: caller.name.clone(),
        note: body.note,
        digest: body.digest,
    };
    decide(&desk, &caller, decided).await
}

async fn decide(
    desk: &ApiState,
    caller: &Caller,
    decided: DecidedApproval,
) -> Result<Response, ApiRefusal> {
    let found = desk
        .operations
        .decide_approval(decided, &caller.operator())
        .await?;
    info!(token = %caller.name, approval = %found.id, state = %found.state, "decided through the API");
    Ok(axum::Json(json!({ "approval": found })).into_response())
}

async fn grants(State(desk): State<ApiState>) -> Result<Response, ApiRefusal> {
    let found = desk.operations.grants().await?;
    Ok(axum::Json(json!({ "grants": found })).into_response())
}

async fn revoke(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    body: InBody<EmptyBody>,
) -> Result<Response, ApiRefusal> {
    body.0?;
    let id = id_in(id);
    desk.operations
        .revoke_grant(&id, &caller.operator())
        .await?;
    info!(token = %caller.name, grant = %id, "revoked through the API");
    Ok(axum::Json(json!({ "revoked": id })).into_response())
}

async fn questions(
    State(desk): State<ApiState>,
    caller: Caller,
    asked: RequestQuery,
) -> Result<Response, ApiRefusal> {
    let limit = asked.limit()?;
    let is_open = !asked.is_set("all")?;
    let before = asked.id("before", "a question")?;
    let mut found = desk.operations.questions(is_open, before, limit).await?;
    let next = found.last().filter(|_| found.len() == limit);
    let next = next.map(|last| last.id.clone());
    // A page may get shorter for a caller who sees only their own; the next page goes on where it ended.
    let sight = caller.sight_of_questions();
    found.retain(|it| sees_question(&sight, it.channel.as_deref(), &it.chat));
    Ok(axum::Json(json!({ "questions": found, "next_before": next })).into_response())
}

/// A question that the caller sees; any other is reported as not found.
async fn question_for(
    desk: &ApiState,
    caller: &Caller,
    id: &str,
) -> Result<QuestionView, ApiRefusal> {
    let found = desk.operations.question(id).await?;
    let sight = caller.sight_of_questions();
    match sees_question(&sight, found.channel.as_deref(), &found.chat) {
        true => Ok(found),
        false => Err(OperationError::Missing(format!("there is no question {id}")).into()),
    }
}

async fn question(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
) -> Result<Response, ApiRefusal> {
    let found = question_for(&desk, &caller, &id_in(id)).await?;
    Ok(axum::Json(json!({ "question": found })).into_response())
}

/// An answer to a question.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    text: String,
}

async fn answer_question(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    body: InBody<AnswerBody>,
) -> Result<Response, ApiRefusal> {
    let (id, text) = (id_in(id), body.0?.text);
    question_for(&desk, &caller, &id).await?;
    let answered = AnsweredQuestion {
        id,
        text,
        by: caller.name.clone(),
    };
    let found = desk
        .operations
        .answer_question(answered, &caller.operator())
        .await?;
    info!(token = %caller.name, question = %found.id, "answered through the API");
    Ok(axum::Json(json!({ "question": found })).into_response())
}

async fn cancel_question(
    State(desk): State<ApiState>,
    caller: Caller,
    id: IdInPath,
    body: InBody<EmptyBody>,
) -> Result<Response, ApiRefusal> {
    body.0?;
    let found = desk.operations.cancel_question(&id_in(id)).await?;
    info!(token = %caller.name, question = %found.id, "taken back through the API");
    Ok(axum::Json(json!({ "question": found })).into_response())
}

async fn schedules(
    State(desk): State<ApiState>,
    asked: RequestQuery,
) -> Result<Response, ApiRefusal> {
    let all = asked.is_set("all")?;
    let found = desk.operations.execute(AdminOperation::Schedules { all });
    Ok(axum::Json(json!({ "schedules": found.await? })).into_response())
}

async fn schedule(State(desk): State<ApiState>, id: IdInPath) -> Result<Response, ApiRefusal> {
    let id = schedule_number(&id_in(id))?;
    let found = desk.operations.execute(AdminOperation::Schedule { id });
    Ok(axum::Json(json!({ "schedule": found.await? })).into_response())
}

async fn change_schedule(
    State(desk): State<ApiState>,
    caller: Caller,
    path: Option<Path<(String, String)>>,
    body: InBody<EmptyBody>,
) -> Result<Response, ApiRefusal> {
    body.0?;
    let (id, change) = path.map(|Path(path)| path).unwrap_or_default();
    let id = schedule_number(&id)?;
    let what = match change.as_str() {
        "pause" => ChangedSchedule::Pause,
        "resume" => ChangedSchedule::Resume,
        "run" => ChangedSchedule::Run,
        "cancel" => ChangedSchedule::Cancel,
        _ => return Err(ApiRefusal::no_path()),
    };
    let operation = AdminOperation::ChangeSchedule { id, change: what };
    let found = desk.operations.execute(operation).await?;
    info!(token = %caller.name, schedule = id, %change, "changed through the API");
    Ok(axum::Json(json!({ "schedule": found })).into_response())
}

fn schedule_number(text: &str) -> Result<i64, ApiRefusal> {
    let advice = "find it with GET /v1/schedules";
    text.parse()
        .map_err(|_| ApiRefusal::wrong("the id of a schedule is a whole number", advice))
}
