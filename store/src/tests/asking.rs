//! Questions to people: asked once, answered once by who is asked, and what their runs do meanwhile.

#![allow(clippy::unwrap_used)]

use vocative_contract::envelope::{Sender, SenderKind};
use vocative_contract::outbound::{Part, Target};
use vocative_core::eliciting::{AskedForm, InputRound};
use vocative_core::ids::{LeaseToken, QuestionId, RunId};
use vocative_core::questioning::{
    AnswerVerdict, NotCounted, QUESTIONS_MAX_RUN, QuestionButton, QuestionState,
};
use vocative_core::run::{ClaimedRun, RunState, StopCause, Stopping, Usage};
use vocative_core::tool_call::{CallRule, StoredCall};

use crate::NewId as _;
use crate::contract::{
    GoneOn, NewPress, NewQuestion, NewToolCall, NonMessage, OperatorAnswer, OptionAnswer, Parked,
    PressedButton, PressedOption, QuestionAsked,
};
use crate::scene::{Room, Scene};

const DAY_MS: i64 = 86_400_000;

/// Changes rows as nobody does.
async fn by_hand(scene: &Scene, sql: &'static str) {
    scene
        .write(move |connection| {
            connection.execute(sql, [])?;
            Ok(())
        })
        .await;
}

struct Asking {
    run: ClaimedRun,
    question: QuestionId,
}

fn target() -> Target {
    Target {
        chat: "C1".to_owned(),
        thread: None,
        topic: None,
        reply_to: None,
    }
}

async fn called(scene: &Scene, run: &ClaimedRun, calls: usize) -> Vec<StoredCall> {
    let (id, token) = (run.run.id, run.token);
    let step = scene
        .store
        .record_step(id, token, 1, "asked".to_owned(), Usage::default(), 140);
    step.await.unwrap();
    let call = |n: usize| NewToolCall {
        call_id: format!("call_{n}"),
        tool: "ask_person".to_owned(),
        arguments: format!("{{\"question\":\"{n}\"}}"),
        digest: [u8::try_from(n).unwrap(); 32],
        rule: CallRule::Repeatable,
    };
    let calls = (0..calls).map(call).collect();
    let recorded = scene.store.record_tool_calls(id, token, 1, calls, 141);
    recorded.await.unwrap().unwrap()
}

async fn ask(scene: &Scene, run: &ClaimedRun, call: &StoredCall) -> (QuestionId, QuestionAsked) {
    ask_for(scene, run, call, None).await
}

async fn ask_for(
    scene: &Scene,
    run: &ClaimedRun,
    call: &StoredCall,
    form: Option<AskedForm>,
) -> (QuestionId, QuestionAsked) {
    let id = QuestionId::generate();
    let new = NewQuestion {
        id,
        run: run.run.id,
        token: run.token,
        call: call.id,
        person: None,
        asked: None,
        is_for_experts: false,
        text: "Which colour?".to_owned(),
        options: vec!["Blue".to_owned(), "Red".to_owned()],
        form,
        place: target(),
        card: Part::plain("card"),
        expired: Part::plain("expired"),
        cancelled: Part::plain("cancelled"),
        replied: Part::plain("replied"),
        expires_at_ms: 200 + DAY_MS,
        now_ms: 200,
    };
    (id, scene.store.ask_question(new).await.unwrap())
}

/// A run whose only call asks the person who asked, from 200 on.
async fn asking(scene: &Scene, room: &Room) -> Asking {
    scene.ask(room, "paint it", 10).await;
    let run = scene.claim(100).await.unwrap();
    let call = called(scene, &run, 1).await.remove(0);
    let (question, asked) = ask(scene, &run, &call).await;
    assert_eq!(asked, QuestionAsked::Waits);
    let parked = scene.store.park_run(run.run.id, run.token, 201).await;
    assert_eq!(parked.unwrap(), Parked::Waits);
    Asking { run, question }
}

