//! Capture: the only way a turn comes to exist.
//!
//! Inbound: an envelope becomes one store write whose decision (access, addressing, limits) is a pure
//! function of facts read in the same transaction. Reply: an answer becomes one store write. Import:
//! messages of an export become turns that address nobody. Knows nothing of models, prompts or sending.
//!
//! The decision itself is `vocative_core::judging`. Reading order: `gate`, `cancels`, `name_hints`, `wake`,
//! `inbound`, `forms`, `presses` (buttons), `changes` (other arguments for calls), `feedback` (thumbs), `requests`
//! (the API), `noting`, `reply`, `import`.

pub mod cancels;
mod changes;
pub mod clock;
mod feedback;
mod forms;
pub mod gate;
pub mod import;
pub mod inbound;
pub mod name_hints;
mod noting;
pub mod presses;
pub mod reply;
pub mod requests;
pub mod wake;
