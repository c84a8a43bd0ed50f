//! `POST /v1/chat/completions` and `GET /v1/models`: the API in the form that clients of OpenAI's speak, on top of
//! runs.
//!
//! The last message is a question, captured and answered like any other. What a client says besides is data for that
//! question's prompt. Reading order: `wire` (what a request may say), this page, `told` (answers), `failure`.

mod failure;
mod told;
mod wire;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::{HeaderMap, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use tokio::time::Instant;
use tracing::{info, warn};

use self::failure::CompletionFailure;
pub(super) use self::failure::in_form;
use self::told::AnswerTelling;
use self::wire::ChatRequest;
use super::asked::{IdInPath, id_in};
use super::asking::{AskedQuestion, NotAsked, QUESTION_MAX_BYTES, chosen};
use super::callers::Caller;
use super::following::{Following, RunNews};
use super::{ApiState, gate};
use crate::http::door::{Seat, WaitingRequest};
use vocative_core::run_event::{Ending, EndingKind};

/// How long an answer is waited for before the client is told to come back. The run itself may take longer.
const ANSWER_WAIT: Duration = Duration::from_secs(600);
/// How long a stream is silent before it sends a sign of life.
const SILENCE: Duration = Duration::from_secs(15);

/// The paths. They are worked on for as long as an answer takes.
pub(super) fn routes(address: Option<SocketAddr>) -> Router<ApiState> {
    Router::new()
        .route("/v1/chat/completions", post(complete))
        .route("/v1/models", get(models))
        .route("/v1/models/{id}", get(model))
        .layer(DefaultBodyLimit::max(QUESTION_MAX_BYTES))
        .route_layer(from_fn_with_state(address, gate::from_program))
}

async fn models(caller: Caller) -> Result<Response, CompletionFailure> {
    let asking = caller.asking().map_err(CompletionFailure::refused)?;
    Ok(axum::Json(told::models(&asking.agents)).into_response())
}

async fn model(caller: Caller, id: IdInPath) -> Result<Response, CompletionFailure> {
    let asking = caller.asking().map_err(CompletionFailure::refused)?;
    let agent = chosen(asking, Some(&id_in(id))).map_err(CompletionFailure::no_model)?;
    Ok(axum::Json(told::model(&agent)).into_response())
}

async fn complete(
    State(desk): State<ApiState>,
    ConnectInfo(seat): ConnectInfo<Seat>,
    caller: Caller,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Result<Response, CompletionFailure> {
    let waiting = seat.wait();
    let body = body.map_err(|_| CompletionFailure::too_large(QUESTION_MAX_BYTES))?;
    let request = wire::read(&body)?;
    let ChatRequest {
        wish,
        is_streamed,
        has_usage,
    } = request;
    let asked = desk.ask(&caller, &headers, &body, wish).await;
    let AskedQuestion {
        run,
        agent,
        is_known,
    } = asked.map_err(|(why, refusal)| match why {
        NotAsked::NoAgent => CompletionFailure::no_model(refusal),
        NotAsked::Limit => CompletionFailure::limit(refusal),
        NotAsked::OtherBody | NotAsked::Gone => CompletionFailure::key(refusal),
        NotAsked::Other => CompletionFailure::refused(refusal),
    })?;
    info!(token = %caller.name, run.id = %run.run, is_known, is_streamed, "asked through the API");
    let following = Following::of(desk.source.clone(), run.run).await;
    let following = following.map_err(|cause| CompletionFailure::refused(cause.into()))?;
    let telling = AnswerTelling {
        run,
        agent,
        created_s: (desk.operations.clock)() / 1_000,
    };
    if is_streamed {
        return Ok(streamed(desk, following, telling, has_usage, waiting));
    }
    whole(&desk, following, &telling).await
}

/// The answer as one object.
async fn whole(
    desk: &ApiState,
    mut following: Following,
    telling: &AnswerTelling,
) -> Result<Response, CompletionFailure> {
    let until = Instant::now() + ANSWER_WAIT;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(CompletionFailure::still_working(telling.run.run));
        }
        let seen = following.next(left).await;
        match seen.map_err(|cause| CompletionFailure::refused(cause.into()))? {
            RunNews::Text(_) | RunNews::Gap | RunNews::Silence => {}
            RunNews::Stopping => return Err(CompletionFailure::stopping(telling.run.run)),
            RunNews::Ended(ending) => {
                answered(&ending, telling)?;
                let run = desk.operations.store.run(telling.run.run).await;
                let usage = run
                    .map_err(|cause| CompletionFailure::refused(cause.into()))?
                    .usage;
                return Ok(axum::Json(telling.whole(&ending.text, usage)).into_response());
            }
        }
    }
}

/// Whether a run has answered; else what became of it.
fn answered(ending: &Ending, telling: &AnswerTelling) -> Result<(), CompletionFailure> {
    match ending.kind {
        EndingKind::Finished => Ok(()),
        EndingKind::Failed => Err(CompletionFailure::failed(telling.run.run)),
        EndingKind::Cancelled | EndingKind::Interrupted => {
            Err(CompletionFailure::stopped(telling.run.run))
        }
    }
}

/// A stream that is being told.
struct ToldStream {
    desk: ApiState,
    following: Following,
    telling: AnswerTelling,
    has_usage: bool,
    has_begun: bool,
    is_over: bool,
    /// The connection waits for the first word, however long that takes.
    _waiting: WaitingRequest,
}

fn streamed(
    desk: ApiState,
    following: Following,
    telling: AnswerTelling,
    has_usage: bool,
    waiting: WaitingRequest,
) -> Response {
    let stream = ToldStream {
        desk,
        following,
        telling,
        has_usage,
        has_begun: false,
        is_over: false,
        _waiting: waiting,
    };
    let frames = futures_util::stream::unfold(stream, |mut stream| async move {
        let frame = stream.next().await?;
        Some((Ok::<_, Infallible>(frame), stream))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // A reverse proxy (nginx) must not buffer the stream.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(frames)).into_response()
}

impl ToldStream {
    /// What is sent next; `None` closes the stream.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        if !self.has_begun {
            self.has_begun = true;
            return Some(self.telling.begin());
        }
        Some(match self.following.next(SILENCE).await {
            Ok(RunNews::Text(text)) => self.telling.piece(&text),
            Ok(RunNews::Gap) => self.telling.piece("\n\n"),
            Ok(RunNews::Silence) => told::STILL_HERE,
            Ok(RunNews::Stopping) => {
                self.is_over = true;
                told::error(&CompletionFailure::stopping(self.telling.run.run))
            }
            Ok(RunNews::Ended(ending)) => {
                self.is_over = true;
                self.end(&ending).await
            }
            Err(cause) => {
                warn!(error = %cause, run.id = %self.telling.run.run, "a run could not be followed to its end");
                self.is_over = true;
                told::error(&CompletionFailure::refused(cause.into()))
            }
        })
    }

    async fn end(&self, ending: &Ending) -> Bytes {
        if let Err(failure) = answered(ending, &self.telling) {
            return told::error(&failure);
        }
        let usage = match self.has_usage {
            true => {
                let run = self.desk.operations.store.run(self.telling.run.run).await;
                Some(run.map(|run| run.usage).unwrap_or_default())
            }
            false => None,
        };
        self.telling.end(usage)
    }
}
