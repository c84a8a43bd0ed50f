//! The prompt as JSON, for `prompt --format json` and `prompt --transcript`.

use serde::Serialize;

use super::{Omission, OmissionReason, Prompt};

/// A prompt, as shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptView<'a> {
    /// The messages, in order.
    pub messages: Vec<MessageView<'a>>,
    /// Tokens of summary, history and trigger.
    pub estimated_tokens: usize,
    /// Turns in the snapshot.
    pub turns_loaded: usize,
    /// Whether older turns are represented by a summary.
    pub has_summary: bool,
    /// What was left out.
    pub omitted: Vec<OmissionView<'a>>,
}

/// One message, as shown.
#[derive(Debug, Serialize)]
pub struct MessageView<'a> {
    /// `system`, `user` or `assistant`.
    pub role: &'static str,
    /// What is said.
    pub content: &'a str,
}

/// What was left out, as shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OmissionView<'a> {
    /// The turn's capture order.
    pub seq: i64,
    /// Who spoke.
    pub speaker: &'a str,
    /// Why: the reason's name.
    pub why: &'static str,
    /// How much of a cut turn is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_left_out: Option<usize>,
}

impl<'a> From<&'a Prompt> for PromptView<'a> {
    fn from(prompt: &'a Prompt) -> Self {
        let messages = prompt.messages.iter();
        Self {
            messages: messages
                .map(|message| MessageView {
                    role: message.role.name(),
                    content: &message.content,
                })
                .collect(),
            estimated_tokens: prompt.tokens,
            turns_loaded: prompt.turns_loaded,
            has_summary: prompt.has_summary,
            omitted: prompt.omitted.iter().map(OmissionView::from).collect(),
        }
    }
}

impl<'a> From<&'a Omission> for OmissionView<'a> {
    fn from(omission: &'a Omission) -> Self {
        Self {
            seq: omission.position.seq.0,
            speaker: &omission.speaker,
            why: omission.why.name(),
            tokens_left_out: match omission.why {
                OmissionReason::Cut { tokens } => Some(tokens),
                _ => None,
            },
        }
    }
}
