//! Turns one raw update into an envelope. Pure and total.
//!
//! An update that cannot be read becomes [`Event::Untranslated`] with its raw JSON, so that it is
//! stored and confirmed instead of coming again for ever.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use vocative_contract::envelope::{
    ChatKind, Envelope, Event, InboundMessage, Place, ReplyTo, Standing,
};
use vocative_contract::feedback::{Thumb, ThumbChange};
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::interaction::{Control, Interaction, PressedAuthor, PressedMessage};
use vocative_contract::markup::{neutral_text, one_line as label};

use super::content::{chat_title, describe};
use super::numbers::numbered;
use super::sender::{is_stand_in, message_sender, user_sender};
use super::text::command_word;
use super::wire::{
    self, CallbackQuery, Chat, ChatMember, ChatMemberUpdated, Message, MessageReactions,
    RepliedMessage, UpdateStub, User,
};

/// Update kinds without content for a room, and the reason they are ignored with.
const IGNORED_KINDS: [(&str, &str); 20] = [
    ("business_connection", "business"),
    ("business_message", "business"),
    ("edited_business_message", "business"),
    ("deleted_business_messages", "business"),
    ("guest_message", "business"),
    ("message_reaction_count", "reaction"),
    ("inline_query", "inline"),
    ("chosen_inline_result", "inline"),
    ("shipping_query", "payment"),
    ("pre_checkout_query", "payment"),
    ("purchased_paid_media", "payment"),
    ("subscription", "payment"),
    ("poll", "poll"),
    ("poll_answer", "poll"),
    ("chat_member", "member"),
    ("chat_join_request", "member"),
    ("chat_boost", "boost"),
    ("removed_chat_boost", "boost"),
    ("managed_bot", "managed_bot"),
    ("stopped_message_generation", "stopped_generation"),
];

/// The fields that make a message a service message. Source: Bot API 10.3, `Message`, and the older
/// names that servers still send.
const SERVICE_FIELDS: [&str; 63] = [
    "boost_added",
    "channel_chat_created",
    "chat_background_set",
    "chat_owner_changed",
    "chat_owner_left",
    "chat_shared",
    "checklist_tasks_added",
    "checklist_tasks_done",
    "community_chat_added",
    "community_chat_joined",
    "community_chat_removed",
    "connected_website",
    "delete_chat_photo",
    "direct_message_price_changed",
    "forum_topic_closed",
    "forum_topic_created",
    "forum_topic_edited",
    "forum_topic_reopened",
    "general_forum_topic_hidden",
    "general_forum_topic_unhidden",
    "gift",
    "gift_upgrade_sent",
    "giveaway_completed",
    "giveaway_created",
    "group_chat_created",
    "left_chat_member",
    "left_chat_participant",
    "managed_bot_created",
    "message_auto_delete_timer_changed",
    "migrate_from_chat_id",
    "migrate_to_chat_id",
    "new_chat_member",
    "new_chat_members",
    "new_chat_participant",
    "new_chat_photo",
    "new_chat_title",
    "paid_message_price_changed",
    "passport_data",
    "pinned_message",
    "poll_option_added",
    "poll_option_deleted",
    "proximity_alert_triggered",
    "refunded_payment",
    "successful_payment",
    "suggested_post_approval_failed",
    "suggested_post_approved",
    "suggested_post_declined",
    "suggested_post_paid",
    "suggested_post_refunded",
    "supergroup_chat_created",
    "unique_gift",
    "user_shared",
    "users_shared",
    "video_chat_ended",
    "video_chat_participants_invited",
    "video_chat_scheduled",
    "video_chat_started",
    "voice_chat_ended",
    "voice_chat_participants_invited",
    "voice_chat_scheduled",
    "voice_chat_started",
    "web_app_data",
    "write_access_allowed",
];

/// The `update_id` of a raw update, if it has a readable one.
pub(super) fn update_id(raw: &str) -> Option<i64> {
    serde_json::from_str::<UpdateStub>(raw).ok()?.update_id
}

