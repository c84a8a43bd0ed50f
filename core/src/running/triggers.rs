//! What becomes of the run of a turn and an agent when the turn addresses it, no longer does, or is deleted.
//!
//! A turn is in one run for each agent, ever.

use crate::addressing::RunVerdict;
use crate::run::{RunStage, StopCause};

/// The run of a turn and an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriggeredRun {
    /// Where it stands.
    pub stage: RunStage,
    /// Why it was asked to stop, or ended.
    pub stop_cause: Option<StopCause>,
    /// Whether it answers other turns, too.
    pub is_shared: bool,
}

/// What follows for an agent that a turn addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnAddress {
    /// It is noted, and nothing else: it is not to be answered, or has its run.
    Note,
    /// The turn joins a run, or gets one.
    Ask,
    /// The run that an edit had ended is queued again.
    BringBack,
}

/// What follows for an agent that a turn addresses.
#[must_use]
pub fn on_address(verdict: RunVerdict, run: Option<&TriggeredRun>) -> OnAddress {
    match run {
        _ if verdict != RunVerdict::Run => OnAddress::Note,
        None => OnAddress::Ask,
        Some(run)
            if run.stage == RunStage::Cancelled && run.stop_cause == Some(StopCause::Edited) =>
        {
            OnAddress::BringBack
        }
        Some(_) => OnAddress::Note,
    }
}

/// What follows for an agent that an edited turn no longer addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnaddress {
    /// What is being answered, or was, stays.
    Keep,
    /// The run goes on without the turn.
    Leave,
    /// The run ends.
    End,
}

/// What follows for an agent that an edited turn no longer addresses.
#[must_use]
pub fn on_unaddress(run: Option<&TriggeredRun>) -> OnUnaddress {
    match run {
        Some(run) if run.stage.waits() && run.is_shared => OnUnaddress::Leave,
        Some(run) if run.stage.waits() => OnUnaddress::End,
        _ => OnUnaddress::Keep,
    }
}

/// What follows for a run of a turn that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDelete {
    /// It was all that the run was to answer: the run ends.
    End,
    /// The run goes on without the turn.
    Leave,
    /// The run has read the turn: another one answers the rest.
    AnswerRest,
}

/// What follows for a run of a turn that is deleted.
#[must_use]
pub fn on_delete(run: &TriggeredRun) -> OnDelete {
    match (run.is_shared, run.stage) {
        (false, _) => OnDelete::End,
        (true, RunStage::Leased) => OnDelete::AnswerRest,
        (true, _) => OnDelete::Leave,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stage: RunStage) -> TriggeredRun {
        TriggeredRun {
            stage,
            stop_cause: None,
            is_shared: false,
        }
    }

    #[test]
    fn a_turn_asks_once_and_again_only_where_an_edit_had_taken_its_address_away() {
        let ended = |stop_cause| TriggeredRun {
            stop_cause,
            ..run(RunStage::Cancelled)
        };
        let table = [
            (None, OnAddress::Ask),
            (Some(ended(Some(StopCause::Edited))), OnAddress::BringBack),
            (Some(ended(Some(StopCause::Stopped))), OnAddress::Note),
            (Some(ended(None)), OnAddress::Note),
            (Some(run(RunStage::Queued)), OnAddress::Note),
            (
                // Asked to stop by that edit, and not ended yet.
                Some(TriggeredRun {
                    stop_cause: Some(StopCause::Edited),
                    ..run(RunStage::Leased)
                }),
                OnAddress::Note,
            ),
            (Some(run(RunStage::Done)), OnAddress::Note),
        ];
        for (run, expected) in table {
            assert_eq!(
                on_address(RunVerdict::Run, run.as_ref()),
                expected,
                "{run:?}"
            );
            let stop = RunVerdict::Stop { of_everybody: true };
            for verdict in [RunVerdict::TooOld, RunVerdict::LimitMet, stop] {
                assert_eq!(on_address(verdict, run.as_ref()), OnAddress::Note);
            }
        }
    }

    #[test]
    fn what_is_answered_stays_when_its_address_goes_and_is_done_again_when_its_turn_goes() {
        use {OnDelete as D, OnUnaddress as U};
        let table = [
            (RunStage::Queued, U::End, U::Leave, D::Leave),
            (RunStage::Waiting, U::End, U::Leave, D::Leave),
            (RunStage::Held, U::End, U::Leave, D::Leave),
            (RunStage::Leased, U::Keep, U::Keep, D::AnswerRest),
            (RunStage::Quarantined, U::Keep, U::Keep, D::Leave),
            (RunStage::Done, U::Keep, U::Keep, D::Leave),
            (RunStage::Cancelled, U::Keep, U::Keep, D::Leave),
            (RunStage::Dead, U::Keep, U::Keep, D::Leave),
        ];
        for (stage, unaddressed, unaddressed_shared, deleted_shared) in table {
            let alone = run(stage);
            let shared = TriggeredRun {
                is_shared: true,
                ..alone
            };
            assert_eq!(on_unaddress(Some(&alone)), unaddressed, "{stage:?}");
            assert_eq!(on_unaddress(Some(&shared)), unaddressed_shared, "{stage:?}");
            assert_eq!(on_delete(&alone), OnDelete::End, "{stage:?}");
            assert_eq!(on_delete(&shared), deleted_shared, "{stage:?}");
        }
        assert_eq!(on_unaddress(None), U::Keep);
    }
}
