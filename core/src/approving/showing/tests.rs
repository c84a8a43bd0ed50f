#![allow(clippy::unwrap_used)]

use serde_json::json;
use vocative_contract::card::ButtonStyle;

use super::super::testing::{argument_sets, read_back};
use super::*;

fn text(title: &str, text: &str) -> CardText {
    CardText {
        title: title.to_owned(),
        text: text.to_owned(),
    }
}

#[test]
fn each_argument_is_a_text_in_the_order_of_the_schema() {
    let arguments = json!({
        "note": "two\nlines", "amount": 120.5, "to the\nmoon": true, "argv": ["rm", "-r f", "\u{430}"],
        "deep": {"a": {"b": []}, "c": null}, "empty": {},
    });
    assert_eq!(
        shown_arguments(
            &arguments,
            ["amount", "gone", "note", "amount"],
            Language::English
        ),
        [
            text("amount", "120.5"),
            text("note", "\"two\nlines\""),
            text("argv", r#"["rm", "-r f", "\u{430}"]"#),
            text(
                "deep",
                "{\n  \"a\": {\n    \"b\": []\n  },\n  \"c\": null\n}"
            ),
            text("empty", "{}"),
            text(r#""to the\n{1}moon""#, "true"),
        ]
    );
    assert_eq!(
        shown_arguments(&json!({}), [], Language::English),
        [text("all arguments", "{}")]
    );
    assert_eq!(
        shown_arguments(&json!(["x"]), [], Language::English),
        [text("all arguments", r#"["x"]"#)]
    );
}

#[test]
fn no_arguments_and_an_argument_of_that_name_differ() {
    let named = json!({"arguments": {}, "all arguments": {}});
    let titles: Vec<String> = shown_arguments(&named, [], Language::English)
        .into_iter()
        .map(|it| it.title)
        .collect();
    assert_eq!(titles, ["\"all arguments\"", "arguments"]);
    for arguments in [json!({}), json!({"all arguments": {}})] {
        let texts = shown_arguments(&arguments, [], Language::English);
        assert_eq!(read_back(&texts), Some(arguments));
    }
    for language in Language::ALL {
        assert!(language.all_arguments().contains(' '), "{language:?}");
    }
}

/// Characters of the sets that would not show, or not as what they are.
const HIDDEN: [char; 16] = [
    '\0',
    '\u{7}',
    '\t',
    '\r',
    '\u{A0}',
    '\u{301}',
    '\u{200B}',
    '\u{2028}',
    '\u{202E}',
    '\u{2066}',
    '\u{3164}',
    '\u{FE0F}',
    '\u{FEFF}',
    '\u{FFF9}',
    '\u{E0041}',
    '\u{10FFFF}',
];

#[test]
fn what_is_shown_is_what_runs() {
    let sets = argument_sets(1_000, 15);
    let mut shown = std::collections::HashMap::new();
    for set in &sets {
        let texts = shown_arguments(set, [], Language::English);
        assert_eq!(read_back(&texts).as_ref(), Some(set), "{texts:?}");
        for text in &texts {
            assert!(!text.text.contains(HIDDEN), "{text:?}");
            assert!(!text.title.contains('\n'), "{text:?}");
            assert_eq!(text.text.trim(), text.text);
        }
        let words = format!("{texts:?}");
        if let Some(other) = shown.insert(words, set) {
            assert_eq!(other, set, "two sets show alike");
        }
    }
    assert!(shown.len() > 900, "{} sets differ", shown.len());
}

fn button(data: &str) -> CardButton {
    CardButton {
        data: data.to_owned(),
        label: data.to_owned(),
        style: ButtonStyle::Plain,
    }
}

fn buttons() -> CardButtons {
    CardButtons {
        whole: vec![button("approve"), button("deny")],
        cut: vec![button("deny"), button("show")],
    }
}

/// A platform whose posts hold at most `max` characters.
fn platform(max: usize) -> impl Fn(&Card) -> Result<Part, CardMisfit> {
    move |card| {
        let facts = card
            .facts
            .iter()
            .map(|fact| format!("{}: {}\n", fact.label, fact.value));
        let texts = card
            .texts
            .iter()
            .map(|text| format!("{}\n{}\n", text.title, text.text));
        let words: String = facts.chain(texts).collect();
        match words.chars().count() > max {
            true => Err(CardMisfit::TooLong),
            false => Ok(Part::plain(words).with_buttons(card.buttons.clone())),
        }
    }
}

fn datas(part: &Part) -> Vec<&str> {
    part.buttons
        .iter()
        .map(|button| button.data.as_str())
        .collect()
}

#[test]
fn a_cut_card_is_not_approvable() {
    let card = Card {
        heading: "Post a refund?".to_owned(),
        ..Card::default()
    };
    let mut cut = 0;
    for set in argument_sets(1_000, 4) {
        let texts = shown_arguments(&set, [], Language::English);
        for max in [150, 700, 3_000] {
            let fitted =
                fitted_card(&card, &texts, &buttons(), Language::English, &platform(max)).unwrap();
            let shows_all = texts.iter().all(|it| {
                let whole = format!("{}\n{}\n", it.title, it.text);
                fitted.part.text.contains(&whole)
            });
            assert_eq!(fitted.is_whole, datas(&fitted.part) == ["approve", "deny"]);
            assert!(shows_all || !fitted.is_whole, "{}", fitted.part.text);
            assert!(fitted.is_whole || datas(&fitted.part) == ["deny", "show"]);
            cut += usize::from(!fitted.is_whole);
        }
    }
    assert!((300..2_700).contains(&cut), "{cut} of 3,000 are cut");
}

#[test]
fn a_cut_card_shows_the_beginning_and_says_how_much_is_missing() {
    let texts = [
        text("a", "\"x\""),
        text("b", &"é".repeat(5_000)),
        text("c", "1"),
    ];
    let fitted = fitted_card(
        &Card::default(),
        &texts,
        &buttons(),
        Language::English,
        &platform(1_000),
    )
    .unwrap();
    assert!(!fitted.is_whole);
    // 4 of a, 1 of the name b, and what is left of 800.
    let shown = 800 - 5;
    let expected = format!(
        "Not all is shown: {} of 5007 characters are left out, so it can't be allowed here\na\n\"x\"\nb\n{}…\n",
        5_007 - 5 - (shown - 1),
        "é".repeat(shown - 1)
    );
    assert_eq!(fitted.part.text, expected);
    let refused = fitted_card(
        &Card::default(),
        &texts,
        &buttons(),
        Language::English,
        &platform(10),
    );
    assert_eq!(refused, Err(CardMisfit::TooLong));
}

#[test]
fn what_no_post_can_hold_is_cut_at_once() {
    let texts = [text("a", &"x".repeat(400_000))];
    let asked = std::cell::Cell::new(0);
    let render = |card: &Card| {
        asked.set(asked.get() + 1);
        platform(4_000)(card)
    };
    let fitted = fitted_card(
        &Card::default(),
        &texts,
        &buttons(),
        Language::English,
        &render,
    )
    .unwrap();
    assert_eq!((fitted.is_whole, asked.get()), (false, 1));
}
