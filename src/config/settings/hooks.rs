//! Hooks.

use super::tools::SecretHeader;
use crate::tools::http::HttpToolSettings;
use vocative_core::hooking::{HookPoint, Redactor};

/// Who is asked at points of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    /// The points; each once.
    pub points: Vec<HookPoint>,
    /// What it is.
    pub kind: HookKind,
}

/// What a hook is.
#[derive(Clone, Debug, PartialEq)]
pub enum HookKind {
    /// It takes words out by pattern.
    Redact(Redactor),
    /// A server is asked.
    Http {
        /// The request, without its secrets.
        settings: Box<HttpToolSettings>,
        /// Where its secrets are.
        secret_headers: Vec<SecretHeader>,
        /// Whether it is sent what people, models and tools said.
        has_content: bool,
    },
    /// A model is asked whether a message was meant for the agent.
    Intent {
        /// Which model.
        model: String,
        /// How long it may take, in milliseconds.
        timeout_ms: u64,
    },
}
