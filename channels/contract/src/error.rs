//! Channel errors, named by what the caller should do next.

use std::error::Error as StdError;
use std::time::Duration;

use crate::outbound::Operation;

/// The source of a channel error. It never holds a token or a request URL.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// The server answered that it failed: HTTP 5xx. It may still have done what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("HTTP {status}")]
pub struct ServerFailed {
    /// The HTTP status.
    pub status: u16,
}

/// Why an operation on a platform did not succeed, or may not have.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// Nothing reached the platform: retry with back-off.
    #[error("{operation} did not reach the platform")]
    NotSent {
        /// The platform method.
        operation: &'static str,
        /// What went wrong.
        #[source]
        cause: Cause,
    },
    /// The platform asked to wait; the operation was not applied.
    #[error("{operation} must wait {wait_ms} ms")]
    RetryAfter {
        /// The platform method.
        operation: &'static str,
        /// How long, in milliseconds, at least 1,000.
        wait_ms: u64,
    },
    /// The account is refused: hold the whole channel until somebody acts.
    #[error("{operation}: the platform refuses the account: {reason}")]
    Unauthorized {
        /// The platform method.
        operation: &'static str,
        /// The platform's word for it.
        reason: String,
    },
    /// The chat (or topic) refuses posts: park the chat.
    #[error("{operation}: the chat refuses: {reason}")]
    ChatRefused {
        /// The platform method.
        operation: &'static str,
        /// The platform's word for it.
        reason: String,
    },
    /// The chat has another id: switch to it and send again.
    #[error("{operation}: the chat has moved")]
    ChatMoved {
        /// The platform method.
        operation: &'static str,
        /// The chat's id from now on.
        to_chat: String,
    },
    /// This message is refused for good; a fallback may exist.
    #[error("{operation} was refused: {reason}")]
    Rejected {
        /// The platform method.
        operation: &'static str,
        /// The platform's word for it.
        reason: String,
        /// What to try instead.
        fallback: Fallback,
    },
    /// The outcome is unknown: bytes left and no definite answer came.
    #[error("{operation}: outcome unknown")]
    OutcomeUnknown {
        /// The platform method.
        operation: &'static str,
        /// What went wrong.
        #[source]
        cause: Cause,
    },
}

/// What may still work after a definite refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// Nothing: the entry is dead.
    None,
    /// Send it as plain text without entities.
    Plain,
    /// Split it smaller.
    Resplit,
    /// Send it without the thread or topic it was meant for.
    WithoutThread,
    /// Send it without replying to a message.
    WithoutReply,
    /// The message that was to be edited is gone, or can't be edited: post a new one.
    NewPost,
}

impl ChannelError {
    /// The platform, or this adapter, has no such operation.
    #[must_use]
    pub fn unsupported(operation: &Operation) -> Self {
        Self::Rejected {
            operation: operation.name(),
            reason: "not possible on this platform".to_owned(),
            fallback: Fallback::None,
        }
    }

    /// The operation must wait this long.
    #[must_use]
    pub fn must_wait(operation: &'static str, wait: Duration) -> Self {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        Self::RetryAfter {
            operation,
            wait_ms: wait_ms.max(1_000),
        }
    }

    /// Whether the outcome is unknown and the server answered that it failed.
    #[must_use]
    pub fn is_server_failure(&self) -> bool {
        matches!(self, Self::OutcomeUnknown { cause, .. } if cause.is::<ServerFailed>())
    }

    /// The platform's word or the cause, for a log line or a stored reason. Holds no content.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::NotSent { cause, .. } | Self::OutcomeUnknown { cause, .. } => {
                format!("{self}: {cause}")
            }
            _ => self.to_string(),
        }
    }
}
