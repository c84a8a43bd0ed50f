//! Rooms with facts in them that were said once, and questions about those facts. The facts are templates in
//! `facts.json`; names, places and numbers are drawn from a seed, so that no answer can be tuned for.

use std::collections::BTreeMap;

use serde::Deserialize;
use vocative::cli::CliError;

use super::failed;
use crate::dice::SeededDice;

const FACTS: &str = include_str!("facts.json");

/// How many of a thousand lines of noise are about a planted fact's own subject and share its words.
const NEAR_PER_MILLE: u64 = 400;

#[derive(Deserialize)]
struct Templates {
    places: Vec<String>,
    people: Vec<String>,
    systems: Vec<String>,
    customers: Vec<String>,
    chatter: Vec<String>,
    facts: Vec<FactTemplate>,
    joined: Vec<LinesTemplate>,
    corrected: Vec<LinesTemplate>,
}

#[derive(Deserialize)]
struct FactTemplate {
    language: String,
    line: String,
    keywords: Vec<String>,
    question: String,
    foreign: String,
    noise: Vec<String>,
}

#[derive(Deserialize)]
struct LinesTemplate {
    lines: [String; 2],
    keywords: Vec<String>,
    question: String,
}

/// The form of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WordingKind {
    /// The words that a model would search for.
    Keywords,
    /// As a person asks.
    Question,
    /// Three wordings at once.
    Wordings,
    /// In another language than the line.
    Foreign,
    /// One word is misspelt.
    Typo,
    /// Two lines are needed.
    Joined,
    /// A later line corrects the first: it alone counts.
    Corrected,
    /// The answer was never said.
    Unsaid,
}

impl WordingKind {
    pub(super) const ALL: [Self; 8] = [
        Self::Keywords,
        Self::Question,
        Self::Wordings,
        Self::Foreign,
        Self::Typo,
        Self::Joined,
        Self::Corrected,
        Self::Unsaid,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Keywords => "keywords",
            Self::Question => "question",
            Self::Wordings => "three wordings",
            Self::Foreign => "other language",
            Self::Typo => "misspelt",
            Self::Joined => "two facts",
            Self::Corrected => "corrected later",
            Self::Unsaid => "never said",
        }
    }
}

/// A question about a room.
pub(super) struct RecallQuestion {
    pub(super) kind: WordingKind,
    /// What is searched for, all at once.
    pub(super) wordings: Vec<String>,
    /// The lines that answer it, as indexes into the room; all are needed.
    pub(super) answers: Vec<usize>,
}

/// A line of a room.
pub(super) struct RecallLine {
    pub(super) speaker: String,
    pub(super) text: String,
}

/// A room, and what is asked about it.
pub(super) struct RecallRoom {
    pub(super) lines: Vec<RecallLine>,
    pub(super) questions: Vec<RecallQuestion>,
}

/// What a template's words in braces stand for.
type Filling = BTreeMap<&'static str, String>;

/// Lines that belong to one subject, in their order, and the questions about them.
struct RecallSubject {
    lines: Vec<String>,
    questions: Vec<(WordingKind, Vec<String>)>,
    noise: Vec<String>,
    /// The words that half of its noise is filled with.
    filling: Filling,
}

