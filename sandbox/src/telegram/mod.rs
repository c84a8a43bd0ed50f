//! A loopback Telegram Bot API server: strict, with people who act and faults on demand.
//!
//! [`TelegramServer`] serves a [`TelegramWorld`] at `/bot<token>/<method>`, refuses what the platform
//! refuses in the platform's words, and keeps every room as people see it. A method that is not listed in `methods` answers `method not found`.
//!
//! Reading order: `world` (what exists), `rooms` (what is stored and who hears it), `message` and
//! `people` (what people do), `server` (HTTP), `params` and `failure` (in and out), `methods`,
//! `target`, `sends`, `polling` and `webhook` over `queue`, then the pure text rules `text`, `entities`, `markup`,
//! `html`, `markdown`; `faults`, `control`, `selfcheck`.
//!
//! # Control surface
//!
//! For tests and tools in another process there is, on the same port and without a token:
//!
//! | request | body or query | answer |
//! |---|---|---|
//! | `POST /control/say` | `{chat, user, text, topic?, reply_to?}` | `{message_id}` |
//! | `POST /control/edit` | `{chat, message_id, text}` | `{message_id}` |
//! | `POST /control/update` | an update without `update_id` | `{update_id}` |
//! | `POST /control/fault` | `{method, always?, fault, ...}` with `fault` one of `latency` `{ms}`, `late_answer` `{ms}`, `rate_limited` `{retry_after_s}`, `refused` `{code, description}`, `gateway` `{code}`, `gateway_after` `{code}`, `reset_before`, `reset_after`, `stall`, `stall_after`, `ignore_offset`, `conflict`, `garbage` | `{ok}` |
//! | `POST /control/knobs` | `{take_loopback_webhooks?, webhook_second_ms?}`: deliver to loopback addresses without TLS; how long a second of their retries is | `{ok}` |
//! | `GET /control/posts` | `?chat=` | the posts of a chat, oldest first |
//! | `GET /control/state` | | bot, users, chats, pending updates, polls answered |
//!
//! A bad request there answers 400 with `{error}` or 4xx with a text.

mod command_lists;
mod control;
mod date;
mod entities;
mod failure;
mod faults;
mod html;
mod markdown;
mod markup;
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

pub use faults::{TelegramFault, TelegramFaults};
pub use message::{MigrationOrder, TelegramForward, TelegramMedia, UserMessage};
pub use rooms::TelegramDraft;
pub use selfcheck::telegram_refusals;
pub use server::{TelegramPost, TelegramServer};
pub use text::stored_text;
pub use world::{
    ANONYMOUS_ADMIN_ID, BotStatus, CHANNEL_SENDER_ID, ChatKind, SERVICE_ACCOUNT_ID, TelegramBot,
    TelegramChat, TelegramUser, TelegramWorld, Topic,
};
