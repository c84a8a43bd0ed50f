//! The course of a run as it is told while it goes on, and what is left of it.

use vocative_core::ids::{EventId, RunId, TurnId};
use vocative_core::run::{ClaimedRun, RunState, StopCause, Stopping, Usage};
use vocative_core::run_event::{EndingKind, Happening, RunEvent};
use vocative_store::contract::{
    CommittedReply, Deleted, EventScope, LeaseOutcome, NewRunEvent, RecordedStep, RunEnding,
    ToolTurn,
};
use vocative_store::erasure::ErasureTarget;
use vocative_store::{ExpiryBounds, Store};

use crate::scene::{LEASE_MS, Scene, by_hand};
use crate::tools::tool_result;

fn text(step: u32, text: &str) -> NewRunEvent {
    NewRunEvent::Text {
        step,
        text: text.to_owned(),
    }
}

fn call() -> NewRunEvent {
    NewRunEvent::ToolCall {
        step: 1,
        call_id: "call_1".to_owned(),
        tool: "conversation_search".to_owned(),
        arguments: "conversation_search {\"query\":\"zebra\"}".to_owned(),
    }
}

async fn tell(store: &Store, run: &ClaimedRun, events: Vec<NewRunEvent>) -> LeaseOutcome {
    let told = store.record_run_events(run.run.id, run.token, events, run.as_of_ms + 1);
    told.await.unwrap()
}

async fn events(store: &Store, run: RunId) -> Vec<RunEvent> {
    let all = store.run_events_after(EventScope::Run(run), EventId(0), 1_000);
    all.await.unwrap()
}

async fn names(store: &Store, run: RunId) -> Vec<&'static str> {
    let events = events(store, run).await;
    events.iter().map(|event| event.what.name()).collect()
}

/// A run in the chat C1 that is worked on and has said something.
async fn speaking(scene: &Scene) -> ClaimedRun {
    scene.ask("C1", "where is it?", 10).await;
    let run = scene.claim(100).await.unwrap();
    let told = tell(
        &scene.store,
        &run,
        vec![text(1, "zebra "), text(1, "park"), call()],
    )
    .await;
    assert_eq!(told, LeaseOutcome::Written);
    run
}

/// The events of all runs that say something of their own, which no turn says.
async fn texts_left(scene: &Scene) -> usize {
    let all = scene
        .store
        .run_events_after(EventScope::All, EventId(0), 1_000);
    let all = all.await.unwrap().into_iter();
    let texts = all.filter(|event| match &event.what {
        Happening::Text { .. } | Happening::ToolProgress { .. } => true,
        Happening::ToolCall { arguments, .. } => arguments.is_some(),
        Happening::ToolResult { turn, text, .. } => turn.is_none() && !text.is_empty(),
        _ => false,
    });
    texts.count()
}

/// How many runs have ended and tell it otherwise than once, or have not and tell it.
async fn ended_otherwise(scene: &Scene) -> usize {
    let mut wrong = 0;
    for run in scene.store.all_runs_before(None, 99).await.unwrap() {
        let is_over = matches!(
            run.state,
            RunState::Done | RunState::Cancelled | RunState::Dead { .. }
        );
        let told = events(&scene.store, run.id).await;
        let ends = told
            .iter()
            .filter(|event| matches!(event.what, Happening::Ended(_)));
        wrong += usize::from(ends.count() != usize::from(is_over));
    }
    wrong
}

