//! Vocative: a self-hosted daemon that joins Slack workspaces and Telegram chats as a bot.
//!
//! The rooms, in layer order (a module uses only those before it): `domain`, `config`, `store`,
//! `capture`, `prompt`, `llm`, `tools`, `delivery`, `files`, `agent`, `admin`, `http`, `daemon`, `cli`.
//! `docs/ARCHITECTURE.md` walks one message through them.

pub mod admin;
pub mod agent;
pub mod capture;
pub mod catchup;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod delivery;
pub mod files;
pub mod http;
pub mod llm;
pub mod summary;
pub mod tools;
pub mod transcript;
