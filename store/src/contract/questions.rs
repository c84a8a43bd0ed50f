//! Questions to people: asked, answered and looked at.

use vocative_contract::outbound::{Part, Target};
use vocative_core::eliciting::AskedForm;
use vocative_core::ids::{LeaseToken, ParticipantId, QuestionId, RunId, ToolCallId};
use vocative_core::questioning::{AnswerVerdict, QuestionButton, StoredQuestion};

/// Somebody who may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Askable {
    /// Their id.
    pub id: ParticipantId,
    /// The best name there is.
    pub name: String,
}

/// A person is to be asked something.
#[derive(Clone, Debug, PartialEq)]
pub struct NewQuestion {
    /// Its identity, which stands in its buttons.
    pub id: QuestionId,
    /// The run.
    pub run: RunId,
    /// Its lease.
    pub token: LeaseToken,
    /// The call.
    pub call: ToolCallId,
    /// Who asked for the run, for limits.
    pub person: Option<ParticipantId>,
    /// Whose answer counts; `None` = that of anybody who asked for the run.
    pub asked: Option<ParticipantId>,
    /// Whether it is asked in a room of experts, where everybody's answer counts.
    pub is_for_experts: bool,
    /// What is asked.
    pub text: String,
    /// The answers that it offers.
    pub options: Vec<String>,
    /// The form of a call that it asks for, if a tool server asks and not a model.
    pub form: Option<AskedForm>,
    /// Where it is asked.
    pub place: Target,
    /// The post that asks.
    pub card: Part,
    /// What takes its place when nobody answers in time.
    pub expired: Part,
    /// What takes its place when it is taken back.
    pub cancelled: Part,
    /// What takes its place when a reply answers it.
    pub replied: Part,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expires_at_ms: i64,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// Whether a call goes on with what people answered its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoneOn {
    /// It is being made.
    Begun,
    /// The lease is no longer held: nothing was written.
    Stale,
    /// Its step was forgotten with something that it was made from, or it is over: nothing was written.
    SourceGone,
}

/// The outcome of asking a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionAsked {
    /// The run waits for the answer; the question's post is committed.
    Waits,
    /// The run has asked as often as it may: nothing was written.
    RunLimit,
    /// Too many questions of the person or of the chat wait already: nothing was written.
    TooManyOpen,
    /// The lease is no longer held: nothing was written.
    Stale,
    /// Its step was forgotten with something that it was made from: nothing was written.
    SourceGone,
}

/// An operator's answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorAnswer {
    /// The question.
    pub question: QuestionId,
    /// What is answered.
    pub text: String,
    /// Who answers, as people read it.
    pub operator: String,
    /// What takes the question's place.
    pub outcome: Part,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// What is known when a button of a question is pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionFacts {
    /// The question.
    pub question: StoredQuestion,
    /// Whether it is known which message the question is.
    pub is_post_known: bool,
    /// Whether it was pressed in the question's own message.
    pub is_at_post: bool,
    /// Whether the person who pressed is one of those asked.
    pub is_asked: bool,
    /// The name by which the one who pressed is known, if any is.
    pub presser_name: Option<String>,
}

/// The outcome of a press of a question's button.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionAnswer {
    /// Whether it is the answer.
    pub verdict: AnswerVerdict,
    /// What replaces the question, if the press is the answer.
    pub outcome: Option<Part>,
    /// What the person who pressed is told; an empty text only ends the platform's waiting indicator.
    pub told: Part,
}

/// Decides about a press, given what is known of its question; pure.
pub type OptionJudge = Box<dyn FnOnce(OptionFacts) -> OptionAnswer + Send>;

/// A press of a button that has the form of a question's button.
pub struct PressedOption {
    /// Which button.
    pub button: QuestionButton,
    /// Decides about the press.
    pub judge: OptionJudge,
}
