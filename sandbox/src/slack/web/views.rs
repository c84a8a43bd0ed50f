//! `views.*`: modals and the Home tab (slack.md §7.3).

use std::time::Duration;

use serde_json::{Value, json};

use super::super::blocks::{Complaint, check_view_blocks};
use super::super::elements::check_text;
use super::super::faults::SlackKnobs;
use super::super::state::SlackCore;
use super::super::views::{STACK_MAX, ShownView};
use super::call::MethodCall;
use super::conversations::required;
use super::{ApiError, MethodOutcome, MethodReply};

/// Most characters of a modal's title and of the words on its buttons.
const LABEL_CHARS_MAX: usize = 24;
/// Most bytes of a view.
const VIEW_BYTES_MAX: usize = 250_000;
/// Most characters of `private_metadata`.
const METADATA_CHARS_MAX: usize = 3_000;
/// Most characters of `callback_id` and `external_id`.
const ID_CHARS_MAX: usize = 255;

pub(super) fn open(core: &mut SlackCore, call: &MethodCall, knobs: &SlackKnobs) -> MethodOutcome {
    let content = given_view(call, "modal")?;
    check_external_id(core, &content, None)?;
    let (user, _) = exchange(core, call, knobs)?;
    core.views.clear(&user);
    let view = core.views.open(&user, content, None);
    Ok(answer(core, &view))
}

pub(super) fn push(core: &mut SlackCore, call: &MethodCall, knobs: &SlackKnobs) -> MethodOutcome {
    let content = given_view(call, "modal")?;
    check_external_id(core, &content, None)?;
    let (user, from) = exchange(core, call, knobs)?;
    let below = from.and_then(|id| core.views.get(&id)).cloned();
    let below = below.ok_or_else(|| ApiError::new("no_permission"))?;
    if core.views.depth(&user) >= STACK_MAX {
        return Err(ApiError::new("push_limit_reached"));
    }
    let view = core.views.open(&user, content, Some(&below));
    Ok(answer(core, &view))
}

pub(super) fn update(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let content = given_view(call, "modal")?;
    let views = &core.views;
    let found = match (call.given("view_id"), call.given("external_id")) {
        (Some(id), _) => views.get(&id),
        (None, Some(id)) => views.external(&id),
        (None, None) => {
            return Err(wrong("either view_id or external_id must be provided"));
        }
    };
    let old = found.filter(|view| view.is_modal());
    let old = old.ok_or_else(|| ApiError::new("not_found"))?;
    check_hash(call, old)?;
    let id = old.id.clone();
    check_external_id(core, &content, Some(&id))?;
    let view = core.views.replace(&id, content);
    let view = view.ok_or_else(|| ApiError::new("not_found"))?;
    Ok(answer(core, &view))
}

pub(super) fn publish(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let user = required(call, "user_id")?;
    let content = given_view(call, "home")?;
    let known = core.world.users.iter().find(|known| known.id == user);
    if known.is_none_or(|known| known.bot.is_some()) {
        return Err(wrong("user_id is not a person of this workspace"));
    }
    let old = core.views.home(&user).cloned();
    if let Some(old) = &old {
        check_hash(call, old)?;
    }
    check_external_id(core, &content, old.as_ref().map(|old| old.id.as_str()))?;
    let view = match old {
        Some(old) => core.views.replace(&old.id, content),
        None => Some(core.views.open(&user, content, None)),
    };
    let view = view.ok_or_else(|| ApiError::new("not_found"))?;
    Ok(answer(core, &view))
}

fn answer(core: &SlackCore, view: &ShownView) -> MethodReply {
    MethodReply::of(json!({"view": view.to_json(&core.world)}))
}

fn exchange(
    core: &mut SlackCore,
    call: &MethodCall,
    knobs: &SlackKnobs,
) -> Result<(String, Option<String>), ApiError> {
    let trigger = required(call, "trigger_id")?;
    let life = Duration::from_millis(knobs.trigger_life_ms);
    core.views.exchange(&trigger, life).map_err(ApiError::new)
}

fn check_hash(call: &MethodCall, view: &ShownView) -> Result<(), ApiError> {
    match call.given("hash").is_none_or(|hash| view.has_hash(&hash)) {
        true => Ok(()),
        false => Err(ApiError::new("hash_conflict")),
    }
}

fn check_external_id(core: &SlackCore, content: &Value, own: Option<&str>) -> Result<(), ApiError> {
    let id = content["external_id"].as_str().filter(|id| !id.is_empty());
    let other = id.and_then(|id| core.views.external(id));
    match other.is_some_and(|other| Some(other.id.as_str()) != own) {
        true => Err(ApiError::new("duplicate_external_id")),
        false => Ok(()),
    }
}

fn wrong(sentence: &str) -> ApiError {
    ApiError::new("invalid_arguments").because(sentence)
}

/// The `view` argument, checked.
fn given_view(call: &MethodCall, kind: &str) -> Result<Value, ApiError> {
    let view = call.structure("view");
    let view = view.map_err(|()| wrong("view is no JSON"))?;
    let view = view.filter(Value::is_object);
    let view = view.ok_or_else(|| wrong("missing required field: view"))?;
    if view.to_string().len() > VIEW_BYTES_MAX {
        return Err(ApiError::new("view_too_large"));
    }
    check_view(&view, kind).map_err(|(_, sentence)| wrong(&sentence))?;
    Ok(view)
}

/// Checks a view as the platform does, wherever it comes from.
///
/// # Errors
/// The sentence that explains what is wrong.
pub(in super::super) fn check_view(view: &Value, kind: &str) -> Result<(), Complaint> {
    let complain = |sentence: &str| Err(("invalid_arguments", sentence.to_owned()));
    if view["type"] != kind {
        return complain(&format!("must be one of: {kind} [json-pointer:/view/type]"));
    }
    check_view_blocks(&view["blocks"])?;
    let chars = |name: &str| view[name].as_str().map_or(0, |text| text.chars().count());
    let bounds = [
        ("private_metadata", METADATA_CHARS_MAX),
        ("callback_id", ID_CHARS_MAX),
        ("external_id", ID_CHARS_MAX),
    ];
    for (name, max) in bounds {
        if chars(name) > max {
            return complain(&format!(
                "must be less than {} characters [json-pointer:/view/{name}]",
                max + 1
            ));
        }
    }
    if kind == "home" {
        return Ok(());
    }
    let is_label = |name: &str| {
        check_text(
            &view[name],
            &format!("/view/{name}"),
            LABEL_CHARS_MAX,
            &["plain_text"],
        )
    };
    is_label("title")?;
    for name in ["submit", "close"] {
        if !view[name].is_null() {
            is_label(name)?;
        }
    }
    let blocks = view["blocks"].as_array().into_iter().flatten();
    let has_input = blocks.into_iter().any(|block| block["type"] == "input");
    match has_input && view["submit"].is_null() {
        true => complain("missing required field: submit [json-pointer:/view]"),
        false => Ok(()),
    }
}
