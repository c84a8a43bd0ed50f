//! How well a line answers a query.
//!
//! Words weigh by how rare they are in what is searched. All of them, near each other and in the order asked for,
//! in the form asked for, count for more; a line that only asks counts for less, and so does a very long one. There
//! are no weights to tune per room: each number here says by how much, and why.

use std::collections::HashMap;
use std::sync::Arc;

use super::asking::only_asks;
use super::language::Languages;
use super::likeness::Likeness;
use super::query::{Query, is_in_sequence};
use super::stems::stems_of_word;
use super::text::{Word, WordKind, words};

/// The weight of a word in another form than the one asked for: it is usually meant, but the exact form is better.
const OTHER_FORM: f64 = 0.85;
/// The weight of a word that is the speaker's own name: a search seldom means all that a person said, and more often
/// lines that name them.
const SAID_BY: f64 = 0.5;
/// What all words next to each other in the order asked for add at the most.
const NEAR_BONUS: f64 = 0.3;
/// What having all words adds.
const ALL_BONUS: f64 = 0.15;
/// What is left of a line that only asks: between two lines with the same words the other one always wins, and
/// a statement with half of the words does.
const ASKING_FACTOR: f64 = 0.45;
/// The length of a usual line, in words; longer ones have words by chance.
const USUAL_WORDS: f64 = 15.0;
/// The length of a usual piece of a document, in words: about half of the longest that there are.
const USUAL_PASSAGE_WORDS: f64 = 120.0;
/// How much of the weight follows the length.
const LENGTH_SHARE: f64 = 0.15;
/// The part of its score that even the longest line keeps.
const LENGTH_LEAST: f64 = 0.3;
/// By how much a repeated line counts for less with each doubling: as with words, what is everywhere tells little.
const REPEAT_SHARE: f64 = 0.08;
/// Words further apart than this are not near, in words.
const NEAR_MAX: u32 = 8;

/// A line as it is scored: made once, scored for each query.
#[derive(Clone, Debug)]
pub struct PreparedLine {
    words: Vec<LineWord>,
    usual_words: f64,
    /// Whether it only asks.
    pub asks: bool,
    /// What it is compared with others by.
    pub likeness: Likeness,
}

#[derive(Clone, Debug)]
struct LineWord {
    word: Word,
    stems: Arc<[String]>,
}

/// The stems of words that were met before: the lines of a room share most of their words.
#[derive(Debug, Default)]
pub struct KnownStems(HashMap<Languages, HashMap<String, Arc<[String]>>>);

impl KnownStems {
    fn of(&mut self, word: &Word, languages: Languages) -> Arc<[String]> {
        // These are their own stems.
        if matches!(word.kind, WordKind::Single | WordKind::Pair) {
            return stems_of_word(word, languages).into();
        }
        let known = self.0.entry(languages).or_default();
        if let Some(stems) = known.get(&word.written) {
            return Arc::clone(stems);
        }
        let stems: Arc<[String]> = stems_of_word(word, languages).into();
        known.insert(word.written.clone(), Arc::clone(&stems));
        stems
    }
}

impl PreparedLine {
    /// The line of a text, mentions as names.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self::knowing(text, &mut KnownStems::default())
    }

    /// The same, with the stems of words of other lines.
    #[must_use]
    pub fn knowing(text: &str, known: &mut KnownStems) -> Self {
        let words = words(text);
        let languages = Languages::of(&words);
        let telling = words.iter().filter(|it| !languages.is_grammar(&it.plain));
        let likeness = Likeness::of(telling.map(|word| word.plain.as_str()));
        let with_stems = |word: Word| LineWord {
            stems: known.of(&word, languages),
            word,
        };
        Self {
            words: words.into_iter().map(with_stems).collect(),
            usual_words: USUAL_WORDS,
            asks: only_asks(text),
            likeness,
        }
    }

    /// A piece of a document: it may be longer than what somebody says in a line, and its questions are part of it.
    #[must_use]
    pub fn of_passage(text: &str) -> Self {
        Self {
            usual_words: USUAL_PASSAGE_WORDS,
            asks: false,
            ..Self::of(text)
        }
    }

    /// Whether it has all that a query requires.
    #[must_use]
    pub fn has_required(&self, query: &Query) -> bool {
        if query.required.is_empty() {
            return true;
        }
        let sequence = self.words.iter().filter(|it| is_in_sequence(it.word.kind));
        let line: Vec<&str> = sequence.map(|it| it.word.plain.as_str()).collect();
        query.required.iter().all(|required| required.is_in(&line))
    }

    fn length(&self) -> f64 {
        let spaced = self
            .words
            .iter()
            .filter(|it| it.word.kind != WordKind::Joined);
        spaced.count() as f64
    }
}

/// How well a line answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Relevance {
    /// 0 = not at all; 1 = all words as asked for, side by side, in a short line that says something.
    pub score: f64,
    /// Which wished words it has, one bit each.
    pub wishes: u64,
    /// Where its first match begins, in bytes.
    pub at: usize,
}

