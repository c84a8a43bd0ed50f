//! What the loopback workspace knows at an instant, and the one lock around it.
//!
//! `SlackCore` is plain state without I/O; `SharedSlack` guards it and wakes whoever waits for a change. No
//! lock is held across an await.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::deliveries::{Deliveries, EnvelopeKind};
use super::events::{self, EventObject, PostChange};
use super::faults::{SlackFaults, SlackKnobs};
use super::hooks::ResponseUrl;
use super::post::{SlackEphemeral, SlackPost, UserPost};
use super::requests::DeliveryAttempt;
use super::text::rich_text;
use super::views::Views;
use super::web::files::WorkspaceFile;
use super::world::{SlackConversation, SlackUser, SlackWorld};
use crate::wire::{WireLog, now_ms};

/// A status line that the app set in a thread.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SlackStatus {
    /// Where.
    pub channel: String,
    /// In which thread.
    pub thread_ts: String,
    /// The words; empty when it was cleared.
    pub status: String,
}

/// Something that was shown on the agent surface.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SlackDressing {
    /// Where.
    pub channel: String,
    /// In which thread; `None` at the top of the tab.
    pub thread_ts: Option<String>,
    /// The title of the thread.
    pub title: Option<String>,
    /// Suggested prompts: title and message.
    pub prompts: Vec<(String, String)>,
}

/// The state of one server.
pub(super) struct SlackCore {
    pub(super) world: SlackWorld,
    pub(super) addr: SocketAddr,
    pub(super) posts: BTreeMap<String, Vec<SlackPost>>,
    pub(super) ephemerals: Vec<SlackEphemeral>,
    pub(super) files: BTreeMap<String, WorkspaceFile>,
    /// How many files there ever were.
    pub(super) last_file: usize,
    pub(super) statuses: Vec<SlackStatus>,
    pub(super) dressings: Vec<SlackDressing>,
    pub(super) deliveries: Deliveries,
    pub(super) tickets: HashSet<String>,
    pub(super) hooks: HashMap<String, ResponseUrl>,
    pub(super) views: Views,
    pub(super) calls: HashMap<String, VecDeque<Instant>>,
    pub(super) last_post_at: HashMap<String, Instant>,
    last_ts_us: i64,
    /// Added to the clock when a message gets its ts, in milliseconds.
    pub(super) clock_offset_ms: i64,
}

/// The state, its lock, and what surrounds it.
pub(super) struct SharedSlack {
    core: Mutex<SlackCore>,
    /// The world as it was at the start.
    initial: SlackWorld,
    pub(super) faults: SlackFaults,
    pub(super) wire: WireLog,
    pub(super) stop: CancellationToken,
    /// Told when a delivery may have become due.
    pub(super) due_hint: Notify,
    /// Told when a request may have to be sent.
    pub(super) send_hint: Notify,
    changed: watch::Sender<u64>,
}

impl SharedSlack {
    pub(super) fn new(world: SlackWorld, addr: SocketAddr, wire: WireLog) -> Self {
        Self {
            core: Mutex::new(SlackCore::new(world.clone(), addr)),
            initial: world,
            faults: SlackFaults::default(),
            wire,
            stop: CancellationToken::new(),
            due_hint: Notify::new(),
            send_hint: Notify::new(),
            changed: watch::Sender::new(0),
        }
    }

