//! Messages as they come in, and what became of them.

use vocative_contract::envelope::{Attachment, Place, Sender};
use vocative_contract::identity::Platform;

use vocative_core::addressing::{FollowUpJudge, Judge, RunVerdict, Verdict};
use vocative_core::ids::{AccountId, ConversationId, ErasureId, RunId, Seq, TurnId};
use vocative_core::place::Scope;
use vocative_core::turn::{ParticipantKind, TokenCount};

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
    /// The quoted passage of that message.
    pub quote: Option<String>,
    /// An album's id: all its items are one turn.
    pub album: Option<String>,
    /// Platform time, in milliseconds since the Unix epoch; the store caps it at `received_at_ms`.
    pub sent_at_ms: i64,
    /// The platform's order among messages with the same time.
    pub ordinal: i64,
    /// Whether it is an edit.
    pub is_edit: bool,
    /// For an edit: the platform's marker of it, where it has one. An edit that is not newer than the stored
    /// one is a duplicate. An edit without a marker counts as one if its text differs.
    pub edit_marker: Option<String>,
    /// When this process received it.
    pub received_at_ms: i64,
    /// The token count of the text.
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
    /// The outbox entry that the post's own marker names.
    pub marker: Option<String>,
    /// When it was seen, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// Decides anew about what was said below the post before it was known to be ours.
    pub judge_follow_up: Option<FollowUpJudge>,
}

/// What a commit did to runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunChanges {
    /// Runs queued.
    pub new_runs: Vec<RunId>,
    /// Runs ended, or asked to end.
    pub cancelled_runs: Vec<RunId>,
    /// What was decided about follow-ups that were judged again.
    pub follow_ups: Vec<RunVerdict>,
}

/// What became of a message, and what was decided about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedMessage {
    /// What became of it.
    pub captured: Captured,
    /// What was decided; `None` of a known duplicate that can't change anything.
    pub verdict: Option<Verdict>,
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
    /// What was decided about follow-ups that were judged again.
    pub follow_ups: Vec<RunVerdict>,
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
    /// An unknown or already deleted message; remembered so that it is not stored if it comes later.
    Remembered,
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
