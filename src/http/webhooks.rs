//! The listener that platforms call: `/slack/NAME/events` and its like, and nothing else.
//!
//! Knows no platform: each path belongs to a channel's [`Receiver`], which says who may call and what
//! to answer. What is held here are the bounds, because anybody may connect: connections, bodies that are
//! read at once and how fast they come (`bodies`), requests that are stored, bytes and time of heads. Speaks plain
//! HTTP/1.1; a proxy in front ends TLS.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode, header};
use futures_util::StreamExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};
use vocative_contract::webhook::{Receiver, WebhookRequest};

use super::bodies::{Bodies, BodyPlace, Peer};
use super::crowd::Crowd;
use crate::admin::health::{Health, ListenerHealth};

/// The most connections at the same time. Beyond that, idle ones make room; while none is idle, new ones
/// wait outside.
pub const CONNECTIONS_MAX: usize = 256;
/// Requests that are stored at the same time; more wait a moment, then get 503.
pub const REQUESTS_MAX: usize = 64;
/// The largest body, in bytes.
pub const BODY_MAX_BYTES: usize = 1024 * 1024;
/// The largest head, in bytes.
const HEAD_MAX_BYTES: usize = 32 * 1024;
/// How long a head may take, and a connection be idle.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// How long a body may take.
const BODY_WITHIN: Duration = Duration::from_secs(5);
/// The least speed of a body, in bytes a second, after its first second. *Source:* platforms send what
/// they have in full, in packets of more than a kilobyte.
const BODY_RATE_MIN: u64 = 16 * 1024;
/// How long a body has to begin.
const BODY_BEGINS_WITHIN: Duration = Duration::from_secs(1);
/// How long a request waits for its body to be read. *Source:* Slack waits three seconds for an answer.
const BODY_PLACE_WITHIN: Duration = Duration::from_secs(2);
/// How soon the next request in line looks again for a place while a body that holds one is young.
const PLACE_AGAIN: Duration = Duration::from_millis(10);
/// How long a request waits for a place.
const PLACE_WITHIN: Duration = Duration::from_millis(500);
/// How long answers may still be written when the daemon stops.
const GOODBYE_WITHIN: Duration = Duration::from_secs(2);
/// The wait after a connection could not be taken (too many open files).
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// How soon a connection looks again for a place that another was asked to leave.
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
    let doors = Arc::new(WebhookDoors::new(receivers, health));
    let mut paths: Vec<&str> = doors.by_path.keys().map(String::as_str).collect();
    paths.sort_unstable();
    info!(address, paths = paths.join(" "), "webhooks are served");
    let rooms = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let connections = TaskTracker::new();
    let taking = async {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let Some(place) = doors.place(&rooms).await else {
                        return;
                    };
                    let caller = WebhookCaller {
                        peer: Peer::of(peer.ip()),
                        _place: place,
                    };
                    let serving = connection(stream, caller, Arc::clone(&doors), cancel.clone());
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
    // Platforms repeat requests that are not answered by then.
    let _ = timeout(GOODBYE_WITHIN, connections.wait()).await;
}

/// Who has connected, with its place.
struct WebhookCaller {
    peer: Peer,
    _place: OwnedSemaphorePermit,
}

