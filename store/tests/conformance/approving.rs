//! Calls that wait for people: asked for once, decided once, and what their runs do meanwhile.

use vocative_contract::envelope::{Sender, SenderKind};
use vocative_contract::outbound::Part;
use vocative_core::acting::Beginning;
use vocative_core::addressing::ChangedCall;
use vocative_core::approving::{
    AfterUntrusted, ApprovalButton, ApprovalChoice, ApprovalRule, ApprovalState, Approvers,
    DecidedBy, DecidedVia, NoDecision, OPEN_MAX_PERSON, PressVerdict, StoredApproval,
};
use vocative_core::ids::ApprovalId;
use vocative_core::run::{ClaimedRun, RunState, StopCause, Stopping, Usage};

use vocative_core::tool_call::{CHANGED_DIGEST, CallRule, CallState, StoredCall};
use vocative_store::NewId as _;
use vocative_store::contract::{
    ApprovalFilter, AskOutcome, CallBegun, CallToBegin, ConsentSought, NewApproval, NewPress,
    NewToolCall, NonMessage, OperatorDecided, OperatorDecision, Parked, PressAnswer, Pressed,
    PressedButton, PressedCard, RecordedStep, SentForm,
};

use crate::scene::{LEASE_MS, Scene, target};
use crate::tools::UNLIMITED;

const DIGEST: [u8; 32] = [7; 32];
const DEFINITION: [u8; 32] = [9; 32];

struct Waiting {
    run: ClaimedRun,
    call: StoredCall,
    approval: ApprovalId,
}

/// A run whose only call waits for a person from 200 on, until `expires_at_ms`.
async fn waiting(scene: &Scene, expires_at_ms: Option<i64>) -> Waiting {
    scene.ask("C1", "refund it", 10).await;
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
        expires_at_ms,
        ..new_approval(id, run, call, sought(run, asking))
    };
    (id, scene.store.ask_approval(new).await.unwrap())
}

