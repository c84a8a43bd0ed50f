//! Agents at work: claims a run, assembles its prompt, lets its model work with its tools, commits
//! the answer.
//!
//! Knows no platform and posts nothing: an answer leaves through the outbox. A file uses only files before it in this
//! order:
//!
//! - the parts of a prompt: `picture`, `attached`, `recall`, `remembered`, `registry`, `prompting`, `context`,
//!   `counting`, `stable`, `sent`;
//! - which models are asked: `standing`, `models`, `background`, `worker` (what runs are worked on with), `limits`;
//! - a run at work: `clocks`, `sharing`, `failing`, `working`, `step` (what is recorded), `skilled`, `events`,
//!   `telling`, `holding`, `intent`, `hooking`, `offering`, `preparing`;
//! - its steps: `stepping`, `costing`, `approving`, `delegating`, `questioning`, `calling`, `eliciting`,
//!   `answering`, `model_loop`, `attempting`;
//! - its end: `letting_go`, `ending`, `network` (a run of several agents), `routing` (who says who is next), `run`,
//!   `claiming`.
//!
//! Besides: `desk` (how prompts are shown to people), `scheduler`.

mod answering;
mod approving;
pub mod attached;
mod attempting;
pub mod background;
mod calling;
mod claiming;
mod clocks;
mod context;
mod costing;
mod counting;
mod delegating;
pub mod desk;
mod eliciting;
mod ending;
mod events;
mod failing;
mod holding;
mod hooking;
mod intent;
mod letting_go;
pub mod limits;
mod model_loop;
pub mod models;
mod network;
mod offering;
mod picture;
mod preparing;
pub mod prompting;
mod questioning;
pub mod recall;
pub mod registry;
pub mod remembered;
mod routing;
mod run;
pub mod scheduler;
pub mod sent;
mod sharing;
mod skilled;
mod stable;
mod standing;
mod step;
mod stepping;
mod telling;
#[cfg(test)]
mod tests;
pub mod worker;
mod working;
