//! One Socket Mode connection: opened, read, acknowledged, closed.
//!
//! A session reads frames in one task and writes in another. Envelopes are handed to the intake in the order they came,
//! many of them in flight; each is acknowledged after its commit, on this socket or, if it is gone, on a newer one.
//! With `IN_FLIGHT_MAX` in flight, reading stops. Why a session ended is told to the pool, which decides what comes
//! next.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, sleep_until, timeout};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as WsError, Message, Utf8Bytes};
use tokio_tungstenite::{
    Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config,
};
use tokio_util::sync::CancellationToken;

use crate::http::tls;
use crate::json_object::read_object;
use vocative_contract::channel::BoxFuture;
use vocative_contract::crash;
use vocative_contract::envelope::Event;
use vocative_contract::error::ChannelError;

use super::api::{SlackApi, Token};
use super::form;
use super::names::NameMemory;
use super::socket_pool::SocketShared;
use super::translate::{SlackDelivery, translate};
use super::wire::Frame;

/// How many envelopes of one socket may be on their way to the disk; more stop the reading.
pub const IN_FLIGHT_MAX: usize = 256;
/// How many bytes of envelopes may be on their way; beyond that one more is read only when all are stored.
pub const IN_FLIGHT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The largest frame that is read, in bytes.
pub const FRAME_MAX_BYTES: usize = 16 * 1024 * 1024;
/// How many frames before `hello` are kept.
const EARLY_MAX: usize = 64;
/// How many frames are written before a flush.
const WRITE_BATCH_MAX: usize = 64;
/// An acknowledgement later than this is worth a warning: Slack sends again after 3 s.
const SLOW_ACK_MS: u64 = 2_500;

/// How patient the sockets are, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketTimings {
    /// Until the websocket is open.
    pub handshake_ms: u64,
    /// From then until `hello`.
    pub hello_ms: u64,
    /// Between two pings of ours.
    pub ping_every_ms: u64,
    /// How late a pong may be.
    pub pong_wait_ms: u64,
    /// How long nothing at all may be heard.
    pub idle_ms: u64,
    /// How long a write may take.
    pub write_ms: u64,
    /// How long before the announced end of a connection it is replaced.
    pub refresh_lead_ms: u64,
    /// How long a replaced connection is still read.
    pub linger_ms: u64,
    /// How long the server may take to answer a close.
    pub close_ms: u64,
    /// How long an acknowledgement waits for a newer socket when its own is gone.
    pub ack_wait_ms: u64,
    /// The first back-off.
    pub backoff_first_ms: u64,
    /// The longest back-off.
    pub backoff_max_ms: u64,
    /// Between two connections of a slot that break soon or are replaced soon, beyond the first few.
    pub reopen_every_ms: u64,
    /// The shortest wait after `too_many_websockets`.
    pub too_many_ms: u64,
    /// Between two attempts while somebody must act.
    pub alarm_ms: u64,
    /// Between the first attempts of several sockets.
    pub stagger_ms: u64,
}

impl Default for SocketTimings {
    fn default() -> Self {
        Self {
            handshake_ms: 10_000,
            hello_ms: 10_000,
            ping_every_ms: 10_000,
            pong_wait_ms: 20_000,
            idle_ms: 65_000,
            write_ms: 10_000,
            refresh_lead_ms: 60_000,
            linger_ms: 30_000,
            close_ms: 1_000,
            ack_wait_ms: 3_000,
            backoff_first_ms: 1_000,
            backoff_max_ms: 60_000,
            reopen_every_ms: 10_000,
            too_many_ms: 10_000,
            alarm_ms: 300_000,
            stagger_ms: 2_000,
        }
    }
}

type WebSocket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectFailure {
    /// `apps.connections.open` failed.
    #[error("{}", .0.reason())]
    Refused(ChannelError),
    /// Socket Mode was switched off in the app's settings.
    #[error("Socket Mode is switched off in the app's settings")]
    SwitchedOff,
    /// The app has more sockets than Slack allows.
    #[error("the app has too many sockets open")]
    TooMany,
    /// The connection broke or could not be made.
    #[error("{0}")]
    Lost(String),
}

