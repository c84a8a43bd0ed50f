//! What goes into and comes out of the store. Nothing here names SQL, a row or a transaction.

use vocative_channels::envelope::{Attachment, ChatKind, Place, Sender};
use vocative_channels::identity::Platform;
use vocative_channels::outbound::{Delivered, Operation, Part, Target};

use super::expiry::Expired;
use crate::domain::addressing::{FollowUpJudge, Judge};
use crate::domain::file::TurnFile;
use crate::domain::ids::{
    AccountId, AgentName, ChatId, ConversationId, ErasureId, LeaseToken, OutboxId, OwnerId, RunId,
    Seq, TurnId,
};
use crate::domain::outbox::OutboxEntry;
use crate::domain::place::Scope;
use crate::domain::run::{Run, Usage};
use crate::domain::search::SearchReach;
use crate::domain::summary::{Summary, SummaryCounts};
use crate::domain::tokens::RatioStatus;
use crate::domain::turn::{Participant, ParticipantKind, Position, TokenCount, Turn, TurnKind};

/// A configured channel and the account it turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountBinding {
    /// The configured channel's name.
    pub channel: String,
    /// Which platform.
    pub platform: Platform,
    /// The platform's account id.
    pub account: String,
    /// What people call the account.
    pub name: String,
}

/// A message to capture: new, or edited.
pub struct NewMessage {
    /// The account it came through.
    pub account: AccountId,
    /// Where.
    pub place: Place,
    /// The turn's scope where it is not the one of its place: a transcript may mix scopes in one
    /// conversation. `None` for everything that comes from a platform.
    pub scope_override: Option<Scope>,
    /// The platform's message id.
    pub message_id: String,
    /// Who wrote it.
    pub sender: Sender,
    /// What the sender counts as.
    pub sender_kind: ParticipantKind,
    /// Platform-neutral text, within `inbound_text_max_bytes`.
    pub text: String,
    /// What was attached.
    pub attachments: Vec<Attachment>,
    /// The platform id of the message it replies to, in the same chat.
    pub reply_to: Option<String>,
    /// The passage of it that is quoted.
    pub quote: Option<String>,
    /// An album's id: all its items are one turn.
    pub album: Option<String>,
    /// Platform time, in milliseconds since the Unix epoch; the store caps it at `received_at_ms`.
    pub sent_at_ms: i64,
    /// The platform's order within it.
    pub ordinal: i64,
    /// Whether it is an edit.
    pub is_edit: bool,
    /// Of an edit: the platform's marker of it, where it has one. An edit not newer than the stored
    /// one is a duplicate. One without a marker is of a message that nobody had marked as edited:
    /// it is one where its text differs.
    pub edit_marker: Option<String>,
    /// When this process received it.
    pub received_at_ms: i64,
    /// What the text costs.
    pub tokens: Option<TokenCount>,
    /// Whether an edit keeps the text it replaces as a revision.
    pub keep_revisions: bool,
    /// The platform's own JSON, kept while `debug_raw_hours` is set.
    pub raw: Option<String>,
    /// Decides whether it is stored and whom it addresses. Called exactly once unless the message
    /// is a known duplicate that can't change anything; pure.
    pub judge: Judge,
    /// Decides anew for the follow-ups that were captured before it, where it makes its thread an
    /// agent's; `None` leaves them as they are.
    pub judge_follow_up: Option<FollowUpJudge>,
}

/// A post of ours that was seen on the platform.
pub struct OwnPost {
    /// The account it was posted through.
    pub account: AccountId,
    /// Where.
    pub place: Place,
    /// The platform's message id.
    pub message_id: String,
    /// The outbox entry it says it is.
    pub marker: Option<String>,
    /// When it was seen, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// Decides anew for what was said below it before it was known to be ours.
    pub judge_follow_up: Option<FollowUpJudge>,
}

/// What a commit did to runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunChanges {
    /// Runs queued.
    pub new_runs: Vec<RunId>,
    /// Runs ended, or asked to end.
    pub cancelled_runs: Vec<RunId>,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Captured {
    /// A new turn.
    New(CapturedTurn),
    /// A new revision of a known turn (an edit, another item of an album).
    Revised(CapturedTurn),
    /// Known already, nothing changed (except that new runs may have come).
    Duplicate(CapturedTurn),
    /// It was deleted or erased before: nothing is stored again.
    Tombstone,
    /// Outside access: nothing was stored.
    NotAdmitted {
        /// Whether a notice was committed for it.
        has_notice: bool,
    },
}

