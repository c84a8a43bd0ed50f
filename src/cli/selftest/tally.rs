//! What came of the kills, and whether that is allowed. Counting reads the rooms as people see them,
//! never the store.

use std::fmt::Write as _;
use std::time::Duration;

use vocative_channels::crash::Sabotage;

use super::plan::{Mode, Row, Way};
use super::scene::{Question, Scene};
use super::stage::Stage;
use crate::cli::args::CrashArgs;
use crate::cli::table::table;

/// The longest time from a post's arrival to the end of the process that counts as "on its way": the
/// answer's way back and one commit, on a busy machine.
const WINDOW_MAX_MS: i64 = 1_000;

/// What became of the questions of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) kills: usize,
    /// Steps in which the point was not reached.
    pub(super) unreached: usize,
    pub(super) messages: usize,
    pub(super) answered: usize,
    pub(super) lost: usize,
    pub(super) doubled: usize,
    pub(super) held: usize,
    /// Milliseconds from the last start to the first post.
    pub(super) resumed_ms: Vec<u64>,
    /// Doubled ones that were not on their way at a kill.
    pub(super) doubled_outside: usize,
    /// Milliseconds from the arrival of a post to the kill, of those that were said twice.
    pub(super) window_ms: Vec<u64>,
    /// What is wrong, in words.
    pub(super) wrong: Vec<String>,
}

impl Tally {
    /// Adds another scene's.
    pub(super) fn add(&mut self, other: Self) {
        self.kills += other.kills;
        self.unreached += other.unreached;
        self.messages += other.messages;
        self.answered += other.answered;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.held += other.held;
        self.doubled_outside += other.doubled_outside;
        self.window_ms.extend(other.window_ms);
        self.resumed_ms.extend(other.resumed_ms);
        self.wrong.extend(other.wrong);
    }

    /// Counts what the rooms show.
    pub(super) fn count(&mut self, stage: &Stage, scene: &Scene, kills_ms: &[i64]) {
        for question in &scene.questions {
            self.messages += 1;
            let texts = stage.texts_at(&question.place);
            match outcome(question, &texts) {
                Outcome::Answered => self.answered += 1,
                Outcome::Lost => {
                    self.lost += 1;
                    self.wrong
                        .push(format!("{} is not answered", question.words[0]));
                }
                Outcome::Doubled => {
                    self.answered += 1;
                    self.doubled += 1;
                    self.note_doubled(&question.words[0], stage, kills_ms);
                }
                Outcome::OutOfOrder => {
                    self.lost += 1;
                    self.wrong.push(format!(
                        "the parts of {} are out of order",
                        question.words[0]
                    ));
                }
            }
        }
    }
}

