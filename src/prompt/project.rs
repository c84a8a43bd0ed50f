//! How a turn reads in a prompt: roles, speaker labels, mentions and quotes.
//!
//! A label at the start of a message says who speaks, so nobody may be able to write one:
//!
//! * names lose line breaks, control and invisible characters, colons, and the words `(agent)`,
//!   `(overheard)`, `(system)` and `(you)` lose their brackets; they are cut at [`NAME_MAX_CHARS`];
//! * where two speakers of a snapshot would read the same, each label carries the platform id;
//! * every line after the first of what people and other agents say is indented by two spaces, so
//!   no line of theirs starts where a label would.

use std::collections::HashMap;

use vocative_channels::markup::replace_mentions;

use super::{AgentView, PromptRole};
use crate::domain::history::{History, Role};
use crate::domain::ids::ParticipantId;
use crate::domain::turn::{Participant, ParticipantKind, Turn};

/// Names longer than this are cut, in characters.
pub const NAME_MAX_CHARS: usize = 64;

const INDENT: &str = "  ";

/// How the platform id of somebody begins who writes as a chat.
const WRITES_AS_CHAT: &str = "chat:";

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
    pub(super) fn new(history: &'a History, agent: &'a AgentView) -> Self {
        Self {
            agent,
            names: &history.names,
            labels: labels(history),
        }
    }

    /// The message a turn becomes.
    pub(super) fn project(&self, turn: &Turn, role: Role, quote: Quote) -> (PromptRole, String) {
        let content = self.with_names(&turn.content);
        if is_platform(&turn.participant) {
            return (PromptRole::System, content);
        }
        if self.is_own(turn) {
            return (PromptRole::Assistant, content);
        }
        let overheard = if role == Role::Ambient {
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

    /// A turn as whoever summarises it reads it; `None` if it says nothing.
    pub(super) fn spoken(&self, turn: &Turn) -> Option<String> {
        let content = self.with_names(&turn.content);
        if content.trim().is_empty() {
            return None;
        }
        let label = if self.is_own(turn) {
            format!("{} (you)", clean_name(&self.agent.display_name))
        } else if is_platform(&turn.participant) {
            "(system)".to_owned()
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
        self.labels
            .get(&participant.id)
            .cloned()
            .unwrap_or_else(|| label_name(participant))
    }

    fn is_own(&self, turn: &Turn) -> bool {
        turn.participant.kind == ParticipantKind::Agent
            && turn.participant.platform_id == self.agent.name.as_str()
    }

    fn with_names(&self, text: &str) -> String {
        replace_mentions(text, |id| format!("@{}", self.mentioned_name(id)))
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

/// Whether the platform or the daemon speaks. Somebody who writes as a chat is no person to the
/// platform, but must not speak to the model with its authority.
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

fn is_unfit_for_names(c: char) -> bool {
    c.is_control()
        || c.is_whitespace()
        || matches!(c,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}'
            | '\u{FFF9}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}')
}

fn labels(history: &History) -> HashMap<ParticipantId, String> {
    let mut speakers: HashMap<ParticipantId, &Participant> = HashMap::new();
    for entry in &history.turns {
        speakers.insert(entry.turn.participant.id, &entry.turn.participant);
    }
    let mut speakers_by_name: HashMap<(ParticipantKind, String), usize> = HashMap::new();
    for speaker in speakers.values() {
        *speakers_by_name
            .entry((speaker.kind, label_name(speaker)))
            .or_default() += 1;
    }
    speakers
        .into_iter()
        .map(|(id, speaker)| {
            let name = label_name(speaker);
            let is_shared = speakers_by_name[&(speaker.kind, name.clone())] > 1;
            let id_part = if is_shared {
                format!(" ({})", clean_name(&speaker.platform_id))
            } else {
                String::new()
            };
            let kind_part = if speaker.kind == ParticipantKind::Agent {
                " (agent)"
            } else {
                ""
            };
            (id, format!("{name}{id_part}{kind_part}"))
        })
        .collect()
}

fn label_name(participant: &Participant) -> String {
    [participant.shown_name(), &participant.platform_id]
        .into_iter()
        .map(without_label_marks)
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "somebody".to_owned())
}

fn without_label_marks(name: &str) -> String {
    let mut name: String = clean_name(name).chars().map(plain_mark).collect();
    name = clean_name(&name);
    for word in ["agent", "overheard", "system", "you"] {
        let bracketed = format!("({word})");
        while let Some(at) = name.to_ascii_lowercase().find(&bracketed) {
            let bare = name[at + 1..at + bracketed.len() - 1].to_owned();
            name.replace_range(at..at + bracketed.len(), &bare);
        }
    }
    name
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

fn indented(text: &str) -> String {
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
            ("Kael (a\u{AD}gent)", "Kael (a gent)"),
            ("\u{61C}Kael\u{E0041}\u{E0042}\u{3164}", "Kael"),
        ];
        for (name, expected) in cases {
            assert_eq!(without_label_marks(name), expected, "{name:?}");
        }
        assert_eq!(clean_name(&"ä".repeat(200)).chars().count(), NAME_MAX_CHARS);
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