/// The turn of a captured message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedTurn {
    /// The turn.
    pub turn: TurnId,
    /// Its conversation.
    pub conversation: ConversationId,
    /// Its capture order.
    pub seq: Seq,
    /// Runs queued by this call.
    pub new_runs: Vec<RunId>,
    /// Runs ended by this call, or asked to end: an edit took the mention away, it interrupts, or it
    /// says stop.
    pub cancelled_runs: Vec<RunId>,
    /// Orders to erase that it gave, to be carried out.
    pub erasures: Vec<ErasureId>,
}

/// Since when an account may lack messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountReach {
    /// Since then, in milliseconds since the Unix epoch; `None` if nothing is missing.
    pub unread_from_ms: Option<i64>,
    /// Which loss this is; ending an earlier one ends nothing.
    pub epoch: i64,
}

/// A chat that the bot is in, and how far what was said there is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatReach {
    /// The platform's id of it.
    pub chat: String,
    /// Its kind, where that was learnt.
    pub kind: Option<ChatKind>,
    /// Whether anything was heard there.
    pub is_heard: bool,
    /// What was unread before this was read, in milliseconds since the Unix epoch.
    pub read_through_ms: Option<i64>,
    /// It could not be read since then.
    pub unread_from_ms: Option<i64>,
    /// What was said before this is still to be read.
    pub backfill_until_ms: Option<i64>,
}

impl ChatReach {
    /// What is known of its place.
    #[must_use]
    pub fn place(&self) -> Place {
        Place {
            chat: self.chat.clone(),
            kind: self.kind,
            ..Place::default()
        }
    }
}

/// Something is missing in a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryGap {
    /// The account.
    pub account: AccountId,
    /// The chat.
    pub place: Place,
    /// Where in the timeline it is said, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// What the timeline says.
    pub text: String,
    /// Why, in short, for `status`.
    pub reason: String,
    /// Whether another attempt may still read it; then a later notice takes this one's place.
    pub may_be_read_later: bool,
    /// Since when the chat is unread, where what is missing is not older than the bot's joining.
    pub unread_from_ms: Option<i64>,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// What became of a delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// A known message was blanked.
    Blanked {
        /// Its turn.
        turn: TurnId,
        /// Runs cancelled: queued ones at once, leased ones asked to stop.
        cancelled_runs: Vec<RunId>,
    },
    /// An unknown or already deleted message; remembered so that it can't come later.
    Remembered,
}

/// An account that history can be imported into: what was learnt when its channel last started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportAccount {
    /// The account.
    pub account: AccountId,
    /// Which platform.
    pub platform: Platform,
    /// The platform's account id.
    pub platform_id: String,
    /// What people call the account.
    pub name: String,
    /// The bot's own user ids, its user id first; empty while no start has learnt them.
    pub own_ids: Vec<String>,
}

/// Messages of an export: one transaction.
pub struct ImportBatch {
    /// The account.
    pub account: AccountId,
    /// The messages, in the order of the export.
    pub messages: Vec<ImportMessage>,
    /// People who are mentioned: a name is noted where none is known.
    pub people: Vec<Sender>,
    /// How far the import is with this batch; written with it.
    pub progress: ImportProgress,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// A message of an export.
pub struct ImportMessage {
    /// The message; its judge is not asked: it is admitted, and addresses nobody anew.
    pub message: NewMessage,
    /// Of a message whose id counts in somebody's own message box: how many before it in the export
    /// have the same sender, second and text.
    pub own_box: Option<u32>,
    /// Whether this bot posted it.
    pub is_own: bool,
}

/// How far an import is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportProgress {
    /// What is imported: the same for the same files and choice of chats.
    pub fingerprint: String,
    /// Things of the export that are dealt with; a resumed import passes over them.
    pub things: u64,
    /// Whether it is at its end: the next one starts over.
    pub is_finished: bool,
}

/// What became of the messages of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// New turns.
    pub imported: u64,
    /// Turns that got a newer text: edits that were not heard.
    pub revised: u64,
    /// Known before.
    pub known: u64,
    /// Deleted or erased before: they do not come back.
    pub gone: u64,
    /// Posts of this bot that its own answers stand for.
    pub own: u64,
    /// Not older than the first live turn of a chat without shared ids, and found there.
    pub overlap_found: u64,
    /// The same, and not found there.
    pub overlap_missing: u64,
    /// Another message is known under the same id.
    pub conflicts: u64,
}

