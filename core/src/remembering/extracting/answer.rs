//! Which entries of a model's answer count: each is judged by itself against the lines that the model was shown.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ANSWER_MAX_BYTES, EXTRACTED_MAX, EXTRACTED_MAX_CHARS, KNOWN_MAX, SpokenLine};
use crate::ids::ParticipantId;
use crate::prompting::clean_name;
use crate::remembering::{MemoryKind, MemoryRef, StoredMemory, checked_text};
use crate::run::Finish;
use crate::search::language::Languages;
use crate::search::stems::{stems_of, stems_of_word};
use crate::search::text::words;
use crate::words::Language;

/// Words by which a text tells a model what to do. A second net: a text that passes is still only somebody's word,
/// shown as a note that is no instruction.
const ORDERS: [&str; 16] = [
    "ignore previous",
    "ignore all",
    "ignore the",
    "ignore your",
    "disregard",
    "system prompt",
    "your instructions",
    "new instructions",
    "you must",
    "you are now",
    "always obey",
    "pretend",
    "do not tell",
    "don't tell",
    "<|",
    "[inst",
];

/// Why nothing of an answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerFault {
    /// It ended at the limit of its tokens.
    #[error("the answer was cut; raise the model's `max_output_tokens`")]
    Cut,
    /// The provider's filter ended it.
    #[error("the provider's filter stopped the answer")]
    Filtered,
    /// It is not the structure that was asked for.
    #[error("the answer is not the JSON object that was asked for")]
    NoJson,
    /// It is longer than [`ANSWER_MAX_BYTES`].
    #[error("the answer is longer than {ANSWER_MAX_BYTES} bytes")]
    TooLong,
}

/// Why an entry of an answer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryFault {
    /// It comes after the last entry that is looked at.
    TooMany,
    /// It is not of the form that was asked for.
    Malformed,
    /// Its text is empty or too long.
    Text,
    /// It cites no line, or one that was not shown.
    NoLine,
    /// Its lines are of several people.
    SeveralSpeakers,
    /// Its lines do not say it.
    NotSaid,
    /// It tells a model what to do.
    Order,
    /// It is about somebody who said none of the lines.
    NobodyOfThatName,
    /// It says what a note says already.
    Known,
}

impl EntryFault {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::TooMany,
        Self::Malformed,
        Self::Text,
        Self::NoLine,
        Self::SeveralSpeakers,
        Self::NotSaid,
        Self::Order,
        Self::NobodyOfThatName,
        Self::Known,
    ];

    /// Its name in logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TooMany => "too many",
            Self::Malformed => "malformed",
            Self::Text => "empty or too long",
            Self::NoLine => "cites no line",
            Self::SeveralSpeakers => "several speakers",
            Self::NotSaid => "not said in its lines",
            Self::Order => "an instruction",
            Self::NobodyOfThatName => "about nobody who spoke",
            Self::Known => "known already",
        }
    }
}

/// An entry that may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadEntry {
    /// What is remembered.
    pub text: String,
    /// What kind: never a core note.
    pub kind: MemoryKind,
    /// Whom it is about; `None` = the room.
    pub about: Option<ParticipantId>,
    /// Who said it.
    pub teller: ParticipantId,
    /// The lines that say so, by their places, the oldest first.
    pub lines: Vec<usize>,
    /// The note whose place it takes, as the model was shown it.
    pub replaces: Option<MemoryRef>,
}

/// What was read of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadAnswer {
    /// In the answer's order.
    pub entries: Vec<ReadEntry>,
    /// Why the others are refused.
    pub refused: Vec<EntryFault>,
}

