//! What `vocative schedules` takes.

use clap::{Args, Subcommand};

use super::TableFormat;

/// `vocative schedules`.
#[derive(Debug, Subcommand)]
pub enum SchedulesCommand {
    /// List what is planned, by number.
    List {
        /// What is over, too.
        #[arg(long)]
        all: bool,
        /// How the list looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Show all of one, with what became of its newest times.
    Show {
        /// Its number, from the list.
        id: i64,
        /// How it looks.
        #[arg(long, value_name = "FORMAT", default_value = "table")]
        format: TableFormat,
    },
    /// Have one not start until it is resumed.
    Pause {
        /// Its number, from the list.
        id: i64,
    },
    /// Let a paused one go on with its next time.
    Resume {
        /// Its number, from the list.
        id: i64,
    },
    /// Have one start now, besides its times.
    Run {
        /// Its number, from the list.
        id: i64,
    },
    /// End one.
    Cancel {
        /// Its number, from the list.
        id: i64,
    },
    /// Plan something in a conversation; it is yours, who run the daemon.
    Add(AddScheduleArgs),
}

/// `vocative schedules add`.
#[derive(Debug, Args)]
pub struct AddScheduleArgs {
    /// The conversation: acme/#general, or its id.
    pub conversation: String,
    /// When: "in 2h", "tomorrow 9:00", "2026-12-01 9:00", "weekdays 9:00", "cron 0 9 * * 1-5".
    pub when: String,
    /// What is to be done or said.
    pub task: String,
    /// Who does it; not given: the task is posted as it is, without a model.
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Whose clocks: Europe/Berlin, UTC, +01:00.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub zone: String,
    /// What becomes of what was missed while the daemon was down: once, skip.
    #[arg(long, value_name = "RULE", default_value = "once")]
    pub missed: String,
    /// Put it off by up to this number of seconds (60 at most), always by the same, so that not all is due at once.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub jitter_s: u32,
}
