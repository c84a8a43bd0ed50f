//! What a server's answer means.

use rmcp::ServiceError;
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, ErrorCode, InputRequest, InputRequiredResult,
    ResourceContents,
};
use serde_json::{Value, json};

use super::definition::shown;
use crate::tools::outside::fenced;
use crate::tools::{ToolError, ToolOutput};
use vocative_core::eliciting::{FORMS_MAX, Form, InputRound};

/// The longest text of an error, in characters.
const ERROR_MAX_CHARS: usize = 2_000;

/// What a call came to.
pub(super) fn outcome(
    server: &str,
    round: u32,
    answer: Result<CallToolResponse, ServiceError>,
) -> Result<ToolOutput, ToolError> {
    match answer {
        Ok(CallToolResponse::Complete(result)) => complete(server, &result),
        Ok(CallToolResponse::InputRequired(wanted)) => Err(match input(server, round, wanted) {
            Ok(round) => ToolError::InputRequired(Box::new(round)),
            Err(why) => ToolError::Failed(format!("the server {server} does not go on: {why}")),
        }),
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

/// What a server asks people, if people are asked that.
fn input(server: &str, number: u32, wanted: InputRequiredResult) -> Result<InputRound, String> {
    let requests = wanted.input_requests.unwrap_or_default();
    if requests.len() > FORMS_MAX {
        return Err(format!("it asks for more than {FORMS_MAX} things at once"));
    }
    let mut round = InputRound {
        number,
        server: server.to_owned(),
        state: wanted.request_state,
        forms: Vec::new(),
    };
    for (n, (key, request)) in requests.into_iter().enumerate() {
        let InputRequest::Elicitation(request) = request else {
            return Err(
                "it asks for this daemon's model or folders, which it does not get".to_owned(),
            );
        };
        let params = serde_json::to_value(&request.params).unwrap_or_default();
        let form = Form::of(&params).map_err(|refused| refused.to_string())?;
        round.forms.push((key, form));
        round
            .question(n, None)
            .map_err(|refused| refused.to_string())?;
    }
    Ok(round)
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_what_people_may_be_asked_is_asked() {
        let form = |schema: Value| json!({"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": schema}});
        let fit = form(json!({"type": "object", "properties": {"size": {"type": "string"}}}));
        let secret =
            form(json!({"type": "object", "properties": {"password": {"type": "string"}}}));
        let page = json!({"method": "elicitation/create", "params": {
            "mode": "url", "message": "Sign in", "url": "https://example.com", "elicitationId": "1",
        }});
        let model =
            json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 9}});
        let many = json!({"a": fit, "b": fit, "c": fit, "d": fit});
        for (requests, expected) in [
            (json!({"q": fit}), Ok(1)),
            (Value::Null, Ok(0)),
            (json!({"q": secret}), Err("a secret (password)")),
            (json!({"q": page}), Err("open a page")),
            (json!({"q": model}), Err("this daemon's model")),
            (many, Err("more than 3 things")),
        ] {
            let mut wanted = json!({"resultType": "input_required", "requestState": " ä "});
            if !requests.is_null() {
                wanted["inputRequests"] = requests;
            }
            let wanted: InputRequiredResult = serde_json::from_value(wanted).unwrap();
            match (
                outcome("boxes", 2, Ok(CallToolResponse::InputRequired(wanted))),
                expected,
            ) {
                (Err(ToolError::InputRequired(round)), Ok(forms)) => {
                    assert_eq!((round.forms.len(), round.number), (forms, 2));
                    assert_eq!(round.state.as_deref(), Some(" ä "));
                }
                (Err(ToolError::Failed(told)), Err(words)) => {
                    assert!(told.contains(words) && told.contains("boxes"), "{told}");
                }
                (other, expected) => panic!("{other:?}, and not {expected:?}"),
            }
        }
    }
}
