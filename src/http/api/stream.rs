//! One reader's stream: how things stand, what it missed, and then what comes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::epoch::Epoch;
use super::frame;
use super::hub::{Hub, Passed};
use crate::admin::health::ListenerHealth;
use vocative_core::ids::{ConversationId, EventId, RunId};
use vocative_core::run_event::Happening;
use vocative_store::contract::EventScope;
use vocative_store::{Reader, StoreError};

/// How long a stream is silent before it sends a sign of life, for proxies that close silent connections.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Missed events of one read.
const PAGE: usize = 128;

/// What a stream needs.
#[derive(Clone)]
pub(super) struct StreamSource {
    pub(super) store: Reader,
    pub(super) hub: Arc<Hub>,
    pub(super) epoch: Epoch,
    pub(super) health: Arc<ListenerHealth>,
    /// Ends all streams.
    pub(super) cancel: CancellationToken,
}

/// Where a reader stands.
enum Phase {
    /// It is told what it missed, from the store.
    Missed,
    /// It is told what comes.
    Live,
    /// There is no more.
    Over,
}

struct StreamReader {
    source: StreamSource,
    scope: EventScope,
    through: EventId,
    ready: VecDeque<Bytes>,
    phase: Phase,
    live: broadcast::Receiver<Arc<Passed>>,
}

/// The events of a run, until it has ended.
pub(super) async fn of_run(
    source: StreamSource,
    run: RunId,
    after: Option<EventId>,
) -> Result<Response, StoreError> {
    let scope = EventScope::Run(run);
    let (live, epoch) = (source.hub.follow(scope).await?, source.epoch);
    let (snapshot, newest) = source.store.run_snapshot(run).await?;
    let after = known(after, newest);
    let mut ready = VecDeque::new();
    let mut phase = Phase::Missed;
    match (&snapshot.end, after) {
        // A reader that comes back after the end is told not to come again.
        (Some(end), Some(after)) if end.id.is_none_or(|id| id <= after) => {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        (Some(end), None) => {
            // Where something was said, the end brings the snapshot.
            if snapshot.text.is_empty() {
                ready.push_back(frame::snapshot(&snapshot, None, epoch));
            }
            ready.push_back(frame::event(end, epoch));
            phase = Phase::Over;
        }
        (None, None) => {
            ready.push_back(frame::snapshot(&snapshot, Some(newest), epoch));
            phase = Phase::Live;
        }
        (_, Some(_)) => {}
    }
    Ok(respond(StreamReader {
        source,
        scope,
        through: after.unwrap_or(newest),
        ready,
        phase,
        live,
    }))
}

/// The events of all runs of a conversation, for as long as somebody reads.
pub(super) async fn of_conversation(
    source: StreamSource,
    conversation: ConversationId,
    after: Option<EventId>,
) -> Result<Response, StoreError> {
    let scope = EventScope::Conversation(conversation);
    let (live, epoch) = (source.hub.follow(scope).await?, source.epoch);
    let (open, newest) = source.store.conversation_snapshot(conversation).await?;
    let after = known(after, newest);
    let mut ready = VecDeque::new();
    if after.is_none() {
        ready.extend(open.iter().map(|run| frame::snapshot(run, None, epoch)));
        ready.push_back(frame::ready(conversation, newest, epoch));
    }
    let phase = if after.is_some() {
        Phase::Missed
    } else {
        Phase::Live
    };
    Ok(respond(StreamReader {
        source,
        scope,
        through: after.unwrap_or(newest),
        ready,
        phase,
        live,
    }))
}

/// The id after which a reader resumes. An id newer than all events comes from another database: such a reader begins
/// anew.
fn known(after: Option<EventId>, newest: EventId) -> Option<EventId> {
    after.filter(|after| *after <= newest)
}

fn respond(reader: StreamReader) -> Response {
    let counted = reader.source.health.streaming();
    let frames = futures_util::stream::unfold((reader, counted), |mut told| async move {
        let frame = told.0.next().await?;
        Some((Ok::<_, std::convert::Infallible>(frame), told))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // A reverse proxy (nginx) must not buffer the stream.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(frames)).into_response()
}

impl StreamReader {
    /// What the reader is sent next; `None` closes its stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            match self.phase {
                Phase::Over => return None,
                Phase::Missed => self.read_missed().await?,
                Phase::Live => return self.hear().await,
            }
        }
    }

    async fn read_missed(&mut self) -> Option<()> {
        let page = self
            .source
            .store
            .run_events_after(self.scope, self.through, PAGE);
        let page = match page.await {
            Ok(page) => page,
            Err(cause) => {
                debug!(error = %cause, "what a reader missed could not be read; it may come back");
                return None;
            }
        };
        if page.len() < PAGE {
            self.phase = Phase::Live;
        }
        for event in &page {
            self.through = event.id.unwrap_or(self.through);
            self.ready.push_back(frame::event(event, self.source.epoch));
            if self.is_over(matches!(event.what, Happening::Ended(_))) {
                self.phase = Phase::Over;
            }
        }
        Some(())
    }

    async fn hear(&mut self) -> Option<Bytes> {
        loop {
            let heard = tokio::select! {
                () = self.source.cancel.cancelled() => return None,
                heard = self.live.recv() => heard,
                () = tokio::time::sleep(HEARTBEAT) => return Some(frame::HEARTBEAT),
            };
            match heard {
                // It was told already, from the store.
                Ok(passed) if passed.id <= self.through => {}
                Ok(passed) => {
                    self.through = passed.id;
                    if self.is_over(passed.is_end) {
                        self.phase = Phase::Over;
                    }
                    return Some(passed.frame.clone());
                }
                Err(RecvError::Lagged(_) | RecvError::Closed) => return None,
            }
        }
    }

    fn is_over(&self, is_end: bool) -> bool {
        is_end && matches!(self.scope, EventScope::Run(_))
    }
}
