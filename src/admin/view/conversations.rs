//! Conversations, who speaks in them and what was said.

use serde::{Deserialize, Serialize};

use super::ThumbsView;
use super::runs::{PostView, RunView};
use super::summaries::SummaryView;
use vocative_core::place::Conversation;
use vocative_core::turn::Turn;
use vocative_store::contract::{
    ConversationOverview, ConversationPage, ConversationStats, Speaker, Speakers, TurnDetail,
};

/// A conversation in a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConversationView {
    /// Its id.
    pub id: String,
    /// The name it can be asked by, like `acme/#general`.
    pub name: String,
    /// `channel`, `thread` or `dm`.
    pub scope: String,
    /// What to call it: what a person called it, a topic's name, the chat's title, its first words.
    pub title: String,
    /// Whether a person called it so.
    #[serde(default)]
    pub has_own_title: bool,
    /// Where it comes from.
    #[serde(default)]
    pub source: SourceView,
    /// The chat's platform id.
    pub chat: String,
    /// Slack thread root or Telegram topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_or_topic: Option<String>,
    /// The conversation a thread hangs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Whether it is a fork: it continues its parent from one of the parent's turns.
    #[serde(default)]
    pub is_fork: bool,
    /// The turn of the parent that it started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Turns.
    pub turns: u64,
    /// The newest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seq: Option<i64>,
    /// The newest turn that the person of a program's conversation has read, where the program said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_read_seq: Option<i64>,
    /// When something last happened.
    pub last_activity_ms: i64,
    /// The run that is at work in it, or is next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_run: Option<RunView>,
    /// Since when it is archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at_ms: Option<i64>,
}

impl ConversationView {
    /// Its place in the list of conversations: the cursor of the next page.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}.{}", self.last_activity_ms, self.id)
    }

    /// Whether only its few members can read it.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        let kind = self.source.kind.as_deref();
        self.scope == "dm" || matches!(kind, Some("direct" | "group_direct"))
    }
}

/// Where a conversation comes from.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SourceView {
    /// The configured channel.
    pub channel: String,
    /// The platform.
    pub platform: String,
    /// The chat's title, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_title: Option<String>,
    /// `direct`, `group_direct`, `private`, `public`, `broadcast`; absent until learnt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// Who takes part in a conversation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ParticipantsView {
    /// Those who say most.
    pub shown: Vec<ParticipantView>,
    /// How many more there are.
    pub more: u64,
}

/// Somebody who takes part in a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ParticipantView {
    /// The name.
    pub name: String,
    /// The platform id; an agent's name.
    pub id: String,
    /// `user`, `agent`, `system`.
    pub kind: String,
    /// How many turns are theirs.
    pub turns: u64,
}

impl ParticipantsView {
    /// The view of those who speak in a conversation.
    #[must_use]
    pub fn of(speakers: &Speakers) -> Self {
        let view = |speaker: &Speaker| ParticipantView {
            name: speaker.participant.shown_name().to_owned(),
            id: speaker.participant.platform_id.clone(),
            kind: speaker.participant.kind.name().to_owned(),
            turns: speaker.turns,
        };
        Self {
            shown: speakers.shown.iter().map(view).collect(),
            more: speakers.total.saturating_sub(speakers.shown.len() as u64),
        }
    }
}

