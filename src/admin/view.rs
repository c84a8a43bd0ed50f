//! What operators are shown, as JSON. The names here are an interface: additions only.

use serde::{Deserialize, Serialize};

use crate::admin::health::ListenerReading;
use crate::domain::outbox::{OutboxEntry, OutboxState};
use crate::domain::place::Conversation;
use crate::domain::run::{Run, RunState};
use crate::domain::summary::Summary;
use crate::domain::tokens::RatioStatus;
use crate::domain::turn::Turn;
use crate::prompt::lines::{MessageLine, ThreadLine};
use crate::store::contract::{
    ConversationOverview, ExportTurn, Page, SearchHit, SearchHits, Speaker, Speakers, TurnDetail,
};
use crate::store::erasure::{CarriedOut, ErasureCounts, ErasurePlan};
use crate::store::{MATCHES_MAX, THREADS_MAX};

/// The daemon at a glance.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StatusView {
    /// The version of the program.
    pub version: String,
    /// Since when the daemon runs, in milliseconds since the Unix epoch; absent without a daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<i64>,
    /// Per channel.
    pub channels: Vec<ChannelView>,
    /// Per open listener: what platforms call, and the API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<ListenerView>,
    /// Runs.
    pub runs: RunCounts,
    /// Posts.
    pub posts: PostCounts,
    /// The store.
    pub store: StoreView,
    /// Attached files.
    #[serde(default)]
    pub files: FileCountsView,
    /// Summaries of older turns.
    #[serde(default)]
    pub summaries: SummaryCountsView,
    /// What was learnt about counting tokens, by model.
    #[serde(default)]
    pub token_ratios: Vec<TokenRatioView>,
    /// What came in since the start.
    pub intake: IntakeCounts,
    /// What needs a person, in plain words; not empty = exit code 1.
    pub needs_person: Vec<String>,
}

/// A listener as `status` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerView {
    /// `webhooks` or `api`.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// Connections that are open.
    pub connections: u64,
    /// At most so many.
    pub connections_max: u64,
    /// Of these, event streams that somebody reads.
    pub streams: u64,
    /// Requests since the start that were answered with a refusal (4xx).
    pub refused: u64,
    /// Connections since the start that were closed because they asked for nothing and others waited.
    pub sent_away: u64,
}

impl From<ListenerReading> for ListenerView {
    fn from(reading: ListenerReading) -> Self {
        Self {
            name: reading.name.to_owned(),
            address: reading.address,
            connections: reading.connections,
            connections_max: reading.connections_max,
            streams: reading.streams,
            refused: reading.refused,
            sent_away: reading.sent_away,
        }
    }
}

/// How a model counts tokens, compared with a counter of ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenRatioView {
    /// The model, under its configured name and the provider's.
    pub model: String,
    /// The counter's name and version.
    pub counter: String,
    /// Reported over counted tokens; a counter that estimates is multiplied with it.
    pub ratio: f64,
    /// Reports learnt from.
    pub reports: u64,
    /// Reports too far off to be believed.
    pub ignored: u64,
}

impl From<&RatioStatus> for TokenRatioView {
    fn from(status: &RatioStatus) -> Self {
        Self {
            model: status.key.model.clone(),
            counter: status.key.counter.clone(),
            ratio: status.learnt.ratio.as_number(),
            reports: status.learnt.reports,
            ignored: status.learnt.ignored,
        }
    }
}

