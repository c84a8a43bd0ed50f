//! What is open: the runs that are not at their end, and the posts that are not out yet. Each in one place, as text
//! of SQL, so that every statement means the same and finds the index of what is open.

/// A condition on a run: it is queued, worked on, or waits.
macro_rules! open_run {
    () => {
        "state IN ('queued', 'leased', 'waiting')"
    };
    ($runs:literal) => {
        concat!($runs, ".", $crate::rows::open::open_run!())
    };
}
pub(crate) use open_run;

/// How far ahead of now a row's time may lie, in milliseconds: captures ask a platform's clock, and claims ask that
/// of all. A row farther ahead was written under another clock.
macro_rules! ahead_ms {
    () => {
        "60000"
    };
}
pub(crate) use ahead_ms;

/// The longest that a run is put off, in milliseconds. A run that would wait longer was put off under a wrong
/// clock, and is due.
pub(crate) const WAIT_MAX_MS: i64 = 86_400_000;

/// A condition on an open run: it was never begun and is due so much later than it was queued that it keeps no place
/// in its conversation. Takes the statement's parameters for now, [`PLACE_KEPT_MS_MAX`] and [`WAIT_MAX_MS`]; what
/// waits longer than that, or was queued in the future, was written under another clock and is due.
///
/// [`PLACE_KEPT_MS_MAX`]: vocative_core::slots::PLACE_KEPT_MS_MAX
macro_rules! later_run {
    ($runs:literal, $now:literal, $kept:literal, $wait_max:literal) => {
        concat!(
            "(",
            $runs,
            ".state = 'queued' AND ",
            $runs,
            ".as_of_seq IS NULL AND ",
            $runs,
            ".put_off_at_ms IS NULL AND ",
            $runs,
            ".not_before_ms BETWEEN ",
            $now,
            " + 1 AND ",
            $now,
            " + ",
            $wait_max,
            " AND ",
            $runs,
            ".created_at_ms <= ",
            $now,
            " + ",
            $crate::rows::open::ahead_ms!(),
            " AND ",
            $runs,
            ".not_before_ms - ",
            $runs,
            ".created_at_ms > ",
            $kept,
            ")"
        )
    };
}
pub(crate) use later_run;

/// A condition on a post: it is to be sent, being sent, or to be looked for.
macro_rules! open_post {
    () => {
        "state IN ('pending', 'leased', 'unknown')"
    };
    ($posts:literal) => {
        concat!($posts, ".", $crate::rows::open::open_post!())
    };
}
pub(crate) use open_post;
