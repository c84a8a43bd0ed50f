//! What becomes of runs when what they answer is said, edited, deleted or stopped. Pure: the facts that the store
//! read in the transaction, and the change that it writes there.
//!
//! Reading order: `overlap` (a further question), `triggers` (a turn's address comes, goes, or goes with its turn),
//! `stopping` (somebody says stop), `reanswer` (an answered question is edited), `follow_ups` (a thread becomes an
//! agent's), `budget` (what a run may use), `made_from` (which answers go with what they were made from).

pub mod budget;
pub mod follow_ups;
pub mod made_from;
pub mod overlap;
pub mod reanswer;
pub mod stopping;
pub mod triggers;
