//! Writing into rooms: `chat.*`, `reactions.*`, `assistant.threads.setStatus`.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::super::blocks::{check_attachments, check_blocks, check_metadata, fallback_text};
use super::super::elements::with_ids;
use super::super::events::{self, PostChange, message_object};
use super::super::faults::SlackKnobs;
use super::super::post::{SlackEphemeral, SlackPost};
use super::super::state::{SlackCore, SlackStatus};
use super::super::text::posted_to_stored;
use super::super::world::{ChannelKind, SlackConversation};
use super::call::MethodCall;
use super::conversations::required;
use super::directory::domain;
use super::{ApiError, MethodOutcome, MethodReply};
use crate::wire::now_ms;

/// Longer texts of a new post are cut, with a warning.
const POST_CHARS_MAX: usize = 40_000;
/// Longer texts of an update are refused.
const UPDATE_CHARS_MAX: usize = 4_000;
/// Longer `markdown_text` is refused.
pub(super) const MARKDOWN_CHARS_MAX: usize = 12_000;
/// Most `loading_messages` of a status.
const LOADING_MESSAGES_MAX: usize = 10;

pub(super) fn post_message(
    core: &mut SlackCore,
    call: &MethodCall,
    knobs: &SlackKnobs,
) -> MethodOutcome {
    let channel = addressed(core, call)?;
    if call.flag("as_user") {
        return Err(ApiError::new("as_user_not_supported"));
    }
    let author = author(core, call, knobs)?;
    let content = PostContent::of(call)?.filled()?;
    let metadata = metadata(call)?.filter(|metadata| *metadata != json!({}));
    let thread_ts = thread(core, call, &channel)?;
    keep_pace(core, knobs, &channel.id)?;
    let is_broadcast = thread_ts.is_some() && call.flag("reply_broadcast");
    let mut warnings = Vec::new();
    let mut text = content.text.unwrap_or_default();
    if text.chars().count() > POST_CHARS_MAX {
        text = text.chars().take(POST_CHARS_MAX).collect();
        warnings.push("message_truncated");
    }
    let post = SlackPost {
        thread_ts,
        subtype: match author.subtype {
            None if is_broadcast => Some("thread_broadcast".to_owned()),
            subtype => subtype,
        },
        text: posted_to_stored(&text),
        blocks: content.blocks.filter(|blocks| *blocks != json!([])),
        attachments: content.attachments,
        metadata,
        ..author
    };
    let ts = post.ts.clone();
    let root_ts = post.thread_ts.clone().unwrap_or_default();
    let root = core.post(&channel.id, &root_ts);
    let message = message_object(&core.world, &post, root);
    let events = core.insert(&channel, post);
    let mut reply = MethodReply::of(json!({"channel": channel.id, "ts": ts, "message": message}));
    reply.warnings = warnings;
    Ok(reply.with_events(events))
}

/// A post of the bot, under the name and picture that the call gives. Under another name it has no user.
pub(super) fn author(
    core: &mut SlackCore,
    call: &MethodCall,
    knobs: &SlackKnobs,
) -> Result<SlackPost, ApiError> {
    let (username, emoji) = (call.given("username"), call.given("icon_emoji"));
    let url = call.given("icon_url");
    let is_customized = username.is_some() || emoji.is_some() || url.is_some();
    if is_customized && !core.world.has_scope("chat:write.customize") {
        return Err(ApiError::missing_scope(core, "chat:write.customize"));
    }
    let own = core.own_post(knobs);
    if !is_customized {
        return Ok(own);
    }
    Ok(SlackPost {
        user: None,
        subtype: Some("bot_message".to_owned()),
        username,
        icons: match (emoji, url) {
            (Some(emoji), _) => Some(json!({"emoji": emoji})),
            (None, Some(url)) => Some(json!({"image_48": url})),
            (None, None) => None,
        },
        ..own
    })
}

