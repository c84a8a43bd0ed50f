//! Reading rooms: `conversations.*`.
//!
//! History shows thread roots and broadcasts, never plain replies; metadata only when it is asked
//! for (slack.md §5.4).

use serde_json::{Map, Value, json};

use super::super::events::message_object;
use super::super::faults::SlackKnobs;
use super::super::post::SlackPost;
use super::super::state::SlackCore;
use super::super::world::{ChannelKind, SlackConversation};
use super::call::MethodCall;
use super::{ApiError, MethodOutcome, MethodReply};
use crate::wire::now_ms;

/// Default and largest page of `conversations.history`.
const HISTORY_PAGE: (usize, usize) = (100, 999);
/// Default and largest page of `conversations.replies`.
const REPLIES_PAGE: (usize, usize) = (1_000, 1_000);
/// Default and largest page of `conversations.list` and `conversations.members`.
const LIST_PAGE: (usize, usize) = (100, 999);

pub(super) fn info(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let channel = seen(core, call, "read")?;
    let with_count = call.flag("include_num_members");
    let shown = channel_json(core, &channel, with_count);
    Ok(MethodReply::of(json!({"channel": shown})))
}

pub(super) fn history(
    core: &mut SlackCore,
    call: &MethodCall,
    knobs: &SlackKnobs,
) -> MethodOutcome {
    let channel = joined(core, call)?;
    let window = Window::of(call)?;
    let posts = core.posts.get(&channel.id).map_or(&[][..], Vec::as_slice);
    let now = now_ms();
    let rows: Vec<Value> = posts
        .iter()
        .rev()
        .filter(|post| post.is_top_level() && post.visible_at_ms <= now)
        .filter(|post| window.holds(&post.ts))
        .filter_map(|post| row(core, &channel, post, call))
        .collect();
    let (messages, next_cursor) = reading_page(call, &rows, HISTORY_PAGE, knobs)?;
    let mut reply = json!({
        "messages": messages, "has_more": !next_cursor.is_empty(), "pin_count": 0,
    });
    if !next_cursor.is_empty() {
        reply["response_metadata"] = json!({"next_cursor": next_cursor});
    }
    Ok(MethodReply::of(reply))
}

pub(super) fn replies(
    core: &mut SlackCore,
    call: &MethodCall,
    knobs: &SlackKnobs,
) -> MethodOutcome {
    let channel = joined(core, call)?;
    let ts = required(call, "ts")?;
    let window = Window::of(call)?;
    let now = now_ms();
    let root = core
        .post(&channel.id, &ts)
        .filter(|post| post.visible_at_ms <= now)
        .and_then(|post| row(core, &channel, post, call))
        .ok_or_else(|| ApiError::new("thread_not_found"))?;
    let mut rows = vec![root];
    let replies = core.replies(&channel.id, &ts);
    rows.extend(
        replies
            .filter(|post| post.visible_at_ms <= now && window.holds(&post.ts))
            .filter_map(|post| row(core, &channel, post, call)),
    );
    let (messages, next_cursor) = reading_page(call, &rows, REPLIES_PAGE, knobs)?;
    let mut reply = json!({"messages": messages, "has_more": !next_cursor.is_empty()});
    if !next_cursor.is_empty() {
        reply["response_metadata"] = json!({"next_cursor": next_cursor});
    }
    Ok(MethodReply::of(reply))
}

pub(super) fn list(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let types = listed_types(core, call)?;
    let rows: Vec<Value> = core
        .world
        .channels
        .iter()
        .filter(|channel| types.contains(&channel.kind.list_type().to_owned()))
        .filter(|channel| channel.kind == ChannelKind::Public || channel.bot_is_member)
        .filter(|channel| !(call.flag("exclude_archived") && channel.archived))
        .map(|channel| channel_json(core, channel, true))
        .collect();
    let (channels, next_cursor) = page(call, &rows, LIST_PAGE.0, LIST_PAGE.1)?;
    Ok(MethodReply::of(json!({
        "channels": channels, "response_metadata": {"next_cursor": next_cursor},
    })))
}

