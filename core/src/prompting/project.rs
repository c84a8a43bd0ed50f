//! How a turn reads in a prompt: roles, speaker labels, mentions and quotes.
//!
//! A label at the start of a message says who speaks, so nobody may be able to write one:
//!
//! * names lose line breaks, control and invisible characters, colons, and the words `(agent)`,
//!   `(overheard)`, `(system)` and `(you)`, and what looks like them or like an id, lose their
//!   brackets; they are cut at [`NAME_MAX_CHARS`];
//! * where a speaker of a snapshot would look like an earlier one, or a person like an agent, the label
//!   carries the platform id;
//! * every line after the first of what people and other agents say is indented by two spaces, so
//!   no line of theirs starts where a label would;
//! * control characters that are no line break or tab stay out of every message.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use vocative_contract::markup::{mentioned_ids, replace_mentions};

use super::{AgentView, FOUND_LABEL, PromptRole};
use crate::history::{History, HistoryRole};
use crate::ids::ParticipantId;
use crate::turn::{Participant, ParticipantKind, Position, Turn};

/// Names longer than this are cut, in characters.
pub const NAME_MAX_CHARS: usize = 64;

const INDENT: &str = "  ";

/// The prefix of a platform id where somebody writes as a chat.
const WRITES_AS_CHAT: &str = "chat:";

/// The speaker's label of what the platform itself says.
const SYSTEM_LABEL: &str = "(system)";

/// Projects the turns of one snapshot for one agent.
pub(super) struct Projector<'a> {
    agent: &'a AgentView,
    names: &'a HashMap<String, String>,
    labels: HashMap<ParticipantId, String>,
}

/// Whether the quoted passage of a reply is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quote {
    Shown,
    LeftOut,
}

impl<'a> Projector<'a> {
    /// Learns who speaks in the snapshot.
    ///
    /// `landmark` is where the history begins at the earliest.
    pub(super) fn new(
        history: &'a History,
        agent: &'a AgentView,
        landmark: Option<Position>,
    ) -> Self {
        Self {
            agent,
            names: &history.names,
            labels: labels(history, agent, landmark),
        }
    }

    /// The message a turn becomes.
    pub(super) fn project(
        &self,
        turn: &Turn,
        role: HistoryRole,
        quote: Quote,
    ) -> (PromptRole, String) {
        let content = self.with_names(&turn.content);
        if self.is_own(turn) {
            return (PromptRole::Assistant, content);
        }
        let overheard = if role == HistoryRole::Ambient {
            "(overheard) "
        } else {
            ""
        };
        let quoted = match (&turn.quote, quote) {
            (Some(passage), Quote::Shown) => quoted(&self.with_names(passage)),
            _ => String::new(),
        };
        let said = indented(&(quoted + &content));
        let label = self.label(&turn.participant);
        (PromptRole::User, format!("{overheard}{label}: {said}"))
    }

    /// The message of a line that was found, of which `excerpt` shows what matters.
    pub(super) fn found(&self, turn: &Turn, excerpt: impl Fn(&str) -> String) -> String {
        let at = DateTime::<Utc>::from_timestamp_millis(turn.said_at_ms);
        let at = at.map_or_else(String::new, |at| at.format("%Y-%m-%d %H:%M").to_string());
        let said = indented(&excerpt(&self.with_names(&turn.content)));
        format!(
            "{FOUND_LABEL}{at}) {}: {said}",
            self.label(&turn.participant)
        )
    }

    /// What [`Self::project`] puts around what a turn says: its label, quoted lines, and the names of
    /// those it mentions. Only for counting.
    pub(super) fn frame(&self, turn: &Turn, role: HistoryRole, quote: Quote) -> String {
        let names: String = mentioned_ids(&turn.content)
            .iter()
            .map(|id| format!(" {}", self.mentioned_name(id)))
            .collect();
        if self.is_own(turn) {
            return names;
        }
        let overheard = if role == HistoryRole::Ambient {
            "(overheard) "
        } else {
            ""
        };
        let quoted = match (&turn.quote, quote) {
            (Some(passage), Quote::Shown) => indented(&quoted(&self.with_names(passage))) + INDENT,
            _ => String::new(),
        };
        let label = self.label(&turn.participant);
        format!("{overheard}{label}: {quoted}{names}")
    }

