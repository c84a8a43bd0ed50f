//! The loopback Slack: Web API, Socket Mode and the Events API over HTTP, strict, failing on demand.
//!
//! Written from the protocol sheet `slack.md`; it shares no code with any adapter. It refuses what
//! Slack refuses, by Slack's error names, and what a person would do in Slack's window a test does
//! with [`SlackServer`]'s methods. Reading order: `world` (who and where), `post`, `text`, `blocks` and `elements`,
//! `views`, `events` (pure), `state` (the one lock) and `rooms`, `deliveries`, `socket` (Socket Mode) and `requests`
//! (HTTP), `web` (methods), `interactions` (clicks, commands, modals), `hooks` (`response_url`), `faults`, `server`
//! (the handle), `control`.
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
//! JSON over HTTP under `/control/` on the same port, for bot authors in any language. Every request with
//! its fields is in the README of the crate.

mod blocks;
mod control;
mod cut;
mod deliveries;
mod elements;
mod events;
mod faults;
mod hooks;
mod interactions;
mod post;
mod requests;
mod rooms;
mod selfcheck;
mod server;
mod socket;
mod state;
mod text;
mod views;
mod web;
mod world;

pub use blocks::{Complaint, check_blocks};
pub use deliveries::{AckedEnvelope, EnvelopeKind};
pub use faults::{CallFault, EventFault, RetryPlan, SlackFaults, SlackKnobs};
pub use interactions::BlockAction;
pub use post::{SlackEphemeral, SlackPost, SlackStream, UserPost};
pub use requests::{RequestUrls, signature};
pub use selfcheck::slack_refusals;
pub use server::SlackServer;
pub use state::{SlackDressing, SlackStatus};
pub use web::files::SlackFile;
pub use world::{ChannelKind, SlackConversation, SlackUser, SlackWorld};
