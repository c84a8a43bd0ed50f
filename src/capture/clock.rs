//! The clock that the rooms are given: a test or a simulation gives another one.

use std::sync::Arc;

/// Tells the time, in milliseconds since the Unix epoch.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;