/// Reads what a model answered about these lines and notes.
///
/// # Errors
/// Nothing of it can be read.
pub fn read_answer(
    answer: &str,
    finish: Finish,
    lines: &[SpokenLine],
    known: &[StoredMemory],
) -> Result<ReadAnswer, AnswerFault> {
    match finish {
        Finish::Length => return Err(AnswerFault::Cut),
        Finish::ContentFilter => return Err(AnswerFault::Filtered),
        Finish::Stop | Finish::Other => {}
    }
    if answer.len() > ANSWER_MAX_BYTES {
        return Err(AnswerFault::TooLong);
    }
    let value: Value = object_in(answer).ok_or(AnswerFault::NoJson)?;
    let found = value.get("entries").and_then(Value::as_array);
    let found = found.ok_or(AnswerFault::NoJson)?;
    let shown = ShownLines { lines, known };
    let mut read = ReadAnswer::default();
    for (n, entry) in found.iter().enumerate() {
        let judged = match n < EXTRACTED_MAX {
            true => shown.judged(entry, &read.entries),
            false => Err(EntryFault::TooMany),
        };
        match judged {
            Ok(entry) => read.entries.push(entry),
            Err(fault) => read.refused.push(fault),
        }
    }
    Ok(read)
}

/// The object in an answer, also where words or a fence stand around it.
fn object_in(answer: &str) -> Option<Value> {
    let (from, to) = (answer.find('{')?, answer.rfind('}')?);
    serde_json::from_str(answer.get(from..=to)?).ok()
}

/// What the model was shown.
#[derive(Clone, Copy)]
struct ShownLines<'a> {
    lines: &'a [SpokenLine],
    known: &'a [StoredMemory],
}

