//! Cards: what is shown of a call's arguments.

use serde_json::{Map, Value, json};
use vocative_channels::{slack, telegram};
use vocative_contract::card::{ButtonStyle, Card, CardButton, CardMisfit};
use vocative_contract::outbound::Part;
use vocative_core::approving::testing::read_back;
use vocative_core::approving::{CardButtons, fitted_card, shown_arguments, visible_line};
use vocative_core::words::Language;

use super::speech::check_text;

/// How a platform renders a card.
type Rendering = fn(&Card) -> Result<Part, CardMisfit>;

pub(super) fn shown(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let arguments = match serde_json::from_slice(input) {
        Ok(Value::Object(map)) => Value::Object(whole_numbers(map)),
        _ => json!({ "note": text }),
    };
    let texts = shown_arguments(&arguments, ["note", "amount"], Language::English);
    assert_eq!(
        read_back(&texts),
        Some(arguments),
        "something else is shown"
    );
    let name = visible_line(&text);
    assert!(!name.contains('\n') && name.trim() == name);
    let button = |data: &str| CardButton {
        data: data.to_owned(),
        label: data.to_owned(),
        style: ButtonStyle::Plain,
    };
    let buttons = CardButtons {
        whole: vec![button("approve")],
        cut: vec![button("deny")],
    };
    let card = Card {
        heading: "May I?".to_owned(),
        ..Card::default()
    };
    let platforms: [Rendering; 2] = [slack::fuzzing::render_card, telegram::fuzzing::render_card];
    for render in platforms {
        let fitted = fitted_card(&card, &texts, &buttons, Language::English, &render);
        let fitted = fitted.expect("the beginning of a card always fits");
        check_text(&fitted.part.text, fitted.part.text.len());
        let data = fitted.part.buttons[0].data.as_str();
        assert_eq!(data, if fitted.is_whole { "approve" } else { "deny" });
        let words = format!("{:?} {:?}", fitted.part.blocks, fitted.part.text);
        let is_there = texts.iter().all(|it| {
            let quoted = format!("{:?}", it.text);
            words.contains(&quoted[1..quoted.len() - 1])
        });
        assert!(is_there || !fitted.is_whole, "a cut card can be approved");
    }
}

/// The same without fractions, which a reader may round.
fn whole_numbers(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter()
        .map(|(name, value)| (name, whole(value)))
        .collect()
}

fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => json!(number.to_string()),
        Value::Array(list) => list.into_iter().map(whole).collect(),
        Value::Object(map) => Value::Object(whole_numbers(map)),
        other => other,
    }
}
