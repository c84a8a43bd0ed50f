//! Checks whether a provider can be reached and accepts the key, by requesting its list of models, which costs nothing.
//! Errors and answers contain no key, no URL and no text of the provider.

use std::time::Duration;

use reqwest::Url;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use vocative_channels::http::{body_within, what_broke};

use super::base_url::{Address, Wire};
use super::provider::ANTHROPIC_VERSION;
use super::{BuildError, ModelSettings};

/// How long the answer may take.
const WAIT: Duration = Duration::from_secs(10);
/// The longest list of models that is read, in bytes.
const LIST_BYTES_MAX: usize = 4 << 20;

/// The most models that are taken from a list.
pub const NAMES_MAX: usize = 1_000;
/// The longest name of a model that is shown, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// The outcome of the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderReach {
    /// The provider accepts the key.
    Taken {
        /// Whether the provider's list names the model; `None` if it sent no list.
        names_model: Option<bool>,
    },
    /// The provider refuses the key, or a request without a key.
    Refused {
        /// The HTTP status.
        status: u16,
    },
    /// A server answers, but not with a list: the key was not tried.
    NoList {
        /// The HTTP status.
        status: u16,
    },
    /// No server answers.
    Unreachable {
        /// What happened.
        what: &'static str,
    },
    /// The model is built in, so there is no provider.
    NotAsked,
}

/// Asks a provider for its list of models.
///
/// # Errors
/// [`BuildError`] names the setting to change.
pub async fn reach(
    settings: &ModelSettings,
    http: &reqwest::Client,
) -> Result<ProviderReach, BuildError> {
    let (reach, _) = reach_and_names(settings, http).await?;
    Ok(reach)
}

/// Asks a provider for its list of models, and also returns their names: at most [`NAMES_MAX`], in the provider's
/// order.
///
/// # Errors
/// As for [`reach`].
pub async fn reach_and_names(
    settings: &ModelSettings,
    http: &reqwest::Client,
) -> Result<(ProviderReach, Vec<String>), BuildError> {
    let Some(address) = Address::of(settings)? else {
        return Ok((ProviderReach::NotAsked, Vec::new()));
    };
    let is_anthropic = address.wire == Wire::Messages;
    let mut request = http.get(list_url(&address)).timeout(WAIT);
    if is_anthropic {
        request = request.header("anthropic-version", ANTHROPIC_VERSION);
    }
    if let Some(key) = &settings.api_key {
        let key = key.expose_secret();
        request = match is_anthropic {
            true => request.header("x-api-key", key),
            false => request.bearer_auth(key),
        };
    }
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) => {
            return Ok((
                ProviderReach::Unreachable {
                    what: what_broke(&error),
                },
                Vec::new(),
            ));
        }
    };
    let status = response.status().as_u16();
    Ok(match status {
        200 => {
            let list = list(response).await;
            let names_model = names(&list, &settings.model);
            (ProviderReach::Taken { names_model }, all_names(&list))
        }
        401 | 403 => (ProviderReach::Refused { status }, Vec::new()),
        _ => (ProviderReach::NoList { status }, Vec::new()),
    })
}

/// The URL of the list.
fn list_url(address: &Address) -> Url {
    let mut url = address.url("models");
    if address.wire == Wire::Messages {
        url.query_pairs_mut().append_pair("limit", "1000");
    }
    url
}

/// Reads a list of models; empty if the connection breaks or the list is too long.
async fn list(response: reqwest::Response) -> Vec<u8> {
    let body = body_within(response, LIST_BYTES_MAX).await;
    body.ok().flatten().unwrap_or_default()
}

/// Whether a list of models names this one. Both protocols have `data` with an `id` in each entry.
fn names(list: &[u8], model: &str) -> Option<bool> {
    let list: Value = serde_json::from_slice(list).ok()?;
    let models = list["data"].as_array()?;
    Some(models.iter().any(|it| it["id"] == model))
}

/// The models that a list names, without unusable names.
fn all_names(list: &[u8]) -> Vec<String> {
    let list: Value = serde_json::from_slice(list).unwrap_or_default();
    let models = list["data"].as_array().map_or(&[][..], Vec::as_slice);
    let names = models.iter().filter_map(|it| it["id"].as_str());
    let names = names.filter(|name| !name.is_empty() && name.len() <= NAME_BYTES_MAX);
    names.take(NAMES_MAX).map(str::to_owned).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::llm::Provider;

    #[test]
    fn the_list_is_beside_the_endpoint_for_answers() {
        let openai = Provider::OpenAi;
        let table = [
            (openai, None, "https://api.openai.com/v1/models"),
            (
                openai,
                Some("http://127.0.0.1:11434"),
                "http://127.0.0.1:11434/v1/models",
            ),
            (
                openai,
                Some("https://h.example/api/v1/chat/completions?a=b"),
                "https://h.example/api/v1/models?a=b",
            ),
            (
                Provider::Anthropic,
                None,
                "https://api.anthropic.com/v1/models?limit=1000",
            ),
        ];
        for (provider, base_url, expected) in table {
            let address = Address::of(&ModelSettings::sample(provider, base_url)).unwrap();
            assert_eq!(list_url(&address.unwrap()).as_str(), expected);
        }
    }

    #[test]
    fn a_list_names_a_model_or_is_none() {
        let list = br#"{"object": "list", "data": [{"id": "m"}, {"id": "n"}]}"#;
        assert_eq!(names(list, "n"), Some(true));
        assert_eq!(names(list, "o"), Some(false));
        assert_eq!(names(br#"{"models": []}"#, "n"), None);
        assert_eq!(names(b"<html>", "n"), None);
        assert_eq!(all_names(list), ["m", "n"]);
        assert_eq!(
            all_names(br#"{"data": [{"id": ""}, {"id": 5}, 7]}"#),
            [""; 0]
        );
        assert_eq!(all_names(b"<html>"), [""; 0]);
    }
}