/// A claim on the oldest waiting run of an idle conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Who claims.
    pub owner: OwnerId,
    /// How long the lease lasts, in milliseconds.
    pub lease_ms: i64,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// Only work of these accounts: those whose channel can be served now.
    pub accounts: Vec<AccountId>,
}

/// The answer of a run: one transaction makes it durable.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyCommit {
    /// The run.
    pub run: RunId,
    /// Its lease.
    pub token: LeaseToken,
    /// The agent that answers.
    pub agent: AgentName,
    /// The agent's name for people.
    pub agent_display_name: String,
    /// What it says, platform-neutral.
    pub text: String,
    /// `Message` for an answer, `Notice` for a failure told to the room.
    pub kind: TurnKind,
    /// How the run ends.
    pub ending: RunEnding,
    /// The rendered posts, in order; none means nothing is posted.
    pub parts: Vec<Part>,
    /// Where they go.
    pub target: Target,
    /// How long an edit of the run's placeholder may still be on its way to the platform.
    pub live_settle_ms: i64,
    /// What the text costs.
    pub tokens: Option<TokenCount>,
    /// Tokens used.
    pub usage: Usage,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// The post that shows the beginning of an answer while it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPlaceholder {
    /// The run that answers.
    pub run: RunId,
    /// Its lease.
    pub token: LeaseToken,
    /// Where.
    pub target: Target,
    /// The beginning, rendered.
    pub part: Part,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// What became of a new placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It will be posted.
    Committed,
    /// An earlier attempt of the run made one.
    Found,
    /// The run is another's by now, or is to stop.
    Refused,
}

/// Where a placeholder stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// It is not posted yet, or nobody knows.
    Waiting,
    /// It is in the room.
    Shown {
        /// The platform's chat id.
        chat: String,
        /// The platform's message id.
        message_id: String,
    },
    /// It will not be.
    Over,
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnding {
    /// It answered.
    Done,
    /// It was given up, and the room is told.
    Dead {
        /// Why, for operators.
        reason: String,
    },
    /// It was cancelled, and the room is told.
    Cancelled,
}

/// A run that is not at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedRun {
    /// The run.
    pub run: Run,
    /// Who asked first, by the best name there is.
    pub person: Option<String>,
    /// The account to answer through.
    pub account: AccountId,
    /// What it waits for.
    pub waiting_for: WaitingFor,
}

/// What a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitingFor {
    /// It is being worked on.
    Answer {
        /// Its lease lasts until then, in milliseconds since the Unix epoch; extended while it works.
        lease_until_ms: i64,
    },
    /// It was asked to stop, and whoever works on it has not let go yet.
    Stop,
    /// An earlier run of its conversation.
    Earlier,
    /// Its next attempt.
    Attempt {
        /// When, in milliseconds since the Unix epoch.
        at_ms: i64,
        /// Why the one before failed.
        reason: String,
    },
    /// A time: an album may get further items, or the kind of its chat is to be learnt.
    Time {
        /// When, in milliseconds since the Unix epoch.
        at_ms: i64,
    },
    /// Its channel, which the platform refuses.
    Channel {
        /// Why.
        reason: String,
    },
    /// A worker that is free, or a daemon that runs.
    Worker,
}

/// What became of a write that needs a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// It was written.
    Written,
    /// The lease is no longer held: nothing was written.
    Stale,
}

/// Something to tell of a leased run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewRunEvent {
    /// The model said something.
    Text {
        /// In which step.
        step: u32,
        /// The next piece.
        text: String,
    },
    /// All text before is void.
    Restarted,
    /// A tool is called.
    ToolCall {
        /// In which step.
        step: u32,
        /// The call's id.
        call_id: String,
        /// The tool.
        tool: String,
        /// What it is asked.
        arguments: String,
    },
    /// It gave a result, which is not recorded yet.
    ToolResult {
        /// In which step.
        step: u32,
        /// The call's id.
        call_id: String,
        /// The tool.
        tool: String,
        /// The result.
        text: String,
        /// Turns that it quotes: with one of them gone, its text is not told.
        sources: Vec<TurnId>,
    },
}

