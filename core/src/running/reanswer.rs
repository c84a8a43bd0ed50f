//! Whether an edited question is answered again, and what a reply replaces.

use vocative_contract::envelope::SenderKind;

use crate::addressing::{RunVerdict, Verdict, edited_at_ms};
use crate::run::{RunStage, StopCause};
use crate::turn::TurnKind;

/// An edit that says something else than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    /// When it was made, in milliseconds since the Unix epoch.
    at_ms: i64,
    /// How long after an answer it is answered again, in milliseconds.
    within_ms: i64,
}

impl Edit {
    /// The edit of a question that may be answered again: by a person who may ask, where answering again is wanted.
    #[must_use]
    pub fn of_question(
        verdict: &Verdict,
        sender: SenderKind,
        marker: Option<&str>,
        received_at_ms: i64,
    ) -> Option<Self> {
        let within_ms = verdict.edit_answer_within_ms;
        let is_asked = verdict.runs == RunVerdict::Run && sender == SenderKind::Person;
        (is_asked && within_ms > 0).then(|| Self {
            at_ms: marker.and_then(edited_at_ms).unwrap_or(received_at_ms),
            within_ms,
        })
    }

    /// What follows for the run of the question. One that waits reads the newest text by itself.
    #[must_use]
    pub fn answers_again(&self, run: &AnsweredRun) -> Reanswer {
        let since_ms = self.at_ms.saturating_sub(self.within_ms);
        match run.stage {
            RunStage::Leased if run.stop_cause.is_none() => Reanswer::Instead,
            RunStage::Done | RunStage::Cancelled | RunStage::Dead
                if run.has_answered
                    && run.finished_at_ms.is_some_and(|at_ms| at_ms >= since_ms) =>
            {
                Reanswer::Again
            }
            _ => Reanswer::No,
        }
    }
}

/// The run of an edited question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnsweredRun {
    /// Where it stands.
    pub stage: RunStage,
    /// Why it was asked to stop, or ended.
    pub stop_cause: Option<StopCause>,
    /// When it ended, in milliseconds since the Unix epoch.
    pub finished_at_ms: Option<i64>,
    /// Whether it has an answer, or had one that went with what it was made from.
    pub has_answered: bool,
}

/// What follows for the run of an edited question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reanswer {
    /// Nothing.
    No,
    /// Another run answers it again.
    Again,
    /// Another run answers it in the place of this one, which ends.
    Instead,
}

/// Whether a reply of a run takes the place of the answer that its run holds: a notice stands by itself, and what a
/// run has said stands once it has ended.
#[must_use]
pub fn replaces_answer(reply: TurnKind, run: RunStage) -> bool {
    reply == TurnKind::Message && run == RunStage::Leased
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDIT: Edit = Edit {
        at_ms: 100_000,
        within_ms: 60_000,
    };

    #[test]
    fn a_question_of_a_person_who_may_ask_is_answered_again_where_that_is_wanted() {
        let verdict = |runs, edit_answer_within_ms| Verdict {
            runs,
            edit_answer_within_ms,
            ..Verdict::default()
        };
        let wanted = verdict(RunVerdict::Run, 60_000);
        let table = [
            (&wanted, SenderKind::Person, Some("100"), Some(100_000)),
            (&wanted, SenderKind::Person, None, Some(170_000)),
            (&wanted, SenderKind::Person, Some("m1"), Some(170_000)),
            (&wanted, SenderKind::Bot, Some("100"), None),
            (&verdict(RunVerdict::Run, 0), SenderKind::Person, None, None),
            (
                &verdict(RunVerdict::TooOld, 60_000),
                SenderKind::Person,
                None,
                None,
            ),
        ];
        for (verdict, sender, marker, expected) in table {
            let edit = Edit::of_question(verdict, sender, marker, 170_000);
            assert_eq!(
                edit.map(|edit| edit.at_ms),
                expected,
                "{sender:?} {marker:?}"
            );
        }
    }

    #[test]
    fn an_edit_soon_after_an_answer_is_answered_again_and_one_of_a_run_at_work_instead() {
        let run = |stage| AnsweredRun {
            stage,
            stop_cause: None,
            finished_at_ms: Some(40_000),
            has_answered: true,
        };
        let done = run(RunStage::Done);
        let table = [
            (done, Reanswer::Again),
            (run(RunStage::Cancelled), Reanswer::Again),
            (run(RunStage::Dead), Reanswer::Again),
            (
                AnsweredRun {
                    finished_at_ms: Some(39_999),
                    ..done
                },
                Reanswer::No,
            ),
            (
                AnsweredRun {
                    finished_at_ms: None,
                    ..done
                },
                Reanswer::No,
            ),
            (
                AnsweredRun {
                    has_answered: false,
                    ..done
                },
                Reanswer::No,
            ),
            (run(RunStage::Leased), Reanswer::Instead),
            (
                AnsweredRun {
                    has_answered: false,
                    ..run(RunStage::Leased)
                },
                Reanswer::Instead,
            ),
            (
                AnsweredRun {
                    stop_cause: Some(StopCause::Stopped),
                    ..run(RunStage::Leased)
                },
                Reanswer::No,
            ),
            (run(RunStage::Queued), Reanswer::No),
            (run(RunStage::Waiting), Reanswer::No),
            (run(RunStage::Held), Reanswer::No),
            (run(RunStage::Quarantined), Reanswer::No),
        ];
        for (run, expected) in table {
            assert_eq!(EDIT.answers_again(&run), expected, "{run:?}");
        }
    }

    #[test]
    fn only_an_answer_of_a_run_at_work_replaces_one() {
        assert!(replaces_answer(TurnKind::Message, RunStage::Leased));
        assert!(!replaces_answer(TurnKind::Notice, RunStage::Leased));
        assert!(!replaces_answer(TurnKind::Message, RunStage::Done));
    }
}