pub(super) fn update(core: &mut SlackCore, call: &MethodCall, knobs: &SlackKnobs) -> MethodOutcome {
    let channel = conversation(core, call)?;
    let ts = required(call, "ts")?;
    let content = PostContent::of(call)?;
    if content.text_chars() > UPDATE_CHARS_MAX && call.given("markdown_text").is_none() {
        return Err(ApiError::new("msg_too_long"));
    }
    let content = content.filled()?;
    let metadata = metadata(call)?;
    let change_ts = core.next_ts();
    let edit_by = core.world.bot_user_id.clone();
    let post = own_post(core, &channel, &ts, "cant_update_message")?;
    if is_open(post) {
        return Err(ApiError::new("streaming_state_conflict"));
    }
    let before = post.clone();
    if let Some(text) = &content.text {
        post.text = posted_to_stored(text);
        post.blocks = None;
        if content.blocks.is_none() {
            post.edited = Some((edit_by, change_ts.clone()));
        }
    }
    match content.blocks {
        Some(blocks) if blocks == json!([]) => post.blocks = None,
        Some(blocks) => post.blocks = Some(blocks),
        None => {}
    }
    if content.attachments.is_some() {
        post.attachments = content.attachments;
    }
    match metadata {
        Some(metadata) if metadata == json!({}) => post.metadata = None,
        Some(metadata) => post.metadata = Some(metadata),
        None => {}
    }
    let after = post.clone();
    let change = PostChange {
        before: &before,
        after: &after,
        ts: change_ts,
        counters: Map::new(),
    };
    let events = events::of_change(&core.world, &channel, &change, knobs.mention_on_edit);
    let message = message_object(&core.world, &after, None);
    Ok(MethodReply::of(json!({
        "channel": channel.id, "ts": ts, "text": after.text, "message": message,
    }))
    .with_events(events))
}

pub(super) fn delete(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let channel = conversation(core, call)?;
    let ts = required(call, "ts")?;
    if is_open(own_post(core, &channel, &ts, "cant_delete_message")?) {
        return Err(ApiError::new("cant_delete_message"));
    }
    let events = core.delete(&channel.id, &ts).map_err(ApiError::new)?;
    Ok(MethodReply::of(json!({"channel": channel.id, "ts": ts})).with_events(events))
}

pub(super) fn post_ephemeral(
    core: &mut SlackCore,
    call: &MethodCall,
    _: &SlackKnobs,
) -> MethodOutcome {
    let channel = addressed(core, call)?;
    let user = required(call, "user")?;
    if !channel.members.contains(&user) {
        return Err(ApiError::new("user_not_in_channel"));
    }
    let content = PostContent::of(call)?.filled()?;
    let thread_ts = thread(core, call, &channel)?;
    let ts = core.next_ts();
    core.ephemerals.push(SlackEphemeral {
        channel: channel.id,
        user,
        thread_ts,
        ts: ts.clone(),
        text: posted_to_stored(&content.text.unwrap_or_default()),
        blocks: content.blocks,
    });
    Ok(MethodReply::of(json!({"message_ts": ts})))
}

pub(super) fn reactions_add(
    core: &mut SlackCore,
    call: &MethodCall,
    _: &SlackKnobs,
) -> MethodOutcome {
    react(core, call, true)
}

pub(super) fn reactions_remove(
    core: &mut SlackCore,
    call: &MethodCall,
    _: &SlackKnobs,
) -> MethodOutcome {
    react(core, call, false)
}

fn react(core: &mut SlackCore, call: &MethodCall, add: bool) -> MethodOutcome {
    let channel = conversation(core, call)?;
    let name = call.given("name").unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_+-':".contains(c);
    if name.is_empty() || name.starts_with(':') || !name.chars().all(is_name) {
        return Err(ApiError::new("invalid_name"));
    }
    let ts = call
        .given("timestamp")
        .ok_or_else(|| ApiError::new("no_item_specified"))?;
    if !is_ts(&ts) {
        return Err(ApiError::new("bad_timestamp"));
    }
    let user = core.world.bot_user_id.clone();
    let events = core
        .react((&channel.id, &ts), &user, &name, add)
        .map_err(ApiError::new)?;
    Ok(MethodReply::default().with_events(events))
}

pub(super) fn reactions_get(
    core: &mut SlackCore,
    call: &MethodCall,
    _: &SlackKnobs,
) -> MethodOutcome {
    let channel = conversation(core, call)?;
    let ts = call
        .given("timestamp")
        .ok_or_else(|| ApiError::new("no_item_specified"))?;
    if !is_ts(&ts) {
        return Err(ApiError::new("bad_timestamp"));
    }
    let post = core.post(&channel.id, &ts).filter(|post| !post.deleted);
    let post = post.ok_or_else(|| ApiError::new("message_not_found"))?;
    let mut message = message_object(&core.world, post, None);
    message.remove("metadata");
    message.insert("permalink".into(), json!(permalink(core, &channel, post)));
    Ok(MethodReply::of(json!({
        "type": "message", "channel": channel.id, "message": message,
    })))
}