async fn connection(
    stream: TcpStream,
    caller: WebhookCaller,
    doors: Arc<WebhookDoors>,
    cancel: CancellationToken,
) {
    let peer = caller.peer;
    let _counted = doors.health.connected();
    let visitor = Arc::new(doors.crowd.enter());
    let service = service_fn(|request| {
        let (doors, visitor) = (Arc::clone(&doors), Arc::clone(&visitor));
        async move {
            visitor.become_busy();
            let answer = doors.answer(request, peer).await;
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
struct WebhookDoors {
    by_path: HashMap<String, Arc<dyn Receiver>>,
    bodies: Arc<Bodies>,
    /// Who waits for a place to read a body, by path: in the order in which they came.
    waiting: HashMap<String, Mutex<()>>,
    storing: Semaphore,
    crowd: Arc<Crowd>,
    health: Arc<ListenerHealth>,
}

impl WebhookDoors {
    fn new(receivers: Vec<Arc<dyn Receiver>>, health: Arc<ListenerHealth>) -> Self {
        let of = |receiver: Arc<dyn Receiver>| {
            let paths = receiver.paths().into_iter();
            paths
                .map(|path| (path, Arc::clone(&receiver)))
                .collect::<Vec<_>>()
        };
        let by_path: HashMap<_, _> = receivers.into_iter().flat_map(of).collect();
        let waiting = by_path.keys().map(|path| (path.clone(), Mutex::default()));
        Self {
            waiting: waiting.collect(),
            by_path,
            bodies: Arc::default(),
            storing: Semaphore::new(REQUESTS_MAX),
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

    /// A place for a body to be read: at once, or in its turn when a slower one has given way.
    async fn place_for_body(&self, path: &str, peer: Peer) -> Option<BodyPlace> {
        if let Some(place) = self.bodies.enter(path, peer) {
            return Some(place);
        }
        let waiting = self.waiting.get(path)?;
        let entering = async {
            let _turn = waiting.lock().await;
            loop {
                if let Some(place) = self.bodies.enter(path, peer) {
                    return place;
                }
                tokio::time::sleep(PLACE_AGAIN).await;
            }
        };
        timeout(BODY_PLACE_WITHIN, entering).await.ok()
    }

    async fn answer(&self, request: Request<Incoming>, peer: Peer) -> Response<Body> {
        let answer = self.judged(request, peer).await;
        if answer.status().is_client_error() {
            self.health.refused();
        }
        answer
    }

    async fn judged(&self, request: Request<Incoming>, peer: Peer) -> Response<Body> {
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
        let Some(place) = self.place_for_body(path, peer).await else {
            receiver.turned_away("too many come at once");
            return busy();
        };
        let (head, body) = request.into_parts();
        let body = match whole(body, &place).await {
            Ok(body) => body,
            Err((status, why)) => {
                receiver.turned_away(why);
                return unread(status);
            }
        };
        drop(place);
        let Ok(Ok(_storing)) = timeout(PLACE_WITHIN, self.storing.acquire()).await else {
            receiver.turned_away("too many are being stored");
            return busy();
        };
        let answer = receiver.receive(WebhookRequest {
            path: head.uri.path().to_owned(),
            headers: head.headers,
            body,
        });
        let answer = answer.await;
        let status = StatusCode::from_u16(answer.status);
        let mut response = plain(
            status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            answer.body,
        );
        if answer.is_json {
            let json = header::HeaderValue::from_static("application/json; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
        }
        response
    }
}

/// A whole body, unless it is too large, too slow, or has to give way.
async fn whole(body: Incoming, place: &BodyPlace) -> Result<Vec<u8>, (StatusCode, &'static str)> {
    let too_large = (StatusCode::PAYLOAD_TOO_LARGE, "its body is too large");
    let max = u64::try_from(BODY_MAX_BYTES).unwrap_or(u64::MAX);
    // A body that declares itself too large is not read.
    if body.size_hint().lower() > max {
        return Err(too_large);
    }
    let began = Instant::now();
    let mut chunks = Body::new(body).into_data_stream();
    let mut whole = Vec::new();
    loop {
        let until = began + time_for(whole.len());
        let chunk = tokio::select! {
            biased;
            () = place.given_up() => {
                let why = "its body came more slowly than others that waited";
                return Err((StatusCode::SERVICE_UNAVAILABLE, why));
            }
            chunk = timeout_at(until, chunks.next()) => chunk,
        };
        match chunk {
            Ok(Some(Ok(bytes))) if whole.len() + bytes.len() > BODY_MAX_BYTES => {
                return Err(too_large);
            }
            Ok(Some(Ok(bytes))) => whole.extend_from_slice(&bytes),
            Ok(Some(Err(_))) => return Err((StatusCode::BAD_REQUEST, "its body breaks off")),
            Ok(None) => return Ok(whole),
            Err(_) => return Err((StatusCode::REQUEST_TIMEOUT, "its body comes too slowly")),
        }
        place.note(whole.len());
    }
}

/// The time, after its beginning, by which a body of which `bytes` have come must go on. Pure.
fn time_for(bytes: usize) -> Duration {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    let millis = bytes.saturating_mul(1_000) / BODY_RATE_MIN;
    BODY_WITHIN.min(BODY_BEGINS_WITHIN + Duration::from_millis(millis))
}

/// An answer that asks to send again soon. The body is not waited for.
fn busy() -> Response<Body> {
    let mut busy = unread(StatusCode::SERVICE_UNAVAILABLE);
    let soon = header::HeaderValue::from_static("1");
    busy.headers_mut().insert(header::RETRY_AFTER, soon);
    busy
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_a_second_to_begin_and_then_comes_at_a_least_rate() {
        let table = [
            (0, 1_000),
            (16 * 1024, 2_000),
            (32 * 1024, 3_000),
            (64 * 1024, 5_000),
            (BODY_MAX_BYTES, 5_000),
            (usize::MAX, 5_000),
        ];
        for (bytes, expected_ms) in table {
            let expected = Duration::from_millis(expected_ms);
            assert_eq!(time_for(bytes), expected, "{bytes}");
        }
    }
}
