//! What a server's answer means.

use rmcp::ServiceError;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ErrorCode, ResourceContents};
use serde_json::{Value, json};

use super::definition::shown;
use crate::tools::outside::fenced;
use crate::tools::{ToolError, ToolOutput};

/// The longest text of an error, in characters.
const ERROR_MAX_CHARS: usize = 2_000;

/// What a call came to.
pub(super) fn outcome(
    server: &str,
    answer: Result<CallToolResponse, ServiceError>,
) -> Result<ToolOutput, ToolError> {
    match answer {
        Ok(CallToolResponse::Complete(result)) => complete(server, &result),
        Ok(CallToolResponse::InputRequired(_)) => Err(ToolError::Failed(format!(
            "the server {server} wants to ask a person first, which is not possible here"
        ))),
        Ok(_) => Err(ToolError::Unknown(format!(
            "the server {server} goes on with it by itself, and its result is not waited for"
        ))),
        Err(ServiceError::McpError(error)) => {
            let told = fenced([
                ("server", server.into()),
                ("error", shown(&error.message, ERROR_MAX_CHARS).into()),
            ]);
            // A request that was refused as such did nothing; a server that broke down may have acted first.
            Err(match error.code {
                ErrorCode::INVALID_PARAMS
                | ErrorCode::INVALID_REQUEST
                | ErrorCode::METHOD_NOT_FOUND => ToolError::Failed(told),
                _ => ToolError::Unknown(told),
            })
        }
        Err(error) => {
            let why = shown(&error.to_string(), ERROR_MAX_CHARS);
            Err(ToolError::Unknown(format!(
                "the server {server} is gone: {why}"
            )))
        }
    }
}

fn complete(server: &str, result: &CallToolResult) -> Result<ToolOutput, ToolError> {
    let mut texts = Vec::new();
    let mut left_out = Vec::new();
    for block in &result.content {
        match block {
            ContentBlock::Text(text) => texts.push(text.text.clone()),
            ContentBlock::Image(image) => {
                left_out.push(file("image", &image.mime_type, &image.data));
            }
            ContentBlock::Audio(audio) => {
                left_out.push(file("audio", &audio.mime_type, &audio.data));
            }
            ContentBlock::ResourceLink(link) => {
                left_out.push(json!({"kind": "link", "address": link.uri, "name": link.name}));
            }
            ContentBlock::Resource(resource) => match &resource.resource {
                ResourceContents::TextResourceContents { text, .. } => texts.push(text.clone()),
                ResourceContents::BlobResourceContents {
                    mime_type, blob, ..
                } => {
                    let kind = mime_type.as_deref().unwrap_or("application/octet-stream");
                    left_out.push(file("file", kind, blob));
                }
                #[allow(unreachable_patterns, reason = "the library may add kinds")]
                _ => left_out.push(json!({"kind": "unknown"})),
            },
            #[allow(unreachable_patterns, reason = "the library may add kinds")]
            _ => left_out.push(json!({"kind": "unknown"})),
        }
    }
    // The protocol has servers say their structure as text, too: one of them is shown.
    let data = match (texts.is_empty(), &result.structured_content) {
        (true, Some(structured)) => structured.clone(),
        _ => Value::from(texts.join("\n")),
    };
    let content = fenced([
        ("server", server.into()),
        ("data", data),
        ("left_out", left_out.into()),
    ]);
    if result.is_error == Some(true) {
        return Err(ToolError::Failed(content));
    }
    Ok(ToolOutput {
        content,
        sources: Vec::new(),
    })
}

/// A file that is told of and not shown: what it is, and its length.
fn file(kind: &str, mime_type: &str, base64: &str) -> Value {
    let bytes = base64.len() / 4 * 3;
    json!({"kind": kind, "type": shown(mime_type, 100), "bytes": bytes})
}