impl ConversationView {
    /// The view of a conversation.
    #[must_use]
    pub fn of(conversation: &Conversation, overview: &ConversationOverview) -> Self {
        let mut name = format!("{}/{}", overview.channel, conversation.title);
        if let Some(thread) = conversation
            .key
            .thread_or_topic
            .as_deref()
            .filter(|_| !conversation.is_topic)
        {
            name = format!("{name}/{thread}");
        }
        Self {
            id: conversation.id.to_string(),
            name,
            scope: conversation.scope.name().to_owned(),
            title: overview.title.clone(),
            has_own_title: overview.own_title.is_some(),
            source: SourceView {
                channel: overview.channel.clone(),
                platform: overview.platform.name().to_owned(),
                chat_title: overview.chat_title.clone(),
                kind: overview.chat_kind.map(str::to_owned),
            },
            chat: conversation.platform_chat.clone(),
            thread_or_topic: conversation.key.thread_or_topic.clone(),
            parent: conversation.parent.map(|id| id.to_string()),
            is_fork: conversation.is_fork,
            root: conversation.root.map(|id| id.to_string()),
            turns: conversation.turns,
            last_seq: conversation.last_seq.map(|seq| seq.0),
            last_read_seq: overview.last_read.map(|seq| seq.0),
            last_activity_ms: conversation.last_activity_ms,
            active_run: overview.active_run.as_ref().map(RunView::of),
            archived_at_ms: overview.archived_at_ms,
        }
    }
}

/// A conversation with its newest turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConversationDetailView {
    /// The conversation.
    pub conversation: ConversationView,
    /// Who takes part.
    #[serde(default)]
    pub participants: ParticipantsView,
    /// For a thread: its root message, which is a turn of another conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<TurnView>,
    /// Its turns, in the room's order.
    pub turns: Vec<TurnView>,
    /// In the timeline: everything that happened, in one order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<EntryView>,
    /// The page before this one ends before the turn with this seq; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_before: Option<i64>,
}

/// Figures of a conversation and its threads since a time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConversationStatsView {
    /// The conversation.
    pub conversation: ConversationView,
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// Messages of people, and of bots that are not ours.
    pub messages_of_people: u64,
    /// How many people and bots sent them.
    pub speakers: u64,
    /// Messages of agents.
    pub messages_of_agents: u64,
    /// Runs that were made for questions.
    pub runs: u64,
    /// Runs that answered.
    pub runs_answered: u64,
    /// Runs that were given up.
    pub runs_dead: u64,
    /// The median time from a question to its answer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_p50_ms: Option<u64>,
    /// The 95th percentile of that time, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_p95_ms: Option<u64>,
    /// Tokens of prompts whose details are kept.
    pub prompt_tokens: u64,
    /// Tokens of answers whose details are kept.
    pub completion_tokens: u64,
    /// What all runs cost, in millionths of the currency.
    pub cost_micros: u64,
    /// What people think of the answers.
    pub thumbs: ThumbsView,
    /// Whether only the newest 200,000 messages or runs were counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

impl ConversationStatsView {
    /// The view of figures.
    #[must_use]
    pub fn of(conversation: ConversationView, since_ms: i64, stats: ConversationStats) -> Self {
        Self {
            conversation,
            since_ms,
            messages_of_people: stats.messages_of_people,
            speakers: stats.speakers,
            messages_of_agents: stats.messages_of_agents,
            runs: stats.runs,
            runs_answered: stats.runs_answered,
            runs_dead: stats.runs_dead,
            answer_p50_ms: stats.answer_times.map(|times| times.p50_ms),
            answer_p95_ms: stats.answer_times.map(|times| times.p95_ms),
            prompt_tokens: stats.prompt_tokens,
            completion_tokens: stats.completion_tokens,
            cost_micros: stats.cost_micros,
            thumbs: ThumbsView::of(stats.thumbs),
            is_cut: stats.is_cut,
        }
    }
}

/// Something that happened in a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EntryView {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// What.
    #[serde(flatten)]
    pub what: HappeningView,
}

/// What happened in a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "entry", content = "of", rename_all = "snake_case")]
pub enum HappeningView {
    /// Something was said, a tool was called or it answered; by the seq of the turn.
    Turn(i64),
    /// A run came to be.
    Run(RunView),
    /// A part of an answer was committed, to be delivered.
    Post(PostView),
    /// Older turns were folded.
    Summary(SummaryView),
}

