//! Asks an embedding server: one request for some texts, over OpenAI's protocol. Its answer is checked for
//! plausibility.

use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;
use vocative_channels::http::{body_within, retry_after_ms, what_broke};
use vocative_core::vector::{DIMENSIONS_MAX, Vector};

use crate::llm::account_refusal;

/// The longest answer that is read, in bytes: 64 vectors of 4,096 numbers with 16 characters each.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// The longest error whose text is read, in bytes; of a longer one only the status counts.
const ERROR_BYTES_MAX: usize = 64 << 10;
/// The number of bytes of text that are about one token, for a server that does not count.
const BYTES_PER_TOKEN: usize = 4;

/// Asks an embedding server.
pub struct EmbeddingClient {
    /// Makes the requests.
    pub http: reqwest::Client,
    /// Address of the API, without a slash at its end.
    pub base_url: String,
    /// The provider's name of the model.
    pub model: String,
    /// How many numbers a vector must have, if the server is asked for that.
    pub dimensions: Option<u32>,
    /// The key, if one is needed.
    pub api_key: Option<SecretString>,
}

/// The server's result for some texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// A vector for each text, in their order; all have as many numbers.
    pub vectors: Vec<Vector>,
    /// The cost in tokens: as the server reports it, else an estimate by length.
    pub tokens: u64,
}

/// Why there are no vectors. Never holds an address, a key or a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbeddingError {
    /// The next request may succeed.
    #[error("the embedding server can't answer: {what}")]
    Unavailable {
        /// What happened.
        what: String,
        /// The wait that it asks for, in milliseconds.
        wait_ms: Option<u64>,
    },
    /// It refuses these texts, or everything.
    #[error("the embedding server refuses: {what}")]
    Refused {
        /// What it says, or what is wrong with its answer.
        what: String,
    },
}

impl EmbeddingClient {
    /// Vectors of some texts.
    ///
    /// # Errors
    /// [`EmbeddingError`].
    pub async fn embed(
        &self,
        texts: &[String],
        within: Duration,
    ) -> Result<Embedded, EmbeddingError> {
        let mut body = json!({ "model": self.model, "input": texts, "encoding_format": "float" });
        if let Some(dimensions) = self.dimensions {
            body["dimensions"] = dimensions.into();
        }
        let mut request = self
            .http
            .post(format!("{}/embeddings", self.base_url))
            .timeout(within)
            .json(&body);
        if let Some(key) = &self.api_key {
            request = request.bearer_auth(key.expose_secret());
        }
        let response = request.send().await.map_err(|error| broken(&error))?;
        let status = response.status().as_u16();
        let wait_ms = retry_after_ms(response.headers());
        if status != 200 {
            let body = body_within(response, ERROR_BYTES_MAX).await;
            let body = body.ok().flatten().unwrap_or_default();
            let body = String::from_utf8_lossy(&body);
            return Err(refused_status(status, wait_ms, &body));
        }
        let answer = body_within(response, ANSWER_BYTES_MAX).await;
        let answer = answer.map_err(|error| broken(&error))?;
        let answer = answer.ok_or_else(|| refused("its answer is too long"))?;
        embedded(&answer, texts)
    }
}

#[derive(Deserialize)]
struct EmbeddingAnswer {
    data: Vec<EmbeddingItem>,
    usage: Option<EmbeddingUsage>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct EmbeddingUsage {
    total_tokens: Option<u64>,
}

fn embedded(answer: &[u8], texts: &[String]) -> Result<Embedded, EmbeddingError> {
    let answer: EmbeddingAnswer = serde_json::from_slice(answer)
        .map_err(|_| refused("its answer holds no vectors; check embeddings.base_url"))?;
    if answer.data.len() != texts.len() {
        let what = format!("{} vectors for {} texts", answer.data.len(), texts.len());
        return Err(refused(&what));
    }
    let mut vectors: Vec<Option<Vector>> = vec![None; texts.len()];
    for (place, item) in answer.data.into_iter().enumerate() {
        let index = item.index.unwrap_or(place);
        let slot = vectors
            .get_mut(index)
            .filter(|slot| slot.is_none())
            .ok_or_else(|| refused("its vectors are numbered wrongly"))?;
        let vector = Vector::of(&item.embedding).ok_or_else(|| {
            refused(&format!(
                "a vector has no direction, or more than {DIMENSIONS_MAX} numbers"
            ))
        })?;
        *slot = Some(vector);
    }
    let vectors: Vec<Vector> = vectors.into_iter().flatten().collect();
    let lengths = vectors.iter().map(|vector| vector.numbers.len());
    if lengths.clone().min() != lengths.max() {
        return Err(refused("its vectors differ in their number of dimensions"));
    }
    let bytes: usize = texts.iter().map(String::len).sum();
    let estimate = u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX);
    let told = answer.usage.and_then(|usage| usage.total_tokens);
    Ok(Embedded {
        vectors,
        tokens: told.unwrap_or(estimate),
    })
}