/// Translates one raw update as it came in the answer of `getUpdates`.
#[must_use]
pub fn translate(channel: &str, identity: &Identity, raw: &str, received_at_ms: i64) -> Envelope {
    let update = serde_json::from_str::<Map<String, Value>>(raw);
    let update = update.map_err(|_| "the update is not readable JSON");
    let event = update
        .as_ref()
        .map_err(|reason| *reason)
        .and_then(|update| event(identity, update, received_at_ms))
        .unwrap_or_else(|reason| Event::Untranslated {
            reason: reason.to_owned(),
        });
    Envelope {
        channel: channel.to_owned(),
        platform: Platform::Telegram,
        account: identity.account.clone(),
        delivery_id: update_id(raw).map(|id| id.to_string()).unwrap_or_default(),
        received_at_ms,
        event,
        numbered: update.ok().and_then(|update| numbered(identity, &update)),
        raw: raw.to_owned(),
    }
}

/// Whether a message is new or edited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageStage {
    New,
    Edited,
}

fn event(
    bot: &Identity,
    update: &Map<String, Value>,
    received_at_ms: i64,
) -> Result<Event, &'static str> {
    let messages = [
        ("message", MessageStage::New),
        ("channel_post", MessageStage::New),
        ("edited_message", MessageStage::Edited),
        ("edited_channel_post", MessageStage::Edited),
    ];
    for (kind, stage) in messages {
        if let Some(value) = present(update, kind) {
            return message_event(bot, value, stage, received_at_ms);
        }
    }
    if let Some(value) = present(update, "callback_query") {
        return interaction(bot, value);
    }
    if let Some(value) = present(update, "message_reaction") {
        return reactions(value);
    }
    if let Some(value) = present(update, "my_chat_member") {
        return membership(value);
    }
    IGNORED_KINDS
        .iter()
        .find(|(kind, _)| present(update, kind).is_some())
        .map(|(_, reason)| Event::Ignored { reason })
        .ok_or("the update is of an unknown kind")
}

pub(super) fn present<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn read<T: DeserializeOwned>(value: &Value, reason: &'static str) -> Result<T, &'static str> {
    T::deserialize(value).map_err(|_| reason)
}

fn message_event(
    bot: &Identity,
    value: &Value,
    stage: MessageStage,
    received_at_ms: i64,
) -> Result<Event, &'static str> {
    let message: Message = read(value, "the message is not readable")?;
    if message.business_connection_id.is_some() || message.guest_query_id.is_some() {
        return Ok(Event::Ignored { reason: "business" });
    }
    // In the direct messages of a channel every person has a private conversation of their own, in
    // topics of another kind; taken as one room they would read each other.
    if message.chat.is_direct_messages {
        return Ok(Event::Ignored {
            reason: "channel_direct_messages",
        });
    }
    if let Some(event) = service_event(&message, value) {
        return Ok(event);
    }
    if message.message_id == 0 {
        return Ok(Event::Ignored { reason: "no_id" });
    }
    let is_own_user = |id: i64| bot.is_self(&id.to_string());
    if message
        .via_bot
        .as_ref()
        .is_some_and(|via| is_own_user(via.id))
    {
        return Ok(Event::Ignored {
            reason: "own_inline",
        });
    }
    let from = message.from.as_ref();
    if message.sender_chat.is_none() && from.is_some_and(|from| is_own_user(from.id)) {
        return Ok(Event::OwnPost {
            place: place(&message),
            message_id: message.message_id.to_string(),
            marker: None,
        });
    }
    // A live location is edited every few seconds; only where it started is worth keeping.
    let is_live = |message: &Message| {
        let location = message.location.as_ref();
        location.is_some_and(|location| location.live_period.is_some())
    };
    if stage == MessageStage::Edited && is_live(&message) {
        return Ok(Event::Ignored {
            reason: "live_location",
        });
    }
    let inbound = inbound_message(bot, &message, received_at_ms);
    Ok(match stage {
        MessageStage::New => Event::Posted(inbound),
        MessageStage::Edited => Event::Edited(inbound),
    })
}

/// Whether a message is a service message.
pub(super) fn is_service(fields: &Map<String, Value>) -> bool {
    let mut names = SERVICE_FIELDS.iter();
    names.any(|name| present(fields, name).is_some())
}

/// What a service message says; `None` if the message is none.
fn service_event(message: &Message, value: &Value) -> Option<Event> {
    let fields = value.as_object()?;
    if !is_service(fields) {
        return None;
    }
    if let Some(to) = message.migrate_to_chat_id {
        return Some(moved(message.chat.id, to));
    }
    if let Some(from) = message.migrate_from_chat_id {
        return Some(moved(from, message.chat.id));
    }
    if let Some(title) = &message.new_chat_title {
        let mut place = place(message);
        place.title = label(title);
        place.topic = None;
        return Some(Event::ChatChanged { place });
    }
    let topic = message
        .forum_topic_created
        .as_ref()
        .or(message.forum_topic_edited.as_ref());
    if let Some(name) = topic.and_then(|topic| label(topic.name.as_deref()?)) {
        let id = message.message_thread_id.unwrap_or(message.message_id);
        let mut place = place(message);
        place.topic = Some(id.to_string());
        place.topic_title = Some(name);
        return Some(Event::ChatChanged { place });
    }
    Some(Event::Ignored { reason: "service" })
}

