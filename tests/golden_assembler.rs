//! The recorded vectors of another system, through the real store and the real assembler.
//!
//! A vector is a transcript: the adapter is `prompt --transcript` itself. Nothing is sorted,
//! filtered or counted here. Vectors judged `bug` or `quirk` show what that system does, and are
//! not asked of ours.

#![allow(clippy::unwrap_used)]

use serde_json::{Map, Value};
use vocative::transcripts::transcript::run_transcript;
use vocative_core::prompting::view::PromptView;

const VECTORS: &str = include_str!("fixtures/golden/assembler.json");

/// How many vectors are `contract`; a vector that is lost must not pass unseen.
const CONTRACT_VECTORS: usize = 38;

async fn outcome(case: &Value) -> Map<String, Value> {
    let prompt = run_transcript(&case.to_string()).await.unwrap();
    let shown = serde_json::to_value(PromptView::from(&prompt)).unwrap();
    let mut shown = shown.as_object().unwrap().clone();
    shown.remove("omitted");
    shown
}

#[tokio::test]
async fn every_contract_vector_gives_exactly_what_was_recorded() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let cases = vectors["cases"].as_array().unwrap().iter();
    let contract: Vec<_> = cases.filter(|case| case["verdict"] == "contract").collect();
    assert_eq!(contract.len(), CONTRACT_VECTORS);
    let mut different = Vec::new();
    for case in contract {
        let found = outcome(case).await;
        if Some(&found) != case["expected"].as_object() {
            let found = serde_json::to_string_pretty(&found).unwrap();
            let expected = serde_json::to_string_pretty(&case["expected"]).unwrap();
            different.push(format!("{}:\n{found}\nexpected {expected}", case["name"]));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n\n"));
}

/// Vectors that are no contract still run: nothing a transcript holds makes it fail.
#[tokio::test]
async fn every_vector_runs() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    for case in vectors["cases"].as_array().unwrap() {
        assert!(
            outcome(case).await.contains_key("messages"),
            "{}",
            case["name"]
        );
    }
}