/// The person who asked is asked to allow a call.
fn new_approval(
    id: ApprovalId,
    run: &ClaimedRun,
    call: &StoredCall,
    sought: ConsentSought,
) -> NewApproval {
    NewApproval {
        id,
        run: run.run.id,
        token: run.token,
        call: call.id,
        sought,
        target: String::new(),
        parameters: "{}".to_owned(),
        approvers: Approvers::from_text("requester").unwrap(),
        is_whole: true,
        place: target("C1"),
        card: Part::plain("card"),
        expired: Part::plain("expired"),
        cancelled: Part::plain("cancelled"),
        expires_at_ms: None,
        now_ms: 200,
    }
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

async fn begin(
    scene: &Scene,
    run: &ClaimedRun,
    call: &StoredCall,
    asking: ApprovalRule,
) -> CallBegun {
    begin_as(scene, run, call, (asking, DEFINITION)).await
}

/// The same of a tool that is defined in some way.
async fn begin_as(
    scene: &Scene,
    run: &ClaimedRun,
    call: &StoredCall,
    (asking, definition): (ApprovalRule, [u8; 32]),
) -> CallBegun {
    let sought = ConsentSought {
        definition,
        ..sought(run, asking)
    };
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
        sought,
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

/// Ann sends a form with other arguments; without any, there is something wrong with it.
async fn send_form(
    scene: &Scene,
    approval: ApprovalId,
    id: &str,
    arguments: Option<&str>,
) -> Pressed {
    let arguments = arguments.map(str::to_owned);
    let pressed = PressedButton::Form(SentForm {
        button: ApprovalButton::new(approval, ApprovalChoice::Change, &DIGEST),
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
        place: target("C1"),
        pressed: Some(pressed),
    };
    scene.store.capture_press(new).await.unwrap()
}

async fn stored(scene: &Scene, approval: ApprovalId) -> StoredApproval {
    scene.store.approval(approval).await.unwrap()
}

/// Everything that waits to be sent goes; operations and texts in order. The card is the message 1.1.
async fn told(scene: &Scene) -> Vec<(String, String)> {
    let mut told = Vec::new();
    loop {
        let claimed = scene.claim_posts(500_000).await;
        if claimed.is_empty() {
            return told;
        }
        for claim in claimed {
            let entry = &claim.entry;
            let message_id = match entry.part.text.as_str() {
                "card" => "1.1".to_owned(),
                _ => format!("p{}", entry.id),
            };
            told.push(post(entry.operation.name(), &entry.part.text));
            scene.send(&claim, &message_id, 500_000).await;
        }
    }
}

/// The card is in the room.
async fn posted(scene: &Scene) {
    assert_eq!(told(scene).await, [post("post", "card")]);
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
    let waiting = waiting(&scene, Some(300_200)).await;
    assert_eq!(
        state(&scene, &waiting.run).await,
        RunState::Waiting {
            until_ms: Some(300_200)
        }
    );
    posted(&scene).await;
    // Other questions of the conversation are worked on, and no time wakes it.
    let (_, other) = scene.ask("C1", "and lunch?", 20).await;
    let claimed = scene.claim(210).await.unwrap();
    assert_eq!(claimed.run.id, other);
    let reply = scene.answer(&claimed, "At four.").await;
    scene.store.commit_reply(reply).await.unwrap();
    assert!(scene.claim(250_000_000).await.is_none());

    assert_eq!(told(&scene).await, [post("post", "At four.")]);
    assert!(
        press(&scene, waiting.approval, "t1", ApprovalChoice::Approve)
            .await
            .is_decided
    );
    let again = scene.claim(310).await.unwrap();
    assert_eq!(again.run.id, waiting.run.run.id);
    assert_eq!(again.as_of_seq, waiting.run.as_of_seq);
    assert_eq!(again.attempts_used(), 1, "the wait is no attempt");
    let begun = begin(&scene, &again, &waiting.call, ApprovalRule::Always).await;
    assert_eq!(begun, CallBegun::Decided(Beginning::Make));
    let begun = begin(&scene, &again, &waiting.call, ApprovalRule::Always).await;
    assert_eq!(begun, CallBegun::Decided(Beginning::Unknown));
    let decided = stored(&scene, waiting.approval).await;
    assert_eq!(
        (decided.state, decided.via),
        (ApprovalState::Approved, Some(DecidedVia::Card))
    );
    assert_eq!(decided.decided.name.as_deref(), Some("Ada"));
    let mut all = told(&scene).await;
    all.sort();
    assert_eq!(all, [post("answer", ""), post("edit", "outcome")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_presses_one_decides() {
    let scene = std::sync::Arc::new(Scene::open().await);
    let waiting = waiting(&scene, None).await;
    posted(&scene).await;
    let pressing: Vec<_> = (0..50)
        .map(|n| {
            let (scene, approval) = (std::sync::Arc::clone(&scene), waiting.approval);
            tokio::spawn(async move {
                let choice = match n % 3 {
                    0 => ApprovalChoice::Deny,
                    _ => ApprovalChoice::Approve,
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
    let all = told(&scene).await;
    let count = |operation: &str| all.iter().filter(|it| it.0 == operation).count();
    assert_eq!((count("edit"), count("answer")), (1, 25), "{all:?}");
}

#[tokio::test]
async fn a_refusal_is_told_with_who_and_why() {
    let scene = Scene::open().await;
    let waiting = waiting(&scene, Some(300_200)).await;
    posted(&scene).await;
    let decision = |operator: &str| OperatorDecision {
        approval: waiting.approval,
        digest: None,
        people: Vec::new(),
        is_approved: false,
        changed: None,
        has_grant: false,
        operator: operator.to_owned(),
        via: DecidedVia::Cli,
        note: Some("ask me first".to_owned()),
        outcome: Box::new(|approval, _| Part::plain(approval.state.name())),
        now_ms: 350,
    };
    let decided = scene.store.decide_approval(decision("carl")).await.unwrap();
    assert!(matches!(decided, OperatorDecided::Done(_)), "{decided:?}");
    let decided = scene.store.decide_approval(decision("dora")).await.unwrap();
    assert!(matches!(decided, OperatorDecided::Over(_)), "{decided:?}");
    let again = scene.claim(360).await.unwrap();
    let begun = begin(&scene, &again, &waiting.call, ApprovalRule::Always).await;
    let by = DecidedBy {
        name: Some("carl".to_owned()),
        at_ms: 350,
        note: Some("ask me first".to_owned()),
    };
    assert_eq!(begun, CallBegun::NotAllowed(ApprovalState::Denied, by));
    assert_eq!(
        told(&scene).await,
        [post("edit", "denied")],
        "who decides twice changes nothing"
    );
}

#[tokio::test]
async fn four_eyes_hold_for_operators_too() {
    let scene = Scene::open().await;
    scene.ask("C1", "refund it", 10).await;
    let run = scene.claim(100).await.unwrap();
    let call = called(&scene, &run, DIGEST).await;
    let approval = ApprovalId::generate();
    let new = NewApproval {
        approvers: Approvers::from_text("four_eyes").unwrap(),
        ..new_approval(approval, &run, &call, sought(&run, ApprovalRule::Always))
    };
    let asked = scene.store.ask_approval(new).await.unwrap();
    assert_eq!(asked, AskOutcome::Waits);
    let asked_by = stored(&scene, approval).await.requesters;
    let own = vec![asked_by[0].id.clone()];
    let table = [
        (asked_by[0].name(), Vec::new(), true),
        ("desk", own, true),
        ("carl", vec!["somebody else".to_owned()], false),
    ];
    for (operator, people, is_refused) in table {
        let decision = OperatorDecision {
            approval,
            digest: None,
            people,
            is_approved: true,
            changed: None,
            has_grant: false,
            operator: operator.to_uppercase(),
            via: DecidedVia::Cli,
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
    let waiting = waiting(&scene, None).await;
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
            via: DecidedVia::Api,
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
        let waiting = waiting(&scene, Some(300_200)).await;
        posted(&scene).await;
        let expired = scene.store.expire_approvals(now_ms).await.unwrap();
        assert_eq!(expired, usize::from(is_over), "{now_ms}");
        let expected = match is_over {
            true => ApprovalState::Expired,
            false => ApprovalState::Open,
        };
        assert_eq!(stored(&scene, waiting.approval).await.state, expected);
        let is_told = told(&scene).await == [post("edit", "expired")];
        assert_eq!(is_told, is_over);
        let is_queued = matches!(state(&scene, &waiting.run).await, RunState::Queued { .. });
        assert_eq!(is_queued, is_over);
        if is_over {
            // A press that comes too late decides nothing.
            assert!(
                !press(&scene, waiting.approval, "t1", ApprovalChoice::Approve)
                    .await
                    .is_decided
            );
        }
    }
}

#[tokio::test]
async fn a_stop_cancels_and_a_card_that_was_not_sent_says_so_at_once() {
    let scene = Scene::open().await;
    let waiting = waiting(&scene, None).await;
    let stopping: Stopping = StopCause::Stopped.into();
    let stopped = scene.store.cancel_run(waiting.run.run.id, stopping, 300);
    assert!(stopped.await.unwrap());
    assert_eq!(state(&scene, &waiting.run).await, RunState::Cancelled);
    let cancelled = stored(&scene, waiting.approval).await;
    assert_eq!(cancelled.state, ApprovalState::Cancelled);
    assert_eq!(told(&scene).await, [post("post", "cancelled")]);
    let calls = scene.store.tool_calls(waiting.run.run.id).await.unwrap();
    assert_eq!(calls[0].state, CallState::Denied);
}

#[tokio::test]
async fn a_grant_covers_the_same_call_of_the_same_person_until_it_is_revoked() {
    let scene = Scene::open().await;
    let waiting = waiting(&scene, None).await;
    posted(&scene).await;
    press(&scene, waiting.approval, "t1", ApprovalChoice::Grant).await;
    let run = scene.claim(310).await.unwrap();
    begin(&scene, &run, &waiting.call, ApprovalRule::Always).await;
    let reply = scene.answer(&run, "Done.").await;
    scene.store.commit_reply(reply).await.unwrap();

    let next = async |digest, asking, definition| {
        scene.ask("C1", "again", 320).await;
        let run = scene.claim(330).await.unwrap();
        let call = called(&scene, &run, digest).await;
        let begun = begin_as(&scene, &run, &call, (asking, definition)).await;
        let reply = scene.answer(&run, "Done.").await;
        scene.store.commit_reply(reply).await.unwrap();
        match begun {
            CallBegun::Decided(decided) => decided,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        next(DIGEST, ApprovalRule::Always, DEFINITION).await,
        Beginning::Make
    );
    assert_eq!(
        next([8; 32], ApprovalRule::Always, DEFINITION).await,
        Beginning::Ask
    );
    let grants = scene.store.grants(340, 10).await.unwrap();
    assert_eq!((grants.len(), grants[0].uses), (1, 1), "{grants:?}");
    // A tool that is defined anew is another one.
    assert_eq!(
        next(DIGEST, ApprovalRule::Always, [0; 32]).await,
        Beginning::Ask
    );
    assert_eq!(
        next(DIGEST, ApprovalRule::Always, DEFINITION).await,
        Beginning::Make
    );
    let revoked = scene
        .store
        .revoke_grant(grants[0].id, "carl".to_owned(), 350);
    assert!(revoked.await.unwrap());
    assert_eq!(
        next(DIGEST, ApprovalRule::Always, DEFINITION).await,
        Beginning::Ask
    );
}

#[tokio::test]
async fn a_first_consent_covers_later_calls_of_the_tool() {
    let scene = Scene::open().await;
    scene.ask("C1", "refund it", 10).await;
    let run = scene.claim(100).await.unwrap();
    let call = called(&scene, &run, DIGEST).await;
    let (approval, _) = ask(&scene, &run, &call, ApprovalRule::First, None).await;
    posted(&scene).await;
    press(&scene, approval, "t1", ApprovalChoice::Approve).await;
    // It was decided before the run was let go.
    let parked = scene.store.park_run(run.run.id, run.token, 310).await;
    assert_eq!(parked.unwrap(), Parked::Decided);
    begin(&scene, &run, &call, ApprovalRule::First).await;
    let reply = scene.answer(&run, "Done.").await;
    scene.store.commit_reply(reply).await.unwrap();
    scene.ask("C1", "another", 320).await;
    let run = scene.claim(330).await.unwrap();
    let call = called(&scene, &run, [8; 32]).await;
    let begun = begin(&scene, &run, &call, ApprovalRule::Always).await;
    assert_eq!(begun, CallBegun::Decided(Beginning::Ask));
    let begun = begin(&scene, &run, &call, ApprovalRule::First).await;
    assert_eq!(begun, CallBegun::Decided(Beginning::Make));
}

#[tokio::test]
async fn a_person_has_so_many_calls_waiting_and_no_more() {
    let scene = Scene::open().await;
    for _ in 0..OPEN_MAX_PERSON {
        waiting(&scene, None).await;
    }
    scene.ask("C1", "one more", 30).await;
    let run = scene.claim(230).await.unwrap();
    let call = called(&scene, &run, DIGEST).await;
    let (_, asked) = ask(&scene, &run, &call, ApprovalRule::Always, None).await;
    assert_eq!(asked, AskOutcome::TooMany);
    let open = ApprovalFilter {
        is_open: true,
        conversation: Some(run.run.conversation),
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
    scene.ask("C1", "refund it", 10).await;
    let run = scene.claim(100).await.unwrap();
    let call = called(&scene, &run, DIGEST).await;
    let other = scene.claim(100 + LEASE_MS + 1).await.unwrap();
    assert_eq!(other.run.id, run.run.id);
    let (_, asked) = ask(&scene, &run, &call, ApprovalRule::Always, None).await;
    assert_eq!(asked, AskOutcome::Stale);
    let parked = scene.store.park_run(run.run.id, run.token, 310).await;
    assert_eq!(parked.unwrap(), Parked::LetGo);
    assert_eq!(told(&scene).await, []);
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
async fn a_changed_call_is_allowed_by_nobody_until_it_is_asked_for_anew() {
    let scene = Scene::open().await;
    let first = waiting(&scene, Some(300_200)).await;
    let other = "{\"amount\":9}";
    let changed = change(&scene, first.approval, other).await;
    let OperatorDecided::Done(changed) = changed else {
        panic!("{changed:?}");
    };
    assert_eq!(changed.state, ApprovalState::Changed);
    let twice = change(&scene, first.approval, other).await;
    assert!(matches!(twice, OperatorDecided::Over(_)), "{twice:?}");
    let pressed = press(&scene, first.approval, "late", ApprovalChoice::Grant).await;
    assert!(!pressed.is_decided);

    // Its run is due. A worker that has read the old arguments is to read again; the call is never free.
    let run = scene.claim(400).await.unwrap();
    let (id, token) = (run.run.id, run.token);
    let stale = begin(&scene, &run, &first.call, ApprovalRule::Free).await;
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
        sought: sought(&run, ApprovalRule::Free),
        is_behind_open: false,
        now_ms: 402,
    };
    let begun = scene
        .store
        .begin_tool_call(to_begin([5; 32]))
        .await
        .unwrap();
    assert_eq!(begun, CallBegun::Decided(Beginning::Ask));
    let (again, asked) = ask(&scene, &run, &call, ApprovalRule::Free, None).await;
    assert_eq!(asked, AskOutcome::Waits);
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
    let first = waiting(&scene, Some(300_200)).await;
    let pressed = press(&scene, first.approval, "open", ApprovalChoice::Change).await;
    assert!(pressed.opens_form && !pressed.is_decided);
    let again = press(&scene, first.approval, "open", ApprovalChoice::Change).await;
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
    scene.ask("C1", "refund both", 10).await;
    let run = scene.claim(100).await.unwrap();
    let id = run.run.id;
    let first = called(&scene, &run, DIGEST).await;
    let new = NewToolCall {
        call_id: "call_2".to_owned(),
        tool: "refund".to_owned(),
        arguments: "{\"amount\":8}".to_owned(),
        digest: [6; 32],
        rule: CallRule::Once,
    };
    let record = scene.store.record_step(
        id,
        run.token,
        RecordedStep {
            number: 2,
            message: "asked".to_owned(),
            usage: Usage::default(),
            verdicts: Vec::new(),
        },
        142,
    );
    record.await.unwrap();
    let calls = scene
        .store
        .record_tool_calls(id, run.token, 2, vec![new], 143);
    let second = calls.await.unwrap().unwrap().remove(0);
    let (of_first, _) = ask(&scene, &run, &first, ApprovalRule::Always, None).await;
    ask(&scene, &run, &second, ApprovalRule::Always, None).await;
    // Somebody changes the first one before its run has let go.
    change(&scene, of_first, "{\"amount\":9}").await;
    let parked = scene.store.park_run(id, run.token, 360).await.unwrap();
    assert_eq!(parked, Parked::Decided);
}
