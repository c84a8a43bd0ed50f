//! A Slack payload as an [`Envelope`]: pure, total, and without look-ups.
//!
//! Nothing that Slack sends makes a translation fail: what is not understood becomes
//! [`Event::Untranslated`] and keeps its raw JSON.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::json_object::read_object;
use vocative_contract::envelope::{
    Attachment, ChatKind, Command, Envelope, Event, InboundMessage, Place, Sender, SenderKind,
    Standing,
};
use vocative_contract::feedback::{Thumb, ThumbChange};
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::markup::mentioned_ids;

use super::text;
use super::wire::{
    Authorization, EventPayload, File, IdOr, SlackEvent, SlashPayload, UserObject, UserProfile,
};

/// A longer subtype is not shown.
const SUBTYPE_MAX_BYTES: usize = 48;
/// The user id under which Slackbot writes.
const SLACKBOT: &str = "USLACKBOT";
/// The user id under which Slack itself writes.
const SLACK_ITSELF: &str = "USLACK";

/// One delivery, as a socket or an HTTP request brought it.
#[derive(Clone, Copy, Debug)]
pub struct SlackDelivery<'a> {
    /// The configured channel's name.
    pub channel: &'a str,
    /// `events_api`, `slash_commands`, `interactive` or a kind that Slack adds later.
    pub kind: &'a str,
    /// The platform's delivery id.
    pub envelope_id: &'a str,
    /// The payload's JSON.
    pub payload: &'a str,
    /// When it was received, in milliseconds since the Unix epoch.
    pub received_at_ms: i64,
}

/// Translates one delivery for the bot of that identity.
#[must_use]
pub fn translate(delivery: &SlackDelivery<'_>, identity: &Identity) -> Envelope {
    let event = match delivery.kind {
        "events_api" => events_api(delivery.payload, identity),
        "slash_commands" => slash_command(delivery.payload, identity),
        "interactive" => super::interactive::interactive(delivery.payload, identity),
        _ => untranslated("an envelope of an unknown type"),
    };
    Envelope {
        channel: delivery.channel.to_owned(),
        platform: Platform::Slack,
        account: identity.account.clone(),
        delivery_id: delivery.envelope_id.to_owned(),
        received_at_ms: delivery.received_at_ms,
        event,
        numbered: None,
        raw: delivery.payload.to_owned(),
    }
}

pub(super) fn untranslated(reason: &str) -> Event {
    Event::Untranslated {
        reason: reason.to_owned(),
    }
}

pub(super) fn ignored(reason: &'static str) -> Event {
    Event::Ignored { reason }
}

/// What surrounds an event: which bot sees it, and where.
#[derive(Clone, Copy)]
pub(super) struct EventContext<'a> {
    identity: &'a Identity,
    /// The installations that the event is sent to.
    authorizations: &'a [Authorization],
    is_shared: Option<bool>,
}

impl<'a> EventContext<'a> {
    /// The context of a payload that says nothing of installations or of its chat.
    pub(super) fn of(identity: &'a Identity) -> Self {
        Self {
            identity,
            authorizations: &[],
            is_shared: None,
        }
    }

    /// The same for a chat that other organisations may be in.
    pub(super) fn in_shared_chat(self) -> Self {
        Self {
            is_shared: Some(true),
            ..self
        }
    }

    /// Whether a team is ours. Our own ids come from `auth.test` and from the authorization of our bot user; the
    /// payload's `enterprise_id` may be that of whoever hosts the channel.
    fn is_ours(&self, team: &str) -> bool {
        let identity = self.identity;
        let is_own = |authorization: &&Authorization| {
            let user = authorization.user_id.as_deref();
            user.is_some_and(|user| identity.is_self(user))
        };
        let mut own = self.authorizations.iter().filter(is_own);
        team == identity.account
            || Some(team) == identity.organisation.as_deref()
            || own.any(|it| {
                [it.team_id.as_deref(), it.enterprise_id.as_deref()].contains(&Some(team))
            })
    }