#[tokio::test]
async fn a_run_tells_its_course_in_order_and_at_its_end_the_turn_has_the_text() {
    let scene = Scene::open().await;
    let run = speaking(&scene).await;
    let (id, store) = (run.run.id, &scene.store);
    let usage = Usage {
        prompt_tokens: 5,
        completion_tokens: 2,
        ..Usage::default()
    };
    let step = store.record_step(
        id,
        run.token,
        RecordedStep {
            number: 1,
            message: "{}".to_owned(),
            usage,
            verdicts: Vec::new(),
        },
        130,
    );
    assert_eq!(step.await.unwrap(), LeaseOutcome::Written);
    let expected = ["started", "text", "text", "tool_call", "usage"];
    assert_eq!(names(store, id).await, expected);
    let (snapshot, through) = store.run_snapshot(id).await.unwrap();
    assert_eq!((snapshot.step, snapshot.text.as_str()), (1, "zebra park"));
    assert_eq!((snapshot.state, snapshot.end), ("leased", None));
    let before = events(store, id).await;
    assert_eq!(before.last().unwrap().id, Some(through));
    assert!(before.windows(2).all(|pair| pair[0].id < pair[1].id));

    let mut answer = scene.answer(&run, "zebra park, of course").await;
    answer.now_ms = 200;
    let committed = store.commit_reply(answer).await.unwrap();
    let CommittedReply::Written { turn, .. } = committed else {
        panic!("{committed:?}");
    };
    let after = events(store, id).await;
    assert_eq!(texts_left(&scene).await, 0);
    // What is left has the ids it had.
    let kept = [before[0].id, before[3].id, before[4].id];
    assert_eq!(
        after[..3].iter().map(|event| event.id).collect::<Vec<_>>(),
        kept
    );
    let Happening::Ended(ending) = &after[3].what else {
        panic!("{after:?}");
    };
    assert_eq!(
        (ending.kind, ending.turn),
        (EndingKind::Finished, Some(turn))
    );
    assert_eq!(ending.text, "zebra park, of course");
    assert_eq!((after[3].at_ms, after.len()), (200, 4));

    let (snapshot, _) = store.run_snapshot(id).await.unwrap();
    assert_eq!(snapshot.text, "zebra park, of course");
    assert_eq!(snapshot.end.as_ref(), Some(&after[3]));
    let late = tell(store, &run, vec![text(1, "more")]).await;
    assert_eq!(
        (late, names(store, id).await.len()),
        (LeaseOutcome::Stale, 4)
    );
}

#[tokio::test]
async fn what_another_attempt_or_answer_makes_void_is_taken_back() {
    let scene = Scene::open().await;
    let run = speaking(&scene).await;
    let (id, store) = (run.run.id, &scene.store);
    tell(store, &run, vec![NewRunEvent::Restarted, text(1, "lion")]).await;
    assert_eq!(
        names(store, id).await,
        ["started", "tool_call", "restarted", "text"]
    );
    assert_eq!(store.run_snapshot(id).await.unwrap().0.text, "lion");
    // An answer to a later step takes the place of what was said before it.
    tell(store, &run, vec![text(2, "tiger")]).await;
    assert_eq!(store.run_snapshot(id).await.unwrap().0.text, "tiger");

    let given_back = store.requeue_run(id, run.token, 300, "busy", 200).await;
    assert_eq!(given_back.unwrap(), LeaseOutcome::Written);
    assert_eq!(texts_left(&scene).await, 0);
    let again = scene.claim(300).await.unwrap();
    let expected = ["started", "tool_call", "restarted", "restarted"];
    assert_eq!(names(store, id).await, expected);
    // Its lease runs out: somebody else begins again, and the first tells no more.
    tell(store, &again, vec![text(1, "wolf")]).await;
    let third = scene.claim(300 + LEASE_MS).await.unwrap();
    assert_eq!(
        tell(store, &again, vec![text(1, "!")]).await,
        LeaseOutcome::Stale
    );
    assert_eq!((texts_left(&scene).await, third.run.id), (0, id));
}

/// Ways in which a run ends, as far as the store knows them, and how each is told.
const ENDINGS: [(&str, &str); 10] = [
    ("answered", "finished"),
    ("given up", "failed"),
    ("cancelled aloud", "cancelled"),
    ("interrupted", "interrupted"),
    ("given back", "cancelled"),
    ("reclaimed", "cancelled"),
    ("dropped", "failed"),
    ("deleted at work", "cancelled"),
    ("cancelled in line", "cancelled"),
    ("deleted in line", "cancelled"),
];

