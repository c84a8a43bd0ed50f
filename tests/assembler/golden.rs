//! The recorded vectors that another system gets wrong, and what a user of ours sees instead: the
//! default profile, through the real store. Each test is named after its vector.

use serde_json::{Value, json};
use vocative::transcripts::transcript::run_transcript;
use vocative_core::coverage::Coverage;
use vocative_core::options::AssemblerOptions;
use vocative_core::prompting::{ClassEstimate, TokenCounter as _};
use vocative_core::summary::FoldQuery;

use crate::harness::{Room, Summariser, asked, page, said};

const VECTORS: &str = include_str!("../fixtures/golden/assembler.json");

fn names_of(verdict: &str) -> Vec<String> {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let cases = vectors["cases"].as_array().unwrap().iter();
    cases
        .filter(|case| case["verdict"] == verdict)
        .map(|case| case["name"].as_str().unwrap().to_owned())
        .collect()
}

fn vector(name: &str) -> Value {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let mut cases = vectors["cases"].as_array().unwrap().iter();
    cases.find(|case| case["name"] == name).unwrap().clone()
}

#[test]
fn every_bug_has_its_test_and_every_quirk_its_line() {
    let tests = include_str!("golden.rs");
    let bugs = names_of("bug");
    assert_eq!(bugs.len(), 7);
    for name in bugs {
        let name = name.replace("hasSummary", "has_summary");
        assert!(tests.contains(&format!("async fn bug_{name}()")), "{name}");
    }
    let docs = include_str!("../../docs/PROMPT.md");
    let quirks = names_of("quirk");
    assert_eq!(quirks.len(), 4);
    for name in quirks {
        let lines = docs
            .lines()
            .filter(|line| line.contains(&format!("`{name}`")));
        assert_eq!(lines.count(), 1, "{name}");
    }
}

/// Questions of Alice, each answered, from one number to another.
async fn talk(room: &Room, numbers: std::ops::RangeInclusive<i64>) {
    for number in numbers {
        let text = match number {
            1 => "the budget is 40k".to_owned(),
            _ => format!("question {number}"),
        };
        room.talk(asked(number, &text), "Noted.").await;
    }
}

fn small() -> AssemblerOptions {
    AssemblerOptions {
        rolling_summary_threshold: 4,
        preserve_recent_turns: 2,
        ..AssemblerOptions::default()
    }
}

