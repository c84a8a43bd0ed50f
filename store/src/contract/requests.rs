//! What programs ask through the API.

use vocative_core::given::Given;
use vocative_core::ids::{AgentName, ConversationId, RunId, TurnId};

/// A SHA-256 digest.
pub type Sha256Digest = [u8; 32];

/// What a program's question is besides its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRequest {
    /// The digest of the name that the program gave its request; asked again under that name, it is the same request.
    pub key: Option<Sha256Digest>,
    /// The digest of what it asks: nothing else can be asked under the same name.
    pub body: Sha256Digest,
    /// Whom it asks.
    pub agent: AgentName,
    /// The configured name of the model that it asks for; `None` = the agent's own.
    pub model: Option<String>,
    /// What it gave for the prompt of this question.
    pub given: Given,
}

/// A question of a program that was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedRun {
    /// The run that answers it.
    pub run: RunId,
    /// Its conversation.
    pub conversation: ConversationId,
    /// The turn that asks.
    pub turn: TurnId,
}

/// The outcome of a request for a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forking {
    /// It is made.
    Made(ConversationId),
    /// It was made before, under the same key.
    Known(ConversationId),
    /// The key was used for something else.
    Other,
    /// Nothing is made: what was asked up to that message is not answered yet.
    Open,
    /// Nothing is made: the limit on forks of forks is reached.
    TooDeep,
}

/// What became of a program's question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapturedRequest {
    /// It is captured, and its run is queued.
    Asked(AskedRun),
    /// It was asked before, under the same name.
    Known(AskedRun),
    /// Something else was asked under its name.
    OtherBody,
    /// It was erased, or deleted.
    Gone,
    /// It is not let in: nothing was stored.
    NotAdmitted,
}
