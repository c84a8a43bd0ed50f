//! When the calls of a tool wait for a person: what its settings and those of its agent say together.

use serde_json::Value;

use vocative_core::approving::{ApprovalPolicy, Approver, Approvers, Asking, ask};
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
}

/// How long calls wait for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApprovalExpiry {
    /// So long.
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
        CallApproval {
            policies: [of_tool].into_iter().chain(of_agent).collect(),
            approvers: Approvers(lists.cloned().collect()),
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
        }
    }

    /// Whether a call with these arguments waits for a person.
    #[must_use]
    pub fn ask(&self, arguments: &Value) -> Asking {
        ask(&self.policies, arguments)
    }

    /// Whether a call may wait for a person, and no person may decide.
    #[must_use]
    pub fn asks_nobody(&self) -> bool {
        let mut policies = self.policies.iter();
        policies.any(|policy| *policy != ApprovalPolicy::Never) && self.approvers.0.is_empty()
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
        };
        let unset = ApprovalSettings::default();
        let acting = unset.with(&unset, CallRule::Once);
        assert_eq!(acting.ask(&json!({})), Asking::Always);
        assert!(acting.asks_nobody());
        assert_eq!(acting.expires_after_ms, Some(300_000));
        let reading = unset.with(&unset, CallRule::Repeatable);
        assert_eq!(reading.ask(&json!({})), Asking::Free);
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
        assert_eq!(both.ask(&json!({})), Asking::Always);
        assert_eq!(both.approvers.text(), "requester;admins");
        assert_eq!(both.expires_after_ms, Some(60_000));
        // What an agent says is about tools that act.
        assert_eq!(
            tool.with(&agent, CallRule::Repeatable).ask(&json!({})),
            Asking::Free
        );
        assert_eq!(tool.with(&unset, CallRule::Once).expires_after_ms, None);
        assert!(!tool.with(&unset, CallRule::Once).asks_nobody());
    }
}
