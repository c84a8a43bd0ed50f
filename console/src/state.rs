//! What every request needs, and the way through the walls to a page.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::desk::{Ask, Deed, Desk, Trace};
use crate::page::PageRefusal;
use crate::person::{ConsoleUser, EntryVia, UserRole};
use crate::sessions::{ConsoleDoors, Visitor};
use crate::views::{Room, Status};
use crate::{assets, live, login, pages, walls};

/// The largest form that is read, in bytes.
const FORM_MAX_BYTES: usize = 64 << 10;
/// How long making a page may take.
const WORK: Duration = Duration::from_secs(10);
/// How old the counts beside the navigation may be.
const COUNTS_LIVE: Duration = Duration::from_secs(1);

/// The console's configuration.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Host names under which it is reached, besides this machine's own.
    pub hosts: Vec<String>,
    /// Addresses of proxies that are trusted to name the user.
    pub trusted_proxies: Vec<IpAddr>,
    /// The header in which they name the user.
    pub user_header: String,
    /// Everybody who may sign in, with the name that a proxy uses for them.
    pub people: Vec<(ConsoleUser, Option<String>)>,
}

/// The address that a request came from.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub Option<IpAddr>);

/// A cached status of the daemon, and when it was read.
type CountedStatus = (Instant, Arc<Status>);

/// What every request needs.
#[derive(Clone)]
pub(crate) struct ConsoleState {
    pub(crate) desk: Arc<dyn Desk>,
    pub(crate) doors: Arc<ConsoleDoors>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) cancel: CancellationToken,
    counted: Arc<Mutex<Option<CountedStatus>>>,
}

/// All pages. Each request carries the [`PeerAddress`] it came from as an extension; streams end when cancelled.
pub fn router(
    desk: Arc<dyn Desk>,
    doors: Arc<ConsoleDoors>,
    settings: Settings,
    cancel: CancellationToken,
) -> Router {
    let console = ConsoleState {
        desk,
        doors,
        settings: Arc::new(settings),
        streams: Arc::new(Semaphore::new(live::STREAMS_MAX)),
        cancel,
        counted: Arc::default(),
    };
    let guarded = |role: UserRole, paths: Router<ConsoleState>| {
        paths.route_layer(from_fn(move |request, next| need(role, request, next)))
    };
    let inside = guarded(UserRole::Viewer, pages::of_viewers())
        .merge(guarded(UserRole::Operator, pages::of_operators()))
        .merge(guarded(UserRole::Admin, pages::of_admins()))
        .route("/live", get(live::live))
        .route("/logout", post(login::leave))
        .route_layer(from_fn_with_state(console.clone(), come_in));
    Router::new()
        .route("/login", get(login::form).post(login::come_in))
        .route("/assets/{name}", get(assets::asset))
        .merge(inside)
        .fallback(|| async { PageRefusal::no_page() })
        .layer(DefaultBodyLimit::max(FORM_MAX_BYTES))
        .layer(from_fn_with_state(console.clone(), pass))
        .with_state(console)
}

/// Checks the first two walls, and sets the headers of the third.
async fn pass(State(console): State<ConsoleState>, request: Request, next: Next) -> Response {
    let (method, headers) = (request.method(), request.headers());
    let mut answer = if !walls::is_known_host(headers, &console.settings.hosts) {
        PageRefusal::foreign_host().into_response()
    } else if !walls::is_own(method, headers) {
        PageRefusal::foreign_page().into_response()
    } else {
        match timeout(WORK, next.run(request)).await {
            Ok(answer) => answer,
            Err(_) => PageRefusal::too_slow().into_response(),
        }
    };
    walls::put_on(answer.headers_mut());
    answer
}

/// Finds the visitor of a request, and lets no other request through.
async fn come_in(
    State(console): State<ConsoleState>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request
        .extensions()
        .get::<PeerAddress>()
        .and_then(|peer| peer.0);
    let visitor = match console.visitor(peer, request.headers()).await {
        Ok(Some(visitor)) => visitor,
        Ok(None) if *request.method() == Method::GET && request.uri().path() != "/live" => {
            return Redirect::to("/login").into_response();
        }
        Ok(None) => return PageRefusal::not_in().into_response(),
        Err(refusal) => return refusal.into_response(),
    };
    if !console.doors.may_ask(&visitor.key) {
        return PageRefusal::too_often().into_response();
    }
    request.extensions_mut().insert(visitor);
    next.run(request).await
}

