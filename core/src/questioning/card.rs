//! What people see of a question, and of what became of it.

use vocative_contract::card::{ButtonStyle, Card, CardButton, CardFact, CardMisfit, CardText};
use vocative_contract::markup::neutral_text;
use vocative_contract::outbound::Part;

use crate::approving::{utc, visible_line};
use crate::ids::QuestionId;
use crate::questioning::QuestionButton;
use crate::words::Language;

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
    /// In which language the card speaks.
    pub language: Language,
}

/// The card of a question that waits.
#[must_use]
pub fn question_card(question: &QuestionCard<'_>) -> Card {
    let language = question.language;
    let how = match question.options.is_empty() {
        true => language.how_by_reply(),
        false => language.how_by_button(),
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
        heading: language.question_for(visible_line(question.asked)),
        facts: vec![
            fact(language.fact_how(), &how),
            fact(language.fact_until(), &utc(question.expires_at_ms)),
        ],
        texts: vec![text_of(question)],
        buttons: question.options.iter().enumerate().map(button).collect(),
    }
}

/// What takes the place of a question that was answered.
#[must_use]
pub fn answered_card(question: &QuestionCard<'_>, by: Option<&str>, answer: Option<&str>) -> Card {
    let language = question.language;
    let by = fact(language.fact_answered_by(), by.unwrap_or(question.asked));
    let answer = answer.map(|answer| fact(language.fact_answer(), answer));
    let facts = [by].into_iter().chain(answer).collect();
    over(question, &language.state_answered(), facts)
}

/// What takes the place of a question that nobody answered in time.
#[must_use]
pub fn expired_card(question: &QuestionCard<'_>) -> Card {
    let language = question.language;
    let state = language.state_expired();
    let fact = fact(state.clone(), &language.nobody_answered());
    over(question, &state, vec![fact])
}

/// What takes the place of a question that was taken back.
#[must_use]
pub fn cancelled_card(question: &QuestionCard<'_>) -> Card {
    let language = question.language;
    let state = language.state_cancelled();
    let fact = fact(state.clone(), &language.no_answer_needed());
    Card {
        // The question is not repeated: the words that it was made of may have been deleted.
        texts: Vec::new(),
        ..over(question, &state, vec![fact])
    }
}

fn over(question: &QuestionCard<'_>, state: &str, facts: Vec<CardFact>) -> Card {
    let asked = visible_line(question.asked);
    Card {
        heading: question.language.question_over(state, asked),
        facts,
        texts: vec![text_of(question)],
        buttons: Vec::new(),
    }
}

/// A question as a text of a card: as it was written, without what no platform shows.
fn text_of(question: &QuestionCard<'_>) -> CardText {
    let text = neutral_text(question.text);
    let shown = text
        .trim()
        .chars()
        .filter(|c| *c == '\n' || !c.is_control());
    CardText {
        title: question.language.question_title(),
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

fn fact(label: String, value: &str) -> CardFact {
    CardFact {
        label,
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
            language: Language::English,
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
        let german = QuestionCard {
            language: Language::German,
            ..question
        };
        insta::assert_snapshot!(words(&question_card(&german)), @r"
        Eine Frage an Ann
        Which colour,
        for the door?
        - Blue
        - Red
        Wie: über einen Knopf oder durch eine Antwort auf diesen Beitrag
        Bis: 2023-11-14 22:13 UTC
        ");
        insta::assert_snapshot!(words(&answered_card(&german, Some("Ann B"), Some("Blue"))), @r"
        Beantwortet: eine Frage an Ann
        Which colour,
        for the door?
        Beantwortet von: Ann B
        Antwort: Blue
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
            language: Language::English,
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
