//! What is said when a network's run ends.

use std::collections::BTreeMap;

use super::course::{CallOutcome, Course, MemberCall};
use super::network::{AnswerFrom, Network};
use crate::ids::AgentName;

/// What a network's run comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Conclusion<'a> {
    /// These answers are posted, in this order: one, or with `answer_from = "each"` one of each agent.
    Said(Vec<SaidBy<'a>>),
    /// Agents were called, and none of them said anything that is to be posted.
    NoAnswer,
    /// Nobody was called.
    NoAgent,
    /// The last call failed, and nobody took over.
    Failed(&'a MemberCall),
}

/// The words of an agent that are the answer, or a part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SaidBy<'a> {
    /// Who.
    pub agent: &'a AgentName,
    /// In which call.
    pub call: &'a MemberCall,
}

/// Decides which answers of a run are posted. Pure.
#[must_use]
pub fn conclude<'a>(network: &Network, course: &'a Course) -> Conclusion<'a> {
    let Some(last) = course.calls.last() else {
        return Conclusion::NoAgent;
    };
    let says =
        |call: &&MemberCall| call.outcome == CallOutcome::Done && !call.text.trim().is_empty();
    let speaks = |call: &&MemberCall| !network.silent.contains(&call.agent);
    let mut newest_first = course.calls.iter().rev();
    let has_failed = last.outcome == CallOutcome::Failed;
    let found = match &network.answer_from {
        // The failure of an agent that is not silent comes after earlier answers, so none of those is posted.
        AnswerFrom::Last if has_failed && speaks(&last) => Vec::new(),
        AnswerFrom::Last => {
            let call = newest_first.find(|call| speaks(call) && says(call));
            call.map(said_by).into_iter().collect()
        }
        AnswerFrom::Agent(agent) => {
            let call = newest_first.find(|call| call.agent == *agent && says(call));
            call.map(said_by).into_iter().collect()
        }
        AnswerFrom::Each => {
            let heard = course
                .calls
                .iter()
                .filter(|call| speaks(call) && says(call));
            let newest: BTreeMap<&AgentName, u32> =
                heard.map(|call| (&call.agent, call.n)).collect();
            let calls = course.calls.iter();
            let newest = calls.filter(|call| newest.get(&call.agent) == Some(&call.n));
            newest.map(said_by).collect()
        }
    };
    match found.is_empty() {
        false => Conclusion::Said(found),
        true if has_failed => Conclusion::Failed(last),
        true => Conclusion::NoAnswer,
    }
}

fn said_by(call: &MemberCall) -> SaidBy<'_> {
    SaidBy {
        agent: &call.agent,
        call,
    }
}