/// What `hello` said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hello {
    /// Open sockets of the app, this one included.
    pub(super) connections: Option<u64>,
    /// When Slack will refresh the connection.
    lifetime: Option<Duration>,
}

/// A connection that has said hello.
#[derive(Debug)]
pub(super) struct OpenedSocket {
    stream: WebSocket,
    pub(super) hello: Hello,
    early: Vec<Utf8Bytes>,
}

impl OpenedSocket {
    /// Closes a connection that is not needed.
    pub(super) async fn close(mut self, timings: &SocketTimings) {
        let wait = Duration::from_millis(timings.close_ms);
        let _ = timeout(wait, async {
            let _ = self.stream.close(Some(normal_close())).await;
            while let Some(Ok(_)) = self.stream.next().await {}
        })
        .await;
    }
}

/// Opens a connection: a fresh URL, the websocket, `hello`.
pub(super) async fn open(
    api: &SlackApi,
    timings: &SocketTimings,
) -> Result<OpenedSocket, ConnectFailure> {
    let granted = api
        .call("apps.connections.open", Token::App, &[])
        .await
        .map_err(ConnectFailure::Refused)?;
    let Some(url) = granted.answer.url.0 else {
        return Err(lost("apps.connections.open named no URL"));
    };
    let tls = tls().map_err(|_| lost("the platform has no root certificates"))?;
    let connector = Some(Connector::Rustls(Arc::new(tls)));
    let handshake = connect_async_tls_with_config(url, Some(config()), true, connector);
    let (mut stream, _) = timeout(Duration::from_millis(timings.handshake_ms), handshake)
        .await
        .map_err(|_| lost("the websocket handshake took too long"))?
        .map_err(|error| refused(&error))?;
    let mut early = Vec::new();
    let wait = Duration::from_millis(timings.hello_ms);
    let hello = timeout(wait, hello(&mut stream, &mut early))
        .await
        .map_err(|_| lost("the socket did not say hello"))??;
    Ok(OpenedSocket {
        stream,
        hello,
        early,
    })
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(FRAME_MAX_BYTES))
        .max_frame_size(Some(FRAME_MAX_BYTES))
        .read_buffer_size(16 * 1024)
        .write_buffer_size(4 * 1024)
}

/// Reads until `hello`; what comes before it is kept.
async fn hello(
    stream: &mut WebSocket,
    early: &mut Vec<Utf8Bytes>,
) -> Result<Hello, ConnectFailure> {
    loop {
        let text = match stream.next().await {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(_))) | None => {
                return Err(lost("the server closed the socket before hello"));
            }
            Some(Ok(_)) => continue,
            Some(Err(error)) => return Err(ConnectFailure::Lost(told(&error))),
        };
        let frame = read_object::<Frame<'_>>(&text).ok();
        let kind = frame.as_ref().and_then(|frame| frame.kind.as_deref());
        match (kind, frame.as_ref()) {
            (Some("hello"), Some(frame)) => return Ok(hello_of(frame)),
            (Some("disconnect"), Some(frame)) => {
                let reason = frame.reason.as_deref().unwrap_or_default();
                return Err(disconnected(reason)
                    .unwrap_or_else(|| lost("the server disconnected before hello")));
            }
            _ if early.len() < EARLY_MAX => early.push(text),
            _ => return Err(lost("the socket says everything but hello")),
        }
    }
}

/// What a text frame says after `hello`.
pub(super) enum FrameContent<'a> {
    /// It greets again.
    Hello,
    /// The server disconnects, with its reason.
    Disconnect(String),
    /// Something to acknowledge by its id.
    Envelope {
        kind: String,
        id: String,
        payload: &'a str,
        /// Whether the acknowledgement may say more than that it was taken.
        takes_answer: bool,
    },
    /// A frame that can't be acknowledged, with the reason.
    Malformed(&'static str),
}

/// Reads a text frame. Pure and total.
pub(super) fn said(text: &str) -> FrameContent<'_> {
    let Ok(frame) = read_object::<Frame<'_>>(text) else {
        return said_strangely(text);
    };
    let kind = frame.kind.0.unwrap_or_default();
    match (kind.as_str(), frame.envelope_id.0) {
        ("hello", None) => FrameContent::Hello,
        ("disconnect", None) => FrameContent::Disconnect(frame.reason.0.unwrap_or_default()),
        (_, Some(id)) => FrameContent::Envelope {
            kind,
            id,
            payload: frame.payload.map_or(text, |payload| payload.get()),
            takes_answer: *frame.accepts_response_payload == Some(true),
        },
        _ => FrameContent::Malformed("a frame without an envelope id"),
    }
}

