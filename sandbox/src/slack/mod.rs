//! The loopback Slack: Web API, Socket Mode and the Events API over HTTP, strict, failing on demand.
//!
//! Written from the protocol sheet `slack.md`; it shares no code with any adapter. It refuses what
//! Slack refuses, by Slack's error names, and what a person would do in Slack's window a test does
//! with [`SlackServer`]'s methods. Reading order: `world` (who and where), `post`, `text`, `blocks`,
//! `events` (pure), `state` (the one lock), `deliveries`, `socket` (Socket Mode) and `requests` (HTTP), `web` (methods),
//! `hooks` (`response_url`), `faults`, `server` (the handle), `control`.
//!
//! # In one process
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use vocative_sandbox::slack::{SlackServer, SlackWorld};
//! use vocative_sandbox::wire::WireLog;
//!
//! let any_port = ([127, 0, 0, 1], 0).into();
//! let slack = SlackServer::start(SlackWorld::acme(), any_port, WireLog::new()).await?;
//! println!("api_url = {}", slack.api_url());
//! slack.say("#general", "ann", "@vocative hello");
//! # slack.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! # As a separate process: the control surface
//!
//! JSON over HTTP on the same port, for bot authors in any language. Channels and users may be named
//! by id or name. A refusal is HTTP 400 with `{"error": "…"}`.
//!
//! | request | body or query | answer |
//! |---|---|---|
//! | `POST /control/post` | `{channel, user, text, thread_ts?, broadcast?, subtype?, raw?}`; `text` is as typed (`@vocative hi`), or wire form with `raw: true` | `{ts}` |
//! | `POST /control/edit` | `{channel, ts, text, raw?}` | `{}` |
//! | `POST /control/delete` | `{channel, ts}` | `{}` |
//! | `POST /control/react` | `{channel, ts, user, reaction, remove?}` | `{}` |
//! | `POST /control/command` | `{channel, user, command, text?}` | `{}` |
//! | `POST /control/click` | `{channel, user, ts, action_id, block_id?, value?}`: a button of that message | `{}` |
//! | `POST /control/invite`, `/control/remove` | `{channel, user}`: the bot comes or goes | `{}` |
//! | `GET /control/posts` | `?channel=` | `{posts: […]}`, oldest first |
//! | `POST /control/fault` | `{method, kind, …}`, see below | `{}` |
//! | `POST /control/knobs` | any of the fields of [`SlackKnobs`] that are numbers or booleans | `{}` |
//! | `POST /control/disconnect` | `{reason}`: `warning`, `refresh_requested`, `link_disabled`, or ours: `close`, `abort`, `stall` | `{}` |
//! | `POST /control/request_urls` | `{base}`: events go to `BASE/events`, clicks to `BASE/interactivity`, commands to `BASE/commands`; without it: Socket Mode again | `{}` |
//! | `POST /control/redeliver` | nothing: unacknowledged events are sent again at once | `{}` |
//! | `GET /control/state` | | sockets, acknowledged and lost envelopes, violations, world |
//!
//! Kinds of fault: `latency {ms}`, `status {status}`, `status_after_apply {status}`, `rate_limited
//! {retry_after_s}`, `error {error}`, `error_after_apply {error}`, `reset_before`, `reset_after`,
//! `lose_response`, `html`, `redirect {to}` (transfers of files, under the methods `files-pri` and `upload`) (for the next call of `method`, `*` for any); for the next event, with
//! method `event`: `drop`, `duplicate {count}`, `duplicate_event {count}`, `delay {ms}`, `reorder
//! {count}`; for the next socket, with method `upgrade`: `status {status}`.

mod blocks;
mod control;
mod cut;
mod deliveries;
mod events;
mod faults;
mod hooks;
mod post;
mod requests;
mod selfcheck;
mod server;
mod socket;
mod state;
mod text;
mod web;
mod world;

pub use blocks::{Complaint, check_blocks};
pub use deliveries::{AckedEnvelope, EnvelopeKind};
pub use faults::{EventFault, Fault, RetryPlan, SlackFaults, SlackKnobs};
pub use post::{SlackEphemeral, SlackPost, SlackStream, UserPost};
pub use requests::{RequestUrls, signature};
pub use selfcheck::slack_refusals;
pub use server::{BlockAction, SlackServer};
pub use state::{SlackDressing, SlackStatus};
pub use web::files::SlackFile;
pub use world::{ChannelKind, SlackChannel, SlackUser, SlackWorld};