fn moved(from: i64, to: i64) -> Event {
    Event::ChatMoved {
        from_chat: from.to_string(),
        to_chat: to.to_string(),
    }
}

/// A readable message as the room heard it.
pub(super) fn inbound_message(
    bot: &Identity,
    message: &Message,
    received_at_ms: i64,
) -> InboundMessage {
    let content = describe(message, bot);
    // The copy of a channel post in its discussion group addresses nobody.
    let is_copy = message.is_automatic_forward;
    let mentions_bot = !is_copy && content.words.mentions.contains(&bot.user_id);
    let sent_at_ms = message
        .date
        .filter(|date| *date > 0)
        .and_then(|date| date.checked_mul(1_000));
    InboundMessage {
        place: Place {
            topic_title: first_topic_title(message),
            ..place(message)
        },
        message_id: message.message_id.to_string(),
        sender: message_sender(message),
        text: content.words.text,
        mentions: content.words.mentions,
        mentions_bot,
        command: command(bot, message).filter(|_| !is_copy),
        reply_to: reply_to(bot, message),
        attachments: content.attachments,
        album: message.media_group_id.clone(),
        sent_at_ms: sent_at_ms.unwrap_or(received_at_ms),
        ordinal: message.message_id,
        edit_marker: message.edit_date.map(|date| date.to_string()),
    }
}

/// The command that a message's sender gives; a forwarded command of another person or bot does not count.
fn command(bot: &Identity, message: &Message) -> Option<vocative_contract::envelope::CommandWord> {
    if message.forward_origin.is_some() || message.via_bot.is_some() {
        return None;
    }
    match (&message.text, &message.caption) {
        (Some(text), _) => command_word(text, &message.entities, bot),
        (None, Some(caption)) => command_word(caption, &message.caption_entities, bot),
        (None, None) => None,
    }
}

fn reply_to(bot: &Identity, message: &Message) -> Option<ReplyTo> {
    let reply = message.reply_to_message.as_ref()?;
    if is_topic_root(message, reply) || reply.message_id == 0 {
        return None;
    }
    let is_elsewhere = |chat: &Chat| chat.id != message.chat.id;
    if reply.chat.as_ref().is_some_and(is_elsewhere) {
        return None;
    }
    let from_bot = reply
        .from
        .as_ref()
        .is_some_and(|from| bot.is_self(&from.id.to_string()));
    let quote = message.quote.as_ref().filter(|quote| quote.is_manual);
    Some(ReplyTo {
        message_id: reply.message_id.to_string(),
        is_own: from_bot && reply.sender_chat.is_none(),
        quote: quote.map(|quote| neutral_text(&quote.text)),
        is_passed_on: message.forward_origin.is_some() || message.via_bot.is_some(),
    })
}

/// Whether a "reply" only says in which topic the message is.
///
/// Outside topics a thread id equals the id of the message at its root, so there an equal id is a
/// genuine first reply.
fn is_topic_root(message: &Message, reply: &RepliedMessage) -> bool {
    reply.forum_topic_created.is_some()
        || (message.is_topic_message && message.message_thread_id == Some(reply.message_id))
}

/// The name that a topic was created with. A bot that joins later can't learn it in any other way, and Telegram reports
/// a new name only once.
fn first_topic_title(message: &Message) -> Option<String> {
    let root = message.reply_to_message.as_ref()?;
    let created = root.forum_topic_created.as_ref()?;
    let is_in_it = message.is_topic_message && message.message_thread_id == Some(root.message_id);
    label(created["name"].as_str()?).filter(|_| is_in_it)
}

fn place(message: &Message) -> Place {
    Place {
        topic: topic(message.is_topic_message, message.message_thread_id),
        ..chat_place(&message.chat)
    }
}

fn topic(is_topic_message: bool, thread_id: Option<i64>) -> Option<String> {
    thread_id
        .filter(|_| is_topic_message)
        .map(|id| id.to_string())
}

