//! The handle of a running loopback Slack: start it, act as people, watch the room, stop it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{any, get, post};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::control;
use super::cut::{ConnectionCut, CutListener};
use super::deliveries::{AckedEnvelope, EnvelopeKind, SocketCommand};
use super::events::{self, EventObject};
use super::faults::SlackFaults;
use super::hooks;
use super::interactions::{self, BlockAction};
use super::post::{SlackEphemeral, SlackPost, UserPost};
use super::requests::{self, RequestUrls};
use super::socket;
use super::state::{SharedSlack, SlackCore, SlackDressing, SlackStatus};
use super::text::typed_to_wire;
use super::web;
use super::web::files::SlackFile;
use super::world::SlackWorld;
use crate::wire::WireLog;

/// Largest request body, in bytes.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Largest uploaded file with the form around it, in bytes. Slack's own limit is 1 GB.
const UPLOAD_BYTES_MAX: usize = 128 << 20;

/// A running loopback Slack. Dropping it stops it.
pub struct SlackServer {
    pub(super) shared: Arc<SharedSlack>,
    addr: SocketAddr,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for SlackServer {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

/// Starting and stopping.
impl SlackServer {
    /// Listens on `addr` (port 0 picks one) and serves until it is stopped.
    ///
    /// # Errors
    /// When the address can't be bound.
    pub async fn start(world: SlackWorld, addr: SocketAddr, wire: WireLog) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(SharedSlack::new(world, addr, wire));
        let router = Router::new()
            .route("/api/{method}", any(web::api))
            .route("/link/", get(socket::link))
            .route("/hooks/{kind}/{team}/{token}", post(hooks::hook))
            .route("/files-pri/{*path}", get(web::files::download))
            .route(
                "/upload/v1/{ticket}",
                post(web::files::upload).layer(DefaultBodyLimit::max(UPLOAD_BYTES_MAX)),
            )
            .route("/signin", get(web::files::sign_in_page))
            .merge(control::routes())
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
            .with_state(shared.clone());
        let listener = CutListener::new(listener, shared.stop.clone());
        let stop = shared.stop.clone();
        let serving = tokio::spawn(async move {
            let service = router.into_make_service_with_connect_info::<ConnectionCut>();
            let serve = axum::serve(listener, service)
                .with_graceful_shutdown(async move { stop.cancelled().await });
            if let Err(error) = serve.await {
                tracing::warn!(%error, "the loopback Slack ended early");
            }
        });
        let retrying = tokio::spawn(socket::run_retries(shared.clone()));
        let requesting = tokio::spawn(requests::run(shared.clone()));
        Ok(Self {
            shared,
            addr,
            tasks: vec![serving, retrying, requesting],
        })
    }

    /// Where Web API calls go, for example `http://127.0.0.1:4000/api/`.
    #[must_use]
    pub fn api_url(&self) -> String {
        format!("http://{}/api/", self.addr)
    }

    /// The address it listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Cuts every connection and frees the port.
    pub async fn stop(mut self) {
        self.shared.stop.cancel();
        for task in self.tasks.drain(..) {
            // A task that panicked has nothing left to stop.
            let _ = task.await;
        }
    }
}

/// Acting as people.
///
/// # Panics
/// These methods panic when a channel, a user or a message is not in this world: that is a mistake
/// of the test. [`SlackServer::try_post`] gives an error instead.
impl SlackServer {
    /// Posts text in wire form (already escaped, mentions as `<@U…>`); gives its ts.
    pub fn post(&self, channel: &str, user: &str, text: &str) -> String {
        self.post_with(plain_post(channel, user, text))
    }

    /// Posts what a person types: `@vocative` becomes a mention, `& < >` are escaped; gives its ts.
    pub fn say(&self, channel: &str, user: &str, typed: &str) -> String {
        self.post(channel, user, &self.typed(typed))
    }

