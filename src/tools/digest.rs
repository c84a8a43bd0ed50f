//! What a call does, as one hash: the same for the same tool, arguments, chat and agent, and for nothing else.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use vocative_core::tool_call::CallDigest;

/// Goes into every digest, so that another way to make it gives others.
const VERSION: &str = "1";

/// Whose calls they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallScope {
    /// The chat, with its account.
    pub chat: String,
    /// The agent.
    pub agent: String,
}

/// The digest of a call. `definition` is all that decides what the tool does.
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
        // The length before each part keeps one part from reaching into the next.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// JSON in one way of writing it: keys in order, no spaces.
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
