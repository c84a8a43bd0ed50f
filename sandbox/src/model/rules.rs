//! What a model's name says about what it takes, and seals that show whether contents were changed.
//!
//! Pure. *Source:* OpenAI's and Anthropic's pages on reasoning models, as of November 2026.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

/// The version of a GPT model: 5 and 6 for `gpt-5.6-mini`.
pub(super) fn gpt(model: &str) -> Option<(u32, u32)> {
    let version = model.strip_prefix("gpt-")?.split('-').next()?;
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Whether it is one of OpenAI's models that reason.
pub(super) fn is_openai_reasoner(model: &str) -> bool {
    gpt(model) >= Some((5, 0))
        || ["o1", "o3", "o4"]
            .iter()
            .any(|name| model.starts_with(name))
}

/// Whether it is one of OpenAI's models that do not.
pub(super) fn is_openai_plain(model: &str) -> bool {
    model.starts_with("gpt-4") || model.starts_with("gpt-3")
}

/// Whether it is one of Anthropic's models that always think.
pub(super) fn always_thinks(model: &str) -> bool {
    ["fable-5", "opus-5-5", "opus-5.5"]
        .iter()
        .any(|name| model.contains(name))
}

/// Whether it is one of Anthropic's models that take no sampling parameters.
pub(super) fn takes_no_temperature(model: &str) -> bool {
    always_thinks(model) || model.contains("opus-5") || model.contains("sonnet-5")
}

/// The first field of a body that is not among the known ones.
pub(super) fn unknown_field<'a>(body: &'a Value, known: &[&str]) -> Option<&'a str> {
    let fields = body.as_object()?;
    let mut names = fields.keys().map(String::as_str);
    names.find(|name| !known.contains(name))
}

/// A seal over these contents; other contents have another seal.
pub(super) fn seal(contents: &[&Value]) -> String {
    let mut hasher = DefaultHasher::new();
    for content in contents {
        content.to_string().hash(&mut hasher);
    }
    format!("sealed-{:016x}", hasher.finish())
}
