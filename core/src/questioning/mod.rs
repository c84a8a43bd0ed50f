//! Questions that a model asks a person while it works on an answer: what people see, whose answer counts, and what the
//! model is told. Pure: the facts that the store read in the transaction, and what becomes of them.
//!
//! Reading order: `stored` (a question as it stands), `buttons` (what a press says), `answering` (does an answer
//! count?), `card` (what people see), `telling` (what people and the model are told).

mod answering;
mod buttons;
mod card;
mod stored;
mod telling;

pub use answering::{AnswerFacts, AnswerVerdict, Nearness, NotCounted, ReplyFacts, answer};
pub use buttons::QuestionButton;
pub use card::{
    QuestionCard, answered_card, cancelled_card, expired_card, fitted_question, question_card,
};
pub use stored::{QuestionState, StoredAnswer, StoredQuestion};
pub use telling::{not_counted_text, result_text};

/// Everybody in a room of experts, as people and models read it.
pub const EXPERTS: &str = "the experts";
/// The most questions of one run.
pub const QUESTIONS_MAX_RUN: u32 = 3;
/// The most open questions of one person's runs, so that they can't flood a room.
pub const QUESTIONS_OPEN_MAX_PERSON: u32 = 5;
/// The most open questions in one chat.
pub const QUESTIONS_OPEN_MAX_CHAT: u32 = 20;
/// The most answers that a question offers.
pub const OPTIONS_MAX: usize = 5;
/// The longest answer that a question offers, in characters.
pub const OPTION_MAX_CHARS: usize = 60;
/// The longest question, in characters.
pub const QUESTION_MAX_CHARS: usize = 1_000;
