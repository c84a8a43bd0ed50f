//! The base URL as the client library wants it: with `/v1` and a slash at the end.
//!
//! The library joins `chat/completions` to it, which would replace the last segment of a base
//! without a slash: `/v1` would silently become `/chat/completions`.

use reqwest::Url;

use super::{BuildError, Provider};

/// The address of the provider itself; `None` where the library knows it.
pub(super) fn own_address(provider: &Provider) -> Option<&'static str> {
    match provider {
        Provider::OpenAi => Some("https://api.openai.com/v1/"),
        Provider::Anthropic => Some("https://api.anthropic.com/v1/"),
        Provider::Offline | Provider::Other(_) => None,
    }
}

/// What comes after the base URL in a request for an answer.
pub(super) fn endpoint(provider: &Provider) -> &'static str {
    match provider {
        Provider::Anthropic => "messages",
        _ => "chat/completions",
    }
}

/// Makes a configured base URL usable.
///
/// A URL without a path gets `/v1/` (OpenAI- and Anthropic-shaped servers keep their API there); a
/// full endpoint loses its last part; every path ends with a slash; a query is kept.
pub(super) fn normalised(provider: &Provider, base_url: &str) -> Result<Url, BuildError> {
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
    let is_native = matches!(provider, Provider::Other(_));
    let path = match path.strip_suffix(endpoint(provider)) {
        Some(base) if !is_native => base.trim_end_matches('/'),
        _ => path,
    };
    let path = if path.is_empty() && !is_native {
        "/v1/".to_owned()
    } else {
        format!("{path}/")
    };
    url.set_path(&path);
    Ok(url)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn gap_6_base_urls_are_normalised() {
        let ollama = Provider::Other("ollama".to_owned());
        let cases = [
            (
                &Provider::OpenAi,
                "http://localhost:11434",
                "http://localhost:11434/v1/",
            ),
            (
                &Provider::OpenAi,
                "http://localhost:11434/",
                "http://localhost:11434/v1/",
            ),
            (
                &Provider::OpenAi,
                "https://api.openai.com/v1",
                "https://api.openai.com/v1/",
            ),
            (
                &Provider::OpenAi,
                "https://openrouter.ai/api/v1/",
                "https://openrouter.ai/api/v1/",
            ),
            (
                &Provider::OpenAi,
                " https://x.example/v1/chat/completions ",
                "https://x.example/v1/",
            ),
            (
                &Provider::OpenAi,
                "https://x.example/deployments/d?api-version=2026-01-01#top",
                "https://x.example/deployments/d/?api-version=2026-01-01",
            ),
            (
                &Provider::Anthropic,
                "https://api.anthropic.com/v1/messages",
                "https://api.anthropic.com/v1/",
            ),
            (&ollama, "http://localhost:11434", "http://localhost:11434/"),
        ];
        for (provider, given, expected) in cases {
            assert_eq!(normalised(provider, given).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn unusable_urls_are_refused_without_being_repeated() {
        for given in [
            "localhost:11434",
            "api.example.com",
            "https://me:s3cret@x.example/",
            "ftp://x/",
        ] {
            let error = normalised(&Provider::OpenAi, given)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("`base_url` "), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
