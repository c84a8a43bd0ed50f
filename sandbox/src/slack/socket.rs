//! The Socket Mode end: the upgrade, one task per socket, and the task that runs retries.
//!
//! Speaks frames; what is in an envelope and when it goes out is decided in `deliveries`.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, MissedTickBehavior};

use super::cut::ConnectionCut;
use super::deliveries::SocketCommand;
use super::interactions;
use super::state::SharedSlack;
use crate::wire::{WireKind, WirePeer};

/// The name that the loopback host gives itself.
const HOST: &str = "applink-10";
/// What `hello` says about how long the socket will live, in seconds.
const CONNECTION_TIME_S: u64 = 18_060;
/// How often retries are checked when none is due, in seconds.
const IDLE_LOOK_S: u64 = 3_600;

/// `GET /link/?ticket=…`: the upgrade. A ticket opens one socket, once.
pub(super) async fn link(
    State(shared): State<Arc<SharedSlack>>,
    ConnectInfo(cut): ConnectInfo<ConnectionCut>,
    Query(query): Query<HashMap<String, String>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    if let Some(status) = shared.faults.take_upgrade() {
        return refuse_upgrade(&shared, status, "refused by a scripted fault");
    }
    let ticket = query.get("ticket").cloned().unwrap_or_default();
    if !shared.change(|core| core.tickets.remove(&ticket)) {
        return refuse_upgrade(&shared, 401, "the ticket is unknown or was used");
    }
    upgrade.on_upgrade(move |socket| serve(shared, cut, socket))
}

fn refuse_upgrade(shared: &SharedSlack, status: u16, why: &str) -> Response {
    let (peer, kind) = (WirePeer::Slack, WireKind::Response);
    shared
        .wire
        .append(peer, kind, "link", Some(status), json!(why));
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, why.to_owned()).into_response()
}

async fn serve(shared: Arc<SharedSlack>, cut: ConnectionCut, socket: WebSocket) {
    let (commands, inbox) = unbounded_channel();
    let mut link = SocketLink {
        shared,
        cut,
        socket,
        inbox,
        id: 0,
    };
    let app_id = link.shared.read(|core| core.world.app_id.clone());
    let info = json!({"app_id": app_id});
    let added = link
        .shared
        .change(|core| core.deliveries.add_socket(commands));
    match added {
        Ok((id, num_connections)) => {
            link.id = id;
            let hello = json!({
                "type": "hello", "num_connections": num_connections, "connection_info": info,
                "debug_info": {"host": HOST, "build_number": 10,
                               "approximate_connection_time": CONNECTION_TIME_S},
            });
            link.run(&hello).await;
            link.shared.change(|core| core.deliveries.remove_socket(id));
        }
        Err(num_connections) => {
            let refusal = json!({
                "type": "disconnect", "reason": "too_many_websockets",
                "num_connections": num_connections, "debug_info": {"host": HOST},
                "connection_info": info,
            });
            let sent = link.send_text("disconnect", refusal.to_string()).await;
            if sent.is_continue() {
                link.close().await;
            }
        }
    }
}

/// One open socket.
struct SocketLink {
    shared: Arc<SharedSlack>,
    cut: ConnectionCut,
    socket: WebSocket,
    inbox: UnboundedReceiver<SocketCommand>,
    id: u64,
}

impl SocketLink {
    async fn run(&mut self, hello: &Value) {
        if self.send_text("hello", hello.to_string()).await.is_break() {
            return;
        }
        let ping_every = self.shared.faults.knobs().ping_every_ms.max(1);
        let mut pings = tokio::time::interval(Duration::from_millis(ping_every));
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.reset();
        let stop = self.shared.stop.clone();
        loop {
            let flow = tokio::select! {
                () = stop.cancelled() => return,
                command = self.inbox.recv() => match command {
                    Some(command) => self.obey(command).await,
                    None => return,
                },
                frame = self.socket.recv() => match frame {
                    Some(Ok(frame)) => self.take(frame),
                    Some(Err(_)) | None => return,
                },
                _ = pings.tick() => self.ping().await,
            };
            if flow.is_break() {
                return;
            }
        }
    }

    async fn obey(&mut self, command: SocketCommand) -> ControlFlow<()> {
        match command {
            SocketCommand::Frame { name, text } => self.send_text(&name, text).await,
            SocketCommand::Close => {
                self.close().await;
                ControlFlow::Break(())
            }
            SocketCommand::Abort => {
                self.cut.cut();
                ControlFlow::Break(())
            }
            SocketCommand::Stall => {
                self.stall().await;
                ControlFlow::Break(())
            }
        }
    }