    /// Whether an event is of a workspace that is not ours and shares nothing with it: an app that others can
    /// install hears all its installations on one connection. Slack names one of the installations that an event
    /// is sent to, so in a shared chat it may be another one than ours.
    fn is_elsewhere(&self) -> bool {
        let identity = self.identity;
        let is_near = |it: &Authorization| {
            it.user_id
                .as_deref()
                .is_none_or(|user| identity.is_self(user))
                || it
                    .team_id
                    .as_deref()
                    .is_none_or(|team| team == identity.account)
                || identity.organisation.is_some()
                    && it.enterprise_id.as_deref() == identity.organisation.as_deref()
        };
        self.is_shared == Some(false)
            && !self.authorizations.is_empty()
            && !self.authorizations.iter().any(is_near)
    }

    /// Whether somebody may be of another organisation, by the team that Slack gives for them. Without a team this
    /// can't be excluded in a shared chat.
    fn is_stranger(&self, team: Option<&str>) -> bool {
        match team {
            Some(team) if self.is_ours(team) => false,
            // Outside shared chats another team is a sibling workspace.
            Some(_) => self.is_shared != Some(false) || self.identity.organisation.is_none(),
            None => self.is_shared == Some(true),
        }
    }
}

fn events_api(payload: &str, identity: &Identity) -> Event {
    let Ok(payload) = read_object::<EventPayload>(payload) else {
        return untranslated("the payload is not an object");
    };
    if payload.kind.as_deref() == Some("app_rate_limited") {
        return ignored(super::APP_RATE_LIMITED);
    }
    let Some(event) = payload.event.as_ref() else {
        return untranslated("a payload without an event");
    };
    let context = EventContext {
        identity,
        authorizations: &payload.authorizations,
        is_shared: *payload.is_ext_shared_channel,
    };
    if context.is_elsewhere() {
        return ignored("another_installation");
    }
    match event.kind.as_deref().unwrap_or_default() {
        "message" => message(event, &context),
        "app_mention" => app_mention(event, &context),
        kind => other_event(kind, event, &context),
    }
}

fn message(event: &SlackEvent, context: &EventContext<'_>) -> Event {
    match event.subtype.as_deref() {
        // Slack sends reply-count changes of a root without their subtype.
        None if event.message.is_some() => ignored("reply_count"),
        None | Some("file_share" | "thread_broadcast" | "me_message" | "bot_message") => {
            posted(event, context)
        }
        Some("message_changed") => changed(event, context),
        Some("message_deleted") => deleted(event, context),
        Some("tombstone") => gone(event, event, context),
        Some("message_replied") => ignored("reply_count"),
        Some("channel_join" | "group_join") => membership(event, context, Standing::Joined),
        Some("channel_leave" | "group_leave") => membership(event, context, Standing::Gone),
        Some("channel_name" | "group_name") => chat_changed(event, context, None),
        Some("channel_convert_to_private") => chat_changed(event, context, Some(ChatKind::Private)),
        Some("channel_convert_to_public") => chat_changed(event, context, Some(ChatKind::Public)),
        Some(subtype) if is_service(subtype) => ignored("service"),
        Some(_) => untranslated("a message of an unknown subtype"),
    }
}

/// Whether a subtype reports a change of the chat and is no message in it.
fn is_service(subtype: &str) -> bool {
    matches!(
        subtype,
        "channel_archive"
            | "channel_unarchive"
            | "channel_posting_permissions"
            | "channel_purpose"
            | "channel_topic"
            | "group_archive"
            | "group_unarchive"
            | "group_purpose"
            | "group_topic"
            | "assistant_app_thread"
            | "bot_add"
            | "bot_remove"
            | "bot_enable"
            | "bot_disable"
            | "document_mention"
            | "ekm_access_denied"
            | "file_comment"
            | "file_mention"
            | "huddle_thread"
            | "message_locked"
            | "pinned_item"
            | "unpinned_item"
            | "reminder_add"
    )
}

fn app_mention(event: &SlackEvent, context: &EventContext<'_>) -> Event {
    match posted(event, context) {
        // A mention that was added by an edit comes with the message's first `ts`.
        Event::Posted(mention) if mention.edit_marker.is_some() => {
            Event::Edited(mentioning(mention))
        }
        Event::Posted(mention) => Event::Posted(mentioning(mention)),
        other => other,
    }
}

