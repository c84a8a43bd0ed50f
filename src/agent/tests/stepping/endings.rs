//! What ends a run in place of a model's last word.

use super::*;

#[tokio::test]
async fn a_tool_whose_text_is_the_answer_ends_the_run() {
    let mut house = House::open().await;
    house.stop_after = vec!["note".to_owned()];
    let run = house.asked("note it").await;
    let notebook = Notebook::default();
    let both = [
        ("a", "note", json!({"text": "one"})),
        ("b", "note", json!({"text": "two"})),
    ];
    let model = Scripted::new(vec![Ok(answer("Let me see.", &both))]);
    // What is the answer needs no room among the results that the model is shown.
    let ended = house
        .work_within(&run, &model, &notebook.toolbox(), 0, 3)
        .await;
    let expected = StepsEnd::Answered(Answer {
        raw_message: String::new(),
        ..answer("noted one\n\nnoted two", &[])
    });
    assert_eq!(ended, expected);
    assert_eq!(model.times_asked(), 1);
    // Killed before its answer was committed, the run ends with the same one.
    let nobody = Scripted::new(Vec::new());
    let again = house.work(&run, &nobody, &notebook.toolbox()).await;
    assert_eq!(again, expected);
    assert_eq!(notebook.notes(), ["one", "two"]);
}

#[tokio::test]
async fn a_call_that_was_not_done_ends_no_run() {
    let mut house = House::open().await;
    house.stop_after = vec!["note".to_owned()];
    let run = house.asked("note it").await;
    let notebook = Notebook::default();
    let wrong = [("a", "note", json!({"txt": "one"}))];
    let right = [("b", "note", json!({"text": "two"}))];
    let model = Scripted::new(vec![Ok(answer("", &wrong)), Ok(answer("", &right))]);
    let ended = house.work(&run, &model, &notebook.toolbox()).await;
    let StepsEnd::Answered(answer) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(answer.text, "noted two");
    assert_eq!(model.times_asked(), 2);
}

/// A house whose answers name a city.
async fn of_cities() -> House {
    let mut house = House::open().await;
    let schema =
        r#"{"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}"#;
    house.form = Some(AnswerForm::parse(schema).unwrap());
    house
}

/// What the model was told of its earlier answers in its last request.
fn told(model: &Scripted) -> Vec<String> {
    let asked = model.asked.lock().unwrap();
    let exchanges = asked.last().unwrap().0.iter();
    exchanges.map(|exchange| exchange.told.clone()).collect()
}

#[tokio::test]
async fn an_answer_of_another_form_is_mended() {
    let house = of_cities().await;
    let run = house.asked("where?").await;
    let note = [("a", "note", json!({"text": "one"}))];
    let model = Scripted::new(vec![
        Ok(answer("", &note)),
        Ok(answer("In Oslo.", &[])),
        Ok(answer("```json\n{\"city\": \"Oslo\"}\n```", &[])),
    ]);
    let toolbox = Notebook::default().toolbox();
    // Mending is besides the steps.
    let ended = house
        .work_within(&run, &model, &toolbox, RESULTS_MAX_TOKENS, 2)
        .await;
    assert_eq!(ended, answered("{\"city\": \"Oslo\"}", 3));
    let told = told(&model);
    assert_eq!(told[0], "");
    assert!(told[1].contains("it can't be read"), "{told:?}");
    let choices: Vec<ToolChoice> = model.asked.lock().unwrap().iter().map(|a| a.1).collect();
    assert_eq!(
        choices,
        [ToolChoice::Auto, ToolChoice::None, ToolChoice::None]
    );
    // Killed before it was committed, it is the answer still.
    let nobody = Scripted::new(Vec::new());
    let again = house.work(&run, &nobody, &toolbox).await;
    assert_eq!(again, answered("{\"city\": \"Oslo\"}", 3));
}

#[tokio::test]
async fn an_answer_is_mended_twice_and_no_further() {
    let house = of_cities().await;
    let run = house.asked("where?").await;
    let cut = Answer {
        finish: Finish::Length,
        ..answer("{\"city\": ", &[])
    };
    let wrong = || Ok(answer("{\"town\": 1}", &[]));
    let down = ModelError::Unavailable {
        cause: "down".to_owned(),
    };
    let model = Scripted::new(vec![Ok(cut), wrong(), Err(down.clone())]);
    let toolbox = Notebook::default().toolbox();
    // Another attempt counts the answers of the first.
    let broken_off = house.work(&run, &model, &toolbox).await;
    assert_eq!(broken_off, StepsEnd::Failed(down));
    let last = Scripted::new(vec![wrong()]);
    let ended = house.work(&run, &last, &toolbox).await;
    let told = told(&last);
    assert!(told[0].contains("was cut"), "{told:?}");
    assert!(told[1].contains("`city` is missing"), "{told:?}");
    let usage = Usage {
        prompt_tokens: 30,
        completion_tokens: 3,
        ..Usage::default()
    };
    let expected = StepsEnd::Misshapen(Misshapen { answers: 3, usage });
    assert_eq!(ended, expected);
    let nobody = Scripted::new(Vec::new());
    assert_eq!(house.work(&run, &nobody, &toolbox).await, expected);
}

#[tokio::test]
async fn what_was_said_beside_calls_is_no_answer_of_a_form() {
    let house = of_cities().await;
    let run = house.asked("where?").await;
    let note = [("a", "note", json!({"text": "one"}))];
    let model = Scripted::new(vec![Ok(answer("Let me see.", &note))]);
    let toolbox = Notebook::default().toolbox();
    let ended = house
        .work_within(&run, &model, &toolbox, RESULTS_MAX_TOKENS, 1)
        .await;
    assert!(matches!(ended, StepsEnd::UsedUp(_)), "{ended:?}");
}
