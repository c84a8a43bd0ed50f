//! What becomes of the placeholder of a run: the post that shows the beginning of an answer while it is written. And of
//! edits and deletions that were committed before the message of their post was there.

use crate::outbox::{DeadCause, PostStage};

/// The placeholder that a run holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldPlaceholder {
    /// Where its entry stands.
    pub stage: PostStage,
    /// Attempts to send it so far.
    pub attempts: u32,
    /// Whether it was to be streamed: words are added at its end.
    pub is_streamed: bool,
    /// Why it is never sent, if it is not.
    pub dead_cause: Option<DeadCause>,
}

/// Whether the writer of an answer can write into its placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceholderShowing {
    /// It is not posted yet, or it is unknown whether it is.
    Waits,
    /// It is in the room.
    Shows,
    /// It is not in the room, and will not be.
    Over,
}

/// Whether the writer of an answer can write into its placeholder.
#[must_use]
pub fn showing(stage: PostStage, has_message: bool) -> PlaceholderShowing {
    match stage {
        PostStage::Sent if has_message => PlaceholderShowing::Shows,
        PostStage::Sent | PostStage::Dead | PostStage::Held | PostStage::Replaced => {
            PlaceholderShowing::Over
        }
        PostStage::Pending | PostStage::Leased | PostStage::Unknown | PostStage::Quarantined => {
            PlaceholderShowing::Waits
        }
    }
}

/// How an answer takes a placeholder's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnAnswer {
    /// It is emptied, and the answer is posted without it.
    LetGo,
    /// No byte of it left: it goes out with the answer's first part.
    Rewrite,
    /// It is the answer's first part as it stands: a person dropped it, because they found it in its room or want it
    /// nowhere, and posting the text anew would double it.
    Stand,
    /// An edit behind it makes its message the answer's first part.
    Edit {
        /// Whether its message is in the room, so that an earlier edit of it may still be on its way.
        is_shown: bool,
    },
}

/// What is left of a placeholder when its run ends without a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRetract {
    /// It is forgotten: nothing of it shows, or it stays unknown whether anything does.
    LetGo,
    /// Its message is deleted as soon as it is there.
    Delete {
        /// What its entry says until then.
        left: PlaceholderLeft,
    },
}

/// What the entry of a placeholder says that is to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceholderLeft {
    /// Nothing: it was sent already.
    Nothing,
    /// A mark without any words of an answer.
    Mark,
    /// The same, begun as a stream: the post still has to be found in the form in which it was started.
    StreamedMark,
}

impl HeldPlaceholder {
    /// Whether no byte of it ever left.
    fn is_untouched(&self) -> bool {
        self.stage == PostStage::Pending && self.attempts == 0
    }

    /// Whether it is on the platform or may come to be.
    fn may_be_seen(&self) -> bool {
        match self.stage {
            PostStage::Pending | PostStage::Leased | PostStage::Unknown | PostStage::Sent => true,
            PostStage::Held | PostStage::Quarantined | PostStage::Dead | PostStage::Replaced => {
                false
            }
        }
    }

    /// How an answer takes its place; `says_the_same` = it says what the answer's first part says. One that waits
    /// for a person may be found in the room by them.
    #[must_use]
    pub fn on_answer(&self, says_the_same: bool) -> OnAnswer {
        if says_the_same && is_dropped(self.stage, self.dead_cause) {
            OnAnswer::Stand
        } else if !self.may_be_seen() && self.stage != PostStage::Held {
            OnAnswer::LetGo
        } else if self.is_untouched() {
            OnAnswer::Rewrite
        } else {
            OnAnswer::Edit {
                is_shown: self.stage == PostStage::Sent,
            }
        }
    }

    /// What is left of it when its run ends without a word.
    #[must_use]
    pub fn on_retract(&self) -> OnRetract {
        if self.is_untouched() || !self.may_be_seen() {
            return OnRetract::LetGo;
        }
        let left = match (self.stage, self.is_streamed) {
            (PostStage::Sent, _) => PlaceholderLeft::Nothing,
            (_, false) => PlaceholderLeft::Mark,
            (_, true) => PlaceholderLeft::StreamedMark,
        };
        OnRetract::Delete { left }
    }
}

/// An edit or a deletion that waited for the post whose message it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follower {
    /// Whether it takes the message away.
    pub is_deletion: bool,
    /// Whether it says what the post said.
    pub says_the_same: bool,
    /// Where the post stands.
    pub post: PostStage,
    /// Why it is never sent, if it is not.
    pub post_dead_cause: Option<DeadCause>,
    /// Whether its message is known.
    pub has_message: bool,
}

/// What becomes of an edit or a deletion when its turn to be sent comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTurn {
    /// It is done to the message.
    Do,
    /// It is not done, and the post stays as it is: a person dropped it, because they found it in its room or want
    /// it nowhere, and posting the text anew would double it.
    Drop,
    /// There is no message to delete, so nothing is done.
    Forget,
    /// There is no message to edit: later messages of the answer say the text, or else it is posted.
    SayElsewhere,
}

impl Follower {
    /// What becomes of it when its turn to be sent comes.
    #[must_use]
    pub fn on_turn(&self) -> OnTurn {
        if self.post == PostStage::Sent && self.has_message {
            OnTurn::Do
        } else if self.is_deletion {
            OnTurn::Forget
        } else if self.says_the_same && is_dropped(self.post, self.post_dead_cause) {
            OnTurn::Drop
        } else {
            OnTurn::SayElsewhere
        }
    }
}