/// Adds our own mention: an `app_mention` implies it, and does not say in which kind of chat it happened.
fn mentioning(mut message: InboundMessage) -> InboundMessage {
    message.mentions_bot = true;
    message.place.kind = None;
    message
}

fn posted(event: &SlackEvent, context: &EventContext<'_>) -> Event {
    let Some(place) = place(event, event, context) else {
        return untranslated("a message without a channel");
    };
    if is_own(event, context) {
        return match event.ts.clone() {
            Some(message_id) => Event::OwnPost {
                place,
                message_id,
                marker: event.marker().map(str::to_owned),
            },
            None => untranslated("a message without a ts"),
        };
    }
    inbound_message(event, place, context).map_or_else(
        || untranslated("a message without a readable ts"),
        Event::Posted,
    )
}

/// A message as an export records it.
pub(super) enum RecordedMessage {
    /// Of a room, and whether it is ours.
    Message(Box<InboundMessage>, bool),
    /// An entry that nobody wrote.
    Nothing(Cow<'static, str>),
    /// It can't be understood.
    Unreadable(String),
}

/// A message of an export that `channel` was written into; what it is, is decided as for its event.
pub(super) fn recorded(event: &SlackEvent, identity: &Identity) -> RecordedMessage {
    let context = EventContext::of(identity);
    if event.kind.as_deref() != Some("message") {
        return RecordedMessage::Nothing("entries that are no messages".into());
    }
    let subtype = event.subtype.as_deref();
    let event_of = match message(event, &context) {
        // Slack has more kinds of messages than it documents: an entry with a sender and a text is a message.
        Event::Untranslated { .. } if says_something(event) => posted(event, &context),
        other => other,
    };
    match event_of {
        Event::Posted(message) => RecordedMessage::Message(Box::new(message), false),
        Event::OwnPost { place, .. } => match inbound_message(event, place, &context) {
            Some(message) => RecordedMessage::Message(Box::new(message), true),
            None => RecordedMessage::Unreadable("a message without a readable ts".to_owned()),
        },
        Event::Deleted { .. } => RecordedMessage::Nothing("deleted messages".into()),
        Event::Untranslated { reason } => match subtype.filter(|_| !says_something(event)) {
            Some(subtype) => RecordedMessage::Nothing(entries_of(subtype)),
            None => RecordedMessage::Unreadable(reason),
        },
        _ => RecordedMessage::Nothing("joins and other service messages".into()),
    }
}

/// Whether an entry has a sender and a text.
fn says_something(event: &SlackEvent) -> bool {
    let has_sender = event.user_id().is_some() || event.bot_id.is_some();
    has_sender && !full_text(event).trim().is_empty()
}

/// The name of a subtype's entries in counters; the subtype comes from a file.
fn entries_of(subtype: &str) -> Cow<'static, str> {
    let is_name = subtype.len() <= SUBTYPE_MAX_BYTES
        && subtype
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit());
    if is_name {
        format!("entries of the subtype {subtype}").into()
    } else {
        "entries of a subtype without a proper name".into()
    }
}

fn changed(event: &SlackEvent, context: &EventContext<'_>) -> Event {
    let Some(message) = event.message.as_deref() else {
        return untranslated("a change without its message");
    };
    if message.subtype.as_deref() == Some("tombstone") {
        return gone(event, message, context);
    }
    if is_own(message, context) {
        return ignored("own_edit");
    }
    if message.subtype.as_deref().is_some_and(is_service) {
        return ignored("service");
    }
    if !is_real_edit(message, event.previous_message.as_deref()) {
        return ignored("unfurl");
    }
    let Some(place) = place(event, message, context) else {
        return untranslated("a change without a channel");
    };
    let Some(mut edited) = inbound_message(message, place, context) else {
        return untranslated("a change without a readable ts");
    };
    // A bot's update leaves the edit mark as it was; the change's own ts is as good.
    let previous = event.previous_message.as_deref();
    if previous.is_some_and(|previous| edit_marker(previous) == edited.edit_marker) {
        edited.edit_marker = event.ts.clone();
    }
    Event::Edited(edited)
}

