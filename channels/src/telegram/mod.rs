//! The Telegram adapter: long polling or a webhook in, Bot API out.
//!
//! Reading order: `wire` (what Telegram sends), `entities`, `text`, `content`, `rich`, `sender`, `numbers`,
//! `translate` (an update becomes an envelope), `poll` (the inbound half), `webhook` and `registration` (the
//! other one), `dismissing`, `api`, `layout`,
//! `render` and `card`, `outbound` with `posting`, `signs`, `look_ups` and `probing`, `channel` (who we are, live
//! check). `export_wire` and `export` read what Telegram Desktop exports, and `permalink` says where a message is.
//!
//! Bots receive no deletes, can't read history and don't hear their own posts, so nothing here makes
//! [`vocative_contract::envelope::Event::Deleted`], and a post of unknown outcome can only be looked for by asking
//! about single messages ([`vocative_contract::probe`]).

mod api;
mod card;
mod channel;
mod commands;
mod content;
mod dismissing;
mod entities;
mod export;
mod export_wire;
mod file;
#[doc(hidden)]
pub mod fuzzing;
mod layout;
mod look_ups;
mod numbers;
mod outbound;
mod permalink;
mod poll;
mod posting;
mod probing;
mod registration;
mod render;
mod rich;
mod sender;
mod signs;
#[cfg(test)]
mod test_support;
mod text;
mod translate;
mod webhook;
mod wire;

use crate::offline::OfflineHalf;

pub use channel::{
    DEFAULT_API_URL, TelegramChannel, TelegramSettings, TelegramTransport, WebhookSettings,
};
pub use export::open_export;
pub use poll::PollTimings;
pub use registration::WebhookTimings;
pub use render::{TEXT_MAX_UTF16, render};
pub use translate::translate;

/// What the adapter offers without a connection.
pub(crate) const OFFLINE: OfflineHalf = OfflineHalf {
    permalink: permalink::permalink,
    open_export,
};
