//! What operators are shown, as JSON. The names here are an interface: additions only.

mod agents;
mod approvals;
mod capacity;
mod console;
mod conversations;
mod costs;
mod erasure;
mod exports;
mod jobs;
mod knowledge;
mod mcp;
mod memories;
mod pairing;
mod prompt;
mod questions;
mod run_story;
mod runs;
mod schedules;
mod search;
mod skills;
mod states;
mod status;
mod summaries;
mod tools;

pub use agents::{AgentView, ModelRestView, ReleasedModelView, RetriedView, ThumbsView};
pub use approvals::{ApprovalCountView, ApprovalView, GrantView};
pub use capacity::{CapacityView, TableSpaceView};
pub use console::{AuditView, ConsoleLinkView};
pub use conversations::{
    ConversationDetailView, ConversationStatsView, ConversationView, EntryView, HappeningView,
    ParticipantView, ParticipantsView, SourceView, TurnView, timeline,
};
pub use costs::{CostView, CostsBy};
pub use erasure::{ErasePlanView, EraseView, VerificationView};
pub use exports::{ExportMessageView, ExportPageView, ReplyView};
pub use jobs::{JobCountView, JobView};
pub use knowledge::{CollectionView, DocumentView, KnowledgeHitView, KnowledgeView};
pub use mcp::{McpHealthView, McpToolView};
pub use memories::RememberedView;
pub use memories::{MemoryPersonView, MemoryView};
pub use pairing::PairingView;
pub use prompt::{AsSentView, MessageCostView, OmittedView, PromptMessageView, PromptView};
pub use questions::QuestionView;
pub use run_story::{
    AgentCallView, DecisionView, RunStoryView, StoryCallView, StoryLineView, StoryStepView,
    TaskView,
};
pub use runs::{
    DeadView, HeldRunView, PostView, QuarantinedView, QueuedRunView, ReleasedView, RunView,
};
pub use schedules::{FiringView, ScheduleView};
pub use search::{BesideView, HitView, SearchFilterView, SearchView};
pub use skills::{
    SkillCountsView, SkillFileView, SkillTextView, SkillView, SkillsView, WaitingSkillView,
};
pub use states::{NetworkStateView, NetworkValueView};
pub use status::{
    AliveView, ChannelView, EmbeddingsView, FileCountsView, HistogramView, HookCountView,
    IntakeCounts, ListenerView, MemoryCountsView, PostCounts, RunCounts, StatusView, StoreView,
    StoreWorkView, SummaryCountsView, TimingView, TokenRatioView,
};
pub use summaries::{RebuildView, SummariesView, SummaryView};
pub use tools::ToolCountsView;
