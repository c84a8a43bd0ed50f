//! What goes into and comes out of the store. Nothing here names SQL, a row or a transaction.

mod capacity;
mod capture;
mod exports;
mod imports;
mod jobs;
mod reach;
mod reading;
mod replies;
mod runs;
mod status;

pub use capacity::{Capacity, TableSpace};
pub use capture::{
    AccountBinding, Captured, CapturedTurn, Deleted, JudgedMessage, NewMessage, NonMessage,
    OwnPost, RawStub, RunChanges,
};
pub use exports::{ExportPage, ExportQuery, ExportTurn};
pub use imports::{ImportAccount, ImportBatch, ImportCounts, ImportMessage, ImportProgress};
pub use jobs::{JobClaim, JobCount, JobRow, JobsDue};
pub use reach::{AccountReach, ChatReach, HistoryGap};
pub use reading::{
    ConversationFilter, ConversationOverview, MessagePlace, Neighbour, Page, PageQuery, RepliedTo,
    SearchEffort, SearchFilter, SearchHit, SearchHits, SearchMode, SearchQuery, Speaker, Speakers,
    TurnDetail, TurnFilter,
};
pub use replies::{CommittedReply, NewPlaceholder, Placed, Placeholder, ReplyCommit, ReplyRoute};
pub use runs::{
    ClaimRequest, DeadFilter, EventScope, LeaseOutcome, NewRunEvent, QueuedRun, RunEnding,
    RunLease, StepOutcome, StepTools, ToolTurn, WaitingFor,
};
pub use status::{AccountStatus, FileCounts, StoreStatus};
