//! Whether a press of a question's button, or a reply to it, is its answer. Of fifty at once, only one finds it open.

use crate::approving::ApprovalDeadline;
use crate::ids::QuestionId;
use crate::questioning::QuestionState;

/// What is known of an answer when it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerFacts {
    /// How the question stands.
    pub state: QuestionState,
    /// How long it is open.
    pub expiry: ApprovalDeadline,
    /// Whether it is known which message the question is: it is not while its post is on its way.
    pub is_post_known: bool,
    /// Whether the answer was given at the question's own post.
    pub is_at_post: bool,
    /// Whether the one who answers is asked, and is served here.
    pub is_asked: bool,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerVerdict {
    /// It is the answer.
    Counts,
    /// It is not; its person is told why.
    Not(NotCounted),
}

/// Why something is not the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCounted {
    /// Somebody else is asked.
    NotAsked,
    /// It was answered, or its time is over.
    Over(QuestionState),
    /// The button is not the question's.
    NotThisPost,
    /// It is not known yet which message the question is.
    NotYet,
}

/// Decides whether an answer counts.
#[must_use]
pub fn answer(facts: &AnswerFacts) -> AnswerVerdict {
    use AnswerVerdict::Not;
    if !facts.is_post_known {
        return Not(NotCounted::NotYet);
    }
    if !facts.is_at_post {
        return Not(NotCounted::NotThisPost);
    }
    if !facts.is_asked {
        return Not(NotCounted::NotAsked);
    }
    if facts.state != QuestionState::Open {
        return Not(NotCounted::Over(facts.state));
    }
    if facts.expiry.is_over(facts.now_ms) {
        return Not(NotCounted::Over(QuestionState::Expired));
    }
    AnswerVerdict::Counts
}

/// How a message stands to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearness {
    /// It is the question's answer already: an edit of it, or the same event again.
    IsAnswer,
    /// It replies to the question's post, or is in the thread below that.
    AtPost,
    /// It is in the thread that the question was asked in.
    InThread,
}

/// A question that a message may be the answer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyFacts {
    /// The question.
    pub question: QuestionId,
    /// How it stands.
    pub state: QuestionState,
    /// How long it is open.
    pub expiry: ApprovalDeadline,
    /// Where the message is.
    pub nearness: Nearness,
    /// Whether its sender is asked.
    pub is_asked: bool,
    /// Whom the question asks, as people read it.
    pub asked: String,
    /// Whether it is asked in a room of experts: they talk on below it.
    pub is_for_experts: bool,
}

impl ReplyFacts {
    /// Whether the message is the question's answer.
    #[must_use]
    pub fn verdict(&self, now_ms: i64) -> AnswerVerdict {
        answer(&AnswerFacts {
            state: self.state,
            expiry: self.expiry,
            is_post_known: true,
            is_at_post: true,
            is_asked: self.is_asked,
            now_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_is_asked_answers_and_only_once() {
        use AnswerVerdict::{Counts, Not};
        use NotCounted::{NotAsked, NotThisPost, NotYet, Over};
        use QuestionState::{Answered, Cancelled, Expired};
        let fresh = AnswerFacts {
            state: QuestionState::Open,
            expiry: ApprovalDeadline {
                asked_at_ms: 1_000,
                expires_at_ms: Some(2_000),
            },
            is_post_known: true,
            is_at_post: true,
            is_asked: true,
            now_ms: 1_500,
        };
        type Change = fn(&mut AnswerFacts);
        let table: [(Change, AnswerVerdict); 10] = [
            (|_| {}, Counts),
            (|it| it.is_post_known = false, Not(NotYet)),
            (|it| it.is_at_post = false, Not(NotThisPost)),
            (|it| it.is_asked = false, Not(NotAsked)),
            (|it| it.state = Answered, Not(Over(Answered))),
            (|it| it.state = Expired, Not(Over(Expired))),
            (|it| it.state = Cancelled, Not(Over(Cancelled))),
            (|it| it.now_ms = 2_000, Not(Over(Expired))),
            // A clock that was put back by more than it lasts ends it, too.
            (|it| it.now_ms = -1, Not(Over(Expired))),
            // A person who is not asked is told so, whatever became of the question.
            (
                |it| (it.state, it.is_asked) = (Answered, false),
                Not(NotAsked),
            ),
        ];
        for (change, expected) in table {
            let mut facts = fresh;
            change(&mut facts);
            assert_eq!(answer(&facts), expected, "{facts:?}");
        }
    }
}