    /// Replies in a thread, text in wire form; gives its ts.
    pub fn reply(&self, channel: &str, user: &str, thread_ts: &str, text: &str) -> String {
        self.post_with(UserPost {
            thread_ts: Some(thread_ts.to_owned()),
            ..plain_post(channel, user, text)
        })
    }

    /// Replies in a thread with what a person types; gives its ts.
    pub fn say_in(&self, channel: &str, user: &str, thread_ts: &str, typed: &str) -> String {
        self.reply(channel, user, thread_ts, &self.typed(typed))
    }

    /// Posts anything a person or another bot can post; gives its ts.
    pub fn post_with(&self, post: UserPost) -> String {
        self.try_post(post).expect("the post fits this world")
    }

    /// Posts, or says in a sentence why that can't be.
    ///
    /// # Errors
    /// When the channel or the author is unknown, or the channel is archived.
    pub fn try_post(&self, post: UserPost) -> Result<String, String> {
        let knobs = self.shared.faults.knobs();
        self.shared.change(|core| {
            let (ts, events) = core.user_post(post, &knobs)?;
            self.shared.emit(core, events);
            Ok(ts)
        })
    }

    /// Adds a file to the workspace, as if a person had uploaded it; returns its object, for [`UserPost::files`].
    pub fn add_file(&self, file: SlackFile) -> Value {
        self.shared.change(|core| core.add_file(file))
    }

    /// What `files.info` says a file is from now on: `snippet`, `post`, `external`, `hidden_by_limit`, ...
    pub fn set_file_mode(&self, id: &str, mode: &str) {
        self.shared.change(|core| core.set_file_mode(id, mode));
    }

    /// Deletes a file for good; messages that showed it change.
    pub fn delete_file(&self, id: &str) {
        self.shared.change(|core| {
            let events = core.delete_file(id);
            self.shared.emit(core, events);
        });
    }

    /// The bytes of a file that somebody uploaded.
    #[must_use]
    pub fn file_bytes(&self, id: &str) -> Option<Vec<u8>> {
        let bytes = |core: &SlackCore| {
            core.files
                .get(id)?
                .bytes
                .as_ref()
                .map(|bytes| bytes.to_vec())
        };
        self.shared.read(bytes)
    }

    /// What a person types, in wire form.
    #[must_use]
    pub fn typed(&self, typed: &str) -> String {
        self.shared.read(|core| typed_to_wire(&core.world, typed))
    }

    /// Edits a message; text in wire form.
    pub fn edit(&self, channel: &str, ts: &str, text: &str) {
        let knobs = self.shared.faults.knobs();
        self.act(|core| core.user_edit(channel, ts, text, &knobs));
    }

    /// Deletes a message.
    pub fn delete(&self, channel: &str, ts: &str) {
        self.act(|core| core.delete(channel, ts));
    }

    /// Unfurls a link: a `message_changed` with attachments that nobody edited.
    pub fn unfurl(&self, channel: &str, ts: &str, attachments: Value) {
        self.act(|core| core.hidden_change(channel, ts, Some(attachments)));
    }

    /// Sends the `message_changed` of a root whose reply counters moved.
    pub fn count_replies(&self, channel: &str, root_ts: &str) {
        self.act(|core| core.hidden_change(channel, root_ts, None));
    }

    /// Renames a channel.
    pub fn rename_channel(&self, channel: &str, name: &str) {
        self.act(|core| core.rename(channel, name));
    }

    /// Gives a channel another id, as when it comes to be shared; the old id no longer exists.
    pub fn change_channel_id(&self, channel: &str, new_id: &str) {
        self.act(|core| core.change_id(channel, new_id));
    }

    /// Invites the bot into a channel.
    pub fn invite_bot(&self, channel: &str, by: &str) {
        self.act(|core| core.set_bot_membership(channel, Some(by), true));
    }

    /// Removes the bot from a channel.
    pub fn remove_bot(&self, channel: &str, by: &str) {
        self.act(|core| core.set_bot_membership(channel, Some(by), false));
    }

