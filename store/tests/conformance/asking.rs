//! Questions to people: asked once, answered once by who is asked, and what their runs do meanwhile.

use vocative_contract::envelope::{Sender, SenderKind};
use vocative_contract::outbound::{Operation, Part};
use vocative_core::eliciting::{AskedForm, InputRound};
use vocative_core::ids::{LeaseToken, QuestionId, RunId};
use vocative_core::questioning::{
    AnswerVerdict, NotCounted, QUESTIONS_MAX_RUN, QuestionButton, QuestionState,
};
use vocative_core::run::{ClaimedRun, RunState, Usage};
use vocative_core::tool_call::{CallRule, StoredCall};
use vocative_store::contract::{
    GoneOn, NewPress, NewQuestion, NewToolCall, NonMessage, OperatorAnswer, OptionAnswer,
    OptionFacts, Parked, PressedButton, PressedOption, QuestionAsked, RecordedStep,
};
use vocative_store::{ExpiryBounds, NewId as _};

use crate::scene::{Scene, by_hand, target};

const DAY_MS: i64 = 86_400_000;

/// A run that has asked somebody, and what it asked.
struct Asking {
    scene: Scene,
    run: ClaimedRun,
    question: QuestionId,
}

/// A question whose run makes so many calls.
async fn called(rule: CallRule, calls: usize) -> (Scene, ClaimedRun, Vec<StoredCall>) {
    let scene = Scene::open().await;
    scene.ask("C1", "paint it", 10).await;
    let run = scene.claim(100).await.unwrap();
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
    let call = |n: usize| NewToolCall {
        call_id: format!("call_{n}"),
        tool: "ask_person".to_owned(),
        arguments: format!("{{\"question\":\"{n}\"}}"),
        digest: [u8::try_from(n).unwrap(); 32],
        rule,
    };
    let calls = (0..calls).map(call).collect();
    let recorded = scene.store.record_tool_calls(id, token, 1, calls, 141);
    let calls = recorded.await.unwrap().unwrap();
    (scene, run, calls)
}

async fn ask(
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
        place: target("C1"),
        card: Part::plain("card"),
        expired: Part::plain("expired"),
        cancelled: Part::plain("cancelled"),
        replied: Part::plain("replied"),
        expires_at_ms: 200 + DAY_MS,
        now_ms: 200,
    };
    (id, scene.store.ask_question(new).await.unwrap())
}

async fn park(scene: &Scene, run: &ClaimedRun) {
    let parked = scene.store.park_run(run.run.id, run.token, 201).await;
    assert_eq!(parked.unwrap(), Parked::Waits);
}

impl Asking {
    /// A run whose only call asks the person who asked, from 200 on. The question is in the room.
    async fn new() -> Self {
        let (scene, run, calls) = called(CallRule::Repeatable, 1).await;
        let (question, asked) = ask(&scene, &run, &calls[0], None).await;
        assert_eq!(asked, QuestionAsked::Waits);
        park(&scene, &run).await;
        assert_eq!(told(&scene, 210).await, ["post card"]);
        Self {
            scene,
            run,
            question,
        }
    }