/// Reads a frame of unknown shape, which may still name its envelope.
fn said_strangely(text: &str) -> FrameContent<'_> {
    let value = serde_json::from_str::<serde_json::Value>(text).ok();
    let id = value
        .as_ref()
        .and_then(|value| value["envelope_id"].as_str());
    match id {
        Some(id) => FrameContent::Envelope {
            kind: String::new(),
            id: id.to_owned(),
            payload: text,
            takes_answer: false,
        },
        None => FrameContent::Malformed("a frame that is no envelope"),
    }
}

fn hello_of(frame: &Frame<'_>) -> Hello {
    let seconds = frame
        .debug_info
        .as_ref()
        .and_then(|info| *info.approximate_connection_time)
        .filter(|seconds| *seconds > 0.0);
    Hello {
        connections: *frame.num_connections,
        lifetime: seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
    }
}

/// What a `disconnect` frame means, if more than a refresh.
fn disconnected(reason: &str) -> Option<ConnectFailure> {
    match reason {
        "link_disabled" => Some(ConnectFailure::SwitchedOff),
        "too_many_websockets" => Some(ConnectFailure::TooMany),
        _ => None,
    }
}

fn lost(reason: &str) -> ConnectFailure {
    ConnectFailure::Lost(reason.to_owned())
}

/// What a failed handshake means; a server that wants a wait says for how long.
fn refused(error: &WsError) -> ConnectFailure {
    match error {
        WsError::Http(response) if response.status().as_u16() == 429 => {
            ConnectFailure::Refused(ChannelError::RetryAfter {
                operation: "the websocket handshake",
                wait_ms: crate::http::retry_after_ms(response.headers()),
            })
        }
        error => ConnectFailure::Lost(told(error)),
    }
}

/// An error of the websocket without its URL, which holds the ticket.
fn told(error: &WsError) -> String {
    match error {
        WsError::Io(error) => format!("the connection broke: {error}"),
        WsError::Tls(error) => format!("TLS failed: {error}"),
        WsError::Protocol(error) => format!("the websocket broke: {error}"),
        WsError::Capacity(error) => format!("a frame is too large: {error}"),
        WsError::Http(response) => {
            format!(
                "the websocket handshake was answered HTTP {}",
                response.status().as_u16()
            )
        }
        WsError::ConnectionClosed | WsError::AlreadyClosed => "the socket is closed".to_owned(),
        _ => "the websocket failed".to_owned(),
    }
}

fn normal_close() -> CloseFrame {
    CloseFrame {
        code: CloseCode::Normal,
        reason: Utf8Bytes::from_static(""),
    }
}

/// What a session tells the pool.
#[derive(Debug)]
pub(super) enum SessionEvent {
    /// The connection will end soon: open another one.
    Replace,
    /// The connection has ended.
    Ended(ConnectFailure),
}

/// What the pool tells a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Controls {
    /// Another connection took its place: read a little longer, then close.
    pub(super) retire: CancellationToken,
    /// Take in nothing new, acknowledge what is in flight, close.
    pub(super) close: CancellationToken,
}

/// A frame to be written.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// An acknowledgement, and who waits for it to be written.
    Ack {
        frame: String,
        written: oneshot::Sender<()>,
    },
    /// The last frame.
    Close,
}

/// How the reading of a session ended.
enum SessionEnding {
    Asked,
    Failed(ConnectFailure),
}

