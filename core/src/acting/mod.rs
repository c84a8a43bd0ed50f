//! What becomes of a tool call. Pure: the facts that the store read in the transaction, and what follows.
//!
//! Reading order: `beginning` (is a call made?), `waves` (which calls of a step are made at the same time).

mod beginning;
mod waves;

pub use beginning::{Beginning, CallFacts, begin};
pub use waves::{AT_ONCE_MAX, waves};