/// Lets requests through whose visitor's role is high enough.
async fn need(role: UserRole, request: Request, next: Next) -> Response {
    match request.extensions().get::<Visitor>() {
        Some(visitor) if visitor.person.role >= role => next.run(request).await,
        Some(visitor) => PageRefusal::role(visitor.person.role, role).into_response(),
        None => PageRefusal::not_in().into_response(),
    }
}

/// The visitor, as handlers take it.
pub(crate) type Who = Extension<Visitor>;

impl ConsoleState {
    /// Finds the visitor of a request. A proxy's header counts only where the settings name the proxy.
    async fn visitor(
        &self,
        peer: Option<IpAddr>,
        headers: &HeaderMap,
    ) -> Result<Option<Visitor>, PageRefusal> {
        let header = self.settings.user_header.as_str();
        let mut said = headers.get_all(header).iter();
        let is_trusted = peer.is_some_and(|peer| {
            let peer = peer.to_canonical();
            self.settings.trusted_proxies.contains(&peer)
        });
        match (said.next(), said.next()) {
            (None, _) => {}
            (Some(_), Some(_)) => return Err(PageRefusal::proxy("the header is there twice")),
            // The header comes from an address that is no trusted proxy.
            (Some(_), None) if !is_trusted => {
                warn!(
                    "a request to the console bore the header of a proxy, and came from an address that is none"
                );
                return Err(PageRefusal::proxy(
                    "this address is no proxy of the settings",
                ));
            }
            (Some(login), None) => {
                let login = login.to_str().unwrap_or_default();
                return self.proxied(login).await.map(Some);
            }
        }
        let cookie = walls::cookie(headers).borne(headers);
        Ok(cookie.and_then(|cookie| self.doors.of_cookie(cookie)))
    }

    async fn proxied(&self, login: &str) -> Result<Visitor, PageRefusal> {
        let people = &self.settings.people;
        let found = people
            .iter()
            .find(|(_, known)| known.as_deref() == Some(login));
        let (person, _) = found.ok_or_else(PageRefusal::unknown_login)?;
        let person = ConsoleUser {
            via: EntryVia::Proxy,
            ..person.clone()
        };
        let (visitor, is_new) = self.doors.of_proxy(&person);
        if is_new && let Err(cause) = self.desk.note(&person, Trace::CameIn).await {
            self.doors.leave(&visitor.key);
            return Err(cause.into());
        }
        Ok(visitor)
    }

    /// Asks the desk.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, ask: Ask) -> Result<T, PageRefusal> {
        let answer = self.desk.ask(ask).await?;
        serde_json::from_value(answer).map_err(|cause| {
            warn!(error = %cause, "a view has another form than the console knows");
            PageRefusal::strange()
        })
    }

    /// Does something, and redirects to a page that shows the result.
    pub(crate) async fn act(
        &self,
        who: &Visitor,
        deed: Deed,
        back: &str,
    ) -> Result<Response, PageRefusal> {
        let done = self.desk.act(&who.person, deed).await?;
        self.doors.tell(&who.key, done.told);
        Ok((StatusCode::SEE_OTHER, [(header::LOCATION, back)]).into_response())
    }

    /// Whether a visitor is shown the texts of a room.
    pub(crate) fn shows(&self, who: &Visitor, room: &Room) -> bool {
        !room.is_direct
            || (who.person.role >= UserRole::Operator && self.doors.is_looking(&who.key, &room.id))
    }

    /// The daemon at a glance, at most [`COUNTS_LIVE`] old.
    pub(crate) async fn status(&self) -> Result<Arc<Status>, PageRefusal> {
        let known = self.counted();
        if let Some((at, status)) = known
            && at.elapsed() < COUNTS_LIVE
        {
            return Ok(status);
        }
        let status: Arc<Status> = Arc::new(self.ask(Ask::Status).await?);
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        *counted = Some((Instant::now(), Arc::clone(&status)));
        Ok(status)
    }

    fn counted(&self) -> Option<CountedStatus> {
        self.counted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
