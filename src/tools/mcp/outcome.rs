//! Turns a server's answer into a result.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rmcp::ServiceError;
use rmcp::model::{
    Annotations, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, InputRequest,
    InputRequiredResult, ResourceContents, Role,
};
use serde_json::{Value, json};

use super::PostFiles;
use super::definition::shown;
use crate::tools::outside::fenced;
use crate::tools::{ToolError, ToolOutput};
use vocative_core::eliciting::{FORMS_MAX, InputForm, InputRound};
use vocative_core::words::Language;
use vocative_store::contract::CallFile;

/// The longest text of an error, in characters.
const ERROR_MAX_CHARS: usize = 2_000;

/// The most files of a result that are kept.
const FILES_MAX: usize = 10;

/// The result of a call.
pub(super) fn outcome(
    (server, post_files): (&str, PostFiles),
    round: u32,
    answer: Result<CallToolResponse, ServiceError>,
) -> Result<ToolOutput, ToolError> {
    match answer {
        Ok(CallToolResponse::Complete(result)) => complete((server, post_files), result),
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
            // A rejected request did nothing; a server that broke down may have acted first.
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

/// The input that a server asks people for; an error if people can't be asked for it.
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
        let form = InputForm::of(&params).map_err(|refused| refused.to_string())?;
        round.forms.push((key, form));
        round
            .question(n, None, Language::English)
            .map_err(|refused| refused.to_string())?;
    }
    Ok(round)
}

fn complete(
    (server, post_files): (&str, PostFiles),
    result: CallToolResult,
) -> Result<ToolOutput, ToolError> {
    let mut texts = Vec::new();
    let mut left_out = Vec::new();
    let mut taken = ResultFiles {
        post_files,
        files: Vec::new(),
        told: Vec::new(),
    };
    for block in result.content {
        match block {
            ContentBlock::Text(text) => texts.push(text.text),
            ContentBlock::Image(image) => {
                let annotations = image.annotations.as_ref();
                taken.take(&image.data, (&image.mime_type, None), annotations);
            }
            ContentBlock::Audio(audio) => {
                let annotations = audio.annotations.as_ref();
                taken.take(&audio.data, (&audio.mime_type, None), annotations);
            }
            ContentBlock::ResourceLink(link) => {
                left_out.push(json!({"kind": "link", "address": link.uri, "name": link.name}));
            }
            ContentBlock::Resource(resource) => match resource.resource {
                ResourceContents::TextResourceContents { text, .. } => texts.push(text),
                ResourceContents::BlobResourceContents {
                    mime_type,
                    blob,
                    uri,
                    ..
                } => {
                    let kind = mime_type.as_deref().unwrap_or("application/octet-stream");
                    let annotations = resource.annotations.as_ref();
                    taken.take(&blob, (kind, Some(&uri)), annotations);
                }
                #[allow(unreachable_patterns, reason = "the library may add kinds")]
                _ => left_out.push(json!({"kind": "unknown"})),
            },
            #[allow(unreachable_patterns, reason = "the library may add kinds")]
            _ => left_out.push(json!({"kind": "unknown"})),
        }
    }
    // The protocol asks servers to send structured content also as text: only one of them is shown.
    let data = match (texts.is_empty(), result.structured_content) {
        (true, Some(structured)) => structured,
        _ => Value::from(texts.join("\n")),
    };
    let content = fenced([
        ("server", server.into()),
        ("data", data),
        ("files", taken.told.into()),
        ("left_out", left_out.into()),
    ]);
    if result.is_error == Some(true) {
        return Err(ToolError::Failed(content));
    }
    Ok(ToolOutput {
        content,
        sources: Vec::new(),
        files: taken.files,
    })
}

/// The files of a result.
struct ResultFiles {
    post_files: PostFiles,
    files: Vec<CallFile>,
    /// What the model is told of each file.
    told: Vec<Value>,
}

impl ResultFiles {
    fn take(
        &mut self,
        base64: &str,
        (mime_type, address): (&str, Option<&str>),
        annotations: Option<&Annotations>,
    ) {
        let mime_type = shown(mime_type, 100);
        let told = |what: Value| json!({"type": mime_type, "kept": what});
        let Ok(bytes) = BASE64.decode(base64) else {
            self.told.push(told("no: it is no Base64".into()));
            return;
        };
        if self.files.len() >= FILES_MAX {
            self.told
                .push(told(format!("no: only {FILES_MAX} of a result are").into()));
            return;
        }
        let name = address
            .and_then(name_of)
            .unwrap_or_else(|| format!("file-{}.{}", self.files.len() + 1, ending(&mime_type)));
        let is_marked = || {
            let audience = annotations.and_then(|it| it.audience.as_ref());
            audience.is_some_and(|audience| audience.contains(&Role::User))
        };
        let is_for_people = match self.post_files {
            PostFiles::Marked => is_marked(),
            PostFiles::All => true,
            PostFiles::Never => false,
        };
        self.told.push(json!({
            "name": name, "type": mime_type, "bytes": bytes.len(), "is_for_people": is_for_people,
        }));
        self.files.push(CallFile {
            name,
            mime_type,
            bytes: bytes.into(),
            is_for_people,
        });
    }
}

/// The file name at the end of an address, if it is a plain name with an ending.
fn name_of(address: &str) -> Option<String> {
    let name = address.rsplit('/').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_name = (3..=80).contains(&name.len()) && name.chars().all(is_plain);
    let (stem, ending) = name.rsplit_once('.')?;
    (is_name && !stem.is_empty() && !ending.is_empty()).then(|| name.to_owned())
}

/// The ending of a file's name for a MIME type, which comes from the server.
fn ending(mime_type: &str) -> &'static str {
    match mime_type.split(';').next().unwrap_or_default().trim() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "application/json" => "json",
        "text/csv" => "csv",
        "text/plain" => "txt",
        "text/markdown" => "md",
        _ => "bin",
    }
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
                outcome(
                    ("boxes", PostFiles::Marked),
                    2,
                    Ok(CallToolResponse::InputRequired(wanted)),
                ),
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