/// Whether somebody changed what the message says. Without the previous message, the store must compare; an edit
/// without a marker says so.
fn is_real_edit(message: &SlackEvent, previous: Option<&SlackEvent>) -> bool {
    let Some(previous) = previous else {
        return true;
    };
    // Only one of the two may carry blocks; they say the same as `text`.
    let has_both = message.blocks.is_empty() == previous.blocks.is_empty();
    edit_marker(message) != edit_marker(previous)
        || message.text.as_deref() != previous.text.as_deref()
        || (has_both && full_text(message) != full_text(previous))
        || !message
            .files
            .iter()
            .map(File::live_id)
            .eq(previous.files.iter().map(File::live_id))
}

fn edit_marker(message: &SlackEvent) -> Option<String> {
    message
        .edited
        .as_ref()
        .and_then(|edited| edited.ts.0.clone())
}

fn deleted(event: &SlackEvent, context: &EventContext<'_>) -> Event {
    let previous = event.previous_message.as_deref();
    let message_id = event
        .deleted_ts
        .clone()
        .or_else(|| previous.and_then(|previous| previous.ts.0.clone()));
    match (place(event, previous.unwrap_or(event), context), message_id) {
        (Some(place), Some(message_id)) => Event::Deleted { place, message_id },
        _ => untranslated("a delete without a channel or a ts"),
    }
}

/// The placeholder of a deleted message that has replies.
fn gone(event: &SlackEvent, message: &SlackEvent, context: &EventContext<'_>) -> Event {
    match (place(event, message, context), message.ts.clone()) {
        (Some(place), Some(message_id)) => Event::Deleted { place, message_id },
        _ => untranslated("a tombstone without a channel or a ts"),
    }
}

fn other_event(kind: &str, event: &SlackEvent, context: &EventContext<'_>) -> Event {
    match kind {
        "reaction_added" => reaction(event, context, true),
        "reaction_removed" => reaction(event, context, false),
        "member_joined_channel" => membership(event, context, Standing::Joined),
        "member_left_channel" => membership(event, context, Standing::Gone),
        "channel_unarchive" | "group_unarchive" => presence(event, context, Standing::Back),
        "channel_left" | "group_left" | "channel_archive" | "group_archive" | "channel_deleted"
        | "group_deleted" => presence(event, context, Standing::Gone),
        "channel_rename" | "group_rename" => chat_changed(event, context, None),
        "channel_shared" | "channel_unshared" => shared(event, context, kind == "channel_shared"),
        "channel_id_changed" => chat_moved(event),
        "user_change" | "user_profile_changed" => person_changed(event, context),
        "tokens_revoked" => tokens_revoked(event, context),
        "app_uninstalled" => Event::AccountLost {
            reason: kind.to_owned(),
        },
        "app_home_opened" if event.tab.as_deref() == Some("messages") => {
            let place = place(event, &SlackEvent::default(), context);
            opened(
                place.map(|place| place.chat),
                None,
                event.user_id(),
                context,
            )
        }
        "assistant_thread_started" => {
            let thread = event.assistant_thread.as_ref();
            let chat = thread.and_then(|thread| thread.channel_id.0.clone());
            let root = thread.and_then(|thread| thread.thread_ts.0.clone());
            let person = thread.and_then(|thread| thread.user_id.as_deref());
            opened(chat, root, person, context)
        }
        "agent_session_stopped" => session_stopped(kind, event, context),
        "app_home_opened"
        | "app_context_changed"
        | "assistant_thread_context_changed"
        | "agent_session_title_changed"
        | "channel_created"
        | "channel_history_changed"
        | "file_change"
        | "file_created"
        | "file_deleted"
        | "file_shared"
        | "file_public"
        | "im_created"
        | "pin_added"
        | "pin_removed"
        | "team_join"
        | "user_typing" => ignored("service"),
        "" => untranslated("an event without a type"),
        _ => untranslated("an event of an unknown type"),
    }
}

/// A member came or went; only our own coming and going matters.
fn membership(event: &SlackEvent, context: &EventContext<'_>, standing: Standing) -> Event {
    if is_own(event, context) {
        presence(event, context, standing)
    } else {
        ignored("service")
    }
}

