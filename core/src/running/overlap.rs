//! What a further question does to the open runs of its conversation and agent: it joins one that waits, or has a
//! run of its own, which may take over what the others were to answer.

use crate::addressing::Overlap;
use crate::run::RunStage;
use crate::slots::PLACE_KEPT_MS_MAX;

/// The most messages that are answered together. A later message waits in another run and does not interrupt,
/// so that a room that never rests is answered too.
pub const TRIGGERS_MAX: u32 = 20;

/// An open run that is not asked to stop, as far as a further question must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRun {
    /// Where it stands.
    pub stage: RunStage,
    /// Whether it was ever claimed: it reads as of then, so it gets no other trigger.
    pub is_begun: bool,
    /// How many messages it answers.
    pub triggers: u32,
    /// Whether other people than the one who asks have asked for it, too.
    pub is_asked_by_others: bool,
    /// Whether one of its messages was asked before the agent began afresh.
    pub is_asked_before_fresh_start: bool,
    /// Whether it replaces an answer of its own question.
    pub replaces_answer: bool,
    /// When it is due, in milliseconds since the Unix epoch.
    pub not_before_ms: i64,
}

impl OpenRun {
    /// Whether its messages may be answered together with others.
    fn is_shareable(&self) -> bool {
        !self.replaces_answer && !self.is_asked_before_fresh_start
    }
}

/// A message that an agent is to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnansweredMessage {
    /// What becomes of it where an earlier one waits.
    pub overlap: Overlap,
    /// When its answer is due, in milliseconds since the Unix epoch.
    pub not_before_ms: i64,
    /// When it came, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

impl UnansweredMessage {
    /// Whether it is answered together with the messages of this run. A message that is due now does not wait for a run
    /// that is due much later.
    #[must_use]
    pub fn joins(&self, run: &OpenRun) -> bool {
        let is_allowed = match self.overlap {
            Overlap::Queue | Overlap::Drop => false,
            Overlap::Auto => !run.is_asked_by_others,
            Overlap::Collect | Overlap::Interrupt => true,
        };
        is_allowed
            && run.is_shareable()
            && run.stage == RunStage::Queued
            && !run.is_begun
            && run.triggers < TRIGGERS_MAX
            && run.not_before_ms <= self.due_by_ms()
    }

    /// Whether it is not answered because this run works, or waits for its turn. A run that is due much later, or that
    /// waits for people, is no reason.
    #[must_use]
    pub fn is_dropped_for(&self, run: &OpenRun) -> bool {
        self.overlap == Overlap::Drop
            && run.stage != RunStage::Waiting
            && run.not_before_ms <= self.due_by_ms()
    }

    /// The latest time at which a run may be due that answers this question, too.
    fn due_by_ms(&self) -> i64 {
        self.not_before_ms.max(self.now_ms + PLACE_KEPT_MS_MAX)
    }

