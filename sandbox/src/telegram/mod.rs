//! A loopback Telegram Bot API server: strict, with people who act and faults on demand.
//!
//! [`TelegramServer`] serves a [`TelegramWorld`] at `/bot<token>/<method>`, refuses what the platform
//! refuses in the platform's words, and keeps every room as people see it. A method that is not listed in `methods`
//! answers `method not found`.
//!
//! Reading order: `world` (what exists), `rooms` (what is stored and who hears it), `message`,
//! `people` and `events` (what people do), `server` (HTTP), `params` and `failure` (in and out), `methods`,
//! `target`, `sends`, `media`, `copies`, `polling` and `webhook` over `queue`, then the pure text rules `text`,
//! `entities`, `markup`, `html`, `markdown`; `faults`, `control`, `selfcheck`.
//!
//! For tests and tools in another process there is `/control/` on the same port, without a token. Every
//! request with its fields is in the README of the crate.

mod command_lists;
mod control;
mod copies;
mod date;
mod entities;
mod events;
mod failure;
mod faults;
mod html;
mod markdown;
mod markup;
mod media;
mod message;
mod methods;
mod params;
mod people;
mod polling;
mod probes;
mod queue;
mod rooms;
mod selfcheck;
mod sends;
mod server;
mod target;
mod text;
mod webhook;
mod world;

pub use events::PressResult;
pub use faults::{TelegramFault, TelegramFaults};
pub use message::{MigrationOrder, TelegramForward, TelegramMedia, UserMessage};
pub use rooms::TelegramPreview;
pub use selfcheck::telegram_refusals;
pub use server::{TelegramPost, TelegramServer};
pub use text::stored_text;
pub use world::{
    ANONYMOUS_ADMIN_ID, BotStatus, CHANNEL_SENDER_ID, SERVICE_ACCOUNT_ID, TelegramBot,
    TelegramChat, TelegramChatKind, TelegramUser, TelegramWorld, Topic,
};
