//! Hints that something changed, as server-sent events. A page reads itself again after one: a lost hint costs a
//! moment, and pages keep no state of their own.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::state::ConsoleState;

/// The most pages that get hints at once; further ones stay as they were loaded.
pub(crate) const STREAMS_MAX: usize = 64;
/// The pause between two hints, however much changes.
const PACE: Duration = Duration::from_millis(700);
/// How long a stream is silent before it sends a sign of life, for proxies that close silent connections.
const HEARTBEAT: Duration = Duration::from_secs(15);

const HINT: &[u8] = b"event: changed\ndata:\n\n";
const ALIVE: &[u8] = b": alive\n\n";

struct ChangeStream {
    commits: watch::Receiver<()>,
    cancel: CancellationToken,
    is_first: bool,
    _seat: OwnedSemaphorePermit,
}

/// Sends hints for as long as the page listens.
pub(crate) async fn live(State(console): State<ConsoleState>) -> Response {
    let seat = Arc::clone(&console.streams).try_acquire_owned();
    let (Ok(seat), Some(commits)) = (seat, console.desk.commits()) else {
        return StatusCode::NO_CONTENT.into_response();
    };
    let told = ChangeStream {
        commits,
        cancel: console.cancel.clone(),
        is_first: true,
        _seat: seat,
    };
    let frames = futures_util::stream::unfold(told, |mut told| async move {
        let frame = told.next().await?;
        Some((
            Ok::<_, std::convert::Infallible>(Bytes::from_static(frame)),
            told,
        ))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // A reverse proxy (nginx) must not buffer a stream of events.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(frames)).into_response()
}

impl ChangeStream {
    async fn next(&mut self) -> Option<&'static [u8]> {
        if self.is_first {
            // The browser then knows that the stream is open.
            self.is_first = false;
            return Some(ALIVE);
        }
        tokio::select! {
            () = self.cancel.cancelled() => None,
            changed = self.commits.changed() => {
                changed.ok()?;
                tokio::select! {
                    () = self.cancel.cancelled() => return None,
                    () = sleep(PACE) => {}
                }
                self.commits.mark_unchanged();
                Some(HINT)
            }
            () = sleep(HEARTBEAT) => Some(ALIVE),
        }
    }
}