pub(super) fn get_permalink(
    core: &mut SlackCore,
    call: &MethodCall,
    _: &SlackKnobs,
) -> MethodOutcome {
    let id = call.given("channel").unwrap_or_default();
    let is_seen = |channel: &&SlackConversation| {
        channel.id == id && (channel.kind == ChannelKind::Public || channel.bot_is_member)
    };
    let channel = core.world.channels.iter().find(is_seen).cloned();
    let channel = channel.ok_or_else(|| ApiError::new("channel_not_found"))?;
    let ts = required(call, "message_ts")?;
    let post = core.post(&channel.id, &ts).filter(|post| !post.deleted);
    let post = post.ok_or_else(|| ApiError::new("message_not_found"))?;
    Ok(MethodReply::of(json!({
        "channel": channel.id, "permalink": permalink(core, &channel, post),
    })))
}

fn permalink(core: &SlackCore, channel: &SlackConversation, post: &SlackPost) -> String {
    let (domain, id) = (domain(&core.world), &channel.id);
    let digits = post.ts.replace('.', "");
    let link = format!("https://{domain}.slack.com/archives/{id}/p{digits}");
    match post.thread_ts.as_ref().filter(|root| **root != post.ts) {
        Some(root) => format!("{link}?thread_ts={root}&cid={id}"),
        None => link,
    }
}

pub(super) fn set_status(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let id = required(call, "channel_id")?;
    let channel = allowed(core, &id)?;
    let thread_ts = required(call, "thread_ts")?;
    let status = call.text("status").ok_or_else(|| {
        ApiError::new("invalid_arguments").because("missing required field: status")
    })?;
    if !is_ts(&thread_ts) || !core.is_thread(&channel.id, &thread_ts) {
        return Err(ApiError::new("invalid_thread_ts"));
    }
    let loading = call
        .structure("loading_messages")
        .map_err(|()| ApiError::new("invalid_arguments"))?
        .and_then(|loading| loading.as_array().map(Vec::len));
    if loading.is_some_and(|count| count > LOADING_MESSAGES_MAX) {
        return Err(ApiError::new("invalid_arguments").because("too many loading_messages"));
    }
    core.statuses.push(SlackStatus {
        channel: channel.id,
        thread_ts,
        status,
    });
    Ok(MethodReply::default())
}

/// The words of a post, checked one by one.
struct PostContent {
    text: Option<String>,
    blocks: Option<Value>,
    attachments: Option<Value>,
}

impl PostContent {
    fn of(call: &MethodCall) -> Result<Self, ApiError> {
        let mut text = call.text("text");
        let mut blocks = checked_blocks(call)?;
        let attachments = call
            .structure("attachments")
            .map_err(|()| ApiError::new("invalid_attachments"))?;
        if let Some(attachments) = &attachments {
            check_attachments(attachments)?;
        }
        if let Some(markdown) = call.given("markdown_text") {
            if text.is_some() || blocks.is_some() {
                return Err(ApiError::new("markdown_text_conflict"));
            }
            if markdown.chars().count() > MARKDOWN_CHARS_MAX {
                return Err(ApiError::new("msg_too_long"));
            }
            blocks = Some(with_ids(json!([{"type": "markdown", "text": markdown}])));
            text = Some(markdown);
        }
        Ok(Self {
            text,
            blocks,
            attachments,
        })
    }

    fn text_chars(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.chars().count())
    }

    /// Refuses content that shows nothing; makes a text for blocks that came alone.
    fn filled(mut self) -> Result<Self, ApiError> {
        let has = |list: &Option<Value>| {
            list.as_ref()
                .and_then(Value::as_array)
                .is_some_and(|list| !list.is_empty())
        };
        let has_text = self
            .text
            .as_ref()
            .is_some_and(|text| !text.trim().is_empty());
        if !has_text && !has(&self.blocks) && !has(&self.attachments) {
            return Err(ApiError::new("no_text"));
        }
        if self.text.is_none()
            && let Some(blocks) = &self.blocks
        {
            self.text = Some(fallback_text(blocks));
        }
        Ok(self)
    }
}

/// The blocks of a call, with the ids that Slack gives them.
pub(super) fn checked_blocks(call: &MethodCall) -> Result<Option<Value>, ApiError> {
    let blocks = call
        .structure("blocks")
        .map_err(|()| ApiError::new("invalid_blocks_format"))?;
    if let Some(blocks) = &blocks {
        check_blocks(blocks)?;
    }
    Ok(blocks.map(with_ids))
}

pub(super) fn metadata(call: &MethodCall) -> Result<Option<Value>, ApiError> {
    let metadata = call
        .structure("metadata")
        .map_err(|()| ApiError::new("invalid_metadata_format"))?;
    if let Some(metadata) = &metadata {
        check_metadata(metadata)?;
    }
    Ok(metadata)
}