/// A query with what its words weigh.
#[derive(Clone, Debug)]
pub struct Scorer {
    /// What a word of a line stands for, by its plain form and by its stems.
    exact: HashMap<String, usize>,
    stems: HashMap<String, (usize, f64)>,
    weights: Vec<f64>,
    phrases: Vec<String>,
}

/// The weight of a word that `lines_with` of the `lines` have.
#[must_use]
pub fn rarity(lines_with: usize, lines: usize) -> f64 {
    let with = lines_with as f64;
    let lines = (lines as f64).max(with);
    // *Source:* BM25's weight in the form of Lucene, which is never negative.
    (1.0 + (lines - with + 0.5) / (with + 0.5)).ln()
}

impl Scorer {
    /// The scorer of a query, with the rarity of each wished word.
    #[must_use]
    pub fn new(query: &Query, rarities: &[f64]) -> Self {
        let mut scorer = Self {
            exact: HashMap::new(),
            stems: HashMap::new(),
            weights: Vec::with_capacity(query.wished.len()),
            phrases: Vec::new(),
        };
        for required in &query.required {
            scorer.phrases.extend(required.words.first().cloned());
        }
        for (n, (wish, rarity)) in query.wished.iter().zip(rarities).enumerate() {
            scorer.exact.entry(wish.plain.clone()).or_insert(n);
            let stems = wish.stems.iter().map(|stem| (stem, OTHER_FORM));
            let others = wish.stands_in.iter().map(|(stem, share)| (stem, *share));
            for (stem, share) in stems.chain(others) {
                scorer.stems.entry(stem.clone()).or_insert((n, share));
            }
            scorer.weights.push(wish.weight * rarity);
        }
        scorer
    }

    /// How well a line answers. `said_by` = the wished words that are its speaker's name, one bit each.
    #[must_use]
    pub fn relevance(&self, line: &PreparedLine, said_by: u64) -> Relevance {
        let (mut shares, mut found) = (vec![0.0_f64; self.weights.len()], Vec::new());
        let mut relevance = Relevance {
            wishes: said_by,
            ..Relevance::default()
        };
        for (n, share) in shares.iter_mut().enumerate() {
            *share = if said_by & (1 << n.min(63)) == 0 {
                0.0
            } else {
                SAID_BY
            };
        }
        let mut first = None;
        for it in &line.words {
            let Some((wish, share)) = self.stands_for(it) else {
                if first.is_none() && self.phrases.contains(&it.word.plain) {
                    first = Some(it.word.at);
                }
                continue;
            };
            first.get_or_insert(it.word.at);
            shares[wish] = shares[wish].max(share);
            found.push((it.word.place, wish));
            // One bit for each of the first words: more than a query has.
            relevance.wishes |= 1 << wish.min(63);
        }
        relevance.at = first.unwrap_or(0);
        let whole: f64 = self.weights.iter().sum();
        if whole <= 0.0 {
            // There are only required words: all lines that have them answer equally well.
            relevance.score = Self::factors(line);
            return relevance;
        }
        let part: f64 = shares
            .iter()
            .zip(&self.weights)
            .map(|(share, weight)| share * weight)
            .sum();
        let has_all = self.weights.len() > 1 && shares.iter().all(|share| *share > 0.0);
        let bonus =
            1.0 + NEAR_BONUS * self.nearness(&found) + if has_all { ALL_BONUS } else { 0.0 };
        let best = if self.weights.len() > 1 {
            1.0 + NEAR_BONUS + ALL_BONUS
        } else {
            1.0
        };
        relevance.score = part / whole * bonus / best * Self::factors(line);
        relevance
    }

