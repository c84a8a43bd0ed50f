//! The table of methods: token, scopes, tier, encoding, and the function that runs each.

use std::time::Duration;

use tokio::time::Instant;

use super::super::faults::SlackKnobs;
use super::super::state::SlackCore;
use super::call::MethodCall;
use super::{
    ApiError, MethodOutcome, chat, conversations, directory, files, stream, surface, views,
};

/// Tiers are counted over this window, in seconds.
const TIER_WINDOW_S: u64 = 60;

/// Which token a method wants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Bot,
    App,
    /// The method takes no token.
    None,
}

/// One method.
pub(super) struct Method {
    name: &'static str,
    pub(super) token: TokenKind,
    /// Any one of these must be granted; empty if no scope is needed.
    pub(super) scopes: &'static [&'static str],
    /// Calls in a minute.
    per_minute_max: usize,
    takes_json: bool,
    pub(super) run: fn(&mut SlackCore, &MethodCall, &SlackKnobs) -> MethodOutcome,
}

const READ: &[&str] = &["channels:read", "groups:read", "mpim:read", "im:read"];
const HISTORY: &[&str] = &[
    "channels:history",
    "groups:history",
    "mpim:history",
    "im:history",
];
const OPEN: &[&str] = &["im:write", "mpim:write"];
const WRITE: &[&str] = &["chat:write"];
const REACT: &[&str] = &["reactions:write"];
const FILES: &[&str] = &["files:write"];

/// `Special` methods and their numbers: slack.md §4.1 and §5.3.
const METHODS: &[Method] = &[
    Method {
        name: "api.test",
        token: TokenKind::None,
        scopes: &[],
        per_minute_max: 100,
        takes_json: true,
        run: directory::api_test,
    },
    bot("auth.test", &[], 600, true, directory::auth_test),
    Method {
        name: "apps.connections.open",
        token: TokenKind::App,
        scopes: &[],
        // Tier 1 with its small burst.
        per_minute_max: 5,
        takes_json: true,
        run: directory::connections_open,
    },
    bot("chat.postMessage", WRITE, 300, true, chat::post_message),
    bot("chat.update", WRITE, 50, true, chat::update),
    bot("chat.delete", WRITE, 50, true, chat::delete),
    bot("chat.startStream", WRITE, 20, true, stream::start),
    bot("chat.appendStream", WRITE, 100, true, stream::append),
    bot("chat.stopStream", WRITE, 20, true, stream::stop),
    bot("chat.postEphemeral", WRITE, 100, true, chat::post_ephemeral),
    bot("conversations.info", READ, 50, false, conversations::info),
    bot(
        "conversations.history",
        HISTORY,
        50,
        false,
        conversations::history,
    ),
    bot(
        "conversations.replies",
        HISTORY,
        50,
        false,
        conversations::replies,
    ),
    bot(
        "conversations.join",
        &["channels:join"],
        50,
        true,
        conversations::join,
    ),
    bot(
        "users.conversations",
        READ,
        50,
        false,
        conversations::of_user,
    ),
    bot("conversations.list", READ, 20, false, conversations::list),
    bot(
        "conversations.members",
        READ,
        100,
        false,
        conversations::members,
    ),
    bot("conversations.open", OPEN, 50, true, conversations::open),
    bot(
        "users.info",
        &["users:read"],
        100,
        false,
        directory::users_info,
    ),
    bot(
        "users.list",
        &["users:read"],
        20,
        false,
        directory::users_list,
    ),
    bot(
        "bots.info",
        &["users:read"],
        50,
        false,
        directory::bots_info,
    ),
    bot("team.info", &["team:read"], 50, false, directory::team_info),
    bot("chat.getPermalink", &[], 600, false, chat::get_permalink),
    bot("views.open", &[], 100, true, views::open),
    bot("views.push", &[], 100, true, views::push),
    bot("views.update", &[], 100, true, views::update),
    bot("views.publish", &[], 100, true, views::publish),
    bot(
        "reactions.get",
        &["reactions:read"],
        50,
        false,
        chat::reactions_get,
    ),
    bot("reactions.add", REACT, 50, true, chat::reactions_add),
    bot("reactions.remove", REACT, 20, true, chat::reactions_remove),
    bot(
        "assistant.threads.setStatus",
        &["assistant:write", "chat:write"],
        600,
        true,
        chat::set_status,
    ),
    bot(
        "assistant.threads.setTitle",
        &["assistant:write"],
        50,
        true,
        surface::set_title,
    ),
    bot(
        "assistant.threads.setSuggestedPrompts",
        &["assistant:write"],
        50,
        true,
        surface::set_suggested_prompts,
    ),
    bot("files.info", &["files:read"], 100, false, files::info),
    bot(
        "files.getUploadURLExternal",
        FILES,
        100,
        false,
        files::get_upload_url,
    ),
    bot(
        "files.completeUploadExternal",
        FILES,
        100,
        true,
        files::complete_upload,
    ),
];

const fn bot(
    name: &'static str,
    scopes: &'static [&'static str],
    per_minute_max: usize,
    takes_json: bool,
    run: fn(&mut SlackCore, &MethodCall, &SlackKnobs) -> MethodOutcome,
) -> Method {
    Method {
        name,
        token: TokenKind::Bot,
        scopes,
        per_minute_max,
        takes_json,
        run,
    }
}

/// The method of this name.
pub(super) fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// Whether a JSON body of this method is read.
pub(super) fn takes_json(name: &str) -> bool {
    find(name).is_none_or(|method| method.takes_json)
}

/// Counts a call towards the limit that is in force for it.
pub(super) fn count_call(
    core: &mut SlackCore,
    method: &Method,
    knobs: &SlackKnobs,
) -> Result<(), ApiError> {
    let is_reading = ["conversations.history", "conversations.replies"].contains(&method.name);
    let (window, max) = if is_reading && knobs.history_gap_ms > 0 {
        (Duration::from_millis(knobs.history_gap_ms), 1)
    } else if knobs.tiers_enforced {
        (Duration::from_secs(TIER_WINDOW_S), method.per_minute_max)
    } else {
        return Ok(());
    };
    let calls = core.calls.entry(method.name.to_owned()).or_default();
    while calls.front().is_some_and(|at| at.elapsed() >= window) {
        calls.pop_front();
    }
    if calls.len() >= max {
        let passed = calls.front().map_or(Duration::ZERO, Instant::elapsed);
        // `Retry-After` is in whole seconds.
        let wait_ms = window.saturating_sub(passed).as_millis();
        let wait_s = u64::try_from(wait_ms.div_ceil(1_000)).unwrap_or(TIER_WINDOW_S);
        return Err(ApiError::rate_limited(wait_s.max(1)));
    }
    calls.push_back(Instant::now());
    Ok(())
}