/// The place a chat is, without a topic.
pub(super) fn chat_place(chat: &Chat) -> Place {
    let is_public = chat.username.as_ref().is_some_and(|name| !name.is_empty());
    let kind = match chat.kind.as_deref() {
        Some("private") => Some(ChatKind::Direct),
        Some("supergroup") if is_public => Some(ChatKind::Public),
        Some("group" | "supergroup") => Some(ChatKind::Private),
        Some("channel") => Some(ChatKind::Broadcast),
        _ => None,
    };
    Place {
        chat: chat.id.to_string(),
        kind,
        title: chat_title(chat),
        ..Place::default()
    }
}

fn interaction(bot: &Identity, value: &Value) -> Result<Event, &'static str> {
    let query: CallbackQuery = read(value, "the callback query is not readable")?;
    let place = query.message.as_ref().map(|message| Place {
        topic: topic(message.is_topic_message, message.message_thread_id),
        ..chat_place(&message.chat)
    });
    Ok(Event::Interaction(Interaction {
        control: Control::Button,
        place,
        message: query.message.as_ref().map(|it| pressed(bot, it)),
        is_anonymous: is_stand_in(&query.from),
        sender: user_sender(&query.from),
        team: None,
        data: neutral_text(query.data.as_deref().unwrap_or_default()),
        id: query.id,
        written: None,
    }))
}

fn pressed(bot: &Identity, message: &wire::ButtonMessage) -> PressedMessage {
    let is_own = |from: &User| bot.is_self(&from.id.to_string());
    let author = match (&message.sender_chat, &message.from) {
        (None, Some(from)) if is_own(from) => PressedAuthor::Us,
        (_, Some(_)) => PressedAuthor::Another,
        // The message is inaccessible, or a channel's post, which names no author.
        (_, None) => PressedAuthor::Untold,
    };
    PressedMessage {
        id: message.message_id.to_string(),
        author,
        is_forwarded: message.forward_origin.is_some(),
        is_via_bot: message.via_bot.is_some(),
        is_ephemeral: message.ephemeral_message_id.is_some(),
    }
}

/// Only thumbs count, and only those of people who show who they are.
fn reactions(value: &Value) -> Result<Event, &'static str> {
    let update: MessageReactions = read(value, "the reaction is not readable")?;
    let has = |reactions: &[Value], thumb: Thumb| {
        let mut emoji = reactions.iter().filter_map(|it| it["emoji"].as_str());
        emoji.any(|emoji| Thumb::of_reaction(emoji) == Some(thumb))
    };
    let both = [Thumb::Up, Thumb::Down];
    let is_about_thumbs = both
        .iter()
        .any(|thumb| has(&update.old_reaction, *thumb) || has(&update.new_reaction, *thumb));
    let user = update.user.as_ref().filter(|user| !is_stand_in(user));
    let Some(user) = user.filter(|_| is_about_thumbs) else {
        return Ok(Event::Ignored { reason: "reaction" });
    };
    Ok(Event::Thumb(ThumbChange {
        place: chat_place(&update.chat),
        message_id: update.message_id.to_string(),
        sender: user_sender(user),
        // The update lists all reactions of the person: a thumb that is missing was not given, or was taken back.
        thumbs: both
            .map(|thumb| (thumb, has(&update.new_reaction, thumb)))
            .to_vec(),
        at_ms: update.date.saturating_mul(1_000),
    }))
}

fn membership(value: &Value) -> Result<Event, &'static str> {
    let update: ChatMemberUpdated = read(value, "the membership change is not readable")?;
    let place = chat_place(&update.chat);
    let is_broadcast = place.kind == Some(ChatKind::Broadcast);
    let was_there = update.old_chat_member.as_ref().is_some_and(is_member);
    let standing = match can_post(&update.new_chat_member, is_broadcast) {
        true if was_there => Standing::Back,
        true => Standing::Joined,
        false => Standing::Gone,
    };
    Ok(Event::Membership { place, standing })
}

fn is_member(member: &ChatMember) -> bool {
    match member.status.as_str() {
        "creator" | "administrator" | "member" => true,
        "restricted" => member.is_member == Some(true),
        _ => false,
    }
}

fn can_post(member: &ChatMember, is_broadcast: bool) -> bool {
    match member.status.as_str() {
        "creator" => true,
        "administrator" if is_broadcast => member.can_post_messages == Some(true),
        "administrator" => true,
        "member" => !is_broadcast,
        "restricted" => member.is_member == Some(true) && member.can_send_messages != Some(false),
        _ => false,
    }
}
