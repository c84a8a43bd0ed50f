//! A conversation in which some lines say facts that may be asked for later. Drawn from a seed.

use crate::dice::SeededDice;

/// How many of a thousand lines say a fact.
const FACT_PER_MILLE: u64 = 100;

/// What a fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FactKind {
    /// Who is who, and does what.
    Names,
    /// Prices, codes, addresses.
    Numbers,
    /// What was decided.
    Decisions,
    /// What somebody will have done, and by when.
    Promises,
}

impl FactKind {
    pub(super) const ALL: [Self; 4] = [Self::Names, Self::Numbers, Self::Decisions, Self::Promises];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Numbers => "numbers",
            Self::Decisions => "decisions",
            Self::Promises => "promises",
        }
    }

    /// Lines of this kind. The words in braces are what must survive.
    fn templates(self) -> &'static [&'static str] {
        match self {
            Self::Names => &[
                "{person} is the new contact at {customer}",
                "heads up: {person} looks after {system} from now on",
                "the landlord in {place} is called {person}, a nice person",
                "{person} und {person2} betreuen jetzt {customer}",
            ],
            Self::Numbers => &[
                "the guest network in {place} has the code {code}",
                "{customer} pays {number} a month for {system}",
                "our number at the {place} desk is {phone}",
                "le contrat avec {customer} porte le numéro {code}",
            ],
            Self::Decisions => &[
                "we decided to drop {system} and to keep {system2}",
                "agreed with {person}: no releases in {place} on Fridays",
                "then it is settled, {customer} gets the larger plan",
                "wir haben beschlossen, {system} nach {place} zu verlegen",
            ],
            Self::Promises => &[
                "I'll send {customer} the offer by {date}",
                "{person} promised me the keys for {place} until {date}",
                "I will have {system} migrated by {date}, promised",
                "prometo terminar {system} antes del {date}",
            ],
        }
    }
}

/// A fact that may be asked for later.
#[derive(Clone, Debug)]
pub(super) struct SummaryFact {
    pub(super) kind: FactKind,
    /// The number of its line, from 0.
    pub(super) line: usize,
    /// The whole line.
    pub(super) text: String,
    /// The words that a summary must contain.
    keys: Vec<String>,
}

impl SummaryFact {
    /// Whether a summary still says it: one of its lines contains all filled-in words.
    pub(super) fn is_in(&self, summary: &str) -> bool {
        summary
            .lines()
            .any(|line| self.keys.iter().all(|key| line.contains(key.as_str())))
    }
}

/// A conversation.
pub(super) struct ToldConversation {
    /// The lines: who says what.
    pub(super) lines: Vec<(String, String)>,
    pub(super) facts: Vec<SummaryFact>,
}

const SPEAKERS: [&str; 4] = ["Ann", "Bob", "Ada", "Cem"];
const CHATTER: [&str; 14] = [
    "good morning everybody",
    "ok",
    "thanks, that helps a lot",
    "I'll be five minutes late",
    "can somebody review my change?",
    "the build is green again, nice",
    "let's take this to a thread",
    "same here, it's slow for me too",
    "alert: {system} latency is {ms} ms",
    "deployed {system} version {ms}",
    "who broke the build? it was fine this morning",
    "I talked to {person} about it yesterday",
    "is anybody in the {place} office today?",
    "lunch?",
];

impl ToldConversation {
    pub(super) fn draw(lines: usize, seed: u64) -> Self {
        let mut dice = SeededDice::of(seed, "summaries");
        let mut told = Self {
            lines: Vec::with_capacity(lines),
            facts: Vec::new(),
        };
        for line in 0..lines {
            let speaker = SPEAKERS[dice.place(SPEAKERS.len())].to_owned();
            let text = if dice.hits(FACT_PER_MILLE) {
                let kind = FactKind::ALL[dice.place(FactKind::ALL.len())];
                let templates = kind.templates();
                let (text, keys) = filled(templates[dice.place(templates.len())], &mut dice);
                told.facts.push(SummaryFact {
                    kind,
                    line,
                    text: text.clone(),
                    keys,
                });
                text
            } else {
                filled(CHATTER[dice.place(CHATTER.len())], &mut dice).0
            };
            told.lines.push((speaker, text));
        }
        told
    }
}

/// A template with its braces filled, and the words filled in.
fn filled(template: &str, dice: &mut SeededDice) -> (String, Vec<String>) {
    let (mut text, mut keys) = (String::new(), Vec::new());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        let value = value_of(name, dice);
        text.push_str(before);
        text.push_str(&value);
        keys.push(value);
        rest = after;
    }
    text.push_str(rest);
    (text, keys)
}

/// A value that few other lines share.
fn value_of(name: &str, dice: &mut SeededDice) -> String {
    let mut word = |syllables: &[&str], count: usize| -> String {
        let word: String = (0..count)
            .map(|_| syllables[dice.place(syllables.len())])
            .collect();
        word[..1].to_uppercase() + &word[1..]
    };
    match name {
        "person" | "person2" => word(&["ka", "mi", "ro", "le", "sa", "to", "ne", "ju"], 3),
        "customer" => {
            word(
                &["nord", "wind", "bright", "hal", "quil", "maple", "grey"],
                2,
            ) + " Ltd"
        }
        "system" | "system2" => word(
            &["bill", "ing", "led", "ger", "mail", "gate", "port", "flow"],
            3,
        )
        .to_lowercase(),
        "place" => word(&["ber", "lin", "os", "lo", "por", "ga", "way", "den"], 3),
        "code" => format!(
            "{}-{}",
            word(&["otter", "heron", "lynx"], 1),
            10 + dice.below(9_000)
        ),
        "phone" => format!(
            "+47 {} {}",
            100 + dice.below(900),
            1_000 + dice.below(9_000)
        ),
        "date" => format!("{} May 2026", 1 + dice.below(28)),
        _ => (20 + dice.below(9_980)).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_every_kind_are_said_and_found_in_their_own_line_alone() {
        let told = ToldConversation::draw(2_000, 1);
        for kind in FactKind::ALL {
            let of_kind = told.facts.iter().filter(|fact| fact.kind == kind);
            assert!(of_kind.count() > 20, "{kind:?}");
        }
        for fact in &told.facts {
            assert_eq!(told.lines[fact.line].1, fact.text);
            assert!(fact.is_in(&fact.text) && !fact.is_in("They talked."));
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_conversation() {
        assert_eq!(
            ToldConversation::draw(300, 3).lines,
            ToldConversation::draw(300, 3).lines
        );
        assert_ne!(
            ToldConversation::draw(300, 3).lines,
            ToldConversation::draw(300, 4).lines
        );
    }
}
