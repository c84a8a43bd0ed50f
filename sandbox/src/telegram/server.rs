//! The loopback Telegram as a running server: HTTP in, HTTP out, and what people see.
//!
//! Owns routing, authorisation, faults and the wire log. What a method does is in `methods` and
//! `polling`.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, DATE, HeaderValue, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::date::http_date;
use super::failure::ApiFailure;
use super::faults::{TelegramFault, TelegramFaults, delay_before};
use super::methods::{self, Success};
use super::params::{BODY_BYTES_MAX, MethodParams};
use super::polling::{Polls, get_updates};
use super::rooms::{DRAFT_LIFE_S, KeptMessage, TelegramPreview, TelegramRooms};
use super::world::{TelegramChatKind, TelegramWorld};
use super::{command_lists, control, polling, webhook};
use crate::percent;
use crate::socket::{RequestConnection, Serving};
use crate::wire::{WireKind, WireLog, WirePeer};

/// What the server's parts share.
#[derive(Clone, Debug)]
pub(super) struct SharedTelegram(Arc<TelegramInner>);

#[derive(Debug)]
struct TelegramInner {
    rooms: Mutex<TelegramRooms>,
    polls: Mutex<Polls>,
    changed: watch::Sender<u64>,
    faults: TelegramFaults,
    wire: WireLog,
    /// The world as it was at the start.
    initial: TelegramWorld,
}

impl SharedTelegram {
    /// Puts everything back as it was at the start; ids go on, a webhook stays.
    pub(super) fn reset(&self) {
        self.0.faults.reset();
        let initial = self.0.initial.clone();
        self.act(|rooms| rooms.reset(initial));
    }

    /// Changes the rooms and wakes whoever waits for a change.
    pub(super) fn act<R>(&self, act: impl FnOnce(&mut TelegramRooms) -> R) -> R {
        let result = self.peek(act);
        self.announce_confirmed();
        result
    }

    /// Touches the rooms without waking anybody.
    pub(super) fn peek<R>(&self, act: impl FnOnce(&mut TelegramRooms) -> R) -> R {
        act(&mut self
            .0
            .rooms
            .lock()
            .expect("no act on the rooms panics half-way"))
    }

    /// Wakes whoever waits for a change.
    pub(super) fn announce_confirmed(&self) {
        self.0.changed.send_modify(|count| *count += 1);
    }

