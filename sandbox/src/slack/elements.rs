//! Slack's rules for what stands inside blocks: text objects, buttons, menus, inputs.
//!
//! Pure. Which blocks there are is in `blocks`. *Source:* Slack's Block Kit reference; slack.md §6.2.

use serde_json::{Value, json};

use super::blocks::{Complaint, chars, invalid};

/// Elements of an `actions` block.
const IN_ACTIONS: [&str; 12] = [
    "button",
    "channels_select",
    "checkboxes",
    "conversations_select",
    "datepicker",
    "datetimepicker",
    "external_select",
    "overflow",
    "radio_buttons",
    "static_select",
    "timepicker",
    "users_select",
];
/// Elements that only sections and inputs hold.
const MULTI_SELECTS: [&str; 5] = [
    "multi_channels_select",
    "multi_conversations_select",
    "multi_external_select",
    "multi_static_select",
    "multi_users_select",
];
/// Elements that only inputs hold.
const INPUTS: [&str; 6] = [
    "email_text_input",
    "file_input",
    "number_input",
    "plain_text_input",
    "rich_text_input",
    "url_text_input",
];
/// The styles of a button.
const STYLES: [&str; 2] = ["primary", "danger"];
/// Most characters of a button's text, and of an option's.
const LABEL_CHARS_MAX: usize = 75;
/// Most characters of the `value` of a button.
const VALUE_CHARS_MAX: usize = 2_000;
/// Most characters of the `value` of an option.
const OPTION_VALUE_CHARS_MAX: usize = 150;
/// Most characters of a link.
const URL_CHARS_MAX: usize = 3_000;
/// Most characters that an input may take.
const ENTERED_CHARS_MAX: u64 = 3_000;
/// Most characters of a placeholder.
const PLACEHOLDER_CHARS_MAX: usize = 150;

/// Where an element stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    /// An `actions` block.
    Actions,
    /// The accessory of a section.
    Section,
    /// An `input` block.
    Input,
    /// A `context_actions` block.
    ContextActions,
}

impl Within {
    fn takes(self, kind: &str) -> bool {
        let is_action = IN_ACTIONS.contains(&kind);
        match self {
            Self::Actions => is_action || kind == "workflow_button",
            Self::Section => {
                is_action
                    || MULTI_SELECTS.contains(&kind)
                    || ["image", "workflow_button"].contains(&kind)
            }
            Self::Input => {
                (is_action && !["button", "overflow"].contains(&kind))
                    || MULTI_SELECTS.contains(&kind)
                    || INPUTS.contains(&kind)
            }
            Self::ContextActions => ["feedback_buttons", "icon_button"].contains(&kind),
        }
    }
}

/// Checks a text object: its type, and 1 to `max` characters.
pub(super) fn check_text(
    text: &Value,
    at: &str,
    max: usize,
    types: &[&str],
) -> Result<(), Complaint> {
    if text.is_null() {
        return Err(invalid(format!(
            "missing required field: text [json-pointer:{at}]"
        )));
    }
    let kind = text["type"].as_str().unwrap_or_default();
    if !types.contains(&kind) {
        return Err(invalid(format!(
            "must be one of: {} [json-pointer:{at}/type]",
            types.join(", ")
        )));
    }
    match chars(&text["text"]) {
        0 => Err(invalid(format!(
            "must be more than 0 characters [json-pointer:{at}/text]"
        ))),
        count if count > max => Err(too_long(&format!("{at}/text"), max)),
        _ => Ok(()),
    }
}

/// Checks an element of a block.
pub(super) fn check_element(element: &Value, at: &str, within: Within) -> Result<(), Complaint> {
    let kind = element["type"].as_str().unwrap_or_default();
    if !within.takes(kind) {
        return Err(invalid(format!(
            "unsupported type: {kind} [json-pointer:{at}/type]"
        )));
    }
    if chars(&element["action_id"]) > 255 {
        return Err(too_long(&format!("{at}/action_id"), 255));
    }
    if !element["placeholder"].is_null() {
        let at = format!("{at}/placeholder");
        check_text(
            &element["placeholder"],
            &at,
            PLACEHOLDER_CHARS_MAX,
            &["plain_text"],
        )?;
    }
    if !element["confirm"].is_null() {
        check_confirm(&element["confirm"], &format!("{at}/confirm"))?;
    }
    match kind {
        "button" => check_button(element, at),
        "plain_text_input" => check_length(element, at),
        "image" => check_image(element, at),
        "static_select" | "multi_static_select" => check_menu(element, at),
        "overflow" => check_options(&element["options"], at, 5, &["plain_text"]),
        "checkboxes" | "radio_buttons" => {
            check_options(&element["options"], at, 10, &["plain_text", "mrkdwn"])
        }
        _ => Ok(()),
    }
}

