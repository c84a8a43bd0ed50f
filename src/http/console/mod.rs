//! The web console's listener: the pages of `vocative-console`, served through a door with a number of seats, over what
//! operators can ask. Reading order: this page, `reading` (what pages show), `rooms` (which room something is of),
//! `skills`, `acting` (what people do, with its row in the audit), `erasing`.

mod acting;
mod erasing;
mod reading;
mod rooms;
mod skills;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::serve::IncomingStream;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};
use vocative_console::{
    Ask, ConsoleDoors, ConsoleUser, Deed, Desk, DeskAnswer, DeskError, Done, EntryVia, PeerAddress,
    Settings, Trace, UserRole,
};

use self::erasing::Erasures;
use self::skills::SkillsSeen;
use super::door::{ListenerDoor, Outside};
use crate::admin::operations::{ConsoleDoor, OperationError, Operations};
use crate::config::{Console, ConsolePerson, ConsoleRole};
use vocative_store::StoreError;

/// Connections at once.
const CONNECTIONS_MAX: usize = 128;

/// The way into a console that is to be served at this address.
#[must_use]
pub fn door(settings: &Console, address: SocketAddr) -> ConsoleDoor {
    ConsoleDoor {
        doors: Arc::new(ConsoleDoors::default()),
        people: settings.people.iter().map(person).collect(),
        address,
        host: settings.hosts.first().cloned(),
    }
}

fn person(settings: &ConsolePerson) -> ConsoleUser {
    ConsoleUser {
        name: settings.name.clone(),
        role: match settings.role {
            ConsoleRole::Viewer => UserRole::Viewer,
            ConsoleRole::Operator => UserRole::Operator,
            ConsoleRole::Admin => UserRole::Admin,
        },
        via: EntryVia::Link,
    }
}

/// Serves until cancelled.
pub async fn serve(
    listener: TcpListener,
    settings: Console,
    door: ConsoleDoor,
    operations: Operations,
    cancel: CancellationToken,
) {
    let address = door.address.to_string();
    let running = operations.running.as_ref();
    let health = running.map(|running| {
        let address = address.clone();
        running.health.listener("console", address, CONNECTIONS_MAX)
    });
    let health = health.unwrap_or_default();
    let people = settings.people.iter();
    let known = Settings {
        hosts: settings.hosts.clone(),
        trusted_proxies: settings.trusted_proxies.clone(),
        user_header: settings.user_header.clone(),
        people: people.map(|it| (person(it), it.login.clone())).collect(),
    };
    let desk = Arc::new(DaemonDesk {
        operations,
        people: settings.people,
        erasures: Erasures::default(),
        skills: SkillsSeen::default(),
    });
    let pages = vocative_console::router(desk, door.doors, known, cancel.clone());
    let pages = pages.layer(from_fn(with_peer));
    let service = pages.into_make_service_with_connect_info::<From>();
    info!(%address, "the console is served");
    let door = ListenerDoor::new(Outside::Tcp(listener), CONNECTIONS_MAX, health);
    let served =
        axum::serve(door, service).with_graceful_shutdown(async move { cancel.cancelled().await });
    if let Err(cause) = served.await {
        error!(error = %cause, "the console's listener ended");
    }
}

/// Where a connection comes from.
#[derive(Clone, Copy)]
struct From(PeerAddress);

impl Connected<IncomingStream<'_, ListenerDoor>> for From {
    fn connect_info(stream: IncomingStream<'_, ListenerDoor>) -> Self {
        Self(PeerAddress(
            stream.remote_addr().peer.map(|address| address.ip()),
        ))
    }
}

async fn with_peer(
    Extension(ConnectInfo(From(peer))): Extension<ConnectInfo<From>>,
    mut request: Request,
    next: Next,
) -> Response {
    request.extensions_mut().insert(peer);
    next.run(request).await
}

/// The daemon, as the console sees it.
struct DaemonDesk {
    operations: Operations,
    people: Vec<ConsolePerson>,
    erasures: Erasures,
    skills: SkillsSeen,
}

impl Desk for DaemonDesk {
    fn ask(&self, ask: Ask) -> DeskAnswer<'_> {
        Box::pin(async move { self.read(ask).await.map_err(refused) })
    }

    fn act<'a>(&'a self, by: &'a ConsoleUser, deed: Deed) -> DeskAnswer<'a, Done> {
        Box::pin(self.recorded(by, deed))
    }

    fn note<'a>(&'a self, by: &'a ConsoleUser, trace: Trace) -> DeskAnswer<'a, ()> {
        Box::pin(self.traced(by, trace))
    }

    fn commits(&self) -> Option<watch::Receiver<()>> {
        self.operations.store.commits_seen()
    }

    fn now_ms(&self) -> i64 {
        (self.operations.clock)()
    }
}

fn refused(cause: OperationError) -> DeskError {
    match cause {
        OperationError::Missing(what) => DeskError::Missing(what),
        OperationError::Over(what) => DeskError::Over(what),
        OperationError::NotTheirs(what) => DeskError::NotTheirs(what),
        OperationError::Wrong(what) => DeskError::Wrong(what),
        OperationError::Store(StoreError::NotFound { what }) => {
            DeskError::Missing(format!("there is no {what}"))
        }
        OperationError::Store(cause) => DeskError::Unavailable(cause.to_string()),
    }
}

fn json(view: &impl serde::Serialize) -> Value {
    serde_json::to_value(view).expect("views are plain data with string keys")
}
