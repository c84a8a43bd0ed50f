//! How many facts that were said once are found again when asked for, compared with other ways to find them.
//!
//! Reading order: `facts` (the rooms), `yardsticks` (SQLite's full text, the newest lines), `meaning` (vectors alone),
//! `product` (Vocative's search), `score` (what came of it), `unasked` (what a prompt shows of it by itself).

mod facts;
mod meaning;
mod product;
mod score;
mod unasked;
mod yardsticks;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use vocative::cli::CliError;

use self::facts::{RecallQuestion, RecallRoom};
use self::meaning::Meanings;
use self::product::Product;
use self::score::Scores;
use self::yardsticks::{FullText, NEWEST, TermMatch, newest};
use crate::args::RecallArgs;
use crate::print;

/// How many hits are asked for.
const HITS: u8 = 20;
/// How many of them count as what a model reads.
const READ: usize = 5;

/// The result of a search.
struct RecallAnswer {
    /// Lines by their place in the room, the best first.
    lines: Vec<usize>,
    /// What the first [`READ`] hits cost a prompt, in tokens (UTF-16 units divided by four).
    tokens: usize,
    took: Duration,
}

/// Generates rooms, asks, and prints the table.
///
/// # Errors
/// The store or SQLite refuses.
pub(crate) fn run(args: &RecallArgs) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let lines = usize::try_from(args.lines).unwrap_or(usize::MAX);
    let (mut scores, mut missed) = (Scores::default(), Vec::new());
    for seed in args.seed..args.seed.saturating_add(args.rooms) {
        let room = RecallRoom::draw(lines, seed)?;
        yardsticks_of(&room, &mut scores)?;
        missed.extend(runtime.block_on(product_of(&room, args, &mut scores))?);
    }
    print(&scores.shown(args))?;
    print(&scores.unasked.told())?;
    if args.missed {
        print(&format!(
            "\nNot among the first {READ}:\n{}\n",
            missed.join("\n")
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn yardsticks_of(room: &RecallRoom, scores: &mut Scores) -> Result<(), CliError> {
    for words in TermMatch::ALL {
        let full_text = FullText::of(room, words)?;
        for question in &room.questions {
            let started = Instant::now();
            let lines = full_text.search(&question.wordings.join(" "), HITS.into())?;
            scores.add(
                words.name(),
                question,
                &answer(room, lines, started.elapsed()),
            );
        }
    }
    for question in &room.questions {
        let lines = newest(room);
        let tokens = lines
            .iter()
            .map(|line| tokens(&room.lines[*line].text))
            .sum();
        let took = Duration::ZERO;
        scores.add_all(
            NEWEST,
            question,
            &RecallAnswer {
                lines,
                tokens,
                took,
            },
        );
    }
    Ok(())
}

/// Asks Vocative, and returns the questions whose answers were not among its first hits.
async fn product_of(
    room: &RecallRoom,
    args: &RecallArgs,
    scores: &mut Scores,
) -> Result<Vec<String>, CliError> {
    let product = Product::of(room).await?;
    let mut missed = Vec::new();
    for question in &room.questions {
        let answer = product.search(room, question, None).await?;
        if !scores.add(product::NAME, question, &answer) {
            missed.push(missed_line(room, question, &answer));
        }
        let unasked = product.unasked(room, question).await?;
        scores.unasked.add(question, &unasked);
    }
    let Some(base_url) = &args.embeddings else {
        return Ok(missed);
    };
    let client = meaning::client(base_url, &args.model);
    let meanings = Meanings::of(room, &client).await?;
    for question in &room.questions {
        scores.add(
            meaning::NAME,
            question,
            &meanings.search(room, question).await?,
        );
    }
    let embeddings = product.embed(client).await?;
    missed.clear();
    for question in &room.questions {
        let answer = product.search(room, question, Some(&embeddings)).await?;
        if !scores.add(product::NAME_WITH_VECTORS, question, &answer) {
            missed.push(missed_line(room, question, &answer));
        }
    }
    Ok(missed)
}

fn missed_line(room: &RecallRoom, question: &RecallQuestion, answer: &RecallAnswer) -> String {
    let said = question
        .answers
        .iter()
        .map(|line| room.lines[*line].text.as_str());
    let found = answer
        .lines
        .iter()
        .take(READ)
        .map(|line| room.lines[*line].text.as_str());
    format!(
        "{}: {}\n    said: {}\n    found: {}",
        question.kind.name(),
        question.wordings.join(" / "),
        said.collect::<Vec<_>>().join(" / "),
        found.collect::<Vec<_>>().join(" / "),
    )
}

fn answer(room: &RecallRoom, lines: Vec<usize>, took: Duration) -> RecallAnswer {
    let read = lines.iter().take(READ);
    let tokens = read.map(|line| tokens(&room.lines[*line].text)).sum();
    RecallAnswer {
        lines,
        tokens,
        took,
    }
}

fn tokens(text: &str) -> usize {
    text.encode_utf16().count().div_ceil(4)
}

fn failed(what: String) -> CliError {
    CliError::Failed {
        what,
        advice: None,
        cause: None,
    }
}
