//! The words of the project as types. No I/O, no clock, no serde; every other module uses these.
//!
//! Reading order: `ids`, `place`, `turn`, `file`, `run`, `run_event`, `outbox`, `probing`, `addressing`,
//! `manners`, `command`, `counted`, `history`, `model_rest`, `options`, `search`, `sent`, `slots`,
//! `summary`, `title`, `tokens`.

pub mod addressing;
pub mod command;
pub mod counted;
pub mod decode;
pub mod file;
pub mod history;
pub mod ids;
pub mod manners;
pub mod model_rest;
pub mod options;
pub mod outbox;
pub mod place;
pub mod probing;
pub mod run;
pub mod run_event;
pub mod search;
pub mod sent;
pub mod slots;
pub mod summary;
pub mod title;
pub mod tokens;
pub mod turn;