/// Runs a session until it ends, and its last acknowledgement is written or given up.
pub(super) async fn run_session(
    shared: Arc<SocketShared>,
    opened: OpenedSocket,
    controls: Controls,
    events: mpsc::Sender<SessionEvent>,
) {
    let (sink, stream) = opened.stream.split();
    let (outgoing, to_write) = mpsc::channel(IN_FLIGHT_MAX);
    let writer_gone = CancellationToken::new();
    let writer = tokio::spawn(write_loop(
        sink,
        to_write,
        shared.timings,
        writer_gone.clone(),
    ));
    let live = shared.enter(outgoing.clone());
    let now = Instant::now();
    let timings = shared.timings;
    let mut reader = FrameReader {
        socket: live.id,
        stream,
        controls,
        writer_gone,
        events,
        in_flight: FuturesUnordered::new(),
        in_flight_bytes: 0,
        heard_at: now,
        pong_at: now,
        refresh_at: opened
            .hello
            .lifetime
            .map(|life| now + refresh_after(life, &timings)),
        linger_until: None,
        replace_asked: false,
        shared,
    };
    let ending = reader.read(opened.early).await;
    live.leave();
    let is_open = match ending {
        SessionEnding::Asked => true,
        SessionEnding::Failed(failure) => {
            let is_open = !matches!(failure, ConnectFailure::Lost(_));
            if !is_open {
                live.mute();
            }
            let _ = reader.events.send(SessionEvent::Ended(failure)).await;
            is_open
        }
    };
    while reader.in_flight.next().await.is_some() {}
    drop(live);
    if is_open && outgoing.send(Outgoing::Close).await.is_ok() {
        let wait = Duration::from_millis(timings.close_ms);
        let _ = timeout(wait, async {
            while let Some(Ok(_)) = reader.stream.next().await {}
        })
        .await;
    }
    drop(outgoing);
    writer.abort();
}

/// When to replace a connection: a minute before its announced end, or half-way if it lives shorter than that.
fn refresh_after(lifetime: Duration, timings: &SocketTimings) -> Duration {
    let lead = Duration::from_millis(timings.refresh_lead_ms);
    lifetime.saturating_sub(lead).max(lifetime / 2)
}

/// Writes acknowledgements and pings; ends with the first write that fails.
async fn write_loop(
    mut sink: SplitSink<WebSocket, Message>,
    mut outgoing: mpsc::Receiver<Outgoing>,
    timings: SocketTimings,
    gone: CancellationToken,
) {
    let _gone = gone.drop_guard();
    let every = Duration::from_millis(timings.ping_every_ms);
    let mut pings = tokio::time::interval_at(Instant::now() + every, every);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut batch = Vec::new();
    loop {
        let is_ping = tokio::select! {
            count = outgoing.recv_many(&mut batch, WRITE_BATCH_MAX) => {
                if count == 0 {
                    return;
                }
                false
            }
            _ = pings.tick() => true,
        };
        let write = write_batch(&mut sink, &mut batch, is_ping);
        match timeout(Duration::from_millis(timings.write_ms), write).await {
            Ok(Ok(true)) => {}
            _ => return,
        }
    }
}

/// Writes and flushes what is there; false after a close.
async fn write_batch(
    sink: &mut SplitSink<WebSocket, Message>,
    batch: &mut Vec<Outgoing>,
    is_ping: bool,
) -> Result<bool, WsError> {
    let mut waiting = Vec::with_capacity(batch.len());
    let mut is_open = true;
    if is_ping {
        sink.feed(Message::Ping(b"vocative".to_vec().into()))
            .await?;
    }
    for frame in batch.drain(..) {
        match frame {
            Outgoing::Ack { frame, written } => {
                sink.feed(Message::text(frame)).await?;
                waiting.push(written);
            }
            Outgoing::Close => {
                sink.feed(Message::Close(Some(normal_close()))).await?;
                is_open = false;
            }
        }
    }
    sink.flush().await?;
    for written in waiting {
        let _ = written.send(());
    }
    Ok(is_open)
}

/// The reading side of a session.
struct FrameReader {
    shared: Arc<SocketShared>,
    socket: u64,
    stream: SplitStream<WebSocket>,
    controls: Controls,
    writer_gone: CancellationToken,
    events: mpsc::Sender<SessionEvent>,
    /// Each future yields the length of its envelope in bytes.
    in_flight: FuturesUnordered<BoxFuture<'static, usize>>,
    in_flight_bytes: usize,
    heard_at: Instant,
    pong_at: Instant,
    refresh_at: Option<Instant>,
    linger_until: Option<Instant>,
    replace_asked: bool,
}

