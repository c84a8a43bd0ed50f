//! What any engine has to do behind the store's handles. No statement and nothing of the inside stands here: a second
//! engine is held by this suite once [`scene::open`] opens it.

#![allow(clippy::unwrap_used)]

mod addressing;
mod albums;
mod answering;
mod approving;
mod asked_models;
mod asking;
mod audit;
mod calling;
mod capturing;
mod commands;
mod conversation_stats;
mod delegating;
mod edits;
mod expiring;
mod exports;
mod extraction;
mod feedback;
mod file_copies;
mod files;
mod follow_ups;
mod forgetting;
mod forking;
mod imports;
mod jobs;
mod knowledge;
mod learning;
mod lines;
mod linking;
mod memories;
mod merging;
mod networks;
mod notices;
mod outbox;
mod overlap;
mod overviews;
mod pages;
mod pairing;
mod placeholders;
mod posts;
mod probing;
mod reach;
mod reanswer;
mod requests;
mod run_events;
mod runs;
mod said;
mod scene;
mod schedules;
mod searching;
mod summaries;
mod titles;
mod tools;
mod vectors;
mod world;

use vocative_store::contract as api;