/// One channel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ChannelView {
    /// The configured name.
    pub name: String,
    /// The platform, once an account is bound.
    pub platform: Option<String>,
    /// What people call the account.
    pub account: Option<String>,
    /// `connecting`, `connected`, `retrying`, `alarm`; `stopped` without a daemon.
    pub state: String,
    /// Why it is not connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Open connections.
    pub connections: usize,
    /// When anything was last heard.
    pub last_heard_ms: Option<i64>,
    /// When a message was last captured.
    pub last_captured_ms: Option<i64>,
    /// From received to acknowledged, for the last event, in milliseconds.
    pub lag_ms: u64,
    /// Frames or updates that could not be read.
    pub malformed: u64,
    /// Webhook requests that did not come from the platform, or not whole.
    #[serde(default)]
    pub refused: u64,
    /// Webhook requests that were not committed in the time the platform waits; they come again.
    #[serde(default)]
    pub late: u64,
    /// Starts after a failure.
    pub restarts: u64,
    /// How often since the start a connection was there and heard nothing of what was said.
    #[serde(default)]
    pub deaf: u64,
    /// Connections of the same app that are not ours and take a part of the events, as last told.
    #[serde(default)]
    pub other_connections: u64,
    /// Chats that refuse posts for now.
    pub parked_chats: u64,
    /// Tokens used since the start of the UTC day.
    pub tokens_today: u64,
    /// Messages since then may be missing and are being read back; absent if none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_from_ms: Option<i64>,
    /// Chats of which what was said before the bot joined is still to be read.
    #[serde(default)]
    pub backfills: u64,
    /// Chats in which something is missing, as their timeline says.
    #[serde(default)]
    pub history_gaps: u64,
    /// One of them, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_gap: Option<String>,
    /// What was learnt at start and a person should know.
    pub warnings: Vec<String>,
}

/// Counts of runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunCounts {
    /// Waiting to be claimed.
    pub queued: u64,
    /// Being worked on.
    pub leased: u64,
    /// Given up.
    pub dead: u64,
    /// Waiting for a person, after a restore.
    #[serde(default)]
    pub held: u64,
    /// Age of the oldest waiting one, in milliseconds.
    pub oldest_waiting_ms: Option<i64>,
}

/// Counts of posts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PostCounts {
    /// To be sent or being sent.
    pub pending: u64,
    /// Of unknown outcome, being looked for.
    pub unknown: u64,
    /// Waiting for a person.
    pub held: u64,
    /// Never to be sent.
    pub dead: u64,
    /// Age of the oldest waiting one, in milliseconds.
    pub oldest_waiting_ms: Option<i64>,
}

/// The store.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StoreView {
    /// Turns.
    pub turns: u64,
    /// Conversations.
    pub conversations: u64,
    /// Bytes of the database.
    pub bytes: u64,
    /// Events that did not translate and are kept raw.
    pub raw_stubs: u64,
    /// Turns that retention let go so far.
    #[serde(default)]
    pub expired_turns: u64,
    /// Raw events that it let go.
    #[serde(default)]
    pub expired_raw: u64,
    /// Runs whose details it let go.
    #[serde(default)]
    pub expired_runs: u64,
    /// When it last let something go, in milliseconds since the Unix epoch.
    #[serde(default)]
    pub expired_last_ms: Option<i64>,
    /// Erasures that are not finished.
    #[serde(default)]
    pub erasures_open: u64,
}

/// Counts of attached files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FileCountsView {
    /// Contents stored, the same bytes once.
    pub stored: u64,
    /// Their bytes.
    pub bytes: u64,
    /// To be fetched.
    pub waiting: u64,
    /// Voice notes to be written down.
    pub to_be_heard: u64,
    /// Fetched since the start.
    pub fetched: u64,
    /// Only named, since the start: not wanted, too large, refused or gone.
    pub refused: u64,
    /// Given up after many attempts, since the start.
    pub failed: u64,
    /// Voice notes written down since the start.
    pub heard: u64,
    /// Voice notes that never will be, since the start.
    pub unheard: u64,
    /// Why the last one was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reason: Option<String>,
}

/// Counts of summaries.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SummaryCountsView {
    /// In use.
    pub current: u64,
    /// To be made again: a turn was edited or came late.
    pub stale: u64,
    /// Void: a turn was deleted.
    pub void: u64,
    /// Made since the start.
    pub made: u64,
    /// Attempts that failed since the start; the summary before each stands.
    pub failed: u64,
}

