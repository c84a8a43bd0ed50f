//! The Slack and Telegram adapters.
//!
//! They turn platform events into [`Envelope`](vocative_contract::envelope::Envelope)s and platform-neutral parts
//! into posts, as `vocative_contract` says. An adapter knows no store, no model and no agent.
//!
//! Reading order: `render`, `export`, then one platform: `wire` -> `translate` -> transport -> `api` -> `render` ->
//! `outbound`.

#![cfg_attr(
    not(all(feature = "slack", feature = "telegram")),
    allow(
        dead_code,
        unused_imports,
        reason = "what only an adapter that is left out uses"
    )
)]

pub mod backoff;
pub mod chance;
mod door;
mod download;
pub mod export;
#[doc(hidden)]
pub mod fuzzing;
pub mod http;
pub mod internet;
mod json_object;
mod json_stream;
mod log_gate;
mod mac;
pub mod multipart;
mod offline;
pub mod permalink;
pub mod rate;
pub mod render;

#[cfg(feature = "slack")]
pub mod slack;
#[cfg(feature = "telegram")]
pub mod telegram;

use vocative_contract::identity::Platform;

use offline::OfflineHalf;

/// What can be done without an account of the platform; `None` if there is nothing, or this build leaves its adapter
/// out.
fn offline_half(platform: Platform) -> Option<OfflineHalf> {
    match platform {
        #[cfg(feature = "slack")]
        Platform::Slack => Some(slack::OFFLINE),
        #[cfg(feature = "telegram")]
        Platform::Telegram => Some(telegram::OFFLINE),
        Platform::Api => None,
        #[cfg(not(all(feature = "slack", feature = "telegram")))]
        _ => None,
    }
}