/// A person opened the direct chat with the bot: for apps with an agent view, its thread.
fn opened(
    chat: Option<String>,
    thread: Option<String>,
    person: Option<&str>,
    context: &EventContext<'_>,
) -> Event {
    let (Some(chat), Some(person)) = (chat, person) else {
        return ignored("service");
    };
    Event::Opened {
        place: Place {
            chat,
            kind: Some(ChatKind::Direct),
            thread,
            is_shared: context.is_shared == Some(true),
            ..Place::default()
        },
        sender: nameless(person, context.is_stranger(None)),
    }
}

/// A person of whom only the id is known.
fn nameless(id: &str, is_stranger: bool) -> Sender {
    Sender {
        id: id.to_owned(),
        display_name: None,
        username: None,
        kind: SenderKind::Person,
        is_stranger,
    }
}

/// Somebody pressed the button under which an agent works in a thread. The event carries no id of its own, so its time
/// stands for one.
fn session_stopped(kind: &str, event: &SlackEvent, context: &EventContext<'_>) -> Event {
    let place = place(event, &SlackEvent::default(), context);
    let (Some(place), Some(user), Some(at)) = (place, event.user_id(), event.event_ts.as_deref())
    else {
        return untranslated("a stop without its ids");
    };
    let Some(thread) = event.thread_ts.clone() else {
        return untranslated("a stop without a thread");
    };
    Event::Command(Command {
        id: format!("{kind}:{}:{thread}:{at}", place.chat),
        place: Place {
            thread: Some(thread),
            ..place
        },
        sender: nameless(user, context.is_stranger(told_team(event, context))),
        name: kind.to_owned(),
        text: "stop".to_owned(),
    })
}

/// Only thumbs say something of a message. The event gives only the person's id, and may come from a shared channel.
fn reaction(event: &SlackEvent, context: &EventContext<'_>, is_given: bool) -> Event {
    let thumb = event.reaction.as_deref().and_then(Thumb::of_reaction);
    let (Some(thumb), Some(user)) = (thumb, event.user_id()) else {
        return ignored("reaction");
    };
    let item = event.item.as_ref();
    let message = item.and_then(|item| Some((item.channel.clone()?, item.ts.clone()?)));
    let at = event.event_ts.as_deref().and_then(time_of);
    // A reaction to a file has no place in a room.
    let (Some((chat, message_id)), Some((at_ms, _))) = (message, at) else {
        return ignored("reaction");
    };
    if context.identity.is_self(user) {
        return ignored("reaction");
    }
    Event::Thumb(ThumbChange {
        place: Place {
            kind: chat_kind(None, &chat),
            chat,
            is_shared: context.is_shared == Some(true),
            ..Place::default()
        },
        message_id,
        sender: nameless(user, context.is_stranger(None)),
        thumbs: vec![(thumb, is_given)],
        at_ms,
    })
}

fn presence(event: &SlackEvent, context: &EventContext<'_>, standing: Standing) -> Event {
    match place(event, &SlackEvent::default(), context) {
        Some(place) => Event::Membership { place, standing },
        None => untranslated("a membership without a channel"),
    }
}

fn chat_changed(event: &SlackEvent, context: &EventContext<'_>, kind: Option<ChatKind>) -> Event {
    let Some(mut place) = place(event, &SlackEvent::default(), context) else {
        return untranslated("a changed chat without a channel");
    };
    place.kind = kind.or(place.kind);
    place.title = place
        .title
        .or_else(|| text::channel_title(event.name.as_deref()));
    Event::ChatChanged { place }
}

fn shared(event: &SlackEvent, context: &EventContext<'_>, is_shared: bool) -> Event {
    match chat_changed(event, context, None) {
        Event::ChatChanged { place } => Event::ChatChanged {
            place: Place { is_shared, ..place },
        },
        other => other,
    }
}

fn chat_moved(event: &SlackEvent) -> Event {
    match (event.old_channel_id.clone(), event.new_channel_id.clone()) {
        (Some(from_chat), Some(to_chat)) => Event::ChatMoved { from_chat, to_chat },
        _ => untranslated("a changed channel id without both ids"),
    }
}