impl RecallRoom {
    /// Draws a room of that many lines.
    ///
    /// # Errors
    /// The templates don't parse.
    pub(super) fn draw(lines: usize, seed: u64) -> Result<Self, CliError> {
        let templates: Templates = serde_json::from_str(FACTS)
            .map_err(|cause| failed(format!("lab/src/recall/facts.json: {cause}")))?;
        let mut dice = SeededDice::of(seed, "recall");
        let subjects = templates.subjects(&mut dice);
        let mut planted = places(&subjects, lines, &mut dice);
        let mut room = Self {
            lines: Vec::with_capacity(lines),
            questions: Vec::new(),
        };
        let mut said: Vec<Vec<usize>> = subjects.iter().map(|_| Vec::new()).collect();
        for place in 0..lines {
            let text = match planted.remove(&place) {
                Some(subject) => {
                    let of_subject = &mut said[subject];
                    of_subject.push(place);
                    subjects[subject].lines[of_subject.len() - 1].clone()
                }
                None => templates.noise(&subjects, &mut dice),
            };
            let speaker = drawn(&templates.people, &mut dice);
            room.lines.push(RecallLine { speaker, text });
        }
        for (subject, said) in subjects.into_iter().zip(said) {
            for (kind, wordings) in subject.questions {
                let answers = match kind {
                    WordingKind::Unsaid => Vec::new(),
                    WordingKind::Corrected => said[said.len() - 1..].to_vec(),
                    _ => said.clone(),
                };
                room.questions.push(RecallQuestion {
                    kind,
                    wordings,
                    answers,
                });
            }
        }
        Ok(room)
    }
}

impl Templates {
    fn subjects(&self, dice: &mut SeededDice) -> Vec<RecallSubject> {
        let mut subjects = Vec::new();
        for fact in &self.facts {
            subjects.push(self.fact(fact, dice));
        }
        for joined in &self.joined {
            subjects.push(self.two_lines(joined, WordingKind::Joined, dice));
        }
        for corrected in &self.corrected {
            subjects.push(self.two_lines(corrected, WordingKind::Corrected, dice));
        }
        subjects
    }

    fn fact(&self, fact: &FactTemplate, dice: &mut SeededDice) -> RecallSubject {
        let filling = self.filling(dice);
        let mut other = self.filling(dice);
        // The questions whose answer was never said are about another place, person, system and customer.
        for (list, key) in self.lists() {
            while other[key] == filling[key] {
                other.insert(key, drawn(list, dice));
            }
        }
        let fill = |text: &String| filled(text, &filling);
        let wordings: Vec<String> = fact.keywords.iter().map(fill).collect();
        let misspelt = misspelt(&wordings[0], &fact.language, dice);
        RecallSubject {
            lines: vec![fill(&fact.line)],
            questions: vec![
                (WordingKind::Keywords, wordings[..1].to_vec()),
                (WordingKind::Question, vec![fill(&fact.question)]),
                (WordingKind::Wordings, wordings),
                (WordingKind::Foreign, vec![fill(&fact.foreign)]),
                (WordingKind::Typo, vec![misspelt]),
                (WordingKind::Unsaid, vec![filled(&fact.question, &other)]),
            ],
            noise: fact.noise.clone(),
            filling,
        }
    }

    fn two_lines(
        &self,
        template: &LinesTemplate,
        kind: WordingKind,
        dice: &mut SeededDice,
    ) -> RecallSubject {
        let filling = self.filling(dice);
        let fill = |text: &String| filled(text, &filling);
        RecallSubject {
            lines: template.lines.iter().map(fill).collect(),
            questions: vec![
                (kind, template.keywords[..1].iter().map(fill).collect()),
                (kind, vec![fill(&template.question)]),
            ],
            noise: Vec::new(),
            filling,
        }
    }