fn refused(what: &str) -> EmbeddingError {
    EmbeddingError::Refused {
        what: what.to_owned(),
    }
}

fn broken(error: &reqwest::Error) -> EmbeddingError {
    EmbeddingError::Unavailable {
        what: what_broke(error).to_owned(),
        wait_ms: None,
    }
}

fn refused_status(status: u16, wait_ms: u64, body: &str) -> EmbeddingError {
    // A refused account is tried again after growing waits: it may be paid, or its key corrected.
    if let Some(what) = account_refusal(status, body) {
        return EmbeddingError::Unavailable {
            what,
            wait_ms: None,
        };
    }
    let what = format!("HTTP {status}");
    match status {
        429 => EmbeddingError::Unavailable {
            what,
            wait_ms: Some(wait_ms),
        },
        408 | 500.. => EmbeddingError::Unavailable {
            what,
            wait_ms: None,
        },
        _ => EmbeddingError::Refused { what },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn texts() -> Vec<String> {
        vec!["good morning".to_owned(), "bye".to_owned()]
    }

    #[test]
    fn vectors_are_put_into_the_order_of_their_texts() {
        let answer = br#"{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0]}],
                          "usage":{"total_tokens":7}}"#;
        let found = embedded(answer, &texts()).unwrap();
        let first: Vec<i8> = found.vectors.iter().map(|it| it.numbers[0]).collect();
        assert_eq!((first, found.tokens), (vec![127, 0], 7));
        let without = br#"{"data":[{"embedding":[1,0]},{"embedding":[0,1]}]}"#;
        assert_eq!(embedded(without, &texts()).unwrap().tokens, 4);
    }

    #[test]
    fn what_can_t_be_true_is_refused() {
        let bad: [&[u8]; 9] = [
            b"<html>",
            b"{}",
            br#"{"data":[]}"#,
            br#"{"data":[{"embedding":[1,0]}]}"#,
            br#"{"data":[{"embedding":[1,0]},{"embedding":[0,0]}]}"#,
            br#"{"data":[{"embedding":[1,0]},{"embedding":[1,0,0]}]}"#,
            br#"{"data":[{"index":0,"embedding":[1,0]},{"index":0,"embedding":[1,0]}]}"#,
            br#"{"data":[{"index":7,"embedding":[1,0]},{"index":0,"embedding":[1,0]}]}"#,
            br#"{"data":[{"embedding":[1,1e39]},{"embedding":[1,0]}]}"#,
        ];
        for answer in bad {
            let said = embedded(answer, &texts());
            let shown = String::from_utf8_lossy(answer);
            assert!(
                matches!(said, Err(EmbeddingError::Refused { .. })),
                "{shown}"
            );
        }
    }

    #[test]
    fn a_status_says_whether_trying_again_may_help() {
        let table = [
            (429, true),
            (500, true),
            (503, true),
            (408, true),
            (401, true),
            (400, false),
            (404, false),
            (413, false),
        ];
        for (status, may_help) in table {
            let said = refused_status(status, 7_000, "{}");
            let is_unavailable = matches!(said, EmbeddingError::Unavailable { .. });
            assert_eq!(is_unavailable, may_help, "{status}: {said}");
        }
    }
}
