//! What people see of a question, and of what became of it.

use vocative_contract::card::{ButtonStyle, Card, CardButton, CardFact, CardMisfit, CardText};
use vocative_contract::markup::neutral_text;
use vocative_contract::outbound::Part;

use crate::approving::{utc, visible_line};
use crate::ids::QuestionId;
use crate::questioning::QuestionButton;

/// A question that people are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestionCard<'a> {
    /// Which question.
    pub id: QuestionId,
    /// What is asked.
    pub text: &'a str,
    /// The answers that it offers; empty = any answer.
    pub options: &'a [String],
    /// Whom it asks, as people read it.
    pub asked: &'a str,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expires_at_ms: i64,
}

/// The card of a question that waits.
#[must_use]
pub fn question_card(question: &QuestionCard<'_>) -> Card {
    let how = match question.options.is_empty() {
        true => "by a reply to this post",
        false => "by a button, or by a reply to this post",
    };
    let button = |(option, label): (usize, &String)| CardButton {
        data: QuestionButton {
            question: question.id,
            option,
        }
        .data(),
        label: visible_line(label),
        style: ButtonStyle::Plain,
    };
    Card {
        heading: format!("A question for {}", visible_line(question.asked)),
        facts: vec![
            fact("How", how),
            fact("Until", &utc(question.expires_at_ms)),
        ],
        texts: vec![text_of(question.text)],
        buttons: question.options.iter().enumerate().map(button).collect(),
    }
}

/// What takes the place of a question that was answered.
#[must_use]
pub fn answered_card(question: &QuestionCard<'_>, by: Option<&str>, answer: Option<&str>) -> Card {
    let by = fact("Answered by", by.unwrap_or(question.asked));
    let answer = answer.map(|answer| fact("Answer", answer));
    over(
        question,
        "Answered",
        [by].into_iter().chain(answer).collect(),
    )
}

/// What takes the place of a question that nobody answered in time.
#[must_use]
pub fn expired_card(question: &QuestionCard<'_>) -> Card {
    over(
        question,
        "Expired",
        vec![fact("Expired", "nobody answered in time")],
    )
}

/// What takes the place of a question that was taken back.
#[must_use]
pub fn cancelled_card(question: &QuestionCard<'_>) -> Card {
    let fact = fact("Cancelled", "no answer is needed any more");
    Card {
        // What it was asked for may be gone with the words that it was made of.
        texts: Vec::new(),
        ..over(question, "Cancelled", vec![fact])
    }
}

fn over(question: &QuestionCard<'_>, word: &str, facts: Vec<CardFact>) -> Card {
    Card {
        heading: format!("{word}: a question for {}", visible_line(question.asked)),
        facts,
        texts: vec![text_of(question.text)],
        buttons: Vec::new(),
    }
}

/// A question as a text of a card: as it was written, without what no platform shows.
fn text_of(text: &str) -> CardText {
    let text = neutral_text(text);
    let shown = text
        .trim()
        .chars()
        .filter(|c| *c == '\n' || !c.is_control());
    CardText {
        title: "Question".to_owned(),
        text: shown.collect(),
    }
}

/// The part of a card: as it is, else with every unusual character written by its number, else its words alone, which
/// can be answered by a reply.
pub fn fitted_question(card: &Card, render: &dyn Fn(&Card) -> Result<Part, CardMisfit>) -> Part {
    let plainer = Card {
        texts: card
            .texts
            .iter()
            .map(|text| CardText {
                title: text.title.clone(),
                text: text
                    .text
                    .lines()
                    .map(visible_line)
                    .collect::<Vec<_>>()
                    .join("\n"),
            })
            .collect(),
        ..card.clone()
    };
    let words = || {
        let facts = plainer.facts.iter();
        let facts = facts.map(|fact| format!("{}: {}", fact.label, fact.value));
        let texts = plainer.texts.iter().map(|text| text.text.clone());
        let options = plainer.buttons.iter().map(|it| format!("- {}", it.label));
        let lines = [plainer.heading.clone()].into_iter().chain(texts);
        let lines: Vec<String> = lines.chain(options).chain(facts).collect();
        Part::plain(lines.join("\n"))
    };
    render(card)
        .or_else(|_| render(&plainer))
        .unwrap_or_else(|_| words())
}

fn fact(label: &str, value: &str) -> CardFact {
    CardFact {
        label: label.to_owned(),
        value: visible_line(value),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn words(card: &Card) -> String {
        fitted_question(card, &|_| Err(CardMisfit::TooLong)).text
    }

    #[test]
    fn a_question_says_whom_it_asks_and_what_became_of_it() {
        let options = ["Blue".to_owned(), "Red".to_owned()];
        let question = QuestionCard {
            id: "0198c5de-1234-7abc-8def-0123456789ab".parse().unwrap(),
            text: "Which\u{7} colour,\nfor the \u{FFF9}door?",
            options: &options,
            asked: "Ann",
            expires_at_ms: 1_700_000_000_000,
        };
        let card = question_card(&question);
        let labels: Vec<&str> = card.buttons.iter().map(|it| it.label.as_str()).collect();
        assert_eq!(labels, ["Blue", "Red"]);
        card.check_buttons().unwrap();
        insta::assert_snapshot!(words(&card), @r"
        A question for Ann
        Which colour,
        for the door?
        - Blue
        - Red
        How: by a button, or by a reply to this post
        Until: 2023-11-14 22:13 UTC
        ");
        insta::assert_snapshot!(words(&answered_card(&question, Some("Ann B"), Some("Blue"))), @r"
        Answered: a question for Ann
        Which colour,
        for the door?
        Answered by: Ann B
        Answer: Blue
        ");
        insta::assert_snapshot!(words(&expired_card(&question)), @r"
        Expired: a question for Ann
        Which colour,
        for the door?
        Expired: nobody answered in time
        ");
        insta::assert_snapshot!(words(&cancelled_card(&question)), @r"
        Cancelled: a question for Ann
        Cancelled: no answer is needed any more
        ");
    }

    #[test]
    fn what_a_platform_would_change_is_written_by_its_number() {
        let question = QuestionCard {
            id: "0198c5de-1234-7abc-8def-0123456789ab".parse().unwrap(),
            text: "a\u{200b}b",
            options: &[],
            asked: "Ann",
            expires_at_ms: 0,
        };
        let part = fitted_question(&question_card(&question), &|card| {
            let text = card.texts[0].text.clone();
            match text.is_ascii() {
                true => Ok(Part::plain(text)),
                false => Err(CardMisfit::Altered),
            }
        });
        assert_eq!(part.text, r"a\u{200B}b");
    }
}
