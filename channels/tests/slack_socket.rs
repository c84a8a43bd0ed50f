//! The Slack socket frame by frame, against a server that says exactly what a test wants.
#![cfg(feature = "slack")]
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Once};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use secrecy::SecretString;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async};
use tokio_util::sync::CancellationToken;
use vocative_channels::slack::{SlackChannel, SlackSettings, SocketTimings};
use vocative_contract::channel::{
    Accepted, BoxFuture, Channel, ConnectionState, Intake, IntakeError, Reporter,
};
use vocative_contract::envelope::Envelope;
use vocative_contract::error::ChannelError;
use vocative_contract::identity::{Identity, Platform};

/// Nothing on loopback takes longer.
const WAIT: Duration = Duration::from_secs(20);

/// What the daemon was told, in order.
#[derive(Debug)]
enum Told {
    Envelope(Box<Envelope>),
    State(ConnectionState),
}

struct Ear(mpsc::UnboundedSender<Told>);

impl Intake for Ear {
    fn accept(&self, envelope: Envelope) -> BoxFuture<'_, Result<Accepted, IntakeError>> {
        let _ = self.0.send(Told::Envelope(Box::new(envelope)));
        Box::pin(std::future::ready(Ok(Accepted::default())))
    }
}

impl Reporter for Ear {
    fn state(&self, state: ConnectionState) {
        let _ = self.0.send(Told::State(state));
    }

    fn heard(&self) {}

    fn acknowledged(&self, _lag_ms: u64) {}

    fn malformed(&self) {}
}

/// A server whose sockets the test holds, and an adapter that connects to it.
struct Stage {
    sockets: TcpListener,
    told: mpsc::UnboundedReceiver<Told>,
    cancel: CancellationToken,
    running: JoinHandle<Result<(), ChannelError>>,
    api: JoinHandle<()>,
}

type Socket = WebSocketStream<TcpStream>;

/// Answers every call with the URL of a socket.
async fn serve_api(listener: TcpListener, url: String) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        assert!(
            head.starts_with("POST /api/apps.connections.open "),
            "{head}"
        );
        let body = json!({"ok": true, "url": url}).to_string();
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

impl Stage {
    async fn new(change: impl FnOnce(&mut SocketTimings)) -> Self {
        static CRYPTO: Once = Once::new();
        CRYPTO.call_once(|| {
            let provider = rustls::crypto::ring::default_provider();
            provider.install_default().unwrap();
        });
        let api = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sockets = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let token = |token: &str| SecretString::from(token.to_owned());
        let mut settings = SlackSettings::new("slack_acme", token("xapp-1"), token("xoxb-1"));
        settings.api_url = format!("http://{}/api/", api.local_addr().unwrap());
        settings.timings = SocketTimings {
            backoff_first_ms: 10,
            backoff_max_ms: 50,
            ..SocketTimings::default()
        };
        change(&mut settings.timings);
        let url = format!("ws://{}/link/?ticket=1", sockets.local_addr().unwrap());
        let (tell, told) = mpsc::unbounded_channel();
        let cancel = CancellationToken::new();
        let (stop, ear) = (cancel.clone(), Arc::new(Ear(tell)));
        let running = tokio::spawn(async move {
            let channel = SlackChannel::new(settings).unwrap();
            let mut inbound = channel.inbound(&identity());
            inbound.run(Arc::clone(&ear) as _, ear, stop).await
        });
        Self {
            sockets,
            told,
            cancel,
            running,
            api: tokio::spawn(serve_api(api, url)),
        }
    }

    /// The next socket, before its hello.
    async fn socket(&self) -> Socket {
        let accepted = tokio::time::timeout(WAIT, self.sockets.accept()).await;
        accept_async(accepted.unwrap().unwrap().0).await.unwrap()
    }

    async fn greeted(&self) -> Socket {
        let mut socket = self.socket().await;
        say(&mut socket, &hello(18_060)).await;
        socket
    }

    async fn told(&mut self) -> Told {
        tokio::time::timeout(WAIT, self.told.recv())
            .await
            .unwrap()
            .unwrap()
    }