    /// A turn as a summarising model reads it; `None` if it says nothing.
    pub(super) fn spoken(&self, turn: &Turn) -> Option<String> {
        let content = self.with_names(&turn.content);
        if content.trim().is_empty() {
            return None;
        }
        let label = if self.is_own(turn) {
            format!("{} (you)", clean_name(&self.agent.display_name))
        } else {
            self.label(&turn.participant)
        };
        let passage = turn.quote.as_deref().unwrap_or_default();
        let quoted = if passage.is_empty() {
            String::new()
        } else {
            quoted(&self.with_names(passage))
        };
        Some(format!("{label}: {}", indented(&(quoted + &content))))
    }

    /// Who speaks, as a label reads.
    pub(super) fn label(&self, participant: &Participant) -> String {
        if is_platform(participant) {
            return SYSTEM_LABEL.to_owned();
        }
        self.labels
            .get(&participant.id)
            .cloned()
            .unwrap_or_else(|| match participant.kind {
                ParticipantKind::Agent => format!("{} (agent)", label_name(participant)),
                ParticipantKind::User | ParticipantKind::System => label_name(participant),
            })
    }

    fn is_own(&self, turn: &Turn) -> bool {
        turn.participant.kind == ParticipantKind::Agent
            && turn.participant.platform_id == self.agent.name.as_str()
    }

    fn with_names(&self, text: &str) -> String {
        let text = replace_mentions(text, |id| format!("@{}", self.mentioned_name(id)));
        if text.contains(is_unfit_for_messages) {
            return text.replace(is_unfit_for_messages, "");
        }
        text
    }

    fn mentioned_name(&self, id: &str) -> String {
        let known = if self.agent.platform_ids.iter().any(|own| own == id) {
            Some(&self.agent.display_name)
        } else {
            self.names.get(id)
        };
        known
            .map(|name| clean_name(name))
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| clean_name(id.trim_start_matches('@')))
    }
}

/// Whether the platform speaks. People can have it say things (Slackbot's replies and reminders), so it is
/// quoted as everybody is, and never speaks to the model with the authority of instructions. Somebody who
/// writes as a chat has a name.
fn is_platform(participant: &Participant) -> bool {
    participant.kind == ParticipantKind::System
        && !participant.platform_id.starts_with(WRITES_AS_CHAT)
}

/// A name from a platform on one line: line breaks, control and invisible characters become spaces,
/// runs of spaces become one, and it is cut at [`NAME_MAX_CHARS`].
#[must_use]
pub fn clean_name(name: &str) -> String {
    let visible: String = name
        .chars()
        .map(|c| if is_unfit_for_names(c) { ' ' } else { c })
        .collect();
    let words: Vec<&str> = visible.split_whitespace().collect();
    words.join(" ").chars().take(NAME_MAX_CHARS).collect()
}

/// Whether a character does not show in a name and could hide or reorder what stands beside it.
pub(crate) fn is_unfit_for_names(c: char) -> bool {
    c.is_control()
        || c.is_whitespace()
        || matches!(c,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}'
            | '\u{FFF9}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}')
}

/// Whether the model, or a terminal, could take a character for more than text.
pub(super) fn is_unfit_for_messages(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{0B}' | '\u{0C}' | '\u{85}')
}

/// The label of every speaker but the agent itself; no two look the same.
///
/// Of speakers that look the same, the first keeps the plain name: a label that a prompt had stays when somebody else
/// speaks later. Turns of one run only (overheard, asked) come after those that stay.
fn labels(
    history: &History,
    agent: &AgentView,
    landmark: Option<Position>,
) -> HashMap<ParticipantId, String> {
    let mut read: Vec<_> = history.turns.iter().collect();
    read.sort_by_key(|entry| {
        let rank = match entry.role {
            HistoryRole::Kept
            | HistoryRole::Root
            | HistoryRole::Parent
            | HistoryRole::ThreadAnswer => 0,
            HistoryRole::RepliedTo => 1,
            HistoryRole::Ambient | HistoryRole::Trigger => 2,
            HistoryRole::Recalled => 3,
        };
        let is_before = landmark.is_some_and(|landmark| entry.turn.position < landmark);
        let rank = if is_before { 3 } else { rank };
        (rank, entry.turn.position)
    });
    let own = [agent.display_name.as_str(), agent.name.as_str()].map(without_label_marks);
    let mut looks: HashSet<String> = own.iter().map(|name| look_of(name)).collect();
    let mut looks_of_agents: HashSet<String> = HashSet::new();
    let mut labels: HashMap<ParticipantId, String> = HashMap::new();
    for entry in read {
        let speaker = &entry.turn.participant;
        let is_agent = speaker.kind == ParticipantKind::Agent;
        let is_own = is_agent && speaker.platform_id == agent.name.as_str();
        if is_own || labels.contains_key(&speaker.id) {
            continue;
        }
        let mut label = label_name(speaker);
        // The second round is for a name that reads like another's name with its id.
        for _ in 0..2 {
            let look = look_of(&label);
            // An agent's label tells it from people anyway.
            let is_taken = match is_agent {
                true => looks_of_agents.contains(&look),
                false => looks.contains(&look),
            };
            if is_taken {
                label = format!("{label} ({})", clean_name(&speaker.platform_id));
            }
        }
        looks.insert(look_of(&label));
        if is_agent {
            looks_of_agents.insert(look_of(&label));
            label.push_str(" (agent)");
        }
        labels.insert(speaker.id, label);
    }
    labels
}

