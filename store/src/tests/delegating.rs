//! Agents that ask agents: asked once, answered once, within what the question may use, and ended with it.

#![allow(clippy::unwrap_used)]

use vocative_core::approving::OutsideSource;
use vocative_core::delegating::StoredTask;
use vocative_core::ids::{AgentName, RunId, TurnId};
use vocative_core::run::{ClaimedRun, RunState, StopCause, Usage};
use vocative_core::running::budget::RunBudget;
use vocative_core::tool_call::{CallRule, CallState, StoredCall};

use crate::contract::{
    CallToFinish, CommittedReply, LeaseOutcome, NewTask, NewToolCall, Parked, RecordedStep,
    StepOutcome, TaskGiven, ToolTurn,
};
use crate::scene::{Room, Scene};

/// Records a step that asks for so many calls.
async fn called(scene: &Scene, run: &ClaimedRun, calls: usize) -> Vec<StoredCall> {
    let (id, token) = (run.run.id, run.token);
    let step = scene.store.record_step(
        id,
        token,
        RecordedStep {
            number: 1,
            message: "asked".to_owned(),
            usage: Usage::default(),
            verdicts: Vec::new(),
        },
        140,
    );
    assert_eq!(step.await.unwrap(), LeaseOutcome::Written);
    let call = |n: usize| NewToolCall {
        call_id: format!("call_{n}"),
        tool: "ask_agent".to_owned(),
        arguments: format!("{{\"task\":\"zebra {n}\"}}"),
        digest: [u8::try_from(n).unwrap(); 32],
        rule: CallRule::Repeatable,
    };
    let calls = (0..calls).map(call).collect();
    let recorded = scene.store.record_tool_calls(id, token, 1, calls, 141);
    recorded.await.unwrap().unwrap()
}

fn task(run: &ClaimedRun, call: &StoredCall, agent: &str) -> NewTask {
    NewTask {
        run: run.run.id,
        token: run.token,
        call: call.id,
        asked_by: run.run.agent.clone(),
        agent: AgentName::trusted(agent),
        members: Vec::new(),
        task: format!("find the zebra, {agent}"),
        sees_room: false,
        budget: RunBudget::default(),
        calls_max: 64,
        now_ms: 150,
    }
}

async fn give(scene: &Scene, run: &ClaimedRun, call: &StoredCall, agent: &str) -> TaskGiven {
    scene.store.give_task(task(run, call, agent)).await.unwrap()
}

async fn park(scene: &Scene, run: &ClaimedRun) -> Parked {
    let parked = scene.store.park_run(run.run.id, run.token, 160).await;
    parked.unwrap()
}

async fn task_of(scene: &Scene, call: &StoredCall) -> StoredTask {
    scene.store.task_of_call(call.id).await.unwrap().unwrap()
}

async fn state(scene: &Scene, run: RunId) -> RunState {
    scene.store.run(run).await.unwrap().state
}

/// A question whose run asks these agents, and waits.
struct Asked {
    run: ClaimedRun,
    calls: Vec<StoredCall>,
}

async fn asking(scene: &Scene, room: &Room, agents: &[&str]) -> Asked {
    scene.ask(room, "where is the zebra?", 10).await;
    let run = scene.claim(100).await.unwrap();
    let calls = called(scene, &run, agents.len()).await;
    for (call, agent) in calls.iter().zip(agents) {
        assert_eq!(give(scene, &run, call, agent).await, TaskGiven::Waits);
    }
    assert_eq!(park(scene, &run).await, Parked::Waits);
    Asked { run, calls }
}

async fn says(scene: &Scene, room: &Room, run: &ClaimedRun, text: &str) -> CommittedReply {
    let reply = scene.answer(run, room, text);
    scene.store.commit_reply(reply).await.unwrap()
}

/// A call has its result, which quotes turns.
async fn finish(
    scene: &Scene,
    run: &ClaimedRun,
    call: &StoredCall,
    result: &str,
    sources: &[TurnId],
) -> StepOutcome {
    let finished = CallToFinish {
        run: run.run.id,
        token: run.token,
        call: call.id,
        state: CallState::Done,
        refusal: None,
        result: result.to_owned(),
        asker: run.asker,
        agent: run.run.agent.clone(),
        agent_display_name: "Helper".to_owned(),
        turn: ToolTurn {
            call_id: call.call_id.clone(),
            tool: call.tool.clone(),
            is_known: true,
            call: call.tool.clone(),
            call_tokens: None,
            result: result.to_owned(),
            result_tokens: None,
            sources: sources.to_vec(),
        },
        files: Vec::new(),
        is_outside: sources.is_empty(),
        verdicts: Vec::new(),
        now_ms: 220,
    };
    scene.store.finish_tool_call(finished).await.unwrap()
}

#[tokio::test]
async fn what_others_wrote_marks_who_is_asked_and_who_asked() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.ask(&room, "where is the zebra?", 10).await;
    let run = scene.claim(100).await.unwrap();
    let (id, token) = (run.run.id, run.token);
    let marked = scene
        .store
        .taint_run(id, token, vec![OutsideSource::File], 101);
    assert!(marked.await.unwrap());
    let calls = called(&scene, &run, 1).await;
    give(&scene, &run, &calls[0], "look").await;
    park(&scene, &run).await;
    let child = scene.claim(200).await.unwrap();
    let taints = scene.store.run_taints(child.run.id).await.unwrap();
    assert_eq!(taints.len(), 1);
    assert_eq!((taints[0].step, taints[0].source), (0, OutsideSource::File));
    // It has read that however often it begins anew.
    scene
        .write(|connection| {
            crate::acts::forgetting::delete_steps_txn(
                connection,
                "IN (SELECT id FROM runs WHERE parent_run_id = ?1)",
                1,
            )
        })
        .await;
    assert_eq!(scene.store.run_taints(child.run.id).await.unwrap(), taints);

    says(&scene, &room, &child, "In the zoo.").await;
    let again = scene.claim(300).await.unwrap();
    let finished = finish(&scene, &again, &calls[0], "In the zoo.", &[]).await;
    assert_eq!(finished, StepOutcome::Written);
    let taints = scene.store.run_taints(id).await.unwrap();
    let of_step: Vec<&str> = taints
        .iter()
        .filter(|taint| taint.step == 1)
        .map(|taint| taint.tool.as_str())
        .collect();
    assert_eq!(of_step, ["ask_agent"]);
}

#[tokio::test]
async fn an_edit_that_changes_the_question_stops_who_was_asked_for_it() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let asked = asking(&scene, &room, &["look"]).await;
    let child = task_of(&scene, &asked.calls[0]).await.child;
    scene
        .write(|connection| {
            crate::acts::forgetting::delete_steps_txn(
                connection,
                "IN (SELECT id FROM runs WHERE parent_run_id IS NULL AND id = ?1)",
                1,
            )
        })
        .await;
    assert_eq!(state(&scene, child).await, RunState::Cancelled);
    let cause = "SELECT stop_cause FROM runs WHERE parent_run_id IS NOT NULL";
    assert_eq!(scene.value::<String>(cause).await, StopCause::Parent.name());
    // Who asked begins anew.
    assert_eq!(scene.claim(400).await.unwrap().run.id, asked.run.run.id);
    assert_eq!(
        scene
            .value::<i64>(
                "SELECT count(*) FROM delegations WHERE task <> '' OR call_id IS NOT NULL"
            )
            .await,
        0
    );
}
