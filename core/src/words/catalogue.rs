//! The texts of a language: read from its file, and filled in.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::LazyLock;

use serde::Deserialize;

use super::Language;

/// A text of a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum CatalogueText {
    /// The same for every number.
    Plain(String),
    /// One of two forms, by a number.
    Counted {
        /// For one.
        one: String,
        /// For every other number.
        other: String,
    },
}

/// A catalogue as its file has it.
pub(super) type Texts = BTreeMap<String, CatalogueText>;

/// A value for a place of a text.
pub(crate) type Value<'a> = (&'static str, &'a dyn Display);

/// Reads the file of a language.
pub(super) fn read(language: Language) -> Result<Texts, toml::de::Error> {
    toml::from_str(match language {
        Language::English => include_str!("en.toml"),
        Language::German => include_str!("de.toml"),
    })
}

/// A text of a language, by its name.
fn text(language: Language, name: &str) -> &'static CatalogueText {
    static ALL: LazyLock<[Texts; 2]> = LazyLock::new(|| {
        Language::ALL.map(|language| read(language).expect("a test reads every catalogue"))
    });
    let texts = match language {
        Language::English => &ALL[0],
        Language::German => &ALL[1],
    };
    let text = texts.get(name);
    text.unwrap_or_else(|| panic!("a test finds {name} in every catalogue"))
}

/// A text, with its places filled in; `count` chooses the form of one that has forms.
pub(crate) fn say(
    language: Language,
    name: &str,
    count: Option<u64>,
    values: &[Value<'_>],
) -> String {
    match text(language, name) {
        CatalogueText::Plain(text) => filled(text, values),
        CatalogueText::Counted { one, .. } if count == Some(1) => filled(one, values),
        CatalogueText::Counted { other, .. } => filled(other, values),
    }
}

impl Language {
    /// What the command of that word says of itself.
    pub(crate) fn about_command(self, word: &str) -> String {
        say(self, &format!("command_{word}"), None, &[])
    }
}

/// A text with the values in their places, in one pass: what looks like a place in a value stays as it is.
fn filled(text: &str, values: &[Value<'_>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((name, after)) = behind.split_once('}') else {
            break;
        };
        out.push_str(before);
        if let Some((_, value)) = values.iter().find(|(of, _)| *of == name) {
            write!(out, "{value}").expect("a string takes everything");
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Checks that every language has that text, with these places and no other.
#[cfg(test)]
pub(crate) fn check_text(name: &str, wanted: &[&str], is_counted: bool) {
    use std::collections::BTreeSet;

    let places = |text: &'static str| -> BTreeSet<&str> {
        let behind = text.split('{').skip(1);
        behind
            .filter_map(|it| Some(it.split_once('}')?.0))
            .collect()
    };
    let wanted: BTreeSet<&str> = wanted.iter().copied().collect();
    for language in Language::ALL {
        let told = format!("{language:?} {name}");
        match text(language, name) {
            CatalogueText::Plain(text) => {
                assert_eq!(places(text), wanted, "{told}");
                assert!(!is_counted, "{told} has forms");
            }
            CatalogueText::Counted { one, other } => {
                assert!(places(one).is_subset(&wanted), "{told}");
                assert_eq!(places(other), wanted, "{told}");
                assert!(is_counted, "{told} has no forms");
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_the_same_texts() {
        let names = |language| -> Vec<String> { read(language).unwrap().into_keys().collect() };
        for language in Language::ALL {
            assert_eq!(names(language), names(Language::English), "{language:?}");
        }
    }

    #[test]
    fn a_text_is_written_as_rooms_show_it() {
        for language in Language::ALL {
            for (name, text) in read(language).unwrap() {
                let forms = match &text {
                    CatalogueText::Plain(text) => vec![text],
                    CatalogueText::Counted { one, other } => vec![one, other],
                };
                for form in forms {
                    assert_eq!(form.trim(), form, "{language:?} {name}");
                    assert!(!form.is_empty() && !form.contains('\n'), "{name}");
                    assert_eq!(form.matches('{').count(), form.matches('}').count());
                }
            }
        }
    }

    #[test]
    fn a_value_is_no_text() {
        assert_eq!(
            Language::English.help_mentioned("{name} {x}"),
            "Also behind a mention of me, in a thread too, where there are no slash commands: \"@{name} {x} new\". Then \
             it holds for the thread."
        );
        assert_eq!(filled("a {b} c { d", &[("b", &"{b}")]), "a {b} c { d");
    }

    #[test]
    fn one_is_one_and_none_are_many() {
        let told = [0, 1, 2].map(|count| Language::German.minutes(count));
        assert_eq!(told, ["0 Minuten", "1 Minute", "2 Minuten"]);
    }
}
