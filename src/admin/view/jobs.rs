//! Background work.

use serde::{Deserialize, Serialize};

use vocative_store::contract::{JobCount, JobRow};

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobView {
    /// Its id.
    pub id: i64,
    /// Its kind.
    pub kind: String,
    /// What it is about: an id.
    pub key: String,
    /// The channel it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// How it stands: `pending`, `leased`, `waiting`, `dead`, `quarantined`.
    pub state: String,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// The earliest time at which it is run, in milliseconds since the Unix epoch.
    pub not_before_ms: i64,
    /// Attempts that count.
    pub attempts: u32,
    /// Why it was not done the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// When it was asked for, in milliseconds since the Unix epoch.
    pub asked_at_ms: i64,
}

impl JobView {
    /// The view of a job that belongs to a channel.
    #[must_use]
    pub fn of(row: JobRow, channel: Option<String>) -> Self {
        Self {
            id: row.id.0,
            kind: row.kind,
            key: row.key,
            channel,
            state: row.state.name().to_owned(),
            waits_for: row.waits_for,
            not_before_ms: row.not_before_ms,
            attempts: row.attempts,
            cause: row.cause,
            asked_at_ms: row.asked_at_ms,
        }
    }
}

/// How many jobs of a kind are in a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCountView {
    /// The kind.
    pub kind: String,
    /// How they stand, as in [`JobView`].
    pub state: String,
    /// How many.
    pub count: u64,
}

impl From<&JobCount> for JobCountView {
    fn from(count: &JobCount) -> Self {
        Self {
            kind: count.kind.clone(),
            state: count.state.name().to_owned(),
            count: count.count,
        }
    }
}
