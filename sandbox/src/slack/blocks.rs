//! Slack's rules for blocks, attachments and metadata of a post.
//!
//! Pure: a JSON value in, the platform's error name out. What stands inside blocks is in `elements`.

use std::collections::HashSet;

use serde_json::Value;

use super::elements::{Within, check_element, check_image, check_text};

/// Most blocks in one message.
const BLOCKS_MAX: usize = 50;
/// Most characters over all `markdown` blocks of one message.
const MARKDOWN_CHARS_MAX: usize = 12_000;
/// Most rows of a table.
const TABLE_ROWS_MAX: usize = 100;
/// Most columns of a table.
const TABLE_COLUMNS_MAX: usize = 20;
/// Most characters over all cells of the tables of one message.
const TABLE_CHARS_MAX: usize = 10_000;
/// Most attachments in one message.
const ATTACHMENTS_MAX: usize = 100;
/// Most bytes of metadata. The real limit is not documented; this one is ours.
const METADATA_BYTES_MAX: usize = 16_384;

/// Most blocks in one view.
const VIEW_BLOCKS_MAX: usize = 100;
/// The types of a text object.
const TEXTS: &[&str] = &["plain_text", "mrkdwn"];
const PLAIN: &[&str] = &["plain_text"];

/// The block types that a message may hold.
const BLOCK_TYPES: [&str; 16] = [
    "actions",
    "alert",
    "call",
    "card",
    "context",
    "context_actions",
    "divider",
    "file",
    "header",
    "image",
    "input",
    "markdown",
    "rich_text",
    "section",
    "table",
    "video",
];
/// The block types that a modal or a Home tab may hold.
const VIEW_BLOCK_TYPES: [&str; 11] = [
    "actions",
    "alert",
    "card",
    "context",
    "divider",
    "header",
    "image",
    "input",
    "rich_text",
    "section",
    "video",
];

