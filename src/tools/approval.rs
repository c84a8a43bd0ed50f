//! When a tool's calls wait for a person, by the tool's settings and its agent's together.

use serde_json::Value;

use vocative_core::approving::{
    AfterUntrusted, ApprovalPolicy, ApprovalRule, Approver, Approvers, ask,
};
use vocative_core::tool_call::CallRule;

/// How long a call waits if nothing is set, in milliseconds.
const EXPIRES_AFTER_MS: i64 = 300_000;

/// The approval settings of a tool or of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApprovalSettings {
    /// When calls wait. `None` in a tool's settings: calls that act always wait. `None` in an agent's: as the tool's
    /// settings say.
    pub policy: Option<ApprovalPolicy>,
    /// Who may decide.
    pub approvers: Option<Vec<Approver>>,
    /// How long calls wait.
    pub expiry: Option<ApprovalExpiry>,
    /// What happens to calls that act once their run has read a text that its askers did not write; `None` = as the
    /// other one's settings say, and such calls ask if neither says anything.
    pub after_untrusted: Option<AfterUntrusted>,
    /// Whether the person who asked decides if no approvers are named.
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

/// What applies to a tool of an agent: the strictest of all that is set.
#[derive(Clone, Debug, PartialEq)]
pub struct CallApproval {
    policies: Vec<ApprovalPolicy>,
    /// Who may decide.
    pub approvers: Approvers,
    /// How long a call waits, in milliseconds; `None` = until somebody decides.
    pub expires_after_ms: Option<i64>,
    /// What happens to calls once their run has read a text that its askers did not write.
    pub after_untrusted: AfterUntrusted,
    asks_nobody: bool,
}

impl ApprovalSettings {
    /// Combines a tool's settings with those of an agent that has it. An agent's `approval` applies only to tools that
    /// act.
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
            // Either calls ask only after a text of others, or `is_askers` is set: the person who asked decides.
            approvers = Approvers(vec![vec![Approver::Requester]]);
        }
        CallApproval {
            policies,
            approvers,
            // The tool's setting comes before its agent's setting for all tools.
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
    /// For a tool whose calls never wait.
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

    /// Whether a call may have to wait although no person may decide about it.
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
        // An agent's policy applies only to tools that act.
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
            // If no approvers are named, the person who asked decides.
            assert_eq!(both.approvers.text(), "requester");
            assert!(!both.asks_nobody());
        }
    }
}