impl FrameReader {
    async fn read(&mut self, early: Vec<Utf8Bytes>) -> SessionEnding {
        for text in early {
            if let Some(ending) = self.text(&text) {
                return ending;
            }
        }
        loop {
            let has_room =
                self.in_flight.len() < IN_FLIGHT_MAX && self.in_flight_bytes < IN_FLIGHT_BYTES_MAX;
            let deadline = self.deadline(has_room);
            tokio::select! {
                biased;
                () = self.controls.close.cancelled() => return SessionEnding::Asked,
                () = self.controls.retire.cancelled(), if self.linger_until.is_none() => {
                    let linger = Duration::from_millis(self.shared.timings.linger_ms);
                    self.linger_until = Some(Instant::now() + linger);
                }
                () = self.writer_gone.cancelled() => return self.broken("the socket cannot be written"),
                Some(bytes) = self.in_flight.next() => {
                    self.in_flight_bytes = self.in_flight_bytes.saturating_sub(bytes);
                    if !has_room {
                        self.restart_watch();
                    }
                }
                frame = self.stream.next(), if has_room => {
                    if let Some(ending) = self.frame(frame) {
                        return ending;
                    }
                }
                () = sleep_until(deadline) => {
                    if let Some(ending) = self.overdue(Instant::now(), has_room) {
                        return ending;
                    }
                }
            }
        }
    }

    /// How the reading ended; for a connection that was replaced, that is no failure.
    fn broken(&self, reason: &str) -> SessionEnding {
        match self.linger_until {
            Some(_) => SessionEnding::Asked,
            None => SessionEnding::Failed(lost(reason)),
        }
    }

    /// Restarts the idle timer: while nothing is read, silence does not mean a dead connection.
    fn restart_watch(&mut self) {
        let now = Instant::now();
        (self.heard_at, self.pong_at) = (now, now);
    }

    fn idle_at(&self) -> Instant {
        self.heard_at + Duration::from_millis(self.shared.timings.idle_ms)
    }

    fn pong_due_at(&self) -> Instant {
        let timings = &self.shared.timings;
        self.pong_at + Duration::from_millis(timings.ping_every_ms + timings.pong_wait_ms)
    }

    fn deadline(&self, has_room: bool) -> Instant {
        let watch = has_room.then(|| self.idle_at().min(self.pong_due_at()));
        let dates = [self.linger_until, self.refresh_at, watch];
        let far = || Instant::now() + Duration::from_secs(3_600);
        dates.into_iter().flatten().min().unwrap_or_else(far)
    }

    fn overdue(&mut self, now: Instant, has_room: bool) -> Option<SessionEnding> {
        if self.linger_until.is_some_and(|at| now >= at) {
            return Some(SessionEnding::Asked);
        }
        if self.refresh_at.is_some_and(|at| now >= at) {
            self.refresh_at = None;
            self.ask_replacement();
        }
        if has_room && now >= self.idle_at() {
            return Some(self.broken("nothing was heard for too long"));
        }
        if has_room && now >= self.pong_due_at() {
            return Some(self.broken("a ping was not answered"));
        }
        None
    }

    fn ask_replacement(&mut self) {
        if !self.replace_asked && self.linger_until.is_none() {
            self.replace_asked = self.events.try_send(SessionEvent::Replace).is_ok();
        }
    }

    fn frame(&mut self, frame: Option<Result<Message, WsError>>) -> Option<SessionEnding> {
        let frame = match frame {
            Some(Ok(Message::Close(_))) | None => {
                return Some(self.broken("the server closed the socket"));
            }
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Some(self.broken(&told(&error))),
        };
        self.heard_at = Instant::now();
        self.shared.reporter.heard();
        match frame {
            Message::Text(text) => self.text(&text),
            Message::Pong(_) => {
                self.pong_at = self.heard_at;
                None
            }
            Message::Ping(_) => None,
            _ => {
                self.shared.malformed("a frame that is no text");
                None
            }
        }
    }

    fn text(&mut self, text: &str) -> Option<SessionEnding> {
        match said(text) {
            FrameContent::Hello => None,
            FrameContent::Disconnect(reason) => self.disconnect(&reason),
            FrameContent::Envelope {
                kind,
                id,
                payload,
                takes_answer,
            } => {
                self.envelope(&kind, &id, payload, takes_answer);
                None
            }
            FrameContent::Malformed(what) => {
                self.shared.malformed(what);
                None
            }
        }
    }

