//! The address of a model, and which of the three wire forms it uses.

use reqwest::Url;

use super::{BuildError, ModelSettings, OpenAiApi, Provider};

/// The wire form of requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions, which compatible servers speak.
    Chat,
    /// Anthropic's Messages.
    Messages,
}

impl Wire {
    const ALL: [Self; 3] = [Self::Responses, Self::Chat, Self::Messages];

    /// The path behind the base URL.
    pub(super) fn endpoint(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat/completions",
            Self::Messages => "messages",
        }
    }

    /// Its name in stored messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
        }
    }
}

/// The address of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) wire: Wire,
    /// With a slash at the end of its path.
    pub(super) base: Url,
    /// Whether it is OpenAI's own.
    pub(super) is_openai: bool,
}

impl Address {
    /// The address of a model; `None` = it has none.
    pub(super) fn of(settings: &ModelSettings) -> Result<Option<Self>, BuildError> {
        let own = match settings.provider {
            Provider::OpenAi => "https://api.openai.com/v1/",
            Provider::Anthropic => "https://api.anthropic.com/v1/",
            Provider::Offline => return Ok(None),
        };
        let given = settings.base_url.as_deref().unwrap_or(own);
        let (base, named) = normalised(given)?;
        let host = base.host_str().unwrap_or_default();
        let is_openai = host == "api.openai.com" || host.ends_with(".api.openai.com");
        let wire = match (settings.provider, settings.api) {
            (Provider::Anthropic, _) => Wire::Messages,
            (_, Some(OpenAiApi::Responses)) => Wire::Responses,
            (_, Some(OpenAiApi::Chat)) => Wire::Chat,
            (_, None) => match named {
                Some(named @ (Wire::Responses | Wire::Chat)) => named,
                _ if is_openai => Wire::Responses,
                _ => Wire::Chat,
            },
        };
        Ok(Some(Self {
            wire,
            base,
            is_openai,
        }))
    }

    /// The URL of a path below the base.
    pub(super) fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", url.path()));
        url
    }
}

/// Makes a configured base URL usable. If it was a full endpoint, also returns the wire form of that endpoint.
///
/// A URL without a path gets `/v1/` (all three wire forms have their API there); a full endpoint loses its last part;
/// every path ends with a slash; a query is kept.
fn normalised(base_url: &str) -> Result<(Url, Option<Wire>), BuildError> {
    let refused = |what| BuildError::BaseUrl { what };
    let mut url = Url::parse(base_url.trim())
        .map_err(|_| refused("is no URL; write it like `https://api.example.com/v1`"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(refused("must start with `http://` or `https://`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("must not hold a password; use `api_key`"));
    }
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/');
    let named = Wire::ALL
        .into_iter()
        .find(|wire| path.ends_with(&format!("/{}", wire.endpoint())));
    let path = named.map_or(path, |wire| &path[..path.len() - wire.endpoint().len()]);
    let path = match path.trim_end_matches('/') {
        "" => "/v1/".to_owned(),
        path => format!("{path}/"),
    };
    url.set_path(&path);
    Ok((url, named))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const OPENAI: Provider = Provider::OpenAi;

    const CASES: [(Provider, Option<&str>, &str, Wire); 13] = [
        (OPENAI, None, "https://api.openai.com/v1/", Wire::Responses),
        (
            OPENAI,
            Some("https://api.openai.com/v1"),
            "https://api.openai.com/v1/",
            Wire::Responses,
        ),
        (
            OPENAI,
            Some("https://eu.api.openai.com"),
            "https://eu.api.openai.com/v1/",
            Wire::Responses,
        ),
        (
            OPENAI,
            Some("https://api.openai.com/v1/chat/completions"),
            "https://api.openai.com/v1/",
            Wire::Chat,
        ),
        (
            OPENAI,
            Some("https://api.openai.com.example.org/v1"),
            "https://api.openai.com.example.org/v1/",
            Wire::Chat,
        ),
        (
            OPENAI,
            Some("http://localhost:11434"),
            "http://localhost:11434/v1/",
            Wire::Chat,
        ),
        (
            OPENAI,
            Some("http://localhost:11434/"),
            "http://localhost:11434/v1/",
            Wire::Chat,
        ),
        (
            OPENAI,
            Some("http://localhost:8000/v1/responses"),
            "http://localhost:8000/v1/",
            Wire::Responses,
        ),
        (
            OPENAI,
            Some("https://openrouter.ai/api/v1/"),
            "https://openrouter.ai/api/v1/",
            Wire::Chat,
        ),
        (
            OPENAI,
            Some(" https://x.example/chat/completions "),
            "https://x.example/v1/",
            Wire::Chat,
        ),
        (
            OPENAI,
            Some("https://x.example/deployments/d?api-version=2026-01-01#top"),
            "https://x.example/deployments/d/?api-version=2026-01-01",
            Wire::Chat,
        ),
        (
            Provider::Anthropic,
            None,
            "https://api.anthropic.com/v1/",
            Wire::Messages,
        ),
        (
            Provider::Anthropic,
            Some("https://api.anthropic.com/v1/messages"),
            "https://api.anthropic.com/v1/",
            Wire::Messages,
        ),
    ];

    #[test]
    fn base_urls_are_normalised_and_choose_the_wire() {
        for (provider, given, base, wire) in CASES {
            let settings = ModelSettings::sample(provider, given);
            let address = Address::of(&settings).unwrap().unwrap();
            assert_eq!(
                (address.base.as_str(), address.wire),
                (base, wire),
                "{given:?}"
            );
        }
        let chosen = ModelSettings {
            api: Some(OpenAiApi::Chat),
            ..ModelSettings::sample(OPENAI, None)
        };
        assert_eq!(Address::of(&chosen).unwrap().unwrap().wire, Wire::Chat);
        assert_eq!(
            Address::of(&ModelSettings::sample(Provider::Offline, None)),
            Ok(None)
        );
    }

    #[test]
    fn unusable_urls_are_refused_without_being_repeated() {
        for given in [
            "localhost:11434",
            "api.example.com",
            "https://me:s3cret@x.example/",
            "ftp://x/",
        ] {
            let error = normalised(given).unwrap_err().to_string();
            assert!(error.starts_with("`base_url` "), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
