//! What people do with an app's messages and views: commands, clicks, modals, and the app's immediate answers.
//!
//! Owns the payloads of slack.md §7. Who may click is decided here: a person who sees the message, on an
//! element that is really there.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::deliveries::{AckedEnvelope, EnvelopeKind};
use super::elements::{ElementName, action_ids, chosen, find};
use super::events::{self, EventObject};
use super::hooks::{self, HookSource};
use super::state::{SharedSlack, SlackCore};
use super::views::ShownView;
use super::web::{self, check_view};
use super::world::SlackUser;

/// A click on an element of a message or a view.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlockAction {
    /// Id or name of the message's channel.
    pub channel: String,
    /// Id or name of the person who clicks.
    pub user: String,
    /// The message that holds the element, ephemeral or not.
    #[serde(alias = "ts")]
    pub message_ts: String,
    /// The modal or Home tab that holds the element, instead of a message.
    pub view_id: String,
    /// Of the element's block; may be left out where the action id is enough.
    pub block_id: String,
    /// Of the element.
    pub action_id: String,
    /// The words on a button, instead of its action id.
    pub button: String,
    /// What is chosen in a menu, or entered. A button has its own.
    pub value: String,
    /// The same where several can be chosen.
    pub values: Vec<String>,
}

impl BlockAction {
    fn chosen(&self) -> Vec<String> {
        let one = Some(self.value.clone()).filter(|value| !value.is_empty());
        self.values.iter().cloned().chain(one).collect()
    }
}

/// Sends a slash command: channel, user, command, text.
pub(super) fn slash_command(shared: &SharedSlack, words: [&str; 4]) -> Result<(), String> {
    let [channel, user, command, text] = words;
    if !command.starts_with('/') {
        return Err(format!("a command begins with a slash: /{command}"));
    }
    shared.change(|core| {
        let (place, person) = (core.channel(channel)?, core.person(user)?);
        let response_url = hooks::response_url(core, HookSource::Command, &place.id, &person.id);
        let trigger_id = core.views.new_trigger(&person.id, None);
        let world = &core.world;
        let payload = json!({
            "token": "legacy", "team_id": world.team_id, "team_domain": web::domain(world),
            "channel_id": place.id, "channel_name": place.name, "user_id": person.id,
            "user_name": person.name, "command": command, "text": text,
            "api_app_id": world.app_id, "is_enterprise_install": "false",
            "response_url": response_url, "trigger_id": trigger_id,
        });
        submit(shared, core, EnvelopeKind::SlashCommands, payload);
        Ok(())
    })
}

/// Sends what a click sends.
pub(super) fn click(shared: &SharedSlack, action: &BlockAction) -> Result<(), String> {
    shared.change(|core| {
        let payload = match action.view_id.is_empty() {
            true => message_click(core, action)?,
            false => view_click(core, action)?,
        };
        submit(shared, core, EnvelopeKind::Interactive, payload);
        Ok(())
    })
}

fn submit(shared: &SharedSlack, core: &mut SlackCore, kind: EnvelopeKind, payload: Value) {
    let plan = shared.faults.knobs().retry;
    core.deliveries.submit(kind, payload, None, &plan);
}

/// The blocks of a message, and how the payload describes it.
struct Clicked {
    blocks: Value,
    container: Value,
    /// Absent from the payload of an ephemeral message.
    message: Option<Map<String, Value>>,
    source: HookSource,
}

fn message_click(core: &mut SlackCore, action: &BlockAction) -> Result<Value, String> {
    let (place, person) = (core.channel(&action.channel)?, core.person(&action.user)?);
    if !place.members.contains(&person.id) {
        return Err(format!(
            "{} is not in {} and sees no buttons there",
            person.id, place.id
        ));
    }
    let clicked = clicked(core, &place.id, &person.id, &action.message_ts)?;
    let acted = acted(core, &clicked.blocks, action)?;
    let response_url = hooks::response_url(core, clicked.source, &place.id, &person.id);
    let mut payload = common(core, "block_actions", &person, None);
    payload["container"] = clicked.container;
    payload["channel"] = json!({"id": place.id, "name": place.name});
    payload["response_url"] = json!(response_url);
    payload["state"] = json!({"values": state_of(&acted)});
    payload["actions"] = json!([acted]);
    if let Some(message) = clicked.message {
        payload["message"] = Value::Object(message);
    }
    Ok(payload)
}

