//! What goes into and comes out of the store. Nothing here names SQL, a row or a transaction.

mod approvals;
mod capacity;
mod capture;
mod conversation_stats;
mod delegations;
mod exports;
mod extraction;
mod feedback;
mod imports;
mod jobs;
mod knowledge;
mod mcp_tools;
mod memories;
mod networks;
mod pairing;
mod questions;
mod reach;
mod reading;
mod replies;
mod requests;
mod run_story;
mod runs;
mod schedules;
mod skills;
mod spending;
mod status;
mod tellings;
mod titles;

pub use approvals::{
    ApprovalCount, ApprovalFacts, ApprovalFilter, AskOutcome, ConsentSought, FormJudge,
    NewApproval, NewPress, OperatorDecided, OperatorDecision, OutcomeMaker, Parked, PressAnswer,
    PressJudge, Pressed, PressedButton, PressedCard, SentForm,
};
pub use capacity::{Capacity, TableSpace};
pub use capture::{
    AccountBinding, Captured, CapturedTurn, Deleted, JudgedMessage, NewMessage, NonMessage,
    OwnPost, RawStub, RunChanges,
};
pub use conversation_stats::{AnswerTimes, ConversationStats};
pub use delegations::{NewTask, TaskGiven};
pub use exports::{ExportPage, ExportQuery, ExportTurn};
pub use extraction::{
    DueConversation, Extracted, Extraction, ExtractionDone, ReadMark, UnreadQuery, UnreadTurn,
    UnreadTurns,
};
pub use feedback::ThumbCounts;
pub use imports::{ImportAccount, ImportBatch, ImportCounts, ImportMessage, ImportProgress};
pub use jobs::{JobClaim, JobCount, JobRow, JobsDue};
pub use knowledge::{
    CollectionReading, CollectionStatus, KnowledgeHit, KnowledgeHits, KnowledgeQuery,
    KnownDocument, ListedDocument, OpenCollection, ReadDocument,
};
pub use mcp_tools::PinnedTool;
pub use memories::{
    IsServed, MemoryAbout, MemoryDone, MemoryFilter, MemoryQuery, MemoryWrite, MemoryWritten,
    NewMemory, OperatorChange, OperatorChanged,
};
pub use networks::{AskedInRun, KeptValues, ValuesToKeep};
pub use pairing::{LetIn, Pairing, SaidCode};
pub use questions::{
    Askable, GoneOn, NewQuestion, OperatorAnswer, OptionAnswer, OptionFacts, OptionJudge,
    PressedOption, QuestionAsked,
};
pub use reach::{AccountReach, ChatReach, HistoryGap};
pub(crate) use reading::TAIL_MAX;
pub use reading::{
    ConversationFilter, ConversationOverview, ConversationPage, MessagePlace, Neighbour, PageQuery,
    RepliedTo, SearchEffort, SearchFilter, SearchHit, SearchHits, SearchMode, SearchQuery, Speaker,
    Speakers, TurnDetail, TurnFilter,
};
pub use replies::{
    CommittedReply, NewPlaceholder, Placed, Placeholder, ReplyCommit, ReplyRoute, SaidBefore,
};
pub use requests::{AskedRun, CapturedRequest, Forking, NewRequest, Sha256Digest};
pub use run_story::{RunStory, StoryCall, StoryLine, StoryStep};
pub use runs::{
    CallBegun, CallFile, CallToBegin, CallToFinish, ClaimRequest, DeadFilter, EventScope,
    LeaseOutcome, NarrowedCall, NewRunEvent, NewToolCall, QueuedRun, RecordedStep, RunEnding,
    RunLease, StepOutcome, StoredCallFile, ToolTurn, WaitingFor,
};
pub use schedules::{
    DueSchedules, Fired, NewFiring, OperatorSchedule, PlanOfCall, Planned, Reminder,
    ScheduleChange, ScheduleFilter,
};
pub use skills::SkillApproval;
pub use spending::{ModelCall, Purpose, Spending, SpentToday};
pub use status::{
    AccountStatus, EmbeddingStatus, Expired, FileCounts, StoreStatus, StoreWork, ToolCounts,
};
pub use tellings::{Telling, TellingHook};
pub use titles::{MadeTitle, ReadTurn, TitleSource};
