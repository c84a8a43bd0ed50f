//! The Slack and Telegram adapters.
//!
//! They turn platform events into [`Envelope`](vocative_contract::envelope::Envelope)s and platform-neutral parts
//! into posts, as `vocative_contract` says. An adapter knows no store, no model and no agent.
//!
//! Reading order: `render`, `export`, then one platform: `wire` -> `translate` -> transport -> `api` -> `render` ->
//! `outbound`.

pub mod backoff;
pub mod chance;
#[cfg(any(feature = "slack", feature = "telegram"))]
mod door;
#[cfg(any(feature = "slack", feature = "telegram"))]
mod download;
pub mod export;
#[cfg(any(feature = "slack", feature = "telegram"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod http;
pub mod internet;
#[cfg(any(feature = "slack", feature = "telegram"))]
mod json_object;
#[cfg(any(feature = "slack", feature = "telegram"))]
mod json_stream;
mod log_gate;
#[cfg(any(feature = "slack", feature = "telegram"))]
mod mac;
pub mod multipart;
pub mod permalink;
pub mod rate;
pub mod render;

#[cfg(feature = "slack")]
pub mod slack;
#[cfg(feature = "telegram")]
pub mod telegram;
