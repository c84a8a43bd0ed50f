//! What any engine has to do behind the store's handles. No statement and nothing of the inside stands here: a second
//! engine is held by this suite once [`scene::open`] opens it.

#![allow(clippy::unwrap_used)]

mod albums;
mod answering;
mod audit;
mod capturing;
mod edits;
mod exports;
mod extraction;
mod file_copies;
mod files;
mod jobs;
mod notices;
mod outbox;
mod overlap;
mod overviews;
mod reach;
mod requests;
mod runs;
mod said;
mod scene;
mod schedules;

use vocative_store::contract as api;
