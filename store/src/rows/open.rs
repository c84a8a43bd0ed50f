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
