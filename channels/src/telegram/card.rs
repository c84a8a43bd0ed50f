//! A card as a text with entities and an inline keyboard. Pure.

use serde_json::{Value, json};

use vocative_contract::capability::LengthUnit;
use vocative_contract::card::{ButtonStyle, Card, CardButton, CardMisfit};
use vocative_contract::outbound::Part;

use crate::render::{Block, StyledRun};

use super::layout::{ENTITIES_MAX, kept, laid};
use super::render::TEXT_MAX_UTF16;

/// Marks that the server drops from every text. *Source:* tdlib, `clean_input_string`.
const DROPPED_MARKS: [char; 3] = ['\u{30A}', '\u{333}', '\u{33F}'];

/// Buttons in one row of a keyboard.
const ROW_BUTTONS: usize = 2;

/// A card as one part.
///
/// # Errors
/// A [`CardMisfit`] if one message can't show it whole.
pub(super) fn render_card(card: &Card) -> Result<Part, CardMisfit> {
    card.check_buttons()?;
    let mut out = CardWriter::default();
    out.push_words(&card.heading, "")?;
    for (n, fact) in card.facts.iter().enumerate() {
        out.push_plain(if n == 0 { "\n\n" } else { "\n" });
        out.push_words(&fact.label, &fact.value)?;
    }
    for text in &card.texts {
        out.push_plain("\n\n");
        out.push_title(&text.title)?;
        out.push_plain("\n");
        out.push_verbatim("pre", &text.text)?;
    }
    if out.units > TEXT_MAX_UTF16 {
        return Err(CardMisfit::TooLong);
    }
    if out.entities.len() > ENTITIES_MAX {
        return Err(CardMisfit::TooMany);
    }
    let part = Part::rendered(out.text, Some(Value::Array(out.entities)), None);
    Ok(part.with_buttons(card.buttons.clone()))
}

/// The `reply_markup` of a part; `None` without buttons, which removes the keyboard of an edited message.
pub(super) fn keyboard(part: &Part) -> Option<Value> {
    if part.buttons.is_empty() {
        return None;
    }
    let rows = part.buttons.chunks(ROW_BUTTONS);
    let rows: Vec<Vec<Value>> = rows.map(|row| row.iter().map(button).collect()).collect();
    Some(json!({ "inline_keyboard": rows }))
}

fn button(button: &CardButton) -> Value {
    let mut key = json!({"text": button.label, "callback_data": button.data});
    match button.style {
        ButtonStyle::Plain => {}
        ButtonStyle::Positive => key["style"] = json!("success"),
        ButtonStyle::Negative => key["style"] = json!("danger"),
    }
    key
}

/// The message under construction; lengths in UTF-16 units.
#[derive(Default)]
struct CardWriter {
    text: String,
    units: usize,
    entities: Vec<Value>,
}

impl CardWriter {
    fn push_plain(&mut self, text: &str) {
        self.text.push_str(text);
        self.units += LengthUnit::Utf16.len(text);
    }

    /// Appends a bold label and the labelled text, in which nobody is mentioned and nothing can be tapped.
    fn push_words(&mut self, label: &str, value: &str) -> Result<(), CardMisfit> {
        check(label)?;
        let mut runs = vec![StyledRun::plain(label)];
        if !value.is_empty() {
            check(value)?;
            runs[0].text.push(':');
            runs.push(StyledRun::plain(format!(" {value}")));
        }
        runs[0].styles.bold = true;
        let laid = laid(&[Block::Paragraph(runs)]);
        let entities = laid.entities_json();
        for mut entity in entities
            .as_ref()
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .cloned()
        {
            let offset = entity["offset"]
                .as_u64()
                .and_then(|it| usize::try_from(it).ok());
            entity["offset"] = json!(self.units + offset.unwrap_or_default());
            self.entities.push(entity);
        }
        self.push_plain(&laid.text);
        Ok(())
    }

    /// Appends the name of an argument: in bold, and as code where the server might make something in it tappable.
    fn push_title(&mut self, title: &str) -> Result<(), CardMisfit> {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ');
        let kind = if title.chars().all(is_word) {
            "bold"
        } else {
            "code"
        };
        self.push_verbatim(kind, title)
    }

    fn push_verbatim(&mut self, kind: &str, text: &str) -> Result<(), CardMisfit> {
        check(text)?;
        let length = LengthUnit::Utf16.len(text);
        self.entities
            .push(json!({"type": kind, "offset": self.units, "length": length}));
        self.push_plain(text);
        Ok(())
    }
}