/// The message that a person clicks in: one of the app, or one that only this person sees.
fn clicked(core: &SlackCore, channel: &str, user: &str, ts: &str) -> Result<Clicked, String> {
    let mut container = json!({
        "type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": false,
    });
    if let Some(post) = core.post(channel, ts).filter(|post| !post.deleted) {
        if post.bot_id.as_deref() != Some(core.world.bot_id.as_str()) {
            return Err("the message is not the app's, so the app hears of no click".to_owned());
        }
        if let Some(thread_ts) = &post.thread_ts {
            container["thread_ts"] = json!(thread_ts);
        }
        return Ok(Clicked {
            blocks: all_blocks(post.blocks.as_ref(), post.attachments.as_ref()),
            container,
            message: Some(post.to_json(&core.world)),
            source: HookSource::Message(ts.to_owned()),
        });
    }
    let mut whispers = core.ephemerals.iter();
    let whisper = whispers.find(|it| it.channel == channel && it.ts == ts);
    let whisper = whisper.ok_or_else(|| "message_not_found".to_owned())?;
    if whisper.user != user {
        return Err(format!("only {} sees this message", whisper.user));
    }
    container["is_ephemeral"] = json!(true);
    if let Some(thread_ts) = &whisper.thread_ts {
        container["thread_ts"] = json!(thread_ts);
    }
    Ok(Clicked {
        blocks: all_blocks(whisper.blocks.as_ref(), None),
        container,
        message: None,
        source: HookSource::Ephemeral(ts.to_owned()),
    })
}

/// The blocks of a message, and those of its attachments.
fn all_blocks(blocks: Option<&Value>, attachments: Option<&Value>) -> Value {
    let own = blocks.and_then(Value::as_array).into_iter().flatten();
    let attached = attachments.and_then(Value::as_array).into_iter().flatten();
    let inner = attached.flat_map(|it| it["blocks"].as_array().into_iter().flatten());
    own.chain(inner).cloned().collect()
}

fn view_click(core: &mut SlackCore, action: &BlockAction) -> Result<Value, String> {
    let person = core.person(&action.user)?;
    let view = seen_view(core, &action.view_id, &person)?;
    let acted = acted(core, &view.content["blocks"], action)?;
    enter(core, &view.id, &acted);
    let view = seen_view(core, &view.id, &person)?;
    let mut payload = common(core, "block_actions", &person, Some(&view.id));
    payload["container"] = json!({"type": "view", "view_id": view.id});
    payload["view"] = view.to_json(&core.world);
    payload["actions"] = json!([acted]);
    Ok(payload)
}

fn seen_view(core: &SlackCore, id: &str, person: &SlackUser) -> Result<ShownView, String> {
    let view = core.views.get(id).filter(|view| view.user == person.id);
    view.cloned()
        .ok_or_else(|| format!("{} sees no view {id}", person.id))
}

/// The action that a click on an element causes.
fn acted(core: &mut SlackCore, blocks: &Value, action: &BlockAction) -> Result<Value, String> {
    let named = match action.action_id.is_empty() {
        true => ElementName::Words(&action.button),
        false => ElementName::ActionId(&action.action_id),
    };
    let found = find(blocks, &action.block_id, named);
    let (block_id, element) = found.ok_or_else(|| {
        let there = action_ids(blocks).join(", ");
        let wanted = format!("{}{}", action.action_id, action.button);
        format!("nothing to click is called {wanted}; there is: {there}")
    })?;
    let mut acted = chosen(&element, &action.chosen())?;
    acted["action_id"] = element["action_id"].clone();
    acted["block_id"] = json!(block_id);
    acted["action_ts"] = json!(core.next_ts());
    Ok(acted)
}