    /// Archives or unarchives a channel.
    pub fn archive_channel(&self, channel: &str, by: &str, archived: bool) {
        self.act(|core| core.archive(channel, by, archived));
    }

    /// Adds a reaction.
    pub fn react(&self, channel: &str, user: &str, ts: &str, reaction: &str) {
        self.act(|core| core.user_react((channel, ts), user, reaction, true));
    }

    /// Removes a reaction.
    pub fn unreact(&self, channel: &str, user: &str, ts: &str, reaction: &str) {
        self.act(|core| core.user_react((channel, ts), user, reaction, false));
    }

    /// Presses the button that stops a streamed message. The app gets an event where it subscribes to
    /// `agent_session_stopped`.
    pub fn press_stop(&self, channel: &str, user: &str, ts: &str) {
        self.act(|core| core.press_stop(channel, user, ts));
    }

    /// Types a slash command.
    pub fn slash_command(&self, channel: &str, user: &str, command: &str, text: &str) {
        self.try_slash_command(channel, user, command, text)
            .expect("the command fits this world");
    }

    pub(super) fn try_slash_command(
        &self,
        channel: &str,
        user: &str,
        command: &str,
        text: &str,
    ) -> Result<(), String> {
        interactions::slash_command(&self.shared, [channel, user, command, text])
    }

    /// Clicks a button, or chooses in a menu.
    pub fn block_action(&self, action: &BlockAction) {
        self.try_block_action(action)
            .expect("the click fits this world");
    }

    /// Clicks, or says in a sentence why that can't be.
    ///
    /// # Errors
    /// When the person does not see the message or view, or there is no such element.
    pub fn try_block_action(&self, action: &BlockAction) -> Result<(), String> {
        interactions::click(&self.shared, action)
    }

    /// Fills in the modal that a person has open, by action id, and sends it.
    ///
    /// # Errors
    /// When the person has no modal open, or an input is missing or unknown.
    pub fn submit_view(&self, user: &str, values: &Value) -> Result<(), String> {
        let values = values.as_object().cloned().unwrap_or_default();
        interactions::send_view(&self.shared, (user, None), &values)
    }

    /// Closes the modal that a person has open.
    ///
    /// # Errors
    /// When the person has none open.
    pub fn close_view(&self, user: &str) -> Result<(), String> {
        interactions::close_view(&self.shared, user, None)
    }

    /// Opens the app's tab `home` or `messages` as a person.
    pub fn open_tab(&self, user: &str, tab: &str) {
        self.act(|core| interactions::open_tab(core, user, tab));
    }

    /// Puts everything back as it was at the start. Sockets stay open; ids and times go on.
    pub fn reset(&self) {
        self.shared.reset();
    }

    /// Sends an inner event object as it is, whatever the subscriptions.
    pub fn raw_event(&self, inner: Value) {
        let now_s = crate::wire::now_ms() / 1_000;
        let payload =
            |core: &SlackCore| events::plain(&core.world, inner).into_payload(&core.world, now_s);
        let payload = self.shared.read(payload);
        self.raw_payload(payload);
    }

    /// Sends a whole `events_api` payload as it is (`app_rate_limited` has no inner event).
    pub fn raw_payload(&self, payload: Value) {
        let plan = self.shared.faults.knobs().retry;
        let fault = self.shared.faults.take_event();
        self.shared.change(|core| {
            let kind = EnvelopeKind::EventsApi;
            core.deliveries.submit(kind, payload, fault.as_ref(), &plan);
        });
    }

    /// Sends a text frame as it is, on every open socket.
    pub fn raw_frame(&self, text: &str) {
        self.tell_all(|| SocketCommand::Frame {
            name: "raw".to_owned(),
            text: text.to_owned(),
        });
    }

