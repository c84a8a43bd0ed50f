//! Approvals: asked for, decided and looked at.

use vocative_contract::envelope::Sender;
use vocative_contract::outbound::{Part, Target};
use vocative_core::addressing::ChangedCall;
use vocative_core::approving::{
    AfterUntrusted, ApprovalButton, ApprovalRule, Approvers, DecidedBy, DecidedVia, PressVerdict,
    StoredApproval,
};
use vocative_core::ids::{
    ApprovalId, ConversationId, LeaseToken, ParticipantId, RunId, ToolCallId,
};
use vocative_core::tool_call::{CallDigest, CallRule};

use crate::contract::{NonMessage, PressedOption};

/// The consent that a call needs from people before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsentSought {
    /// Whether the call needs a person's consent, as its settings say.
    pub asking: ApprovalRule,
    /// The digest of the tool's definition.
    pub definition: CallDigest,
    /// The person whose grants cover the call.
    pub person: Option<ParticipantId>,
    /// What follows when it is not known whether the call acted.
    pub rule: CallRule,
    /// What becomes of the call once its run has read what its askers did not write.
    pub after_untrusted: AfterUntrusted,
}

impl ConsentSought {
    /// A call that needs nobody's consent.
    pub const NONE: Self = Self {
        asking: ApprovalRule::Free,
        definition: [0; 32],
        person: None,
        rule: CallRule::Repeatable,
        after_untrusted: AfterUntrusted::Ask,
    };
}

/// A person is to be asked about a call.
#[derive(Clone, Debug, PartialEq)]
pub struct NewApproval {
    /// Its identity, which stands in the card's buttons.
    pub id: ApprovalId,
    /// The run.
    pub run: RunId,
    /// Its lease.
    pub token: LeaseToken,
    /// The call.
    pub call: ToolCallId,
    /// The consent that the call needs.
    pub sought: ConsentSought,
    /// Where the tool's calls go, as people are shown it.
    pub target: String,
    /// The JSON schema of the tool's arguments; changed arguments are checked against it.
    pub parameters: String,
    /// Who may decide.
    pub approvers: Approvers,
    /// Whether the card shows all of the call.
    pub is_whole: bool,
    /// Where the card goes.
    pub place: Target,
    /// The card.
    pub card: Part,
    /// What replaces the card when nobody decides in time.
    pub expired: Part,
    /// What replaces the card when the run ends first.
    pub cancelled: Part,
    /// When it expires, in milliseconds since the Unix epoch; `None` = never.
    pub expires_at_ms: Option<i64>,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// The outcome of asking for an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskOutcome {
    /// The call waits; its card is committed.
    Waits,
    /// Too many calls of the person or of the chat wait already: nothing was written.
    TooMany,
    /// The lease is no longer held: nothing was written.
    Stale,
    /// Its step was forgotten with something that it was made from: nothing was written.
    SourceGone,
}

/// The outcome of parking a run that is to wait for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parked {
    /// It waits, without a lease.
    Waits,
    /// Everything was decided meanwhile: the run goes on.
    Decided,
    /// The lease is no longer held, or the run was ended because it was asked to stop.
    LetGo,
}

/// What is known of an approval when a person decides about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalFacts {
    /// The approval.
    pub approval: StoredApproval,
    /// Whether it is known which message the card is.
    pub is_card_known: bool,
    /// Whether the button was pressed in the card's own message.
    pub is_in_card: bool,
    /// Whether the one who pressed asked for the run.
    pub is_requester: bool,
    /// The name by which the one who pressed is known, if any is.
    pub presser_name: Option<String>,
    /// The JSON schema of the tool's arguments; `None` = they can't be changed.
    pub parameters: Option<String>,
}

/// The outcome of a press.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PressAnswer {
    /// What is done.
    pub verdict: PressVerdict,
    /// What replaces the card, if something was decided.
    pub outcome: Option<Part>,
    /// What the person who pressed is told; an empty text only ends the platform's waiting indicator.
    pub answer: Part,
}

/// Decides about a press, given what is known of its approval; pure.
pub type PressJudge = Box<dyn FnOnce(ApprovalFacts) -> PressAnswer + Send>;