/// Whose events are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventScope {
    /// Everybody's.
    All,
    /// Those of a run.
    Run(RunId),
    /// Those of a conversation's runs.
    Conversation(ConversationId),
}

/// What became of a step's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// They were written.
    Written,
    /// The lease is no longer held: nothing was written.
    Stale,
    /// Something they quote was deleted meanwhile: nothing was written.
    SourceGone,
}

/// What becomes of an outbox entry after an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum OutboxUpdate {
    /// It is on the platform.
    Sent(Delivered),
    /// It was not sent: try again at that time. The whole chat waits, in order.
    Retry {
        /// When.
        not_before_ms: i64,
        /// Why.
        reason: String,
    },
    /// Its outcome is unknown: look for it at that time.
    Look {
        /// When.
        not_before_ms: i64,
        /// Why.
        reason: String,
    },
    /// It was looked for and is not there: send it again (once).
    Resend {
        /// Why.
        reason: String,
    },
    /// It waits for a person.
    Hold {
        /// Why.
        reason: String,
    },
    /// It will never be sent.
    Dead {
        /// Why.
        reason: String,
    },
    /// It will never be sent, and nobody need look at it.
    Drop {
        /// Why.
        reason: String,
    },
    /// It is replaced by other parts in the same transaction.
    Replace {
        /// The new parts, in order.
        parts: Vec<Part>,
        /// Where they go.
        target: Target,
        /// What is done with the first one. Further parts of an edit are posts. A post in the place of
        /// an edit takes the message away that was to be edited.
        operation: Operation,
        /// Why.
        reason: String,
    },
    /// The chat refuses: nothing is sent there until something is heard from it, or that time.
    ParkChat {
        /// Try again at the latest then.
        not_before_ms: i64,
        /// Why.
        reason: String,
    },
    /// The account is refused: the whole channel waits until it is identified again.
    HoldAccount {
        /// Why.
        reason: String,
    },
}

/// Where an answer of a conversation goes.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyRoute {
    /// The account.
    pub account: AccountId,
    /// The configured channel bound to it.
    pub channel: String,
    /// The platform.
    pub platform: Platform,
    /// The chat.
    pub chat: ChatId,
    /// Chat, thread, topic, and the trigger's message id as `reply_to`.
    pub target: Target,
    /// What kind of place.
    pub scope: Scope,
    /// The kind of chat.
    pub chat_kind: Option<ChatKind>,
    /// Whether there is an answer that it replaces.
    pub replaces_answer: bool,
    /// The platform's id of the person who said the newest trigger.
    pub person: Option<String>,
}

/// An event kept raw because it did not translate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawStub {
    /// The account it came through.
    pub account: AccountId,
    /// Why it did not translate.
    pub reason: String,
    /// The platform's own bytes.
    pub raw: String,
    /// When it was received.
    pub received_at_ms: i64,
}

/// A command or interaction that is not a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NonMessage {
    /// The account it came through.
    pub account: AccountId,
    /// The platform's own identity of it (`trigger_id`, `callback_query.id`).
    pub id: String,
    /// `command` or `interaction`.
    pub kind: &'static str,
    /// Who did it, as platform user id.
    pub sender_id: String,
    /// Where, as platform chat id.
    pub chat: Option<String>,
    /// What: command and text, or button data.
    pub text: String,
    /// When it was received.
    pub received_at_ms: i64,
}

/// How a listing of conversations is bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationFilter {
    /// Only those of this channel.
    pub channel: Option<String>,
    /// At most so many, newest activity first; 0 = the default of 50.
    pub limit: usize,
    /// Also those that were archived.
    pub with_archived: bool,
    /// Only those that come after this one in the list: when it was last active, and its id.
    pub before: Option<(i64, ConversationId)>,
}

/// What people are told of a conversation besides its turns.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationOverview {
    /// What to call it: what a person called it, a topic's name, the chat's title, its first words.
    pub title: String,
    /// What a person called it.
    pub own_title: Option<String>,
    /// The configured channel it came through.
    pub channel: String,
    /// The platform.
    pub platform: Platform,
    /// The chat's title.
    pub chat_title: Option<String>,
    /// The name of the kind of chat, once learnt.
    pub chat_kind: Option<&'static str>,
    /// Since when it is archived, in milliseconds since the Unix epoch.
    pub archived_at_ms: Option<i64>,
    /// The run at work in it, or next.
    pub active_run: Option<Run>,
}