fn person_changed(event: &SlackEvent, context: &EventContext<'_>) -> Event {
    let Some(IdOr::Object(user)) = event.user.as_ref() else {
        return untranslated("a changed user without the user");
    };
    match user_sender(user, context) {
        Some(sender) => Event::PersonChanged { sender },
        None => untranslated("a changed user without an id"),
    }
}

/// Only the bot's own token matters; users may revoke theirs.
fn tokens_revoked(event: &SlackEvent, context: &EventContext<'_>) -> Event {
    let is_ours = event
        .tokens
        .as_ref()
        .is_none_or(|tokens| tokens.bot.iter().any(|user| context.identity.is_self(user)));
    if is_ours {
        Event::AccountLost {
            reason: "tokens_revoked".to_owned(),
        }
    } else {
        ignored("service")
    }
}

fn slash_command(payload: &str, identity: &Identity) -> Event {
    let Ok(payload) = read_object::<SlashPayload>(payload) else {
        return untranslated("the command is not an object");
    };
    let context = EventContext::of(identity);
    let (Some(id), Some(chat), Some(user), Some(name)) = (
        payload.trigger_id.clone(),
        payload.channel_id.clone(),
        payload.user_id.clone(),
        payload.command.clone(),
    ) else {
        return untranslated("a command without its ids");
    };
    let (kind, title) = named_chat(payload.channel_name.as_deref());
    let kind = kind.or_else(|| chat_kind(None, &chat));
    // A command comes from the person's own workspace, whose organisation the payload names.
    let enterprise = payload.enterprise_id.as_deref();
    let is_sibling = enterprise.is_some() && enterprise == identity.organisation.as_deref();
    Event::Command(Command {
        id,
        place: Place {
            chat,
            kind,
            title,
            ..Place::default()
        },
        sender: Sender {
            id: user,
            display_name: None,
            username: text::name(payload.user_name.as_deref()),
            kind: SenderKind::Person,
            is_stranger: !is_sibling && context.is_stranger(payload.team_id.as_deref()),
        },
        name,
        text: text::neutral_unmarked(payload.text.as_deref().unwrap_or_default()),
    })
}

/// What the channel name of a command says; Slack names chats without a name by their kind.
pub(super) fn named_chat(name: Option<&str>) -> (Option<ChatKind>, Option<String>) {
    match name {
        Some("directmessage") => (Some(ChatKind::Direct), None),
        Some("privategroup") => (Some(ChatKind::Private), None),
        Some(name) if name.starts_with("mpdm-") => (Some(ChatKind::GroupDirect), None),
        name => (None, text::channel_title(name)),
    }
}

pub(super) fn user_sender(user: &UserObject, context: &EventContext<'_>) -> Option<Sender> {
    let id = user.id.clone()?;
    let is_bot = *user.is_bot == Some(true) || id == SLACKBOT;
    Some(Sender {
        id,
        display_name: user.display_name(),
        username: text::name(user.name.as_deref()).or_else(|| text::name(user.username.as_deref())),
        kind: if is_bot {
            SenderKind::Bot
        } else {
            SenderKind::Person
        },
        is_stranger: context.is_stranger(user.team_id.as_deref()),
    })
}

fn is_own(event: &SlackEvent, context: &EventContext<'_>) -> bool {
    let ids = [event.user_id(), event.bot_id.as_deref()];
    ids.into_iter()
        .flatten()
        .any(|id| context.identity.is_self(id))
}

/// Where `message` is, by the event around it.
fn place(event: &SlackEvent, message: &SlackEvent, context: &EventContext<'_>) -> Option<Place> {
    let chat = event.channel_id()?.to_owned();
    let (mut kind, mut title) = (chat_kind(event.channel_type.as_deref(), &chat), None);
    if let Some(IdOr::Object(channel)) = event.channel.as_ref() {
        title = text::channel_title(channel.name.as_deref());
        kind = kind.or((*channel.is_mpim == Some(true)).then_some(ChatKind::GroupDirect));
    }
    Some(Place {
        chat,
        kind,
        title,
        thread: message
            .thread_ts
            .clone()
            .filter(|thread| !thread.is_empty()),
        topic: None,
        topic_title: None,
        is_shared: context.is_shared == Some(true),
    })
}

