//! The words of the project, and every decision as a pure function. No I/O, no clock, no SQL, nothing that waits.
//!
//! Words first: `ids`, `place`, `turn`, `file`, `run`, `run_event`, `outbox`, `probing`, `addressing`, `manners`,
//! `wall_clock`, `command`, `counted`, `coverage`, `history`, `job`, `model_rest`, `options`, `search`, `sent`,
//! `slots`, `summary`, `timing`, `title`, `tokens`, `tool_call`; [`words`] (what the daemon itself says in rooms, in
//! every language). Then the decisions: [`judging`] (whom a message addresses), [`prompting`] (what a model is sent),
//! [`sending`] (what becomes of a post), [`running`] (what becomes of a run), [`folding`] (what a summary stands for),
//! [`acting`] (what becomes of a tool call), [`approving`] (which call needs a person, what they see of it, and what
//! they decide), [`questioning`] (what a model asks people, and whose answer counts), [`eliciting`] (what a server of
//! tools asks people), [`delegating`] (whether an agent may ask another one, and with which share), [`remembering`]
//! (what agents remember of what people said, and where it may appear), [`routing`] (which agent of a network is next),
//! [`scheduling`] (what starts when), [`queueing`] (which job is next, and what follows an attempt).

pub mod acting;
pub mod addressing;
pub mod approving;
pub mod code;
pub mod command;
pub mod counted;
pub mod coverage;
pub mod decode;
pub mod delegating;
pub mod eliciting;
pub mod file;
pub mod folding;
pub mod given;
pub mod history;
pub mod hooking;
pub mod ids;
pub mod intent;
pub mod job;
pub mod judging;
pub mod knowledge;
pub mod linking;
pub mod manners;
pub mod model_rest;
mod naming;
pub mod options;
pub mod outbox;
pub mod pairing;
pub mod place;
pub mod presence;
pub mod price;
pub mod probing;
pub mod prompting;
pub mod questioning;
pub mod queueing;
pub mod remembering;
pub mod routing;
pub mod run;
pub mod run_event;
pub mod running;
pub mod scheduling;
pub mod search;
pub mod sending;
pub mod sent;
pub mod skills;
pub mod slots;
pub mod summary;
pub mod timing;
pub mod title;
pub mod tokens;
pub mod tool_call;
pub mod turn;
pub mod vector;
pub mod wall_clock;
pub mod words;
