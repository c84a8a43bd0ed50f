//! Which runs end when a person says stop, or gives the command; what becomes of a run that is told to stop, and of
//! one that is brought back.

use crate::run::{RunStage, StopCause};

/// An open run where stop was said, or of a thread that was opened there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppableRun {
    /// Whether one of its messages stands behind the one that says stop.
    pub is_asked_later: bool,
    /// Whether other people than the one who says stop have asked for it, too.
    pub is_asked_by_others: bool,
}

impl StoppableRun {
    /// Whether it ends: all that it answers was asked before the stop and, unless `of_everybody`, by the one person
    /// alone.
    #[must_use]
    pub fn ends(self, of_everybody: bool) -> bool {
        !self.is_asked_later && (of_everybody || !self.is_asked_by_others)
    }
}

/// What becomes of a run that is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It ends at once: no worker has it.
    Ended,
    /// Its worker ends it, or the next claim or start if that dies.
    Asked,
    /// It had ended before.
    Over,
}

/// What becomes of a run of this stage that is told to stop.
#[must_use]
pub fn stop(stage: RunStage) -> Stop {
    match stage {
        RunStage::Queued | RunStage::Waiting | RunStage::Held | RunStage::Quarantined => {
            Stop::Ended
        }
        RunStage::Leased => Stop::Asked,
        RunStage::Done | RunStage::Cancelled | RunStage::Dead => Stop::Over,
    }
}

/// A run that is queued again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequeuedRun {
    /// Where it stands, or stood.
    pub stage: RunStage,
    /// Why it was to stop.
    pub stop_cause: Option<StopCause>,
    /// Attempts that count.
    pub attempts: u32,
    /// How many attempts did not count.
    pub put_offs: u32,
}

impl RequeuedRun {
    /// The same run as it is queued: it begins again unless it was stopped before it began. What was held or set aside
    /// is still to stop if it was.
    #[must_use]
    pub fn queued(self) -> Self {
        let (attempts, put_offs) = match self.stage {
            RunStage::Cancelled => (self.attempts, self.put_offs.min(self.attempts)),
            _ => (0, 0),
        };
        let stop_cause = match self.stage {
            RunStage::Held | RunStage::Quarantined => self.stop_cause,
            _ => None,
        };
        Self {
            stage: RunStage::Queued,
            stop_cause,
            attempts,
            put_offs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_no_worker_has_ends_at_once() {
        let table = [
            (RunStage::Queued, Stop::Ended),
            (RunStage::Waiting, Stop::Ended),
            (RunStage::Held, Stop::Ended),
            (RunStage::Quarantined, Stop::Ended),
            (RunStage::Leased, Stop::Asked),
            (RunStage::Done, Stop::Over),
            (RunStage::Cancelled, Stop::Over),
            (RunStage::Dead, Stop::Over),
        ];
        for (stage, expected) in table {
            assert_eq!(stop(stage), expected, "{stage:?}");
        }
    }

    #[test]
    fn what_is_brought_back_begins_again_unless_it_was_stopped_before_it_began() {
        let cause = Some(StopCause::Edited);
        let table = [
            (RunStage::Cancelled, (None, 2, 2)),
            (RunStage::Dead, (None, 0, 0)),
            (RunStage::Done, (None, 0, 0)),
            (RunStage::Held, (cause, 0, 0)),
            (RunStage::Quarantined, (cause, 0, 0)),
        ];
        for (stage, expected) in table {
            let run = RequeuedRun {
                stage,
                stop_cause: cause,
                attempts: 2,
                put_offs: 3,
            };
            let queued = run.queued();
            let found = (queued.stop_cause, queued.attempts, queued.put_offs);
            assert_eq!(found, expected, "{stage:?}");
        }
    }

    #[test]
    fn stop_reaches_what_was_asked_before_it_and_an_admins_also_what_others_asked() {
        let table = [
            (false, false, [true, true]),
            (false, true, [false, true]),
            (true, false, [false, false]),
            (true, true, [false, false]),
        ];
        for (is_asked_later, is_asked_by_others, expected) in table {
            let run = StoppableRun {
                is_asked_later,
                is_asked_by_others,
            };
            assert_eq!([run.ends(false), run.ends(true)], expected, "{run:?}");
        }
    }
}
