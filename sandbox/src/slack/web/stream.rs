//! Messages that take words at their end: `chat.startStream`, `chat.appendStream`, `chat.stopStream`
//! (slack.md §8).

use serde_json::{Map, Value, json};

use super::super::blocks::check_blocks;
use super::super::events::{self, PostChange, message_object};
use super::super::faults::SlackKnobs;
use super::super::post::{SlackPost, SlackStream};
use super::super::state::SlackCore;
use super::super::text::posted_to_stored;
use super::super::world::{ChannelKind, SlackConversation};
use super::call::MethodCall;
use super::chat::{
    MARKDOWN_CHARS_MAX, author, checked_blocks, conversation, keep_pace, metadata, own_post,
    thread, writable,
};
use super::conversations::required;
use super::{ApiError, MethodOutcome, MethodReply};
use crate::wire::now_ms;

pub(super) fn start(core: &mut SlackCore, call: &MethodCall, knobs: &SlackKnobs) -> MethodOutcome {
    let channel = writable(core, &required(call, "channel")?)?;
    // Streams outside of threads exist only in session channels, which this workspace lacks.
    let thread_ts = thread(core, call, &channel)?;
    let thread_ts = thread_ts.ok_or_else(|| ApiError::new("invalid_thread_ts"))?;
    let recipient = recipient(core, call, &channel)?;
    let words = StreamWords::of(call)?;
    keep_pace(core, knobs, &channel.id)?;
    let author = author(core, call, knobs)?;
    let life_ms = i64::try_from(knobs.stream_life_ms).unwrap_or(i64::MAX);
    let post = SlackPost {
        thread_ts: Some(thread_ts),
        text: posted_to_stored(&words.text),
        stream: Some(SlackStream {
            // The first words decide in which form all later ones must come.
            in_chunks: words.in_chunks,
            is_stopped: false,
            is_stopped_by_person: false,
            until_ms: now_ms().saturating_add(life_ms),
            recipient,
        }),
        ..author
    };
    let ts = post.ts.clone();
    let events = core.insert(&channel, post);
    Ok(MethodReply::of(json!({"channel": channel.id, "ts": ts})).with_events(events))
}

pub(super) fn append(core: &mut SlackCore, call: &MethodCall, knobs: &SlackKnobs) -> MethodOutcome {
    let words = StreamWords::of(call)?;
    if words.in_chunks.is_none() {
        let has_chunks = call.given("chunks").is_some();
        let code = if has_chunks {
            "invalid_chunks"
        } else {
            "no_text"
        };
        return Err(ApiError::new(code));
    }
    change(core, call, knobs, |post| add(post, &words))
}

pub(super) fn stop(core: &mut SlackCore, call: &MethodCall, knobs: &SlackKnobs) -> MethodOutcome {
    let words = StreamWords::of(call)?;
    let metadata = metadata(call)?.filter(|metadata| *metadata != json!({}));
    let blocks = checked_blocks(call)?;
    let mut reply = change(core, call, knobs, |post| {
        add(post, &words)?;
        if let Some(stream) = &mut post.stream {
            stream.is_stopped = true;
        }
        post.metadata = metadata;
        post.blocks = blocks;
        Ok(())
    })?;
    let (channel, ts) = (required(call, "channel")?, required(call, "ts")?);
    let message = core.post(&channel, &ts);
    let message = message.map(|post| message_object(&core.world, post, None));
    reply.fields.insert("message".to_owned(), json!(message));
    Ok(reply)
}

/// Changes a streamed message, and sends the events.
fn change(
    core: &mut SlackCore,
    call: &MethodCall,
    knobs: &SlackKnobs,
    change: impl FnOnce(&mut SlackPost) -> Result<(), ApiError>,
) -> MethodOutcome {
    let channel = conversation(core, call)?;
    let ts = required(call, "ts")?;
    let change_ts = core.next_ts();
    let post = own_post(core, &channel, &ts, "message_not_found")?;
    let before = post.clone();
    change(post)?;
    let after = post.clone();
    let told = PostChange {
        before: &before,
        after: &after,
        ts: change_ts,
        counters: Map::new(),
    };
    let events = events::of_change(&core.world, &channel, &told, knobs.mention_on_edit);
    Ok(MethodReply::of(json!({"channel": channel.id, "ts": ts})).with_events(events))
}

