//! Agents that ask agents: asked once, answered once, within what the question may use, and ended with it.

use vocative_core::delegating::{NotDelegated, StoredTask, TaskState};
use vocative_core::ids::{RunId, TurnId};
use vocative_core::run::{ClaimedRun, RunState, Usage};
use vocative_core::running::budget::RunBudget;
use vocative_core::tool_call::{CallRule, CallState, StoredCall};
use vocative_core::turn::TurnKind;
use vocative_store::contract::{
    CallToFinish, CommittedReply, LeaseOutcome, NewTask, NewToolCall, Parked, RecordedStep,
    RunEnding, StepOutcome, TaskGiven, ToolTurn, WaitingFor,
};
use vocative_store::spending::{ModelCall, Purpose, Spending};

use crate::said::agent;
use crate::scene::{Scene, by_hand};

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

fn task(run: &ClaimedRun, call: &StoredCall, asked: &str) -> NewTask {
    NewTask {
        run: run.run.id,
        token: run.token,
        call: call.id,
        asked_by: run.run.agent.clone(),
        agent: agent(asked),
        members: Vec::new(),
        task: format!("find the zebra, {asked}"),
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

async fn asking(scene: &Scene, agents: &[&str]) -> Asked {
    scene.ask("C1", "where is the zebra?", 10).await;
    let run = scene.claim(100).await.unwrap();
    let calls = called(scene, &run, agents.len()).await;
    for (call, agent) in calls.iter().zip(agents) {
        assert_eq!(give(scene, &run, call, agent).await, TaskGiven::Waits);
    }
    assert_eq!(park(scene, &run).await, Parked::Waits);
    Asked { run, calls }
}

async fn says(scene: &Scene, run: &ClaimedRun, text: &str) -> CommittedReply {
    let reply = scene.answer(run, text).await;
    scene.store.commit_reply(reply).await.unwrap()
}

#[tokio::test]
async fn an_agent_is_asked_once_and_its_answer_wakes_who_waits() {
    let scene = Scene::open().await;
    scene.ask("C1", "where is the zebra?", 10).await;
    let run = scene.claim(100).await.unwrap();
    let call = called(&scene, &run, 1).await.remove(0);
    // A call that is made again asks nobody again.
    for _ in 0..3 {
        assert_eq!(give(&scene, &run, &call, "look").await, TaskGiven::Waits);
    }
    assert_eq!(scene.runs().await.len(), 2);
    assert_eq!(park(&scene, &run).await, Parked::Waits);
    let child = scene.claim(200).await.unwrap();
    assert_eq!(child.run.agent, agent("look"));
    assert_eq!(child.as_of_seq, run.as_of_seq);
    // It works for the same person, and answers in no room of its own.
    assert_eq!(child.run.triggers, run.run.triggers);
    assert_eq!(child.asker, run.asker);
    let askers = |id| scene.store.run_askers(id);
    assert_eq!(
        askers(child.run.id).await.unwrap(),
        askers(run.run.id).await.unwrap()
    );
    assert!(!askers(child.run.id).await.unwrap().is_empty());
    assert!(scene.claim(201).await.is_none(), "who waits is not claimed");
    let queued = scene.store.queued_runs(10, 201).await.unwrap();
    assert_eq!(queued[0].waiting_for, WaitingFor::Agents);

    let turns = scene.turns().await;
    let reported = says(&scene, &child, "In the zoo.").await;
    assert_eq!(reported, CommittedReply::Reported);
    assert_eq!(state(&scene, child.run.id).await, RunState::Done);
    assert_eq!(scene.turns().await, turns);
    assert_eq!(scene.claim_posts(290).await, []);
    let given = task_of(&scene, &call).await;
    assert_eq!(
        (given.state, given.result.as_str()),
        (TaskState::Answered, "In the zoo.")
    );
    // Told once: a late word changes nothing.
    assert_eq!(says(&scene, &child, "No!").await, CommittedReply::Stale);
    let again = scene.claim(300).await.unwrap();
    assert_eq!(again.run.id, run.run.id);
    let story = scene.store.run_story(run.run.id).await.unwrap();
    assert_eq!(story.tasks.len(), 1);
    let story = scene.store.run_story(child.run.id).await.unwrap();
    assert_eq!(story.task.map(|task| task.parent), Some(run.run.id));
}

#[tokio::test]
async fn an_answer_that_comes_before_its_asker_waits_is_not_waited_for() {
    let scene = Scene::open().await;
    scene.ask("C1", "where is the zebra?", 10).await;
    let run = scene.claim(100).await.unwrap();
    let call = called(&scene, &run, 1).await.remove(0);
    assert_eq!(give(&scene, &run, &call, "look").await, TaskGiven::Waits);
    let child = scene.claim(200).await.unwrap();
    says(&scene, &child, "In the zoo.").await;
    assert_eq!(park(&scene, &run).await, Parked::Decided);
}

#[tokio::test]
async fn two_work_at_once_and_the_asker_goes_on_after_the_last() {
    let scene = Scene::open().await;
    let asked = asking(&scene, &["look", "pen", "check"]).await;
    let one = scene.claim(200).await.unwrap();
    let two = scene.claim(200).await.unwrap();
    assert!(scene.claim(200).await.is_none(), "two at once");
    // The room's other questions are not held up, and join none of these runs.
    let (_, other) = scene.ask("C1", "and tea?", 210).await;
    let of_room = scene.claim(220).await.unwrap();
    assert_eq!(of_room.run.id, other);
    assert!(matches!(
        says(&scene, &of_room, "At four.").await,
        CommittedReply::Written { .. }
    ));

    says(&scene, &two, "two").await;
    let three = scene.claim(230).await.unwrap();
    assert_eq!(three.run.agent, agent("check"));
    says(&scene, &one, "one").await;
    assert!(scene.claim(240).await.is_none(), "one is open still");
    // One that fails does not fail the others.
    let mut failed = scene.answer(&three, "I could not.").await;
    failed.kind = TurnKind::Notice;
    failed.ending = RunEnding::Dead {
        reason: "refused".to_owned(),
    };
    scene.store.commit_reply(failed).await.unwrap();
    assert_eq!(scene.claim(250).await.unwrap().run.id, asked.run.run.id);
    let mut states = Vec::new();
    for call in &asked.calls {
        states.push(task_of(&scene, call).await.state);
    }
    assert_eq!(
        states,
        [TaskState::Answered, TaskState::Answered, TaskState::Failed]
    );
}

#[tokio::test]
async fn cycles_depth_number_and_budget_are_bounded() {
    let scene = Scene::open().await;
    scene.ask("C1", "where is the zebra?", 10).await;
    let run = scene.claim(100).await.unwrap();
    let calls = called(&scene, &run, 6).await;
    let not = TaskGiven::Not;
    assert_eq!(
        give(&scene, &run, &calls[0], "helper").await,
        not(NotDelegated::Cycle)
    );
    let mut poor = task(&run, &calls[0], "look");
    poor.calls_max = 1;
    assert_eq!(
        scene.store.give_task(poor).await.unwrap(),
        not(NotDelegated::NothingLeft)
    );
    for (call, agent) in calls.iter().zip(["look", "pen", "check", "desk"]) {
        assert_eq!(give(&scene, &run, call, agent).await, TaskGiven::Waits);
    }
    assert_eq!(
        give(&scene, &run, &calls[4], "fifth").await,
        not(NotDelegated::TooMany)
    );
    park(&scene, &run).await;

    let child = scene.claim(200).await.unwrap();
    let calls = called(&scene, &child, 2).await;
    for on_path in ["helper", "look"] {
        assert_eq!(
            give(&scene, &child, &calls[0], on_path).await,
            not(NotDelegated::Cycle)
        );
    }
    assert_eq!(
        give(&scene, &child, &calls[0], "pen").await,
        TaskGiven::Waits
    );
    park(&scene, &child).await;
    scene.claim(201).await.unwrap();
    let mut grandchild = scene.claim(202).await.unwrap();
    while grandchild.run.agent != agent("pen")
        || task_parent(&scene, &grandchild).await != child.run.id
    {
        says(&scene, &grandchild, "done").await;
        grandchild = scene.claim(203).await.unwrap();
    }
    let calls = called(&scene, &grandchild, 1).await;
    assert_eq!(
        give(&scene, &grandchild, &calls[0], "other").await,
        not(NotDelegated::TooDeep)
    );
}

#[tokio::test]
async fn a_network_is_asked_unless_one_of_its_agents_waits_and_decides_by_who_asked_there() {
    let scene = Scene::open().await;
    scene.ask("C1", "where is the zebra?", 10).await;
    let run = scene.claim(100).await.unwrap();
    let calls = called(&scene, &run, 2).await;
    let mut team = task(&run, &calls[0], "team");
    team.members = vec![agent("pen"), agent("helper")];
    let given = scene.store.give_task(team.clone()).await.unwrap();
    assert_eq!(given, TaskGiven::Not(NotDelegated::MemberWaits));
    assert_eq!(scene.runs().await.len(), 1);

    team.members = vec![agent("pen"), agent("look")];
    assert_eq!(scene.store.give_task(team).await.unwrap(), TaskGiven::Waits);
    park(&scene, &run).await;
    let child = scene.claim(200).await.unwrap();
    assert_eq!(child.run.agent, agent("team"));
    let asked = |id| scene.store.asked_in_run(id);
    let of_child = asked(child.run.id).await.unwrap();
    assert_eq!(of_child, asked(run.run.id).await.unwrap());
    assert!(!of_child.people.is_empty());
    // One of its agents asks another network: neither it, nor who asked there, nor the agent itself is in that.
    let calls = called(&scene, &child, 1).await;
    let mut aides = task(&child, &calls[0], "aides");
    aides.asked_by = agent("look");
    for waits in ["look", "helper"] {
        aides.members = vec![agent("pen"), agent(waits)];
        let given = scene.store.give_task(aides.clone()).await.unwrap();
        assert_eq!(given, TaskGiven::Not(NotDelegated::MemberWaits), "{waits}");
    }
    // Another agent of its network was called before, and does not wait.
    aides.members = vec![agent("pen")];
    assert_eq!(
        scene.store.give_task(aides).await.unwrap(),
        TaskGiven::Waits
    );
}

async fn task_parent(scene: &Scene, run: &ClaimedRun) -> RunId {
    let task = scene.store.task_of_run(run.run.id).await.unwrap();
    task.unwrap().parent
}

/// A run used so many tokens, and was worked on so long.
async fn use_up(scene: &Scene, run: &ClaimedRun, tokens: u64, worked_ms: u64) {
    let (id, token) = (run.run.id, run.token);
    let call = ModelCall {
        conversation: run.run.conversation,
        agent: run.run.agent.clone(),
        model: "large".to_owned(),
        run: Some(id),
    };
    let spending = Spending {
        account: scene.account,
        person: None,
        purpose: Purpose::Answers,
        usage: Usage {
            prompt_tokens: tokens,
            ..Usage::default()
        },
        cost_micros: 0,
        call: Some(call),
        now_ms: 120,
    };
    scene.store.spend(spending).await.unwrap();
    let kept = scene.store.keep_worked_time(id, token, worked_ms);
    kept.await.unwrap();
}

#[tokio::test]
async fn who_is_asked_gets_half_of_what_is_left() {
    let scene = Scene::open().await;
    scene.ask("C1", "where is the zebra?", 10).await;
    let run = scene.claim(100).await.unwrap();
    use_up(&scene, &run, 200, 10_000).await;
    let calls = called(&scene, &run, 2).await;
    for (call, agent) in calls.iter().zip(["look", "pen"]) {
        let mut new = task(&run, call, agent);
        new.budget = RunBudget {
            tokens: 1_000,
            cost_micros: 0,
            worked_ms: 60_000,
        };
        assert_eq!(scene.store.give_task(new).await.unwrap(), TaskGiven::Waits);
    }
    let share = async |call| task_of(&scene, call).await.share;
    let (one, two) = (share(&calls[0]).await, share(&calls[1]).await);
    assert_eq!((one.budget.tokens, two.budget.tokens), (400, 200));
    assert_eq!(
        (one.budget.worked_ms, two.budget.worked_ms),
        (25_000, 12_500)
    );
    assert_eq!((one.budget.cost_micros, one.calls, two.calls), (0, 32, 16));
    for _ in 0..2 {
        let child = scene.claim(200).await.unwrap();
        use_up(&scene, &child, 30, 5).await;
    }
    let (used, _) = scene.store.children_use(run.run.id).await.unwrap();
    assert_eq!((used.tokens, used.worked_ms), (60, 10));
}

#[tokio::test]
async fn who_is_asked_ends_with_who_asked() {
    let scene = Scene::open().await;
    let asked = asking(&scene, &["look", "pen"]).await;
    let at_work = scene.claim(200).await.unwrap();
    // The one at work asked another one itself.
    let call = called(&scene, &at_work, 1).await.remove(0);
    assert_eq!(
        give(&scene, &at_work, &call, "check").await,
        TaskGiven::Waits
    );
    scene
        .store
        .cancel_run(asked.run.run.id, by_hand("enough"), 300)
        .await
        .unwrap();
    for call in asked.calls.iter().chain([&call]) {
        let task = scene.store.task_of_call(call.id).await.unwrap();
        // The call of the run that is told to stop is open until its worker lets go.
        if task
            .as_ref()
            .is_some_and(|task| task.parent == at_work.run.id)
        {
            continue;
        }
        assert_eq!(task.map(|task| task.state), Some(TaskState::Cancelled));
    }
    let reported = says(&scene, &at_work, "too late").await;
    assert_eq!(reported, CommittedReply::Cancelled);
    assert_eq!(state(&scene, asked.run.run.id).await, RunState::Cancelled);
    let runs = scene.store.all_runs_before(None, 9).await.unwrap();
    assert_eq!(runs.len(), 4);
    assert!(runs.iter().all(|run| run.state == RunState::Cancelled));
    for call in asked.calls.iter().chain([&call]) {
        let task = task_of(&scene, call).await;
        let ended = (task.state, task.result.as_str());
        assert_eq!(ended, (TaskState::Cancelled, ""));
    }
    assert!(scene.claim(400).await.is_none());
}

#[tokio::test]
async fn who_asked_goes_on_when_an_operator_ends_who_was_asked() {
    let scene = Scene::open().await;
    let asked = asking(&scene, &["look"]).await;
    let child = task_of(&scene, &asked.calls[0]).await.child;
    let cancelled = scene.store.cancel_run(child, by_hand("no"), 300);
    assert!(cancelled.await.unwrap());
    assert_eq!(
        task_of(&scene, &asked.calls[0]).await.state,
        TaskState::Cancelled
    );
    assert_eq!(scene.claim(400).await.unwrap().run.id, asked.run.run.id);
}

#[tokio::test]
async fn a_start_takes_over_who_asked_and_who_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = Some(folder.path().join("store.sqlite"));
    let scene = Scene::open_at(path.clone()).await;
    let asked = asking(&scene, &["look"]).await;
    let child = scene.claim(200).await.unwrap();
    scene.store.close().await.unwrap();
    drop(scene);
    let scene = Scene::open_at(path).await;
    let again = scene.claim(400).await.unwrap();
    assert_eq!(again.run.id, child.run.id);
    assert_eq!(
        says(&scene, &child, "from a dead worker").await,
        CommittedReply::Stale
    );
    says(&scene, &again, "In the zoo.").await;
    assert_eq!(scene.claim(500).await.unwrap().run.id, asked.run.run.id);
}

/// Whether anything that was said or done holds the word.
async fn has_the_word(scene: &Scene, asked: &Asked) -> bool {
    let store = &scene.store;
    let mut told = format!("{:?}", scene.turns().await);
    for call in &asked.calls {
        told += &format!("{:?}", store.task_of_call(call.id).await.unwrap());
    }
    for run in store.all_runs_before(None, 9).await.unwrap() {
        told += &format!("{:?}", store.task_of_run(run.id).await.unwrap());
        told += &format!("{:?}", store.tool_calls(run.id).await.unwrap());
        told += &format!("{:?}", store.steps(run.id).await.unwrap());
    }
    told.contains("zebra")
}

#[tokio::test]
async fn a_deleted_question_takes_along_who_was_asked_for_it() {
    for is_answered in [false, true] {
        let scene = Scene::open().await;
        let asked = asking(&scene, &["look"]).await;
        let child = scene.claim(200).await.unwrap();
        let step = scene.store.record_step(
            child.run.id,
            child.token,
            RecordedStep {
                number: 1,
                message: "the zebra is in the zoo".to_owned(),
                usage: Usage::default(),
                verdicts: Vec::new(),
            },
            210,
        );
        step.await.unwrap();
        if is_answered {
            says(&scene, &child, "The zebra is in the zoo.").await;
        }
        assert!(has_the_word(&scene, &asked).await);
        scene
            .store
            .capture_delete(scene.account, "C1", "m0", 300)
            .await
            .unwrap();
        assert!(!has_the_word(&scene, &asked).await, "{is_answered}");
        if !is_answered {
            let reported = says(&scene, &child, "The zebra!").await;
            assert_eq!(reported, CommittedReply::Cancelled);
        }
        assert_eq!(state(&scene, asked.run.run.id).await, RunState::Cancelled);
        assert!(!has_the_word(&scene, &asked).await, "{is_answered}");
        assert!(scene.claim(400).await.is_none());
    }
}

#[tokio::test]
async fn an_answer_goes_with_what_it_was_made_from() {
    let scene = Scene::open().await;
    let found = scene.say("C1", "the key lies under the mat", 5).await;
    let asked = asking(&scene, &["look"]).await;
    let child = scene.claim(200).await.unwrap();
    let call = called(&scene, &child, 1).await.remove(0);
    let said = "the key lies under the mat";
    let read = finish(&scene, &child, &call, said, &[found.turn]).await;
    assert_eq!(read, StepOutcome::Written);
    says(&scene, &child, "Under the mat.").await;
    let given = task_of(&scene, &asked.calls[0]).await;
    assert_eq!(given.sources, [found.turn]);
    scene
        .store
        .capture_delete(scene.account, "C1", "m0", 300)
        .await
        .unwrap();
    let given = task_of(&scene, &asked.calls[0]).await;
    assert_eq!(
        (given.state, given.result.as_str()),
        (TaskState::Forgotten, "")
    );
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
