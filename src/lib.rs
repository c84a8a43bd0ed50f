//! Vocative: a self-hosted daemon that joins Slack workspaces and Telegram chats as a bot.
//!
//! This crate is the daemon. The words and decisions are in `vocative-core`, the database in `vocative-store`,
//! the platforms in `vocative-channels`.
//!
//! The modules have an order, in which a module uses only those before it: `tests/architecture.rs` lists and checks it.
//! `docs/ARCHITECTURE.md` walks one message through them.

pub mod admin;
pub mod agent;
pub mod capture;
pub mod catchup;
pub mod cli;
pub mod config;
pub mod confining;
pub mod counters;
pub mod daemon;
pub mod delivery;
pub mod embeddings;
pub mod files;
pub mod hooks;
pub mod http;
pub mod jobs;
pub mod knowledge;
pub mod learning;
pub mod llm;
pub mod retention;
pub mod skills;
pub mod summary;
pub mod tools;
pub mod transcripts;