/// The summaries of a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SummariesView {
    /// The conversation.
    pub conversation: ConversationView,
    /// By agent, then as the chain grew.
    pub summaries: Vec<SummaryView>,
}

/// One summary.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SummaryView {
    /// Its number.
    pub id: i64,
    /// The agent.
    pub agent: String,
    /// `current`, `stale` or `void`.
    pub state: String,
    /// The number of the one it was made from.
    pub previous: Option<i64>,
    /// When the first turn folded into it was sent, in milliseconds since the Unix epoch.
    pub from_ms: i64,
    /// When the last was.
    pub through_ms: i64,
    /// Turns folded into it, without those of the one before.
    pub turns: u64,
    /// What it costs.
    pub tokens: u64,
    /// Who made it.
    pub model: String,
    /// When, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// What it says; empty once void.
    pub text: String,
}

impl SummaryView {
    /// The view of a stored summary.
    #[must_use]
    pub fn of(summary: &Summary) -> Self {
        Self {
            id: summary.id.0,
            agent: summary.agent.to_string(),
            state: summary.state.name().to_owned(),
            previous: summary.previous.map(|id| id.0),
            from_ms: summary.from.sent_at_ms,
            through_ms: summary.through.sent_at_ms,
            turns: summary.turns,
            tokens: summary.tokens,
            model: summary.model.clone(),
            created_at_ms: summary.created_at_ms,
            text: summary.text.clone(),
        }
    }
}

/// What became of a wish for other summaries.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RebuildView {
    /// Summaries set aside.
    pub set_aside: u64,
    /// Whether a daemon is there to make them again.
    pub has_daemon: bool,
}

/// What erasing would take away.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ErasePlanView {
    /// Who or what it is.
    pub what: String,
    /// Turns that are blanked.
    pub turns: u64,
    /// Conversations they are in.
    pub conversations: u64,
    /// Runs they triggered, whose answers are blanked.
    pub runs: u64,
}

impl ErasePlanView {
    /// The view of a plan.
    #[must_use]
    pub fn of(plan: &ErasurePlan) -> Self {
        Self {
            what: plan.label.clone(),
            turns: plan.turns,
            conversations: plan.conversations,
            runs: plan.runs,
        }
    }
}

/// What an erasure did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EraseView {
    /// Who or what it was.
    pub what: String,
    /// Turns blanked.
    pub turns: u64,
    /// Answers, notices and tool results made from them, blanked.
    pub answers: u64,
    /// Messages of others that repeated them, cut.
    pub repeats: u64,
    /// Other rows cleared: revisions, quotes, steps, posts, summaries, raw events.
    pub details: u64,
    /// Copies from before a migration that were removed.
    pub removed_copies: Vec<String>,
    /// The search of the files, if it was asked for.
    pub verification: Option<VerificationView>,
}

/// What a search of the files for erased texts found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VerificationView {
    /// Texts looked for.
    pub texts: u64,
    /// Files searched.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that hold one, and how many.
    pub hits: Vec<(String, u64)>,
}

impl EraseView {
    /// The view of what was done.
    #[must_use]
    pub fn of(what: &str, done: &CarriedOut, counts: ErasureCounts) -> Self {
        let shown = |path: &std::path::PathBuf| path.display().to_string();
        let verification = done.verification.as_ref().map(|found| VerificationView {
            texts: found.texts,
            files: found.files,
            bytes: found.bytes,
            hits: found
                .hits
                .iter()
                .map(|hit| (shown(&hit.path), hit.count))
                .collect(),
        });
        Self {
            what: what.to_owned(),
            turns: counts.turns,
            answers: counts.answers,
            repeats: counts.repeats,
            details: counts.details,
            removed_copies: done.removed_copies.iter().map(shown).collect(),
            verification,
        }
    }
}

