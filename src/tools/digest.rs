//! A hash of what a call does: equal for the same tool, arguments, chat and agent, and different for any others.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use vocative_core::tool_call::CallDigest;

/// Part of every digest, so that a change of how digests are made changes all of them.
const VERSION: &str = "1";

/// The chat and the agent that a call belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallScope {
    /// The chat, with its account.
    pub chat: String,
    /// The agent.
    pub agent: String,
}

/// The digest of a call. `definition` is everything that decides what the tool does.
#[must_use]
pub(super) fn digest(
    scope: &CallScope,
    tool: &str,
    definition: &Value,
    arguments: &Value,
) -> CallDigest {
    let parts = [
        VERSION,
        tool,
        &canonical(definition),
        &canonical(arguments),
        &scope.chat,
        &scope.agent,
    ];
    let mut hash = Sha256::new();
    for part in parts {
        // The length before each part keeps the parts apart.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// JSON in its canonical form: keys in order, no spaces.
fn canonical(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    value.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_does_not_count_and_all_else_does() {
        let scope = CallScope {
            chat: "1/C1".to_owned(),
            agent: "helper".to_owned(),
        };
        let definition = json!({"url": "https://shop.example/refunds"});
        let one = digest(
            &scope,
            "refund",
            &definition,
            &json!({"a": {"x": 1, "y": 2}, "b": 3}),
        );
        let other = json!({"b": 3, "a": {"y": 2, "x": 1}});
        assert_eq!(one, digest(&scope, "refund", &definition, &other));
        let elsewhere = CallScope {
            chat: "1/C2".to_owned(),
            ..scope.clone()
        };
        let of_another = CallScope {
            agent: "helpe".to_owned(),
            chat: "1/C1r".to_owned(),
        };
        for changed in [
            digest(
                &scope,
                "refund",
                &definition,
                &json!({"a": {"x": 1, "y": 2}, "b": "3"}),
            ),
            digest(
                &scope,
                "refund",
                &json!({"url": "https://shop.example"}),
                &other,
            ),
            digest(&scope, "refunds", &definition, &other),
            digest(&elsewhere, "refund", &definition, &other),
            digest(&of_another, "refund", &definition, &other),
        ] {
            assert_ne!(one, changed);
        }
    }
}
