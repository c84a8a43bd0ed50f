//! What a channel is, and the Slack and Telegram adapters.
//!
//! A channel is a configured connection to a platform. This crate turns platform events into
//! [`envelope::Envelope`]s and platform-neutral parts into posts. It knows no store, no model and no
//! agent: whoever uses it hands in an [`channel::Intake`] and asks an [`channel::Outbound`] to send.
//!
//! Reading order: `channel` (the contract), `webhook`, `envelope`, `outbound`, `render`, `history`, `file`, `probe`,
//! `capability`, `error`, `clock` (the platform's time),
//! then one platform: `wire` -> `translate` -> transport -> `api` -> `render` -> `outbound`.

pub mod backoff;
pub mod capability;
pub mod chance;
pub mod channel;
pub mod clock;
pub mod crash;
pub mod envelope;
pub mod error;
pub mod export;
pub mod file;
#[cfg(any(feature = "slack", feature = "telegram"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod history;
pub mod http;
pub mod identity;
#[cfg(feature = "slack")]
mod internet;
#[cfg(any(feature = "slack", feature = "telegram"))]
mod json_object;
#[cfg(any(feature = "slack", feature = "telegram"))]
mod json_stream;
pub mod live;
mod log_gate;
#[cfg(any(feature = "slack", feature = "telegram"))]
mod mac;
pub mod markup;
pub mod multipart;
pub mod outbound;
pub mod probe;
pub mod rate;
pub mod render;
pub mod split;
pub mod webhook;
pub mod work;

#[cfg(feature = "slack")]
pub mod slack;
#[cfg(feature = "telegram")]
pub mod telegram;