/// The value of an element after a click, as in `state.values`; a button has none.
fn state_of(acted: &Value) -> Value {
    let is_button = [
        "button",
        "workflow_button",
        "overflow",
        "icon_button",
        "feedback_buttons",
    ]
    .iter()
    .any(|kind| acted["type"] == *kind);
    let (Some(block), Some(action), false) = (
        acted["block_id"].as_str(),
        acted["action_id"].as_str(),
        is_button,
    ) else {
        return json!({});
    };
    let mut held = acted.clone();
    if let Some(fields) = held.as_object_mut() {
        for name in ["action_id", "block_id", "action_ts"] {
            fields.remove(name);
        }
    }
    json!({block: {action: held}})
}

fn enter(core: &mut SlackCore, view: &str, acted: &Value) {
    let Some(view) = core.views.get_mut(view) else {
        return;
    };
    for (block, actions) in state_of(acted).as_object().into_iter().flatten() {
        let held = view.values.entry(block.clone()).or_default();
        held.extend(actions.as_object().cloned().unwrap_or_default());
    }
}

/// The fields that every interactive payload has.
fn common(core: &mut SlackCore, kind: &str, person: &SlackUser, view: Option<&str>) -> Value {
    let trigger_id = core.views.new_trigger(&person.id, view);
    let world = &core.world;
    json!({
        "type": kind, "api_app_id": world.app_id, "token": "legacy", "trigger_id": trigger_id,
        "user": {"id": person.id, "username": person.name, "name": person.name,
                 "team_id": person.team_id},
        "team": {"id": world.team_id, "domain": web::domain(world)},
        "enterprise": null, "is_enterprise_install": false,
    })
}

/// A person fills in the topmost modal (`values`: what is entered, by action id) and sends it.
pub(super) fn send_view(
    shared: &SharedSlack,
    (user, view_id): (&str, Option<&str>),
    values: &Map<String, Value>,
) -> Result<(), String> {
    shared.change(|core| {
        let person = core.person(user)?;
        let view = top_view(core, &person, view_id)?;
        for (action_id, value) in values {
            let entered = match value {
                Value::Array(list) => list.iter().map(words_of).collect(),
                one => vec![words_of(one)],
            };
            let action = BlockAction {
                action_id: action_id.clone(),
                values: entered,
                ..BlockAction::default()
            };
            let acted = acted(core, &view.content["blocks"], &action)?;
            enter(core, &view.id, &acted);
        }
        let view = seen_view(core, &view.id, &person)?;
        if let Some(missing) = missing_input(&view) {
            return Err(format!("the input {missing} must be filled in"));
        }
        if let Some(wrong) = wrong_length(&view) {
            return Err(format!("the input {wrong} takes no text of this length"));
        }
        let mut payload = common(core, "view_submission", &person, Some(&view.id));
        payload["view"] = view.to_json(&core.world);
        payload["response_urls"] = json!([]);
        submit(shared, core, EnvelopeKind::Interactive, payload);
        Ok(())
    })
}

fn words_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn top_view(core: &SlackCore, person: &SlackUser, id: Option<&str>) -> Result<ShownView, String> {
    let top = core.views.top(&person.id).cloned();
    let top = top.ok_or_else(|| format!("{} has no modal open", person.id))?;
    match id.is_none_or(|id| id == top.id) {
        true => Ok(top),
        false => Err(format!("the modal on top is {}", top.id)),
    }
}

/// The first input that must hold something and does not.
fn missing_input(view: &ShownView) -> Option<String> {
    let blocks = view.content["blocks"].as_array().into_iter().flatten();
    let needed = blocks.filter(|block| block["type"] == "input" && block["optional"] != true);
    let ids = needed.filter_map(|block| {
        let ids = (
            block["block_id"].as_str()?,
            block["element"]["action_id"].as_str()?,
        );
        Some((ids, !block["element"]["initial_value"].is_null()))
    });
    let mut empty = ids.filter(|((block, action), has_initial)| {
        let held = view.values.get(*block).and_then(|it| it.get(*action));
        held.is_none() && !has_initial
    });
    empty.next().map(|((_, action), _)| action.to_owned())
}