/// The kind by `channel_type`. Of the ids, only a direct message's `D` says anything.
pub(super) fn chat_kind(channel_type: Option<&str>, chat: &str) -> Option<ChatKind> {
    match channel_type {
        Some("im" | "app_home") => Some(ChatKind::Direct),
        Some("mpim") => Some(ChatKind::GroupDirect),
        Some("group") => Some(ChatKind::Private),
        Some("channel" | "C") => Some(ChatKind::Public),
        _ => chat.starts_with('D').then_some(ChatKind::Direct),
    }
}

fn inbound_message(
    message: &SlackEvent,
    place: Place,
    context: &EventContext<'_>,
) -> Option<InboundMessage> {
    let message_id = message.ts.clone()?;
    let (sent_at_ms, ordinal) = time_of(&message_id)?;
    let text = full_text(message);
    let mentions = mentions(message, &text);
    Some(InboundMessage {
        place,
        message_id,
        sender: sender(message, context),
        mentions_bot: mentions.iter().any(|id| context.identity.is_self(id)),
        text,
        mentions,
        command: None,
        reply_to: None,
        attachments: message.files.iter().map(attachment).collect(),
        album: None,
        sent_at_ms,
        ordinal,
        edit_marker: edit_marker(message),
    })
}

/// A Slack `ts` as milliseconds and its six-digit fraction; `None` if it is none.
///
/// Never through a float: sixteen digits do not fit one.
pub(super) fn time_of(ts: &str) -> Option<(i64, i64)> {
    let (seconds, fraction) = ts.split_once('.').unwrap_or((ts, ""));
    let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    if seconds.is_empty() || fraction.len() > 6 || !is_number(seconds) || !is_number(fraction) {
        return None;
    }
    let micros: i64 = format!("{fraction:0<6}").parse().ok()?;
    let seconds: i64 = seconds.parse().ok()?;
    Some((
        seconds.checked_mul(1_000)?.checked_add(micros / 1_000)?,
        micros,
    ))
}

fn sender(message: &SlackEvent, context: &EventContext<'_>) -> Sender {
    let profile = message.user_profile.as_ref();
    let bot_name = message
        .bot_profile
        .as_ref()
        .and_then(|bot| text::name(bot.name.as_deref()));
    Sender {
        id: message
            .user_id()
            .or(message.bot_id.as_deref().filter(|id| !id.is_empty()))
            .unwrap_or(SLACK_ITSELF)
            .to_owned(),
        display_name: text::name(message.username.as_deref())
            .or_else(|| profile.and_then(UserProfile::display_name))
            .or(bot_name),
        username: profile.and_then(|profile| text::name(profile.name.as_deref())),
        kind: sender_kind(message),
        is_stranger: context.is_stranger(told_team(message, context)),
    }
}

/// The team of a message's author, where Slack gives it. In a shared chat `team` may be the host's.
fn told_team<'a>(message: &'a SlackEvent, context: &EventContext<'_>) -> Option<&'a str> {
    let authors = [&message.user_team, &message.source_team];
    let profile = message.user_profile.as_ref();
    let bot = message.bot_profile.as_ref();
    let authors = authors.into_iter().find_map(|team| team.as_deref());
    let team = authors
        .or_else(|| profile?.team.as_deref())
        .or_else(|| bot?.team_id.as_deref());
    let is_authors = context.is_shared != Some(true);
    team.or_else(|| message.team.as_deref().filter(|_| is_authors))
}

fn sender_kind(message: &SlackEvent) -> SenderKind {
    let is_bot_message = message.subtype.as_deref() == Some("bot_message");
    match message.user_id() {
        _ if message.bot_id.is_some() || is_bot_message => SenderKind::Bot,
        Some(SLACKBOT) => SenderKind::Bot,
        Some(SLACK_ITSELF) | None => SenderKind::System,
        Some(_) => SenderKind::Person,
    }
}

/// The people that the text mentions, and those that only its blocks mention.
fn mentions(message: &SlackEvent, text: &str) -> Vec<String> {
    let mut known = HashSet::new();
    let mentioned = mentioned_ids(text).into_iter();
    let all = mentioned.chain(text::block_mentions(&message.blocks));
    all.filter(|id| known.insert(id.clone())).collect()
}

