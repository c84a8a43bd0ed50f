//! Agents that ask other agents: whether a run may, what share of its budget the other one gets, and what its model is
//! told. Pure: the facts that the store read in the transaction, and what becomes of them.
//!
//! Reading order: `deciding` (may it ask, with which share?), `bounds` (how much can it come to?), `stored` (a task as
//! it stands), `telling` (what models are told).

mod bounds;
mod deciding;
mod stored;
mod telling;

pub use bounds::{Below, WorkBounds, worst_below};
pub use deciding::{ChildUse, DelegatingFacts, NotDelegated, Share, delegate};
pub use stored::{StoredTask, TaskState};
pub use telling::{not_delegated_text, task_text, told_of_task};

/// How far below a person's question a run may stand: the question's own run has depth 0.
pub const DEPTH_MAX: usize = 2;
/// The most runs that one run starts.
pub const CHILDREN_MAX: usize = 4;
/// The most of them that are worked on at once.
pub const CHILDREN_AT_ONCE: u32 = 2;
/// The longest task, in characters.
pub const TASK_MAX_CHARS: usize = 8_000;
/// The longest result that is kept of a task, in characters; what is longer is cut, and says so.
pub const RESULT_MAX_CHARS: usize = 16_000;
