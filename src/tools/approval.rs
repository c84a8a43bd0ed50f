//! When the calls of a tool wait for a person: what its settings and those of its agent say together.

use serde_json::Value;

use vocative_core::approving::{
    AfterUntrusted, ApprovalPolicy, ApprovalRule, Approver, Approvers, ask,
};
use vocative_core::tool_call::CallRule;

/// How long a call waits where nothing is set, in milliseconds.
const EXPIRES_AFTER_MS: i64 = 300_000;

/// What a tool, or an agent, says of approvals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApprovalSettings {
    /// When calls wait; `None` = as the other one says, and those that act always do.
    pub policy: Option<ApprovalPolicy>,
    /// Who may decide.
    pub approvers: Option<Vec<Approver>>,
    /// How long calls wait.
    pub expiry: Option<ApprovalExpiry>,
    /// What becomes of calls that act once their run has read what its askers did not write; `None` = as the other one
    /// says, and they ask.
    pub after_untrusted: Option<AfterUntrusted>,
    /// Whether the person whose question it is decides where nobody is named.
    pub is_askers: bool,
}

/// How long calls wait for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApprovalExpiry {
    /// For this time; then the call expires.
    After {
        /// In milliseconds.
        ms: i64,
    },
    /// Until somebody decides.
    Never,
}

/// What holds for a tool of an agent: of all that is set the strictest.
#[derive(Clone, Debug, PartialEq)]
pub struct CallApproval {
    policies: Vec<ApprovalPolicy>,
    /// Who may decide.
    pub approvers: Approvers,
    /// How long a call waits, in milliseconds; `None` = until somebody decides.
    pub expires_after_ms: Option<i64>,
    /// What becomes of calls once their run has read what its askers did not write.
    pub after_untrusted: AfterUntrusted,
    asks_nobody: bool,
}

impl ApprovalSettings {
    /// A tool's settings with those of an agent that has it. An agent's `approval` is about tools that act.
    #[must_use]
    pub fn with(&self, agent: &Self, rule: CallRule) -> CallApproval {
        let acts = rule != CallRule::Repeatable;
        let default = match acts {
            true => ApprovalPolicy::Always,
            false => ApprovalPolicy::Never,
        };
        let of_tool = self.policy.clone().unwrap_or(default);
        let of_agent = agent.policy.clone().filter(|_| acts);
        let expiry = [self.expiry, agent.expiry].into_iter().flatten().min();
        let lists = [&self.approvers, &agent.approvers].into_iter().flatten();
        let policies: Vec<ApprovalPolicy> = [of_tool].into_iter().chain(of_agent).collect();
        let mut approvers = Approvers(lists.cloned().collect());
        let may_ask = policies.iter().any(|it| *it != ApprovalPolicy::Never);
        let asks_nobody = may_ask && approvers.0.is_empty() && !self.is_askers;
        if !asks_nobody && approvers.0.is_empty() {
            // Of what asks only after a text of others, too, the person decides whose question it is.
            approvers = Approvers(vec![vec![Approver::Requester]]);
        }
        CallApproval {
            policies,
            approvers,
            // What the tool says comes before what its agent says of all its tools.
            after_untrusted: self
                .after_untrusted
                .or(agent.after_untrusted)
                .unwrap_or_default(),
            asks_nobody,
            expires_after_ms: match expiry {
                None => Some(EXPIRES_AFTER_MS),
                Some(ApprovalExpiry::After { ms }) => Some(ms),
                Some(ApprovalExpiry::Never) => None,
            },
        }
    }
}

impl CallApproval {
    /// A tool whose calls wait for nobody.
    #[must_use]
    pub fn none() -> Self {
        Self {
            policies: vec![ApprovalPolicy::Never],
            approvers: Approvers::default(),
            expires_after_ms: None,
            after_untrusted: AfterUntrusted::Allow,
            asks_nobody: false,
        }
    }

    /// Whether a call with these arguments waits for a person.
    #[must_use]
    pub fn ask(&self, arguments: &Value) -> ApprovalRule {
        ask(&self.policies, arguments)
    }

    /// Whether a call may wait for a person, and no person may decide.
    #[must_use]
    pub fn asks_nobody(&self) -> bool {
        self.asks_nobody
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_strictest_of_tool_and_agent_holds() {
        let settings = |policy, names: &[&str], expiry| ApprovalSettings {
            policy,
            approvers: (!names.is_empty()).then(|| {
                let names = names.iter();
                names.filter_map(|name| Approver::from_name(name)).collect()
            }),
            expiry,
            after_untrusted: None,
            is_askers: false,
        };
        let unset = ApprovalSettings::default();
        let acting = unset.with(&unset, CallRule::Once);
        assert_eq!(acting.ask(&json!({})), ApprovalRule::Always);
        assert!(acting.asks_nobody());
        assert_eq!(acting.expires_after_ms, Some(300_000));
        let reading = unset.with(&unset, CallRule::Repeatable);
        assert_eq!(reading.ask(&json!({})), ApprovalRule::Free);
        assert!(!reading.asks_nobody());

        let tool = settings(
            Some(ApprovalPolicy::Never),
            &["requester"],
            Some(ApprovalExpiry::Never),
        );
        let agent = settings(
            Some(ApprovalPolicy::Always),
            &["admins"],
            Some(ApprovalExpiry::After { ms: 60_000 }),
        );
        let both = tool.with(&agent, CallRule::Keyed);
        assert_eq!(both.ask(&json!({})), ApprovalRule::Always);
        assert_eq!(both.approvers.text(), "requester;admins");
        assert_eq!(both.expires_after_ms, Some(60_000));
        // What an agent says is about tools that act.
        assert_eq!(
            tool.with(&agent, CallRule::Repeatable).ask(&json!({})),
            ApprovalRule::Free
        );
        assert_eq!(tool.with(&unset, CallRule::Once).expires_after_ms, None);
        assert!(!tool.with(&unset, CallRule::Once).asks_nobody());
    }

    #[test]
    fn after_a_text_of_others_the_tool_is_heard_before_its_agent() {
        use AfterUntrusted::{Allow, Ask};
        let set = |after_untrusted| ApprovalSettings {
            policy: Some(ApprovalPolicy::Never),
            after_untrusted,
            ..ApprovalSettings::default()
        };
        let table = [
            (None, None, Ask),
            (Some(Allow), None, Allow),
            (None, Some(Allow), Allow),
            (Some(Ask), Some(Allow), Ask),
            (Some(Allow), Some(Ask), Allow),
        ];
        for (tool, agent, expected) in table {
            let both = set(tool).with(&set(agent), CallRule::Once);
            assert_eq!(both.after_untrusted, expected, "{tool:?} {agent:?}");
            // Where nobody is named, who asked decides.
            assert_eq!(both.approvers.text(), "requester");
            assert!(!both.asks_nobody());
        }
    }
}