fn check_button(button: &Value, at: &str) -> Result<(), Complaint> {
    let label = format!("{at}/text");
    check_text(&button["text"], &label, LABEL_CHARS_MAX, &["plain_text"])?;
    if chars(&button["value"]) > VALUE_CHARS_MAX {
        return Err(too_long(&format!("{at}/value"), VALUE_CHARS_MAX));
    }
    if !button["value"].is_null() && !button["value"].is_string() {
        return Err(invalid(format!(
            "must be a string [json-pointer:{at}/value]"
        )));
    }
    if chars(&button["url"]) > URL_CHARS_MAX {
        return Err(too_long(&format!("{at}/url"), URL_CHARS_MAX));
    }
    if chars(&button["accessibility_label"]) > LABEL_CHARS_MAX {
        let at = format!("{at}/accessibility_label");
        return Err(too_long(&at, LABEL_CHARS_MAX));
    }
    let style = &button["style"];
    match style.as_str() {
        None if style.is_null() => Ok(()),
        Some(style) if STYLES.contains(&style) => Ok(()),
        _ => Err(invalid(format!(
            "must be one of: {} [json-pointer:{at}/style]",
            STYLES.join(", ")
        ))),
    }
}

/// Checks the limits of how much a person may enter.
fn check_length(input: &Value, at: &str) -> Result<(), Complaint> {
    let is_length = |name: &str, least: u64| match &input[name] {
        Value::Null => true,
        length => length
            .as_u64()
            .is_some_and(|it| (least..=ENTERED_CHARS_MAX).contains(&it)),
    };
    match is_length("max_length", 1) && is_length("min_length", 0) {
        true => Ok(()),
        false => Err(invalid(format!(
            "must be 1 to {ENTERED_CHARS_MAX} [json-pointer:{at}/max_length]"
        ))),
    }
}

/// An image, as a block or as an element.
pub(super) fn check_image(image: &Value, at: &str) -> Result<(), Complaint> {
    if !image["alt_text"].is_string() {
        return Err(invalid(format!(
            "missing required field: alt_text [json-pointer:{at}/alt_text]"
        )));
    }
    if chars(&image["alt_text"]) > 2_000 {
        return Err(too_long(&format!("{at}/alt_text"), 2_000));
    }
    let has_source = chars(&image["image_url"]) > 0 || image["slack_file"].is_object();
    if !has_source {
        return Err(invalid(format!(
            "missing required field: image_url [json-pointer:{at}/image_url]"
        )));
    }
    match chars(&image["image_url"]) > URL_CHARS_MAX {
        true => Err(too_long(&format!("{at}/image_url"), URL_CHARS_MAX)),
        false => Ok(()),
    }
}

fn check_confirm(confirm: &Value, at: &str) -> Result<(), Complaint> {
    let plain: &[&str] = &["plain_text"];
    for (name, max) in [("title", 100), ("confirm", 30), ("deny", 30)] {
        check_text(&confirm[name], &format!("{at}/{name}"), max, plain)?;
    }
    let both = ["plain_text", "mrkdwn"];
    check_text(&confirm["text"], &format!("{at}/text"), 300, &both)
}

fn check_menu(menu: &Value, at: &str) -> Result<(), Complaint> {
    let Some(groups) = menu["option_groups"].as_array() else {
        return check_options(&menu["options"], at, 100, &["plain_text"]);
    };
    for (n, group) in groups.iter().enumerate() {
        let at = format!("{at}/option_groups/{n}");
        check_options(&group["options"], &at, 100, &["plain_text"])?;
    }
    Ok(())
}

fn check_options(options: &Value, at: &str, max: usize, types: &[&str]) -> Result<(), Complaint> {
    let list = options.as_array().map_or(&[][..], Vec::as_slice);
    if list.is_empty() || list.len() > max {
        return Err(invalid(format!(
            "must have 1 to {max} items [json-pointer:{at}/options]"
        )));
    }
    for (n, option) in list.iter().enumerate() {
        let at = format!("{at}/options/{n}");
        check_text(
            &option["text"],
            &format!("{at}/text"),
            LABEL_CHARS_MAX,
            types,
        )?;
        if chars(&option["value"]) > OPTION_VALUE_CHARS_MAX {
            return Err(too_long(&format!("{at}/value"), OPTION_VALUE_CHARS_MAX));
        }
    }
    Ok(())
}

fn too_long(at: &str, max: usize) -> Complaint {
    invalid(format!(
        "must be less than {} characters [json-pointer:{at}]",
        max + 1
    ))
}

/// The interactive elements of a block, to be read or changed.
fn elements_mut(block: &mut Value) -> Vec<&mut Value> {
    let Some(fields) = block.as_object_mut() else {
        return Vec::new();
    };
    let kind = fields
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let holder = match kind {
        "actions" | "context_actions" => "elements",
        "section" => "accessory",
        "input" => "element",
        _ => return Vec::new(),
    };
    match fields.get_mut(holder) {
        Some(Value::Array(list)) => list.iter_mut().collect(),
        Some(element) if element["type"] != "image" => vec![element],
        _ => Vec::new(),
    }
}

