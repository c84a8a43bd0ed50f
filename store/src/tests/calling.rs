//! Tool calls as rows, their turns in the timeline, and what stays of them when their steps go.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::contract::{ConsentSought, LeaseOutcome, NarrowedCall, RecordedStep};
use crate::scene::{Room, Scene, UNLIMITED};
use vocative_core::hooking::{HookDecision, HookPoint, HookVerdict};
use vocative_core::run::{ClaimedRun, Usage};
use vocative_core::tool_call::{CallLimits, Refusal};

async fn begin(scene: &Scene, run: &ClaimedRun) {
    let recorded = scene.store.record_step(
        run.run.id,
        run.token,
        RecordedStep {
            number: 1,
            message: "asked".to_owned(),
            usage: Usage::default(),
            verdicts: Vec::new(),
        },
        140,
    );
    assert_eq!(recorded.await.unwrap(), LeaseOutcome::Written);
}

/// A run that asks for calls of one tool that acts, and their rows.
async fn acting(scene: &Scene, room: &Room, digests: &[u8]) -> (ClaimedRun, Vec<StoredCall>) {
    scene.ask(room, "refund it", 10).await;
    let run = scene.claim(100).await.unwrap();
    begin(scene, &run).await;
    let calls = asked_again(scene, &run, digests).await;
    (run, calls)
}

async fn asked_again(scene: &Scene, run: &ClaimedRun, digests: &[u8]) -> Vec<StoredCall> {
    let call = |digest: &u8| NewToolCall {
        call_id: format!("call_{digest}"),
        tool: "refund".to_owned(),
        arguments: format!("{{\"amount\":{digest}}}"),
        digest: [*digest; 32],
        rule: CallRule::Once,
    };
    let calls = digests.iter().map(call).collect();
    let recorded = scene
        .store
        .record_tool_calls(run.run.id, run.token, 1, calls, 141);
    recorded.await.unwrap().unwrap()
}

async fn decided(
    scene: &Scene,
    run: &ClaimedRun,
    call: &StoredCall,
    limits: CallLimits,
    now_ms: i64,
) -> Beginning {
    let to_begin = CallToBegin {
        narrowed: None,
        verdicts: Vec::new(),
        is_changed: false,
        run: run.run.id,
        token: run.token,
        call: call.id,
        digest: call.digest,
        rule: call.rule,
        asker: run.asker,
        limits,
        sought: ConsentSought::NONE,
        is_behind_open: false,
        now_ms,
    };
    match scene.store.begin_tool_call(to_begin).await.unwrap() {
        CallBegun::Decided(decided) => decided,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_that_acted_does_not_act_again_when_its_step_was_forgotten() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let (run, calls) = acting(&scene, &room, &[7, 8]).await;
    decided(&scene, &run, &calls[0], UNLIMITED, 142).await;
    forget_steps(&scene).await;
    assert_eq!(scene.store.tool_calls(run.run.id).await.unwrap(), []);
    let words = "SELECT count(*) FROM tool_calls WHERE arguments <> '' OR result IS NOT NULL";
    assert_eq!(scene.value::<i64>(words).await, 0);

    begin(&scene, &run).await;
    let calls = asked_again(&scene, &run, &[7, 8]).await;
    let refused = Beginning::Refuse(Refusal::MadeBefore);
    assert_eq!(
        decided(&scene, &run, &calls[0], UNLIMITED, 150).await,
        refused
    );
    assert_eq!(
        decided(&scene, &run, &calls[1], UNLIMITED, 150).await,
        Beginning::Make
    );
}

/// Forgets the steps of every run, as a delete of what they read does.
async fn forget_steps(scene: &Scene) {
    let forgotten =
        scene.write(|connection| crate::acts::forgetting::delete_steps_txn(connection, "> ?1", 0));
    assert_eq!(forgotten.await, 1);
}

#[tokio::test]
async fn what_hooks_say_of_a_call_is_kept_with_its_beginning_and_goes_with_its_step() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let (run, calls) = acting(&scene, &room, &[7, 8]).await;
    let said = |verdict| HookVerdict {
        point: HookPoint::BeforeTool,
        step: 1,
        n: 0,
        hook: "guard".to_owned(),
        verdict,
    };
    let narrow = HookDecision::Narrow {
        arguments: "{\"amount\":3}".to_owned(),
    };
    let to_begin = |call: &StoredCall, digest: u8| CallToBegin {
        narrowed: Some(NarrowedCall {
            arguments: "{\"amount\":3}".to_owned(),
            digest: [3; 32],
        }),
        verdicts: vec![said(narrow.clone())],
        is_changed: false,
        run: run.run.id,
        token: run.token,
        call: call.id,
        digest: [digest; 32],
        rule: call.rule,
        asker: run.asker,
        limits: UNLIMITED,
        sought: ConsentSought::NONE,
        is_behind_open: false,
        now_ms: 142,
    };
    let begun = scene.store.begin_tool_call(to_begin(&calls[0], 7)).await;
    assert_eq!(begun.unwrap(), CallBegun::Decided(Beginning::Make));
    let stored = scene.store.tool_calls(run.run.id).await.unwrap();
    assert_eq!(stored[0].arguments, "{\"amount\":3}");
    assert_eq!(
        (stored[0].digest, stored[0].state),
        ([3; 32], CallState::Running)
    );
    // A call of a tool that was defined anew is not what the hook was asked about.
    let begun = scene.store.begin_tool_call(to_begin(&calls[1], 9)).await;
    let refused = Beginning::Refuse(Refusal::ToolChanged);
    assert_eq!(begun.unwrap(), CallBegun::Decided(refused));
    let stored = scene.store.tool_calls(run.run.id).await.unwrap();
    assert_eq!(stored[1].arguments, "{\"amount\":8}");

    // The first word holds.
    let denied = HookDecision::Deny {
        reason: "later".to_owned(),
    };
    let kept = scene
        .store
        .keep_verdicts(run.run.id, run.token, vec![said(denied)], 143);
    assert_eq!(kept.await.unwrap(), LeaseOutcome::Written);
    let verdicts = scene.store.hook_verdicts(run.run.id).await.unwrap();
    assert_eq!(verdicts, [said(narrow.clone())]);
    let shown = scene.store.run(run.run.id).await.unwrap();
    assert_eq!(shown.hooks, verdicts);
    forget_steps(&scene).await;
    assert_eq!(scene.store.hook_verdicts(run.run.id).await.unwrap(), []);
}