impl ShownLines<'_> {
    fn judged(self, entry: &Value, before: &[ReadEntry]) -> Result<ReadEntry, EntryFault> {
        let text = entry.get("text").and_then(Value::as_str);
        let text = text.ok_or(EntryFault::Malformed)?;
        let text: Vec<&str> = text.split_whitespace().collect();
        let text =
            checked_text(&text.join(" "), Language::English).map_err(|_| EntryFault::Text)?;
        if text.chars().count() > EXTRACTED_MAX_CHARS {
            return Err(EntryFault::Text);
        }
        let lines = self.cited(entry)?;
        let first = &self.lines[lines[0]];
        if lines
            .iter()
            .any(|n| self.lines[*n].said_by != first.said_by)
        {
            return Err(EntryFault::SeveralSpeakers);
        }
        let about = self.about(entry, first)?;
        let lower = text.to_lowercase();
        if ORDERS.iter().any(|order| lower.contains(order)) {
            return Err(EntryFault::Order);
        }
        if !self.is_said(&text, &lines) {
            return Err(EntryFault::NotSaid);
        }
        let kind = match entry.get("kind").and_then(Value::as_str) {
            // A preference of another person is only what the speaker says of them: a fact.
            Some("preference") if about == Some(first.said_by) => MemoryKind::Preference,
            _ => MemoryKind::Fact,
        };
        let read = ReadEntry {
            replaces: self.replaced(entry),
            teller: first.said_by,
            text,
            kind,
            about,
            lines,
        };
        match self.is_known(&read) || before.iter().any(|it| says_same(it, &read)) {
            true => Err(EntryFault::Known),
            false => Ok(read),
        }
    }

    /// The places of the lines that an entry cites, each once.
    fn cited(self, entry: &Value) -> Result<Vec<usize>, EntryFault> {
        let cited = entry.get("lines").and_then(Value::as_array);
        let cited = cited.ok_or(EntryFault::Malformed)?;
        let mut places = BTreeSet::new();
        for number in cited.iter().take(self.lines.len() + 1) {
            let number = number.as_u64().ok_or(EntryFault::Malformed)?;
            let place = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
            let place = place.filter(|place| *place < self.lines.len());
            places.insert(place.ok_or(EntryFault::NoLine)?);
        }
        match places.is_empty() {
            true => Err(EntryFault::NoLine),
            false => Ok(places.into_iter().collect()),
        }
    }

    fn about(
        self,
        entry: &Value,
        speaker: &SpokenLine,
    ) -> Result<Option<ParticipantId>, EntryFault> {
        let about = match entry.get("about") {
            None | Some(Value::Null) => return Ok(Some(speaker.said_by)),
            Some(about) => about.as_str().ok_or(EntryFault::Malformed)?.trim(),
        };
        match about.to_lowercase().as_str() {
            "" | "speaker" | "me" => return Ok(Some(speaker.said_by)),
            "room" => return Ok(None),
            _ => {}
        }
        let named =
            |line: &&SpokenLine| clean_name(&line.name).to_lowercase() == about.to_lowercase();
        let people: BTreeSet<ParticipantId> = self
            .lines
            .iter()
            .filter(named)
            .map(|it| it.said_by)
            .collect();
        match people.len() {
            1 => Ok(people.first().copied()),
            // Two people of one name are not told apart.
            _ => Err(EntryFault::NobodyOfThatName),
        }
    }

    /// The note that an entry takes the place of. A number that was not shown replaces nothing.
    fn replaced(self, entry: &Value) -> Option<MemoryRef> {
        let number = entry.get("replaces").and_then(Value::as_u64)?;
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        self.known.iter().take(KNOWN_MAX).nth(place).map(|it| it.at)
    }

    /// Whether the cited lines say what an entry says: half of its telling words stand there, and all of its numbers
    /// and links. Names of who spoke, and days as they are asked for, may be added.
    fn is_said(self, text: &str, lines: &[usize]) -> bool {
        let said: Vec<&str> = lines.iter().map(|n| self.lines[*n].text.as_str()).collect();
        let said = said.join("\n");
        let without_days = without_days(text);
        let has_all = |mut found: Vec<String>| {
            found.retain(|it| !said.to_lowercase().contains(&it.to_lowercase()));
            found.is_empty()
        };
        if !has_all(numbers_of(&without_days)) || !has_all(links_of(&without_days)) {
            return false;
        }
        let names: Vec<String> = self.lines.iter().map(|it| clean_name(&it.name)).collect();
        let names = stems_of(&names.join("\n"));
        let spoken = stems_of(&said);
        let all = words(&without_days);
        let languages = Languages::of(&all);
        let telling = all.iter().filter(|word| !languages.is_grammar(&word.plain));
        let (mut there, mut added) = (0_usize, 0_usize);
        for word in telling {
            let forms = stems_of_word(word, Languages::all());
            if forms.iter().any(|form| spoken.contains(form)) {
                there += 1;
            } else if !forms.iter().any(|form| names.contains(form)) {
                added += 1;
            }
        }
        there > 0 && there >= added
    }

    /// Whether a note of the same person about the same says the same words, whatever their order.
    fn is_known(self, read: &ReadEntry) -> bool {
        let stems = stems_of(&read.text);
        self.known.iter().any(|it| {
            it.teller.row == read.teller
                && it.subject.as_ref().map(|it| it.row) == read.about
                && Some(it.at) != read.replaces
                && stems_of(&it.text) == stems
        })
    }
}

fn says_same(one: &ReadEntry, other: &ReadEntry) -> bool {
    one.teller == other.teller
        && one.about == other.about
        && stems_of(&one.text) == stems_of(&other.text)
}

/// A text without days like 2026-11-30.
fn without_days(text: &str) -> String {
    let is_day = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_digit());
        let parts: Vec<&str> = word.split('-').collect();
        let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        parts.len() == 3 && parts[0].len() == 4 && parts.iter().all(is_number)
    };
    let kept: Vec<&str> = text
        .split_whitespace()
        .filter(|word| !is_day(word))
        .collect();
    kept.join(" ")
}

/// Runs of digits.
fn numbers_of(text: &str) -> Vec<String> {
    let runs = text.split(|c: char| !c.is_numeric());
    runs.filter(|run| !run.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Words that lead somewhere: addresses of pages and of mail.
fn links_of(text: &str) -> Vec<String> {
    let words = text.split_whitespace();
    let words = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let leads =
        |word: &&str| word.contains("://") || word.contains('@') || word.starts_with("www.");
    words.filter(leads).map(str::to_owned).collect()
}