    /// A press of the first answer, taken as what the verdict says while the question is open.
    async fn press(&self, n: usize, at_ms: i64) -> bool {
        let button = QuestionButton {
            question: self.question,
            option: 0,
        };
        let judge = Box::new(|facts: OptionFacts| OptionAnswer {
            verdict: match facts.question.state {
                QuestionState::Open => AnswerVerdict::Counts,
                state => AnswerVerdict::Not(NotCounted::Over(state)),
            },
            outcome: Some(Part::plain("answered")),
            told: Part::plain(""),
        });
        let new = NewPress {
            event: NonMessage {
                account: self.scene.account,
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
            place: target("C1"),
            pressed: Some(PressedButton::Question(PressedOption { button, judge })),
        };
        let pressed = self.scene.store.capture_press(new).await;
        pressed.unwrap().is_decided
    }

    async fn state(&self) -> QuestionState {
        let question = self.scene.store.question(self.question).await;
        question.unwrap().state
    }

    async fn goes_on(&self, now_ms: i64) -> ClaimedRun {
        let claimed = self.scene.claim(now_ms).await.unwrap();
        assert_eq!(claimed.run.id, self.run.run.id);
        claimed
    }
}

async fn run_state(scene: &Scene, run: RunId) -> RunState {
    scene.store.run(run).await.unwrap().state
}

/// Everything that waits to be sent goes: operations and texts, but of answers to presses. The first
/// message is p1.
async fn told(scene: &Scene, now_ms: i64) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        let claimed = scene.claim_posts(now_ms).await;
        if claimed.is_empty() {
            told.retain(|it: &String| !it.starts_with("answer"));
            return told;
        }
        for claim in claimed {
            let (operation, text) = (claim.entry.operation.name(), &claim.entry.part.text);
            told.push(format!("{operation} {text}"));
            let message_id = match &claim.entry.operation {
                Operation::Edit { message_id } => message_id.clone(),
                _ => format!("p{}", told.len()),
            };
            scene.send(&claim, &message_id, now_ms).await;
        }
    }
}

#[tokio::test]
async fn of_fifty_presses_one_answers_and_is_what_its_person_said() {
    let it = Asking::new().await;
    let state = run_state(&it.scene, it.run.run.id).await;
    assert!(matches!(state, RunState::Waiting { .. }));
    let mut answers = 0;
    for n in 0..50 {
        answers += usize::from(it.press(n, 300).await);
    }
    assert_eq!(answers, 1);
    let store = &it.scene.store;
    let question = store.question(it.question).await.unwrap();
    assert_eq!(question.state, QuestionState::Answered);
    let answer = question.answer.unwrap();
    assert_eq!(answer.text.as_deref(), Some("Blue"));
    let again = it.goes_on(400).await;
    let reply = it.scene.answer(&again, "It is blue.").await;
    store.commit_reply(reply).await.unwrap();
    told(&it.scene, 500).await;
    // What is forgotten later is not told to the model.
    let bounds = ExpiryBounds {
        text_before_ms: Some(DAY_MS),
        ..ExpiryBounds::default()
    };
    let expired = store.expire(it.scene.account, bounds, u64::MAX, DAY_MS);
    assert!(expired.await.unwrap().text > 0);
    let question = store.question(it.question).await.unwrap();
    assert_eq!(question.answer.unwrap().text, None);
}

#[tokio::test]
async fn a_question_is_asked_once_and_a_run_asks_three() {
    let (scene, run, calls) = called(CallRule::Repeatable, 4).await;
    for _ in 0..2 {
        for (n, call) in calls.iter().enumerate() {
            let (_, asked) = ask(&scene, &run, call, None).await;
            let expected = match n < QUESTIONS_MAX_RUN as usize {
                true => QuestionAsked::Waits,
                false => QuestionAsked::RunLimit,
            };
            assert_eq!(asked, expected, "{n}");
        }
    }
    let open = scene.store.questions(true, None, 10).await.unwrap();
    assert_eq!(open.len(), 3);
    assert_eq!(told(&scene, 210).await, ["post card"; 3]);
    // Its run waits until the last of them is over.
    park(&scene, &run).await;
    for question in open {
        assert!(scene.claim(300).await.is_none());
        assert!(scene.store.cancel_question(question.id, 300).await.unwrap());
        assert!(!scene.store.cancel_question(question.id, 301).await.unwrap());
    }
    assert_eq!(scene.claim(400).await.unwrap().run.id, run.run.id);
}

