//! Tool calls as rows, their turns in the timeline, and what stays of them when their steps go.

use vocative_core::acting::Beginning;
use vocative_core::file::ContentId;
use vocative_core::ids::TurnId;
use vocative_core::run::{ClaimedRun, StopCause, Stopping, Usage};
use vocative_core::tool_call::{CallLimits, CallRule, CallState, Refusal, StoredCall};
use vocative_core::turn::{TokenCount, Turn, TurnKind, Visibility};
use vocative_store::ExpiryBounds;
use vocative_store::contract::{
    CallBegun, CallFile, CallToBegin, ConsentSought, Deleted, LeaseOutcome, NewToolCall,
    RecordedStep, RunEnding, StepOutcome, ToolTurn, TurnFilter,
};

use crate::scene::{LEASE_MS, Scene, by_hand};
use crate::tools::{UNLIMITED, tool_result, tool_result_with};

fn turn(found: TurnId) -> ToolTurn {
    ToolTurn {
        call_id: "call_1".to_owned(),
        tool: "conversation_search".to_owned(),
        is_known: true,
        call: "conversation_search {\"query\":\"deploy\"}".to_owned(),
        call_tokens: None,
        result: "zebraword was found".to_owned(),
        result_tokens: Some(TokenCount {
            tokens: 4,
            counter: "class_v2".to_owned(),
        }),
        sources: vec![found],
    }
}

