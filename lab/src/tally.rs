//! The results of the kills, and whether they are allowed. Counting reads the rooms as people see them, never the
//! store.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use vocative_contract::crash::Sabotage;
use vocative_sandbox::mcp::McpServer;
use vocative_sandbox::orders::TakenOrder;

use super::piece::RowPiece;
use super::plan::{DeathWay, Mode, PlanRow};
use super::scene::{AnswersDue, AskedScene, SceneQuestion};
use super::stage::{LabStage, NOTE};
use crate::args::CrashArgs;
use vocative::cli::table::table;

/// The longest time from a post's arrival to the end of the process that counts as "on its way": the answer's way back
/// and one commit, on a machine with ten times the load it can handle. The real time is printed; where nothing may be
/// doubled (`hold`, Slack) there is no such excuse.
const WINDOW_MAX_MS: i64 = 3_000;
/// How late the busy loopback platform may handle a request of a process that has ended.
const LATE_MAX_MS: i64 = 1_000;

/// The end of a process, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessEnd {
    /// When it was seen.
    pub(super) at_ms: i64,
    /// When the next one was started.
    pub(super) next_ms: i64,
}

/// How an unfinished text ends.
const MORE: char = '…';

/// The results of the questions of a row.
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
    /// Words that were to be erased.
    pub(super) erased: usize,
    /// Those of them that a file still holds.
    pub(super) left: usize,
    /// Milliseconds from a kill to the next start's first connection, one of each.
    pub(super) gaps_ms: Vec<u64>,
    /// Milliseconds from the last start to the first post.
    pub(super) resumed_ms: Vec<u64>,
    /// Answers doubled although they were not on their way at a kill.
    pub(super) doubled_outside: usize,
    /// Milliseconds from the arrival of a post to the kill, for posts that were sent twice.
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
        self.erased += other.erased;
        self.left += other.left;
        self.gaps_ms.extend(other.gaps_ms);
        self.doubled_outside += other.doubled_outside;
        self.window_ms.extend(other.window_ms);
        self.resumed_ms.extend(other.resumed_ms);
        self.wrong.extend(other.wrong);
    }

    /// Counts what the rooms show.
    pub(super) fn count(&mut self, stage: &LabStage, scene: &AskedScene, ends: &[ProcessEnd]) {
        self.count_cards(stage);
        for question in &scene.questions {
            let texts = stage.texts_at(&question.place);
            let outcome = outcome(question, &texts);
            if outcome == QuestionOutcome::Silent {
                continue;
            }
            self.messages += 1;
            self.count_orders(stage, &question.words[0]);
            match outcome {
                QuestionOutcome::Answered | QuestionOutcome::Silent => self.answered += 1,
                QuestionOutcome::Unwanted => {
                    self.unwanted(&question.words[0]);
                }
                QuestionOutcome::Lost => {
                    self.lost += 1;
                    self.wrong
                        .push(format!("{} is not answered", question.words[0]));
                }
                QuestionOutcome::Doubled => {
                    self.answered += 1;
                    self.doubled += 1;
                    self.note_doubled(
                        &question.words[0],
                        &stage.arrivals_ms(&question.words[0], &question.place),
                        ends,
                    );
                }
                QuestionOutcome::LeftBehind => {
                    self.lost += 1;
                    self.wrong.push(format!(
                        "the beginning of the answer to {} was left in the room",
                        question.words[0]
                    ));
                }
                QuestionOutcome::OutOfOrder => {
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
    /// Counts cards that still ask although the decision is over. Where a post of unknown outcome is sent again, a card
    /// may be there twice; a press on the other copy is told so.
    fn count_cards(&mut self, stage: &LabStage) {
        if stage.mode == Mode::TelegramResend {
            return;
        }
        for (chat, message, _) in stage.open_cards() {
            self.lost += 1;
            self.wrong
                .push(format!("the card {message} in {chat} is still open"));
        }
    }

    /// Counts orders that were placed twice for one question.
    fn count_orders(&mut self, stage: &LabStage, word: &str) {
        let orders = stage.shop.orders();
        let is_its = |order: &&TakenOrder| order.body.to_string().contains(word);
        let times = orders.iter().filter(is_its).count();
        if times > 1 {
            self.doubled += 1;
            self.doubled_outside += 1;
            self.wrong.push(format!("{word} was ordered {times} times"));
        }
        let sized = stage.desk.as_ref().map_or_else(Vec::new, McpServer::sized);
        let times = sized.iter().filter(|text| text.contains(word)).count();
        if times > 1 {
            self.doubled += 1;
            self.doubled_outside += 1;
            self.wrong
                .push(format!("the call for {word} went on {times} times"));
        }
        let is_unchanged = |order: &TakenOrder| order.body["note"] != NOTE;
        if stage.was_changed(word) && orders.iter().filter(is_its).any(is_unchanged) {
            self.lost += 1;
            let what = format!("{word} was ordered with the arguments from before the change");
            self.wrong.push(what);
        }
    }

    /// Notes that a daemon listens again.
    pub(super) fn note_gap(&mut self, end: Option<&ProcessEnd>) {
        let now_ms = chrono::Utc::now().timestamp_millis();
        let gap_ms = end.and_then(|end| u64::try_from(now_ms - end.at_ms).ok());
        self.gaps_ms.extend(gap_ms);
    }

    fn unwanted(&mut self, word: &str) {
        self.doubled += 1;
        self.doubled_outside += 1;
        let what = format!("{word} is answered although it was taken back");
        self.wrong.push(what);
    }

    /// Counts the words that a file below this folder still holds.
    pub(super) fn count_left(&mut self, folder: &Path, words: &[String]) -> std::io::Result<()> {
        for word in words {
            self.erased += 1;
            let files = files_with(folder, word)?;
            if !files.is_empty() {
                self.left += 1;
                let what = format!("{word} is still in {}", files.join(" and "));
                self.wrong.push(what);
            }
        }
        Ok(())
    }

    /// Counts what the memory holds of messages that belong there once each.
    pub(super) fn count_memory(&mut self, words: &[String], memory: &[Vec<String>]) {
        for word in words {
            self.messages += 1;
            let texts = memory.iter().flatten();
            match texts.filter(|text| text.contains(word.as_str())).count() {
                0 => {
                    self.lost += 1;
                    self.wrong.push(format!("{word} is not in memory"));
                }
                1 => self.answered += 1,
                _ => {
                    self.answered += 1;
                    self.doubled += 1;
                    self.doubled_outside += 1;
                    self.wrong.push(format!("{word} is in memory twice"));
                }
            }
        }
    }

    /// A post that arrived just before a kill was on its way then; any other one is doubled without
    /// an excuse.
    fn note_doubled(&mut self, word: &str, arrivals_ms: &[i64], ends: &[ProcessEnd]) {
        let on_its_way = |arrival_ms: &i64| {
            let after = ends
                .iter()
                .find(|end| *arrival_ms <= end.next_ms + LATE_MAX_MS)?;
            // A request that had left may arrive after the process ended.
            let age_ms = (after.at_ms - arrival_ms).max(0);
            (age_ms <= WINDOW_MAX_MS).then_some(age_ms)
        };
        match arrivals_ms.first().and_then(on_its_way) {
            Some(age_ms) => self.window_ms.push(u64::try_from(age_ms).unwrap_or(0)),
            None => self.doubled_outside += 1,
        }
        self.wrong.push(format!("{word} is answered twice"));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuestionOutcome {
    Answered,
    Lost,
    Doubled,
    OutOfOrder,
    /// A post still says that more comes.
    LeftBehind,
    /// Not answered, which is allowed.
    Silent,
    /// Answered, which is not allowed.
    Unwanted,
}

/// The outcome of a question: every word exactly once, in order; or what else is due.
fn outcome(question: &SceneQuestion, texts: &[String]) -> QuestionOutcome {
    match (question.due, said(question, texts)) {
        (AnswersDue::AtMostOnce | AnswersDue::Never, QuestionOutcome::Lost) => {
            QuestionOutcome::Silent
        }
        (AnswersDue::Never, _) => QuestionOutcome::Unwanted,
        (_, said) => said,
    }
}

fn said(question: &SceneQuestion, texts: &[String]) -> QuestionOutcome {
    let begins = |text: &&String| text.contains(question.words[0].as_str());
    let ends: Vec<bool> = texts
        .iter()
        .filter(begins)
        .map(|text| !text.ends_with(MORE))
        .collect();
    match ends.as_slice() {
        [] => return QuestionOutcome::Lost,
        [true] => {}
        [false] => return QuestionOutcome::LeftBehind,
        _ => return QuestionOutcome::Doubled,
    }
    let mut places = Vec::new();
    for word in &question.words {
        let holding = |(n, text): (usize, &String)| text.contains(word.as_str()).then_some(n);
        let found: Vec<usize> = texts.iter().enumerate().filter_map(holding).collect();
        match found.as_slice() {
            [] => return QuestionOutcome::Lost,
            [only] => places.push(*only),
            _ => return QuestionOutcome::Doubled,
        }
    }
    if places.is_sorted() {
        QuestionOutcome::Answered
    } else {
        QuestionOutcome::OutOfOrder
    }
}

/// The files below a folder that hold a word.
fn files_with(folder: &Path, word: &str) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            found.extend(files_with(&entry.path(), word)?);
        } else if kind.is_file() {
            // SQLite may delete a file at any time.
            let Ok(bytes) = std::fs::read(entry.path()) else {
                continue;
            };
            if bytes
                .windows(word.len())
                .any(|part| part == word.as_bytes())
            {
                found.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
    }
    Ok(found)
}

/// Whether the doubled answers of a row are within what is promised.
fn may_double(row: &PlanRow, tally: &Tally) -> bool {
    row.mode == Mode::TelegramResend && tally.doubled_outside == 0
}

/// The sums of the rows, whose pieces follow each other.
fn sums(played: &[(RowPiece, Tally)]) -> Vec<(PlanRow, Tally)> {
    let of_one_row = played.chunk_by(|(one, _), (other, _)| one.place == other.place);
    let sum = |pieces: &[(RowPiece, Tally)]| {
        let mut sum = Tally::default();
        for (_, tally) in pieces {
            sum.add(tally.clone());
        }
        (pieces[0].0.row, sum)
    };
    of_one_row.map(sum).collect()
}

/// What is wrong with a piece, if anything is.
fn wrong(piece: &RowPiece, tally: &Tally) -> Option<String> {
    let row = &piece.row;
    let mut wrong = Vec::new();
    if tally.unreached > 0 || (tally.kills == 0 && row.way != DeathWay::LeaseEnds) {
        let kills = tally.kills + tally.unreached;
        wrong.push(format!("reached {} of {kills} times", tally.kills));
    }
    let is_doubled = tally.doubled > 0 && !may_double(row, tally);
    if tally.lost + tally.left > 0 || is_doubled {
        wrong.extend(tally.wrong.iter().cloned());
    }
    (!wrong.is_empty()).then(|| format!("{} {}: {}", row.platform(), row.name(), wrong.join(", ")))
}

/// The table with what follows from it, and whether everything is as promised.
pub(super) fn report(
    played: &[(RowPiece, Tally)],
    args: &CrashArgs,
    sabotage: Option<Sabotage>,
    elapsed: Duration,
) -> (String, bool) {
    let mut rows = Vec::new();
    let mut sum = Tally::default();
    let by_row = sums(played);
    for (row, tally) in &by_row {
        rows.push(cells(row.platform(), row.name(), tally));
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
    out.push_str(&gaps(&mut sum.gaps_ms));
    if sum.erased > 0 {
        let _ = writeln!(
            out,
            "Of {} erased texts, {} were found in a file afterwards.",
            sum.erased, sum.left
        );
    }
    if sum.held > 0 {
        out.push_str(
            "Held posts were listed by `vocative held list`; each was looked for in its room and then let go \
             on with `vocative held release ID`, or dropped with `vocative held drop ID` where it was there.\n",
        );
    }
    if by_row
        .iter()
        .any(|(row, tally)| may_double(row, tally) && tally.doubled > 0)
    {
        out.push_str(
            "Telegram with on_unknown = \"resend\" may say twice what was on its way at the kill",
        );
        out.push_str(&spread(&mut sum.window_ms, " (it had arrived "));
        out.push_str(".\n");
    }
    let mut is_fine = true;
    for (piece, tally) in played {
        if let Some(wrong) = wrong(piece, tally) {
            is_fine = false;
            let _ = writeln!(out, "WRONG  {wrong}\n       {}", piece.command(args));
        }
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

/// How long no daemon was listening.
fn gaps(times_ms: &mut [u64]) -> String {
    times_ms.sort_unstable();
    match (times_ms.get(times_ms.len() / 2), times_ms.last()) {
        (Some(half), Some(longest)) => format!(
            "From a kill until the next process heard the platform: {half} ms in half of the cases, {longest} ms at most.\n"
        ),
        _ => String::new(),
    }
}

/// The median, with the 99th percentile in brackets; empty without times.
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
    use crate::scene::AnswerPlace;

    #[test]
    fn a_question_is_answered_when_each_word_is_there_once_and_in_order() {
        let question = SceneQuestion {
            words: vec!["q1-begin".to_owned(), "q1-end".to_owned()],
            place: AnswerPlace::Telegram(1),
            due: AnswersDue::Once,
        };
        let table: [(&[&str], QuestionOutcome); 8] = [
            (
                &["echo: q1-begin", "more q1-end"],
                QuestionOutcome::Answered,
            ),
            (&["echo: q1-begin q1-end"], QuestionOutcome::Answered),
            (&["echo: q1-begin"], QuestionOutcome::Lost),
            (&["echo: q1-begin …"], QuestionOutcome::LeftBehind),
            (
                &["echo: q1-begin …", "echo: q1-begin q1-end"],
                QuestionOutcome::Doubled,
            ),
            (&[], QuestionOutcome::Lost),
            (&["q1-begin", "q1-end", "q1-end"], QuestionOutcome::Doubled),
            (&["q1-end", "q1-begin"], QuestionOutcome::OutOfOrder),
        ];
        for (texts, expected) in table {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(outcome(&question, &texts), expected, "{texts:?}");
        }
    }

    #[test]
    fn a_stopped_question_may_be_silent_and_a_cancelled_one_must_be() {
        let question = |due| SceneQuestion {
            words: vec!["q1".to_owned()],
            place: AnswerPlace::Telegram(1),
            due,
        };
        let table: [(AnswersDue, &[&str], QuestionOutcome); 5] = [
            (AnswersDue::AtMostOnce, &[], QuestionOutcome::Silent),
            (AnswersDue::AtMostOnce, &["q1"], QuestionOutcome::Answered),
            (
                AnswersDue::AtMostOnce,
                &["q1", "q1"],
                QuestionOutcome::Doubled,
            ),
            (AnswersDue::Never, &[], QuestionOutcome::Silent),
            (AnswersDue::Never, &["q1"], QuestionOutcome::Unwanted),
        ];
        for (due, texts, expected) in table {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(
                outcome(&question(due), &texts),
                expected,
                "{due:?} {texts:?}"
            );
        }
    }

    #[test]
    fn a_message_belongs_into_the_memory_once() {
        let memory = [
            vec!["m1 x".to_owned(), "m2".to_owned()],
            vec!["m2".to_owned()],
        ];
        let words = ["m1", "m2", "m3"].map(str::to_owned);
        let mut tally = Tally::default();
        tally.count_memory(&words, &memory);
        assert_eq!((tally.messages, tally.lost, tally.doubled), (3, 1, 1));
    }

    #[test]
    fn what_was_on_its_way_at_a_kill_is_excused_and_nothing_else() {
        let ends = [(10_000, 10_200), (20_000, 20_200)]
            .map(|(at_ms, next_ms)| ProcessEnd { at_ms, next_ms });
        // The arrival of the first post, and how long before a kill it came, if that is an excuse.
        for (arrival_ms, expected) in [
            (9_950, Some(50)),
            (10_150, Some(0)),
            (11_150, Some(0)),
            (6_900, None),
            (11_250, None),
            (19_400, Some(600)),
            (21_300, None),
        ] {
            let mut tally = Tally::default();
            tally.note_doubled("q", &[arrival_ms, 99_999], &ends);
            assert_eq!(tally.window_ms.first().copied(), expected, "{arrival_ms}");
            assert_eq!(tally.doubled_outside, usize::from(expected.is_none()));
        }
    }
}
