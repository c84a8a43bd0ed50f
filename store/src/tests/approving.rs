//! Calls that wait for people: asked for once, decided once, and what their runs do meanwhile.

#![allow(clippy::unwrap_used)]

use vocative_contract::envelope::{Sender, SenderKind};
use vocative_contract::outbound::{Part, Target};
use vocative_core::acting::Beginning;
use vocative_core::addressing::ChangedCall;
use vocative_core::approving::{
    AfterUntrusted, ApprovalButton, ApprovalState, Approvers, Asking, Choice, DecidedBy,
    OPEN_MAX_PERSON, PressVerdict, StoredApproval, Told, Via,
};
use vocative_core::ids::{ApprovalId, RunId};
use vocative_core::run::{ClaimedRun, RunState, StopCause, Stopping, Usage};
use vocative_core::tool_call::{CHANGED_DIGEST, CallRule, CallState, StoredCall};

use crate::NewId as _;
use crate::contract::{
    ApprovalFilter, Asked, CallBegun, CallToBegin, ConsentSought, NewApproval, NewPress,
    NewToolCall, NonMessage, OperatorDecided, OperatorDecision, Parked, PressAnswer, Pressed,
    PressedButton, PressedCard, SentForm,
};
use crate::scene::{LEASE_MS, Room, Scene, UNLIMITED};

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
    let (approval, asked) = ask(scene, &run, &call, Asking::Always, expires_at_ms).await;
    assert_eq!(asked, Asked::Waits);
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
    let step = scene
        .store
        .record_step(id, token, 1, "asked".to_owned(), Usage::default(), 140);
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
    asking: Asking,
    expires_at_ms: Option<i64>,
) -> (ApprovalId, Asked) {
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

fn sought(run: &ClaimedRun, asking: Asking) -> ConsentSought {
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

async fn begin(scene: &Scene, run: &ClaimedRun, call: &StoredCall, asking: Asking) -> CallBegun {
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
async fn press(scene: &Scene, approval: ApprovalId, id: &str, choice: Choice) -> Pressed {
    let verdict = match choice {
        Choice::Approve => PressVerdict::Approve { has_grant: false },
        Choice::Grant => PressVerdict::Approve { has_grant: true },
        Choice::Deny => PressVerdict::Deny,
        Choice::ShowAll => PressVerdict::ShowAll,
        Choice::Change => PressVerdict::Change,
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
                verdict: PressVerdict::Tell(Told::Over(state)),
                outcome: None,
                answer: Part::plain("over"),
            },
        }),
    });
    capture(scene, id, pressed).await
}

