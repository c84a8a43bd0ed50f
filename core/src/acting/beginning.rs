//! Whether a tool call is made.

use crate::approving::{ApprovalState, Consent};
use crate::tool_call::{CallLimits, CallRule, CallState, Refusal};

/// How often a run makes the same call; further ones are refused.
const SAME_CALLS_MAX: u32 = 2;

/// What is known of a call when it is its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallFacts {
    /// How it stands.
    pub state: CallState,
    /// What follows when it is not known whether it acted.
    pub rule: CallRule,
    /// Whether its tool is still as it was when the call was asked for.
    pub is_as_asked: bool,
    /// Calls that the run began before it.
    pub run_calls: u32,
    /// Calls of this tool that the run began before it.
    pub run_tool_calls: u32,
    /// Calls of this tool that were begun today (UTC) for the person who asks.
    pub day_tool_calls: u32,
    /// Calls before it in the run's order that do the same, refused ones included.
    pub same_calls: u32,
    /// Whether the run began the same call in a step that was forgotten since.
    pub was_made_before: bool,
    /// Whether people have consented to it.
    pub consent: Consent,
    /// Whether a call before it in its step waits for a person: then it is not made yet.
    pub is_behind_open: bool,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// It is made.
    Make,
    /// It is not made.
    Refuse(Refusal),
    /// It may have acted, and is not made again.
    Unknown,
    /// A person is to be asked.
    Ask,
    /// A person was asked, or a call before it waits for one.
    Wait,
    /// It has its result.
    NotDue,
}

/// Decides what becomes of a call whose turn it is.
#[must_use]
pub fn begin(facts: &CallFacts, limits: &CallLimits) -> Beginning {
    let may_act_twice = facts.rule != CallRule::Once;
    match facts.state {
        CallState::Ready | CallState::Waiting => {}
        CallState::Running if may_act_twice && facts.is_as_asked => return Beginning::Make,
        CallState::Running if facts.rule == CallRule::Repeatable => {
            return Beginning::Refuse(Refusal::ToolChanged);
        }
        CallState::Running => return Beginning::Unknown,
        CallState::Done | CallState::Failed | CallState::Unknown | CallState::Denied => {
            return Beginning::NotDue;
        }
    }
    match facts.consent {
        Consent::Open => return Beginning::Wait,
        Consent::Refused(state) => return Beginning::Refuse(refusal_of(state)),
        Consent::NotNeeded | Consent::Given | Consent::Missing => {}
    }
    let is_met = |calls: u32, limit: Option<u32>| limit.is_some_and(|limit| calls >= limit);
    let refusal = if !facts.is_as_asked {
        Some(Refusal::ToolChanged)
    } else if facts.was_made_before && facts.rule != CallRule::Repeatable {
        Some(Refusal::MadeBefore)
    } else if facts.same_calls > SAME_CALLS_MAX {
        Some(Refusal::Circling)
    } else if facts.same_calls == SAME_CALLS_MAX {
        Some(Refusal::Repeated)
    } else if facts.run_calls >= limits.run_calls_max {
        Some(Refusal::RunBudget)
    } else if is_met(facts.run_tool_calls, limits.run_tool_calls_max) {
        Some(Refusal::ToolBudget)
    } else if is_met(facts.day_tool_calls, limits.day_tool_calls_max) {
        Some(Refusal::DayBudget)
    } else {
        None
    };
    match refusal {
        Some(refusal) => Beginning::Refuse(refusal),
        None if facts.consent == Consent::Missing => Beginning::Ask,
        None if facts.is_behind_open => Beginning::Wait,
        None => Beginning::Make,
    }
}