/// An error name with the sentence that goes into `response_metadata.messages`.
pub type Complaint = (&'static str, String);

/// Checks the blocks of a message as `chat.postMessage` does.
///
/// # Errors
/// The platform's name of the error, and the sentence that explains it.
pub fn check_blocks(blocks: &Value) -> Result<(), Complaint> {
    let list = blocks.as_array().ok_or_else(|| {
        (
            "invalid_blocks_format",
            "blocks must be an array".to_owned(),
        )
    })?;
    check_list(list, BLOCKS_MAX, &BLOCK_TYPES)?;
    let mut markdown_chars = 0;
    let mut table_chars = 0;
    let mut tables = 0;
    for block in list {
        match block["type"].as_str() {
            Some("markdown") => markdown_chars += chars(&block["text"]),
            Some("table") => {
                tables += 1;
                table_chars += table_cells(block).map(cell_chars).sum::<usize>();
            }
            _ => {}
        }
    }
    if tables > 1 {
        let detail = "only one table block is allowed in a message".to_owned();
        return Err(("only_one_table_allowed", detail));
    }
    if table_chars > TABLE_CHARS_MAX {
        return Err(invalid(format!(
            "table cells hold more than {TABLE_CHARS_MAX} characters"
        )));
    }
    if markdown_chars > MARKDOWN_CHARS_MAX {
        let detail = format!("markdown blocks hold more than {MARKDOWN_CHARS_MAX} characters");
        return Err(("msg_blocks_too_long", detail));
    }
    Ok(())
}

/// Checks the blocks of a modal or a Home tab.
pub(super) fn check_view_blocks(blocks: &Value) -> Result<(), Complaint> {
    let list = blocks.as_array();
    let list = list.ok_or_else(|| invalid("blocks must be an array".to_owned()))?;
    check_list(list, VIEW_BLOCKS_MAX, &VIEW_BLOCK_TYPES)
}

/// Every block by itself, and that no id stands twice.
fn check_list(list: &[Value], max: usize, types: &[&str]) -> Result<(), Complaint> {
    if list.len() > max {
        return Err(invalid(format!(
            "no more than {max} items allowed [json-pointer:/blocks]"
        )));
    }
    let mut block_ids = HashSet::new();
    for (n, block) in list.iter().enumerate() {
        check_block(block, n, types)?;
        let id = block["block_id"].as_str().filter(|id| !id.is_empty());
        if let Some(id) = id.filter(|id| !block_ids.insert(*id)) {
            return Err(invalid(format!(
                "block_id already exists: {id} [json-pointer:/blocks/{n}/block_id]"
            )));
        }
    }
    Ok(())
}

fn check_block(block: &Value, n: usize, types: &[&str]) -> Result<(), Complaint> {
    let kind = block["type"].as_str().ok_or_else(|| {
        invalid(format!(
            "missing required field: type [json-pointer:/blocks/{n}]"
        ))
    })?;
    if !types.contains(&kind) {
        return Err(invalid(format!(
            "unsupported type: {kind} [json-pointer:/blocks/{n}/type]"
        )));
    }
    if chars(&block["block_id"]) > 255 {
        return Err(too_long(n, "block_id", 255));
    }
    let at = format!("/blocks/{n}");
    match kind {
        "section" => check_section(block, n),
        "header" => check_text(&block["text"], &format!("{at}/text"), 150, PLAIN),
        "markdown" if chars(&block["text"]) == 0 => Err(missing(n, "text")),
        "table" => check_table(block, n),
        "context" => check_context(&block["elements"], n),
        "actions" => check_elements(&block["elements"], n, 25, Within::Actions),
        "context_actions" => check_elements(&block["elements"], n, 5, Within::ContextActions),
        "image" => check_image(block, &at),
        "input" => check_input(block, &at),
        "rich_text" => check_rich_text(&block["elements"], n),
        _ => Ok(()),
    }
}

fn check_input(block: &Value, at: &str) -> Result<(), Complaint> {
    check_text(&block["label"], &format!("{at}/label"), 2_000, PLAIN)?;
    if !block["hint"].is_null() {
        check_text(&block["hint"], &format!("{at}/hint"), 2_000, PLAIN)?;
    }
    check_element(&block["element"], &format!("{at}/element"), Within::Input)
}

fn check_rich_text(elements: &Value, n: usize) -> Result<(), Complaint> {
    const SECTIONS: [&str; 4] = [
        "rich_text_list",
        "rich_text_preformatted",
        "rich_text_quote",
        "rich_text_section",
    ];
    let list = elements.as_array().ok_or_else(|| missing(n, "elements"))?;
    let is_known = |it: &Value| it["type"].as_str().is_some_and(|it| SECTIONS.contains(&it));
    match list
        .iter()
        .position(|it| !is_known(it) || !it["elements"].is_array())
    {
        Some(wrong) => Err(invalid(format!(
            "failed to match any allowed schemas [json-pointer:/blocks/{n}/elements/{wrong}]"
        ))),
        None => Ok(()),
    }
}

/// Images and texts.
fn check_context(elements: &Value, n: usize) -> Result<(), Complaint> {
    check_count(elements, n, 10)?;
    for (m, element) in elements.as_array().into_iter().flatten().enumerate() {
        let at = format!("/blocks/{n}/elements/{m}");
        match element["type"].as_str() {
            Some("image") => check_image(element, &at)?,
            _ => check_text(element, &at, 3_000, TEXTS)?,
        }
    }
    Ok(())
}

/// Rows of cells that are not empty, and how its columns are set.
fn check_table(block: &Value, n: usize) -> Result<(), Complaint> {
    let rows = block["rows"].as_array().ok_or_else(|| missing(n, "rows"))?;
    let too_many = |count: usize, max: usize| !(1..=max).contains(&count);
    let widest = rows.iter().map(|row| row.as_array().map_or(0, Vec::len));
    if too_many(rows.len(), TABLE_ROWS_MAX)
        || widest
            .clone()
            .any(|columns| too_many(columns, TABLE_COLUMNS_MAX))
        || widest.clone().min() != widest.max()
    {
        return Err(invalid(format!(
            "must have 1 to {TABLE_ROWS_MAX} rows of the same 1 to {TABLE_COLUMNS_MAX} cells [json-pointer:/blocks/{n}/rows]"
        )));
    }
    if table_cells(block).any(|cell| !is_cell(cell)) {
        return Err(invalid(format!(
            "failed to match any allowed schemas [json-pointer:/blocks/{n}/rows]"
        )));
    }
    let settings = &block["column_settings"];
    let is_setting = |setting: &Value| {
        let align = setting["align"].as_str().unwrap_or("left");
        ["left", "center", "right"].contains(&align)
    };
    match settings.as_array() {
        None if settings.is_null() => Ok(()),
        Some(list) if list.len() <= TABLE_COLUMNS_MAX && list.iter().all(is_setting) => Ok(()),
        _ => Err(invalid(format!(
            "invalid value [json-pointer:/blocks/{n}/column_settings]"
        ))),
    }
}

fn table_cells(block: &Value) -> impl Iterator<Item = &Value> {
    let rows = block["rows"].as_array().into_iter().flatten();
    rows.flat_map(|row| row.as_array().into_iter().flatten())
}

/// Raw text that is not empty, or rich text of elements that Slack knows.
fn is_cell(cell: &Value) -> bool {
    match cell["type"].as_str() {
        Some("raw_text") => chars(&cell["text"]) > 0,
        Some("rich_text") => {
            let sections = cell["elements"].as_array();
            sections.is_some_and(|list| !list.is_empty() && list.iter().all(is_rich_section))
        }
        _ => false,
    }
}

fn is_rich_section(section: &Value) -> bool {
    let elements = section["elements"].as_array();
    section["type"] == "rich_text_section"
        && elements.is_some_and(|list| !list.is_empty() && list.iter().all(is_rich_element))
}

fn is_rich_element(element: &Value) -> bool {
    let styles = element["style"].as_object();
    let is_style = |name: &String| ["bold", "italic", "strike", "code"].contains(&name.as_str());
    let has_styles = styles.is_none_or(|styles| styles.keys().all(is_style));
    let is_whole = match element["type"].as_str() {
        Some("text") => chars(&element["text"]) > 0,
        Some("link") => chars(&element["url"]) > 0,
        Some("user") => chars(&element["user_id"]) > 0,
        Some("emoji") => chars(&element["name"]) > 0,
        Some("channel" | "usergroup" | "broadcast" | "date" | "color" | "team") => true,
        _ => false,
    };
    is_whole && has_styles
}

fn cell_chars(cell: &Value) -> usize {
    let sections = cell["elements"].as_array().into_iter().flatten();
    let elements =
        sections.flat_map(|section| section["elements"].as_array().into_iter().flatten());
    let rich: usize = elements
        .map(|it| chars(&it["text"]).max(chars(&it["url"])))
        .sum();
    chars(&cell["text"]) + rich
}

fn check_section(block: &Value, n: usize) -> Result<(), Complaint> {
    let at = format!("/blocks/{n}");
    let (text, fields) = (&block["text"], &block["fields"]);
    if fields.is_null() || !text.is_null() {
        check_text(text, &format!("{at}/text"), 3_000, TEXTS)?;
    }
    if !fields.is_null() {
        check_count(fields, n, 10)?;
        for (m, field) in fields.as_array().into_iter().flatten().enumerate() {
            check_text(field, &format!("{at}/fields/{m}"), 2_000, TEXTS)?;
        }
    }
    match &block["accessory"] {
        Value::Null => Ok(()),
        accessory => check_element(accessory, &format!("{at}/accessory"), Within::Section),
    }
}

/// The elements of a block, and that no action id stands twice in it.
fn check_elements(list: &Value, n: usize, max: usize, within: Within) -> Result<(), Complaint> {
    check_count(list, n, max)?;
    let mut action_ids = HashSet::new();
    for (m, element) in list.as_array().into_iter().flatten().enumerate() {
        let at = format!("/blocks/{n}/elements/{m}");
        check_element(element, &at, within)?;
        let id = element["action_id"].as_str().filter(|id| !id.is_empty());
        if let Some(id) = id.filter(|id| !action_ids.insert(*id)) {
            return Err(invalid(format!(
                "action_id already exists: {id} [json-pointer:{at}/action_id]"
            )));
        }
    }
    Ok(())
}

fn check_count(list: &Value, n: usize, count_max: usize) -> Result<(), Complaint> {
    match list.as_array() {
        None => Err(missing(n, "elements")),
        Some(list) if list.is_empty() || list.len() > count_max => Err(invalid(format!(
            "must have 1 to {count_max} items [json-pointer:/blocks/{n}]"
        ))),
        Some(_) => Ok(()),
    }
}

/// Checks the attachments of a message.
pub(super) fn check_attachments(attachments: &Value) -> Result<(), Complaint> {
    match attachments.as_array() {
        None => Err(("invalid_attachments", "attachments must be an array".into())),
        Some(list) if list.len() > ATTACHMENTS_MAX => Err((
            "too_many_attachments",
            format!("no more than {ATTACHMENTS_MAX} attachments"),
        )),
        Some(list) => list
            .iter()
            .filter(|attachment| !attachment["blocks"].is_null())
            .try_for_each(|attachment| check_blocks(&attachment["blocks"])),
    }
}

/// Checks the metadata of a message; an empty object is allowed and means none.
pub(super) fn check_metadata(metadata: &Value) -> Result<(), Complaint> {
    let object = metadata.as_object().ok_or_else(|| {
        (
            "invalid_metadata_format",
            "metadata must be an object".to_owned(),
        )
    })?;
    if object.is_empty() {
        return Ok(());
    }
    let event_type = object.get("event_type").and_then(Value::as_str);
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if !event_type.is_some_and(is_name) {
        let detail = "event_type must be letters, digits and underscores".to_owned();
        return Err(("invalid_metadata_format", detail));
    }
    if !object.get("event_payload").is_some_and(Value::is_object) {
        let detail = "event_payload must be an object".to_owned();
        return Err(("invalid_metadata_format", detail));
    }
    if metadata.to_string().len() > METADATA_BYTES_MAX {
        return Err(("metadata_too_large", "metadata is too large".to_owned()));
    }
    Ok(())
}

/// The plain text that Slack shows where blocks can't be, when the app gave none.
pub(super) fn fallback_text(blocks: &Value) -> String {
    blocks
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|block| {
            block["text"]
                .as_str()
                .or_else(|| block["text"]["text"].as_str())
        })
        .collect::<Vec<_>>()
        .join("\n")
}