/// The kinds of conversation that a listing asks for, each with its scope.
fn listed_types(core: &SlackCore, call: &MethodCall) -> Result<Vec<String>, ApiError> {
    let types = call.given("types").unwrap_or("public_channel".to_owned());
    let types: Vec<String> = types.split(',').map(|it| it.trim().to_owned()).collect();
    for wanted in &types {
        let scope = match wanted.as_str() {
            "public_channel" => "channels:read",
            "private_channel" => "groups:read",
            "mpim" => "mpim:read",
            "im" => "im:read",
            _ => return Err(ApiError::new("invalid_types")),
        };
        if !core.world.has_scope(scope) {
            return Err(ApiError::missing_scope(core, scope));
        }
    }
    Ok(types)
}

/// The conversations that the bot, or another user, is in.
pub(super) fn of_user(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let user = call
        .given("user")
        .unwrap_or_else(|| core.world.bot_user_id.clone());
    let is_bot = user == core.world.bot_user_id;
    if !is_bot && !core.world.users.iter().any(|known| known.id == user) {
        return Err(ApiError::new("user_not_found"));
    }
    let types = listed_types(core, call)?;
    // Membership in channels that the bot can't see is not shown.
    let is_in = |channel: &SlackConversation| match is_bot {
        true => channel.bot_is_member,
        false => {
            channel.members.contains(&user)
                && (channel.kind == ChannelKind::Public || channel.bot_is_member)
        }
    };
    let rows: Vec<Value> = core
        .world
        .channels
        .iter()
        .filter(|channel| types.contains(&channel.kind.list_type().to_owned()))
        .filter(|channel| is_in(channel))
        .filter(|channel| !(call.flag("exclude_archived") && channel.archived))
        .map(|channel| channel_json(core, channel, false))
        .collect();
    let (channels, next_cursor) = page(call, &rows, LIST_PAGE.0, LIST_PAGE.1)?;
    Ok(MethodReply::of(json!({
        "channels": channels, "response_metadata": {"next_cursor": next_cursor},
    })))
}

/// The bot joins a public channel by itself.
pub(super) fn join(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let id = required(call, "channel")?;
    let channels = core.world.channels.iter();
    let seen = |channel: &&SlackConversation| {
        channel.id == id && (channel.kind == ChannelKind::Public || channel.bot_is_member)
    };
    let channel = channels.clone().find(seen).cloned();
    let channel = channel.ok_or_else(|| ApiError::new("channel_not_found"))?;
    if channel.kind != ChannelKind::Public {
        return Err(ApiError::new("method_not_supported_for_channel_type"));
    }
    if channel.archived {
        return Err(ApiError::new("is_archived"));
    }
    if channel.bot_is_member {
        let mut reply = MethodReply::of(json!({"channel": channel_json(core, &channel, false)}));
        reply.warnings = vec!["already_in_channel"];
        return Ok(reply);
    }
    let joined = core.set_bot_membership(&channel.id, None, true);
    let events = joined.map_err(ApiError::new)?;
    let channel = core.channel(&channel.id).map_err(ApiError::new)?;
    let shown = channel_json(core, &channel, false);
    Ok(MethodReply::of(json!({"channel": shown})).with_events(events))
}

pub(super) fn members(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let channel = seen(core, call, "read")?;
    let rows = member_ids(core, &channel);
    let (members, next_cursor) = page(call, &rows, LIST_PAGE.0, LIST_PAGE.1)?;
    Ok(MethodReply::of(json!({
        "members": members, "response_metadata": {"next_cursor": next_cursor},
    })))
}

pub(super) fn open(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    if let Some(id) = call.given("channel") {
        let channel = core.world.channels.iter().find(|channel| channel.id == id);
        let channel = channel.ok_or_else(|| ApiError::new("channel_not_found"))?;
        return Ok(MethodReply::of(json!({"channel": {"id": channel.id}})));
    }
    let users = required(call, "users")?;
    let users: Vec<&str> = users.split(',').map(str::trim).collect();
    for id in &users {
        let known = core.world.users.iter().find(|user| user.id == *id);
        let known = known.ok_or_else(|| ApiError::new("user_not_found"))?;
        if known.bot.is_some() {
            return Err(ApiError::new("cannot_dm_bot"));
        }
    }
    let scope = if users.len() == 1 {
        "im:write"
    } else {
        "mpim:write"
    };
    if !core.world.has_scope(scope) {
        return Err(ApiError::missing_scope(core, scope));
    }
    let channel = match users[..] {
        [user] => core.direct_chat(user),
        _ => core.group_chat(&users),
    };
    let shown = match call.flag("return_im") {
        true => channel_json(core, &channel, false),
        false => json!({"id": channel.id}),
    };
    Ok(MethodReply::of(json!({"channel": shown})))
}

