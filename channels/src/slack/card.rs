//! A card as blocks. Pure.
//!
//! Everything is `rich_text` or `plain_text`, in which Slack reads no marks and no references. *Source:* Slack's
//! Block Kit reference.

use serde_json::{Value, json};

use vocative_contract::card::{ButtonStyle, Card, CardButton, CardMisfit};
use vocative_contract::outbound::Part;

use super::markdown::harmless;
use super::render::{TEXT_MAX_CHARS, escaped};

/// The longest heading, in characters. *Source:* header block.
const HEADING_MAX_CHARS: usize = 150;
/// The longest text of a block, in characters. *Source:* section block; that of rich text is not documented.
const BLOCK_MAX_CHARS: usize = 3_000;
/// The longest text of a card, in characters. *Source:* the limit of all `markdown` blocks of a message; that of rich
/// text is not documented.
const CARD_MAX_CHARS: usize = 12_000;
/// The most blocks of a message.
const BLOCKS_MAX: usize = 50;

/// A card as one part.
///
/// # Errors
/// A [`CardMisfit`] if blocks can't show it whole.
pub(super) fn render_card(card: &Card) -> Result<Part, CardMisfit> {
    card.check_buttons()?;
    let mut blocks = vec![json!({
        "type": "header",
        "text": {"type": "plain_text", "text": shown(&card.heading, HEADING_MAX_CHARS)?, "emoji": false},
    })];
    if !card.facts.is_empty() {
        blocks.push(rich_text(&json!([section(&facts(card)?)])));
    }
    for text in &card.texts {
        let title = shown(&text.title, BLOCK_MAX_CHARS)?;
        let code = shown(&text.text, BLOCK_MAX_CHARS)?;
        blocks.push(rich_text(&json!([
            section(&[bold(title)]),
            {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": code}]},
        ])));
    }
    // The buttons take one block.
    if blocks.len() >= BLOCKS_MAX {
        return Err(CardMisfit::TooMany);
    }
    let facts = card.facts.iter().map(|fact| (&fact.label, &fact.value));
    let texts = card.texts.iter().map(|text| (&text.title, &text.text));
    let chars = facts
        .chain(texts)
        .map(|(name, text)| name.chars().count() + text.chars().count());
    if chars.sum::<usize>() > CARD_MAX_CHARS {
        return Err(CardMisfit::TooLong);
    }
    let part = Part::rendered(beside(card), None, Some(Value::Array(blocks)));
    Ok(part.with_buttons(card.buttons.clone()))
}

/// The blocks of a part with its buttons below them; `None` if it has neither.
pub(super) fn blocks_of(part: &Part) -> Option<Value> {
    if part.buttons.is_empty() {
        return part.blocks.clone();
    }
    let own = part.blocks.as_ref().and_then(Value::as_array);
    let mut blocks = own.cloned().unwrap_or_default();
    let elements: Vec<Value> = part.buttons.iter().enumerate().map(button).collect();
    blocks.push(json!({"type": "actions", "block_id": "card", "elements": elements}));
    Some(Value::Array(blocks))
}

fn button((n, button): (usize, &CardButton)) -> Value {
    let mut element = json!({
        "type": "button", "action_id": format!("card-{n}"), "value": button.data,
        "text": {"type": "plain_text", "text": button.label, "emoji": false},
    });
    match button.style {
        ButtonStyle::Plain => {}
        ButtonStyle::Positive => element["style"] = json!("primary"),
        ButtonStyle::Negative => element["style"] = json!("danger"),
    }
    element
}

/// A text that Slack shows unchanged, within `max`.
fn shown(text: &str, max: usize) -> Result<&str, CardMisfit> {
    if text.chars().count() > max {
        return Err(CardMisfit::TooLong);
    }
    let is_dropped = |c: char| c.is_control() && c != '\n';
    match text.trim() != text || text.is_empty() || text.contains(is_dropped) {
        true => Err(CardMisfit::Altered),
        false => Ok(text),
    }
}

fn facts(card: &Card) -> Result<Vec<Value>, CardMisfit> {
    let mut elements = Vec::new();
    for (n, fact) in card.facts.iter().enumerate() {
        let (label, value) = (
            shown(&fact.label, BLOCK_MAX_CHARS)?,
            shown(&fact.value, BLOCK_MAX_CHARS)?,
        );
        let end = if n + 1 < card.facts.len() { "\n" } else { "" };
        elements.push(bold(&format!("{label}: ")));
        elements.push(json!({"type": "text", "text": format!("{value}{end}")}));
    }
    Ok(elements)
}

fn bold(text: &str) -> Value {
    json!({"type": "text", "text": text, "style": {"bold": true}})
}

fn section(elements: &[Value]) -> Value {
    json!({"type": "rich_text_section", "elements": elements})
}

fn rich_text(elements: &Value) -> Value {
    json!({"type": "rich_text", "elements": elements})
}

/// What notifications say: the heading and the facts, as far as the limit goes.
fn beside(card: &Card) -> String {
    let facts = card.facts.iter();
    let facts = facts.map(|fact| format!("{}: {}", fact.label, fact.value));
    let lines: Vec<String> = std::iter::once(card.heading.clone()).chain(facts).collect();
    let mut text = String::new();
    for c in harmless(&lines.join("\n")).chars() {
        let escaped = escaped(&c.to_string());
        if text.chars().count() + escaped.len() > TEXT_MAX_CHARS {
            break;
        }
        text.push_str(&escaped);
    }
    text
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
            heading: "Post a refund?".to_owned(),
            facts: vec![
                CardFact {
                    label: "Asked by".to_owned(),
                    value: "Ann <!channel> & *Bob*".to_owned(),
                },
                CardFact {
                    label: "Until".to_owned(),
                    value: "14:05 UTC".to_owned(),
                },
            ],
            texts: vec![CardText {
                title: "note".to_owned(),
                text: "\"<@U1> `two`\nlines\"".to_owned(),
            }],
            buttons: vec![
                CardButton {
                    data: "a1yes".to_owned(),
                    label: "Approve".to_owned(),
                    style: ButtonStyle::Positive,
                },
                CardButton {
                    data: "a1no".to_owned(),
                    label: "Deny".to_owned(),
                    style: ButtonStyle::Negative,
                },
            ],
        }
    }

    fn misfit(change: impl FnOnce(&mut Card)) -> CardMisfit {
        let mut card = card();
        change(&mut card);
        render_card(&card).unwrap_err()
    }

    #[test]
    fn a_card_is_blocks_in_which_nothing_is_markup() {
        let part = render_card(&card()).unwrap();
        assert_eq!(part.version, 5);
        assert_eq!(
            part.text,
            "Post a refund?\nAsked by: Ann &lt;\u{2060}!channel&gt; &amp; *Bob*\nUntil: 14:05 UTC"
        );
        let text = |text: &str| json!({"type": "text", "text": text});
        let button = |n: usize, value: &str, label: &str, style: &str| {
            json!({"type": "button", "action_id": format!("card-{n}"), "value": value, "style": style,
                   "text": {"type": "plain_text", "text": label, "emoji": false}})
        };
        let expected = json!([
            {"type": "header", "text": {"type": "plain_text", "text": "Post a refund?", "emoji": false}},
            {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [
                bold("Asked by: "), text("Ann <!channel> & *Bob*\n"), bold("Until: "), text("14:05 UTC"),
            ]}]},
            {"type": "rich_text", "elements": [
                {"type": "rich_text_section", "elements": [bold("note")]},
                {"type": "rich_text_preformatted", "elements": [text("\"<@U1> `two`\nlines\"")]},
            ]},
            {"type": "actions", "block_id": "card", "elements": [
                button(0, "a1yes", "Approve", "primary"), button(1, "a1no", "Deny", "danger"),
            ]},
        ]);
        assert_eq!(blocks_of(&part), Some(expected.clone()));
        assert_eq!(vocative_sandbox::slack::check_blocks(&expected), Ok(()));
    }

    #[test]
    fn a_card_that_slack_would_not_show_whole_is_none() {
        let table = [
            (
                misfit(|it| it.heading = "x".repeat(151)),
                CardMisfit::TooLong,
            ),
            (
                misfit(|it| it.texts[0].text = "x".repeat(3_001)),
                CardMisfit::TooLong,
            ),
            (
                misfit(|it| {
                    it.texts[0].text = "x".repeat(2_900);
                    it.texts = vec![it.texts[0].clone(); 5];
                }),
                CardMisfit::TooLong,
            ),
            (
                misfit(|it| it.texts = vec![it.texts[0].clone(); 48]),
                CardMisfit::TooMany,
            ),
            (
                misfit(|it| it.texts[0].text.push('\n')),
                CardMisfit::Altered,
            ),
            (misfit(|it| it.texts[0].text.clear()), CardMisfit::Altered),
            (
                misfit(|it| it.texts[0].text.push_str("\tx")),
                CardMisfit::Altered,
            ),
            (
                misfit(|it| it.buttons[0].data.clear()),
                CardMisfit::BadButton,
            ),
        ];
        for (n, (misfit, expected)) in table.into_iter().enumerate() {
            assert_eq!(misfit, expected, "{n}");
        }
    }

    #[test]
    fn a_refused_card_has_no_buttons_in_another_form_and_an_outcome_has_none() {
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
        let part = render_card(&outcome).unwrap();
        assert_eq!(part.version, 2);
        assert_eq!(blocks_of(&part), part.blocks);
    }
}