    /// Goes silent without a goodbye: nothing is answered or sent, the connection stays until the
    /// client ends it.
    async fn stall(&mut self) {
        self.cut.mute();
        let stop = self.shared.stop.clone();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                command = self.inbox.recv() => match command {
                    Some(SocketCommand::Abort) => return self.cut.cut(),
                    Some(_) => {}
                    None => return,
                },
                frame = self.socket.recv() => match frame {
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                    Some(Ok(_)) => {}
                },
            }
        }
    }

    fn take(&mut self, frame: Message) -> ControlFlow<()> {
        match frame {
            Message::Text(text) => {
                self.log(WireKind::FrameIn, frame_name(&text), parsed(&text));
                let id = self.id;
                self.shared.change(|core| {
                    core.deliveries.take_frame(id, &text);
                    interactions::take_answers(&self.shared, core);
                });
                ControlFlow::Continue(())
            }
            Message::Ping(payload) => {
                // The library answers with the same payload before it reads on.
                let payload = json!(String::from_utf8_lossy(&payload));
                self.log(WireKind::FrameIn, "ping", payload.clone());
                self.log(WireKind::FrameOut, "pong", payload);
                ControlFlow::Continue(())
            }
            Message::Pong(payload) => {
                let payload = json!(String::from_utf8_lossy(&payload));
                self.log(WireKind::FrameIn, "pong", payload);
                ControlFlow::Continue(())
            }
            Message::Binary(_) => ControlFlow::Continue(()),
            Message::Close(_) => {
                self.log(WireKind::FrameIn, "close", Value::Null);
                ControlFlow::Continue(())
            }
        }
    }

    async fn ping(&mut self) -> ControlFlow<()> {
        let payload = format!("Ping from {HOST}");
        self.log(WireKind::FrameOut, "ping", json!(payload));
        self.send(Message::Ping(payload.into())).await
    }

    async fn send_text(&mut self, name: &str, text: String) -> ControlFlow<()> {
        self.log(WireKind::FrameOut, name, parsed(&text));
        self.send(Message::text(text)).await
    }

    async fn send(&mut self, message: Message) -> ControlFlow<()> {
        match self.socket.send(message).await {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    async fn close(&mut self) {
        self.log(WireKind::FrameOut, "close", json!(1000));
        let frame = CloseFrame {
            code: 1000,
            reason: "".into(),
        };
        if self.send(Message::Close(Some(frame))).await.is_break() {
            return;
        }
        // The client gets a second to send its Close frame, too.
        let goodbye = async { while let Some(Ok(_)) = self.socket.recv().await {} };
        let _ = tokio::time::timeout(Duration::from_secs(1), goodbye).await;
    }

    fn log(&self, kind: WireKind, name: &str, body: Value) {
        let wire = &self.shared.wire;
        wire.append(WirePeer::Slack, kind, name, None, body);
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

fn frame_name(text: &str) -> &'static str {
    match parsed(text)["envelope_id"].is_string() {
        true => "ack",
        false => "frame",
    }
}

/// Sends a `disconnect` frame with this reason to every open socket, and ends the sockets as the
/// reason says.
pub(super) fn disconnect(shared: &Arc<SharedSlack>, reason: &str) {
    let frame = json!({"type": "disconnect", "reason": reason, "debug_info": {"host": HOST}});
    let told = shared.change(|core| {
        let told = core.deliveries.tell_all(|| SocketCommand::Frame {
            name: "disconnect".to_owned(),
            text: frame.to_string(),
        });
        core.deliveries.drain(&told);
        told
    });
    let grace_ms = match reason {
        "warning" | "refresh_requested" => shared.faults.knobs().disconnect_grace_ms,
        _ => 0,
    };
    let shared = shared.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(grace_ms)).await;
        shared.change(|core| {
            for id in told {
                core.deliveries.tell(id, SocketCommand::Close);
            }
        });
    });
}

/// Sends retries when they are due, until the server stops.
pub(super) async fn run_retries(shared: Arc<SharedSlack>) {
    loop {
        let next_due = shared.read(|core| core.deliveries.next_due());
        let idle = Instant::now() + Duration::from_secs(IDLE_LOOK_S);
        tokio::select! {
            () = shared.stop.cancelled() => return,
            () = shared.due_hint.notified() => {}
            () = tokio::time::sleep_until(next_due.unwrap_or(idle)) => {
                let plan = shared.faults.knobs().retry;
                shared.change(|core| core.deliveries.run_due(&plan));
            }
        }
    }
}
