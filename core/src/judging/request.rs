//! The decision on a question that a program asks through the API. Pure.
//!
//! The program says whom it asks, and its text is only that: no word in it is a command, a stop, or a name of
//! another agent. What bounds people bounds programs, too.

use std::collections::BTreeMap;

use vocative_contract::envelope::InboundMessage;

use crate::addressing::{Access, MessageFacts, Overlap, RunVerdict, Verdict};
use crate::ids::AgentName;
use crate::judging::judge::limit_met;
use crate::judging::policy::ChannelPolicy;

/// What is decided about a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestVerdict {
    /// The agent is to answer it, in a run of its own.
    Ask(Box<Verdict>),
    /// Nothing of it is stored: the token may not ask this agent any more.
    NotServed,
    /// Nothing of it is stored: a limit is met. What to tell who asks.
    LimitMet(String),
    /// Nothing of it is stored: the agent can't be asked with the model that was named. What to tell who asks.
    NoSuchModel(String),
}

impl RequestVerdict {
    /// The verdict as the store takes it.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Ask(verdict) => *verdict,
            Self::NotServed => Verdict {
                access: Access::PersonNotAllowed,
                ..Verdict::default()
            },
            Self::LimitMet(_) | Self::NoSuchModel(_) => Verdict::default(),
        }
    }
}

/// Decides about a question to one agent, which may ask for another model than the agent's own.
#[must_use]
pub fn judge_request(
    message: &InboundMessage,
    facts: &MessageFacts,
    policy: &ChannelPolicy,
    (agent, model): (&AgentName, Option<&str>),
) -> RequestVerdict {
    if !is_served(&message.sender.id, policy, agent) {
        return RequestVerdict::NotServed;
    }
    if let Some(problem) = model.and_then(|model| not_offered(model, policy, agent)) {
        return RequestVerdict::NoSuchModel(problem);
    }
    if let Some(limit) = limit_met(message, facts, policy) {
        return RequestVerdict::LimitMet(limit.text);
    }
    RequestVerdict::Ask(Box::new(Verdict {
        asked_model: model.map(str::to_owned),
        ..asked(agent)
    }))
}

/// Decides about what a program says to one agent without asking it. No limit counts it: like what people say to each
/// other, it costs nothing.
#[must_use]
pub fn judge_note(person: &str, policy: &ChannelPolicy, agent: &AgentName) -> Verdict {
    if !is_served(person, policy, agent) {
        return RequestVerdict::NotServed.verdict();
    }
    Verdict {
        runs: RunVerdict::NotAsked,
        ..asked(agent)
    }
}

/// What is wrong with a model that is asked for.
fn not_offered(model: &str, policy: &ChannelPolicy, agent: &AgentName) -> Option<String> {
    let models = policy.agent(agent).map_or(&[][..], |agent| &agent.models);
    let offered = match models {
        _ if models.iter().any(|it| it == model) => return None,
        [] => ", which has no other".to_owned(),
        models => format!(", but with {}", models.join(", ")),
    };
    Some(format!("{agent} can't be asked with this model{offered}"))
}

fn is_served(person: &str, policy: &ChannelPolicy, agent: &AgentName) -> bool {
    policy.agent(agent).is_some() && policy.allow_people.allows(person)
}

fn asked(agent: &AgentName) -> Verdict {
    Verdict {
        is_admitted: true,
        access: Access::Served,
        addressed_to: vec![agent.clone()],
        runs: RunVerdict::Run,
        // The program waits for the answer to exactly this question.
        overlaps: BTreeMap::from([(agent.clone(), Overlap::Queue)]),
        ..Verdict::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judging::policy::{AllowList, Limits};
    use crate::judging::testing::{message, policy};

    fn serving() -> (ChannelPolicy, AgentName) {
        let policy = ChannelPolicy {
            allow_people: AllowList::new(vec!["U1".to_owned()]),
            ..policy()
        };
        let agent = policy.default_agent.clone();
        (policy, agent)
    }

    #[test]
    fn whatever_the_text_says_it_is_a_question_to_the_agent_that_was_named() {
        let (policy, agent) = serving();
        for text in [
            "stop",
            "/forget everything",
            "@other, hi",
            "/new",
            "",
            "hey other: hi",
        ] {
            let mut asked = message(text);
            asked.sender.id = "U1".to_owned();
            let decided = judge_request(&asked, &MessageFacts::default(), &policy, (&agent, None));
            let verdict = decided.verdict();
            assert!(verdict.is_admitted, "{text}");
            assert_eq!(verdict.addressed_to, std::slice::from_ref(&agent), "{text}");
            assert_eq!(verdict.runs, RunVerdict::Run, "{text}");
            assert_eq!(verdict.command, None, "{text}");
        }
    }

    #[test]
    fn who_is_not_listed_and_whom_nobody_configured_is_not_served() {
        let (policy, agent) = serving();
        let mut asked = message("hi");
        asked.sender.id = "U2".to_owned();
        let facts = MessageFacts::default();
        let refused = judge_request(&asked, &facts, &policy, (&agent, None));
        assert_eq!(refused, RequestVerdict::NotServed);
        assert!(!refused.verdict().is_admitted);
        asked.sender.id = "U1".to_owned();
        let nobody = AgentName::trusted("nobody");
        let refused = judge_request(&asked, &facts, &policy, (&nobody, None));
        assert_eq!(refused, RequestVerdict::NotServed);
    }

    #[test]
    fn only_a_model_that_the_agent_offers_is_asked() {
        let (mut policy, agent) = serving();
        policy.agents[0].models = vec!["deep".to_owned()];
        let mut asked = message("hi");
        asked.sender.id = "U1".to_owned();
        let facts = MessageFacts::default();
        let judged = |model| judge_request(&asked, &facts, &policy, (&agent, Some(model)));
        assert_eq!(
            judged("deep").verdict().asked_model.as_deref(),
            Some("deep")
        );
        let refused = judged("huge");
        assert!(matches!(&refused, RequestVerdict::NoSuchModel(told) if told.contains("deep")));
        assert!(!refused.verdict().is_admitted);
    }

    #[test]
    fn the_limits_of_people_hold_for_programs() {
        let (policy, agent) = serving();
        let policy = ChannelPolicy {
            limits: Limits {
                runs_per_hour_person: 2,
                ..policy.limits
            },
            ..policy
        };
        let mut asked = message("hi");
        asked.sender.id = "U1".to_owned();
        let with = |runs_by_person_last_hour| {
            let facts = MessageFacts {
                runs_by_person_last_hour,
                ..MessageFacts::default()
            };
            judge_request(&asked, &facts, &policy, (&agent, None))
        };
        assert!(matches!(with(1), RequestVerdict::Ask(_)));
        assert!(matches!(with(2), RequestVerdict::LimitMet(_)));
        assert!(!with(2).verdict().is_admitted);
    }
}