/// All that happened in a page, in one order: turns in the room's order, a run after what triggered it (or before what
/// came of it), a post after its turn, the rest by time. Some platforms tell times only to the second, so times alone
/// would put a run after its answer.
#[must_use]
pub fn timeline(turns: &[TurnView], page: &ConversationPage) -> Vec<EntryView> {
    let entry = |at_ms, what| EntryView { at_ms, what };
    // The entries before the first turn, then those after each turn.
    let mut behind: Vec<Vec<EntryView>> = vec![Vec::new(); turns.len() + 1];
    let stands_by = |at_ms: i64| move |it: &TurnDetail| it.turn.position.sent_at_ms <= at_ms;
    let by_time = |at_ms: i64| page.turns.partition_point(stands_by(at_ms));
    for run in &page.runs {
        let is_trigger = |detail: &TurnDetail| run.triggers.contains(&detail.turn.id);
        let is_made = |detail: &TurnDetail| detail.turn.run == Some(run.id);
        let place = page
            .turns
            .iter()
            .rposition(is_trigger)
            .map(|trigger| trigger + 1)
            .or_else(|| page.turns.iter().position(is_made))
            .unwrap_or_else(|| by_time(run.created_at_ms));
        let what = HappeningView::Run(RunView::of(run));
        behind[place].push(entry(run.created_at_ms, what));
    }
    for (number, detail) in (1..).zip(&page.turns) {
        behind[number].extend(detail.posts.iter().map(|post| {
            let what = HappeningView::Post(PostView::of(post));
            entry(post.created_at_ms, what)
        }));
    }
    for summary in &page.summaries {
        let what = HappeningView::Summary(SummaryView::of(summary));
        behind[by_time(summary.created_at_ms)].push(entry(summary.created_at_ms, what));
    }
    let mut behind = behind.into_iter();
    let mut entries = behind.next().unwrap_or_default();
    for (turn, happened) in turns.iter().zip(behind) {
        entries.push(entry(turn.sent_at_ms, HappeningView::Turn(turn.seq)));
        entries.extend(happened);
    }
    entries
}

/// A turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnView {
    /// Its id.
    pub id: String,
    /// Capture order.
    pub seq: i64,
    /// When it was said, in milliseconds since the Unix epoch: the platform's time, or the daemon's for the bot's own
    /// turns.
    pub sent_at_ms: i64,
    /// `message`, `notice`, `tool_call`, `tool_result`.
    pub kind: String,
    /// `user`, `agent`, `system`.
    pub speaker_kind: String,
    /// The speaker's name.
    pub speaker: String,
    /// The speaker's platform id.
    pub speaker_id: String,
    /// What was said, mentions as `@name`.
    pub text: String,
    /// The agents it addresses.
    pub addressed_to: Vec<String>,
    /// The turn it replies to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The tool call that it is or answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// 1 at capture, one more with each edit.
    pub revision: u32,
    /// `room`, `timeline`, `hidden`.
    pub visibility: String,
    /// Its platform message ids.
    pub message_ids: Vec<String>,
    /// The runs it triggered.
    pub runs: Vec<RunView>,
    /// The posts it caused.
    pub posts: Vec<PostView>,
}

impl TurnView {
    /// The view of a turn with its runs and posts, and its text as it is shown.
    #[must_use]
    pub fn of(detail: &TurnDetail, text: String) -> Self {
        let turn: &Turn = &detail.turn;
        Self {
            id: turn.id.to_string(),
            seq: turn.seq().0,
            sent_at_ms: turn.said_at_ms,
            kind: turn.kind.name().to_owned(),
            speaker_kind: turn.participant.kind.name().to_owned(),
            speaker: turn.participant.shown_name().to_owned(),
            speaker_id: turn.participant.platform_id.clone(),
            text,
            addressed_to: turn.addressed_to.iter().map(ToString::to_string).collect(),
            reply_to: turn.reply_to.map(|id| id.to_string()),
            call_id: turn.call_id.clone(),
            revision: turn.revision,
            visibility: turn.visibility.name().to_owned(),
            message_ids: detail.message_ids.clone(),
            runs: detail.runs.iter().map(RunView::of).collect(),
            posts: detail.posts.iter().map(PostView::of).collect(),
        }
    }
}
