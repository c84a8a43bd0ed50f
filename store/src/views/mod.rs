//! What is read: history, search, status, queues, export.

pub(crate) mod capacity;
pub(crate) mod conversation_stats;
pub(crate) mod export;
pub(crate) mod foldable;
pub(crate) mod history;
pub(crate) mod knowledge;
pub(crate) mod mentionable;
pub(crate) mod nearest;
pub(crate) mod overview;
pub(crate) mod pages;
pub(crate) mod queue;
pub(crate) mod run_events;
pub(crate) mod run_story;
pub(crate) mod search;
pub(crate) mod status;