/// Who speaks in a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Speakers {
    /// Those who say most.
    pub shown: Vec<Speaker>,
    /// How many there are in all.
    pub total: u64,
}

/// Somebody who speaks in a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Speaker {
    /// Who.
    pub participant: Participant,
    /// How many turns are theirs; tool calls and deleted turns count, too.
    pub turns: u64,
}

/// Which turns to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnFilter {
    /// Only this scope.
    pub scope: Option<Scope>,
    /// Only turns sent at or after this, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// Only turns of these participants, by platform id; empty = all.
    pub participants: Vec<String>,
    /// Only the newest so many by position; `None` = all.
    pub limit: Option<usize>,
    /// Also hidden (deleted) turns and those only the timeline shows.
    pub with_hidden: bool,
}

/// A search from one conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    /// The conversation.
    pub conversation: ConversationId,
    /// Which others of its chat are searched with it.
    pub reach: SearchReach,
    /// Words, `"phrases"` and beginnings of words (`dep*`); all must be found. Without any word
    /// everything is found.
    pub text: String,
    /// At most so many hits.
    pub limit: usize,
    /// Tokens of all hits' texts together (by `utf16_div4`); the first hit always, then it stops at
    /// the first that would pass it.
    pub token_cap: usize,
    /// A hit's text is cut to so many characters around its first match.
    pub text_max_chars: usize,
    /// Turns that are no hits, like the one that asks.
    pub exclude: Vec<TurnId>,
    /// Which hits come first.
    pub order: SearchOrder,
}

/// Which hits come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchOrder {
    /// The newest by position.
    Newest,
    /// The best match by BM25; the newest of equal ones.
    Ranked,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchHits {
    /// The hits, in the order asked for.
    pub hits: Vec<SearchHit>,
    /// Turns that match, as far as they were looked at; with `is_bounded` there are more, older
    /// ones. Without a word in the query, as many as there are hits.
    pub matches: usize,
    /// Whether only the newest matches were looked at.
    pub is_bounded: bool,
    /// Whether the query was cut to its limit.
    pub is_query_cut: bool,
    /// Whether the room has older threads that were not searched.
    pub has_more_threads: bool,
}

/// A turn that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// The turn.
    pub turn: Turn,
    /// What it says around the match, mentions as names.
    pub text: String,
}

/// What a step of a run did with its tools: written together with the step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTools {
    /// The run.
    pub run: RunId,
    /// Its lease.
    pub token: LeaseToken,
    /// The step's number.
    pub number: u32,
    /// The step as it is to be replayed, opaque.
    pub message: String,
    /// The agent's name for people.
    pub agent_display_name: String,
    /// Calls and results, in the order of the calls.
    pub calls: Vec<ToolTurn>,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// A tool call and its result, as the timeline shows them.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolTurn {
    /// The call's id, the same on both turns.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What was called, as text.
    pub call: String,
    /// What the call's text costs.
    pub call_tokens: Option<TokenCount>,
    /// What came back.
    pub result: String,
    /// What the result's text costs.
    pub result_tokens: Option<TokenCount>,
    /// Turns that the result quotes: when one of them goes, so does the result.
    pub sources: Vec<TurnId>,
}

/// A turn and where its answer went, for `conversations show` and the demo.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnDetail {
    /// The turn.
    pub turn: Turn,
    /// Its platform message ids.
    pub message_ids: Vec<String>,
    /// The runs it triggered.
    pub runs: Vec<Run>,
    /// The posts it caused.
    pub posts: Vec<OutboxEntry>,
}

/// Which page of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageQuery {
    /// At most so many turns.
    pub limit: usize,
    /// Only what stands before the turn with this seq; `None` = the newest.
    pub before: Option<Seq>,
    /// Also what is not in the room: tool calls and results, deleted turns; and runs and summaries.
    pub is_timeline: bool,
}

/// A page of a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Turns, ascending by position.
    pub turns: Vec<TurnDetail>,
    /// In the timeline: runs that came to be in it, oldest first.
    pub runs: Vec<Run>,
    /// In the timeline: summaries that were made in it, oldest first.
    pub summaries: Vec<Summary>,
    /// Whether there is an older page.
    pub has_older: bool,
}

/// Which page of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportQuery {
    /// What stands behind this position; `None` = from the first turn.
    pub after: Option<Position>,
    /// Nothing captured after this; `None` = everything captured by now.
    pub as_of: Option<Seq>,
}