/// Ann sends a form with other arguments; without any, there is something wrong with it.
async fn send_form(
    scene: &Scene,
    approval: ApprovalId,
    id: &str,
    arguments: Option<&str>,
) -> Pressed {
    let arguments = arguments.map(str::to_owned);
    let pressed = PressedButton::Form(SentForm {
        button: ApprovalButton::new(approval, Choice::Change, &DIGEST),
        judge: Box::new(move |facts| match (facts.approval.state, arguments) {
            (ApprovalState::Open, Some(arguments)) => Ok(ChangedCall {
                approval,
                arguments,
                outcome: Part::plain("outcome"),
            }),
            _ => Err("wrong".to_owned()),
        }),
        not_valid: "This form is not valid here any more.".to_owned(),
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
async fn a_run_waits_without_a_place_and_goes_on_where_it_was() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let waiting = waiting(&scene, &room, Some(300_200)).await;
    assert_eq!(
        state(&scene, &waiting.run).await,
        RunState::Waiting {
            until_ms: Some(300_200)
        }
    );
    assert_eq!(posts(&scene).await, [post("post", "card")]);
    // Other questions of the conversation are worked on, and no time wakes it.
    let (_, other) = scene.ask(&room, "and lunch?", 20).await;
    let claimed = scene.claim(210).await.unwrap();
    assert_eq!(claimed.run.id, other);
    let reply = scene.answer(&claimed, &room, "At four.");
    scene.store.commit_reply(reply).await.unwrap();
    assert!(scene.claim(250_000_000).await.is_none());

    posted(&scene).await;
    assert!(
        press(&scene, waiting.approval, "t1", Choice::Approve)
            .await
            .is_decided
    );
    let again = scene.claim(310).await.unwrap();
    assert_eq!(again.run.id, waiting.run.run.id);
    assert_eq!(again.as_of_seq, waiting.run.as_of_seq);
    assert_eq!(again.attempts_used(), 1, "the wait is no attempt");
    let begun = begin(&scene, &again, &waiting.call, Asking::Always).await;
    assert_eq!(begun, CallBegun::Decided(Beginning::Make));
    let begun = begin(&scene, &again, &waiting.call, Asking::Always).await;
    assert_eq!(begun, CallBegun::Decided(Beginning::Unknown));
    let decided = stored(&scene, waiting.approval).await;
    assert_eq!(
        (decided.state, decided.via),
        (ApprovalState::Approved, Some(Via::Card))
    );
    assert_eq!(decided.decided.name.as_deref(), Some("Ada"));
    let all = posts(&scene).await;
    assert!(all.contains(&post("edit", "outcome")), "{all:?}");
    assert!(all.contains(&post("answer", "")), "{all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_presses_one_decides() {
    let scene = std::sync::Arc::new(Scene::open().await);
    let room = scene.room("C1").await;
    let waiting = waiting(&scene, &room, None).await;
    posted(&scene).await;
    let pressing: Vec<_> = (0..50)
        .map(|n| {
            let (scene, approval) = (std::sync::Arc::clone(&scene), waiting.approval);
            tokio::spawn(async move {
                let choice = match n % 3 {
                    0 => Choice::Deny,
                    _ => Choice::Approve,
                };
                // Every press comes twice.
                let id = format!("t{}", n / 2);
                press(&scene, approval, &id, choice).await
            })
        })
        .collect();
    let mut decided = 0;
    for press in pressing {
        decided += u32::from(press.await.unwrap().is_decided);
    }
    assert_eq!(decided, 1);
    let all = posts(&scene).await;
    let count = |operation: &str| all.iter().filter(|it| it.0 == operation).count();
    assert_eq!((count("edit"), count("answer")), (1, 25), "{all:?}");
}

#[tokio::test]
async fn a_refusal_is_told_with_who_and_why() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let waiting = waiting(&scene, &room, Some(300_200)).await;
    posted(&scene).await;
    let decision = |operator: &str| OperatorDecision {
        approval: waiting.approval,
        digest: None,
        people: Vec::new(),
        is_approved: false,
        changed: None,
        has_grant: false,
        operator: operator.to_owned(),
        via: Via::Cli,
        note: Some("ask me first".to_owned()),
        outcome: Box::new(|approval, _| Part::plain(approval.state.name())),
        now_ms: 350,
    };
    let decided = scene.store.decide_approval(decision("carl")).await.unwrap();
    assert!(matches!(decided, OperatorDecided::Done(_)), "{decided:?}");
    let decided = scene.store.decide_approval(decision("dora")).await.unwrap();
    assert!(matches!(decided, OperatorDecided::Over(_)), "{decided:?}");
    let again = scene.claim(360).await.unwrap();
    let begun = begin(&scene, &again, &waiting.call, Asking::Always).await;
    let by = DecidedBy {
        name: Some("carl".to_owned()),
        at_ms: 350,
        note: Some("ask me first".to_owned()),
    };
    assert_eq!(begun, CallBegun::NotAllowed(ApprovalState::Denied, by));
    assert_eq!(
        posts(&scene).await.last(),
        Some(&post("edit", "denied")),
        "who decides twice changes nothing"
    );
}

#[tokio::test]
async fn four_eyes_hold_for_operators_too() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let waiting = waiting(&scene, &room, None).await;
    by_hand(&scene, "UPDATE approvals SET approvers = 'four_eyes'").await;
    let asked_by = stored(&scene, waiting.approval).await.requesters;
    let own = vec![asked_by[0].id.clone()];
    let table = [
        (asked_by[0].name(), Vec::new(), true),
        ("desk", own, true),
        ("carl", vec!["somebody else".to_owned()], false),
    ];
    for (operator, people, is_refused) in table {
        let decision = OperatorDecision {
            approval: waiting.approval,
            digest: None,
            people,
            is_approved: true,
            changed: None,
            has_grant: false,
            operator: operator.to_uppercase(),
            via: Via::Cli,
            note: None,
            outcome: Box::new(|_, _| Part::plain("done")),
            now_ms: 350,
        };
        let decided = scene.store.decide_approval(decision).await.unwrap();
        let refused = matches!(decided, OperatorDecided::IsRequester(_));
        assert_eq!(refused, is_refused, "{decided:?}");
    }
}

#[tokio::test]
async fn an_operator_decides_about_what_was_looked_at() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let waiting = waiting(&scene, &room, None).await;
    let digest = stored(&scene, waiting.approval).await.digest;
    let own: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    for (digest, is_other) in [("00".repeat(32), true), (String::new(), true), (own, false)] {
        let decision = OperatorDecision {
            approval: waiting.approval,
            digest: Some(digest),
            people: Vec::new(),
            is_approved: true,
            changed: None,
            has_grant: false,
            operator: "desk".to_owned(),
            via: Via::Api,
            note: None,
            outcome: Box::new(|_, _| Part::plain("done")),
            now_ms: 350,
        };
        let decided = scene.store.decide_approval(decision).await.unwrap();
        let other = matches!(decided, OperatorDecided::OtherCall(_));
        assert_eq!(other, is_other, "{decided:?}");
    }
}