    pub(super) fn polls<R>(&self, act: impl FnOnce(&mut Polls) -> R) -> R {
        act(&mut self.0.polls.lock().expect("no holder of this lock panics"))
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    pub(super) fn faults(&self) -> &TelegramFaults {
        &self.0.faults
    }

    pub(super) fn wire(&self) -> &WireLog {
        &self.0.wire
    }
}

/// A message as people in the room see it.
#[derive(Clone, Debug, PartialEq)]
pub struct TelegramPost {
    /// Id, unique in its chat.
    pub message_id: i64,
    /// The account that wrote it; none in channels.
    pub from: Option<i64>,
    /// Forum topic.
    pub thread: Option<i64>,
    /// Text or caption; empty for service messages.
    pub text: String,
    /// Entities of the text or caption, as on the wire.
    pub entities: Value,
    /// The message that it really replies to (never a topic's first message by implication).
    pub reply_to: Option<i64>,
    /// The bot posted it; in channels `from` does not show that.
    pub by_bot: bool,
    /// Its text was changed after it was sent.
    pub edited: bool,
    /// It is gone; people no longer see it.
    pub deleted: bool,
    /// The buttons under it, or the reply keyboard that came with it, as on the wire.
    pub keyboard: Option<Value>,
    /// The whole message as on the wire.
    pub wire: Value,
}

/// A loopback Telegram Bot API server.
#[derive(Debug)]
pub struct TelegramServer {
    shared: SharedTelegram,
    serving: Serving,
    /// Delivers to the webhook as long as this handle is held.
    calling: AbortOnDropHandle<()>,
}

impl TelegramServer {
    /// Starts serving `world` on `addr`; port 0 takes a free one.
    ///
    /// # Errors
    /// When the address can't be bound.
    pub async fn start(world: TelegramWorld, addr: SocketAddr, wire: WireLog) -> io::Result<Self> {
        let (changed, _) = watch::channel(0);
        let shared = SharedTelegram(Arc::new(TelegramInner {
            initial: world.clone(),
            rooms: Mutex::new(TelegramRooms::new(world)),
            polls: Mutex::default(),
            changed,
            faults: TelegramFaults::default(),
            wire,
        }));
        let router = Router::new()
            .nest("/control", control::routes())
            .fallback(answer)
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
            .with_state(shared.clone());
        let serving = Serving::start(addr, router).await?;
        let calling = AbortOnDropHandle::new(tokio::spawn(webhook::run(shared.clone())));
        Ok(Self {
            shared,
            serving,
            calling,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.serving.addr()
    }

    /// The root that a client is configured with; methods are at `/bot<token>/<method>`.
    #[must_use]
    pub fn api_url(&self) -> String {
        format!("http://{}", self.addr())
    }

    /// The bot's token.
    #[must_use]
    pub fn token(&self) -> String {
        self.look(|rooms| rooms.world.bot.token.clone())
    }

    /// The faults to come.
    #[must_use]
    pub fn faults(&self) -> &TelegramFaults {
        self.shared.faults()
    }

    pub(super) fn shared(&self) -> &SharedTelegram {
        &self.shared
    }

    pub(super) fn act<R>(&self, act: impl FnOnce(&mut TelegramRooms) -> R) -> R {
        self.shared.act(act)
    }

    pub(super) fn look<R>(&self, look: impl FnOnce(&TelegramRooms) -> R) -> R {
        self.shared.peek(|rooms| look(rooms))
    }

    /// Everything posted in a chat, oldest first: service messages and deleted ones too.
    #[must_use]
    pub fn posts(&self, chat: i64) -> Vec<TelegramPost> {
        self.look(|rooms| posts(rooms, chat))
    }

    /// The ids of the supergroups there are now, in no order.
    #[must_use]
    pub fn supergroups(&self) -> Vec<i64> {
        self.look(|rooms| {
            let chats = rooms.world.chats.iter();
            let chats = chats.filter(|chat| chat.kind == TelegramChatKind::Supergroup);
            chats.map(|chat| chat.id).collect()
        })
    }

    /// The posts of the bot in a chat, oldest first.
    #[must_use]
    pub fn bot_posts(&self, chat: i64) -> Vec<TelegramPost> {
        let mut posts = self.posts(chat);
        posts.retain(|post| post.by_bot);
        posts
    }

    /// Waits until a post of a chat fulfils a condition; `None` when the time is over.
    pub async fn wait_for_post(
        &self,
        chat: i64,
        mut wanted: impl FnMut(&TelegramPost) -> bool,
        timeout: Duration,
    ) -> Option<TelegramPost> {
        // Only messages that changed since the last look are checked again: rooms can be long.
        let mut seen = 0;
        self.wait_for(timeout, |rooms| {
            let log = rooms.chats.get(&chat);
            let found = log
                .into_iter()
                .flat_map(|log| &log.messages)
                .filter(|(_, stored)| stored.touched > seen)
                .map(|(&id, stored)| as_post(id, stored))
                .find(|post| wanted(post));
            seen = rooms.newest_change();
            found
        })
        .await
    }

    /// Waits until no update is unconfirmed. False when the time is over.
    pub async fn wait_until_confirmed(&self, timeout: Duration) -> bool {
        self.wait_for(timeout, |rooms| (rooms.queue.len() == 0).then_some(()))
            .await
            .is_some()
    }

    /// Waits until the bot showed a chat action such as `typing`. False when the time is over.
    pub async fn wait_for_action(&self, chat: i64, action: &str, timeout: Duration) -> bool {
        self.wait_for(timeout, |rooms| {
            let shown = rooms.actions.iter();
            shown
                .into_iter()
                .any(|(place, shown)| *place == chat && shown == action)
                .then_some(())
        })
        .await
        .is_some()
    }

    async fn wait_for<R>(
        &self,
        timeout: Duration,
        mut look: impl FnMut(&TelegramRooms) -> Option<R>,
    ) -> Option<R> {
        let mut changes = self.shared.changes();
        let found = async {
            loop {
                if let Some(found) = self.look(&mut look) {
                    return found;
                }
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::time::timeout(timeout, found).await.ok()
    }

    /// How many updates are not confirmed yet.
    #[must_use]
    pub fn pending_updates(&self) -> usize {
        self.shared.peek(|rooms| {
            let now_s = rooms.now_s();
            rooms.queue.expire(now_s);
            rooms.queue.len()
        })
    }

    /// How many `getUpdates` calls were answered.
    #[must_use]
    pub fn polls_answered(&self) -> u64 {
        self.shared.polls(|polls| polls.answered)
    }

    /// How many polls wait for an update: 0 or 1.
    #[must_use]
    pub fn polls_waiting(&self) -> usize {
        self.shared.polls(|polls| usize::from(polls.is_waiting()))
    }

    /// Where updates are delivered; empty without a webhook.
    #[must_use]
    pub fn webhook_url(&self) -> String {
        self.look(|rooms| rooms.webhook.url().to_owned())
    }

    /// The reaction that the bot set on a message: an array as on the wire.
    #[must_use]
    pub fn bot_reaction(&self, chat: i64, message: i64) -> Option<Value> {
        self.look(|rooms| rooms.reactions.get(&(chat, message)).cloned())
    }

    /// Every draft that the bot showed in a chat, oldest first.
    #[must_use]
    pub fn drafts(&self, chat: i64) -> Vec<TelegramPreview> {
        let of_chat = |rooms: &TelegramRooms| {
            let drafts = rooms.drafts.iter().filter(|draft| draft.chat == chat);
            drafts.cloned().collect()
        };
        self.look(of_chat)
    }

    /// The draft that a person sees now.
    #[must_use]
    pub fn shown_draft(&self, chat: i64) -> Option<TelegramPreview> {
        let newest = self.drafts(chat).pop().filter(|draft| !draft.is_gone)?;
        let now_s = self.shared.peek(|rooms| rooms.now_s());
        (now_s - newest.shown_s < DRAFT_LIFE_S).then_some(newest)
    }

    /// The commands that the bot registered for a scope, given as the API writes scopes.
    #[must_use]
    pub fn bot_commands_of(&self, scope: &Value) -> Value {
        let key = command_lists::key(scope);
        self.look(|rooms| rooms.commands.get(&key).cloned())
            .unwrap_or_else(|| json!([]))
    }

    /// Stops at once: every open connection is reset.
    pub async fn stop(self) {
        self.calling.abort();
        self.serving.stop().await;
    }
}

/// The messages of a chat as people see them.
pub(super) fn posts(rooms: &TelegramRooms, chat: i64) -> Vec<TelegramPost> {
    let log = rooms.chats.get(&chat);
    let stored = log.into_iter().flat_map(|log| &log.messages);
    stored.map(|(&id, stored)| as_post(id, stored)).collect()
}

fn as_post(id: i64, stored: &KeptMessage) -> TelegramPost {
    let wire = Value::Object(stored.wire.clone());
    let caption = wire.get("caption").or(wire.get("text"));
    let entities = wire.get("caption_entities").or(wire.get("entities"));
    TelegramPost {
        message_id: id,
        from: wire["from"]["id"].as_i64(),
        thread: stored.topic,
        text: caption.and_then(Value::as_str).unwrap_or("").to_owned(),
        entities: entities.cloned().unwrap_or_else(|| json!([])),
        reply_to: wire["reply_to_message"]["message_id"].as_i64(),
        by_bot: stored.by_bot,
        edited: stored.edited,
        deleted: stored.deleted,
        keyboard: wire
            .get("reply_markup")
            .or(stored.keyboard.as_ref())
            .cloned(),
        wire,
    }
}

/// Answers everything that is not the control surface.
async fn answer(
    State(shared): State<SharedTelegram>,
    ConnectInfo(connection): ConnectInfo<RequestConnection>,
    request: Request,
) -> Response {
    let path = percent::decoded(request.uri().path());
    if let Some(file) = path.strip_prefix("/file/bot") {
        return download(&shared, &connection, file).await;
    }
    let Some((token, method)) = split_path(&path) else {
        return failed(&ApiFailure::plain(404, "Not Found"));
    };
    if let Err(refused) = authorise(&shared, token) {
        return failed(&refused);
    }
    let params = match MethodParams::read(request).await {
        Ok(params) => params,
        Err(refused) => return failed(&refused),
    };
    let method = if method.is_empty() {
        params.text("method").to_owned()
    } else {
        method.to_owned()
    };
    let name = methods::spelled(&method);
    let wire = &shared.0.wire;
    let log = |kind, status, body| wire.append(WirePeer::Telegram, kind, &name, status, body);
    log(WireKind::Request, None, params.for_log());
    let fault = shared.faults().take(&method);
    let answer = match handle(&shared, &method, &params, fault.as_ref()).await {
        Handled::Answer(answer) => answer,
        Handled::Reset => {
            connection.cut();
            return StatusCode::OK.into_response();
        }
    };
    log(WireKind::Response, Some(answer.status), answer.body.clone());
    let date = http_date(shared.peek(|rooms| rooms.now_s()));
    let mut response = answer.into_response();
    if let Ok(date) = HeaderValue::from_str(&date) {
        response.headers_mut().insert(DATE, date);
    }
    response
}

/// `/bot<token>/<method>` or `/bot<token>/test/<method>`.
fn split_path(path: &str) -> Option<(&str, &str)> {
    let (token, method) = path
        .strip_prefix("/bot")?
        .split_once('/')
        .unwrap_or((path.strip_prefix("/bot")?, ""));
    let method = method.strip_prefix("test/").unwrap_or(method);
    Some((token, method.trim_end_matches('/')))
}

fn authorise(shared: &SharedTelegram, token: &str) -> Result<(), ApiFailure> {
    let well_formed = token.len() <= 80
        && !token.starts_with('0')
        && token
            .split_once(':')
            .is_some_and(|(id, _)| id.parse::<u64>().is_ok_and(|id| id > 0));
    if !well_formed {
        return Err(ApiFailure::worded(401, "invalid token specified"));
    }
    let known = shared.peek(|rooms| rooms.world.bot.token == token && !rooms.logged_out);
    match known {
        true => Ok(()),
        false => Err(ApiFailure::plain(401, "Unauthorized")),
    }
}

enum Handled {
    Answer(MethodAnswer),
    Reset,
}

struct MethodAnswer {
    status: u16,
    body: Value,
    /// The text of a body that is not JSON.
    text: Option<&'static str>,
}

impl MethodAnswer {
    fn of(result: Result<Success, ApiFailure>) -> Self {
        match result {
            Ok(success) => Self {
                status: 200,
                body: success.body(),
                text: None,
            },
            Err(failure) => Self {
                status: failure.code,
                body: failure.body(),
                text: None,
            },
        }
    }

    fn text(status: u16, text: &'static str) -> Self {
        Self {
            status,
            body: text.into(),
            text: Some(text),
        }
    }
}

impl IntoResponse for MethodAnswer {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let mut response = Response::builder().status(status);
        if let Some(seconds) = self.body["parameters"]["retry_after"].as_u64() {
            response = response.header(RETRY_AFTER, seconds);
        }
        let (content_type, body) = match self.text {
            Some(text) => ("text/html", text.to_owned()),
            None => ("application/json", self.body.to_string()),
        };
        response
            .header(CONTENT_TYPE, content_type)
            .body(Body::from(body))
            .unwrap_or_else(|_| status.into_response())
    }
}

fn failed(failure: &ApiFailure) -> Response {
    MethodAnswer::of(Err(failure.clone())).into_response()
}

/// The page of a gateway in front of the API.
const GATEWAY_PAGE: &str = "<html><head><title>502 Bad Gateway</title></head></html>";

async fn handle(
    shared: &SharedTelegram,
    method: &str,
    params: &MethodParams,
    fault: Option<&TelegramFault>,
) -> Handled {
    tokio::time::sleep(delay_before(fault)).await;
    match fault {
        Some(TelegramFault::ResetBefore) => return Handled::Reset,
        Some(TelegramFault::Stall) => std::future::pending().await,
        Some(TelegramFault::Gateway { code }) => {
            return Handled::Answer(MethodAnswer::text(*code, GATEWAY_PAGE));
        }
        Some(TelegramFault::Garbage) => return Handled::Answer(MethodAnswer::text(200, "<html>")),
        _ => {}
    }
    if let Some(refused) = fault.and_then(TelegramFault::refusal) {
        return Handled::Answer(MethodAnswer::of(Err(refused)));
    }
    let result = call(shared, method, params, fault).await;
    match fault {
        Some(TelegramFault::ResetAfter) => Handled::Reset,
        Some(TelegramFault::StallAfter) => std::future::pending().await,
        Some(TelegramFault::GatewayAfter { code }) => {
            Handled::Answer(MethodAnswer::text(*code, GATEWAY_PAGE))
        }
        Some(TelegramFault::LateAnswer { ms }) => {
            tokio::time::sleep(Duration::from_millis(*ms)).await;
            Handled::Answer(MethodAnswer::of(result))
        }
        _ => Handled::Answer(MethodAnswer::of(result)),
    }
}

/// Carries out a method.
pub(super) async fn call(
    shared: &SharedTelegram,
    method: &str,
    params: &MethodParams,
    fault: Option<&TelegramFault>,
) -> Result<Success, ApiFailure> {
    let method = method.to_ascii_lowercase();
    if method == "getupdates" {
        let ignore_offset = fault == Some(&TelegramFault::IgnoreOffset);
        let result = get_updates(shared, params, ignore_offset).await;
        shared.polls(|polls| polls.answered += 1);
        return result.map(Success::from);
    }
    let sends_max = shared.faults().sends_per_minute_max();
    let is_local = shared.faults().takes_loopback_webhooks();
    let result = shared.act(|rooms| match method.as_str() {
        "setwebhook" => webhook::set(rooms, params, is_local),
        _ => methods::call(rooms, &method, params, sends_max),
    });
    if method == "setwebhook" && result.is_ok() {
        shared.polls(|polls| polls.end_waiting(polling::by_webhook()));
    }
    result
}

/// The bytes of a file; the method `file` takes the faults.
async fn download(shared: &SharedTelegram, connection: &RequestConnection, path: &str) -> Response {
    let fault = shared.faults().take("file");
    tokio::time::sleep(delay_before(fault.as_ref())).await;
    match &fault {
        Some(TelegramFault::ResetBefore | TelegramFault::ResetAfter) => {
            connection.cut();
            return StatusCode::OK.into_response();
        }
        Some(TelegramFault::Gateway { code }) => {
            return MethodAnswer::text(*code, GATEWAY_PAGE).into_response();
        }
        Some(fault) if fault.refusal().is_some() => {
            return fault
                .refusal()
                .as_ref()
                .map_or_else(|| StatusCode::OK.into_response(), failed);
        }
        _ => {}
    }
    let found = path.split_once('/').and_then(|(token, file)| {
        authorise(shared, token).ok()?;
        let (_, id) = file.split_once('/')?;
        shared.peek(|rooms| Some(rooms.files.get(id)?.upload.bytes.clone()))
    });
    match found {
        Some(bytes) => bytes.into_response(),
        None => failed(&ApiFailure::plain(404, "Not Found")),
    }
}