/// Why a call is not made, by how its approval ended.
fn refusal_of(state: ApprovalState) -> Refusal {
    match state {
        ApprovalState::Denied => Refusal::NotAllowed,
        ApprovalState::Expired => Refusal::Undecided,
        ApprovalState::Open
        | ApprovalState::Approved
        | ApprovalState::Cancelled
        | ApprovalState::Changed => Refusal::AskedInVain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: CallLimits = CallLimits {
        run_calls_max: 5,
        run_tool_calls_max: Some(3),
        day_tool_calls_max: Some(9),
    };

    fn fresh() -> CallFacts {
        CallFacts {
            state: CallState::Ready,
            rule: CallRule::Once,
            is_as_asked: true,
            run_calls: 0,
            run_tool_calls: 0,
            day_tool_calls: 0,
            same_calls: 0,
            was_made_before: false,
            consent: Consent::NotNeeded,
            is_behind_open: false,
        }
    }

    #[test]
    fn a_call_is_made_within_its_limits() {
        use Beginning::{Make, Refuse};
        type Change = fn(&mut CallFacts);
        let cases: [(Change, Beginning); 13] = [
            (|_| {}, Make),
            (|facts| facts.run_calls = 4, Make),
            (|facts| facts.run_calls = 5, Refuse(Refusal::RunBudget)),
            (|facts| facts.run_tool_calls = 2, Make),
            (
                |facts| facts.run_tool_calls = 3,
                Refuse(Refusal::ToolBudget),
            ),
            (|facts| facts.day_tool_calls = 8, Make),
            (|facts| facts.day_tool_calls = 9, Refuse(Refusal::DayBudget)),
            (|facts| facts.same_calls = 1, Make),
            (|facts| facts.same_calls = 2, Refuse(Refusal::Repeated)),
            (|facts| facts.same_calls = 3, Refuse(Refusal::Circling)),
            (
                |facts| facts.was_made_before = true,
                Refuse(Refusal::MadeBefore),
            ),
            (
                |facts| (facts.was_made_before, facts.rule) = (true, CallRule::Repeatable),
                Make,
            ),
            (
                |facts| facts.is_as_asked = false,
                Refuse(Refusal::ToolChanged),
            ),
        ];
        for (change, expected) in cases {
            let mut facts = fresh();
            change(&mut facts);
            assert_eq!(begin(&facts, &LIMITS), expected, "{facts:?}");
        }
        let unlimited = CallLimits {
            run_calls_max: u32::MAX,
            run_tool_calls_max: None,
            day_tool_calls_max: None,
        };
        let many = CallFacts {
            run_tool_calls: 1_000,
            day_tool_calls: 1_000,
            ..fresh()
        };
        assert_eq!(begin(&many, &unlimited), Make);
    }

    #[test]
    fn only_a_call_that_may_act_twice_is_made_again() {
        for rule in CallRule::ALL {
            for state in CallState::ALL {
                let facts = CallFacts {
                    state,
                    rule,
                    // A call that was begun before counts itself among the calls of the run.
                    run_calls: 5,
                    ..fresh()
                };
                let expected = match (state, rule) {
                    (CallState::Ready | CallState::Waiting, _) => {
                        Beginning::Refuse(Refusal::RunBudget)
                    }
                    (CallState::Running, CallRule::Once) => Beginning::Unknown,
                    (CallState::Running, _) => Beginning::Make,
                    _ => Beginning::NotDue,
                };
                assert_eq!(begin(&facts, &LIMITS), expected, "{facts:?}");
            }
        }
        let changed = CallFacts {
            state: CallState::Running,
            rule: CallRule::Keyed,
            is_as_asked: false,
            ..fresh()
        };
        assert_eq!(begin(&changed, &LIMITS), Beginning::Unknown);
        let harmless = CallFacts {
            rule: CallRule::Repeatable,
            ..changed
        };
        let refused = Beginning::Refuse(Refusal::ToolChanged);
        assert_eq!(begin(&harmless, &LIMITS), refused);
    }

    #[test]
    fn a_call_that_needs_a_person_is_made_only_with_their_consent() {
        use Beginning::{Ask, Make, Refuse, Wait};
        let full = LIMITS.run_calls_max;
        let table = [
            (Consent::NotNeeded, false, 0, Make),
            (Consent::Given, false, 0, Make),
            (Consent::Missing, false, 0, Ask),
            (Consent::Open, false, 0, Wait),
            // A person is asked about a call behind a waiting one at once, but the call is not made before that one.
            (Consent::NotNeeded, true, 0, Wait),
            (Consent::Given, true, 0, Wait),
            (Consent::Missing, true, 0, Ask),
            // A call that would be refused anyway is not put to a person.
            (Consent::Missing, false, full, Refuse(Refusal::RunBudget)),
            (
                Consent::Refused(ApprovalState::Denied),
                false,
                0,
                Refuse(Refusal::NotAllowed),
            ),
            (
                Consent::Refused(ApprovalState::Expired),
                false,
                0,
                Refuse(Refusal::Undecided),
            ),
            (
                Consent::Refused(ApprovalState::Cancelled),
                true,
                0,
                Refuse(Refusal::AskedInVain),
            ),
        ];
        for (consent, is_behind_open, run_calls, expected) in table {
            for state in [CallState::Ready, CallState::Waiting] {
                let facts = CallFacts {
                    state,
                    consent,
                    is_behind_open,
                    run_calls,
                    ..fresh()
                };
                assert_eq!(begin(&facts, &LIMITS), expected, "{facts:?}");
            }
        }
        // A tool that was defined anew is another tool than the one that was approved.
        let changed = CallFacts {
            state: CallState::Ready,
            consent: Consent::Given,
            is_as_asked: false,
            ..fresh()
        };
        assert_eq!(begin(&changed, &LIMITS), Refuse(Refusal::ToolChanged));
    }
}