/// Whether the server keeps a text unchanged.
fn check(text: &str) -> Result<(), CardMisfit> {
    let is_altered = |c: char| kept(c) != Some(c) || DROPPED_MARKS.contains(&c);
    match text.trim() != text || text.is_empty() || text.contains(is_altered) {
        true => Err(CardMisfit::Altered),
        false => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_contract::card::{CardFact, CardText};
    use vocative_contract::error::Fallback;

    use super::super::render::render_fallback;
    use super::*;

    fn card() -> Card {
        Card {
            heading: "Post a refund? 💶".to_owned(),
            facts: vec![
                CardFact {
                    label: "Asked by".to_owned(),
                    value: "Ann @bob_dev /start".to_owned(),
                },
                CardFact {
                    label: "Until".to_owned(),
                    value: "14:05 UTC".to_owned(),
                },
            ],
            texts: vec![CardText {
                title: "note".to_owned(),
                text: "\"@ann *two*\nlines\"".to_owned(),
            }],
            buttons: ["yes", "no", "all"]
                .into_iter()
                .zip([
                    ButtonStyle::Positive,
                    ButtonStyle::Negative,
                    ButtonStyle::Plain,
                ])
                .map(|(data, style)| CardButton {
                    data: data.to_owned(),
                    label: data.to_uppercase(),
                    style,
                })
                .collect(),
        }
    }

    fn misfit(change: impl FnOnce(&mut Card)) -> CardMisfit {
        let mut card = card();
        change(&mut card);
        render_card(&card).unwrap_err()
    }

    #[test]
    fn a_card_is_text_with_entities_in_which_nobody_is_mentioned() {
        let part = render_card(&card()).unwrap();
        assert_eq!(part.version, 5);
        assert_eq!(
            part.text,
            "Post a refund? 💶\n\nAsked by: Ann @\u{2060}bob_dev /\u{2060}start\nUntil: 14:05 UTC\n\nnote\n\"@ann *two*\nlines\""
        );
        let entity = |kind: &str, offset: usize, length: usize| json!({"type": kind, "offset": offset, "length": length});
        assert_eq!(
            part.entities,
            Some(json!([
                entity("bold", 0, 17),
                entity("bold", 19, 9),
                entity("bold", 51, 6),
                entity("bold", 69, 4),
                entity("pre", 74, 18),
            ]))
        );
        assert_eq!(
            keyboard(&part),
            Some(json!({"inline_keyboard": [
                [{"text": "YES", "callback_data": "yes", "style": "success"},
                 {"text": "NO", "callback_data": "no", "style": "danger"}],
                [{"text": "ALL", "callback_data": "all"}],
            ]}))
        );
    }

    #[test]
    fn a_card_that_telegram_would_not_show_whole_is_none() {
        let table = [
            (
                misfit(|it| it.texts[0].text = "x".repeat(4_000)),
                CardMisfit::TooLong,
            ),
            (
                misfit(|it| it.texts[0].text = "💶".repeat(2_000)),
                CardMisfit::TooLong,
            ),
            (
                misfit(|it| it.texts = vec![it.texts[0].clone(); 49]),
                CardMisfit::TooMany,
            ),
            (
                misfit(|it| it.texts[0].text.push('\n')),
                CardMisfit::Altered,
            ),
            (
                misfit(|it| it.texts[0].text.push_str("\tx")),
                CardMisfit::Altered,
            ),
            (
                misfit(|it| it.texts[0].text.push_str("\u{202E}x")),
                CardMisfit::Altered,
            ),
            (
                misfit(|it| it.texts[0].text.push_str("a\u{30A}x")),
                CardMisfit::Altered,
            ),
            (
                misfit(|it| it.facts[0].value.push('\r')),
                CardMisfit::Altered,
            ),
            (misfit(|it| it.texts[0].text.clear()), CardMisfit::Altered),
            (
                misfit(|it| it.buttons[0].label.clear()),
                CardMisfit::BadButton,
            ),
        ];
        for (n, (misfit, expected)) in table.into_iter().enumerate() {
            assert_eq!(misfit, expected, "{n}");
        }
    }

    #[test]
    fn a_refused_card_has_no_buttons_in_another_form() {
        let part = render_card(&card()).unwrap();
        for fallback in [Fallback::Plain, Fallback::Resplit] {
            let parts = render_fallback(&part, fallback);
            assert!(!parts.is_empty());
            assert!(
                parts.iter().all(|part| part.buttons.is_empty()),
                "{parts:?}"
            );
        }
        let outcome = Card {
            buttons: Vec::new(),
            ..card()
        };
        assert_eq!(keyboard(&render_card(&outcome).unwrap()), None);
    }
}
