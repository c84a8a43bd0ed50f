//! Which found lines are shown to a model that did not ask for them. Pure.
//!
//! A wrong line costs tokens and misleads; a missing one costs one call of the search tool. So a line must have a
//! word of the question that few lines have, and either most of what the question's words weigh, or clearly more
//! than any other line. What is found by its meaning must stand out from what is merely near. A line that only asks
//! answers nothing.

use std::collections::HashSet;

use super::query::Query;
use super::scoring::{PreparedLine, Scorer, rarity};
use super::text::{WordKind, words};

/// The most lines that are shown.
pub const RECALLED_MAX: usize = 5;
/// A line with this share of the weight of all words of a question clears the bar. Two words of three equally
/// rare ones do, one of two does not.
const SHARE_ENOUGH: f64 = 0.6;
/// A line with this share clears the bar if it also leads all others: it has at least a third of what is asked for.
const SHARE_LEADING: f64 = 1.0 / 3.0;
/// The factor by which the score of a leading line exceeds the next one's.
const LEAD: f64 = 1.3;
/// Lines behind the best one are shown down to this part of its score.
const BESIDE_BEST: f64 = 0.6;
/// A word in at most this number of lines is rare, however few lines there are.
const RARE_LINES_MIN: usize = 3;
/// A line that is found by its meaning covers at least this part of the way from the likeness of merely near lines to
/// being the same. Models differ in what they call alike, but hardly in this.
const LIKENESS_LIFT: f32 = 0.35;

/// Words that only greet, thank or agree, in plain form.
const COURTESIES: &[&str] = &[
    "afternoon",
    "allo",
    "bitte",
    "bonjour",
    "bye",
    "ciao",
    "danke",
    "evening",
    "goodbye",
    "gracias",
    "gruss",
    "guten",
    "hallo",
    "hello",
    "hey",
    "hi",
    "hiya",
    "hola",
    "merci",
    "moin",
    "morgen",
    "morning",
    "night",
    "obrigado",
    "ok",
    "okay",
    "please",
    "salut",
    "servus",
    "sorry",
    "thank",
    "thanks",
    "thx",
    "tschuss",
    "welcome",
    "yes",
    "здравствуйте",
    "пожалуиста",
    "привет",
    "спасибо",
];

/// A wording that was searched for, and how its words are spread over what was searched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wording {
    /// The query, with substitutes for words that no line has.
    pub query: Query,
    /// In how many lines each of its wished words is, as far as that is known.
    pub lines_with: Vec<usize>,
    /// How many lines there are.
    pub lines: usize,
}

/// A line that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate<'a> {
    /// What it says, mentions as names.
    pub text: &'a str,
    /// The name of who said it.
    pub speaker: &'a str,
    /// How alike it and the question are by their vectors; 0 = no vector found it.
    pub nearness: f32,
}

/// A question as it is searched for: without operators, and without the name of whom it is said to.
///
/// `own_names` = the names of the agent, in lower case.
#[must_use]
pub fn wording_of(question: &str, own_names: &[String]) -> String {
    let plain = question.replace(['"', '“', '”', '„', '*', '\0'], " ");
    let mut said = String::with_capacity(plain.len());
    for (place, word) in plain.split_whitespace().enumerate() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        // "Kael, ..." and "hey Kael, ...".
        if place < 2 && own_names.contains(&bare.to_lowercase()) {
            continue;
        }
        if !said.is_empty() {
            said.push(' ');
        }
        said.push_str(word.trim_start_matches('+'));
    }
    said
}

/// Whether a question has a word to look for: more than greetings and words that only hold sentences together.
#[must_use]
pub fn asks_for_something(wording: &str) -> bool {
    let query = Query::parse(wording);
    let is_telling = |plain: &str| !COURTESIES.contains(&plain);
    !query.is_only_grammar && query.wished.iter().any(|wish| is_telling(&wish.plain))
}