    /// Changes the state and wakes those who wait.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut SlackCore) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.send_modify(|version| *version += 1);
        self.due_hint.notify_one();
        self.send_hint.notify_one();
        changed
    }

    /// Puts everything back as it was at the start; sockets stay open, ids and times go on.
    pub(super) fn reset(&self) {
        self.faults.clear();
        let initial = self.initial.clone();
        self.change(|core| {
            let mut fresh = SlackCore::new(initial, core.addr);
            fresh.last_ts_us = core.last_ts_us;
            fresh.last_file = core.last_file;
            fresh.tickets = std::mem::take(&mut core.tickets);
            fresh.deliveries = std::mem::take(&mut core.deliveries);
            fresh.deliveries.reset();
            *core = fresh;
        });
    }

    /// Takes the requests that are to be sent. Wakes nobody who waits for a change.
    pub(super) fn take_attempts(&self) -> Vec<DeliveryAttempt> {
        self.lock().deliveries.requests.take()
    }

    /// Reads the state.
    pub(super) fn read<T>(&self, read: impl FnOnce(&SlackCore) -> T) -> T {
        read(&self.lock())
    }

    /// Waits until `find` finds something; it runs without the lock.
    pub(super) async fn wait_for<T>(
        &self,
        timeout: Duration,
        find: impl Fn(&Self) -> Option<T>,
    ) -> Option<T> {
        let mut changes = self.changed.subscribe();
        let found = async {
            loop {
                if let Some(found) = find(self) {
                    return Some(found);
                }
                changes.changed().await.ok()?;
            }
        };
        tokio::time::timeout(timeout, found).await.ok().flatten()
    }

    /// Sends events through the subscription filter and the scripted event faults.
    pub(super) fn emit(&self, core: &mut SlackCore, mut events: Vec<EventObject>) {
        let knobs = self.faults.knobs();
        let plan = knobs.retry;
        if let Some(mention_first) = knobs.mention_first {
            let is_mention = |event: &EventObject| event.inner["type"] == "app_mention";
            events.sort_by_key(|event| is_mention(event) != mention_first);
        }
        for event in events {
            if !events::is_heard(&core.world, &event.inner) {
                continue;
            }
            let payload = event.into_payload(&core.world, now_ms() / 1_000);
            let fault = self.faults.take_event();
            let kind = EnvelopeKind::EventsApi;
            core.deliveries.submit(kind, payload, fault.as_ref(), &plan);
        }
    }

    fn lock(&self) -> MutexGuard<'_, SlackCore> {
        // A closure that a test passes in may panic; the state is whole between calls all the same.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlackCore {
    fn new(world: SlackWorld, addr: SocketAddr) -> Self {
        Self {
            world,
            addr,
            posts: BTreeMap::new(),
            ephemerals: Vec::new(),
            files: BTreeMap::new(),
            last_file: 0,
            statuses: Vec::new(),
            dressings: Vec::new(),
            deliveries: Deliveries::default(),
            tickets: HashSet::new(),
            hooks: HashMap::new(),
            views: Views::default(),
            calls: HashMap::new(),
            last_post_at: HashMap::new(),
            last_ts_us: 0,
            clock_offset_ms: 0,
        }
    }

    /// What every post of the app has.
    pub(super) fn own_post(&mut self, knobs: &SlackKnobs) -> SlackPost {
        SlackPost {
            ts: self.next_ts(),
            user: Some(self.world.bot_user_id.clone()),
            bot_id: Some(self.world.bot_id.clone()),
            app_id: Some(self.world.app_id.clone()),
            user_team: Some(self.world.team_id.clone()),
            visible_at_ms: visible_at_ms(knobs),
            ..SlackPost::default()
        }
    }

    /// A ts that no message had before.
    pub(super) fn next_ts(&mut self) -> String {
        let now_us = (now_ms() + self.clock_offset_ms) * 1_000;
        self.last_ts_us = now_us.max(self.last_ts_us + 100);
        ts_of_us(self.last_ts_us)
    }

    pub(super) fn post(&self, channel: &str, ts: &str) -> Option<&SlackPost> {
        self.posts.get(channel)?.iter().find(|post| post.ts == ts)
    }

    pub(super) fn post_mut(&mut self, channel: &str, ts: &str) -> Option<&mut SlackPost> {
        let posts = self.posts.get_mut(channel)?;
        posts.iter_mut().find(|post| post.ts == ts)
    }

    /// Whether a reply can be posted under this ts: it exists, or it is the placeholder of a
    /// deleted root that still has replies.
    pub(super) fn is_thread(&self, channel: &str, ts: &str) -> bool {
        self.post(channel, ts)
            .is_some_and(|post| !post.deleted || self.replies(channel, ts).next().is_some())
    }

    /// The replies of a thread, oldest first.
    pub(super) fn replies<'a>(
        &'a self,
        channel: &str,
        root_ts: &'a str,
    ) -> impl Iterator<Item = &'a SlackPost> {
        let posts = self.posts.get(channel).into_iter().flatten();
        posts.filter(move |post| post.is_reply_in(root_ts) && !post.deleted)
    }

    /// Adds a post and gives its events.
    pub(super) fn insert(
        &mut self,
        channel: &SlackConversation,
        post: SlackPost,
    ) -> Vec<EventObject> {
        let root_ts = post.thread_ts.clone().unwrap_or_default();
        let root = self.post(&channel.id, &root_ts).cloned();
        let events = events::of_post(&self.world, channel, &post, root.as_ref());
        self.posts.entry(channel.id.clone()).or_default().push(post);
        match channel.bot_is_member {
            true => events,
            false => Vec::new(),
        }
    }

    /// Lets a person (or another bot) post.
    ///
    /// # Errors
    /// A sentence when the channel or author is not there, or the channel is archived.
    pub(super) fn user_post(
        &mut self,
        post: UserPost,
        knobs: &SlackKnobs,
    ) -> Result<(String, Vec<EventObject>), String> {
        let channel = self.channel(&post.channel)?;
        if channel.archived {
            return Err(format!("channel {} is archived", post.channel));
        }
        let author = match self.world.user(&post.user) {
            Some(user) => Some(user.clone()),
            None if post.bot_id.is_some() => None,
            None => return Err(format!("no user {} in this world", post.user)),
        };
        let ts = self.next_ts();
        let bot = author.as_ref().and_then(|user| user.bot.clone());
        let is_person = post.bot_id.is_none() && bot.is_none();
        let made_up = is_person && post.subtype.as_deref() != Some("me_message");
        let blocks = match post.blocks {
            Some(blocks) => Some(blocks).filter(|blocks| *blocks != json!([])),
            None => made_up.then(|| json!([rich_text(&post.text)])),
        };
        let subtype = match (post.subtype, post.broadcast, post.files.is_empty()) {
            (Some(subtype), _, _) => Some(subtype),
            (None, true, _) => Some("thread_broadcast".to_owned()),
            (None, false, false) => Some("file_share".to_owned()),
            (None, false, true) => None,
        };
        let stored = SlackPost {
            ts: ts.clone(),
            thread_ts: post.thread_ts,
            user_team: post
                .user_team
                .or_else(|| author.as_ref().map(|user| user.team_id.clone())),
            user: author.map(|user| user.id),
            bot_id: post
                .bot_id
                .or(bot.as_ref().map(|(bot_id, _)| bot_id.clone())),
            app_id: bot.map(|(_, app_id)| app_id),
            subtype,
            text: post.text,
            blocks,
            files: post.files,
            metadata: post.metadata,
            username: post.username,
            client_msg_id: post
                .client_msg_id
                .or_else(|| made_up.then(|| Uuid::new_v4().to_string())),
            visible_at_ms: visible_at_ms(knobs),
            ..SlackPost::default()
        };
        let events = self.insert(&channel, stored);
        Ok((ts, events))
    }

    /// Replaces a person's text and gives the events.
    pub(super) fn user_edit(
        &mut self,
        channel: &str,
        ts: &str,
        text: &str,
        knobs: &SlackKnobs,
    ) -> Result<Vec<EventObject>, String> {
        let channel = self.channel(channel)?;
        let edit_ts = self.next_ts();
        let post = self.existing(&channel.id, ts)?;
        let before = post.clone();
        post.text = text.to_owned();
        post.blocks = before.blocks.as_ref().map(|_| json!([rich_text(text)]));
        let editor = post.user.clone().unwrap_or_default();
        post.edited = Some((editor, edit_ts.clone()));
        let after = post.clone();
        let change = PostChange {
            before: &before,
            after: &after,
            ts: edit_ts,
            counters: Map::new(),
        };
        let mention = knobs.mention_on_edit;
        Ok(self.heard(
            &channel,
            events::of_change(&self.world, &channel, &change, mention),
        ))
    }

    /// Deletes a message and gives the event.
    pub(super) fn delete(&mut self, channel: &str, ts: &str) -> Result<Vec<EventObject>, String> {
        let channel = self.channel(channel)?;
        let event_ts = self.next_ts();
        let post = self.existing(&channel.id, ts)?;
        post.deleted = true;
        let deleted = post.clone();
        let event = events::of_deletion(&self.world, &channel, &deleted, &event_ts);
        Ok(self.heard(&channel, vec![event]))
    }

    /// A `message_changed` that no person caused: new attachments, or new reply counters.
    pub(super) fn hidden_change(
        &mut self,
        channel: &str,
        ts: &str,
        attachments: Option<Value>,
    ) -> Result<Vec<EventObject>, String> {
        let channel = self.channel(channel)?;
        let change_ts = self.next_ts();
        let post = self.existing(&channel.id, ts)?;
        let before = post.clone();
        if attachments.is_some() {
            post.attachments = attachments;
        }
        let after = post.clone();
        let change = PostChange {
            before: &before,
            after: &after,
            ts: change_ts,
            counters: self.thread_counters(&channel.id, ts),
        };
        Ok(self.heard(
            &channel,
            events::of_change(&self.world, &channel, &change, false),
        ))
    }

    /// The fields of a thread's root that tell of its replies; empty when there are none.
    pub(super) fn thread_counters(&self, channel: &str, root_ts: &str) -> Map<String, Value> {
        let replies: Vec<&SlackPost> = self.replies(channel, root_ts).collect();
        let Some(latest) = replies.last() else {
            return Map::new();
        };
        let mut users: Vec<&str> = Vec::new();
        for user in replies.iter().filter_map(|reply| reply.user.as_deref()) {
            if !users.contains(&user) {
                users.push(user);
            }
        }
        let counters = json!({
            "thread_ts": root_ts, "reply_count": replies.len(), "reply_users": users,
            "reply_users_count": users.len(), "latest_reply": latest.ts, "subscribed": false,
        });
        counters.as_object().cloned().unwrap_or_default()
    }

    /// Adds or removes a reaction of a person, named by id or name.
    pub(super) fn user_react(
        &mut self,
        item: (&str, &str),
        user: &str,
        reaction: &str,
        add: bool,
    ) -> Result<Vec<EventObject>, String> {
        let user = self.person(user)?.id;
        let name = reaction.trim_matches(':');
        let is_name = |c: char| c.is_alphanumeric() || "_+-':".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!(
                "{reaction} is no name of an emoji, such as thumbsup"
            ));
        }
        self.react(item, &user, name, add)
    }

    /// Adds or removes a reaction of an account.
    pub(super) fn react(
        &mut self,
        item: (&str, &str),
        user: &str,
        reaction: &str,
        add: bool,
    ) -> Result<Vec<EventObject>, String> {
        let channel = self.channel(item.0)?;
        let event_ts = self.next_ts();
        let post = self.existing(&channel.id, item.1)?;
        let users = post.reactions.entry(reaction.to_owned()).or_default();
        let had = users.iter().any(|has| has == user);
        match (add, had) {
            (true, true) => return Err("already_reacted".to_owned()),
            (false, false) => return Err("no_reaction".to_owned()),
            (true, false) => users.push(user.to_owned()),
            (false, true) => users.retain(|has| has != user),
        }
        post.reactions.retain(|_, users| !users.is_empty());
        let post = post.clone();
        let kind = if add {
            "reaction_added"
        } else {
            "reaction_removed"
        };
        let by = (user, reaction);
        let event = events::of_reaction(&self.world, kind, (&channel.id, &post), by, &event_ts);
        Ok(self.heard(&channel, vec![event]))
    }

    /// A person presses the button beside a streamed message: it takes no more words.
    pub(super) fn press_stop(
        &mut self,
        channel: &str,
        user: &str,
        ts: &str,
    ) -> Result<Vec<EventObject>, String> {
        let channel = self.channel(channel)?;
        let user = self.person(user)?.id;
        let event_ts = self.next_ts();
        let post = self.existing(&channel.id, ts)?;
        let stream = post.stream.as_mut().filter(|it| it.is_open(now_ms()));
        let stream = stream.ok_or("it takes no words, so there is nothing to stop")?;
        stream.is_stopped = true;
        stream.is_stopped_by_person = true;
        let inner = json!({
            "type": "agent_session_stopped", "channel": channel.id, "user": user,
            "thread_ts": post.thread_ts, "streaming_message_ts": [ts], "event_ts": event_ts,
        });
        let event = events::plain(&self.world, inner);
        Ok(self.heard(&channel, vec![event]))
    }

    /// A person or another bot by id or name.
    pub(super) fn person(&self, id_or_name: &str) -> Result<SlackUser, String> {
        let person = self.world.user(id_or_name).cloned();
        person.ok_or_else(|| format!("no user {id_or_name} in this world"))
    }

    /// A channel by id or name.
    pub(super) fn channel(&self, id_or_name: &str) -> Result<SlackConversation, String> {
        let channel = self.world.channel(id_or_name).cloned();
        channel.ok_or_else(|| format!("no channel {id_or_name} in this world"))
    }

    pub(super) fn channel_mut(&mut self, id: &str) -> &mut SlackConversation {
        let channels = self.world.channels.iter_mut();
        let mut found = channels.filter(|channel| channel.id == id);
        found.next().expect("ids come from `channel`")
    }

    pub(super) fn existing(&mut self, channel: &str, ts: &str) -> Result<&mut SlackPost, String> {
        self.post_mut(channel, ts)
            .filter(|post| !post.deleted)
            .ok_or_else(|| "message_not_found".to_owned())
    }

    pub(super) fn heard(
        &self,
        channel: &SlackConversation,
        events: Vec<EventObject>,
    ) -> Vec<EventObject> {
        match channel.bot_is_member {
            true => events,
            false => Vec::new(),
        }
    }
}

/// When history shows a message that is posted now.
pub(super) fn visible_at_ms(knobs: &SlackKnobs) -> i64 {
    now_ms() + i64::try_from(knobs.visibility_delay_ms).unwrap_or(i64::MAX)
}

fn ts_of_us(us: i64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}