/// The channel that a call names, when the bot can see it and has the scope for its kind.
fn seen(core: &SlackCore, call: &MethodCall, right: &str) -> Result<SlackConversation, ApiError> {
    let id = required(call, "channel")?;
    let channels = core.world.channels.iter();
    let channel = channels
        .clone()
        .find(|channel| channel.id == id)
        .filter(|channel| channel.kind == ChannelKind::Public || channel.bot_is_member)
        .ok_or_else(|| ApiError::new("channel_not_found"))?;
    let scope = format!("{}:{right}", channel.kind.scope_prefix());
    if !core.world.has_scope(&scope) {
        return Err(ApiError::missing_scope(core, &scope));
    }
    Ok(channel.clone())
}

/// The channel whose messages the bot may read.
fn joined(core: &SlackCore, call: &MethodCall) -> Result<SlackConversation, ApiError> {
    let channel = seen(core, call, "history")?;
    match channel.bot_is_member {
        true => Ok(channel),
        false => Err(ApiError::new("not_in_channel")),
    }
}

/// An argument without which Slack refuses the call.
pub(super) fn required(call: &MethodCall, name: &str) -> Result<String, ApiError> {
    call.given(name).ok_or_else(|| {
        let sentence = format!("missing required field: {name}");
        ApiError::new("invalid_arguments").because(&sentence)
    })
}

/// One message as history shows it; a deleted root with replies is a placeholder.
fn row(
    core: &SlackCore,
    channel: &SlackConversation,
    post: &SlackPost,
    call: &MethodCall,
) -> Option<Value> {
    let counters = core.thread_counters(&channel.id, &post.ts);
    let is_root = !counters.is_empty();
    if post.deleted {
        return is_root.then(|| tombstone(post, counters));
    }
    let root = post.thread_ts.as_ref();
    let root = root.and_then(|root_ts| core.post(&channel.id, root_ts));
    let mut message = message_object(&core.world, post, root);
    if !call.flag("include_all_metadata") {
        message.remove("metadata");
    }
    message.extend(counters);
    Some(Value::Object(message))
}

fn tombstone(post: &SlackPost, counters: Map<String, Value>) -> Value {
    let mut placeholder = counters;
    placeholder.insert("type".into(), json!("message"));
    placeholder.insert("subtype".into(), json!("tombstone"));
    placeholder.insert("text".into(), json!("This message was deleted."));
    placeholder.insert("user".into(), json!("USLACKBOT"));
    placeholder.insert("hidden".into(), json!(true));
    placeholder.insert("ts".into(), json!(post.ts));
    Value::Object(placeholder)
}

/// The `oldest`/`latest` window of a call. Timestamps of one length compare as text.
struct Window {
    oldest: Option<String>,
    latest: Option<String>,
    inclusive: bool,
}

impl Window {
    fn of(call: &MethodCall) -> Result<Self, ApiError> {
        let bound = |name: &'static str, error: &'static str| match call.given(name) {
            None => Ok(None),
            Some(ts) if ts == "0" => Ok(None),
            Some(ts) => padded(&ts).map(Some).ok_or_else(|| ApiError::new(error)),
        };
        Ok(Self {
            oldest: bound("oldest", "invalid_ts_oldest")?,
            latest: bound("latest", "invalid_ts_latest")?,
            inclusive: call.flag("inclusive"),
        })
    }

    fn holds(&self, ts: &str) -> bool {
        let ts = ts.to_owned();
        let after = match &self.oldest {
            Some(oldest) => ts > *oldest || (self.inclusive && ts == *oldest),
            None => true,
        };
        let before = match &self.latest {
            Some(latest) => ts < *latest || (self.inclusive && ts == *latest),
            None => true,
        };
        after && before
    }
}

/// A window bound may have fewer decimals than a ts.
fn padded(ts: &str) -> Option<String> {
    let (seconds, decimals) = ts.split_once('.').unwrap_or((ts, ""));
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let fits = digits(seconds) && digits(decimals) && !seconds.is_empty();
    (fits && seconds.len() <= 10 && decimals.len() <= 6)
        .then(|| format!("{seconds:0>10}.{decimals:0<6}"))
}

