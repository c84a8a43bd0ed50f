//! What is indexed of a text: the stems of its words.
//!
//! A word of a text is indexed by its stem in each language that the text may be written in; a word of a query is
//! looked for by its stems in all languages. So a text's language matters only for its own words, and a query of two
//! words needs no language at all.

use std::collections::BTreeSet;

use rust_stemmers::{Algorithm, Stemmer};

use super::language::Languages;
use super::text::{Word, WordKind, plain, words};

/// Changes whenever a text would give other stems: what was indexed by another version is indexed anew.
pub const STEMS_VERSION: u32 = 1;

/// The stems of the telling words of a text, each once. A pure function of the text: what is taken out of an index is
/// what was put in.
#[must_use]
pub fn stems_of(text: &str) -> BTreeSet<String> {
    let words = words(text);
    let languages = Languages::of(&words);
    let telling = words
        .iter()
        .filter(|word| !languages.is_grammar(&word.plain));
    telling
        .flat_map(|word| stems_of_word(word, languages))
        .collect()
}

/// The stems of one word in some languages, plain, each once.
#[must_use]
pub fn stems_of_word(word: &Word, languages: Languages) -> Vec<String> {
    if word.kind == WordKind::Single || word.kind == WordKind::Pair {
        return vec![word.plain.clone()];
    }
    let mut stems = Vec::new();
    let mut add = |stem: &str| {
        let stem = plain(stem);
        if !stem.is_empty() && !stems.contains(&stem) {
            stems.push(stem);
        }
    };
    let first = word.written.chars().next().unwrap_or(' ');
    // Numbers and names of versions are not inflected.
    if word.written.chars().any(char::is_numeric) {
        return vec![word.plain.clone()];
    }
    match script(first) {
        Script::Latin => {
            for language in languages.each() {
                let stemmer = Stemmer::create(language.algorithm());
                add(&stemmer.stem(&word.written));
                // The stems without accents, too: many people leave accents out, and stemmers know endings by them.
                if word.plain != word.written {
                    add(&stemmer.stem(&word.plain));
                }
            }
        }
        Script::Of(algorithm) => add(&Stemmer::create(algorithm).stem(&word.plain)),
        Script::Other => add(&word.written),
    }
    stems
}

/// The script of a word, as far as stemming goes.
enum Script {
    Latin,
    Of(Algorithm),
    Other,
}

fn script(c: char) -> Script {
    match u32::from(c) {
        0x41..=0x24f | 0x1e00..=0x1eff => Script::Latin,
        0x370..=0x3ff | 0x1f00..=0x1fff => Script::Of(Algorithm::Greek),
        0x400..=0x52f => Script::Of(Algorithm::Russian),
        0x600..=0x6ff => Script::Of(Algorithm::Arabic),
        0xb80..=0xbff => Script::Of(Algorithm::Tamil),
        _ => Script::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(query: &str, text: &str) -> bool {
        let stems = stems_of(text);
        let asked = words(query);
        asked.iter().all(|word| {
            let forms = stems_of_word(word, Languages::all());
            forms.iter().any(|form| stems.contains(form))
        })
    }

    #[test]
    fn inflected_words_are_found_by_each_other() {
        let found = [
            ("deploys", "we deployed it"),
            ("meeting", "the meetings are moved"),
            ("invoice", "Invoices go out on Monday"),
            ("Passwort", "Passwörter geändert"),
            ("Passwörter", "das Passwort ist neu"),
            ("Rechnungen", "die Rechnung liegt bei Ada"),
            ("Schlüssel", "den Schluessel, ich meine Schlüssels, hat Bob"),
            ("rechnungen", "Rechnung bezahlt"),
            ("contraseña", "las contraseñas están en el cajón"),
            ("contrasena", "la contraseña está aquí"),
            ("reuniones", "la reunión es el lunes"),
            ("facture", "les factures sont payées"),
            ("payée", "la facture a été payee"),
            ("пароль", "пароли лежат в сейфе"),
            ("пароля", "наш пароль сменили"),
            ("ёлки", "елка стоит у входа"),
            ("елку", "Ёлка у входа"),
            ("strasse", "in der Straße"),
            ("wifi", "the wi-fi is down"),
            ("काल", "काल"),
            ("कुल", "कुल १२"),
            ("كتاب", "كِتَاب"),
            ("東京", "東京タワーで"),
            ("京", "東京"),
            ("비밀번호", "비밀번호는 1234"),
            ("שלום", "שָׁלוֹם"),
        ];
        for (query, text) in found {
            assert!(
                is_found(query, text),
                "{query} in {text}: {:?}",
                stems_of(text)
            );
        }
        for (query, text) in [("काल", "कुल"), ("京東", "東京"), ("4711", "4712")] {
            assert!(!is_found(query, text), "{query} in {text}");
        }
    }

    #[test]
    fn a_text_of_one_mark_has_few_stems() {
        for mark in ["a", "-", "\u{301}", "京", "'", "ß", "\u{200b}", "कि"] {
            let text = mark.repeat(400_000 / mark.len());
            assert!(stems_of(&text).len() < 10, "{mark:?}");
        }
    }
}
