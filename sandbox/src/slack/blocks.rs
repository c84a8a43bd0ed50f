//! Slack's rules for blocks, attachments and metadata of a post.
//!
//! Pure: a JSON value in, the platform's error name out.

use serde_json::Value;

/// Most blocks in one message.
const BLOCKS_MAX: usize = 50;
/// Most characters over all `markdown` blocks of one message.
const MARKDOWN_CHARS_MAX: usize = 12_000;
/// Most attachments in one message.
const ATTACHMENTS_MAX: usize = 100;
/// Most bytes of metadata. The real limit is not documented; this one is ours.
const METADATA_BYTES_MAX: usize = 16_384;

/// The block types that a message may hold.
const BLOCK_TYPES: [&str; 15] = [
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
];

/// An error name with the sentence that goes into `response_metadata.messages`.
pub(super) type Complaint = (&'static str, String);

/// Checks the blocks of a message.
pub(super) fn check_blocks(blocks: &Value) -> Result<(), Complaint> {
    let list = blocks.as_array().ok_or_else(|| {
        (
            "invalid_blocks_format",
            "blocks must be an array".to_owned(),
        )
    })?;
    if list.len() > BLOCKS_MAX {
        return Err(invalid(format!(
            "no more than {BLOCKS_MAX} items allowed [json-pointer:/blocks]"
        )));
    }
    let mut markdown_chars = 0;
    for (n, block) in list.iter().enumerate() {
        check_block(block, n)?;
        if block["type"] == "markdown" {
            markdown_chars += chars(&block["text"]);
        }
    }
    if markdown_chars > MARKDOWN_CHARS_MAX {
        let detail = format!("markdown blocks hold more than {MARKDOWN_CHARS_MAX} characters");
        return Err(("msg_blocks_too_long", detail));
    }
    Ok(())
}

fn check_block(block: &Value, n: usize) -> Result<(), Complaint> {
    let kind = block["type"].as_str().ok_or_else(|| {
        invalid(format!(
            "missing required field: type [json-pointer:/blocks/{n}]"
        ))
    })?;
    if !BLOCK_TYPES.contains(&kind) {
        return Err(invalid(format!(
            "unsupported type: {kind} [json-pointer:/blocks/{n}/type]"
        )));
    }
    if chars(&block["block_id"]) > 255 {
        return Err(too_long(n, "block_id", 255));
    }
    match kind {
        "section" => check_section(block, n),
        "header" => check_text(&block["text"], n, 150),
        "markdown" if !block["text"].is_string() => Err(missing(n, "text")),
        "context" => check_count(&block["elements"], n, 10),
        "actions" => check_actions(&block["elements"], n),
        "image" if chars(&block["alt_text"]) > 2_000 => Err(too_long(n, "alt_text", 2_000)),
        "image" if !block["alt_text"].is_string() => Err(missing(n, "alt_text")),
        _ => Ok(()),
    }
}

fn check_section(block: &Value, n: usize) -> Result<(), Complaint> {
    let fields = &block["fields"];
    if fields.is_null() {
        return check_text(&block["text"], n, 3_000);
    }
    check_count(fields, n, 10)?;
    let too_big = fields
        .as_array()
        .is_some_and(|fields| fields.iter().any(|field| chars(&field["text"]) > 2_000));
    if too_big {
        return Err(too_long(n, "fields", 2_000));
    }
    if block["text"].is_null() {
        return Ok(());
    }
    check_text(&block["text"], n, 3_000)
}

fn check_text(text: &Value, n: usize, chars_max: usize) -> Result<(), Complaint> {
    match text["text"].as_str() {
        None | Some("") => Err(missing(n, "text")),
        Some(text) if text.chars().count() > chars_max => Err(too_long(n, "text", chars_max)),
        Some(_) => Ok(()),
    }
}

fn check_actions(elements: &Value, n: usize) -> Result<(), Complaint> {
    check_count(elements, n, 25)?;
    for element in elements.as_array().into_iter().flatten() {
        if chars(&element["text"]["text"]) > 75 {
            return Err(too_long(n, "elements/text", 75));
        }
        if chars(&element["value"]) > 2_000 {
            return Err(too_long(n, "elements/value", 2_000));
        }
        if chars(&element["action_id"]) > 255 {
            return Err(too_long(n, "elements/action_id", 255));
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
        Some(_) => Ok(()),
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

fn chars(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.chars().count())
}

fn invalid(detail: String) -> Complaint {
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