#[tokio::test]
async fn what_nobody_decides_expires_whatever_the_clock_does() {
    for (now_ms, is_over) in [(300_199, false), (300_200, true), (-299_801, true)] {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let waiting = waiting(&scene, &room, Some(300_200)).await;
        posted(&scene).await;
        let expired = scene.store.expire_approvals(now_ms).await.unwrap();
        assert_eq!(expired, usize::from(is_over), "{now_ms}");
        let expected = match is_over {
            true => ApprovalState::Expired,
            false => ApprovalState::Open,
        };
        assert_eq!(stored(&scene, waiting.approval).await.state, expected);
        let is_told = posts(&scene).await.contains(&post("edit", "expired"));
        assert_eq!(is_told, is_over);
        let is_queued = matches!(state(&scene, &waiting.run).await, RunState::Queued { .. });
        assert_eq!(is_queued, is_over);
        if is_over {
            // A press that comes too late decides nothing.
            assert!(
                !press(&scene, waiting.approval, "t1", Choice::Approve)
                    .await
                    .is_decided
            );
        }
    }
}

#[tokio::test]
async fn a_stop_cancels_and_a_card_that_was_not_sent_says_so_at_once() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let waiting = waiting(&scene, &room, None).await;
    let stopping: Stopping = StopCause::Stopped.into();
    let stopped = scene.store.cancel_run(waiting.run.run.id, stopping, 300);
    assert!(stopped.await.unwrap());
    assert_eq!(state(&scene, &waiting.run).await, RunState::Cancelled);
    let cancelled = stored(&scene, waiting.approval).await;
    assert_eq!(cancelled.state, ApprovalState::Cancelled);
    assert_eq!(posts(&scene).await, [post("post", "cancelled")]);
    let calls = scene.store.tool_calls(waiting.run.run.id).await.unwrap();
    assert_eq!(calls[0].state, CallState::Denied);
}