#[tokio::test]
async fn bug_user_kind_with_agent_id() {
    // A person whose id is the agent's name is a person, and concerns the agent no more than others.
    let mut case = vector("user_kind_with_agent_id");
    case["options"] = json!({"profile": "vocative", "addressedOnlyMode": true});
    case["messages"][2]["metadata"] = json!({"mentions": ["kael"]});
    let prompt = run_transcript(&case.to_string()).await.unwrap();
    assert_eq!(page(&prompt), "[user] Bob: y");

    case["options"]["addressedOnlyMode"] = json!(false);
    let prompt = run_transcript(&case.to_string()).await.unwrap();
    insta::assert_snapshot!(page(&prompt), @r"
    [user] Imposter: I am kael
    [user] Alice: x
    [user] Bob: y
    ");

    let room = Room::open().await;
    room.hear(said(1, "I did it myself").by("kael", "kael"))
        .await;
    room.hear(asked(2, "did you?")).await;
    assert_eq!(room.page().await, "[user] Alice: @Kael did you?");
}

#[tokio::test]
async fn bug_budget_drops_summary_first() {
    let mut room = Room::open().await;
    room.options = small();
    talk(&room, 1..=5).await;
    assert!(
        room.fold(&Summariser::answering(r#"{"summary": "key facts"}"#))
            .await
    );
    for number in 6..=9 {
        room.talk(asked(number, &"y".repeat(300)), "ok").await;
    }
    room.hear(asked(10, "and?")).await;
    room.options = AssemblerOptions {
        token_budget: 120,
        ..AssemblerOptions::default()
    };
    let prompt = room.prompt().await;
    // Turns go; the summary, which stands for the most, stays.
    assert!(prompt.has_summary);
    assert!(
        prompt.messages[0].content.ends_with("key facts"),
        "{}",
        page(&prompt)
    );
    assert!(prompt.omitted.iter().any(|o| o.why.name() == "over_budget"));
    assert!(prompt.tokens <= 120);
}

#[tokio::test]
async fn bug_summary_missing_fields() {
    let mut room = Room::open().await;
    room.options = small();
    talk(&room, 1..=5).await;
    let before = room.turns().await;
    let output = vector("summary_missing_fields")["summarizer"]["output"].clone();
    assert!(
        !room
            .fold(&Summariser::answering(output.as_str().unwrap()))
            .await
    );
    let id = room.conversation().await.id;
    assert_eq!(room.store.summaries(id, None).await.unwrap(), []);
    assert_eq!(room.turns().await, before);
    room.hear(asked(6, "and?")).await;
    let prompt = room.prompt().await;
    assert!(!prompt.has_summary);
    assert!(!page(&prompt).contains("undefined"));
    assert!(page(&prompt).contains("question 5"));
}

#[tokio::test]
async fn bug_summary_second_round_loses_first_summary() {
    let mut room = Room::open().await;
    room.options = small();
    talk(&room, 1..=5).await;
    let first = Summariser::answering(r#"{"summary": "The budget is 40k."}"#);
    assert!(room.fold(&first).await);
    assert!(first.requests()[0].contains("the budget is 40k"));
    talk(&room, 6..=10).await;
    let second = Summariser::answering(r#"{"summary": "The budget is 40k; much was asked."}"#);
    assert!(room.fold(&second).await);
    // What the first summary says is in what the second is made from, and nothing is deleted.
    assert!(second.requests()[0].contains("The budget is 40k."));
    assert_eq!(room.turns().await.len(), 20);
    room.hear(asked(11, "what is the budget?")).await;
    let prompt = room.prompt().await;
    assert!(prompt.messages[0].content.contains("The budget is 40k"));
}

#[tokio::test]
async fn bug_stored_summary_vanishes_in_addressed_only() {
    let mut room = Room::open().await;
    room.options = small();
    talk(&room, 1..=5).await;
    assert!(
        room.fold(&Summariser::answering(
            r#"{"summary": "The budget is 40k."}"#
        ))
        .await
    );
    room.options = AssemblerOptions::default();
    assert!(room.options.addressed_only);
    room.hear(asked(6, "what is the budget?")).await;
    let prompt = room.prompt().await;
    assert!(prompt.has_summary);
    assert!(prompt.messages[0].content.ends_with("The budget is 40k."));
}

#[tokio::test]
async fn bug_summary_tight_budget_dropped_but_has_summary() {
    let budgets = [0, 12, 40, 80, 120, 160, 400, 3_000];
    let mut seen = Vec::new();
    for token_budget in budgets {
        let mut room = Room::open().await;
        room.options = small();
        talk(&room, 1..=5).await;
        let text =
            "They talked about many things, one after the other, and all was well in the end.";
        assert!(
            room.fold(&Summariser::answering(
                &json!({"summary": text}).to_string()
            ))
            .await
        );
        room.hear(asked(6, "and?")).await;
        room.options.token_budget = token_budget;
        let prompt = room.prompt().await;
        let is_there = page(&prompt).contains("Summary of earlier turns");
        assert_eq!(prompt.has_summary, is_there, "{token_budget}");
        let question = ClassEstimate.cost("Alice: @Kael and?");
        assert!(
            prompt.tokens <= token_budget.max(question),
            "{token_budget}"
        );
        seen.push(is_there);
    }
    assert!(!seen[1] && seen[7], "{seen:?}");
}

#[tokio::test]
async fn bug_summary_threshold_zero_one_turn() {
    let mut room = Room::open().await;
    room.options.rolling_summary_threshold = 0;
    room.hear(asked(1, "only")).await;
    let query = FoldQuery {
        conversation: room.conversation().await.id,
        agent: room.spec(None).name,
        coverage: Coverage::of(&room.options).unwrap(),
        threshold: 0,
        preserve_recent: room.options.preserve_recent_turns,
        hold_turns: 100,
        max_turns: 100,
    };
    // Nothing is asked for: the only turn is one of the newest that are never folded.
    assert_eq!(room.store.fold_source(query).await.unwrap(), None);
    let prompt = room.prompt().await;
    assert_eq!(page(&prompt), "[user] Alice: @Kael only");
    assert!(!prompt.has_summary);
}