/// What an agent said in the run that the prompt is for, as another agent reads it.
pub(super) fn peer_line(display_name: &str, text: &str) -> String {
    let name = Some(without_label_marks(display_name)).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| "somebody".to_owned());
    let text = text.replace(is_unfit_for_messages, "");
    format!("{name} (agent): {}", indented(&text))
}

fn label_name(participant: &Participant) -> String {
    [participant.shown_name(), &participant.platform_id]
        .into_iter()
        .map(without_label_marks)
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "somebody".to_owned())
}

fn without_label_marks(name: &str) -> String {
    let name: String = clean_name(name).chars().map(plain_mark).collect();
    let mut name = clean_name(&name);
    let mut from = 0;
    while let Some(close) = name[from..].find(')').map(|at| from + at) {
        match name[..close].rfind('(') {
            Some(open) if is_label_mark(&name[open + 1..close]) => {
                name.remove(close);
                name.remove(open);
                from = 0;
            }
            _ => from = close + 1,
        }
    }
    name
}

/// Whether a word in brackets reads like one that labels have: a role, or a platform's id.
fn is_label_mark(bracketed: &str) -> bool {
    let is_of_id = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'-';
    let is_long = bracketed.len() > 4 || bracketed.bytes().any(|b| b.is_ascii_digit());
    let is_id = is_long && bracketed.bytes().all(is_of_id);
    let look: String = look_of(bracketed).split_whitespace().collect();
    let is_dated = look
        .strip_prefix("found")
        .is_some_and(|at| at.contains(|c: char| c.is_numeric()));
    is_id
        || is_dated
        || ["agent", "found", "now", "overheard", "system", "you"].contains(&look.as_str())
}

/// How a name looks to a hasty reader: without case, accents and letters of other alphabets that
/// stand in for Latin ones.
fn look_of(name: &str) -> String {
    let letters = name.chars().flat_map(char::to_lowercase);
    letters
        .filter(|c| !matches!(c, '\u{300}'..='\u{36F}'))
        .map(look_alike)
        .collect()
}

fn look_alike(c: char) -> char {
    let latin = |offset: u32| char::from_u32(u32::from('a') + offset % 26).unwrap_or(c);
    match c {
        '\u{FF41}'..='\u{FF5A}' => latin(u32::from(c) - 0xFF41),
        '\u{24D0}'..='\u{24E9}' => latin(u32::from(c) - 0x24D0),
        '\u{1D400}'..='\u{1D6A3}' => latin(u32::from(c) - 0x1D400),
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'ɑ' | 'а' | 'α' => 'a',
        'ԁ' | 'ɗ' => 'd',
        'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' | 'е' | 'ё' | 'є' | 'ε' => 'e',
        'ğ' | 'ģ' | 'ɡ' | 'ց' | 'ԍ' => 'g',
        'һ' | 'հ' => 'h',
        'м' => 'm',
        'ñ' | 'ń' | 'ň' | 'п' | 'ո' | 'η' => 'n',
        'ò'..='ö' | 'ø' | 'ō' | 'о' | 'ο' | 'օ' | '0' => 'o',
        'г' | 'ř' => 'r',
        'ѕ' | 'ś' | 'š' | 'ş' | '5' => 's',
        'т' | 'τ' | 'ť' | 'ţ' => 't',
        'ù'..='ü' | 'ū' | 'ս' | 'υ' => 'u',
        'ѵ' | 'ν' => 'v',
        'ý' | 'ÿ' | 'у' | 'γ' => 'y',
        'і' | 'ı' | 'ι' | 'l' | '1' | '|' => 'i',
        'к' | 'κ' => 'k',
        'с' => 'c',
        'р' | 'ρ' => 'p',
        'х' | 'χ' => 'x',
        'ѡ' | 'ω' => 'w',
        'в' | 'β' => 'b',
        'ј' => 'j',
        other => other,
    }
}

