//! What the daemon and the adapter of a platform say to each other.
//!
//! A channel is a configured connection to a platform. Its adapter hands [`envelope::Envelope`]s to an
//! [`channel::Intake`] and lets the daemon render, show, ask and post through [`handles::Outbound`]. This crate names
//! no platform's protocol and does no I/O.
//!
//! Reading order: `channel`, `envelope`, `interaction`, `feedback`, `outbound`, `card`, `form`, `handles`, `people`,
//! `history`, `file`, `probe`, `webhook`, `capability`, `error`, `clock` (the platform's time); `crash` and `work` are
//! instruments of the tests.

pub mod capability;
pub mod card;
pub mod channel;
pub mod clock;
pub mod crash;
pub mod envelope;
pub mod error;
pub mod feedback;
pub mod file;
pub mod form;
pub mod handles;
pub mod history;
pub mod identity;
pub mod interaction;
pub mod live;
pub mod markup;
pub mod outbound;
pub mod people;
pub mod probe;
pub mod split;
pub mod webhook;
pub mod work;