/// What came in since the start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IntakeCounts {
    /// New turns.
    pub captured: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Runs queued.
    pub runs_queued: u64,
    /// Messages outside access.
    pub not_admitted: u64,
    /// Triggers too old to answer.
    pub too_old: u64,
    /// Triggers not answered because a limit was met.
    pub limited: u64,
    /// Events that did not translate.
    pub untranslated: u64,
    /// Events without room content.
    pub ignored: u64,
    /// Envelopes that could not be stored.
    pub refused: u64,
}

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
    /// Turns.
    pub turns: u64,
    /// When something last happened.
    pub last_activity_ms: i64,
    /// The run at work in it, or next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_run: Option<RunView>,
    /// Since when it is archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at_ms: Option<i64>,
}

impl ConversationView {
    /// Its place in the list of conversations; what follows is asked for with it.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}.{}", self.last_activity_ms, self.id)
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
            turns: conversation.turns,
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
    /// Its turns, in the room's order.
    pub turns: Vec<TurnView>,
    /// In the timeline: everything that happened, in one order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<EntryView>,
    /// The page before this one ends before the turn with this seq; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_before: Option<i64>,
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

/// All that happened in a page, in one order: the turns as the room has them; a run after what
/// triggered it (or before what came of it), a post after its turn, all else by time. Platforms tell
/// times as coarse as a second, so instants alone would put a run after its answer.
#[must_use]
pub fn timeline(turns: &[TurnView], page: &Page) -> Vec<EntryView> {
    let entry = |at_ms, what| EntryView { at_ms, what };
    // What stands before the first turn, then what stands behind each.
    let mut behind: Vec<Vec<EntryView>> = vec![Vec::new(); turns.len() + 1];
    let by_time = |at_ms: i64| turns.partition_point(|turn| turn.sent_at_ms <= at_ms);
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
    /// Platform time, in milliseconds since the Unix epoch.
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
            sent_at_ms: turn.position.sent_at_ms,
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

/// A page of a whole conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportPageView {
    /// The conversation.
    pub conversation: ConversationView,
    /// On the first page, for people: who takes part.
    pub participants: ParticipantsView,
    /// Its messages, in the room's order.
    pub messages: Vec<ExportMessageView>,
    /// Nothing captured after this is on any page.
    pub as_of: i64,
    /// What to ask the next page with; absent on the last.
    pub next: Option<[i64; 3]>,
}

/// A message of an export.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportMessageView {
    /// As it is written for programs.
    pub line: MessageLine,
    /// Platform time, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
    /// For people: what was said, mentions as names.
    pub text: String,
    /// For people: the passage it quotes.
    pub quote: Option<String>,
    /// For people: what it replies to.
    pub reply: Option<ReplyView>,
}

/// What a message replies to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplyView {
    /// Who said it.
    pub speaker: String,
    /// How it begins.
    pub text: String,
}

impl ExportMessageView {
    /// The view of an exported turn in a thread or not.
    #[must_use]
    pub fn of(exported: &ExportTurn, thread: Option<&ThreadLine>, is_shown: bool) -> Self {
        let reply = exported.replied_to.as_ref().map(|reply| ReplyView {
            speaker: reply.speaker.clone(),
            text: reply.text.clone(),
        });
        let text = if is_shown {
            exported.text.clone()
        } else {
            String::new()
        };
        Self {
            line: MessageLine::of(exported, thread),
            sent_at_ms: exported.turn.position.sent_at_ms,
            text,
            quote: exported.quote.clone().filter(|_| is_shown),
            reply: reply.filter(|_| is_shown),
        }
    }
}

/// What a search found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchView {
    /// The conversation's name.
    pub conversation: String,
    /// The hits, the best first.
    pub hits: Vec<HitView>,
    /// Turns that match, as far as they were looked at.
    pub matches: usize,
    /// Whether there are more matches, older than those looked at.
    pub is_bounded: bool,
    /// Bounds that were met, in plain words.
    pub notes: Vec<String>,
}