    fn stands_for(&self, it: &LineWord) -> Option<(usize, f64)> {
        if let Some(wish) = self.exact.get(&it.word.plain) {
            return Some((*wish, 1.0));
        }
        let found = it.stems.iter().filter_map(|stem| self.stems.get(stem));
        found.copied().max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// How near words that follow each other in the query are in the line: 1 = side by side in that order.
    fn nearness(&self, found: &[(u32, usize)]) -> f64 {
        let (mut near, mut of) = (0.0, 0.0);
        let pairs = self.weights.windows(2).enumerate();
        for (first, weights) in pairs {
            let weight = weights[0].min(weights[1]);
            of += weight;
            near += weight * pair_nearness(found, first);
        }
        if of > 0.0 { near / of } else { 0.0 }
    }

    fn factors(line: &PreparedLine) -> f64 {
        let length = 1.0 - LENGTH_SHARE + LENGTH_SHARE * line.length() / line.usual_words;
        let length = (1.0 / length).clamp(LENGTH_LEAST, 1.0);
        length * if line.asks { ASKING_FACTOR } else { 1.0 }
    }
}

fn pair_nearness(found: &[(u32, usize)], first: usize) -> f64 {
    let mut best = 0.0_f64;
    // The last places of both words are enough: the nearest earlier place is the last one.
    let (mut last_first, mut last_second): (Option<u32>, Option<u32>) = (None, None);
    for (place, wish) in found {
        let distance = |last: Option<u32>| last.map(|last| (place - last).max(1));
        let near = |last: Option<u32>, share: f64| {
            let distance = distance(last).filter(|distance| *distance <= NEAR_MAX);
            distance.map_or(0.0, |distance| share / f64::from(distance))
        };
        if *wish == first {
            best = best.max(near(last_second, 0.7));
            last_first = Some(*place);
        } else if *wish == first + 1 {
            best = best.max(near(last_first, 1.0));
            last_second = Some(*place);
        }
    }
    best
}

/// What is left of the score of a line that was said several times in nearly the same words.
#[must_use]
pub fn repeated(times: usize) -> f64 {
    1.0 / (1.0 + REPEAT_SHARE * (times.max(1) as f64).log2())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines in the order of their scores, each word as rare as it is among them.
    fn ranked<'a>(query: &str, lines: &[&'a str]) -> Vec<&'a str> {
        let query = Query::parse(query);
        let read: Vec<PreparedLine> = lines.iter().map(|line| PreparedLine::of(line)).collect();
        let rarities: Vec<f64> = (0..query.wished.len())
            .map(|n| {
                let even = Scorer::new(&query, &vec![1.0; query.wished.len()]);
                let has = |line: &&PreparedLine| even.relevance(line, 0).wishes & (1 << n) != 0;
                rarity(read.iter().filter(has).count(), 1_000)
            })
            .collect();
        let scorer = Scorer::new(&query, &rarities);
        let mut scored: Vec<(f64, &str)> =
            (read.iter().map(|line| scorer.relevance(line, 0).score))
                .zip(lines.iter().copied())
                .filter(|(score, _)| *score > 0.0)
                .collect();
        scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        scored.into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn a_better_answer_ranks_higher() {
        let cases: [(&str, &[&str]); 9] = [
            // All words before some, some before none.
            (
                "lisbon wifi code",
                &[
                    "the lisbon wifi code is blue",
                    "lisbon wifi is slow",
                    "wifi is slow",
                ],
            ),
            // A statement before a question, also with fewer words.
            (
                "lisbon wifi password",
                &[
                    "lisbon: guest wifi is blue-otter",
                    "what is the lisbon wifi password?",
                ],
            ),
            // The form asked for before another one.
            (
                "deploy",
                &["the deploy is at nine", "deploying takes an hour"],
            ),
            // Near before far, in order before the other way round.
            (
                "door code",
                &[
                    "the door code is 12",
                    "the code of the door is 12",
                    "the door is shut, and a long time later some code came",
                ],
            ),
            // Rare words before words that are everywhere.
            (
                "server kraken",
                &[
                    "kraken moved",
                    "server one",
                    "server two",
                    "server three",
                    "server four",
                ],
            ),
            // Short before long.
            ("printer", &["printer is in room 4", LONG]),
            ("東京", &["東京に行く"]),
            ("wi-fi", &["wi-fi is up", "wifi is up"]),
            ("Rechnung", &["die Rechnung ist da", "Rechnungen sind da"]),
        ];
        for (query, expected) in cases {
            let mut lines = expected.to_vec();
            lines.reverse();
            let found = ranked(query, &lines);
            assert_eq!(found[0], expected[0], "{query}");
            assert_eq!(found.len(), expected.len(), "{query}: {found:?}");
        }
        assert!(ranked("kraken", &["server one"]).is_empty());
    }

    const LONG: &str = "printer came up in a long story about how we bought chairs and tables and lamps and \
        then also went to the shop again because somebody had forgotten that the room has no window and that \
        nothing of it fits, so all of it went back, and in the end we sat on the floor and had a pizza";

    #[test]
    fn a_perfect_line_scores_one_and_none_more() {
        let query = Query::parse("wifi code");
        let scorer = Scorer::new(&query, &[1.0, 2.0]);
        let score = |text: &str| scorer.relevance(&PreparedLine::of(text), 0).score;
        assert!((score("wifi code") - 1.0).abs() < 1e-9);
        assert!(score("wifi code wifi code") <= 1.0 + 1e-9);
        assert!(score("code") > score("wifi"));
        assert!(repeated(1) > repeated(2) && repeated(100) > 0.5);
        assert!(rarity(1, 1_000) > rarity(10, 1_000) && rarity(1_000, 1_000) > 0.0);
    }

    #[test]
    fn the_first_match_is_where_it_stands() {
        let query = Query::parse("\"at nine\" deploys");
        let scorer = Scorer::new(&query, &[1.0]);
        let line = PreparedLine::of("Café: the deploy is at nine");
        assert!(line.has_required(&query));
        assert_eq!(scorer.relevance(&line, 0).at, "Café: the ".len());
        assert!(!PreparedLine::of("the deploy is at ten").has_required(&query));
    }
}