#[tokio::test]
async fn a_grant_covers_the_same_call_of_the_same_person_until_it_is_revoked() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let waiting = waiting(&scene, &room, None).await;
    posted(&scene).await;
    press(&scene, waiting.approval, "t1", Choice::Grant).await;
    let run = scene.claim(310).await.unwrap();
    begin(&scene, &run, &waiting.call, Asking::Always).await;
    let reply = scene.answer(&run, &room, "Done.");
    scene.store.commit_reply(reply).await.unwrap();

    let next = async |digest, asking| {
        let (_, id) = scene.ask(&room, "again", 320).await;
        own_run(&scene, id).await;
        let run = scene.claim(330).await.unwrap();
        let call = called(&scene, &run, digest).await;
        let begun = begin(&scene, &run, &call, asking).await;
        let reply = scene.answer(&run, &room, "Done.");
        scene.store.commit_reply(reply).await.unwrap();
        match begun {
            CallBegun::Decided(decided) => decided,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(next(DIGEST, Asking::Always).await, Beginning::Make);
    assert_eq!(next([8; 32], Asking::Always).await, Beginning::Ask);
    let grants = scene.store.grants(340, 10).await.unwrap();
    assert_eq!((grants.len(), grants[0].uses), (1, 1), "{grants:?}");
    // A tool that is defined anew is another one.
    by_hand(&scene, "UPDATE approval_grants SET definition = x'00'").await;
    assert_eq!(next(DIGEST, Asking::Always).await, Beginning::Ask);
    scene
        .write(|connection| {
            connection
                .prepare_cached("UPDATE approval_grants SET definition = ?1")?
                .execute([&DEFINITION[..]])?;
            Ok(())
        })
        .await;
    assert_eq!(next(DIGEST, Asking::Always).await, Beginning::Make);
    let revoked = scene
        .store
        .revoke_grant(grants[0].id, "carl".to_owned(), 350);
    assert!(revoked.await.unwrap());
    assert_eq!(next(DIGEST, Asking::Always).await, Beginning::Ask);
}

#[tokio::test]
async fn a_grant_covers_nothing_that_a_schedule_started() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let waiting = waiting(&scene, &room, None).await;
    posted(&scene).await;
    press(&scene, waiting.approval, "t1", Choice::Grant).await;
    let run = scene.claim(310).await.unwrap();
    begin(&scene, &run, &waiting.call, Asking::Always).await;
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
    let begun = begin(&scene, &run, &call, Asking::Always).await;
    assert!(
        matches!(begun, CallBegun::Decided(Beginning::Ask)),
        "{begun:?}"
    );
}

#[tokio::test]
async fn a_first_consent_covers_later_calls_of_the_tool() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let (_, id) = scene.ask(&room, "refund it", 10).await;
    own_run(&scene, id).await;
    let run = scene.claim(100).await.unwrap();
    let call = called(&scene, &run, DIGEST).await;
    let (approval, _) = ask(&scene, &run, &call, Asking::First, None).await;
    posted(&scene).await;
    press(&scene, approval, "t1", Choice::Approve).await;
    // It was decided before the run was let go.
    let parked = scene.store.park_run(run.run.id, run.token, 310).await;
    assert_eq!(parked.unwrap(), Parked::Decided);
    begin(&scene, &run, &call, Asking::First).await;
    let reply = scene.answer(&run, &room, "Done.");
    scene.store.commit_reply(reply).await.unwrap();
    let (_, id) = scene.ask(&room, "another", 320).await;
    own_run(&scene, id).await;
    let run = scene.claim(330).await.unwrap();
    let call = called(&scene, &run, [8; 32]).await;
    let begun = begin(&scene, &run, &call, Asking::Always).await;
    assert_eq!(begun, CallBegun::Decided(Beginning::Ask));
    let begun = begin(&scene, &run, &call, Asking::First).await;
    assert_eq!(begun, CallBegun::Decided(Beginning::Make));
}