#[tokio::test]
async fn a_server_asks_again_once_it_is_answered_and_its_call_goes_on() {
    let form = |number| AskedForm {
        round: InputRound {
            number,
            server: "boxes".to_owned(),
            state: Some("zebra".to_owned()),
            forms: Vec::new(),
        },
        form: 0,
    };
    for rule in [CallRule::Repeatable, CallRule::Once] {
        let (scene, run, calls) = called(rule, 1).await;
        let (store, call) = (&scene.store, &calls[0]);
        let (first, _) = ask(&scene, &run, call, Some(form(1))).await;
        // What is open is not asked twice.
        let (_, again) = ask(&scene, &run, call, Some(form(1))).await;
        assert_eq!(again, QuestionAsked::Waits);
        assert_eq!(told(&scene, 210).await, ["post card"]);
        assert!(store.cancel_question(first, 300).await.unwrap());
        ask(&scene, &run, call, Some(form(2))).await;
        let asked = store.forms_of_call(call.id).await.unwrap();
        let asked: Vec<_> = asked
            .into_iter()
            .map(|(it, form)| (it.state, form))
            .collect();
        let expected = [
            (QuestionState::Cancelled, form(1)),
            (QuestionState::Open, form(2)),
        ];
        assert_eq!(asked, expected);

        let go_on = async |token| {
            let gone_on = store.go_on_with_call(run.run.id, token, call.id);
            gone_on.await.unwrap()
        };
        assert_eq!(go_on(LeaseToken::generate()).await, GoneOn::Stale);
        assert_eq!(go_on(run.token).await, GoneOn::Begun);
        // One that acts goes on once.
        let expected = match rule {
            CallRule::Once => GoneOn::SourceGone,
            _ => GoneOn::Begun,
        };
        assert_eq!(go_on(run.token).await, expected);
    }
}

#[tokio::test]
async fn an_operator_answers_once_and_only_what_is_open() {
    let it = Asking::new().await;
    let answered = async |text: &str, now_ms| {
        let answer = OperatorAnswer {
            question: it.question,
            text: text.to_owned(),
            operator: "desk, who runs me".to_owned(),
            outcome: Part::plain("answered"),
            now_ms,
        };
        it.scene.store.answer_question(answer).await.unwrap()
    };
    assert!(!answered("too late", 200 + DAY_MS).await);
    assert!(answered("Blue", 300).await);
    assert!(!answered("Red", 301).await);
    let question = it.scene.store.question(it.question).await.unwrap();
    let said = question.answer.unwrap();
    assert_eq!(said.by, "desk, who runs me");
    assert_eq!(said.text.as_deref(), Some("Blue"));
    // Who answers twice changes nothing.
    assert_eq!(told(&it.scene, 310).await, ["edit answered"]);
    it.goes_on(400).await;
}

#[tokio::test]
async fn time_ends_a_question_and_so_does_the_end_of_its_run_or_of_its_post() {
    let it = Asking::new().await;
    let (store, end_ms) = (&it.scene.store, 200 + DAY_MS);
    assert_eq!(store.next_expiry_ms(300).await.unwrap(), Some(end_ms));
    assert_eq!(store.expire_approvals(end_ms - 1).await.unwrap(), 0);
    assert_eq!(store.expire_approvals(end_ms).await.unwrap(), 1);
    assert_eq!(it.state().await, QuestionState::Expired);
    assert_eq!(told(&it.scene, end_ms).await, ["edit expired"]);
    assert!(!it.press(1, end_ms).await);
    it.goes_on(300 + DAY_MS).await;

    let it = Asking::new().await;
    let cancelled = it.scene.store.cancel_run(it.run.run.id, by_hand(""), 400);
    assert!(cancelled.await.unwrap());
    assert_eq!(it.state().await, QuestionState::Cancelled);
    assert_eq!(told(&it.scene, 400).await, ["edit cancelled"]);

    let it = Asking::new().await;
    let (store, account) = (&it.scene.store, it.scene.account);
    let deleted = store.capture_delete(account, "C1", "p1", 400);
    deleted.await.unwrap();
    assert_eq!(it.state().await, QuestionState::Cancelled);
    assert_eq!(told(&it.scene, 400).await, [] as [&str; 0]);
    it.goes_on(500).await;
}