/// A turn that was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HitView {
    /// The turn's id.
    pub id: String,
    /// Its conversation's id.
    pub conversation: String,
    /// Its capture order.
    pub seq: i64,
    /// Platform time, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
    /// The speaker's name.
    pub speaker: String,
    /// What was said, around the match.
    pub text: String,
}

impl SearchView {
    /// The view of what was found in the conversation of that name.
    #[must_use]
    pub fn of(found: &SearchHits, conversation: String) -> Self {
        let hit = |hit: &SearchHit| HitView {
            id: hit.turn.id.to_string(),
            conversation: hit.turn.conversation.to_string(),
            seq: hit.turn.seq().0,
            sent_at_ms: hit.turn.position.sent_at_ms,
            speaker: hit.turn.participant.shown_name().to_owned(),
            text: hit.text.clone(),
        };
        let mut notes = Vec::new();
        if found.is_bounded {
            notes.push(format!(
                "Only the newest {MATCHES_MAX} matches were looked at; add words to find older ones."
            ));
        }
        if found.is_query_cut {
            notes.push("The query was too long; only its beginning was looked for.".to_owned());
        }
        if found.has_more_threads {
            notes.push(format!(
                "Only the newest {THREADS_MAX} threads were searched."
            ));
        }
        Self {
            conversation,
            hits: found.hits.iter().map(hit).collect(),
            matches: found.matches,
            is_bounded: found.is_bounded,
            notes,
        }
    }
}

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunView {
    /// Its id.
    pub id: String,
    /// Its agent.
    pub agent: String,
    /// Where it stands.
    pub state: String,
    /// Why it was given up or is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Attempts so far.
    pub attempt: u32,
    /// Tokens of its prompts.
    pub prompt_tokens: u64,
    /// Tokens of its answers.
    pub completion_tokens: u64,
}

impl RunView {
    /// The view of a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let reason = match &run.state {
            RunState::Dead { reason } | RunState::Held { reason } => Some(reason.clone()),
            _ => None,
        };
        Self {
            id: run.id.to_string(),
            agent: run.agent.to_string(),
            state: run.state.name().to_owned(),
            reason,
            attempt: run.attempt,
            prompt_tokens: run.usage.prompt_tokens,
            completion_tokens: run.usage.completion_tokens,
        }
    }
}

/// A run that waits for a person.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeldRunView {
    /// The run.
    pub run: RunView,
    /// The name of its conversation.
    pub conversation: String,
    /// What it was to answer; empty once deleted.
    pub text: String,
}

/// A run that waits for its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QueuedRunView {
    /// The run.
    pub run: RunView,
    /// The name of its conversation.
    pub conversation: String,
    /// Who asked first.
    pub person: Option<String>,
    /// What it is to answer, oldest first.
    pub texts: Vec<String>,
    /// How long ago it came to be.
    pub age_ms: i64,
    /// What it waits for, in words.
    pub why: String,
}

/// What was given up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeadView {
    /// Questions.
    pub runs: Vec<HeldRunView>,
    /// Posts.
    pub posts: Vec<PostView>,
}

/// What was decided about.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ReleasedView {
    /// Whether it is a run; else a post.
    pub is_run: bool,
}

/// A post.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PostView {
    /// Its id.
    pub id: String,
    /// Where it stands.
    pub state: String,
    /// Why it is held or dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The platform's message id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The chat it goes to.
    pub chat: String,
    /// Which part of the answer, from 0.
    pub part: u32,
    /// Attempts so far.
    pub attempts: u32,
    /// Its text, as the platform takes it.
    pub text: String,
}

