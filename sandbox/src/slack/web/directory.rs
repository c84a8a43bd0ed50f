//! Who is who: `auth.test`, sockets' tickets, users, bots, the team.

use serde_json::{Value, json};
use uuid::Uuid;

use super::super::faults::SlackKnobs;
use super::super::state::SlackCore;
use super::super::world::{SlackUser, SlackWorld};
use super::call::MethodCall;
use super::conversations::page;
use super::{ApiError, MethodOutcome, MethodReply};

/// Most entries of one `users.list` page.
const USERS_PAGE_MAX: usize = 1_000;

pub(super) fn auth_test(core: &mut SlackCore, _: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let world = &core.world;
    let domain = domain(world);
    Ok(MethodReply::of(json!({
        "url": format!("https://{domain}.slack.com/"), "team": world.team_name,
        "user": world.bot_name, "team_id": world.team_id, "user_id": world.bot_user_id,
        "bot_id": world.bot_id, "app_id": world.app_id, "app_name": world.bot_name,
        "is_enterprise_install": false,
    })))
}

/// `api.test`: returns its arguments, or the requested error.
pub(super) fn api_test(_: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let args = call.arguments();
    match call.given("error") {
        Some(error) => Err(ApiError::new(error).with("args", args)),
        None => Ok(MethodReply::of(json!({"args": args}))),
    }
}

pub(super) fn connections_open(
    core: &mut SlackCore,
    _: &MethodCall,
    _: &SlackKnobs,
) -> MethodOutcome {
    if core.deliveries.requests.is_on() {
        // The sheet names no error for this; the frame that ends sockets in this case has this name.
        return Err(ApiError::new("link_disabled"));
    }
    let ticket = Uuid::new_v4().to_string();
    let url = format!(
        "ws://{}/link/?ticket={ticket}&app_id={}",
        core.addr, core.world.app_id
    );
    core.tickets.insert(ticket);
    Ok(MethodReply::of(json!({"url": url})))
}

pub(super) fn users_info(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let id = call.given("user").unwrap_or_default();
    let users = everybody(&core.world);
    let found = users.iter().find(|user| user.id == id);
    let user = found.ok_or_else(|| ApiError::new("user_not_found"))?;
    Ok(MethodReply::of(
        json!({"user": user_json(&core.world, user)}),
    ))
}

pub(super) fn users_list(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let users: Vec<Value> = everybody(&core.world)
        .iter()
        .filter(|user| user.team_id == core.world.team_id)
        .map(|user| user_json(&core.world, user))
        .collect();
    let (members, next_cursor) = page(call, &users, USERS_PAGE_MAX, USERS_PAGE_MAX)?;
    Ok(MethodReply::of(json!({
        "members": members, "response_metadata": {"next_cursor": next_cursor},
    })))
}

pub(super) fn bots_info(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let id = call.given("bot").unwrap_or_default();
    for user in everybody(&core.world) {
        if let Some((bot_id, app_id)) = user.bot.filter(|(bot_id, _)| *bot_id == id) {
            return Ok(MethodReply::of(json!({"bot": {
                "id": bot_id, "deleted": user.deleted, "name": user.name, "updated": 1_700_000_000,
                "app_id": app_id, "user_id": user.id, "icons": {},
            }})));
        }
    }
    Err(ApiError::new("bot_not_found"))
}

pub(super) fn team_info(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let world = &core.world;
    let asked = call.given("team");
    if asked.is_some_and(|team| team != world.team_id) {
        return Err(ApiError::new("team_not_found"));
    }
    Ok(MethodReply::of(json!({"team": {
        "id": world.team_id, "name": world.team_name, "domain": domain(world),
        "email_domain": "", "icon": {},
    }})))
}

/// The workspace's part of its URL.
pub(in crate::slack) fn domain(world: &SlackWorld) -> String {
    world.team_name.to_lowercase().replace(' ', "-")
}

/// All users, the bot user last.
fn everybody(world: &SlackWorld) -> Vec<SlackUser> {
    let mut users = world.users.clone();
    users.push(SlackUser {
        id: world.bot_user_id.clone(),
        name: world.bot_name.clone(),
        real_name: world.bot_name.clone(),
        display_name: String::new(),
        team_id: world.team_id.clone(),
        bot: Some((world.bot_id.clone(), world.app_id.clone())),
        deleted: false,
    });
    users
}

fn user_json(world: &SlackWorld, user: &SlackUser) -> Value {
    let mut shown = json!({
        "id": user.id, "team_id": user.team_id, "name": user.name, "deleted": user.deleted,
        "real_name": user.real_name, "tz": "Etc/UTC", "tz_label": "UTC", "tz_offset": 0,
        "is_bot": user.bot.is_some(), "is_app_user": false, "is_admin": false, "is_owner": false,
        "is_restricted": world.guests.contains(&user.id), "is_ultra_restricted": false, "updated": 1_700_000_000,
        "profile": {
            "real_name": user.real_name, "display_name": user.display_name,
            "real_name_normalized": user.real_name, "display_name_normalized": user.display_name,
            "team": user.team_id,
        },
    });
    if let Some((bot_id, app_id)) = &user.bot {
        shown["profile"]["bot_id"] = json!(bot_id);
        shown["profile"]["api_app_id"] = json!(app_id);
    }
    if user.team_id != world.team_id {
        shown["is_stranger"] = json!(true);
    }
    shown
}
