//! The whole daemon as a separate process against the loopback platforms: what people see, what is
//! stored, what the model is asked, and what survives. Reading order: `harness`, then by subject.
#![allow(clippy::unwrap_used)]

mod a_closed_chat;
mod a_guest;
mod a_neighbour;
mod a_stranger;
mod addressing;
mod agent_options;
mod answers;
mod approvals;
mod approvals_listed;
mod asked_networks;
mod asking;
mod backups;
mod bad_input;
mod catchup;
mod changed_calls;
mod client;
mod commands;
#[cfg(target_os = "linux")]
mod confined;
mod console;
mod console_browser;
mod conversations;
mod corners;
mod damage;
mod databases;
mod delegating;
mod edited;
mod embeddings;
mod erased_everywhere;
mod erasure;
mod events;
mod fallbacks;
mod faults;
mod feedback;
mod file_archive;
mod files;
mod first_start;
#[cfg(target_os = "linux")]
mod flood;
mod harness;
mod help_desk;
mod hooks;
mod imports;
mod knowledge;
mod learning;
mod live;
mod look;
mod manners;
mod mcp;
mod mentions;
mod names;
mod networks;
mod on_call;
mod order;
mod outage;
mod overlap;
mod pacing;
mod places;
mod presses;
mod programs;
mod questions;
mod queue;
mod recalled;
mod remembered;
mod restart;
mod schedules;
mod second_thoughts;
mod sent;
#[cfg(target_os = "linux")]
#[path = "../storage/shim.rs"]
mod shim;
mod skills;
mod slack_streams;
mod spending;
mod storage;
mod streaming;
mod supervision;
mod tools;
mod two_apps;
mod untrusted;
mod uploads;
mod webhooks;
mod words;
mod work;