fn dead() -> RunEnding {
    RunEnding::Dead {
        reason: "no".to_owned(),
    }
}

/// Ends a run that has said something, or one that waits.
async fn end(scene: &Scene, way: &str, id: RunId, message: &str, claimed: Option<ClaimedRun>) {
    let store = &scene.store;
    let reply = async |ending| {
        let run = claimed.as_ref().unwrap();
        let mut reply = scene.answer(run, "said").await;
        reply.ending = ending;
        store.commit_reply(reply).await.unwrap();
    };
    let stop = async |why: Stopping| assert!(store.cancel_run(id, why, 120).await.unwrap());
    match way {
        "answered" => reply(RunEnding::Done).await,
        "given up" => reply(dead()).await,
        "cancelled aloud" => reply(RunEnding::Cancelled).await,
        "interrupted" => {
            stop(StopCause::Interrupted.into()).await;
            reply(RunEnding::Done).await;
        }
        "given back" => {
            stop(by_hand("by hand")).await;
            let token = claimed.as_ref().unwrap().token;
            let back = store.requeue_run(id, token, 0, "stopped", 130).await;
            assert_eq!(back.unwrap(), LeaseOutcome::Written);
        }
        "reclaimed" => {
            stop(by_hand("by hand")).await;
            assert_eq!(scene.claim(100 + LEASE_MS).await, None);
        }
        "dropped" => {
            reply(dead()).await;
            store.revive_run(id, false, 140).await.unwrap();
        }
        "cancelled in line" => stop(by_hand("by hand")).await,
        _ => {
            let gone = store
                .capture_delete(scene.account, "C1", message, 120)
                .await;
            assert!(matches!(gone.unwrap(), Deleted::Blanked { .. }));
            assert_eq!(
                texts_left(scene).await,
                0,
                "it goes with what it was made from"
            );
            if claimed.is_some() {
                reply(RunEnding::Done).await;
            }
        }
    }
}

#[tokio::test]
async fn each_ending_is_told_exactly_once() {
    for (way, expected) in ENDINGS {
        let scene = Scene::open().await;
        let (_, id) = scene.ask("C1", "one", 10).await;
        let mut claimed = None;
        if !way.ends_with("in line") {
            let run = scene.claim(100).await.unwrap();
            tell(&scene.store, &run, vec![text(1, "zebra")]).await;
            claimed = Some(run);
        }
        end(&scene, way, id, "m0", claimed).await;
        let told = names(&scene.store, id).await;
        assert_eq!(told.last(), Some(&expected), "{way}");
        let wrong = ended_otherwise(&scene).await;
        assert_eq!((wrong, texts_left(&scene).await), (0, 0), "{way}: {told:?}");
    }
}

#[tokio::test]
async fn a_run_that_is_brought_back_has_not_ended_and_ends_once_more() {
    let scene = Scene::open().await;
    let run = speaking(&scene).await;
    let (id, store) = (run.run.id, &scene.store);
    let mut given_up = scene.answer(&run, "sorry").await;
    given_up.ending = dead();
    store.commit_reply(given_up).await.unwrap();
    store.revive_run(id, true, 200).await.unwrap();
    assert_eq!(names(store, id).await, ["started", "tool_call"]);
    let again = scene.claim(300).await.unwrap();
    let answer = scene.answer(&again, "here").await;
    store.commit_reply(answer).await.unwrap();
    assert_eq!(
        names(store, id).await,
        ["started", "tool_call", "restarted", "finished"]
    );
    assert_eq!(store.run_snapshot(id).await.unwrap().0.text, "here");
    assert_eq!(ended_otherwise(&scene).await, 0);
}

