//! The Slack adapter: Socket Mode or the Events API over HTTP in, Web API out.
//!
//! Reading order: `wire` (what Slack sends) -> `mrkdwn`, `text`, `translate` and `interactive` (pure) -> `socket` (one
//! connection) -> `reopening` (when the next one is opened) -> `socket_pool` (several, replaced without a
//! gap), or `signature` and `events_api`
//! (HTTP) -> `api` -> `markdown`, `table`,
//! `render` and `card` (pure) -> `outbound` with `posting`, `signs` and `look_ups`, `upload`, `names`, `history`,
//! `file`; `check` looks at a configuration live; `export_files` and `export` read an export,
//! and `permalink` says where a message is. It knows no store, no
//! model and no agent.

mod agent_view;
mod api;
mod aside;
mod belonging;
mod card;
mod channel;
mod check;
mod events_api;
mod export;
mod export_files;
mod file;
mod form;
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod interactive;
mod look_ups;
mod markdown;
mod mrkdwn;
mod names;
mod outbound;
mod permalink;
mod posting;
mod render;
mod reopening;
mod signature;
mod signs;
mod socket;
mod socket_pool;
mod stream;
mod table;
mod text;
mod translate;
mod upload;
mod wire;

use crate::offline::OfflineHalf;

pub use channel::{SlackChannel, SlackSettings, SlackTransport};
pub use export::open_export;
pub use render::{TEXT_MAX_CHARS, render};
pub use socket::{FRAME_MAX_BYTES, IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX, SocketTimings};
pub use translate::{SlackDelivery, translate};

/// What the adapter offers without a connection.
pub(crate) const OFFLINE: OfflineHalf = OfflineHalf {
    permalink: permalink::permalink,
    open_export,
};

/// Where the Web API is unless a setting says otherwise.
pub const API_URL: &str = "https://slack.com/api/";

/// The `event_type` of the metadata that our posts carry.
pub const METADATA_EVENT_TYPE: &str = "vocative_reply";

/// The most sockets Slack allows per app.
pub const SOCKETS_MAX: usize = 10;

/// The bot scopes that the built features use.
pub const REQUIRED_SCOPES: &[&str] = &[
    "app_mentions:read",
    "channels:history",
    "channels:read",
    "chat:write",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "mpim:history",
    "mpim:read",
    "users:read",
];

/// Why an `app_rate_limited` notice is ignored: it only says that events are missing.
const APP_RATE_LIMITED: &str = "app_rate_limited";