    fn disconnect(&mut self, reason: &str) -> Option<SessionEnding> {
        match disconnected(reason) {
            Some(failure) => Some(SessionEnding::Failed(failure)),
            None => {
                self.ask_replacement();
                None
            }
        }
    }

    fn envelope(&mut self, kind: &str, envelope_id: &str, payload: &str, takes_answer: bool) {
        let shared = Arc::clone(&self.shared);
        let delivery = SlackDelivery {
            channel: &shared.channel,
            kind,
            envelope_id,
            payload,
            received_at_ms: shared.api.clock().now_ms(),
        };
        let envelope = translate(&delivery, &shared.identity).heard_by(shared.api.clock());
        notice(&shared.channel, &shared.names, &envelope.event);
        let (socket, envelope_id) = (self.socket, envelope_id.to_owned());
        let received = Instant::now();
        let bytes = payload.len();
        self.in_flight_bytes += bytes;
        self.in_flight.push(Box::pin(async move {
            let accepted = match shared.intake.accept(envelope).await {
                Ok(accepted) => accepted,
                Err(error) => {
                    shared.not_stored(&error);
                    return bytes;
                }
            };
            let problem = accepted.form_problem.filter(|_| takes_answer);
            let ack = match problem {
                Some(problem) => serde_json::json!({"envelope_id": envelope_id, "payload": form::refusal(&problem)}),
                None => serde_json::json!({"envelope_id": envelope_id}),
            };
            crash::point("ack.before");
            let wait = Duration::from_millis(shared.timings.ack_wait_ms);
            if shared.acks.send(socket, &ack.to_string(), wait).await {
                crash::point("ack.after");
                shared.acknowledged(
                    u64::try_from(received.elapsed().as_millis()).unwrap_or(u64::MAX),
                );
            }
            bytes
        }));
    }
}

/// Forgets cached names that an event makes out of date, and logs what an operator must know.
pub(super) fn notice(channel: &str, names: &NameMemory, event: &Event) {
    match event {
        Event::PersonChanged { sender } => names.forget_person(&sender.id),
        Event::ChatChanged { place } | Event::Membership { place, .. } => {
            names.forget_chat(&place.chat);
        }
        Event::ChatMoved { from_chat, .. } => names.forget_chat(from_chat),
        Event::Ignored { reason } if *reason == super::APP_RATE_LIMITED => {
            tracing::error!(channel.id = %channel, "Slack withholds events: too many per minute");
        }
        _ => {}
    }
}

impl SocketShared {
    fn acknowledged(&self, lag_ms: u64) {
        self.reporter.acknowledged(lag_ms);
        if lag_ms >= SLOW_ACK_MS
            && let Some(others) = self.slow_gate.pass()
        {
            tracing::warn!(channel.id = %self.channel, lag_ms, others, "an acknowledgement was slow");
        }
    }

    fn malformed(&self, what: &'static str) {
        self.reporter.malformed();
        if let Some(others) = self.malformed_gate.pass() {
            tracing::warn!(channel.id = %self.channel, what, others, "Slack sent what cannot be read");
        }
    }

    fn not_stored(&self, error: &vocative_contract::channel::IntakeError) {
        if let Some(others) = self.storage_gate.pass() {
            let error = error as &dyn std::error::Error;
            tracing::error!(
                channel.id = %self.channel, error, others,
                "an event could not be stored and is not acknowledged; Slack sends it again"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_replaced_a_minute_before_its_end() {
        let timings = SocketTimings::default();
        let after = |seconds| refresh_after(Duration::from_secs(seconds), &timings).as_secs();
        assert_eq!(after(3_600), 3_540);
        assert_eq!(after(100), 50);
        assert_eq!(after(0), 0);
    }

    #[test]
    fn only_two_reasons_to_disconnect_are_failures() {
        assert!(matches!(
            disconnected("link_disabled"),
            Some(ConnectFailure::SwitchedOff)
        ));
        assert!(matches!(
            disconnected("too_many_websockets"),
            Some(ConnectFailure::TooMany)
        ));
        for reason in ["warning", "refresh_requested", "something_new", ""] {
            assert!(disconnected(reason).is_none());
        }
    }
}