    fn act(&self, act: impl FnOnce(&mut SlackCore) -> Result<Vec<EventObject>, String>) {
        let acted = self.shared.change(|core| {
            let events = act(core)?;
            self.shared.emit(core, events);
            Ok::<(), String>(())
        });
        acted.expect("the act fits this world");
    }
}

/// The sockets.
impl SlackServer {
    /// Sends `disconnect` with this reason to every socket and ends them as Slack would.
    pub fn disconnect(&self, reason: &str) {
        socket::disconnect(&self.shared, reason);
    }

    /// Closes every socket with a Close frame and no warning.
    pub fn close_sockets(&self) {
        self.tell_all(|| SocketCommand::Close);
    }

    /// Resets the connection of every socket.
    pub fn abort_sockets(&self) {
        self.tell_all(|| SocketCommand::Abort);
    }

    /// Makes every open socket go silent: no pongs, no events, no end.
    pub fn stall_sockets(&self) {
        self.shared.change(|core| core.deliveries.stall_all());
    }

    /// Holds the next `count` events back and then sends them in reverse order.
    pub fn reorder_next(&self, count: usize) {
        self.shared
            .change(|core| core.deliveries.reorder_next(count));
    }

    /// Sends every unacknowledged event again at once, as a retry.
    pub fn redeliver_unacked_now(&self) {
        let plan = self.shared.faults.knobs().retry;
        self.shared
            .change(|core| core.deliveries.redeliver_all(&plan));
    }

    fn tell_all(&self, command: impl Fn() -> SocketCommand) {
        self.shared.change(|core| {
            core.deliveries.tell_all(command);
        });
    }
}

/// The app's settings: Socket Mode, or request URLs.
impl SlackServer {
    /// Switches Socket Mode off and delivers to these addresses, once the app has proved that the
    /// first is its own.
    ///
    /// # Errors
    /// A sentence when an address is no loopback one, or does not answer with the challenge.
    pub async fn set_request_urls(&self, urls: RequestUrls) -> Result<(), String> {
        requests::verify(&self.shared, &urls.events).await?;
        self.use_request_urls(urls);
        Ok(())
    }

    /// As [`Self::set_request_urls`], for addresses that were proved before.
    pub fn use_request_urls(&self, urls: RequestUrls) {
        self.shared
            .change(|core| core.deliveries.requests.set(Some(urls)));
        socket::disconnect(&self.shared, "link_disabled");
    }

    /// Switches Socket Mode on again.
    pub fn use_sockets(&self) {
        self.shared
            .change(|core| core.deliveries.requests.set(None));
    }

    /// Whether the app was disabled because too many requests failed, so that no events are sent any more.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.shared
            .read(|core| core.deliveries.requests.is_disabled())
    }
}

/// Watching.
impl SlackServer {
    /// What the people in a channel see, oldest first; deleted ones are marked.
    #[must_use]
    pub fn posts(&self, channel: &str) -> Vec<SlackPost> {
        self.shared.read(|core| posts_of(core, channel))
    }

    /// Waits for a post that `is_wanted` accepts.
    pub async fn wait_for_post(
        &self,
        channel: &str,
        is_wanted: impl Fn(&SlackPost) -> bool,
        timeout: Duration,
    ) -> Option<SlackPost> {
        let find = |shared: &SharedSlack| {
            let posts = shared.read(|core| posts_of(core, channel));
            posts.into_iter().find(&is_wanted)
        };
        self.shared.wait_for(timeout, find).await
    }

    /// Modals and Home tabs that are open, as their JSON, with `user` and the `errors` shown in them.
    #[must_use]
    pub fn views(&self) -> Vec<Value> {
        self.shared.read(|core| core.views.shown(&core.world))
    }

    /// Messages that only one person sees.
    #[must_use]
    pub fn ephemerals(&self) -> Vec<SlackEphemeral> {
        self.shared.read(|core| core.ephemerals.clone())
    }