#[tokio::test]
async fn what_a_tool_found_is_told_from_its_turn_and_goes_with_what_it_was_made_from() {
    let scene = Scene::open().await;
    let run = speaking(&scene).await;
    let (id, store) = (run.run.id, &scene.store);
    let found = scene.say("C1", "zebraword", 5).await;
    let usage = Usage::default();
    let step = store.record_step(
        id,
        run.token,
        RecordedStep {
            number: 1,
            message: "asked".to_owned(),
            usage,
            verdicts: Vec::new(),
        },
        130,
    );
    step.await.unwrap();
    let turn = ToolTurn {
        call_id: "call_1".to_owned(),
        tool: "conversation_search".to_owned(),
        is_known: true,
        call: "conversation_search {}".to_owned(),
        call_tokens: None,
        result: "zebraword was found".to_owned(),
        result_tokens: None,
        sources: vec![found.turn],
    };
    tool_result(store, &run, turn, 150).await;
    tell(store, &run, vec![text(2, "it is zebraword")]).await;
    let result = |events: &[RunEvent]| match &events.last().unwrap().what {
        Happening::ToolResult { text, turn, .. } => (text.clone(), turn.is_some()),
        other => panic!("{other:?}"),
    };
    let all = events(store, id).await;
    let (last, before) = all.split_last().unwrap();
    assert_eq!(last.what.name(), "text");
    assert_eq!(result(before), ("zebraword was found".to_owned(), true));

    let gone = store.capture_delete(scene.account, "C1", "m1", 200).await;
    assert!(matches!(gone.unwrap(), Deleted::Blanked { .. }));
    let left = events(store, id).await;
    assert_eq!(texts_left(&scene).await, 0);
    assert_eq!(result(&left), (String::new(), true));
}

fn result(text: &str, sources: Vec<TurnId>) -> NewRunEvent {
    NewRunEvent::ToolResult {
        step: 1,
        call_id: "call_1".to_owned(),
        tool: "conversation_search".to_owned(),
        text: text.to_owned(),
        sources,
    }
}

/// The results that are told: text, and whether a turn has it.
async fn results(store: &Store, run: RunId) -> Vec<(String, bool)> {
    let events = events(store, run).await;
    let results = events.iter().filter_map(|event| match &event.what {
        Happening::ToolResult { text, turn, .. } => Some((text.clone(), turn.is_some())),
        _ => None,
    });
    results.collect()
}

#[tokio::test]
async fn a_result_is_told_when_it_comes_and_once() {
    let scene = Scene::open().await;
    let run = speaking(&scene).await;
    let (id, store) = (run.run.id, &scene.store);
    let step = store.record_step(
        id,
        run.token,
        RecordedStep {
            number: 1,
            message: "asked".to_owned(),
            usage: Usage::default(),
            verdicts: Vec::new(),
        },
        130,
    );
    step.await.unwrap();
    tell(store, &run, vec![result("it is there", vec![])]).await;
    let told = ("it is there".to_owned(), false);
    assert_eq!(results(store, id).await, [told]);
    let before = events(store, id).await;
    let turn = ToolTurn {
        call_id: "call_1".to_owned(),
        tool: "conversation_search".to_owned(),
        is_known: true,
        call: "conversation_search {}".to_owned(),
        call_tokens: None,
        result: "it is there".to_owned(),
        result_tokens: None,
        sources: vec![],
    };
    tool_result(store, &run, turn, 150).await;
    let recorded = [("it is there".to_owned(), true)];
    assert_eq!(results(store, id).await, recorded);
    let ids = |events: &[RunEvent]| events.iter().map(|event| event.id).collect::<Vec<_>>();
    assert_eq!(ids(&events(store, id).await), ids(&before), "no id changes");
    // A slow disk: what is told late was recorded meanwhile.
    let late = tell(store, &run, vec![result("it is there", vec![])]).await;
    assert_eq!(late, LeaseOutcome::Written);
    assert_eq!(results(store, id).await, recorded);
}