/// What the message says: its files in brackets, its text or blocks, and what it forwards.
fn full_text(message: &SlackEvent) -> String {
    let text = message.text.as_deref().unwrap_or_default();
    let mut own =
        text::from_rich_text(&message.blocks, text).unwrap_or_else(|| text::neutral(text));
    if own.trim().is_empty() {
        own = text::from_blocks(&message.blocks);
    }
    if message.subtype.as_deref() == Some("me_message") && !own.trim().is_empty() {
        own = format!("_{}_", own.trim());
    }
    let has_text = !own.trim().is_empty() || !message.files.is_empty();
    let attached = text::from_attachments(&message.attachments, has_text);
    let files = message.files.iter().map(file_label);
    let head = files
        .chain(std::iter::once(own))
        .filter(|it| !it.is_empty());
    let head = head.collect::<Vec<_>>().join(" ");
    match (head.is_empty(), attached.is_empty()) {
        (_, true) => head,
        (true, false) => attached,
        (false, false) => format!("{head}\n{attached}"),
    }
}

/// `photo`, `video`, `voice`, `audio` or `file`.
pub(super) fn file_kind(file: &File) -> &'static str {
    let mime_type = file.mimetype.as_deref().unwrap_or_default();
    match mime_type.split('/').next() {
        _ if file.subtype.as_deref() == Some("slack_audio") => "voice",
        Some("image") => "photo",
        Some("video") => "video",
        Some("audio") => "audio",
        _ => "file",
    }
}

fn file_label(file: &File) -> String {
    let kind = file_kind(file);
    let duration = file.duration_ms.map(|ms| ms / 1_000);
    match (kind, duration, file_name(file)) {
        ("photo", _, _) => "[photo]".to_owned(),
        ("voice" | "video", Some(seconds), _) => {
            format!("[{kind} {}:{:02}]", seconds / 60, seconds % 60)
        }
        (_, _, Some(name)) => format!("[{kind} {name}]"),
        _ => format!("[{kind}]"),
    }
}

/// The name that a file is shown by.
pub(super) fn file_name(file: &File) -> Option<String> {
    text::name(file.name.as_deref())
        .or_else(|| text::name(file.title.as_deref()))
        .map(|name| name.replace(['\n', '\r'], " "))
}

fn attachment(file: &File) -> Attachment {
    Attachment {
        kind: file_kind(file).to_owned(),
        file_id: file.live_id().map(str::to_owned),
        name: file_name(file),
        mime_type: text::name(file.mimetype.as_deref()),
        size_bytes: *file.size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_a_blank_id_is_kept_untranslated() {
        let identity = Identity {
            platform: Platform::Slack,
            account: "T1".to_owned(),
            account_name: "Acme".to_owned(),
            user_id: "UBOT".to_owned(),
            other_ids: Vec::new(),
            username: None,
            display_name: "Bot".to_owned(),
            warnings: Vec::new(),
            organisation: None,
        };
        let event = |chat: &str, user: &str, trigger: &str| {
            let payload = format!(
                r#"{{"channel_id":"{chat}","user_id":"{user}","trigger_id":"{trigger}","command":"/v"}}"#
            );
            slash_command(&payload, &identity)
        };
        assert!(matches!(event("C1", "U1", "1.2"), Event::Command(_)));
        for (chat, user, trigger) in [("", "U1", "1.2"), ("C1", " ", "1.2"), ("C1", "U1", "")] {
            let reason = "a command without its ids".to_owned();
            assert_eq!(event(chat, user, trigger), Event::Untranslated { reason });
        }
    }

    #[test]
    fn a_ts_is_never_a_float() {
        let table = [
            ("1763712000.000100", Some((1_763_712_000_000, 100))),
            ("1763712000.123456", Some((1_763_712_000_123, 123_456))),
            ("9.2", Some((9_200, 200_000))),
            ("1763712000", Some((1_763_712_000_000, 0))),
            ("", None),
            (".1", None),
            ("1.1234567", None),
            ("-1.0", None),
            ("1e3", None),
            ("99999999999999999999.000100", None),
        ];
        for (ts, expected) in table {
            assert_eq!(time_of(ts), expected, "{ts}");
        }
    }
}
