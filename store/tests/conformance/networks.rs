//! The values that networks keep in conversations, and the attempts of their runs.

use serde_json::{Value, json};
use vocative_core::routing::{CallOutcome, MemberCall};
use vocative_core::run::Usage;
use vocative_store::ExpiryBounds;
use vocative_store::contract::{LeaseOutcome, ValuesToKeep};

use crate::said::{Said, agent, said};
use crate::scene::Scene;

const DAY_MS: i64 = 86_400_000;

/// An operator sets values; the version that they were made of.
async fn set(scene: &Scene, values: Value, read_version: i64, now_ms: i64) {
    let conversation = scene.conversation("C1").await;
    let values = ValuesToKeep {
        network: agent("team"),
        read_version,
        values: values.to_string(),
    };
    let set = scene.store.set_network_state(conversation, values, now_ms);
    assert!(set.await.unwrap());
}

/// The values that are kept, with their version.
async fn kept(scene: &Scene) -> (i64, Value) {
    let conversation = scene.conversation("C1").await;
    let kept = scene.store.network_state(conversation, agent("team"));
    let kept = kept.await.unwrap().unwrap();
    (kept.version, serde_json::from_str(&kept.values).unwrap())
}

async fn expire(scene: &Scene, before_ms: i64, now_ms: i64) {
    let bounds = ExpiryBounds {
        text_before_ms: Some(before_ms),
        ..ExpiryBounds::default()
    };
    let expired = scene.store.expire(scene.account, bounds, 100, now_ms);
    expired.await.unwrap();
}

#[tokio::test]
async fn values_go_when_they_are_as_old_as_texts_may_be_whatever_else_changes() {
    let scene = Scene::open().await;
    scene.say("C1", "hello", 10).await;
    set(
        &scene,
        json!({"kind": "bug", "notes": ["one"], "n": 1}),
        0,
        DAY_MS,
    )
    .await;
    // A list that grows is as old as what it had, a value that is another is new, and one that stays is not.
    let later = json!({"kind": "bug", "notes": ["one", "two"], "n": 2});
    set(&scene, later, 1, 5 * DAY_MS).await;
    expire(&scene, DAY_MS, 6 * DAY_MS).await;
    assert_eq!(kept(&scene).await.0, 2);
    expire(&scene, DAY_MS + 1, 6 * DAY_MS).await;
    assert_eq!(kept(&scene).await, (3, json!({"n": 2})));
    // The value goes also where the conversation is idle.
    expire(&scene, 5 * DAY_MS + 1, 90 * DAY_MS).await;
    assert_eq!(kept(&scene).await, (4, json!({})));
    expire(&scene, 6 * DAY_MS, 90 * DAY_MS).await;
    assert_eq!(kept(&scene).await.0, 4);
}

#[tokio::test]
async fn values_of_a_clock_that_was_ahead_are_kept_for_no_longer() {
    let scene = Scene::open().await;
    scene.say("C1", "hello", 10).await;
    set(&scene, json!({"n": 1}), 0, 4_000 * DAY_MS).await;
    // The clock is right again: they count as new.
    expire(&scene, DAY_MS, 10 * DAY_MS).await;
    assert_eq!(kept(&scene).await, (1, json!({"n": 1})));
    expire(&scene, 10 * DAY_MS + 1, 20 * DAY_MS).await;
    assert_eq!(kept(&scene).await, (2, json!({})));
}

#[tokio::test]
async fn what_is_erased_and_set_anew_is_new() {
    let scene = Scene::open().await;
    scene.hear(said("1", "hello")).await;
    set(&scene, json!({"n": 1}), 0, DAY_MS).await;
    let edit = Said {
        edit_marker: Some("5"),
        ..said("1", "goodbye")
    };
    scene.hear(edit).await;
    assert_eq!(kept(&scene).await, (2, json!({})));
    set(&scene, json!({"n": 1}), 2, 5 * DAY_MS).await;
    expire(&scene, 2 * DAY_MS, 6 * DAY_MS).await;
    assert_eq!(kept(&scene).await, (3, json!({"n": 1})));
}

#[tokio::test]
async fn an_agent_call_that_ended_begins_the_attempts_anew() {
    let scene = Scene::open().await;
    scene.ask("C1", "one", 10).await;
    let mut run = scene.claim(100).await.unwrap();
    for n in 1..3 {
        let store = &scene.store;
        let again = store.requeue_run(run.run.id, run.token, 100, "it said nothing", 100);
        assert_eq!(again.await.unwrap(), LeaseOutcome::Written);
        run = scene.claim(100).await.unwrap();
        assert_eq!(run.attempts_used(), n + 1);
    }
    let call = MemberCall {
        n: 1,
        agent: agent("look"),
        outcome: CallOutcome::Done,
        text: "42".to_owned(),
        note: None,
        reason: None,
        told: None,
        tools: Vec::new(),
        state: "{}".to_owned(),
        steps: 1,
        usage: Usage::default(),
        at_ms: 100,
    };
    let ended = scene.store.end_network_call(run.run.id, run.token, call);
    assert_eq!(ended.await.unwrap(), LeaseOutcome::Written);
    let again = scene
        .store
        .requeue_run(run.run.id, run.token, 100, "it said nothing", 100);
    again.await.unwrap();
    // The third attempt ended a call, so that it is the first of the next one.
    assert_eq!(scene.claim(100).await.unwrap().attempts_used(), 2);
}
