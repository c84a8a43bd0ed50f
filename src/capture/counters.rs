//! Counters of what came in, for `status` and metrics.

use std::sync::atomic::AtomicU64;

/// Counters of what came in.
#[derive(Debug, Default)]
pub struct CaptureCounters {
    /// New turns.
    pub captured: AtomicU64,
    /// Duplicates.
    pub duplicates: AtomicU64,
    /// Runs queued.
    pub runs_queued: AtomicU64,
    /// Messages outside access.
    pub not_admitted: AtomicU64,
    /// Triggers too old to answer.
    pub too_old: AtomicU64,
    /// Triggers not answered because a limit was met.
    pub limited: AtomicU64,
    /// Events that did not translate.
    pub untranslated: AtomicU64,
    /// Events without room content.
    pub ignored: AtomicU64,
    /// Envelopes that could not be stored; the platform sends them again.
    pub refused: AtomicU64,
}