/// The channel of a new post: what `writable` takes, or a channel's name, with `#` or without.
fn addressed(core: &mut SlackCore, call: &MethodCall) -> Result<SlackConversation, ApiError> {
    let given = call.given("channel").unwrap_or_default();
    let name = given.strip_prefix('#').unwrap_or(&given);
    let by_name = |channel: &&SlackConversation| !name.is_empty() && channel.name == name;
    let named = core.world.channels.iter().find(by_name);
    let id = named.map_or_else(|| given.clone(), |channel| channel.id.clone());
    writable(core, &id)
}

/// The channel that takes a new post: a conversation by id, or a person's direct chat.
pub(super) fn writable(core: &mut SlackCore, id: &str) -> Result<SlackConversation, ApiError> {
    let id = match core.world.users.iter().find(|user| user.id == id) {
        Some(user) if user.bot.is_some() => return Err(ApiError::new("cannot_dm_bot")),
        Some(_) => core.direct_chat(id).id,
        None => id.to_owned(),
    };
    let channel = allowed(core, &id)?;
    match channel.archived {
        true => Err(ApiError::new("is_archived")),
        false => Ok(channel),
    }
}

/// The channel of a change; a person's id is not one.
pub(super) fn conversation(
    core: &SlackCore,
    call: &MethodCall,
) -> Result<SlackConversation, ApiError> {
    let id = call
        .given("channel")
        .ok_or_else(|| ApiError::new("channel_not_found"))?;
    allowed(core, &id)
}

pub(super) fn allowed(core: &SlackCore, id: &str) -> Result<SlackConversation, ApiError> {
    let channels = core.world.channels.iter();
    let channel = channels.clone().find(|channel| channel.id == id);
    let channel = channel.ok_or_else(|| ApiError::new("channel_not_found"))?;
    let is_public = channel.kind == ChannelKind::Public;
    if channel.bot_is_member || (is_public && core.world.has_scope("chat:write.public")) {
        return Ok(channel.clone());
    }
    Err(ApiError::new(match is_public {
        true => "not_in_channel",
        false => "channel_not_found",
    }))
}

/// The thread of a new post. A reply's ts is accepted, as by Slack, and has no effect.
pub(super) fn thread(
    core: &SlackCore,
    call: &MethodCall,
    channel: &SlackConversation,
) -> Result<Option<String>, ApiError> {
    let Some(thread_ts) = call.given("thread_ts") else {
        return Ok(None);
    };
    if !is_ts(&thread_ts) {
        let sentence = format!("{thread_ts} is not a valid thread_ts");
        return Err(ApiError::new("invalid_thread_ts").because(&sentence));
    }
    if !core.is_thread(&channel.id, &thread_ts) {
        return Err(ApiError::new("thread_not_found"));
    }
    Ok(Some(thread_ts))
}

fn is_ts(text: &str) -> bool {
    let digits =
        |text: &str, len: usize| text.len() == len && text.bytes().all(|b| b.is_ascii_digit());
    text.split_once('.')
        .is_some_and(|(seconds, micros)| digits(seconds, 10) && digits(micros, 6))
}

/// About one post a second in a channel, however it is made, when the knob says so.
pub(super) fn keep_pace(
    core: &mut SlackCore,
    knobs: &SlackKnobs,
    channel: &str,
) -> Result<(), ApiError> {
    let gap = Duration::from_millis(knobs.post_gap_ms);
    let last = core.last_post_at.get(channel);
    if last.is_some_and(|last| last.elapsed() < gap) {
        return Err(ApiError::rate_limited(gap.as_secs()));
    }
    core.last_post_at.insert(channel.to_owned(), Instant::now());
    Ok(())
}

/// Whether a message is an open stream: then nothing but appending can be done to it.
fn is_open(post: &SlackPost) -> bool {
    let stream = post.stream.as_ref();
    stream.is_some_and(|stream| stream.is_open(now_ms()))
}

pub(super) fn own_post<'a>(
    core: &'a mut SlackCore,
    channel: &SlackConversation,
    ts: &str,
    not_own: &str,
) -> Result<&'a mut SlackPost, ApiError> {
    let bot_id = core.world.bot_id.clone();
    let post = core
        .post_mut(&channel.id, ts)
        .filter(|post| !post.deleted)
        .ok_or_else(|| ApiError::new("message_not_found"))?;
    match post.bot_id.as_ref() == Some(&bot_id) {
        true => Ok(post),
        false => Err(ApiError::new(not_own)),
    }
}