impl Tally {
    /// A post that arrived just before a kill was on its way then; any other one is doubled without
    /// an excuse.
    fn note_doubled(&mut self, word: &str, stage: &Stage, kills_ms: &[i64]) {
        let arrivals_ms = stage.arrivals_ms(word);
        let on_its_way = |arrival_ms: &i64| {
            let ages_ms = kills_ms.iter().map(|kill_ms| kill_ms - arrival_ms);
            ages_ms
                .filter(|age_ms| (0..=WINDOW_MAX_MS).contains(age_ms))
                .min()
        };
        match arrivals_ms.first().and_then(on_its_way) {
            Some(age_ms) => self.window_ms.push(u64::try_from(age_ms).unwrap_or(0)),
            None => self.doubled_outside += 1,
        }
        self.wrong.push(format!("{word} is answered twice"));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Answered,
    Lost,
    Doubled,
    OutOfOrder,
}

/// Every word exactly once, in order.
fn outcome(question: &Question, texts: &[String]) -> Outcome {
    let mut places = Vec::new();
    for word in &question.words {
        let holding = |(n, text): (usize, &String)| text.contains(word.as_str()).then_some(n);
        let found: Vec<usize> = texts.iter().enumerate().filter_map(holding).collect();
        match found.as_slice() {
            [] => return Outcome::Lost,
            [only] => places.push(*only),
            _ => return Outcome::Doubled,
        }
    }
    if places.is_sorted() {
        Outcome::Answered
    } else {
        Outcome::OutOfOrder
    }
}

/// Whether the doubled answers of a row are within what is promised.
fn may_double(row: &Row, tally: &Tally) -> bool {
    row.mode == Mode::TelegramResend && tally.doubled_outside == 0
}

/// The table with what follows from it, and whether all is as it must be.
pub(super) fn report(
    played: &[(Row, Tally)],
    args: &CrashArgs,
    sabotage: Option<Sabotage>,
    elapsed: Duration,
) -> (String, bool) {
    let mut rows = Vec::new();
    let mut wrong = Vec::new();
    let mut sum = Tally::default();
    for (row, tally) in played {
        rows.push(cells(row.mode.name(), row.name(), tally));
        if tally.kills == 0 && row.way != Way::LeaseEnds {
            wrong.push(format!("{} {}: never reached", row.mode.name(), row.name()));
        }
        if tally.lost > 0 || (tally.doubled > 0 && !may_double(row, tally)) {
            let what = tally.wrong.join(", ");
            wrong.push(format!("{} {}: {what}", row.mode.name(), row.name()));
        }
        sum.add(tally.clone());
    }
    rows.push(cells("all", "", &sum));
    let header = [
        "platform",
        "killed at",
        "kills",
        "messages",
        "answered",
        "lost",
        "doubled",
        "held",
    ];
    let mut out = table(&header, &rows);
    let _ = writeln!(
        out,
        "\n{} kills in {} s; seed {}{}{}.",
        sum.kills,
        elapsed.as_secs(),
        args.seed,
        if args.faults { ", with faults" } else { "" },
        sabotage.map_or_else(String::new, |promise| format!(
            ", sabotaged: {}",
            promise.name()
        )),
    );
    out.push_str(&resumed(&mut sum.resumed_ms));
    if sum.held > 0 {
        out.push_str(
            "Held posts were listed by `vocative held list`; each was looked for in its room and then let go \
             on with `vocative held release ID`, or dropped with `vocative held drop ID` where it was there.\n",
        );
    }
    if played
        .iter()
        .any(|(row, tally)| may_double(row, tally) && tally.doubled > 0)
    {
        out.push_str(
            "Telegram with on_unknown = \"resend\" may say twice what was on its way at the kill",
        );
        out.push_str(&spread(&mut sum.window_ms, " (it had arrived "));
        out.push_str(".\n");
    }
    let is_fine = wrong.is_empty();
    for line in &wrong {
        let _ = writeln!(out, "WRONG  {line}");
    }
    out.push_str(if is_fine {
        "Nothing is lost, and nothing is doubled that may not be.\n"
    } else {
        "This is not what is promised.\n"
    });
    (out, is_fine)
}

fn cells(platform: &str, name: &str, tally: &Tally) -> Vec<String> {
    let numbers = [
        tally.kills,
        tally.messages,
        tally.answered,
        tally.lost,
        tally.doubled,
        tally.held,
    ];
    let names = [platform, name].into_iter().map(str::to_owned);
    names
        .chain(numbers.iter().map(ToString::to_string))
        .collect()
}

/// How soon the first post came after a start.
fn resumed(times_ms: &mut [u64]) -> String {
    times_ms.sort_unstable();
    let at = |percent: usize| times_ms.get(times_ms.len().saturating_sub(1) * percent / 100);
    match (at(50), at(99)) {
        (Some(half), Some(most)) => format!(
            "From a start to the first post that was left: {half} ms in half of the cases, {most} ms in 99 of 100.\n"
        ),
        _ => String::new(),
    }
}

/// The middle and the 99th percentile in brackets; nothing without times.
fn spread(times_ms: &mut [u64], what: &str) -> String {
    times_ms.sort_unstable();
    let at = |percent: usize| times_ms.get(times_ms.len().saturating_sub(1) * percent / 100);
    match (at(50), at(99)) {
        (Some(half), Some(most)) => {
            format!("{what}{half} ms before it in half of the cases, {most} ms in 99 of 100)")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::selftest::scene::Place;

    #[test]
    fn a_question_is_answered_when_each_word_is_there_once_and_in_order() {
        let question = Question {
            words: vec!["q1-begin".to_owned(), "q1-end".to_owned()],
            place: Place::Telegram(1),
        };
        let table: [(&[&str], Outcome); 6] = [
            (&["echo: q1-begin", "more q1-end"], Outcome::Answered),
            (&["echo: q1-begin q1-end"], Outcome::Answered),
            (&["echo: q1-begin"], Outcome::Lost),
            (&[], Outcome::Lost),
            (&["q1-begin", "q1-end", "q1-end"], Outcome::Doubled),
            (&["q1-end", "q1-begin"], Outcome::OutOfOrder),
        ];
        for (texts, expected) in table {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(outcome(&question, &texts), expected, "{texts:?}");
        }
    }
}
