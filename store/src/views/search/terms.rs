//! What a query asks for, and how well a text answers it. Pure.
//!
//! A query holds words, `"phrases"` and beginnings of words (`dep*`); all must be found. Whatever
//! else it holds (operators, lone quotes and stars) separates words and means nothing.

use std::collections::HashSet;

use vocative_contract::work::looked_at;

use crate::rows::search_text::{conversation_term, fold, searchable};

/// Queries are cut to this length, in characters.
pub(crate) const QUERY_MAX_CHARS: usize = 1_000;

/// The most terms of a query that are looked for: each goes through every text that may be found.
const TERMS_MAX: usize = 32;

/// BM25's usual parameters. *Source:* SQLite's FTS5 documentation, `bm25()`.
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;

/// What a query asks for.
#[derive(Debug, PartialEq)]
pub(crate) struct SearchTerms {
    terms: Vec<SearchTerm>,
    /// Whether the query was longer than its limit.
    pub(crate) is_cut: bool,
}

#[derive(Debug, PartialEq)]
struct SearchTerm {
    /// As the index is asked for it.
    asked: String,
    /// As folded texts hold it: with the space before its first word.
    folded: String,
    is_beginning: bool,
}

impl SearchTerms {
    pub(crate) fn parse(query: &str) -> Self {
        let cut: String = query.chars().take(QUERY_MAX_CHARS).collect();
        let is_quote = |c: char| matches!(c, '"' | '“' | '”' | '„');
        let pieces: Vec<&str> = cut.split(is_quote).collect();
        let mut terms = Vec::new();
        for (n, piece) in pieces.iter().enumerate() {
            // A quote that is never closed separates words like any other sign.
            let is_phrase = n % 2 == 1 && n + 1 < pieces.len();
            if is_phrase {
                terms.extend(SearchTerm::new(piece, false));
                continue;
            }
            for word in piece.split(|c: char| c.is_whitespace() || c == '\0') {
                let start = word.trim_end_matches('*');
                let is_beginning =
                    start.len() < word.len() && start.ends_with(char::is_alphanumeric);
                terms.extend(SearchTerm::new(start, is_beginning));
            }
        }
        let mut known = HashSet::new();
        terms.retain(|term: &SearchTerm| known.insert((term.asked.clone(), term.is_beginning)));
        let is_cut = cut.len() < query.len() || terms.len() > TERMS_MAX;
        terms.truncate(TERMS_MAX);
        Self { terms, is_cut }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// What the index is asked for: every term quoted, in one of these conversations.
    pub(crate) fn expression(&self, conversation_rows: &[i64]) -> String {
        let rows = conversation_rows.iter().copied().map(conversation_term);
        let asked: Vec<&str> = self.terms.iter().map(|term| term.asked.as_str()).collect();
        format!(
            "conversation : ({}) AND content : ({})",
            rows.collect::<Vec<_>>().join(" OR "),
            asked.join(" AND ")
        )
    }

    /// How often each term is in a text, and how many words the text has.
    pub(crate) fn counts(&self, text: &str, folded: &mut String) -> TermCounts {
        looked_at(text.len() * (self.terms.len() + 1));
        folded.clear();
        let mut words = 0_u32;
        fold(text, |_, c| {
            words += u32::from(c == ' ');
            folded.push(c);
        });
        let times = self.terms.iter().map(|term| {
            // At least once: the index found the term, if by a rule that folding does not know.
            u32::try_from(term.places(folded).count())
                .unwrap_or(u32::MAX)
                .max(1)
        });
        TermCounts {
            times: times.collect(),
            words: words.saturating_sub(1).max(1),
        }
    }

    /// Where in a text the first match begins, in bytes; 0 if folding does not find it.
    pub(crate) fn first_match(&self, text: &str) -> usize {
        let mut folded = String::with_capacity(text.len() + 2);
        let mut origins = Vec::with_capacity(text.len() + 2);
        fold(text, |at, c| {
            folded.push(c);
            origins.resize(folded.len(), at);
        });
        let first = self.terms.iter().filter_map(|term| {
            let place = term.places(&folded).next()?;
            origins.get(place + 1).copied()
        });
        first.min().unwrap_or(0)
    }
}

impl SearchTerm {
    fn new(text: &str, is_beginning: bool) -> Option<Self> {
        if !text.chars().any(char::is_alphanumeric) {
            return None;
        }
        let mut folded = String::new();
        fold(text, |_, c| folded.push(c));
        let star = if is_beginning { "*" } else { "" };
        let text = text.replace('\0', " ");
        Some(Self {
            asked: format!("\"{}\"{star}", searchable(&text)),
            folded: folded.trim_end().to_owned(),
            is_beginning,
        })
    }