    /// Every status line that was set, oldest first.
    #[must_use]
    pub fn statuses(&self) -> Vec<SlackStatus> {
        self.shared.read(|core| core.statuses.clone())
    }

    /// Everything put up on the agent surface with `assistant.threads.setTitle` and
    /// `setSuggestedPrompts`.
    #[must_use]
    pub fn dressings(&self) -> Vec<SlackDressing> {
        self.shared.read(|core| core.dressings.clone())
    }

    /// Sockets that are open, stalled ones included.
    #[must_use]
    pub fn open_sockets(&self) -> usize {
        self.shared.read(|core| core.deliveries.open_sockets())
    }

    /// How long in all there was no socket since the first one was opened.
    #[must_use]
    pub fn silent(&self) -> Duration {
        self.shared.read(|core| core.deliveries.silent())
    }

    /// Envelopes that are neither acknowledged nor lost.
    #[must_use]
    pub fn unacked(&self) -> usize {
        self.shared.read(|core| core.deliveries.unacked())
    }

    /// Envelopes that were acknowledged, in the order of their acknowledgements.
    #[must_use]
    pub fn acked_envelopes(&self) -> Vec<AckedEnvelope> {
        self.shared.read(|core| core.deliveries.acked().to_vec())
    }

    /// Payloads that were dropped by a fault or never acknowledged.
    #[must_use]
    pub fn lost_payloads(&self) -> Vec<Value> {
        self.shared.read(|core| core.deliveries.lost().to_vec())
    }

    /// What the client sent that it should not have, as sentences.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.shared
            .read(|core| core.deliveries.violations().to_vec())
    }

    /// Waits until at least `count` sockets are open.
    pub async fn wait_for_socket(&self, count: usize, timeout: Duration) -> bool {
        self.holds(timeout, |core| core.deliveries.open_sockets() >= count)
            .await
    }

    /// Waits until exactly `count` sockets are open.
    pub async fn wait_for_socket_count(&self, count: usize, timeout: Duration) -> bool {
        self.holds(timeout, |core| core.deliveries.open_sockets() == count)
            .await
    }

    /// Waits until nothing waits for an acknowledgement.
    pub async fn wait_until_all_acked(&self, timeout: Duration) -> bool {
        self.holds(timeout, |core| core.deliveries.unacked() == 0)
            .await
    }

    async fn holds(&self, timeout: Duration, condition: impl Fn(&SlackCore) -> bool) -> bool {
        let find = |shared: &SharedSlack| shared.read(&condition).then_some(());
        self.shared.wait_for(timeout, find).await.is_some()
    }

    /// The scripted faults.
    #[must_use]
    pub fn faults(&self) -> &SlackFaults {
        &self.shared.faults
    }

    /// The world as it is.
    #[must_use]
    pub fn world(&self) -> SlackWorld {
        self.shared.read(|core| core.world.clone())
    }

    /// Moves the clock from which messages get their ts, in milliseconds: -3,600,000 lets what is
    /// said from here on be an hour old. A ts is always later than the ones before.
    pub fn set_clock_offset_ms(&self, offset_ms: i64) {
        self.shared.change(|core| core.clock_offset_ms = offset_ms);
    }

    /// Changes the world: scopes, tokens, people, channels. Emits no events.
    pub fn change_world(&self, change: impl FnOnce(&mut SlackWorld)) {
        self.shared.change(|core| change(&mut core.world));
    }
}

pub(super) fn posts_of(core: &SlackCore, channel: &str) -> Vec<SlackPost> {
    let id = core.world.channel(channel).map(|channel| &channel.id);
    let posts = id.and_then(|id| core.posts.get(id));
    posts.cloned().unwrap_or_default()
}

fn plain_post(channel: &str, user: &str, text: &str) -> UserPost {
    UserPost {
        channel: channel.to_owned(),
        user: user.to_owned(),
        text: text.to_owned(),
        ..UserPost::default()
    }
}