/// The blocks as Slack keeps them: each has a `block_id`, each interactive element an `action_id`.
pub(super) fn with_ids(mut blocks: Value) -> Value {
    for block in blocks.as_array_mut().into_iter().flatten() {
        if chars(&block["block_id"]) == 0 {
            block["block_id"] = json!(made_up_id());
        }
        for element in elements_mut(block) {
            if chars(&element["action_id"]) == 0 {
                element["action_id"] = json!(made_up_id());
            }
        }
    }
    blocks
}

/// Five characters, as Slack makes them.
fn made_up_id() -> String {
    const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let letter = || char::from(LETTERS[rand::random_range(0..LETTERS.len())]);
    (0..5).map(|_| letter()).collect()
}

/// How a test names an element.
#[derive(Clone, Copy, Debug)]
pub(super) enum ElementName<'a> {
    ActionId(&'a str),
    /// The words shown on it.
    Words(&'a str),
}

impl ElementName<'_> {
    fn is(self, element: &Value) -> bool {
        match self {
            Self::ActionId(id) => element["action_id"] == id,
            Self::Words(words) => element["text"]["text"] == words,
        }
    }
}

/// The element of this name, and the id of its block; the block may be named, too.
pub(super) fn find(
    blocks: &Value,
    block_id: &str,
    named: ElementName<'_>,
) -> Option<(String, Value)> {
    let mut blocks = blocks.clone();
    for block in blocks.as_array_mut()? {
        let id = block["block_id"].as_str().unwrap_or_default().to_owned();
        if !block_id.is_empty() && id != block_id {
            continue;
        }
        let found = elements_mut(block).into_iter();
        if let Some(element) = found.into_iter().find(|it| named.is(it)) {
            return Some((id, element.clone()));
        }
    }
    None
}

/// The action ids in some blocks, for the message of a failed search.
pub(super) fn action_ids(blocks: &Value) -> Vec<String> {
    let mut blocks = blocks.clone();
    let list = blocks.as_array_mut().into_iter().flatten();
    let elements = list.flat_map(elements_mut);
    let ids = elements.filter_map(|it| it["action_id"].as_str().map(str::to_owned));
    ids.collect()
}

/// What an element reports when a person chose `values` in it: names of options, ids, or words.
///
/// # Errors
/// A sentence when the element has no such choice.
pub(super) fn chosen(element: &Value, values: &[String]) -> Result<Value, String> {
    let kind = element["type"].as_str().unwrap_or_default();
    let one = || match values {
        [value] => Ok(value.clone()),
        _ => Err(format!("a {kind} takes one value")),
    };
    let with = |name: &str, value: Value| Ok(json!({"type": kind, name: value}));
    match kind {
        "button" | "workflow_button" | "icon_button" => {
            let own = element["value"].as_str();
            if values.iter().any(|value| Some(value.as_str()) != own) {
                return Err(format!("the value of this button is {}", element["value"]));
            }
            let mut action = json!({"type": kind, "text": element["text"]});
            for name in ["value", "style", "url"] {
                if !element[name].is_null() {
                    action[name] = element[name].clone();
                }
            }
            Ok(action)
        }
        "static_select" | "radio_buttons" | "overflow" => {
            with("selected_option", option(element, &one()?)?)
        }
        "checkboxes" | "multi_static_select" => {
            let options: Result<Vec<Value>, String> =
                values.iter().map(|value| option(element, value)).collect();
            with("selected_options", json!(options?))
        }
        "external_select" => {
            let value = one()?;
            let text = json!({"type": "plain_text", "text": value});
            with("selected_option", json!({"text": text, "value": value}))
        }
        "users_select" => with("selected_user", json!(one()?)),
        "channels_select" => with("selected_channel", json!(one()?)),
        "conversations_select" => with("selected_conversation", json!(one()?)),
        "multi_users_select" => with("selected_users", json!(values)),
        "multi_channels_select" => with("selected_channels", json!(values)),
        "multi_conversations_select" => with("selected_conversations", json!(values)),
        "datepicker" => with("selected_date", json!(one()?)),
        "timepicker" => with("selected_time", json!(one()?)),
        "datetimepicker" => {
            let at = one()?.parse::<i64>();
            with(
                "selected_date_time",
                json!(at.map_err(|_| "a time in Unix seconds")?),
            )
        }
        "feedback_buttons" => {
            let value = one()?;
            let buttons = ["positive_button", "negative_button"];
            let is_there = buttons.iter().any(|it| element[it]["value"] == *value);
            match is_there {
                true => with("value", json!(value)),
                false => Err(format!("no feedback button has the value {value}")),
            }
        }
        _ => with("value", json!(one()?)),
    }
}

/// The option of an element that has this value.
fn option(element: &Value, value: &str) -> Result<Value, String> {
    let groups = element["option_groups"].as_array().into_iter().flatten();
    let grouped = groups.flat_map(|group| group["options"].as_array().into_iter().flatten());
    let plain = element["options"].as_array().into_iter().flatten();
    let found = plain.chain(grouped).find(|it| it["value"] == value);
    found
        .cloned()
        .ok_or_else(|| format!("no option has the value {value}"))
}
