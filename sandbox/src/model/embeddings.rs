//! `/v1/embeddings`: vectors in which texts with the same words are alike, and so are words that a test declares as
//! synonyms. Refuses what OpenAI's API refuses. *Source:* the API's reference: an input is a text or a list of at most
//! 2,048 texts, none of them empty, `encoding_format` is `float` or `base64`, `dimensions` a positive number.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};

use super::openai;
use super::server::{CallShape, SharedModel, check_key, json_response};

/// How many numbers a vector has by default.
const DIMENSIONS: usize = 64;
const INPUTS_MAX: usize = 2_048;

/// The test's settings for embeddings.
#[derive(Clone, Debug, Default)]
pub(super) struct Embedding {
    /// Words that mean the same.
    pub(super) alike: Vec<Vec<String>>,
    /// The texts of each request that was answered.
    pub(super) requests: Vec<Vec<String>>,
    /// The status of refusals, and the text that refused inputs contain.
    pub(super) refuses: Option<(u16, String)>,
    /// Whether it never answers.
    pub(super) hangs: bool,
    /// How many numbers vectors have instead of [`DIMENSIONS`], as after a change of the model.
    pub(super) dimensions: Option<usize>,
}

pub(super) async fn embeddings(
    State(shared): State<SharedModel>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Err(refused) = check_key(CallShape::OpenAi, &headers) {
        return json_response(refused.status, &refused.body);
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let Some((texts, asked_dimensions)) = read(&body) else {
        return json_response(400, &openai::status_body(400));
    };
    let script = shared.script(|script| script.embedding.clone());
    if script.hangs {
        std::future::pending::<()>().await;
    }
    if let Some((status, word)) = &script.refuses
        && texts.iter().any(|text| text.contains(word.as_str()))
    {
        return json_response(*status, &openai::status_body(*status));
    }
    let dimensions = asked_dimensions.or(script.dimensions).unwrap_or(DIMENSIONS);
    let data = texts.iter().enumerate().map(|(index, text)| {
        let vector = vector(text, &script.alike, dimensions);
        json!({"object": "embedding", "index": index, "embedding": vector})
    });
    let tokens: usize = texts.iter().map(|text| text.len().div_ceil(4)).sum();
    let answer = json!({
        "object": "list",
        "model": body["model"],
        "data": data.collect::<Vec<_>>(),
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    });
    shared.script(|script| script.embedding.requests.push(texts));
    json_response(200, &answer)
}

/// The texts of a request and the dimensions that it asks for; `None` = it is refused.
fn read(body: &Value) -> Option<(Vec<String>, Option<usize>)> {
    body["model"].as_str().filter(|model| !model.is_empty())?;
    let texts: Vec<String> = match &body["input"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(texts) => {
            let texts = texts.iter().map(|text| text.as_str().map(str::to_owned));
            texts.collect::<Option<_>>()?
        }
        _ => return None,
    };
    let is_empty = texts.is_empty() || texts.iter().any(String::is_empty);
    let is_format = matches!(body["encoding_format"].as_str(), None | Some("float"));
    let dimensions = match &body["dimensions"] {
        Value::Null => None,
        asked => Some(usize::try_from(asked.as_u64().filter(|it| *it > 0)?).ok()?),
    };
    (!is_empty && texts.len() <= INPUTS_MAX && is_format).then_some((texts, dimensions))
}

/// The vector of a text: each word counts at a place that follows from its letters; synonyms count as the first of
/// them.
fn vector(text: &str, alike: &[Vec<String>], dimensions: usize) -> Vec<f32> {
    // A vector is never zero: it always has a direction.
    let mut numbers = vec![0.01; dimensions];
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        if word.is_empty() {
            continue;
        }
        let word = word.to_lowercase();
        let family = alike.iter().find(|family| family.contains(&word));
        let word = family.and_then(|family| family.first()).unwrap_or(&word);
        let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let place = usize::try_from(hash >> 17).unwrap_or(0) % dimensions;
        if let Some(number) = numbers.get_mut(place) {
            *number += 1.0;
        }
    }
    numbers
}
