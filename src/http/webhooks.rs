//! The listener that platforms call: `/slack/NAME/events` and its like, and nothing else.
//!
//! Knows no platform: each path belongs to a channel's [`Receiver`], which says who may call and what
//! to answer. What is held here are the bounds, because anybody may connect: connections, requests
//! at once, bytes and time of heads and bodies. Speaks plain HTTP/1.1; a proxy in front ends TLS.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode, header};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};
use vocative_channels::webhook::{Receiver, WebhookRequest};

use super::crowd::Crowd;
use crate::admin::health::{Health, ListenerHealth};

/// Connections at the same time. Of more, those that ask for nothing make room; while all of them ask,
/// the rest waits outside.
pub const CONNECTIONS_MAX: usize = 256;
/// Requests whose bodies are read or stored at the same time; more wait a moment, then get 503.
pub const REQUESTS_MAX: usize = 64;
/// The largest body, in bytes.
pub const BODY_MAX_BYTES: usize = 1024 * 1024;
/// The largest head, in bytes.
const HEAD_MAX_BYTES: usize = 32 * 1024;
/// How long a head may take, and a connection be idle.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// How long a body may take.
const BODY_WITHIN: Duration = Duration::from_secs(5);
/// How long a request waits for a place.
const PLACE_WITHIN: Duration = Duration::from_millis(500);
/// How long answers may still be written when the daemon stops.
const GOODBYE_WITHIN: Duration = Duration::from_secs(2);
/// The wait after a connection could not be taken (too many open files).
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// The wait for a place that somebody was asked to leave, or that nobody can leave yet.
const ROOM_AGAIN: Duration = Duration::from_millis(50);

/// Serves until cancelled; then answers what is under way.
pub async fn serve(
    listener: TcpListener,
    receivers: Vec<Arc<dyn Receiver>>,
    health: Health,
    cancel: CancellationToken,
) {
    let address = listener
        .local_addr()
        .map_or_else(|_| "?".to_owned(), |address| address.to_string());
    let health = health.listener("webhooks", address.clone(), CONNECTIONS_MAX);
    let doors = Arc::new(Doors::new(receivers, health));
    let mut paths: Vec<&str> = doors.by_path.keys().map(String::as_str).collect();
    paths.sort_unstable();
    info!(address, paths = paths.join(" "), "webhooks are served");
    let rooms = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let connections = TaskTracker::new();
    let taking = async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let Some(place) = doors.place(&rooms).await else {
                        return;
                    };
                    let serving = connection(stream, Arc::clone(&doors), cancel.clone(), place);
                    connections.spawn(serving);
                }
                Err(cause) => {
                    warn!(error = %cause, "a webhook connection could not be taken");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    };
    tokio::select! {
        () = taking => {}
        () = cancel.cancelled() => {}
    }
    connections.close();
    // What is not answered by then comes again.
    let _ = timeout(GOODBYE_WITHIN, connections.wait()).await;
}