    /// Where the term is in a folded text: the bytes of the space before it.
    fn places<'a>(&'a self, folded: &'a str) -> impl Iterator<Item = usize> + 'a {
        let ends_word = |end: usize| folded.as_bytes().get(end) == Some(&b' ');
        folded
            .match_indices(self.folded.as_str())
            .map(|(at, _)| at)
            .filter(move |at| self.is_beginning || ends_word(at + self.folded.len()))
    }
}

/// How often each term is in a text.
#[derive(Debug, PartialEq)]
pub(crate) struct TermCounts {
    times: Vec<u32>,
    words: u32,
}

/// How well texts answer a query, by BM25, in their order. All of them hold all terms, so that no
/// term is rarer among them than another.
pub(crate) fn scores(counts: &[TermCounts]) -> Vec<f64> {
    let words: f64 = counts.iter().map(|count| f64::from(count.words)).sum();
    let average = words / f64::from(u32::try_from(counts.len()).unwrap_or(u32::MAX)).max(1.0);
    let score = |count: &TermCounts| {
        let length = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * f64::from(count.words) / average;
        let of_term = |times: &u32| {
            let times = f64::from(*times);
            times * (SATURATION + 1.0) / (times + SATURATION * length)
        };
        count.times.iter().map(of_term).sum()
    };
    counts.iter().map(score).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_term_is_quoted_and_operators_mean_nothing() {
        let asked = |text: &str| {
            let terms = SearchTerms::parse(text);
            (!terms.is_empty()).then(|| terms.expression(&[7]))
        };
        let all = |terms: &str| Some(format!("conversation : (c7) AND content : ({terms})"));
        let cases = [
            ("", None),
            ("  % \"\" * \u{1f389}", None),
            ("deploy", all("\"deploy\"")),
            (
                "deploy NOT failed",
                all("\"deploy\" AND \"NOT\" AND \"failed\""),
            ),
            ("say \"hi there\"", all("\"say\" AND \"hi there\"")),
            ("“hi there” say", all("\"hi there\" AND \"say\"")),
            ("say \"hi there", all("\"say\" AND \"hi\" AND \"there\"")),
            ("depl* x** -* *y", all("\"depl\"* AND \"x\"* AND \"*y\"")),
            ("content:x* a\0b", all("\"content:x\"* AND \"a\" AND \"b\"")),
            ("\"a\0b\"", all("\"a b\"")),
            ("東京", all("\" 東  京 \"")),
            ("'); DROP", all("\"DROP\"")),
        ];
        for (text, expected) in cases {
            assert_eq!(asked(text), expected, "{text:?}");
        }
        assert_eq!(
            SearchTerms::parse("a").expression(&[1, 2]),
            "conversation : (c1 OR c2) AND content : (\"a\")"
        );
    }

    #[test]
    fn a_query_over_its_limit_is_cut_and_says_so() {
        let limit = "x ".repeat(QUERY_MAX_CHARS / 2);
        assert!(!SearchTerms::parse(&limit).is_cut);
        assert!(SearchTerms::parse(&(limit + "y")).is_cut);
        let words = |count: usize| (0..count).map(|n| format!("x{n} ")).collect::<String>();
        assert!(!SearchTerms::parse(&words(TERMS_MAX)).is_cut);
        let many = SearchTerms::parse(&words(TERMS_MAX + 1));
        assert!(many.is_cut && many.terms.len() == TERMS_MAX);
    }

    #[test]
    fn more_matches_in_fewer_words_score_higher() {
        let terms = SearchTerms::parse("deploy \"at nine\"");
        let texts = [
            "deploy, deploy at nine",
            "we deploy at nine",
            "we deploy at nine, which is later than it was, so tell everybody who asks about it",
            "we deploy at nine",
        ];
        let mut folded = String::new();
        let counts: Vec<TermCounts> = texts
            .iter()
            .map(|text| terms.counts(text, &mut folded))
            .collect();
        assert_eq!(counts[0].times, [2, 1]);
        assert_eq!(counts[0].words, 4);
        let scores = scores(&counts);
        assert!(scores[0] > scores[1] && scores[1] > scores[2], "{scores:?}");
        assert_eq!(scores[1].to_bits(), scores[3].to_bits());
    }

    #[test]
    fn words_that_repeat_are_each_counted() {
        let mut folded = String::new();
        let cases = [
            ("a", "a a a ab", 3),
            ("a*", "a a ab", 3),
            ("京", "京京", 2),
            ("b", "ab ba", 1),
        ];
        for (query, text, expected) in cases {
            let counts = SearchTerms::parse(query).counts(text, &mut folded);
            assert_eq!(counts.times, [expected], "{query:?} in {text:?}");
        }
    }

    #[test]
    fn the_first_match_is_found_whatever_its_accents() {
        let long = format!("{}Café at nine", "x ".repeat(50));
        let at = SearchTerms::parse("cafe").first_match(&long);
        assert!(long[at..].starts_with("Café"));
        assert_eq!(SearchTerms::parse("nowhere").first_match("text"), 0);
    }
}