/// The found lines that clear the bar, by their places among the candidates, the best first.
///
/// Candidates come in the order of their ranks. `near_usually` = how alike a line is that is near, but no nearer than
/// many.
#[must_use]
pub fn cleared(
    wordings: &[Wording],
    candidates: &[Candidate<'_>],
    near_usually: Option<f32>,
) -> Vec<usize> {
    let judges: Vec<LineJudge> = wordings.iter().filter_map(LineJudge::of).collect();
    if judges.is_empty() {
        return Vec::new();
    }
    let standings: Vec<LineStanding> = candidates
        .iter()
        .map(|candidate| LineStanding::of(candidate, &judges, near_usually))
        .collect();
    let mut scores: Vec<f64> = standings.iter().map(|it| it.score).collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    let (best, next) = (
        scores.first().copied().unwrap_or_default(),
        scores.get(1).copied().unwrap_or_default(),
    );
    let is_leading = |it: &LineStanding| {
        it.share >= SHARE_LEADING && it.score >= best && it.score >= next * LEAD
    };
    let clears = |it: &&LineStanding| {
        let by_words =
            it.has_rare && !it.lacks_names && (it.share >= SHARE_ENOUGH || is_leading(it));
        !it.asks && (it.is_near || (by_words && it.score >= best * BESIDE_BEST))
    };
    let places = standings.iter().enumerate();
    let cleared = places.filter(|(_, it)| clears(it)).map(|(place, _)| place);
    cleared.take(RECALLED_MAX).collect()
}

/// Whether a line's words are already in something that is shown, one after the other.
///
/// `shown` = texts by [`sequence`].
#[must_use]
pub fn is_shown(text: &str, shown: &[String]) -> bool {
    let text = sequence(text);
    // Spaces around both, so that only whole words match.
    text.trim().is_empty() || shown.iter().any(|other| other.contains(&text))
}

/// The words of a text in plain form, each between spaces.
#[must_use]
pub fn sequence(text: &str) -> String {
    let words = words(text).into_iter();
    let words = words.filter(|word| matches!(word.kind, WordKind::Spaced | WordKind::Single));
    let mut sequence = " ".to_owned();
    for word in words {
        sequence.push_str(&word.plain);
        sequence.push(' ');
    }
    sequence
}

/// The most lines that a rare word may be in: the square root of the number of lines, so that it means something in
/// rooms of ten lines and of a million.
fn rare_lines(lines: usize) -> usize {
    lines.isqrt().max(RARE_LINES_MIN)
}

/// What a question's words weigh.
struct LineJudge {
    scorer: Scorer,
    /// The words that are the names of people.
    plains: Vec<String>,
    weights: Vec<f64>,
    is_rare: Vec<bool>,
    /// Which words are names that some line has.
    is_name: Vec<bool>,
}

impl LineJudge {
    /// `None` where no word of the question is rare.
    fn of(wording: &Wording) -> Option<Self> {
        let mut query = wording.query.clone();
        let (mut rarities, mut is_rare, mut is_name) = (Vec::new(), Vec::new(), Vec::new());
        for (n, wish) in query.wished.iter_mut().enumerate() {
            let lines_with = wording.lines_with.get(n).copied().unwrap_or_default();
            let is_courtesy = COURTESIES.contains(&wish.plain.as_str());
            if is_courtesy {
                wish.weight = 0.0;
            }
            rarities.push(rarity(lines_with, wording.lines));
            let is_said = lines_with > 0;
            is_name.push(wish.is_name && is_said);
            is_rare.push(is_said && !is_courtesy && lines_with <= rare_lines(wording.lines));
        }
        let weights = query.wished.iter().zip(&rarities);
        let weights: Vec<f64> = weights.map(|(wish, rarity)| wish.weight * rarity).collect();
        let is_worth_it = !query.is_only_grammar && is_rare.contains(&true);
        is_worth_it.then(|| Self {
            scorer: Scorer::new(&query, &rarities),
            plains: query.wished.into_iter().map(|wish| wish.plain).collect(),
            weights,
            is_rare,
            is_name,
        })
    }
}

/// How well a line answers the question that it answers best.
#[derive(Debug, Default)]
struct LineStanding {
    asks: bool,
    is_near: bool,
    has_rare: bool,
    /// It says none of the names in the question.
    lacks_names: bool,
    share: f64,
    score: f64,
}

impl LineStanding {
    fn of(candidate: &Candidate<'_>, judges: &[LineJudge], near_usually: Option<f32>) -> Self {
        let line = PreparedLine::of(candidate.text);
        let speaker = words(candidate.speaker).into_iter().map(|word| word.plain);
        let speaker: HashSet<String> = speaker.collect();
        let lift = near_usually.map(|usual| (candidate.nearness - usual) / (1.0 - usual).max(0.01));
        let mut best = Self {
            asks: line.asks,
            is_near: candidate.nearness > 0.0 && lift.is_some_and(|lift| lift >= LIKENESS_LIFT),
            ..Self::default()
        };
        for judge in judges {
            let is_speaker = |plain: &String| speaker.contains(plain);
            let named = judge.plains.iter().map(is_speaker).enumerate();
            let said_by = named.fold(0_u64, |bits, (n, is_one)| {
                bits | (u64::from(is_one) << n.min(63))
            });
            let relevance = judge.scorer.relevance(&line, said_by);
            let has = |n: &usize| relevance.wishes & (1 << (*n).min(63)) != 0;
            let weight = |n: usize| judge.weights[n];
            let places = 0..judge.weights.len();
            let whole: f64 = places.clone().map(weight).sum();
            let part: f64 = places.clone().filter(has).map(weight).sum();
            if whole > 0.0 && relevance.score > best.score {
                best.score = relevance.score;
                best.share = part / whole;
                best.has_rare = places.clone().filter(has).any(|n| judge.is_rare[n]);
                let mut names = places.filter(|n| judge.is_name[*n]).peekable();
                best.lacks_names = names.peek().is_some() && !names.any(|n| has(&n));
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question, lines with how many there are of their words, and those that are shown.
    fn shown<'a>(question: &str, lines: &[&'a str], of: usize) -> Vec<&'a str> {
        let query = Query::parse(&wording_of(question, &["kael".to_owned()]));
        let even = Scorer::new(&query, &vec![1.0; query.wished.len()]);
        let read: Vec<PreparedLine> = lines.iter().map(|line| PreparedLine::of(line)).collect();
        let lines_with = (0..query.wished.len()).map(|n| {
            let has = |line: &&PreparedLine| even.relevance(line, 0).wishes & (1 << n) != 0;
            read.iter().filter(has).count()
        });
        let wording = Wording {
            lines_with: lines_with.collect(),
            lines: of,
            query,
        };
        let candidates: Vec<Candidate<'_>> = lines
            .iter()
            .map(|text| Candidate {
                text,
                speaker: "Ann",
                nearness: 0.0,
            })
            .collect();
        let places = cleared(&[wording], &candidates, None);
        places.into_iter().map(|place| lines[place]).collect()
    }

    #[test]
    fn what_answers_is_shown_and_nothing_else() {
        let deploy = "Morning! The deploy of build 42 is planned for 15:00.";
        let wifi = "Lisbon office: the guest network code is blue-otter-77";
        let cases: [(&str, &[&str], usize, &[&str]); 14] = [
            (
                "when is the deploy?",
                &[deploy, "Fine with me."],
                3,
                &[deploy],
            ),
            ("Kael, when is the deploy?", &[deploy], 3, &[deploy]),
            // A greeting, thanks, and what has no word to look for.
            ("hello!", &["hello world does not compile"], 50, &[]),
            ("good morning, thanks", &[deploy], 50, &[]),
            ("who are you?", &["you are who you are"], 50, &[]),
            // A question is no answer to another one.
            (
                "when is the deploy?",
                &["when will the deploy be?"],
                50,
                &[],
            ),
            // One word of three, and no other line has any.
            ("what is the Lisbon network password", &[wifi], 50, &[wifi]),
            // One of four is too little, however alone.
            ("the Lisbon parking permit form", &[wifi], 50, &[]),
            // A third of the words, and another line has as much.
            (
                "is the Lisbon wifi password new",
                &["the Lisbon office is closed", "Lisbon is warm"],
                50,
                &[],
            ),
            // A line far behind the best one stays out.
            (
                "what is the guest network code in Lisbon",
                &[wifi, "Lisbon is warm"],
                50,
                &[wifi],
            ),
            // The code of one office is no answer about another one that the room knows.
            (
                "what is the guest network code in Oslo",
                &[wifi, "Oslo is cold"],
                50,
                &[],
            ),
            (
                "what is the guest network code in Bergen",
                &[wifi],
                50,
                &[wifi],
            ),
            ("", &[deploy], 3, &[]),
            ("\u{1f389}", &[deploy], 3, &[]),
        ];
        for (question, lines, of, expected) in cases {
            assert_eq!(shown(question, lines, of), expected, "{question:?}");
        }
    }

    #[test]
    fn a_word_that_is_everywhere_is_not_worth_a_line() {
        let lines: Vec<String> = (0..200)
            .map(|n| format!("the build number {n} is green"))
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(shown("is the build green?", &lines, 400), [""; 0]);
        assert_eq!(shown("is the build green?", &lines[..2], 400).len(), 2);
        // However many lines clear it, a bounded number is shown.
        assert_eq!(
            shown("is the build green?", &lines[..9], 400).len(),
            RECALLED_MAX
        );
        let (few, many) = (rare_lines(0), rare_lines(1_000_000));
        assert_eq!((few, many), (RARE_LINES_MIN, 1_000));
    }

    #[test]
    fn what_is_found_by_its_meaning_must_stand_out() {
        let query = Query::parse("wifi password");
        let wording = Wording {
            lines_with: vec![1, 0],
            lines: 400,
            query,
        };
        let near = |nearness| Candidate {
            text: "the network is called otter",
            speaker: "Ann",
            nearness,
        };
        let wordings = [wording];
        let table = [
            // Nearness of the line, nearness of lines that are merely near, whether the line is shown.
            (0.7, Some(0.3), true),
            (0.4, Some(0.3), false),
            (0.88, Some(0.8), true),
            (0.85, Some(0.8), false),
            (0.7, None, false),
            (0.0, Some(-1.0), false),
        ];
        for (nearness, usual, expected) in table {
            let shown = cleared(&wordings, &[near(nearness)], usual);
            assert_eq!(!shown.is_empty(), expected, "{nearness} {usual:?}");
        }
    }

    #[test]
    fn a_question_has_no_operators() {
        let own = ["kael".to_owned()];
        let cases = [
            (
                "Kael, is \"the deploy\" at +9 or dep*?",
                "is the deploy at 9 or dep ?",
            ),
            ("hey @Kael: +plan", "hey plan"),
            ("what did Ann tell Kael", "what did Ann tell Kael"),
            ("", ""),
        ];
        for (question, expected) in cases {
            assert_eq!(wording_of(question, &own), expected);
            assert!(Query::parse(expected).required.is_empty());
        }
        assert!(asks_for_something("when is the deploy"));
        assert!(!asks_for_something("hello, thanks!") && !asks_for_something("who are you"));
    }

    #[test]
    fn what_is_there_already_is_recognised_by_its_words() {
        let shown = ["Ann said: the Deploy is at nine!", "東京に行く"].map(sequence);
        for (text, expected) in [
            ("the deploy is at nine", true),
            ("The deploy - is at nine?", true),
            ("the deploy is at ten", false),
            ("deploy is at ni", false),
            ("東京", true),
            (" !", true),
        ] {
            assert_eq!(is_shown(text, &shown), expected, "{text}");
        }
    }
}