async fn connection(
    stream: TcpStream,
    doors: Arc<Doors>,
    cancel: CancellationToken,
    _place: OwnedSemaphorePermit,
) {
    let _counted = doors.health.connected();
    let visitor = Arc::new(doors.crowd.enter());
    let service = service_fn(|request| {
        let (doors, visitor) = (Arc::clone(&doors), Arc::clone(&visitor));
        async move {
            visitor.become_busy();
            let answer = doors.answer(request).await;
            visitor.become_silent();
            Ok::<_, Infallible>(answer)
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD_MAX_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = visitor.sent_away() => {
            doors.health.sent_away();
            return;
        }
        () = cancel.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(cause) = ended {
        debug!(error = %cause, "a webhook connection broke");
    }
}

/// Which channel each path belongs to, and what all connections share.
struct Doors {
    by_path: HashMap<String, Arc<dyn Receiver>>,
    places: Semaphore,
    crowd: Arc<Crowd>,
    health: Arc<ListenerHealth>,
}

impl Doors {
    fn new(receivers: Vec<Arc<dyn Receiver>>, health: Arc<ListenerHealth>) -> Self {
        let of = |receiver: Arc<dyn Receiver>| {
            let paths = receiver.paths().into_iter();
            paths
                .map(|path| (path, Arc::clone(&receiver)))
                .collect::<Vec<_>>()
        };
        Self {
            by_path: receivers.into_iter().flat_map(of).collect(),
            places: Semaphore::new(REQUESTS_MAX),
            crowd: Arc::default(),
            health,
        }
    }

    /// A place for one more connection; where there is none, the longest silent one makes room. `None`
    /// when there are no places any more.
    async fn place(&self, rooms: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
        loop {
            match Arc::clone(rooms).try_acquire_owned() {
                Ok(place) => return Some(place),
                Err(TryAcquireError::Closed) => return None,
                Err(TryAcquireError::NoPermits) => {}
            }
            self.crowd.send_one_away();
            let left = timeout(ROOM_AGAIN, Arc::clone(rooms).acquire_owned()).await;
            if let Ok(place) = left {
                return place.ok();
            }
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let answer = self.judged(request).await;
        if answer.status().is_client_error() {
            self.health.refused();
        }
        answer
    }

    async fn judged(&self, request: Request<Incoming>) -> Response<Body> {
        let (path, query) = (request.uri().path(), request.uri().query());
        let Some(receiver) = self.by_path.get(path) else {
            return plain(StatusCode::NOT_FOUND, String::new());
        };
        if request.method() != Method::POST {
            let is_look = matches!(*request.method(), Method::GET | Method::HEAD);
            if is_look && receiver.is_certificate_check(path, query.unwrap_or_default()) {
                return plain(StatusCode::OK, String::new());
            }
            let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, String::new());
            let post = header::HeaderValue::from_static("POST");
            refused.headers_mut().insert(header::ALLOW, post);
            return refused;
        }
        if receiver.is_stranger(request.headers()) {
            return unread(StatusCode::UNAUTHORIZED);
        }
        let Ok(Ok(_place)) = timeout(PLACE_WITHIN, self.places.acquire()).await else {
            receiver.turned_away("too many come at once");
            let mut busy = plain(StatusCode::SERVICE_UNAVAILABLE, String::new());
            let soon = header::HeaderValue::from_static("1");
            busy.headers_mut().insert(header::RETRY_AFTER, soon);
            return busy;
        };
        let (head, body) = request.into_parts();
        let body = match whole(body).await {
            Ok(body) => body,
            Err((status, why)) => {
                receiver.turned_away(why);
                return unread(status);
            }
        };
        let answer = receiver.receive(WebhookRequest {
            path: head.uri.path().to_owned(),
            headers: head.headers,
            body,
        });
        let answer = answer.await;
        let status = StatusCode::from_u16(answer.status);
        plain(
            status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            answer.body,
        )
    }
}

/// A whole body, unless it is too large or too slow.
async fn whole(body: Incoming) -> Result<Vec<u8>, (StatusCode, &'static str)> {
    let too_large = (StatusCode::PAYLOAD_TOO_LARGE, "its body is too large");
    let max = u64::try_from(BODY_MAX_BYTES).unwrap_or(u64::MAX);
    // What says so itself is not read.
    if body.size_hint().lower() > max {
        return Err(too_large);
    }
    let read = axum::body::to_bytes(Body::new(body), BODY_MAX_BYTES);
    match timeout(BODY_WITHIN, read).await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(error)) if is_about_length(&error) => Err(too_large),
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "its body breaks off")),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "its body comes too slowly")),
    }
}

fn is_about_length(error: &axum::Error) -> bool {
    let cause = std::error::Error::source(error);
    cause.is_some_and(|cause| cause.to_string().contains("length limit"))
}

/// An answer to a request whose body is not waited for.
fn unread(status: StatusCode) -> Response<Body> {
    let mut refused = plain(status, String::new());
    let close = header::HeaderValue::from_static("close");
    refused.headers_mut().insert(header::CONNECTION, close);
    refused
}

fn plain(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
