//! Retention: data that is older than its channel keeps it is deleted, a job for each account.
//!
//! Which data, and in which order: the store's `acts/expiry`. While the time is doubtful nothing is deleted, because
//! data that was deleted under a wrong clock can't be recovered.
//!
//! Reading order: `aging` (whether data may go, and how much at once), `expiring` (the job).

pub mod aging;
pub mod expiring;