/// Appends words to a streamed message, if it is open, in the form in which it was started.
fn add(post: &mut SlackPost, words: &StreamWords) -> Result<(), ApiError> {
    let stream = post.stream.as_mut();
    if stream.as_ref().is_some_and(|it| it.is_stopped_by_person) && words.in_chunks.is_some() {
        return Err(ApiError::new("stopped_by_user"));
    }
    let stream = stream.filter(|it| it.is_open(now_ms()));
    let stream = stream.ok_or_else(|| ApiError::new("message_not_in_streaming_state"))?;
    match (stream.in_chunks, words.in_chunks) {
        (Some(begun), Some(mode)) if begun != mode => {
            return Err(ApiError::new("streaming_mode_mismatch"));
        }
        (begun, mode) => stream.in_chunks = begun.or(mode),
    }
    post.text.push_str(&posted_to_stored(&words.text));
    Ok(())
}

/// The person on whose screen it grows. A direct chat has one person, and none may be named there.
fn recipient(
    core: &SlackCore,
    call: &MethodCall,
    channel: &SlackConversation,
) -> Result<Option<String>, ApiError> {
    let user = call.given("recipient_user_id");
    let team = call.given("recipient_team_id");
    if matches!(channel.kind, ChannelKind::Im { .. }) {
        return match (user, team) {
            (None, None) => Ok(None),
            _ => Err(ApiError::new("invalid_arguments")),
        };
    }
    let user = user.ok_or_else(|| ApiError::new("missing_recipient_user_id"))?;
    team.ok_or_else(|| ApiError::new("missing_recipient_team_id"))?;
    let known = core.world.users.iter().find(|it| it.id == user);
    match known.filter(|it| it.bot.is_none()) {
        Some(_) => Ok(Some(user)),
        None => Err(ApiError::new("invalid_arguments").because("the recipient must be a person")),
    }
}

/// The words that a call adds; `in_chunks` is the form, `None` = no words.
struct StreamWords {
    text: String,
    in_chunks: Option<bool>,
}

impl StreamWords {
    fn of(call: &MethodCall) -> Result<Self, ApiError> {
        let markdown = call.given("markdown_text");
        let chunks = call
            .structure("chunks")
            .map_err(|()| ApiError::new("invalid_chunks"))?;
        let words = match (markdown, chunks) {
            (Some(_), Some(_)) => {
                let both = "cannot_provide_both_markdown_text_and_chunks";
                return Err(ApiError::new(both));
            }
            (Some(text), None) => Self {
                text,
                in_chunks: Some(false),
            },
            // The official helpers start and stop with a list that may be empty.
            (None, Some(Value::Array(chunks))) if chunks.is_empty() => Self {
                text: String::new(),
                in_chunks: None,
            },
            (None, Some(chunks)) => Self {
                text: chunked(&chunks)?,
                in_chunks: Some(true),
            },
            (None, None) => Self {
                text: String::new(),
                in_chunks: None,
            },
        };
        match words.text.chars().count() > MARKDOWN_CHARS_MAX {
            true => Err(ApiError::new("msg_too_long")),
            false => Ok(words),
        }
    }
}

/// The words of chunks; the other kinds of chunks hold none here.
fn chunked(chunks: &Value) -> Result<String, ApiError> {
    let wrong = || ApiError::new("invalid_chunks");
    let list = chunks.as_array().filter(|list| !list.is_empty());
    let mut text = String::new();
    for chunk in list.ok_or_else(wrong)? {
        match chunk["type"].as_str() {
            Some("markdown_text") => text.push_str(chunk["text"].as_str().ok_or_else(wrong)?),
            Some("task_update" | "plan_update") => {
                chunk["title"].as_str().ok_or_else(wrong)?;
            }
            Some("blocks") => check_blocks(&chunk["blocks"])?,
            _ => return Err(wrong()),
        }
    }
    Ok(text)
}
