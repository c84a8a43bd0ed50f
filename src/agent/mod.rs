//! Agents at work: claims a run, assembles its prompt, lets its model work with its tools, commits
//! the answer.
//!
//! Knows no platform and posts nothing: an answer leaves through the outbox. Reading order:
//! `registry`, `counting`, `context`, `attached` (with `decode` and `picture`), `recall`, `prompting`, `sent`, `skilled`, `stable`, `run`, `failing`, `ending`, `standing` and `models` (which models are asked), `stepping`, `step`, `answering` (when they are over), `approving` (a call that needs a person),
//! `telling`, `events`, `network` (a run of several agents) with `routing` (who says who is next), `worker`, `desk`, `scheduler`.

mod answering;
mod approving;
pub mod attached;
pub mod background;
mod calling;
mod context;
mod counting;
mod delegating;
pub mod desk;
mod eliciting;
mod ending;
mod events;
mod failing;
mod hooking;
mod intent;
pub mod limits;
pub mod models;
mod network;
mod picture;
pub mod prompting;
mod questioning;
pub mod recall;
pub mod registry;
pub mod remembered;
mod routing;
mod run;
pub mod scheduler;
pub mod sent;
mod skilled;
mod stable;
mod standing;
mod step;
mod stepping;
mod telling;
#[cfg(test)]
mod tests;
pub mod worker;
