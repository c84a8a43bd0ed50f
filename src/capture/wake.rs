//! Wake hints between the rooms of a daemon. Hints only: the committed rows are the truth, and slow polls
//! back them up.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::capture::cancels::Cancels;
use crate::capture::name_hints::NameHints;

/// Wake hints: hints only, the committed rows are the truth and a slow poll backs them up.
#[derive(Clone, Debug, Default)]
pub struct Wake {
    /// A run may have been queued or come free.
    pub runs: Arc<Notify>,
    /// A post may have been committed or come due.
    pub posts: Arc<Notify>,
    /// A post was sent; notifies all who wait for one.
    pub posted: Arc<Notify>,
    /// There may be turns to fold into a summary.
    pub summaries: Arc<Notify>,
    /// A job may have been queued or come free.
    pub jobs: Arc<Notify>,
    /// People and rooms that were heard without a name.
    pub names: NameHints,
    /// Runs that were asked to stop.
    pub cancels: Cancels,
}