/// Whether a person dropped a post.
fn is_dropped(stage: PostStage, dead_cause: Option<DeadCause>) -> bool {
    stage == PostStage::Dead && dead_cause == Some(DeadCause::Dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYWHERE: [(PostStage, u32); 10] = [
        (PostStage::Pending, 0),
        (PostStage::Pending, 1),
        (PostStage::Leased, 1),
        (PostStage::Unknown, 1),
        (PostStage::Sent, 1),
        (PostStage::Held, 1),
        (PostStage::Held, 0),
        (PostStage::Quarantined, 1),
        (PostStage::Dead, 1),
        (PostStage::Replaced, 1),
    ];

    #[test]
    fn wherever_a_placeholder_stands_an_answer_takes_its_place_and_silence_takes_it_back() {
        let edit = OnAnswer::Edit { is_shown: false };
        let shown = OnAnswer::Edit { is_shown: true };
        let delete = |left| OnRetract::Delete { left };
        let expected = [
            (OnAnswer::Rewrite, OnRetract::LetGo, OnRetract::LetGo),
            (
                edit,
                delete(PlaceholderLeft::Mark),
                delete(PlaceholderLeft::StreamedMark),
            ),
            (
                edit,
                delete(PlaceholderLeft::Mark),
                delete(PlaceholderLeft::StreamedMark),
            ),
            (
                edit,
                delete(PlaceholderLeft::Mark),
                delete(PlaceholderLeft::StreamedMark),
            ),
            (
                shown,
                delete(PlaceholderLeft::Nothing),
                delete(PlaceholderLeft::Nothing),
            ),
            (edit, OnRetract::LetGo, OnRetract::LetGo),
            (edit, OnRetract::LetGo, OnRetract::LetGo),
            (OnAnswer::LetGo, OnRetract::LetGo, OnRetract::LetGo),
            (OnAnswer::LetGo, OnRetract::LetGo, OnRetract::LetGo),
            (OnAnswer::LetGo, OnRetract::LetGo, OnRetract::LetGo),
        ];
        for ((stage, attempts), expected) in EVERYWHERE.into_iter().zip(expected) {
            let held = |is_streamed| HeldPlaceholder {
                stage,
                attempts,
                is_streamed,
                dead_cause: None,
            };
            let (plain, streamed) = (held(false), held(true));
            for says_the_same in [false, true] {
                let answered = plain.on_answer(says_the_same);
                let found = (answered, plain.on_retract(), streamed.on_retract());
                assert_eq!(found, expected, "{stage:?} after {attempts} attempts");
                assert_eq!(streamed.on_answer(says_the_same), expected.0, "{stage:?}");
            }
        }
    }

    #[test]
    fn what_a_person_dropped_is_not_said_again_by_the_answer_that_begins_like_it() {
        let table = [
            (DeadCause::Dropped, true, OnAnswer::Stand),
            (DeadCause::Dropped, false, OnAnswer::LetGo),
            (DeadCause::GivenUp, true, OnAnswer::LetGo),
        ];
        for (cause, says_the_same, expected) in table {
            let held = HeldPlaceholder {
                stage: PostStage::Dead,
                attempts: 1,
                is_streamed: false,
                dead_cause: Some(cause),
            };
            assert_eq!(held.on_answer(says_the_same), expected, "{cause:?}");
            assert_eq!(held.on_retract(), OnRetract::LetGo, "{cause:?}");
        }
    }

    #[test]
    fn a_placeholder_shows_once_its_message_is_known() {
        let table = [
            (PostStage::Pending, false, PlaceholderShowing::Waits),
            (PostStage::Leased, false, PlaceholderShowing::Waits),
            (PostStage::Unknown, false, PlaceholderShowing::Waits),
            (PostStage::Sent, true, PlaceholderShowing::Shows),
            (PostStage::Sent, false, PlaceholderShowing::Over),
            (PostStage::Held, false, PlaceholderShowing::Over),
            (PostStage::Dead, false, PlaceholderShowing::Over),
            (PostStage::Replaced, true, PlaceholderShowing::Over),
        ];
        for (stage, has_message, expected) in table {
            assert_eq!(showing(stage, has_message), expected, "{stage:?}");
        }
    }

    #[test]
    fn what_waited_for_a_message_is_done_to_it_or_said_elsewhere_once() {
        let sent = Follower {
            is_deletion: false,
            says_the_same: false,
            post: PostStage::Sent,
            post_dead_cause: None,
            has_message: true,
        };
        let given_up = Follower {
            post: PostStage::Dead,
            post_dead_cause: Some(DeadCause::GivenUp),
            has_message: false,
            ..sent
        };
        let dropped = Follower {
            post_dead_cause: Some(DeadCause::Dropped),
            ..given_up
        };
        let repeated = |follower| Follower {
            says_the_same: true,
            ..follower
        };
        let table = [
            (sent, OnTurn::Do, OnTurn::Do),
            (repeated(sent), OnTurn::Do, OnTurn::Do),
            (given_up, OnTurn::SayElsewhere, OnTurn::Forget),
            (repeated(given_up), OnTurn::SayElsewhere, OnTurn::Forget),
            (dropped, OnTurn::SayElsewhere, OnTurn::Forget),
            (repeated(dropped), OnTurn::Drop, OnTurn::Forget),
        ];
        for (follower, edit, deletion) in table {
            assert_eq!(follower.on_turn(), edit, "{follower:?}");
            let follower = Follower {
                is_deletion: true,
                ..follower
            };
            assert_eq!(follower.on_turn(), deletion, "{follower:?}");
        }
    }
}