    async fn until_connected(&mut self, wanted: usize) {
        loop {
            if let Told::State(ConnectionState::Connected { connections }) = self.told().await
                && connections == wanted
            {
                return;
            }
        }
    }

    /// Waits until the adapter says why it has no connection.
    async fn reason(&mut self) -> String {
        self.retrying().await.0
    }

    /// The same, and how long it waits.
    async fn retrying(&mut self) -> (String, u64) {
        loop {
            if let Told::State(ConnectionState::Retrying { reason, wait_ms }) = self.told().await {
                return (reason, wait_ms);
            }
        }
    }

    async fn end(self) {
        self.cancel.cancel();
        tokio::time::timeout(WAIT, self.running)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        self.api.abort();
    }
}

fn identity() -> Identity {
    Identity {
        platform: Platform::Slack,
        account: "T1".to_owned(),
        account_name: "Acme".to_owned(),
        user_id: "UBOT".to_owned(),
        other_ids: vec!["BBOT".to_owned()],
        username: None,
        display_name: "bot".to_owned(),
        warnings: vec![],
        organisation: None,
    }
}

fn hello(approximate_connection_time: u32) -> String {
    json!({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"},
        "debug_info": {"host": "applink-1", "approximate_connection_time": approximate_connection_time}})
    .to_string()
}

fn envelope(id: &str) -> String {
    json!({"type": "events_api", "envelope_id": id, "accepts_response_payload": false,
        "payload": {"type": "event_callback", "event": {"type": "message", "user": "U1", "text": "hi",
            "channel": "C1", "channel_type": "channel", "ts": "1763712000.000100"}}})
    .to_string()
}

async fn say(socket: &mut Socket, text: &str) {
    socket.send(Message::text(text)).await.unwrap();
}

/// The next frame that is no ping of the client.
async fn frame(socket: &mut Socket) -> Option<Message> {
    loop {
        match tokio::time::timeout(WAIT, socket.next()).await.unwrap() {
            Some(Ok(Message::Ping(_))) => {}
            Some(Ok(frame)) => return Some(frame),
            _ => return None,
        }
    }
}