/// A press of the first answer, taken as what the verdict says while the question is open.
async fn press(scene: &Scene, n: usize, question: QuestionId, at_ms: i64) -> bool {
    let new = NewPress {
        event: NonMessage {
            account: scene.account,
            id: format!("press-{n}"),
            kind: "interaction",
            sender_id: "U1".to_owned(),
            chat: Some("C1".to_owned()),
            text: String::new(),
            received_at_ms: at_ms,
        },
        is_kept: true,
        message_id: "p1".to_owned(),
        sender: Sender {
            id: "U1".to_owned(),
            display_name: None,
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        place: target(),
        pressed: Some(PressedButton::Question(PressedOption {
            button: QuestionButton {
                question,
                option: 0,
            },
            judge: Box::new(move |facts| {
                let state = facts.question.state;
                OptionAnswer {
                    verdict: match state {
                        QuestionState::Open => AnswerVerdict::Counts,
                        state => AnswerVerdict::Not(NotCounted::Over(state)),
                    },
                    outcome: Some(Part::plain("answered")),
                    told: Part::plain(""),
                }
            }),
        })),
    };
    scene.store.capture_press(new).await.unwrap().is_decided
}

async fn run_state(scene: &Scene, run: RunId) -> RunState {
    scene.store.run(run).await.unwrap().state
}

#[tokio::test]
async fn of_fifty_presses_one_answers_and_is_what_its_person_said() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let it = asking(&scene, &room).await;
    posted(&scene).await;
    assert!(matches!(
        run_state(&scene, it.run.run.id).await,
        RunState::Waiting { .. }
    ));
    let mut answers = 0;
    for n in 0..50 {
        answers += usize::from(press(&scene, n, it.question, 300).await);
    }
    assert_eq!(answers, 1);
    let question = scene.store.question(it.question).await.unwrap();
    assert_eq!(question.state, QuestionState::Answered);
    let answer = question.answer.unwrap();
    assert_eq!(answer.text.as_deref(), Some("Blue"));
    let again = scene.claim(400).await.unwrap();
    assert_eq!(again.run.id, it.run.run.id);
    // What is forgotten later is not told to the model.
    by_hand(
        &scene,
        "UPDATE turns SET visibility = 'hidden', content = '' WHERE content = 'Blue'",
    )
    .await;
    let question = scene.store.question(it.question).await.unwrap();
    assert_eq!(question.answer.unwrap().text, None);
}

/// The question is in the room.
async fn posted(scene: &Scene) {
    by_hand(
        scene,
        "UPDATE outbox SET state = 'sent', message_id = 'p1', send_started = 1 WHERE operation = 'post'",
    )
    .await;
}

/// Operation and text of every entry of the outbox but answers to presses, oldest first.
async fn posts(scene: &Scene) -> Vec<(String, String)> {
    let posts = scene.store.read(|connection| {
        let mut statement = connection.prepare_cached(
            "SELECT operation, json_extract(payload, '$.text') AS text FROM outbox
             WHERE operation <> 'answer' ORDER BY id",
        )?;
        let posts = statement.query_map([], |row| Ok((row.get("operation")?, row.get("text")?)))?;
        Ok(posts.collect::<crate::engine::sql::Result<_>>()?)
    });
    posts.await.unwrap()
}

fn post(operation: &str, text: &str) -> (String, String) {
    (operation.to_owned(), text.to_owned())
}

#[tokio::test]
async fn a_question_is_asked_once_and_a_run_asks_three() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.ask(&room, "paint it", 10).await;
    let run = scene.claim(100).await.unwrap();
    let calls = called(&scene, &run, 4).await;
    for _ in 0..2 {
        for (n, call) in calls.iter().enumerate() {
            let (_, asked) = ask(&scene, &run, call).await;
            let expected = match n < QUESTIONS_MAX_RUN as usize {
                true => QuestionAsked::Waits,
                false => QuestionAsked::RunLimit,
            };
            assert_eq!(asked, expected, "{n}");
        }
    }
    assert_eq!(posts(&scene).await, vec![post("post", "card"); 3]);
    assert_eq!(
        scene.store.questions(true, None, 10).await.unwrap().len(),
        3
    );
    // Its run waits until the last of them is over.
    posted(&scene).await;
    let parked = scene.store.park_run(run.run.id, run.token, 201).await;
    assert_eq!(parked.unwrap(), Parked::Waits);
    for (n, question) in scene
        .store
        .questions(true, None, 10)
        .await
        .unwrap()
        .iter()
        .enumerate()
    {
        assert!(scene.claim(300).await.is_none(), "{n}");
        assert!(scene.store.cancel_question(question.id, 300).await.unwrap());
        assert!(!scene.store.cancel_question(question.id, 301).await.unwrap());
    }
    assert_eq!(scene.claim(400).await.unwrap().run.id, run.run.id);
}

