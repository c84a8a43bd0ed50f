//! A call's arguments as people see them before they allow it: all of them, each as it will run, or no button that
//! allows it.
//!
//! Each argument is a text of the card, its name the title. A string stands in quotation marks, its characters as
//! `visible` writes them, line ends kept; numbers stand as they are sent; lists and objects stand a line each
//! item. What is shown can be read back to exactly what runs.

use serde_json::Value;
use vocative_contract::card::{Card, CardButton, CardFact, CardMisfit, CardText};
use vocative_contract::outbound::Part;

use super::visible::{LineEnds, push_quoted};
use crate::words::Language;

/// A list or object of nothing but plain values stands on one line if it is not longer, in characters.
const LINE_MAX_CHARS: usize = 60;
/// The indentation of a list's or object's lines, for each level.
const INDENT: &str = "  ";
/// How much of its texts a cut card shows, in characters: the first that fits.
const CUT_CHARS: [usize; 4] = [2_000, 800, 200, 0];
/// The most texts that a cut card shows.
const CUT_TEXTS_MAX: usize = 10;
/// The most characters that are tried as a whole card: more fit no card.
const WHOLE_MAX_CHARS: usize = 40_000;

/// A call's arguments as texts: those that `order` names first, in that order, then the others by name. Calls without
/// arguments have one text, `{}`.
#[must_use]
pub fn shown_arguments<'a>(
    arguments: &Value,
    order: impl IntoIterator<Item = &'a str>,
    language: Language,
) -> Vec<CardText> {
    let Some(map) = arguments.as_object().filter(|map| !map.is_empty()) else {
        return vec![CardText {
            // No argument can have this title: a name with a space stands in quotation marks.
            title: language.all_arguments(),
            text: shown_value(arguments),
        }];
    };
    let mut names: Vec<&str> = Vec::with_capacity(map.len());
    for name in order {
        if map.contains_key(name) && !names.contains(&name) {
            names.push(name);
        }
    }
    let mut others: Vec<&str> = map.keys().map(String::as_str).collect();
    others.retain(|name| !names.contains(name));
    others.sort_unstable();
    names.extend(others);
    let texts = names.into_iter().map(|name| CardText {
        title: shown_name(name),
        text: shown_value(&map[name]),
    });
    texts.collect()
}

/// A value as it will run.
#[must_use]
pub fn shown_value(value: &Value) -> String {
    let mut out = String::new();
    push_value(&mut out, value, 0);
    out
}

/// A name with a clear end: short ones of letters, digits, `_`, `-` and `.` as they are, others in quotation marks.
fn shown_name(name: &str) -> String {
    let is_short = (1..=64).contains(&name.len());
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if is_short && name.chars().all(is_word) {
        return name.to_owned();
    }
    let mut out = String::new();
    push_quoted(&mut out, name, LineEnds::Written);
    out
}

fn push_value(out: &mut String, value: &Value, level: usize) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        Value::String(text) => push_quoted(out, text, LineEnds::Kept),
        Value::Array(list) => {
            let items = list.iter().map(|item| (None, item));
            push_items(out, ['[', ']'], items, level);
        }
        Value::Object(map) => {
            let items = map.iter().map(|(name, item)| (Some(name.as_str()), item));
            push_items(out, ['{', '}'], items, level);
        }
    }
}

fn push_items<'a>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl Iterator<Item = (Option<&'a str>, &'a Value)> + Clone,
    level: usize,
) {
    let is_plain = |value: &Value| !value.is_array() && !value.is_object();
    if items.clone().all(|(_, value)| is_plain(value)) {
        let mut line = String::new();
        for (n, item) in items.clone().enumerate() {
            line.push_str(if n == 0 { "" } else { ", " });
            push_item(&mut line, item, level);
            if line.len() > LINE_MAX_CHARS * 4 {
                break;
            }
        }
        if line.chars().count() <= LINE_MAX_CHARS && !line.contains('\n') {
            out.push(open);
            out.push_str(&line);
            out.push(close);
            return;
        }
    }
    out.push(open);
    for (n, item) in items.enumerate() {
        out.push_str(if n == 0 { "\n" } else { ",\n" });
        out.push_str(&INDENT.repeat(level + 1));
        push_item(out, item, level + 1);
    }
    out.push('\n');
    out.push_str(&INDENT.repeat(level));
    out.push(close);
}

fn push_item(out: &mut String, (name, value): (Option<&str>, &Value), level: usize) {
    if let Some(name) = name {
        push_quoted(out, name, LineEnds::Written);
        out.push_str(": ");
    }
    push_value(out, value, level);
}

/// A card that fits one post, and whether it shows all of the call.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedCard {
    /// The post.
    pub part: Part,
    /// Whether all texts are there. Only then it has the buttons of a whole card.
    pub is_whole: bool,
}

/// The buttons of a card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardButtons {
    /// Where it shows all of the call.
    pub whole: Vec<CardButton>,
    /// Where it does not: none of them allows the call.
    pub cut: Vec<CardButton>,
}

/// Makes one post of a card and the texts that are to stand in it. Where they don't fit, or the platform would change
/// them, it shows the beginning of the first ones, says how much is missing, and has the buttons of a cut card.
///
/// # Errors
/// The [`CardMisfit`] of the card without any text.
pub fn fitted_card(
    card: &Card,
    texts: &[CardText],
    buttons: &CardButtons,
    language: Language,
    render: &dyn Fn(&Card) -> Result<Part, CardMisfit>,
) -> Result<FittedCard, CardMisfit> {
    let length = |text: &CardText| text.title.chars().count() + text.text.chars().count();
    let chars: usize = texts.iter().map(length).sum();
    if chars <= WHOLE_MAX_CHARS {
        let whole = Card {
            texts: texts.to_vec(),
            buttons: buttons.whole.clone(),
            ..card.clone()
        };
        if let Ok(part) = render(&whole) {
            let is_whole = true;
            return Ok(FittedCard { part, is_whole });
        }
    }
    let mut misfit = CardMisfit::TooLong;
    for shown_max in CUT_CHARS {
        let shown = beginnings(texts, shown_max);
        let left_out = chars - shown.iter().map(|(_, count)| count).sum::<usize>();
        let mut cut = Card {
            texts: shown.into_iter().map(|(text, _)| text).collect(),
            buttons: buttons.cut.clone(),
            ..card.clone()
        };
        cut.facts.push(CardFact {
            label: language.card_not_whole(),
            value: language.card_left_out(left_out, chars),
        });
        match render(&cut) {
            Ok(part) => {
                let is_whole = false;
                return Ok(FittedCard { part, is_whole });
            }
            Err(error) => misfit = error,
        }
    }
    Err(misfit)
}

/// The beginnings of the first texts, and how many characters of each are shown.
fn beginnings(texts: &[CardText], shown_max: usize) -> Vec<(CardText, usize)> {
    let mut left = shown_max;
    let mut shown = Vec::new();
    for text in texts.iter().take(CUT_TEXTS_MAX) {
        let title_chars = text.title.chars().count();
        if left <= title_chars + 1 {
            break;
        }
        left -= title_chars;
        let is_whole = text.text.chars().count() <= left;
        let beginning: String = match is_whole {
            true => text.text.clone(),
            false => text.text.chars().take(left - 1).collect(),
        };
        let count = beginning.chars().count();
        left -= count;
        let end = if is_whole { "" } else { "…" };
        let text = CardText {
            title: text.title.clone(),
            text: format!("{}{end}", beginning.trim_start()),
        };
        shown.push((text, title_chars + count));
        if !is_whole {
            break;
        }
    }
    shown
}

#[cfg(test)]
mod tests;