pub(super) fn chars(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.chars().count())
}

pub(super) fn invalid(detail: String) -> Complaint {
    ("invalid_blocks", detail)
}

fn missing(n: usize, field: &str) -> Complaint {
    invalid(format!(
        "missing required field: {field} [json-pointer:/blocks/{n}/{field}]"
    ))
}

fn too_long(n: usize, field: &str, chars_max: usize) -> Complaint {
    invalid(format!(
        "must be less than {} characters [json-pointer:/blocks/{n}/{field}]",
        chars_max + 1
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_are_judged_by_the_sheet() {
        let section = |len: usize| json!([{"type": "section", "text": {"type": "mrkdwn", "text": "x".repeat(len)}}]);
        let dividers = |n: usize| Value::Array(vec![json!({"type": "divider"}); n]);
        let markdown = |len: usize| json!([{"type": "markdown", "text": "x".repeat(len)}, {"type": "markdown", "text": "y"}]);
        let cases = [
            (json!("x"), Some("invalid_blocks_format")),
            (json!([{"type": "nonsense"}]), Some("invalid_blocks")),
            (json!([{}]), Some("invalid_blocks")),
            (dividers(50), None),
            (dividers(51), Some("invalid_blocks")),
            (section(3_000), None),
            (section(3_001), Some("invalid_blocks")),
            (section(0), Some("invalid_blocks")),
            (markdown(11_999), None),
            (markdown(12_000), Some("msg_blocks_too_long")),
        ];
        for (blocks, expected) in cases {
            let got = check_blocks(&blocks).err().map(|(code, _)| code);
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn tables_are_judged_by_the_sheet() {
        let raw = |text: &str| json!({"type": "raw_text", "text": text});
        let table = |rows: usize, columns: usize, text: &str| {
            let row = Value::Array(vec![raw(text); columns]);
            json!({"type": "table", "rows": vec![row; rows]})
        };
        let rich = json!({"type": "rich_text", "elements": [{"type": "rich_text_section",
            "elements": [{"type": "link", "url": "https://e.org", "text": "x", "style": {"bold": true}}]}]});
        let uneven = json!({"type": "table", "rows": [[raw("a")], [raw("a"), raw("b")]]});
        let set = |align: &str| json!({"type": "table", "rows": [[rich]], "column_settings": [{"align": align}]});
        let cases = [
            (json!([table(100, 20, "x")]), None),
            (json!([table(101, 1, "x")]), Some("invalid_blocks")),
            (json!([table(1, 21, "x")]), Some("invalid_blocks")),
            (json!([table(0, 0, "x")]), Some("invalid_blocks")),
            (json!([table(1, 1, "")]), Some("invalid_blocks")),
            (json!([table(1, 1, &"x".repeat(10_000))]), None),
            (
                json!([table(2, 1, &"x".repeat(5_001))]),
                Some("invalid_blocks"),
            ),
            (
                json!([table(1, 1, "x"), table(1, 1, "x")]),
                Some("only_one_table_allowed"),
            ),
            (json!([uneven]), Some("invalid_blocks")),
            (json!([set("right")]), None),
            (json!([set("middle")]), Some("invalid_blocks")),
            (
                json!([{"type": "markdown", "text": ""}]),
                Some("invalid_blocks"),
            ),
        ];
        for (blocks, expected) in cases {
            let got = check_blocks(&blocks).err().map(|(code, _)| code);
            assert_eq!(got, expected, "{blocks}");
        }
    }

    #[test]
    fn metadata_needs_a_name_and_an_object() {
        let cases = [
            (json!({}), None),
            (
                json!({"event_type": "agent_reply", "event_payload": {}}),
                None,
            ),
            (json!("x"), Some("invalid_metadata_format")),
            (
                json!({"event_type": "a-b", "event_payload": {}}),
                Some("invalid_metadata_format"),
            ),
            (json!({"event_type": "ab"}), Some("invalid_metadata_format")),
            (
                json!({"event_type": "ab", "event_payload": {"x": "y".repeat(20_000)}}),
                Some("metadata_too_large"),
            ),
        ];
        for (metadata, expected) in cases {
            let got = check_metadata(&metadata).err().map(|(code, _)| code);
            assert_eq!(got, expected);
        }
    }
}