#[tokio::test]
async fn a_person_has_so_many_calls_waiting_and_no_more() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    for _ in 0..OPEN_MAX_PERSON {
        waiting(&scene, &room, None).await;
    }
    let (_, id) = scene.ask(&room, "one more", 30).await;
    own_run(&scene, id).await;
    let run = scene.claim(230).await.unwrap();
    let call = called(&scene, &run, DIGEST).await;
    let (_, asked) = ask(&scene, &run, &call, Asking::Always, None).await;
    assert_eq!(asked, Asked::TooMany);
    let open = ApprovalFilter {
        is_open: true,
        conversation: Some(room.id),
        before: None,
    };
    let all = scene.store.approvals(open.clone(), 100).await.unwrap();
    assert_eq!(all.len(), OPEN_MAX_PERSON as usize);
    // They are read page by page, newest first.
    let mut paged = Vec::new();
    let mut before = None;
    loop {
        let page = ApprovalFilter {
            before,
            ..open.clone()
        };
        let page = scene.store.approvals(page, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        paged.extend(page);
    }
    assert_eq!(paged, all);
}

#[tokio::test]
async fn a_stale_lease_asks_nobody() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.ask(&room, "refund it", 10).await;
    let run = scene.claim(100).await.unwrap();
    let call = called(&scene, &run, DIGEST).await;
    let other = scene.claim(100 + LEASE_MS + 1).await.unwrap();
    assert_eq!(other.run.id, run.run.id);
    let (_, asked) = ask(&scene, &run, &call, Asking::Always, None).await;
    assert_eq!(asked, Asked::Stale);
    let parked = scene.store.park_run(run.run.id, run.token, 310).await;
    assert_eq!(parked.unwrap(), Parked::LetGo);
    assert!(posts(&scene).await.is_empty());
}

#[tokio::test]
async fn a_delete_of_what_was_read_takes_the_words_along() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let waiting = waiting(&scene, &room, None).await;
    posted(&scene).await;
    scene
        .write(|connection| crate::rows::steps::delete_steps_txn(connection, "> ?1", 0).map(drop))
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
        via: Via::Cli,
        note: None,
        outcome: Box::new(|approval, _| Part::plain(approval.state.name())),
        now_ms: 350,
    };
    scene.store.decide_approval(decision).await.unwrap()
}

#[tokio::test]
async fn a_changed_call_is_allowed_by_nobody_until_it_is_asked_for_anew() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let first = waiting(&scene, &room, Some(300_200)).await;
    let other = "{\"amount\":9}";
    let changed = change(&scene, first.approval, other).await;
    let OperatorDecided::Done(changed) = changed else {
        panic!("{changed:?}");
    };
    assert_eq!(changed.state, ApprovalState::Changed);
    let twice = change(&scene, first.approval, other).await;
    assert!(matches!(twice, OperatorDecided::Over(_)), "{twice:?}");
    let pressed = press(&scene, first.approval, "late", Choice::Grant).await;
    assert!(!pressed.is_decided);

    // Its run is due. A worker that has read the old arguments is to read again; the call is never free.
    let run = scene.claim(400).await.unwrap();
    let (id, token) = (run.run.id, run.token);
    let stale = begin(&scene, &run, &first.call, Asking::Free).await;
    assert_eq!(stale, CallBegun::Decided(Beginning::Wait));
    let read = scene.store.record_tool_calls(id, token, 1, Vec::new(), 401);
    let call = read.await.unwrap().unwrap().remove(0);
    assert_eq!(
        (call.arguments.as_str(), call.digest),
        (other, CHANGED_DIGEST)
    );
    assert_eq!(call.state, CallState::Ready);
    let to_begin = |digest| CallToBegin {
        is_changed: true,
        digest,
        narrowed: None,
        verdicts: Vec::new(),
        run: id,
        token,
        call: call.id,
        rule: call.rule,
        asker: run.asker,
        limits: UNLIMITED,
        sought: sought(&run, Asking::Free),
        is_behind_open: false,
        now_ms: 402,
    };
    let begun = scene
        .store
        .begin_tool_call(to_begin([5; 32]))
        .await
        .unwrap();
    assert_eq!(begun, CallBegun::Decided(Beginning::Ask));
    let (again, asked) = ask(&scene, &run, &call, Asking::Free, None).await;
    assert_eq!(asked, Asked::Waits);
    let again = stored(&scene, again).await;
    assert_eq!((again.arguments.as_str(), again.digest), (other, [5; 32]));
    assert_eq!(again.changed_by.len(), 1);
    assert_eq!(again.changed_by[0].who.name(), "carl");
    let names = scene.store.changers_of_call(call.id).await.unwrap();
    assert_eq!(names, again.changed_by);
    let counts = scene.store.approval_counts(0).await.unwrap().remove(0);
    let counts = (counts.asked, counts.open, counts.changed, counts.cancelled);
    assert_eq!(counts, (2, 1, 1, 0));
}