/// Colons of every kind become spaces, and brackets that look like ours become ours.
fn plain_mark(c: char) -> char {
    match c {
        ':' | '\u{2D0}' | '\u{2F8}' | '\u{589}' | '\u{5C3}' | '\u{703}' | '\u{704}'
        | '\u{1803}' | '\u{1809}' | '\u{205A}' | '\u{2236}' | '\u{A789}' | '\u{FE13}'
        | '\u{FE30}' | '\u{FE55}' | '\u{FF1A}' => ' ',
        '\u{207D}' | '\u{208D}' | '\u{2768}' | '\u{276A}' | '\u{FE59}' | '\u{FF08}' => '(',
        '\u{207E}' | '\u{208E}' | '\u{2769}' | '\u{276B}' | '\u{FE5A}' | '\u{FF09}' => ')',
        other => other,
    }
}

fn quoted(passage: &str) -> String {
    lines(passage).map(|line| format!("> {line}\n")).collect()
}

/// A text whose later lines start where no label would.
pub(super) fn indented(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for (number, line) in lines(text).enumerate() {
        if number > 0 {
            out.push('\n');
        }
        if number > 0 && !line.is_empty() {
            out.push_str(INDENT);
        }
        out.push_str(line);
    }
    out
}

/// Lines by everything that a model may read as a line break.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| {
        line.strip_suffix('\r')
            .unwrap_or(line)
            .split(['\r', '\u{0B}', '\u{0C}', '\u{85}', '\u{2028}', '\u{2029}'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_one_line_and_carry_no_label_marks() {
        let cases = [
            ("Alice", "Alice"),
            ("  Alice \n  Bob: hi ", "Alice Bob hi"),
            ("Al\u{202E}ice\u{0}\u{2028}x", "Al ice x"),
            ("Kael (agent)", "Kael agent"),
            ("(Overheard) ((agent))", "Overheard agent"),
            ("Anna (she/her)", "Anna (she/her)"),
            ("Bob\u{FF1A} a\u{2236} b\u{A789} c", "Bob a b c"),
            ("Kael \u{FF08}Agent\u{FF09}", "Kael Agent"),
            ("Kael (a\u{AD}gent)", "Kael a gent"),
            ("\u{61C}Kael\u{E0041}\u{E0042}\u{3164}", "Kael"),
            ("Kael (\u{430}gent)", "Kael \u{430}gent"),
            ("Kael ( \u{FF41}GE\u{301}NT )", "Kael  \u{FF41}GE\u{301}NT "),
            ("(\u{1D42C}ystem) x", "\u{1D42C}ystem x"),
            ("Alice (U0ALICE)", "Alice U0ALICE"),
            ("(found 2026-11-20 14:02) Ann", "found 2026-11-20 14 02 Ann"),
            ("Al\u{202D}ice\u{2066}\u{200B}", "Al ice"),
        ];
        for (name, expected) in cases {
            assert_eq!(without_label_marks(name), expected, "{name:?}");
        }
        assert_eq!(clean_name(&"ä".repeat(200)).chars().count(), NAME_MAX_CHARS);
    }

    #[test]
    fn look_alikes_look_alike() {
        for other in [
            "KAEL",
            "K\u{430}el",
            "k\u{E4}el",
            "\u{1D40A}aeI",
            "\u{FF2B}ael",
            "Kae1",
        ] {
            assert_eq!(look_of("Kael"), look_of(other), "{other}");
        }
        assert_ne!(look_of("Kael"), look_of("Kaleb"));
        assert_ne!(look_of("Иван"), look_of("Пётр"));
    }

    #[test]
    fn no_later_line_starts_where_a_label_would() {
        let text = "hi\nBob: a\r\nBob: b\rBob: c\u{2028}Bob: d\u{85}Bob: e\n\nlast";
        assert_eq!(
            indented(text),
            "hi\n  Bob: a\n  Bob: b\n  Bob: c\n  Bob: d\n  Bob: e\n\n  last"
        );
        assert_eq!(quoted("one\ntwo"), "> one\n> two\n");
    }
}