    fn lists(&self) -> [(&[String], &'static str); 4] {
        [
            (&self.places, "place"),
            (&self.people, "person"),
            (&self.systems, "system"),
            (&self.customers, "customer"),
        ]
    }

    fn filling(&self, dice: &mut SeededDice) -> Filling {
        const COLOURS: [&str; 8] = [
            "blue", "amber", "violet", "silver", "coral", "olive", "ivory", "teal",
        ];
        const ANIMALS: [&str; 8] = [
            "otter", "heron", "lynx", "badger", "falcon", "marten", "ibis", "moose",
        ];
        const MONTHS: [&str; 6] = ["March", "April", "May", "September", "October", "November"];
        let code = format!(
            "{}-{}-{}",
            COLOURS[dice.place(COLOURS.len())],
            ANIMALS[dice.place(ANIMALS.len())],
            10 + dice.below(90)
        );
        let mut filling = Filling::from([
            ("code", code),
            (
                "phone",
                format!(
                    "+47 {} {}",
                    100 + dice.below(900),
                    1_000 + dice.below(9_000)
                ),
            ),
        ]);
        for (list, key) in self.lists() {
            filling.insert(key, drawn(list, dice));
        }
        filling.insert("person2", drawn(&self.people, dice));
        for key in ["number", "number2"] {
            filling.insert(key, (20 + dice.below(980)).to_string());
        }
        for key in ["date", "date2"] {
            filling.insert(
                key,
                format!(
                    "{} {}",
                    MONTHS[dice.place(MONTHS.len())],
                    1 + dice.below(28)
                ),
            );
        }
        filling
    }

    /// A line that answers no question: with a subject's own words, or about anything.
    fn noise(&self, subjects: &[RecallSubject], dice: &mut SeededDice) -> String {
        let subject = &subjects[dice.place(subjects.len())];
        if dice.hits(NEAR_PER_MILLE) && !subject.noise.is_empty() {
            let template = drawn(&subject.noise, dice);
            if dice.hits(500) {
                return filled(&template, &subject.filling);
            }
            return filled(&template, &self.filling(dice));
        }
        let template = drawn(&self.chatter, dice);
        filled(&template, &self.filling(dice))
    }
}

/// Where in the room each subject's lines stand.
fn places(
    subjects: &[RecallSubject],
    lines: usize,
    dice: &mut SeededDice,
) -> BTreeMap<usize, usize> {
    let mut planted = BTreeMap::new();
    for (number, subject) in subjects.iter().enumerate() {
        for _ in &subject.lines {
            let mut place = dice.place(lines);
            while planted.contains_key(&place) {
                place = dice.place(lines);
            }
            planted.insert(place, number);
        }
    }
    planted
}

fn drawn(list: &[String], dice: &mut SeededDice) -> String {
    list[dice.place(list.len())].clone()
}

fn filled(template: &str, filling: &Filling) -> String {
    let mut text = template.to_owned();
    for (key, value) in filling {
        text = text.replace(&format!("{{{key}}}"), value);
    }
    text
}

/// The query with two neighbouring letters of its longest word exchanged; one letter left out where the two are
/// the same, and in a language that is written without spaces nothing is changed.
fn misspelt(query: &str, language: &str, dice: &mut SeededDice) -> String {
    let longest = query.split(' ').max_by_key(|word| word.chars().count());
    let Some(word) = longest.filter(|word| language != "ja" && word.chars().count() > 3) else {
        return query.to_owned();
    };
    let mut letters: Vec<char> = word.chars().collect();
    let at = 1 + dice.place(letters.len() - 2);
    if letters[at] == letters[at + 1] {
        letters.remove(at);
    } else {
        letters.swap(at, at + 1);
    }
    query.replacen(word, &letters.into_iter().collect::<String>(), 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_room_holds_its_facts_once_and_asks_two_hundred_questions() {
        let room = RecallRoom::draw(2_000, 7).unwrap();
        assert_eq!(room.lines.len(), 2_000);
        assert!(room.questions.len() >= 200, "{}", room.questions.len());
        for question in &room.questions {
            for answer in &question.answers {
                let text = &room.lines[*answer].text;
                let times = room.lines.iter().filter(|line| line.text == *text).count();
                assert_eq!(times, 1, "{text}");
            }
            let is_unsaid = question.kind == WordingKind::Unsaid;
            assert_eq!(question.answers.is_empty(), is_unsaid);
        }
        let braces = room.lines.iter().any(|line| line.text.contains('{'));
        assert!(!braces, "a template's word has no value");
    }

    #[test]
    fn the_same_seed_draws_the_same_room() {
        let texts = |seed| {
            let room = RecallRoom::draw(500, seed).unwrap();
            let lines = room.lines.into_iter().map(|line| line.text);
            lines.collect::<Vec<_>>()
        };
        assert_eq!(texts(3), texts(3));
        assert_ne!(texts(3), texts(4));
    }
}