impl PostView {
    /// The view of a post.
    #[must_use]
    pub fn of(entry: &OutboxEntry) -> Self {
        let (reason, message_id) = match &entry.state {
            OutboxState::Held { reason } | OutboxState::Dead { reason } => {
                (Some(reason.clone()), None)
            }
            OutboxState::Sent { message_id } => (None, Some(message_id.clone())),
            _ => (None, None),
        };
        Self {
            id: entry.id.to_string(),
            state: entry.state.name().to_owned(),
            reason,
            message_id,
            chat: entry.target.chat.clone(),
            part: entry.part_number,
            attempts: entry.attempts,
            text: entry.part.text.clone(),
        }
    }
}

/// A prompt as the model would be sent it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PromptView {
    /// The conversation's name.
    pub conversation: String,
    /// The agent.
    pub agent: String,
    /// The newest message to the agent, by its capture order, if the agent has spoken since.
    #[serde(default)]
    pub answered_seq: Option<i64>,
    /// The messages.
    pub messages: Vec<PromptMessageView>,
    /// Tokens of summary, history and trigger.
    pub tokens: usize,
    /// Tokens of the instructions.
    pub instruction_tokens: usize,
    /// Tokens that summary, history and trigger may have together, in this chat and this model.
    #[serde(default)]
    pub token_budget: usize,
    /// Tokens of the budget that are left.
    #[serde(default)]
    pub tokens_left: usize,
    /// Whether the chat has prompt options of its own.
    #[serde(default)]
    pub has_chat_options: bool,
    /// What each message is there for and costs.
    #[serde(default)]
    pub costs: Vec<MessageCostView>,
    /// Tokens that each message costs besides its text; in all costs above.
    #[serde(default)]
    pub overhead_per_message: usize,
    /// Turns read.
    pub turns_loaded: usize,
    /// Turns in the prompt, whole or cut.
    #[serde(default)]
    pub turns_in_prompt: usize,
    /// Turns of the conversation.
    #[serde(default)]
    pub turns_of_conversation: u64,
    /// Turns that the summary stands for.
    #[serde(default)]
    pub turns_summarized: u64,
    /// Turns of the conversation that were not read and that no summary stands for.
    #[serde(default)]
    pub turns_not_read: u64,
    /// Why they were not: each is so for one of these reasons.
    #[serde(default)]
    pub not_read_because: Vec<String>,
    /// Rows read to find them, by SQLite's own counters as the three below.
    pub rows_read: u64,
    /// Steps of full scans.
    #[serde(default)]
    pub scan_steps: u64,
    /// Sorts, and indexes made for one statement.
    #[serde(default)]
    pub sorts: u64,
    /// Instructions of SQLite's virtual machine.
    #[serde(default)]
    pub vm_steps: u64,
    /// Whether a summary stands for older turns.
    pub has_summary: bool,
    /// Whether the bound on loading left older kept turns unread.
    pub has_older: bool,
    /// Who counted the tokens.
    pub counter: String,
    /// Whether the bot's own mentions are named; until it was connected once they stand as its id.
    #[serde(default)]
    pub has_identity: bool,
    /// What was left out, and why.
    pub omitted: Vec<OmittedView>,
}

/// What a message of a prompt is there for and costs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageCostView {
    /// `instructions`, `summary`, `parent`, `root`, `replied_to`, `history`, `ambient`, `trigger`.
    pub part: String,
    /// The capture order of the turn it shows.
    pub seq: Option<i64>,
    /// Tokens.
    pub tokens: usize,
}

/// One message of a prompt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PromptMessageView {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// The text.
    pub content: String,
}

/// A turn that is not, or not wholly, in a prompt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OmittedView {
    /// Its capture order.
    pub seq: i64,
    /// Who said it.
    pub speaker: String,
    /// Why it was left out.
    pub why: String,
    /// What that means, and which setting changes it.
    #[serde(default)]
    pub meaning: String,
    /// How much of a turn that was cut is missing.
    #[serde(default)]
    pub tokens_left_out: Option<usize>,
}
