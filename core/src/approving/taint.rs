//! What a run has read that its askers did not write, and what that changes for calls that act.
//!
//! A text of somebody else can ask a model for a call as well as its asker can. From the step on that such a text was
//! shown to, calls that act are asked for, whatever the settings say of trusted runs; what the model asked for before
//! it read the text could not come from it.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::approving::ApprovalRule;
use crate::tool_call::CallRule;
use crate::words::Language;

/// Where a text came from that the askers of a run did not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutsideSource {
    /// The result of a tool or of a server of tools.
    Tool,
    /// What others said, found by a search that the model made.
    Found,
    /// What others said, found for the question before the model was asked.
    Recalled,
    /// A file or a picture that was shown with the question.
    File,
}

impl OutsideSource {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Found, Self::Recalled, Self::File];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Found => "found",
            Self::Recalled => "recalled",
            Self::File => "file",
        }
    }

    /// The source of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// That a run has read such a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// The step whose calls gave it; 0 = it stands in the prompt.
    pub step: u32,
    /// Where it came from.
    pub source: OutsideSource,
    /// The tool that gave it; empty = none did.
    pub tool: String,
}

impl Taint {
    /// A text of the prompt.
    #[must_use]
    pub fn of_prompt(source: OutsideSource) -> Self {
        Self {
            step: 0,
            source,
            tool: String::new(),
        }
    }

    /// For people: what was read, without a word of it.
    #[must_use]
    pub fn words(&self, language: Language) -> String {
        match self.source {
            OutsideSource::Tool => language.read_of_tool(&self.tool, self.step),
            OutsideSource::Found => language.read_found(&self.tool, self.step),
            OutsideSource::Recalled => language.read_recalled(),
            OutsideSource::File => language.read_file(),
        }
    }
}

/// How many of the texts that were read are named: a card has room for the call first.
const NAMED_MAX: usize = 5;

/// What was read, for people: the first few texts of others, and how many there are besides.
#[must_use]
pub fn read_words(taints: &[Taint], language: Language) -> String {
    let named = taints.iter().take(NAMED_MAX);
    let mut words: Vec<String> = named.map(|taint| taint.words(language)).collect();
    let more = taints.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        words.push(language.read_more(more));
    }
    words.join(", ")
}

/// What becomes of calls that act once their run has read a text that its asker did not write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AfterUntrusted {
    /// A person is asked about each, unless a grant covers exactly its arguments.
    #[default]
    Ask,
    /// They are asked for as in any other run.
    Allow,
}

impl AfterUntrusted {
    /// The setting of a word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "ask" => Some(Self::Ask),
            "allow" => Some(Self::Allow),
            _ => None,
        }
    }
}

/// Whether a call needs a person, given what its run had read when it was asked for.
#[must_use]
pub fn ask_after(
    asking: ApprovalRule,
    rule: CallRule,
    has_read_others: bool,
    set: AfterUntrusted,
) -> ApprovalRule {
    let acts = rule != CallRule::Repeatable;
    match set {
        AfterUntrusted::Ask if acts && has_read_others => ApprovalRule::Always,
        AfterUntrusted::Ask | AfterUntrusted::Allow => asking,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_acts_asks_once_its_run_has_read_what_others_wrote() {
        use AfterUntrusted::{Allow, Ask};
        use ApprovalRule::{Always, First, Free};
        use CallRule::{Keyed, Once, Repeatable};
        let table = [
            (Free, Once, false, Ask, Free),
            (Free, Once, true, Ask, Always),
            (Free, Keyed, true, Ask, Always),
            // What only reads does not act.
            (Free, Repeatable, true, Ask, Free),
            (First, Repeatable, true, Ask, First),
            // A standing consent for every call of the tool covers none; one for this very call does.
            (First, Once, true, Ask, Always),
            (First, Once, false, Ask, First),
            (Always, Once, true, Ask, Always),
            // Whoever runs it says that it may.
            (Free, Once, true, Allow, Free),
            (First, Keyed, true, Allow, First),
            (Always, Once, true, Allow, Always),
        ];
        for (asking, rule, has_read, set, expected) in table {
            let found = ask_after(asking, rule, has_read, set);
            assert_eq!(found, expected, "{asking:?} {rule:?} {has_read} {set:?}");
        }
    }

    #[test]
    fn what_was_read_is_told_without_its_words() {
        let tool = Taint {
            step: 2,
            source: OutsideSource::Tool,
            tool: "web__fetch".to_owned(),
        };
        let all = [Taint::of_prompt(OutsideSource::File), tool];
        assert_eq!(
            read_words(&all, Language::English),
            "a file or picture, web__fetch (step 2)"
        );
        assert_eq!(read_words(&[], Language::English), "");
        let many = vec![Taint::of_prompt(OutsideSource::File); 64];
        assert!(read_words(&many, Language::English).ends_with("a file or picture, and 59 more"));
        for source in OutsideSource::ALL {
            assert_eq!(OutsideSource::from_name(source.name()), Some(source));
        }
        assert_eq!(AfterUntrusted::from_name("never"), None);
    }
}