/// A press of one of our buttons, by the button's form.
pub enum PressedButton {
    /// One of an approval's card.
    Card(PressedCard),
    /// One of a question.
    Question(PressedOption),
    /// A form that one of an approval's card had opened.
    Form(SentForm),
}

/// Decides about a form with other arguments, given what is known of its approval; pure.
///
/// # Errors
/// What is wrong with the form, for the person who sent it.
pub type FormJudge = Box<dyn FnOnce(ApprovalFacts) -> Result<ChangedCall, String> + Send>;

/// A form with other arguments for a call.
pub struct SentForm {
    /// The button that had opened it.
    pub button: ApprovalButton,
    /// Decides about the form.
    pub judge: FormJudge,
    /// What the sender is told if the call is gone or no longer open.
    pub not_valid: String,
}

/// A press of a button that has the form of a card's button.
pub struct PressedCard {
    /// Which button.
    pub button: ApprovalButton,
    /// Decides about the press.
    pub judge: PressJudge,
}

/// A press of a button in a message.
pub struct NewPress {
    /// The event; its id is the platform's id of the interaction.
    pub event: NonMessage,
    /// Whether the event is kept, which it is if its person is served. Only such a press can decide.
    pub is_kept: bool,
    /// Which button, if it may be one of ours; any other button does nothing.
    pub pressed: Option<PressedButton>,
    /// The message that it was pressed in.
    pub message_id: String,
    /// Who pressed.
    pub sender: Sender,
    /// Where the person who pressed is told something.
    pub place: Target,
}

/// What a press did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pressed {
    /// Whether it decided something.
    pub is_decided: bool,
    /// Whether the person who pressed is asked for other arguments.
    pub opens_form: bool,
    /// What is wrong with a form, for the person who sent it; nothing of the form is kept then.
    pub form_problem: Option<String>,
}

/// Makes what takes a card's place.
pub type OutcomeMaker = Box<dyn FnOnce(&StoredApproval, &DecidedBy) -> Part + Send>;

/// A decision of an operator.
pub struct OperatorDecision {
    /// Which approval.
    pub approval: ApprovalId,
    /// The digest of what was looked at, in lower-case hexadecimal; `None` = it is not compared.
    pub digest: Option<String>,
    /// Whether the call may be made.
    pub is_approved: bool,
    /// Arguments that replace the call's, checked against its tool's schema; the call is asked for anew with them.
    pub changed: Option<String>,
    /// Whether calls like it may be made for a day without asking.
    pub has_grant: bool,
    /// The operator's name.
    pub operator: String,
    /// The platform's ids of the people who are that operator, where they are known.
    pub people: Vec<String>,
    /// The interface through which it was decided.
    pub via: DecidedVia,
    /// What the operator said.
    pub note: Option<String>,
    /// Makes what replaces the card, from what was decided.
    pub outcome: OutcomeMaker,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// What an operator's decision came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorDecided {
    /// It was decided so.
    Done(StoredApproval),
    /// It was decided before, or its time is over.
    Over(StoredApproval),
    /// The call does something else than what was looked at.
    OtherCall(StoredApproval),
    /// The decision must come from a person who did not ask for the run.
    IsRequester(StoredApproval),
    /// The decision must come from a person who did not change the call.
    IsChanger(StoredApproval),
}

/// What became of the calls of a tool that people were asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalCount {
    /// The tool.
    pub tool: String,
    /// How many were asked about.
    pub asked: u32,
    /// How many wait.
    pub open: u32,
    /// How many were allowed.
    pub approved: u32,
    /// How many were forbidden.
    pub denied: u32,
    /// How many expired without a decision.
    pub expired: u32,
    /// How many ended with their runs.
    pub cancelled: u32,
    /// How many ended because their arguments were changed: they were asked about anew.
    pub changed: u32,
    /// The median wait of those that a person decided about, in milliseconds; `None` = there are none.
    pub median_wait_ms: Option<i64>,
}

/// Which approvals are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalFilter {
    /// Only open ones.
    pub is_open: bool,
    /// Only those of a conversation.
    pub conversation: Option<ConversationId>,
    /// Only those that were asked for before this one; none if there is no such one.
    pub before: Option<ApprovalId>,
}
