//! What any engine has to do behind the store's handles. No statement and nothing of the inside stands here: a second
//! engine is held by this suite once [`scene::open`] opens it.

#![allow(clippy::unwrap_used)]

mod albums;
mod answering;
mod capturing;
mod edits;
mod outbox;
mod runs;
mod said;
mod scene;

use vocative_store::contract as api;
