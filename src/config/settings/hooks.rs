//! Hooks.

use super::tools::SecretHeader;
use crate::tools::http::HttpToolSettings;
use vocative_core::hooking::{HookPoint, Redactor};

/// A hook, which is asked at points of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    /// The points; each once.
    pub points: Vec<HookPoint>,
    /// Its kind, with the kind's settings.
    pub kind: HookKind,
}

/// The kind of a hook.
#[derive(Clone, Debug, PartialEq)]
pub enum HookKind {
    /// Removes words by pattern.
    Redact(Redactor),
    /// Asks a server.
    Http {
        /// The request, without its secrets.
        settings: Box<HttpToolSettings>,
        /// Where its secrets are.
        secret_headers: Vec<SecretHeader>,
        /// Whether the request contains what people, models and tools said.
        has_content: bool,
    },
    /// Asks a model whether a message was meant for the agent.
    Intent {
        /// The model.
        model: String,
        /// How long the model may take, in milliseconds.
        timeout_ms: u64,
    },
}
