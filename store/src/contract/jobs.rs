//! Jobs: looked for, claimed, shown and counted.

use vocative_core::ids::{AccountId, JobId, OwnerId};
use vocative_core::job::{JobKind, JobState};
use vocative_core::queueing::Shares;

/// A claim on jobs that are due.
#[derive(Clone, Debug)]
pub struct JobClaim {
    /// Who claims.
    pub owner: OwnerId,
    /// How long the leases last, in milliseconds.
    pub lease_ms: i64,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// The accounts whose channels are connected.
    pub accounts: Vec<AccountId>,
    /// Jobs of each kind that may be at work at once.
    pub slots: Vec<(JobKind, usize)>,
    /// How the slots are shared between accounts.
    pub shares: Shares,
}

/// Whether there is a job to claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobsDue {
    /// There is.
    Now,
    /// The next job may be claimed at this time, in milliseconds since the Unix epoch.
    At(i64),
    /// No job waits for a time.
    None,
}

/// A job as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRow {
    /// Its id.
    pub id: JobId,
    /// Its kind's name, which this build may not know.
    pub kind: String,
    /// What it is about.
    pub key: String,
    /// For which account; `None` = for the daemon itself.
    pub account: Option<AccountId>,
    /// How it stands.
    pub state: JobState,
    /// What it waits for.
    pub waits_for: Option<String>,
    /// Not before, in milliseconds since the Unix epoch.
    pub not_before_ms: i64,
    /// Attempts that count.
    pub attempts: u32,
    /// Why the last attempt did not do it.
    pub cause: Option<String>,
    /// When it was asked for, in milliseconds since the Unix epoch.
    pub asked_at_ms: i64,
}

/// How many jobs of a kind are in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobCount {
    /// The kind's name.
    pub kind: String,
    /// Their state.
    pub state: JobState,
    /// How many.
    pub count: u64,
}
