//! What is to start at a time: when it is due, what becomes of what was missed, and the words of it. Pure.
//!
//! A *schedule* says when something is to start; a *firing* is one start, unique by schedule and time. Reading order:
//! `cron` (an expression and its times), `timing` (when a schedule is due), `firing` (what becomes of a due one),
//! `wording` (how people write one), `telling` (what they are told).

mod cron;
mod firing;
mod stored;
mod telling;
mod timing;
mod wording;

pub use cron::{Cron, CronField, CronProblem};
pub use firing::{
    DueFacts, Firing, FiringOutcome, Missed, NextFiring, decide, is_doubtful, renewed,
};
pub use stored::{
    NewSchedule, Owned, ScheduleCounts, ScheduleRefused, ScheduleState, StoredFiring,
    StoredSchedule, may_add,
};
pub use telling::{
    asked_text, changed_text, list_text, made_text, problem_text, refused_text, reminder_text,
    shown_instant, shown_timing,
};
pub use timing::{JITTER_MAX_MS, SHORTEST_MS, Timing, TimingProblem};
pub use wording::{ScheduleOrder, WordingProblem, read_order, read_timing};

#[cfg(test)]
mod tests;
