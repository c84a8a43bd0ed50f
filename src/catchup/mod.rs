//! Catching up: messages sent while the daemon did not listen are read back and captured.
//!
//! Only on platforms with a history half. After every time without a connection each chat is read from where it was
//! last heard; a chat that the bot joined is read backwards. Both go through the same intake as live events, by the
//! same identities, while live events flow. Knows nothing of models, prompts or sending.
//!
//! Reading order: `bounds`, `keeper` (when is to be read; the job that does), `pass` (all chats), `room` (one chat), `asking`
//! (one page), `words` (the timeline's texts about gaps).

mod asking;
pub mod bounds;
pub mod keeper;
mod pass;
mod room;
mod words;

pub use room::ChatReader;
