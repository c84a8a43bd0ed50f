//! The JSON of Events API callbacks, and which of them the app is subscribed to.
//!
//! Pure: a world and a change in, event objects out.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::post::SlackPost;
use super::text::mentions;
use super::world::{ChannelKind, SlackConversation, SlackWorld};

/// An event object with what its wrapper needs.
#[derive(Clone, Debug)]
pub(super) struct EventObject {
    pub(super) inner: Value,
    /// Workspace of the account that caused the event.
    pub(super) team_id: String,
    pub(super) ext_shared: bool,
}

impl EventObject {
    /// Puts the event into an `event_callback`.
    pub(super) fn into_payload(self, world: &SlackWorld, now_s: i64) -> Value {
        json!({
            "token": "legacy-do-not-use",
            "team_id": self.team_id,
            "context_team_id": world.team_id,
            "context_enterprise_id": null,
            "api_app_id": world.app_id,
            "event": self.inner,
            "type": "event_callback",
            "event_id": new_event_id(),
            "event_time": now_s,
            "event_context": "4-loopback",
            "is_ext_shared_channel": self.ext_shared,
            "authorizations": [{
                "enterprise_id": null, "team_id": world.team_id, "user_id": world.bot_user_id,
                "is_bot": true, "is_enterprise_install": false,
            }],
        })
    }
}

/// A fresh `Ev…` id.
pub(super) fn new_event_id() -> String {
    let id = Uuid::new_v4().simple().to_string().to_uppercase();
    format!("Ev0{}", &id[..10])
}

/// Whether the app gets this event: it is subscribed, and the scope is granted.
pub(super) fn is_heard(world: &SlackWorld, inner: &Value) -> bool {
    let kind = inner["type"].as_str().unwrap_or_default();
    let (subscription, scope) = match kind {
        "message" => {
            let plural = match inner["channel_type"].as_str().unwrap_or_default() {
                "channel" => "channels",
                "group" => "groups",
                other => other,
            };
            (format!("message.{plural}"), format!("{plural}:history"))
        }
        "app_mention" => (kind.to_owned(), "app_mentions:read".to_owned()),
        "reaction_added" | "reaction_removed" => (kind.to_owned(), "reactions:read".to_owned()),
        _ => (kind.to_owned(), String::new()),
    };
    world.events.contains(&subscription) && (scope.is_empty() || world.has_scope(&scope))
}

/// The events of one new post: `message`, and `app_mention` where Slack sends both.
pub(super) fn of_post(
    world: &SlackWorld,
    channel: &SlackConversation,
    post: &SlackPost,
    root: Option<&SlackPost>,
) -> Vec<EventObject> {
    let mut message = message_object(world, post, root);
    message.insert("channel".into(), json!(channel.id));
    message.insert("event_ts".into(), json!(post.ts));
    let mut events = Vec::new();
    if is_mention(world, channel, post) {
        let mut mention = message.clone();
        mention.insert("type".into(), json!("app_mention"));
        events.push(event(world, channel, post, Value::Object(mention)));
    }
    message.insert("channel_type".into(), json!(channel.kind.channel_type()));
    events.push(event(world, channel, post, Value::Object(message)));
    // The two events of a mention arrive in either order.
    if rand::random() {
        events.reverse();
    }
    events
}

/// Whether a post makes an `app_mention`: never in a direct chat, never for the app's own posts.
fn is_mention(world: &SlackWorld, channel: &SlackConversation, post: &SlackPost) -> bool {
    let is_direct = matches!(channel.kind, ChannelKind::Im { .. });
    let is_own = post.bot_id.as_deref() == Some(world.bot_id.as_str());
    !is_direct && !is_own && mentions(&post.text, &world.bot_user_id)
}

/// The events of an edit, an unfurl or a new reply counter.
pub(super) fn of_change(
    world: &SlackWorld,
    channel: &SlackConversation,
    change: &PostChange<'_>,
    mention_on_edit: bool,
) -> Vec<EventObject> {
    let mut message = message_object(world, change.after, None);
    message.extend(change.counters.clone());
    let inner = json!({
        "type": "message", "subtype": "message_changed", "hidden": true,
        "channel": channel.id, "channel_type": channel.kind.channel_type(),
        "ts": change.ts, "event_ts": change.ts,
        "message": message,
        "previous_message": message_object(world, change.before, None),
    });
    let mut events = vec![event(world, channel, change.after, inner)];
    let is_new_mention =
        is_mention(world, channel, change.after) && !is_mention(world, channel, change.before);
    if mention_on_edit && is_new_mention {
        message.insert("type".into(), json!("app_mention"));
        message.insert("channel".into(), json!(channel.id));
        message.insert("event_ts".into(), json!(change.ts));
        events.push(event(world, channel, change.after, Value::Object(message)));
    }
    events
}

/// A message before and after something happened to it.
pub(super) struct PostChange<'a> {
    pub(super) before: &'a SlackPost,
    pub(super) after: &'a SlackPost,
    /// The change's own ts.
    pub(super) ts: String,
    pub(super) counters: Map<String, Value>,
}

/// The event of a deletion.
pub(super) fn of_deletion(
    world: &SlackWorld,
    channel: &SlackConversation,
    post: &SlackPost,
    ts: &str,
) -> EventObject {
    let inner = json!({
        "type": "message", "subtype": "message_deleted", "hidden": true,
        "channel": channel.id, "channel_type": channel.kind.channel_type(),
        "ts": ts, "event_ts": ts, "deleted_ts": post.ts,
        "previous_message": message_object(world, post, None),
    });
    event(world, channel, post, inner)
}

/// The event of a reaction that came or went.
pub(super) fn of_reaction(
    world: &SlackWorld,
    kind: &str,
    item: (&str, &SlackPost),
    by: (&str, &str),
    ts: &str,
) -> EventObject {
    let ((channel, post), (user, reaction)) = (item, by);
    let mut inner = json!({
        "type": kind, "user": user, "reaction": reaction,
        "item": {"type": "message", "channel": channel, "ts": post.ts}, "event_ts": ts,
    });
    if let Some(author) = &post.user {
        inner["item_user"] = json!(author);
    }
    plain(world, inner)
}

/// An event of our own workspace that is about no message.
pub(super) fn plain(world: &SlackWorld, inner: Value) -> EventObject {
    EventObject {
        inner,
        team_id: world.team_id.clone(),
        ext_shared: false,
    }
}

fn event(
    world: &SlackWorld,
    channel: &SlackConversation,
    post: &SlackPost,
    inner: Value,
) -> EventObject {
    EventObject {
        inner,
        team_id: post
            .user_team
            .clone()
            .unwrap_or_else(|| world.team_id.clone()),
        ext_shared: channel.ext_shared,
    }
}

/// The message object with what only events and threads carry.
pub(super) fn message_object(
    world: &SlackWorld,
    post: &SlackPost,
    root: Option<&SlackPost>,
) -> Map<String, Value> {
    let mut message = post.to_json(world);
    if let Some(root) = root.filter(|root| root.ts != post.ts) {
        message.insert("parent_user_id".into(), json!(root.user));
        if post.subtype.as_deref() == Some("thread_broadcast") {
            let copy = root.to_json(world);
            message.insert("root".into(), Value::Object(copy));
        }
    }
    // Metadata comes with the event of a post; history shows it only when it is asked for.
    if let Some(metadata) = &post.metadata {
        message.insert("metadata".into(), metadata.clone());
    }
    message
}