    /// The runs that end because the run of this question answers what they were to answer: all that may be shared,
    /// or none where that would be too much for one answer. `triggers` are those of its own run.
    #[must_use]
    pub fn takes_over<R>(&self, triggers: u32, others: Vec<(R, OpenRun)>) -> Vec<R> {
        if self.overlap != Overlap::Interrupt {
            return Vec::new();
        }
        let shareable = others.into_iter().filter(|(_, run)| run.is_shareable());
        let (runs, counts): (Vec<R>, Vec<u32>) =
            shareable.map(|(id, run)| (id, run.triggers)).unzip();
        let together = counts.into_iter().fold(triggers, u32::saturating_add);
        if together > TRIGGERS_MAX {
            return Vec::new();
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_dropped_for_what_is_answered_now_alone() {
        let leased = but(|run| run.stage = RunStage::Leased);
        let later = but(|run| run.not_before_ms = NOW_MS + PLACE_KEPT_MS_MAX + 1);
        let of_people = but(|run| run.stage = RunStage::Waiting);
        // At night, when nothing is answered.
        let quiet = UnansweredMessage {
            not_before_ms: later.not_before_ms,
            ..question(Overlap::Drop)
        };
        assert!(quiet.is_dropped_for(&later));
        let table = [
            (WAITS, true),
            (leased, true),
            (later, false),
            (of_people, false),
        ];
        for (run, is_dropped) in table {
            assert_eq!(question(Overlap::Drop).is_dropped_for(&run), is_dropped);
            assert!(!question(Overlap::Drop).joins(&run));
            assert!(!question(Overlap::Queue).is_dropped_for(&run));
        }
    }

    const NOW_MS: i64 = 1_000_000;
    const WAITS: OpenRun = OpenRun {
        stage: RunStage::Queued,
        is_begun: false,
        triggers: 1,
        is_asked_by_others: false,
        is_asked_before_fresh_start: false,
        replaces_answer: false,
        not_before_ms: 0,
    };

    fn question(overlap: Overlap) -> UnansweredMessage {
        UnansweredMessage {
            overlap,
            not_before_ms: 0,
            now_ms: NOW_MS,
        }
    }

    fn but(change: fn(&mut OpenRun)) -> OpenRun {
        let mut run = WAITS;
        change(&mut run);
        run
    }

    #[test]
    fn a_question_joins_what_waits_and_may_be_answered_with_it() {
        let begun = |run: &mut OpenRun| run.is_begun = true;
        let leased = |run: &mut OpenRun| run.stage = RunStage::Leased;
        let before = |run: &mut OpenRun| run.is_asked_before_fresh_start = true;
        let kept = |run: &mut OpenRun| run.not_before_ms = NOW_MS + PLACE_KEPT_MS_MAX;
        let later = |run: &mut OpenRun| run.not_before_ms = NOW_MS + PLACE_KEPT_MS_MAX + 1;
        let alone = [true, false, true, true];
        let table = [
            ("one's own", WAITS, alone),
            (
                "of others",
                but(|run| run.is_asked_by_others = true),
                [false, false, true, true],
            ),
            ("worked on", but(leased), [false; 4]),
            ("waits for another attempt", but(begun), [false; 4]),
            (
                "one below full",
                but(|run| run.triggers = TRIGGERS_MAX - 1),
                alone,
            ),
            ("full", but(|run| run.triggers = TRIGGERS_MAX), [false; 4]),
            ("asked before a fresh start", but(before), [false; 4]),
            (
                "answers an edit",
                but(|run| run.replaces_answer = true),
                [false; 4],
            ),
            ("due as late as a place is kept", but(kept), alone),
            ("due much later", but(later), [false; 4]),
        ];
        let overlaps = [
            Overlap::Auto,
            Overlap::Queue,
            Overlap::Collect,
            Overlap::Interrupt,
        ];
        for (name, run, expected) in table {
            let joins = overlaps.map(|overlap| question(overlap).joins(&run));
            assert_eq!(joins, expected, "{name}");
        }
    }

    #[test]
    fn a_question_that_is_due_later_itself_joins_what_is_due_by_then() {
        let later_ms = NOW_MS + 10 * PLACE_KEPT_MS_MAX;
        let run = OpenRun {
            not_before_ms: later_ms,
            ..WAITS
        };
        let question = UnansweredMessage {
            not_before_ms: later_ms,
            ..question(Overlap::Auto)
        };
        assert!(question.joins(&run));
    }

    #[test]
    fn an_interruption_takes_over_all_that_may_be_shared_or_nothing() {
        let leased = OpenRun {
            stage: RunStage::Leased,
            is_begun: true,
            ..WAITS
        };
        let holding = |triggers| OpenRun { triggers, ..leased };
        let again = OpenRun {
            replaces_answer: true,
            triggers: TRIGGERS_MAX,
            ..leased
        };
        let before = OpenRun {
            is_asked_before_fresh_start: true,
            ..WAITS
        };
        let full = vec![('a', holding(TRIGGERS_MAX - 1))];
        let apart = vec![('a', again), ('b', before), ('c', leased)];
        let table = [
            ("nothing is open", 1, vec![], ""),
            ("both", 1, vec![('a', leased), ('b', WAITS)], "ab"),
            ("as many as fit", 1, full.clone(), "a"),
            ("too many", 2, full, ""),
            ("not what is answered by itself", 1, apart, "c"),
        ];
        for (name, own, others, expected) in table {
            for overlap in [Overlap::Auto, Overlap::Queue, Overlap::Collect] {
                assert!(question(overlap).takes_over(own, others.clone()).is_empty());
            }
            let taken = question(Overlap::Interrupt).takes_over(own, others);
            assert_eq!(taken.into_iter().collect::<String>(), expected, "{name}");
        }
    }
}
