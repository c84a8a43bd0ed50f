//! Whether a provider can be reached and takes the key: asked for its list of models, which costs
//! nothing. Errors and answers hold no key, no URL and no text of the provider's.

use std::time::Duration;

use reqwest::Url;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use vocative_channels::http::body_within;

use super::base_url::{normalised, own_address};
use super::{BuildError, ModelSettings, Provider};

/// How long the answer may take.
const WAIT: Duration = Duration::from_secs(10);
/// A longer list is not read, in bytes.
const LIST_BYTES_MAX: usize = 4 << 20;
/// Source: Anthropic's API, "Versions".
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// What a provider said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It takes the key; whether its list names the model, where it sent a list.
    Taken {
        /// Whether it does.
        names_model: Option<bool>,
    },
    /// It refuses the key, or that there is none.
    Refused {
        /// The HTTP status.
        status: u16,
    },
    /// Something answers, but not with a list: the key was not tried.
    NoList {
        /// The HTTP status.
        status: u16,
    },
    /// Nothing answers.
    Unreachable {
        /// What happened.
        what: &'static str,
    },
    /// Its protocol is not known to have a list; it was not asked.
    NotAsked,
}

/// Asks a provider for its list of models.
///
/// # Errors
/// [`BuildError`] names the setting to change.
pub async fn reach(settings: &ModelSettings, http: &reqwest::Client) -> Result<Reach, BuildError> {
    let Some(url) = address(settings)? else {
        return Ok(Reach::NotAsked);
    };
    let mut request = http.get(url).timeout(WAIT);
    if settings.provider == Provider::Anthropic {
        request = request.header("anthropic-version", ANTHROPIC_VERSION);
    }
    if let Some(key) = &settings.api_key {
        let key = key.expose_secret();
        request = match settings.provider {
            Provider::Anthropic => request.header("x-api-key", key),
            _ => request.bearer_auth(key),
        };
    }
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) => return Ok(Reach::Unreachable { what: what(&error) }),
    };
    let status = response.status().as_u16();
    Ok(match status {
        200 => Reach::Taken {
            names_model: names(&list(response).await, &settings.model),
        },
        401 | 403 => Reach::Refused { status },
        _ => Reach::NoList { status },
    })
}

/// Where the list is; `None` where none is known of.
fn address(settings: &ModelSettings) -> Result<Option<Url>, BuildError> {
    let base = settings.base_url.as_deref();
    let Some(base) = base.or_else(|| own_address(&settings.provider)) else {
        return Ok(None);
    };
    if !matches!(settings.provider, Provider::OpenAi | Provider::Anthropic) {
        return Ok(None);
    }
    let mut url = normalised(&settings.provider, base)?;
    url.set_path(&format!("{}models", url.path()));
    if settings.provider == Provider::Anthropic {
        url.query_pairs_mut().append_pair("limit", "1000");
    }
    Ok(Some(url))
}

/// A list of models; empty if it breaks off or is too long for one.
async fn list(response: reqwest::Response) -> Vec<u8> {
    let body = body_within(response, LIST_BYTES_MAX).await;
    body.ok().flatten().unwrap_or_default()
}

/// Whether a list of models names one. Both protocols have `data`, and an `id` in each.
fn names(list: &[u8], model: &str) -> Option<bool> {
    let list: Value = serde_json::from_slice(list).ok()?;
    let models = list["data"].as_array()?;
    Some(models.iter().any(|it| it["id"] == model))
}

fn what(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "it took too long"
    } else if error.is_connect() {
        "no connection"
    } else {
        "the connection broke"
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn settings(provider: Provider, base_url: Option<&str>) -> ModelSettings {
        ModelSettings {
            provider,
            model: "m".to_owned(),
            base_url: base_url.map(str::to_owned),
            api_key: None,
            timeout_ms: 1_000,
            max_output_tokens: 1,
            temperature: None,
            context_limit: None,
            retries: 0,
            stream: false,
        }
    }

    #[test]
    fn the_list_is_beside_the_endpoint_for_answers() {
        let table = [
            (
                Provider::OpenAi,
                None,
                Some("https://api.openai.com/v1/models"),
            ),
            (
                Provider::OpenAi,
                Some("http://127.0.0.1:11434"),
                Some("http://127.0.0.1:11434/v1/models"),
            ),
            (
                Provider::OpenAi,
                Some("https://h.example/api/v1/chat/completions?a=b"),
                Some("https://h.example/api/v1/models?a=b"),
            ),
            (
                Provider::Anthropic,
                None,
                Some("https://api.anthropic.com/v1/models?limit=1000"),
            ),
            (
                Provider::Other("gemini".to_owned()),
                Some("https://h.example/"),
                None,
            ),
            (Provider::Offline, None, None),
        ];
        for (provider, base_url, expected) in table {
            let url = address(&settings(provider.clone(), base_url)).unwrap();
            assert_eq!(url.as_ref().map(Url::as_str), expected, "{provider:?}");
        }
    }

    #[test]
    fn a_list_names_a_model_or_is_none() {
        let list = br#"{"object": "list", "data": [{"id": "m"}, {"id": "n"}]}"#;
        assert_eq!(names(list, "n"), Some(true));
        assert_eq!(names(list, "o"), Some(false));
        assert_eq!(names(br#"{"models": []}"#, "n"), None);
        assert_eq!(names(b"<html>", "n"), None);
    }
}
