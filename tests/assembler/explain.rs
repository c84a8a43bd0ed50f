//! `vocative prompt` accounts for every turn of a long conversation, at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use vocative::admin::operations::{AdminOperation, Operations};
use vocative::agent::registry::Registry;
use vocative::delivery::rooms::Rooms;
use vocative_core::options::AssemblerOptions;

use crate::harness::{Room, START_MS, Summariser, asked, said};

const NOISE: u64 = 100_000;

/// Chatter before everything else in the chat, as capture leaves it.
fn add_noise(database: &std::path::Path) {
    let connection = rusqlite::Connection::open(database).unwrap();
    let insert = "
        BEGIN;
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
        INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope,
                           participant_id, content, captured_at_ms, is_inbound)
        SELECT randomblob(16), (SELECT min(id) FROM conversations), i, 0, 'message', 'channel',
               (SELECT min(id) FROM participants), 'noise ' || i, i, 1 FROM n;
        UPDATE conversations SET turn_count = turn_count + 100000,
               last_seq = (SELECT max(seq) FROM turns);
        COMMIT;";
    connection.execute_batch(insert).unwrap();
}

async fn explained(room: &Room, at: Option<i64>) -> Value {
    let registry = Registry::default();
    registry.replace(vec![room.spec(None)]);
    let operations = Operations {
        store: room.store.clone(),
        registry,
        skills: Default::default(),
        rooms: Rooms::default(),
        clock: Arc::new(|| START_MS + 60_000),
        running: None,
    };
    let asked = AdminOperation::Prompt {
        name: "acme/C1".to_owned(),
        agent: None,
        at,
    };
    let started = Instant::now();
    let view = operations.execute(asked).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(2));
    assert!(view["rows_read"].as_u64().unwrap() <= 400, "{view}");
    assert_eq!(
        (&view["scan_steps"], &view["sorts"]),
        (&0.into(), &0.into())
    );
    view
}

fn number(view: &Value, key: &str) -> u64 {
    view[key].as_u64().unwrap()
}

/// Every turn is loaded, summarised or not read.
fn assert_all_accounted_for(view: &Value) {
    let sum = number(view, "turns_loaded")
        + number(view, "turns_summarized")
        + number(view, "turns_not_read");
    assert_eq!(sum, number(view, "turns_of_conversation"), "{view}");
    let whole = view["omitted"].as_array().unwrap().iter();
    let whole = whole.filter(|omitted| omitted["tokens_left_out"].is_null());
    let sum = number(view, "turns_in_prompt") + whole.count() as u64;
    assert_eq!(sum, number(view, "turns_loaded"), "{view}");
    let costs = view["costs"].as_array().unwrap().iter();
    let costs = costs.map(|cost| number(cost, "tokens")).sum::<u64>();
    let besides = number(view, "instruction_tokens") + number(view, "recalled_tokens");
    let tokens = number(view, "tokens") + besides;
    assert_eq!(costs, tokens, "{view}");
    let left = number(view, "tokens_left") + number(view, "tokens");
    assert_eq!(left, number(view, "token_budget"));
}

#[tokio::test]
async fn every_turn_of_a_conversation_of_a_hundred_thousand_is_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("store.sqlite");
    let mut room = Room::open_at(Some(database.clone()), 65_536).await;
    room.hear(said(1, "hello")).await;
    add_noise(&database);
    for number in 2..=10 {
        room.talk(asked(number, &format!("question {number}")), "yes")
            .await;
    }
    let view = explained(&room, None).await;
    assert_all_accounted_for(&view);
    assert_eq!(number(&view, "turns_loaded"), 18);
    assert_eq!(number(&view, "turns_not_read"), NOISE + 1);
    assert_eq!(
        view["not_read_because"],
        serde_json::json!(["do not concern kael (addressed_only)"])
    );

    // With a summary, and a turn of what it stands for in the prompt.
    room.options = AssemblerOptions {
        rolling_summary_threshold: 4,
        preserve_recent_turns: 2,
        ..AssemblerOptions::default()
    };
    assert!(
        room.fold(&Summariser::answering(r#"{"summary": "All is well."}"#))
            .await
    );
    let view = explained(&room, None).await;
    assert_all_accounted_for(&view);
    assert_eq!(number(&view, "turns_not_read"), NOISE + 1);
    assert!(number(&view, "turns_summarized") >= 10, "{view}");
    assert_eq!(view["has_summary"], true);

    // As of an earlier turn, and with a budget that leaves out and cuts.
    room.options = AssemblerOptions {
        token_budget: 60,
        max_turns_to_load: 10,
        time_window_minutes: Some(10.0),
        ..AssemblerOptions::default()
    };
    room.talk(asked(11, &"long ".repeat(100)), "I see.").await;
    room.hear(asked(12, "and?")).await;
    let view = explained(&room, None).await;
    assert_all_accounted_for(&view);
    assert!(!view["omitted"].as_array().unwrap().is_empty());
    assert_eq!(view["not_read_because"].as_array().unwrap().len(), 3);
    let first = view["omitted"][0]["seq"].as_i64();
    let view = explained(&room, first).await;
    assert_all_accounted_for(&view);
}