/// The first input that holds more or less text than it takes.
fn wrong_length(view: &ShownView) -> Option<String> {
    let blocks = view.content["blocks"].as_array().into_iter().flatten();
    let mut inputs = blocks
        .filter(|block| block["type"] == "input")
        .filter_map(|block| {
            let action = block["element"]["action_id"].as_str()?;
            let held = view.values.get(block["block_id"].as_str()?)?.get(action)?;
            let chars = held["value"].as_str()?.chars().count() as u64;
            let bound = |name: &str| block["element"][name].as_u64();
            let (least, most) = (bound("min_length"), bound("max_length"));
            let is_wrong = least.is_some_and(|it| chars < it) || most.is_some_and(|it| chars > it);
            is_wrong.then(|| action.to_owned())
        });
    inputs.next()
}

/// A person closes the topmost modal.
pub(super) fn close_view(shared: &SharedSlack, user: &str, id: Option<&str>) -> Result<(), String> {
    shared.change(|core| {
        let person = core.person(user)?;
        let view = top_view(core, &person, id)?;
        let clears = view.content["clear_on_close"] == true;
        match clears {
            true => core.views.clear(&person.id),
            false => core.views.close(&view.id),
        }
        if view.content["notify_on_close"] != true {
            return Ok(());
        }
        let mut payload = common(core, "view_closed", &person, None);
        payload["view"] = view.to_json(&core.world);
        payload["is_cleared"] = json!(clears);
        submit(shared, core, EnvelopeKind::Interactive, payload);
        Ok(())
    })
}

/// A person opens the app's Home or Messages tab.
pub(super) fn open_tab(
    core: &mut SlackCore,
    user: &str,
    tab: &str,
) -> Result<Vec<EventObject>, String> {
    if !["home", "messages"].contains(&tab) {
        return Err(format!("no tab {tab}; there are home and messages"));
    }
    let person = core.person(user)?;
    let channel = core.direct_chat(&person.id);
    let event_ts = core.next_ts();
    let mut inner = json!({
        "type": "app_home_opened", "user": person.id, "channel": channel.id, "tab": tab,
        "event_ts": event_ts,
    });
    if let Some(view) = core.views.home(&person.id).filter(|_| tab == "home") {
        inner["view"] = view.to_json(&core.world);
    }
    Ok(vec![events::plain(&core.world, inner)])
}

/// Carries out the answers in the app's acknowledgements of commands and modals.
pub(super) fn take_answers(shared: &SharedSlack, core: &mut SlackCore) {
    for acked in core.deliveries.take_answered() {
        match acked.kind {
            EnvelopeKind::SlashCommands => hooks::show_answer(shared, core, &acked),
            EnvelopeKind::Interactive if acked.payload["type"] == "view_submission" => {
                take_view_answer(core, &acked);
            }
            EnvelopeKind::Interactive | EnvelopeKind::EventsApi => {}
        }
    }
}

fn take_view_answer(core: &mut SlackCore, acked: &AckedEnvelope) {
    let id = acked.payload["view"]["id"].as_str().unwrap_or_default();
    let user = acked.payload["user"]["id"].as_str().unwrap_or_default();
    let Some(answer) = &acked.response else {
        return core.views.close(id);
    };
    let view = &answer["view"];
    let action = answer["response_action"].as_str().unwrap_or_default();
    if ["update", "push"].contains(&action)
        && let Err((_, sentence)) = check_view(view, "modal")
    {
        return core
            .deliveries
            .complain(format!("answer to a modal: {sentence}"));
    }
    match action {
        "errors" => {
            if let Some(shown) = core.views.get_mut(id) {
                shown.errors = answer["errors"].clone();
            }
        }
        "update" => {
            core.views.replace(id, view.clone());
        }
        "push" => {
            let below = core.views.get(id).cloned();
            core.views.open(user, view.clone(), below.as_ref());
        }
        "clear" => core.views.clear(user),
        other => {
            let complaint = format!("no response_action {other:?} answers a modal");
            core.deliveries.complain(complaint);
        }
    }
}