#[tokio::test]
async fn a_result_that_no_turn_has_yet_goes_with_what_it_quotes() {
    let scene = Scene::open().await;
    let run = speaking(&scene).await;
    let (id, store) = (run.run.id, &scene.store);
    let found = scene.say("C1", "zebraword", 5).await;
    let quoting = || vec![result("zebraword was found", vec![found.turn])];
    tell(store, &run, quoting()).await;
    assert_eq!(
        results(store, id).await,
        [("zebraword was found".to_owned(), false)]
    );
    let gone = store.capture_delete(scene.account, "C1", "m1", 200).await;
    assert!(matches!(gone.unwrap(), Deleted::Blanked { .. }));
    assert_eq!(results(store, id).await, [(String::new(), false)]);
    // Found before the delete and told after it.
    tell(store, &run, quoting()).await;
    let empty = (String::new(), false);
    assert_eq!(results(store, id).await, [empty.clone(), empty]);
    let told = format!("{:?}", events(store, id).await);
    assert!(!told.contains("zebraword"), "{told}");
}

#[tokio::test]
async fn an_erasure_takes_away_what_is_being_said() {
    let scene = Scene::open().await;
    scene.say("C2", "the code is zebra-7f3a9c ok?", 5).await;
    let run = speaking(&scene).await;
    let target = ErasureTarget::Person("acme/Ada".to_owned());
    let plan = scene.store.plan_erasure(target, 50_000).await.unwrap();
    let ids: Vec<_> = plan.entries.iter().map(|entry| entry.id).collect();
    scene.store.begin_erasure(plan.entries).await.unwrap();
    let clock = std::sync::atomic::AtomicI64::new(50_000);
    let later = || clock.fetch_add(30_000, std::sync::atomic::Ordering::Relaxed);
    scene.store.carry_out_all(&ids, false, later).await.unwrap();
    assert_eq!(texts_left(&scene).await, 0);
    let late = tell(&scene.store, &run, vec![text(1, "zebra")]).await;
    assert_eq!(late, LeaseOutcome::Stale);
}

#[tokio::test]
async fn retention_lets_the_events_of_old_runs_go_and_their_end_is_still_told() {
    let scene = Scene::open().await;
    let run = speaking(&scene).await;
    let answer = scene.answer(&run, "here").await;
    scene.store.commit_reply(answer).await.unwrap();
    let bounds = ExpiryBounds {
        runs_before_ms: Some(10_000),
        ..ExpiryBounds::default()
    };
    let expired = scene
        .store
        .expire(scene.account, bounds, u64::MAX, 20_000)
        .await
        .unwrap();
    assert_eq!(expired.runs, 1);
    assert_eq!(events(&scene.store, run.run.id).await, []);
    let (snapshot, _) = scene.store.run_snapshot(run.run.id).await.unwrap();
    let end = snapshot.end.unwrap();
    assert_eq!(
        (end.id, end.what.name(), snapshot.text.as_str()),
        (None, "finished", "here")
    );
}

#[tokio::test]
async fn events_follow_their_conversation_and_are_read_by_it() {
    let scene = Scene::open().await;
    let run = speaking(&scene).await;
    // The larger conversation keeps its id.
    for at_ms in 0..9 {
        scene.say("C2", "meanwhile", at_ms).await;
    }
    scene.say("C3", "elsewhere", 9).await;
    let old = run.run.conversation;
    let new = scene.conversation("C2").await;
    let other = scene.conversation("C3").await;
    let count = async |room| {
        let scope = EventScope::Conversation(room);
        let read = scene.store.run_events_after(scope, EventId(0), 100);
        read.await.unwrap().len()
    };
    assert_eq!((count(old).await, count(new).await), (4, 0));
    let (open, through) = scene.store.conversation_snapshot(old).await.unwrap();
    assert_eq!((open.len(), open[0].text.as_str()), (1, "zebra park"));
    let merged = scene.store.merge_chats(scene.account, "C1", "C2", 150);
    merged.await.unwrap();
    assert_eq!((count(new).await, count(other).await), (4, 0));
    assert_eq!(names(&scene.store, run.run.id).await.len(), 4);
    assert_eq!(scene.store.newest_event().await.unwrap(), through);
    let all = events(&scene.store, run.run.id).await;
    let after = all[0].id.unwrap();
    let page = scene.store.run_events_after(EventScope::All, after, 2);
    assert_eq!(page.await.unwrap(), all[1..3]);
}
