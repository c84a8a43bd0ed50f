//! Calls that wait for people: asked for once, decided once, and what their runs do meanwhile.

#![allow(clippy::unwrap_used)]

use vocative_contract::envelope::{Sender, SenderKind};
use vocative_contract::outbound::{Part, Target};
use vocative_core::acting::Beginning;
use vocative_core::approving::{
    AfterUntrusted, ApprovalButton, ApprovalChoice, ApprovalRule, ApprovalState, Approvers,
    DecidedVia, NoDecision, PressVerdict, StoredApproval,
};
use vocative_core::ids::{ApprovalId, RunId};
use vocative_core::run::{ClaimedRun, RunState, Usage};
use vocative_core::tool_call::{CallRule, StoredCall};

use crate::NewId as _;
use crate::contract::{
    AskOutcome, CallBegun, CallToBegin, ConsentSought, NewApproval, NewPress, NewToolCall,
    NonMessage, OperatorDecided, OperatorDecision, Parked, PressAnswer, Pressed, PressedButton,
    PressedCard, RecordedStep,
};
use crate::scene::{Room, Scene, UNLIMITED};

const DIGEST: [u8; 32] = [7; 32];
const DEFINITION: [u8; 32] = [9; 32];

/// Changes rows as nobody does.
async fn by_hand(scene: &Scene, sql: &'static str) {
    scene
        .write(move |connection| {
            connection.execute(sql, [])?;
            Ok(())
        })
        .await;
}

struct Waiting {
    run: ClaimedRun,
    call: StoredCall,
    approval: ApprovalId,
}

/// A run whose only call waits for a person from 200 on, until `expires_at_ms`.
async fn waiting(scene: &Scene, room: &Room, expires_at_ms: Option<i64>) -> Waiting {
    let (_, id) = scene.ask(room, "refund it", 10).await;
    own_run(scene, id).await;
    let run = scene.claim(100).await.unwrap();
    let call = called(scene, &run, DIGEST).await;
    let (approval, asked) = ask(scene, &run, &call, ApprovalRule::Always, expires_at_ms).await;
    assert_eq!(asked, AskOutcome::Waits);
    let parked = scene.store.park_run(run.run.id, run.token, 201).await;
    assert_eq!(parked.unwrap(), Parked::Waits);
    Waiting {
        run,
        call,
        approval,
    }
}

/// The run is its asker's.
async fn own_run(scene: &Scene, run: RunId) {
    scene
        .write(move |connection| {
            connection
                .prepare_cached(
                    "UPDATE runs SET person_participant_id =
                         (SELECT t.participant_id FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                          WHERE g.run_id = runs.id)
                     WHERE uuid = ?1",
                )?
                .execute([run])?;
            Ok(())
        })
        .await;
}

async fn called(scene: &Scene, run: &ClaimedRun, digest: [u8; 32]) -> StoredCall {
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
    step.await.unwrap();
    let call = NewToolCall {
        call_id: "call_1".to_owned(),
        tool: "refund".to_owned(),
        arguments: "{\"amount\":7}".to_owned(),
        digest,
        rule: CallRule::Once,
    };
    let calls = scene.store.record_tool_calls(id, token, 1, vec![call], 141);
    calls.await.unwrap().unwrap().remove(0)
}

async fn ask(
    scene: &Scene,
    run: &ClaimedRun,
    call: &StoredCall,
    asking: ApprovalRule,
    expires_at_ms: Option<i64>,
) -> (ApprovalId, AskOutcome) {
    let id = ApprovalId::generate();
    let new = NewApproval {
        id,
        run: run.run.id,
        token: run.token,
        call: call.id,
        sought: sought(run, asking),
        target: String::new(),
        parameters: "{}".to_owned(),
        approvers: Approvers::from_text("requester").unwrap(),
        is_whole: true,
        place: target(),
        card: Part::plain("card"),
        expired: Part::plain("expired"),
        cancelled: Part::plain("cancelled"),
        expires_at_ms,
        now_ms: 200,
    };
    (id, scene.store.ask_approval(new).await.unwrap())
}

fn sought(run: &ClaimedRun, asking: ApprovalRule) -> ConsentSought {
    ConsentSought {
        asking,
        definition: DEFINITION,
        person: run.asker.person,
        rule: CallRule::Once,
        after_untrusted: AfterUntrusted::Ask,
    }
}

fn target() -> Target {
    Target {
        chat: "C1".to_owned(),
        thread: None,
        topic: None,
        reply_to: None,
    }
}

async fn begin(
    scene: &Scene,
    run: &ClaimedRun,
    call: &StoredCall,
    asking: ApprovalRule,
) -> CallBegun {
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
        limits: UNLIMITED,
        sought: sought(run, asking),
        is_behind_open: false,
        now_ms: 400,
    };
    scene.store.begin_tool_call(to_begin).await.unwrap()
}

/// A press that a judge lets decide if the approval is open.
async fn press(scene: &Scene, approval: ApprovalId, id: &str, choice: ApprovalChoice) -> Pressed {
    let verdict = match choice {
        ApprovalChoice::Approve => PressVerdict::Approve { has_grant: false },
        ApprovalChoice::Grant => PressVerdict::Approve { has_grant: true },
        ApprovalChoice::Deny => PressVerdict::Deny,
        ApprovalChoice::ShowAll => PressVerdict::ShowAll,
        ApprovalChoice::Change => PressVerdict::Change,
    };
    let pressed = PressedButton::Card(PressedCard {
        button: ApprovalButton::new(approval, choice, &DIGEST),
        judge: Box::new(move |facts| match facts.approval.state {
            ApprovalState::Open => PressAnswer {
                verdict,
                outcome: Some(Part::plain("outcome")),
                answer: Part::plain(""),
            },
            state => PressAnswer {
                verdict: PressVerdict::Tell(NoDecision::Over(state)),
                outcome: None,
                answer: Part::plain("over"),
            },
        }),
    });
    capture(scene, id, pressed).await
}

