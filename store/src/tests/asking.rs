//! A question whose row can't be read.

#![allow(clippy::unwrap_used)]

use vocative_contract::outbound::Part;
use vocative_core::eliciting::{AskedForm, InputRound};
use vocative_core::ids::QuestionId;
use vocative_core::run::Usage;
use vocative_core::tool_call::CallRule;

use crate::NewId as _;
use crate::contract::{NewQuestion, NewToolCall, QuestionAsked, RecordedStep};
use crate::scene::{Scene, target};

#[tokio::test]
async fn a_form_that_can_t_be_read_is_none() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.ask(&room, "paint it", 10).await;
    let run = scene.claim(100).await.unwrap();
    let (store, id, token) = (&scene.store, run.run.id, run.token);
    let step = store.record_step(
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
        tool: "paint".to_owned(),
        arguments: "{}".to_owned(),
        digest: [1; 32],
        rule: CallRule::Repeatable,
    };
    let recorded = store.record_tool_calls(id, token, 1, vec![call], 141);
    let call = recorded.await.unwrap().unwrap()[0].id;
    let form = AskedForm {
        round: InputRound {
            number: 1,
            server: "boxes".to_owned(),
            state: None,
            forms: Vec::new(),
        },
        form: 0,
    };
    let question = NewQuestion {
        id: QuestionId::generate(),
        run: id,
        token,
        call,
        person: None,
        asked: None,
        is_for_experts: false,
        text: "Which colour?".to_owned(),
        options: vec!["Blue".to_owned(), "Red".to_owned()],
        form: Some(form.clone()),
        place: target(&room),
        card: Part::plain("card"),
        expired: Part::plain("expired"),
        cancelled: Part::plain("cancelled"),
        replied: Part::plain("replied"),
        expires_at_ms: 1_000,
        now_ms: 200,
    };
    let asked = store.ask_question(question).await.unwrap();
    assert_eq!(asked, QuestionAsked::Waits);
    let forms = store.forms_of_call(call).await.unwrap();
    assert_eq!(forms[0].1, form);
    let damage = "UPDATE questions SET asked_form = '{'";
    scene
        .write(move |connection| Ok(connection.execute_batch(damage)?))
        .await;
    assert!(store.forms_of_call(call).await.unwrap().is_empty());
}