/// A page of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportPage {
    /// Turns, ascending by position; deleted ones without what they said.
    pub turns: Vec<ExportTurn>,
    /// The bound for all further pages.
    pub as_of: Seq,
    /// Where the next page begins; `None` = this was the last.
    pub next: Option<Position>,
}

/// A turn as it is exported.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportTurn {
    /// The turn.
    pub turn: Turn,
    /// What it says, mentions as names.
    pub text: String,
    /// The passage it quotes, mentions as names.
    pub quote: Option<String>,
    /// What it replies to.
    pub replied_to: Option<RepliedTo>,
    /// Names for its mention tokens: id and name.
    pub names: Vec<(String, String)>,
    /// Those of its mention tokens that are of the bot itself.
    pub bot_ids: Vec<String>,
    /// What became of its attached files.
    pub files: Vec<TurnFile>,
}

/// What a turn replies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepliedTo {
    /// Who said it.
    pub speaker: String,
    /// How it begins, mentions as names.
    pub text: String,
}

/// Numbers for `status` and metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreStatus {
    /// Turns.
    pub turns: u64,
    /// Conversations.
    pub conversations: u64,
    /// Queued runs.
    pub runs_queued: u64,
    /// Leased runs.
    pub runs_leased: u64,
    /// Runs given up.
    pub runs_dead: u64,
    /// Runs given up in the last 24 hours.
    pub runs_dead_last_day: u64,
    /// Runs that wait for a person.
    pub runs_held: u64,
    /// Age of the oldest queued run that may start, in milliseconds.
    pub oldest_waiting_run_ms: Option<i64>,
    /// Pending and leased posts.
    pub posts_pending: u64,
    /// Posts of unknown outcome, being looked for.
    pub posts_unknown: u64,
    /// Posts that wait for a person.
    pub posts_held: u64,
    /// Posts that will never be sent.
    pub posts_dead: u64,
    /// Age of the oldest pending post that may be sent, in milliseconds.
    pub oldest_waiting_post_ms: Option<i64>,
    /// Raw stubs of events that did not translate.
    pub raw_stubs: u64,
    /// Summaries.
    pub summaries: SummaryCounts,
    /// What was learnt about counting tokens, by model.
    pub token_ratios: Vec<RatioStatus>,
    /// What retention let go so far.
    pub expired: Expired,
    /// When it last let something go, in milliseconds since the Unix epoch.
    pub expired_last_ms: Option<i64>,
    /// Erasures that are not finished.
    pub erasures_open: u64,
    /// Attached files.
    pub files: FileCounts,
    /// Database bytes.
    pub database_bytes: u64,
    /// Per account.
    pub accounts: Vec<AccountStatus>,
}

/// Counts of attached files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Contents stored, each once.
    pub stored: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files to be fetched.
    pub waiting: u64,
    /// Voice notes to be written down.
    pub to_be_heard: u64,
}

/// Numbers of one account.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountStatus {
    /// The account.
    pub account: AccountId,
    /// The channel bound to it.
    pub channel: String,
    /// The platform.
    pub platform: Platform,
    /// What people call it.
    pub name: String,
    /// When a message was last captured, in milliseconds since the Unix epoch.
    pub last_captured_ms: Option<i64>,
    /// Tokens used since the start of the UTC day.
    pub tokens_today: u64,
    /// Why the account is held, if it is.
    pub held: Option<String>,
    /// Chats parked.
    pub parked_chats: u64,
    /// Messages since then may be missing and are being read, in milliseconds since the Unix epoch.
    pub unread_from_ms: Option<i64>,
    /// Chats of which what was said before the bot joined is still to be read.
    pub backfills: u64,
    /// Chats in which something is missing.
    pub history_gaps: u64,
    /// One of them, and why.
    pub history_gap: Option<String>,
}

/// What a lease extension found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLease {
    /// Still ours.
    Held,
    /// Still ours, but the run is to stop: its trigger is gone or a person said so.
    CancelRequested,
    /// No longer ours.
    Lost,
}

/// What became of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommittedReply {
    /// The turn, and its posts.
    Written {
        /// The turn.
        turn: TurnId,
        /// The posts, in order.
        posts: Vec<OutboxId>,
    },
    /// The lease is no longer held: nothing was written.
    Stale,
    /// The run was cancelled meanwhile: it ended without a word, whatever was to be said.
    Cancelled,
}