async fn capture(scene: &Scene, id: &str, pressed: PressedButton) -> Pressed {
    let new = NewPress {
        event: NonMessage {
            account: scene.account,
            id: id.to_owned(),
            kind: "interaction",
            sender_id: "U1".to_owned(),
            chat: Some("C1".to_owned()),
            text: String::new(),
            received_at_ms: 300,
        },
        is_kept: true,
        message_id: "1.1".to_owned(),
        sender: Sender {
            id: "U1".to_owned(),
            display_name: Some("Ann".to_owned()),
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        place: target(),
        pressed: Some(pressed),
    };
    scene.store.capture_press(new).await.unwrap()
}

async fn stored(scene: &Scene, approval: ApprovalId) -> StoredApproval {
    scene.store.approval(approval).await.unwrap()
}

/// Operation and text of every entry of the outbox, oldest first.
async fn posts(scene: &Scene) -> Vec<(String, String)> {
    let posts = scene.store.read(|connection| {
        let mut statement = connection.prepare_cached(
            "SELECT operation, json_extract(payload, '$.text') AS text FROM outbox ORDER BY id",
        )?;
        let posts = statement.query_map([], |row| Ok((row.get("operation")?, row.get("text")?)))?;
        Ok(posts.collect::<crate::engine::sql::Result<_>>()?)
    });
    posts.await.unwrap()
}

/// The card is in the room.
async fn posted(scene: &Scene) {
    by_hand(
        scene,
        "UPDATE outbox SET state = 'sent', message_id = '1.1', send_started = 1 WHERE operation = 'post'",
    )
    .await;
}

fn post(operation: &str, text: &str) -> (String, String) {
    (operation.to_owned(), text.to_owned())
}

async fn state(scene: &Scene, run: &ClaimedRun) -> RunState {
    scene.store.run(run.run.id).await.unwrap().state
}

#[tokio::test]
async fn a_grant_covers_nothing_that_a_schedule_started() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let waiting = waiting(&scene, &room, None).await;
    posted(&scene).await;
    press(&scene, waiting.approval, "t1", ApprovalChoice::Grant).await;
    let run = scene.claim(310).await.unwrap();
    begin(&scene, &run, &waiting.call, ApprovalRule::Always).await;
    let reply = scene.answer(&run, &room, "Done.");
    scene.store.commit_reply(reply).await.unwrap();
    let (_, id) = scene.ask(&room, "again", 320).await;
    own_run(&scene, id).await;
    by_hand(
        &scene,
        "INSERT INTO schedules (id, chat_id, conversation_id, timing, zone, jitter_ms, missed_rule, task, state,
                created_at_ms)
         SELECT 7, chat_id, conversation_id, '@daily', 'UTC', 0, 'once', 'refund it', 'active', 0
         FROM runs ORDER BY id DESC LIMIT 1",
    )
    .await;
    by_hand(
        &scene,
        "INSERT INTO firings SELECT 7, 0, 0, 'fired', 0, max(id) FROM runs",
    )
    .await;
    let run = scene.claim(330).await.unwrap();
    assert!(scene.store.is_scheduled(run.run.id).await.unwrap());
    let call = called(&scene, &run, DIGEST).await;
    let begun = begin(&scene, &run, &call, ApprovalRule::Always).await;
    assert!(
        matches!(begun, CallBegun::Decided(Beginning::Ask)),
        "{begun:?}"
    );
}

#[tokio::test]
async fn a_delete_of_what_was_read_takes_the_words_along() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let waiting = waiting(&scene, &room, None).await;
    posted(&scene).await;
    scene
        .write(|connection| {
            crate::acts::forgetting::delete_steps_txn(connection, "> ?1", 0).map(drop)
        })
        .await;
    let left = stored(&scene, waiting.approval).await;
    assert_eq!(
        (left.state, left.arguments.as_str()),
        (ApprovalState::Cancelled, "")
    );
    assert_eq!(
        posts(&scene).await,
        [post("post", ""), post("edit", "cancelled")]
    );
    assert!(matches!(
        state(&scene, &waiting.run).await,
        RunState::Queued { .. }
    ));
    let call = scene.store.tool_calls(waiting.run.run.id).await.unwrap();
    assert!(call.is_empty(), "{call:?}");
}

/// Changes the only waiting call, as an operator.
async fn change(scene: &Scene, approval: ApprovalId, arguments: &str) -> OperatorDecided {
    let decision = OperatorDecision {
        approval,
        digest: None,
        people: Vec::new(),
        is_approved: true,
        changed: Some(arguments.to_owned()),
        has_grant: false,
        operator: "carl".to_owned(),
        via: DecidedVia::Cli,
        note: None,
        outcome: Box::new(|approval, _| Part::plain(approval.state.name())),
        now_ms: 350,
    };
    scene.store.decide_approval(decision).await.unwrap()
}

#[tokio::test]
async fn the_card_of_a_changed_call_is_emptied_with_it() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let waiting = waiting(&scene, &room, None).await;
    posted(&scene).await;
    change(&scene, waiting.approval, "{\"amount\":9}").await;
    by_hand(&scene, "UPDATE outbox SET state = 'sent'").await;
    scene
        .write(|connection| {
            crate::acts::forgetting::delete_steps_txn(connection, "> ?1", 0).map(drop)
        })
        .await;
    assert_eq!(posts(&scene).await, [post("post", ""), post("edit", "")]);
}