/// A page of messages; some apps get fewer than they ask for.
fn reading_page(
    call: &MethodCall,
    rows: &[Value],
    (default, max): (usize, usize),
    knobs: &SlackKnobs,
) -> Result<(Vec<Value>, String), ApiError> {
    let limit = limit_of(call, default, max)?;
    let most = usize::try_from(knobs.history_page_max).unwrap_or(max);
    cut(call, rows, if most == 0 { limit } else { limit.min(most) })
}

/// One page of rows, and the cursor of the next (empty at the end).
pub(super) fn page(
    call: &MethodCall,
    rows: &[Value],
    default: usize,
    max: usize,
) -> Result<(Vec<Value>, String), ApiError> {
    cut(call, rows, limit_of(call, default, max)?)
}

fn limit_of(call: &MethodCall, default: usize, max: usize) -> Result<usize, ApiError> {
    let Some(limit) = call.given("limit") else {
        return Ok(default);
    };
    let limit = limit.parse().ok();
    limit
        .filter(|limit| (1..=max).contains(limit))
        .ok_or_else(|| ApiError::new("invalid_limit"))
}

fn cut(call: &MethodCall, rows: &[Value], limit: usize) -> Result<(Vec<Value>, String), ApiError> {
    let start = match call.given("cursor") {
        None => 0,
        Some(cursor) => start_of(&cursor, rows).ok_or_else(|| ApiError::new("invalid_cursor"))?,
    };
    let end = rows.len().min(start + limit);
    let next_cursor = match rows.get(end) {
        Some(next) => format!("next:{}", identity(next)),
        None => String::new(),
    };
    Ok((rows[start..end].to_vec(), next_cursor))
}

/// Cursors name the next row, so that rows which arrive meanwhile move nothing.
fn start_of(cursor: &str, rows: &[Value]) -> Option<usize> {
    let wanted = cursor.strip_prefix("next:")?;
    rows.iter().position(|row| identity(row) == wanted)
}

fn identity(row: &Value) -> &str {
    row.as_str()
        .or_else(|| row["ts"].as_str())
        .or_else(|| row["id"].as_str())
        .unwrap_or_default()
}

fn member_ids(core: &SlackCore, channel: &SlackConversation) -> Vec<Value> {
    let mut ids: Vec<Value> = channel.members.iter().map(|id| json!(id)).collect();
    if channel.bot_is_member {
        ids.push(json!(core.world.bot_user_id));
    }
    ids
}

fn channel_json(core: &SlackCore, channel: &SlackConversation, with_count: bool) -> Value {
    let is_private = channel.kind != ChannelKind::Public;
    let topic = json!({"value": channel.topic, "creator": "", "last_set": 0});
    let purpose = json!({"value": channel.purpose, "creator": "", "last_set": 0});
    if let ChannelKind::Im { user } = &channel.kind {
        return json!({
            "id": channel.id, "created": 1_700_000_000, "is_archived": channel.archived,
            "is_im": true, "is_org_shared": false, "user": user, "is_user_deleted": false,
            "context_team_id": core.world.team_id, "is_open": true,
        });
    }
    let mut shown = json!({
        "id": channel.id, "name": channel.name, "name_normalized": channel.name,
        "is_channel": channel.kind != ChannelKind::Mpim, "is_group": false, "is_im": false,
        "is_mpim": channel.kind == ChannelKind::Mpim, "is_private": is_private,
        "is_archived": channel.archived, "is_member": channel.bot_is_member,
        "is_ext_shared": channel.ext_shared, "is_org_shared": false,
        "is_shared": channel.ext_shared, "is_general": channel.name == "general",
        "created": 1_700_000_000, "creator": channel.members.first(),
        "context_team_id": core.world.team_id, "topic": topic, "purpose": purpose,
    });
    if with_count {
        shown["num_members"] = json!(member_ids(core, channel).len());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_bounds_are_padded_or_refused() {
        let cases = [
            ("1763712000.000100", Some("1763712000.000100")),
            ("1763712000", Some("1763712000.000000")),
            ("1763712000.5", Some("1763712000.500000")),
            ("1", Some("0000000001.000000")),
            ("x", None),
            ("1763712000.0001001", None),
            ("", None),
        ];
        for (ts, expected) in cases {
            assert_eq!(padded(ts).as_deref(), expected, "{ts}");
        }
    }
}