async fn called(scene: &Scene, run: &ClaimedRun, turn: ToolTurn) -> StepOutcome {
    tool_result(&scene.store, run, turn, 150).await
}

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
async fn acting(scene: &Scene, digests: &[u8]) -> (ClaimedRun, Vec<StoredCall>) {
    scene.ask("C1", "refund it", 10).await;
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
async fn a_call_that_acts_is_begun_once() {
    let scene = Scene::open().await;
    let (run, calls) = acting(&scene, &[7]).await;
    assert_eq!(
        decided(&scene, &run, &calls[0], UNLIMITED, 142).await,
        Beginning::Make
    );
    assert_eq!(
        decided(&scene, &run, &calls[0], UNLIMITED, 143).await,
        Beginning::Unknown
    );
    // It is written down once, however often its step is resumed.
    let again = asked_again(&scene, &run, &[7]).await;
    assert_eq!((again.len(), again[0].id), (1, calls[0].id));
    assert_eq!(again[0].state, CallState::Running);
    let stored = scene.store.tool_calls(run.run.id).await.unwrap();
    assert_eq!(stored, again);
    assert_eq!(stored[0].arguments, "{\"amount\":7}");
    let begun = scene.store.status(200).await.unwrap().tools;
    assert_eq!((begun[0].tool.as_str(), begun[0].begun), ("refund", 1));
}

#[tokio::test]
async fn limits_count_what_was_begun() {
    let scene = Scene::open().await;
    let (run, calls) = acting(&scene, &[1, 2, 3, 4]).await;
    let limits = CallLimits {
        day_tool_calls_max: Some(2),
        ..UNLIMITED
    };
    let day_ms = 86_400_000;
    let refused = Beginning::Refuse(Refusal::DayBudget);
    for (n, now_ms, expected) in [
        (0, 200, Beginning::Make),
        (1, 201, Beginning::Make),
        (2, 202, refused),
        (2, day_ms + 1, Beginning::Make),
    ] {
        let found = decided(&scene, &run, &calls[n], limits, now_ms).await;
        assert_eq!(found, expected, "{n} at {now_ms}");
    }
    let limits = CallLimits {
        run_calls_max: 3,
        ..UNLIMITED
    };
    let found = decided(&scene, &run, &calls[3], limits, 203).await;
    assert_eq!(found, Beginning::Refuse(Refusal::RunBudget));
}

#[tokio::test]
async fn a_call_that_its_run_s_end_cuts_off_is_unknown_in_the_timeline() {
    let scene = Scene::open().await;
    let (run, calls) = acting(&scene, &[7, 8]).await;
    decided(&scene, &run, &calls[0], UNLIMITED, 142).await;
    let stopping = Stopping {
        cause: StopCause::Stopped,
        detail: "somebody said stop".to_owned(),
    };
    let stopped = scene.store.cancel_run(run.run.id, stopping, 150).await;
    stopped.unwrap();
    let mut reply = scene.answer(&run, "").await;
    reply.ending = RunEnding::Cancelled;
    scene.store.commit_reply(reply).await.unwrap();
    let states: Vec<(CallState, Option<Refusal>)> = scene
        .store
        .tool_calls(run.run.id)
        .await
        .unwrap()
        .iter()
        .map(|call| (call.state, call.refusal))
        .collect();
    let expected = [
        (CallState::Unknown, None),
        (CallState::Denied, Some(Refusal::RunEnded)),
    ];
    assert_eq!(states, expected);
    let told: Vec<String> = timeline(&scene)
        .await
        .into_iter()
        .map(|t| t.content)
        .collect();
    let cut_off = "Error: the run was ended while this call was at work; it may have acted or not";
    assert_eq!(told, ["refund", cut_off]);
}

async fn timeline(scene: &Scene) -> Vec<Turn> {
    let filter = TurnFilter {
        with_hidden: true,
        ..TurnFilter::default()
    };
    let room = scene.conversation("C1").await;
    let turns = scene.store.turns(room, filter).await.unwrap();
    let is_tool = |turn: &Turn| turn.visibility == Visibility::Timeline;
    turns.into_iter().filter(is_tool).collect()
}

#[tokio::test]
async fn a_call_and_its_result_are_in_the_timeline_and_nowhere_else() {
    let scene = Scene::open().await;
    let found = scene.say("C1", "zebraword", 5).await;
    scene.ask("C1", "find it", 10).await;
    let run = scene.claim(100).await.unwrap();
    begin(&scene, &run).await;
    let written = called(&scene, &run, turn(found.turn)).await;
    assert_eq!(written, StepOutcome::Written);
    let turns = timeline(&scene).await;
    let shown: Vec<(TurnKind, &str, &str, Option<&str>)> = turns
        .iter()
        .map(|turn| {
            (
                turn.kind,
                turn.participant.shown_name(),
                turn.content.as_str(),
                turn.call_id.as_deref(),
            )
        })
        .collect();
    let call = "conversation_search {\"query\":\"deploy\"}";
    let expected = [
        (TurnKind::ToolCall, "Helper", call, Some("call_1")),
        (
            TurnKind::ToolResult,
            "conversation_search",
            "zebraword was found",
            Some("call_1"),
        ),
    ];
    assert_eq!(shown, expected);
    assert_eq!(turns[0].run, Some(run.run.id));
    assert_eq!(turns[1].reply_to, Some(turns[0].id));

    let reply = scene.answer(&run, "here it is").await;
    scene.store.commit_reply(reply).await.unwrap();
    let turns = scene
        .store
        .turns(found.conversation, TurnFilter::default())
        .await;
    let room_said: Vec<String> = turns.unwrap().into_iter().map(|t| t.content).collect();
    assert_eq!(room_said, ["zebraword", "find it", "here it is"]);
    assert_eq!(scene.found(found.conversation, "found").await, [""; 0]);
    let counted = scene.store.conversation(found.conversation).await;
    assert_eq!(counted.unwrap().turns, 3);
}

#[tokio::test]
async fn a_tool_that_a_model_made_up_is_nobody() {
    let scene = Scene::open().await;
    let (asked, _) = scene.ask("C1", "find it", 10).await;
    let run = scene.claim(100).await.unwrap();
    begin(&scene, &run).await;
    let made_up = ToolTurn {
        tool: "launch_rockets".to_owned(),
        is_known: false,
        ..turn(asked.turn)
    };
    called(&scene, &run, made_up).await;
    let turns = timeline(&scene).await;
    assert_eq!(turns[1].participant.platform_id, "vocative");
    assert_eq!(turns[1].content, "zebraword was found");
    let speakers = scene.store.speakers(asked.conversation, 9).await.unwrap();
    let speakers = format!("{speakers:?}");
    assert!(!speakers.contains("rockets"), "{speakers}");
}

#[tokio::test]
async fn a_stale_lease_writes_no_tool_turn() {
    let scene = Scene::open().await;
    let (asked, _) = scene.ask("C1", "find it", 10).await;
    let lost = scene.claim(100).await.unwrap();
    begin(&scene, &lost).await;
    scene.claim(100 + LEASE_MS).await.unwrap();
    let written = called(&scene, &lost, turn(asked.turn)).await;
    assert_eq!(written, StepOutcome::Stale);
    assert_eq!(timeline(&scene).await, []);
}

#[tokio::test]
async fn what_was_found_and_then_deleted_is_gone_from_results_and_steps() {
    let scene = Scene::open().await;
    let found = scene.say("C1", "zebraword", 5).await;
    scene.ask("C1", "find it", 10).await;
    let run = scene.claim(100).await.unwrap();
    begin(&scene, &run).await;
    called(&scene, &run, turn(found.turn)).await;
    let deleted = scene
        .store
        .capture_delete(scene.account, "C1", "m0", 200)
        .await
        .unwrap();
    assert!(matches!(deleted, Deleted::Blanked { .. }));
    assert_eq!(timeline(&scene).await, []);
    assert_eq!(scene.store.steps(run.run.id).await.unwrap(), [""; 0]);
    assert_eq!(scene.store.tool_calls(run.run.id).await.unwrap(), []);

    // What is found before the delete and written after it is not written at all.
    begin(&scene, &run).await;
    let late = called(&scene, &run, turn(found.turn)).await;
    assert_eq!(late, StepOutcome::SourceGone);
    assert_eq!(timeline(&scene).await, []);
}

fn picture(bytes: &[u8]) -> CallFile {
    CallFile {
        name: "chart.png".to_owned(),
        mime_type: "image/png".to_owned(),
        bytes: bytes.into(),
        is_for_people: true,
    }
}

/// Whether the bytes are still on the disk once what was dropped is removed.
async fn is_stored(scene: &Scene, content: ContentId) -> bool {
    scene.store.remove_dropped().await.unwrap();
    scene.store.content(content, 99).await.unwrap().is_some()
}

#[tokio::test]
async fn files_of_a_call_are_its_runs_and_go_with_what_it_read() {
    let scene = Scene::open().await;
    let found = scene.say("C1", "zebraword", 5).await;
    scene.ask("C1", "draw it", 10).await;
    let run = scene.claim(100).await.unwrap();
    begin(&scene, &run).await;
    let given = (turn(found.turn), vec![picture(b"one"), picture(b"two")]);
    let written = tool_result_with(&scene.store, &run, given.clone(), 150).await;
    assert_eq!(written, StepOutcome::Written);
    // Said again by an attempt that comes too late, it is not kept twice.
    tool_result_with(&scene.store, &run, given, 151).await;
    let files = scene.store.files_of_calls(run.run.id).await.unwrap();
    assert_eq!(files.len(), 2);
    assert_eq!((files[0].step, files[0].call_id.as_str()), (1, "call_1"));
    let file = &files[0].file;
    assert_eq!(file.facts.shown_name(), "chart.png");
    assert!(file.is_for_people());
    let (content, size_bytes) = file.content.unwrap();
    let bytes = scene.store.content(content, size_bytes).await.unwrap();
    assert_eq!(bytes.as_deref(), Some(b"one".as_slice()));
    assert_eq!(scene.store.content_bytes().await.unwrap(), 6);

    let deleted = scene.store.capture_delete(scene.account, "C1", "m0", 200);
    deleted.await.unwrap();
    assert_eq!(scene.store.files_of_calls(run.run.id).await.unwrap(), []);
    assert!(!is_stored(&scene, content).await);
}

#[tokio::test]
async fn files_of_a_call_go_with_its_expired_run() {
    let scene = Scene::open().await;
    let (asked, _) = scene.ask("C1", "draw it", 10).await;
    let run = scene.claim(100).await.unwrap();
    begin(&scene, &run).await;
    let given = (turn(asked.turn), vec![picture(b"one")]);
    tool_result_with(&scene.store, &run, given, 150).await;
    let files = scene.store.files_of_calls(run.run.id).await.unwrap();
    let (content, _) = files[0].file.content.unwrap();
    let stopping = by_hand("no longer wanted");
    let store = &scene.store;
    let stopped = store.cancel_run(run.run.id, stopping, 160);
    assert!(stopped.await.unwrap());
    let ended = store.requeue_run(run.run.id, run.token, 0, "stopped", 160);
    assert_eq!(ended.await.unwrap(), LeaseOutcome::Written);
    assert!(is_stored(&scene, content).await);
    let bounds = ExpiryBounds {
        runs_before_ms: Some(1_000),
        ..ExpiryBounds::default()
    };
    let expired = scene.store.expire(scene.account, bounds, u64::MAX, 2_000);
    assert_eq!(expired.await.unwrap().runs, 1);
    assert!(!is_stored(&scene, content).await);
    assert_eq!(scene.store.files_of_calls(run.run.id).await.unwrap(), []);
    let turns = scene.turns().await;
    assert!(turns.iter().all(|turn| turn.attachments.is_empty()));
}