#[tokio::test]
async fn a_form_changes_a_call_once_and_of_a_wrong_one_nothing_is_kept() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let first = waiting(&scene, &room, Some(300_200)).await;
    let pressed = press(&scene, first.approval, "open", Choice::Change).await;
    assert!(pressed.opens_form && !pressed.is_decided);
    let again = press(&scene, first.approval, "open", Choice::Change).await;
    assert!(!again.opens_form, "a press that comes twice opens one form");

    // The same form is judged anew when it comes again.
    for _ in 0..2 {
        let wrong = send_form(&scene, first.approval, "sent", None).await;
        assert_eq!(wrong.form_problem.as_deref(), Some("wrong"));
    }
    let sent = send_form(&scene, first.approval, "sent", Some("{\"amount\":9}")).await;
    assert!(sent.is_decided && sent.form_problem.is_none());
    let twice = send_form(&scene, first.approval, "sent", Some("{\"amount\":9}")).await;
    assert_eq!(twice, Pressed::default());
    let other = send_form(&scene, first.approval, "later", Some("{\"amount\":8}")).await;
    assert_eq!(other.form_problem.as_deref(), Some("wrong"));
    let stored = stored(&scene, first.approval).await;
    assert_eq!(stored.state, ApprovalState::Changed);
    assert_eq!(stored.decided.name.as_deref(), Some("Ada"));
    let run = scene.claim(400).await.unwrap();
    let read = (scene.store).record_tool_calls(run.run.id, run.token, 1, Vec::new(), 401);
    let call = read.await.unwrap().unwrap().remove(0);
    assert_eq!(call.arguments, "{\"amount\":9}");
}

#[tokio::test]
async fn a_run_does_not_wait_for_others_while_a_changed_call_is_still_to_be_asked_for() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let (_, id) = scene.ask(&room, "refund both", 10).await;
    own_run(&scene, id).await;
    let run = scene.claim(100).await.unwrap();
    let first = called(&scene, &run, DIGEST).await;
    let new = NewToolCall {
        call_id: "call_2".to_owned(),
        tool: "refund".to_owned(),
        arguments: "{\"amount\":8}".to_owned(),
        digest: [6; 32],
        rule: CallRule::Once,
    };
    let record =
        scene
            .store
            .record_step(id, run.token, 2, "asked".to_owned(), Usage::default(), 142);
    record.await.unwrap();
    let calls = scene
        .store
        .record_tool_calls(id, run.token, 2, vec![new], 143);
    let second = calls.await.unwrap().unwrap().remove(0);
    let (of_first, _) = ask(&scene, &run, &first, Asking::Always, None).await;
    ask(&scene, &run, &second, Asking::Always, None).await;
    // Somebody changes the first one before its run has let go.
    change(&scene, of_first, "{\"amount\":9}").await;
    let parked = scene.store.park_run(id, run.token, 360).await.unwrap();
    assert_eq!(parked, Parked::Decided);
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
        .write(|connection| crate::rows::steps::delete_steps_txn(connection, "> ?1", 0).map(drop))
        .await;
    assert_eq!(posts(&scene).await, [post("post", ""), post("edit", "")]);
}