#[tokio::test]
async fn a_server_asks_again_once_it_is_answered_and_its_call_goes_on() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.ask(&room, "paint it", 10).await;
    let run = scene.claim(100).await.unwrap();
    let call = called(&scene, &run, 1).await.remove(0);
    let form = |number| AskedForm {
        round: InputRound {
            number,
            server: "boxes".to_owned(),
            state: Some("zebra".to_owned()),
            forms: Vec::new(),
        },
        form: 0,
    };
    let (first, _) = ask_for(&scene, &run, &call, Some(form(1))).await;
    // What is open is not asked twice.
    let (_, again) = ask_for(&scene, &run, &call, Some(form(1))).await;
    assert_eq!(again, QuestionAsked::Waits);
    assert_eq!(posts(&scene).await.len(), 1);
    assert!(scene.store.cancel_question(first, 300).await.unwrap());
    ask_for(&scene, &run, &call, Some(form(2))).await;
    let asked = scene.store.forms_of_call(call.id).await.unwrap();
    let states: Vec<QuestionState> = asked.iter().map(|(question, _)| question.state).collect();
    assert_eq!(states, [QuestionState::Cancelled, QuestionState::Open]);
    let forms: Vec<AskedForm> = asked.into_iter().map(|(_, form)| form).collect();
    assert_eq!(forms, [form(1), form(2)]);

    // A row that can't be read is none.
    by_hand(
        &scene,
        "UPDATE questions SET asked_form = '{' WHERE state = 'cancelled'",
    )
    .await;
    assert_eq!(scene.store.forms_of_call(call.id).await.unwrap().len(), 1);

    let go_on = async |token| {
        scene
            .store
            .go_on_with_call(run.run.id, token, call.id)
            .await
            .unwrap()
    };
    assert_eq!(go_on(LeaseToken::generate()).await, GoneOn::Stale);
    for _ in 0..2 {
        assert_eq!(go_on(run.token).await, GoneOn::Begun);
    }
    // One that acts goes on once.
    by_hand(
        &scene,
        "UPDATE tool_calls SET rule = 'once', state = 'waiting'",
    )
    .await;
    assert_eq!(go_on(run.token).await, GoneOn::Begun);
    assert_eq!(go_on(run.token).await, GoneOn::SourceGone);
}

#[tokio::test]
async fn an_operator_answers_once_and_only_what_is_open() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let it = asking(&scene, &room).await;
    posted(&scene).await;
    let answer = |text: &str, now_ms| OperatorAnswer {
        question: it.question,
        text: text.to_owned(),
        operator: "desk, who runs me".to_owned(),
        outcome: Part::plain("answered"),
        now_ms,
    };
    let answered = async |text, now_ms| {
        let done = scene.store.answer_question(answer(text, now_ms)).await;
        done.unwrap()
    };
    assert!(!answered("too late", 200 + DAY_MS).await);
    assert!(answered("Blue", 300).await);
    assert!(!answered("Red", 301).await);
    let question = scene.store.question(it.question).await.unwrap();
    let said = question.answer.unwrap();
    assert_eq!(said.by, "desk, who runs me");
    assert_eq!(said.text.as_deref(), Some("Blue"));
    assert_eq!(
        posts(&scene).await.last(),
        Some(&post("edit", "answered")),
        "who answers twice changes nothing"
    );
    assert_eq!(scene.claim(400).await.unwrap().run.id, it.run.run.id);
}

#[tokio::test]
async fn time_ends_a_question_and_so_does_the_end_of_its_run_or_of_its_post() {
    let state = async |scene: &Scene, id| scene.store.question(id).await.unwrap().state;
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let it = asking(&scene, &room).await;
    posted(&scene).await;
    let due = scene.store.next_expiry_ms(300).await.unwrap();
    assert_eq!(due, Some(200 + DAY_MS));
    assert_eq!(scene.store.expire_approvals(199 + DAY_MS).await.unwrap(), 0);
    assert_eq!(scene.store.expire_approvals(200 + DAY_MS).await.unwrap(), 1);
    assert_eq!(state(&scene, it.question).await, QuestionState::Expired);
    assert!(posts(&scene).await.contains(&post("edit", "expired")));
    assert!(!press(&scene, 1, it.question, 200 + DAY_MS).await);
    assert_eq!(
        scene.claim(300 + DAY_MS).await.unwrap().run.id,
        it.run.run.id
    );

    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let it = asking(&scene, &room).await;
    posted(&scene).await;
    let stopping = Stopping {
        cause: StopCause::Operator,
        detail: String::new(),
    };
    let cancelled = scene.store.cancel_run(it.run.run.id, stopping, 400);
    assert!(cancelled.await.unwrap());
    assert_eq!(state(&scene, it.question).await, QuestionState::Cancelled);
    assert!(posts(&scene).await.contains(&post("edit", "cancelled")));

    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let it = asking(&scene, &room).await;
    posted(&scene).await;
    let deleted = scene.store.capture_delete(scene.account, "C1", "p1", 400);
    deleted.await.unwrap();
    assert_eq!(state(&scene, it.question).await, QuestionState::Cancelled);
    assert_eq!(posts(&scene).await, [post("post", "card")]);
    assert_eq!(scene.claim(500).await.unwrap().run.id, it.run.run.id);
}