#[tokio::test]
async fn an_acknowledgement_names_the_envelope_and_nothing_else() {
    let stage = Stage::new(|_| {}).await;
    let mut socket = stage.greeted().await;
    say(&mut socket, &envelope("e-1")).await;
    assert_eq!(
        frame(&mut socket).await,
        Some(Message::text(r#"{"envelope_id":"e-1"}"#))
    );
    let odd = r#"{"type":"events_api","type":"again","envelope_id":"e-2","payload":{}}"#;
    say(&mut socket, odd).await;
    assert_eq!(
        frame(&mut socket).await,
        Some(Message::text(r#"{"envelope_id":"e-2"}"#))
    );
    say(&mut socket, r#"{"type":"events_api","envelope_id":"e-3"}"#).await;
    assert_eq!(
        frame(&mut socket).await,
        Some(Message::text(r#"{"envelope_id":"e-3"}"#))
    );
    drop(socket);
    stage.end().await;
}

#[tokio::test]
async fn a_server_ping_is_answered_with_its_own_payload() {
    let stage = Stage::new(|_| {}).await;
    let mut socket = stage.greeted().await;
    let payload = b"Ping from applink-2".to_vec();
    socket
        .send(Message::Ping(payload.clone().into()))
        .await
        .unwrap();
    assert_eq!(
        frame(&mut socket).await,
        Some(Message::Pong(payload.into()))
    );
    drop(socket);
    stage.end().await;
}

#[tokio::test]
async fn an_envelope_before_hello_is_not_lost() {
    let mut stage = Stage::new(|_| {}).await;
    let mut socket = stage.socket().await;
    say(&mut socket, &envelope("e-early")).await;
    say(&mut socket, &hello(18_060)).await;
    assert_eq!(
        frame(&mut socket).await,
        Some(Message::text(r#"{"envelope_id":"e-early"}"#))
    );
    loop {
        if let Told::Envelope(envelope) = stage.told().await {
            assert_eq!(envelope.delivery_id, "e-early");
            break;
        }
    }
    drop(socket);
    stage.end().await;
}

#[tokio::test]
async fn a_socket_that_does_not_say_hello_is_given_up() {
    let mut stage = Stage::new(|timings| timings.hello_ms = 50).await;
    let silent = stage.socket().await;
    assert_eq!(stage.reason().await, "the socket did not say hello");
    let mut closed = stage.socket().await;
    closed.close(None).await.unwrap();
    assert_eq!(
        stage.reason().await,
        "the server closed the socket before hello"
    );
    drop(silent);
    stage.end().await;
}

#[tokio::test]
async fn a_handshake_that_must_wait_waits_as_long_as_it_is_told() {
    let mut stage = Stage::new(|_| {}).await;
    let (mut stream, _) = stage.sockets.accept().await.unwrap();
    let answer = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(answer.as_bytes()).await.unwrap();
    assert_eq!(
        stage.reason().await,
        "the websocket handshake must wait 1000 ms"
    );
    drop(stream);
    drop(stage.greeted().await);
    stage.end().await;
}

#[tokio::test]
async fn a_socket_on_which_nothing_is_heard_is_given_up() {
    let quiet = |timings: &mut SocketTimings| {
        timings.idle_ms = 100;
        timings.ping_every_ms = 60_000;
    };
    let mut stage = Stage::new(quiet).await;
    let socket = stage.greeted().await;
    assert_eq!(stage.reason().await, "nothing was heard for too long");
    drop(socket);
    stage.end().await;
}

#[tokio::test]
async fn a_connection_is_replaced_before_its_announced_end_and_then_closed() {
    let quick = |timings: &mut SocketTimings| timings.linger_ms = 50;
    let stage = Stage::new(quick).await;
    let mut first = stage.socket().await;
    say(&mut first, &hello(1)).await;
    // The first socket is still open and heard while the second one says hello.
    let mut second = stage.socket().await;
    say(&mut first, &envelope("e-old")).await;
    assert_eq!(
        frame(&mut first).await,
        Some(Message::text(r#"{"envelope_id":"e-old"}"#))
    );
    say(&mut second, &hello(18_060)).await;
    assert!(matches!(
        frame(&mut first).await,
        Some(Message::Close(Some(_)))
    ));
    say(&mut second, &envelope("e-new")).await;
    assert_eq!(
        frame(&mut second).await,
        Some(Message::text(r#"{"envelope_id":"e-new"}"#))
    );
    drop((first, second));
    stage.end().await;
}

#[tokio::test]
async fn a_break_after_refreshes_and_breaks_of_young_sockets_waits_no_longer_than_the_first() {
    let patient = |timings: &mut SocketTimings| {
        timings.backoff_max_ms = 60_000;
        timings.linger_ms = 0;
    };
    let mut stage = Stage::new(patient).await;
    let refresh = json!({"type": "disconnect", "reason": "refresh_requested"}).to_string();
    let mut socket = stage.greeted().await;
    for _ in 0..4 {
        say(&mut socket, &refresh).await;
        let next = stage.greeted().await;
        stage.until_connected(2).await;
        stage.until_connected(1).await;
        socket = next;
    }
    for _ in 0..4 {
        drop(socket);
        let (reason, wait_ms) = stage.retrying().await;
        assert!(wait_ms <= 10, "{wait_ms} ms after {reason}");
        socket = stage.greeted().await;
    }
    drop(socket);
    stage.end().await;
}

#[tokio::test]
async fn too_many_sockets_close_ours_before_another_is_opened() {
    let mut stage = Stage::new(|timings| timings.too_many_ms = 20).await;
    let mut first = stage.greeted().await;
    let too_many =
        json!({"type": "disconnect", "reason": "too_many_websockets", "num_connections": 11});
    say(&mut first, &too_many.to_string()).await;
    assert!(matches!(
        frame(&mut first).await,
        Some(Message::Close(Some(_)))
    ));
    assert_eq!(frame(&mut first).await, None);
    assert_eq!(stage.reason().await, "the app has too many sockets open");
    let second = stage.greeted().await;
    drop(second);
    stage.end().await;
}
