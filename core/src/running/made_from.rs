//! Which of our turns are deleted with something that their run is known to have read.

use crate::run::RunStage;
use crate::turn::TurnKind;

/// How much of what a run reads counts as what its answer was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceExtent {
    /// A message is deleted: its answers go with it, and what was made from it for other questions, if that is in the
    /// room already. An answer to another person's question that is still on its way is given: nothing is lost.
    FromMessage,
    /// All that a person said is deleted: what was answered in threads that they opened goes, too. A thread whose first
    /// message alone is deleted keeps its answers to others.
    FromEverything,
}

/// A turn of ours, of a run that read what is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadingTurn {
    /// Its place in the order of capture.
    pub seq: i64,
    /// What it is.
    pub kind: TurnKind,
    /// Whether what is deleted asked for its run.
    pub is_asked: bool,
    /// From where on its run is known to have read it, in the order of capture; 0 = from its beginning, `None` = it
    /// is not known.
    pub read_at_seq: Option<i64>,
    /// Where its run stands.
    pub stage: RunStage,
    /// Whether a post of it is not in the room yet.
    pub is_on_its_way: bool,
}

impl ReadingTurn {
    /// Whether it is deleted with what its run read.
    #[must_use]
    pub fn goes(self, made: SourceExtent) -> bool {
        !self.is_of_before() && !self.is_still_given(made)
    }

    /// An answer that a run at work is to replace was made by an earlier run, from what was read before it.
    fn is_of_before(self) -> bool {
        let may_be_of_before = self.read_at_seq.is_none_or(|read_at| read_at > self.seq);
        let is_at_its_end = match self.stage {
            RunStage::Done | RunStage::Cancelled | RunStage::Dead => true,
            RunStage::Queued
            | RunStage::Waiting
            | RunStage::Leased
            | RunStage::Held
            | RunStage::Quarantined => false,
        };
        self.kind == TurnKind::Message && may_be_of_before && !is_at_its_end
    }

    /// Whether it answers somebody else, who has not got it yet.
    fn is_still_given(self, made: SourceExtent) -> bool {
        made == SourceExtent::FromMessage && !self.is_asked && self.is_on_its_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer that is in the room, of a run that is done.
    const ANSWER: ReadingTurn = ReadingTurn {
        seq: 5,
        kind: TurnKind::Message,
        is_asked: false,
        read_at_seq: Some(0),
        stage: RunStage::Done,
        is_on_its_way: false,
    };

    #[test]
    fn an_answer_to_somebody_else_is_given_unless_everything_goes() {
        let on_its_way = ReadingTurn {
            is_on_its_way: true,
            ..ANSWER
        };
        let asked = ReadingTurn {
            is_asked: true,
            ..on_its_way
        };
        let table = [
            (ANSWER, [true, true]),
            (on_its_way, [false, true]),
            (asked, [true, true]),
        ];
        for (turn, expected) in table {
            let goes = [SourceExtent::FromMessage, SourceExtent::FromEverything]
                .map(|made| turn.goes(made));
            assert_eq!(goes, expected, "{turn:?}");
        }
    }

    #[test]
    fn an_answer_that_a_run_at_work_is_to_replace_stays() {
        let read = |stage, read_at_seq| ReadingTurn {
            stage,
            read_at_seq,
            ..ANSWER
        };
        let table = [
            (read(RunStage::Done, None), true),
            (read(RunStage::Leased, None), false),
            (read(RunStage::Held, None), false),
            (read(RunStage::Quarantined, None), false),
            (read(RunStage::Leased, Some(6)), false),
            (read(RunStage::Leased, Some(5)), true),
            (read(RunStage::Leased, Some(0)), true),
        ];
        for (turn, expected) in table {
            assert_eq!(
                turn.goes(SourceExtent::FromEverything),
                expected,
                "{turn:?}"
            );
            let tool = ReadingTurn {
                kind: TurnKind::ToolResult,
                ..turn
            };
            assert!(tool.goes(SourceExtent::FromEverything), "{tool:?}");
        }
    }
}
