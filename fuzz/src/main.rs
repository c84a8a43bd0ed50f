//! Fuzzes without a fuzzer: `cargo run -p vocative-fuzz -- TARGET --seconds 60 --seed N`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use vocative_fuzz::corpus::{Corpus, folder};
use vocative_fuzz::mutate::Mutator;
use vocative_fuzz::targets::{TARGETS, Target};
use vocative_fuzz::work::parsers::PARSERS;
use vocative_fuzz::work::{Worst, worst};

const USAGE: &str = "usage: vocative-fuzz TARGET|all [--seconds N | --inputs N] [--seed N|random]
                     [--report-only] [--keep-in FOLDER] [--keep-last FILE]
       vocative-fuzz TARGET FILE...        runs these inputs and nothing else
       vocative-fuzz list
       vocative-fuzz work [KB...]          what parsers look at per byte of the worst text of each size

--seconds      how long each target runs (default 60)
--inputs       how many inputs each target runs instead
--seed         which inputs are made (default 1); the same seed makes the same ones of the same corpus;
               random draws a seed and prints it
--report-only  what new inputs break is told, and no failure of this command; known inputs still are
--keep-in      where an input that breaks a promise is written, as TARGET/found-... (default: the corpus,
               where it stays as a test)
--keep-last    writes each input there before it is run: for what kills the process, as an overflow of the
               stack does, instead of panicking";

/// The stack of a runtime's worker, on which parsers run in the daemon.
const STACK_BYTES: usize = 2 << 20;

/// The sizes of texts whose work is printed, in KB.
const SIZES_KB: [usize; 4] = [1, 10, 100, 1_000];

/// Drawn seeds are short enough to be typed.
const DRAWN_SEEDS: u128 = 1_000_000;

#[derive(Clone, Debug)]
struct Options {
    bound: Bound,
    seed: u64,
    report_only: bool,
    keep_in: Option<PathBuf>,
    keep_last: Option<PathBuf>,
    files: Vec<PathBuf>,
}

/// When a target has run enough.
#[derive(Clone, Copy, Debug)]
enum Bound {
    After(Duration),
    Inputs(u64),
}

/// What became of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Held,
    /// An input of the corpus or of the command line breaks it, or there is no corpus.
    KnownBroken,
    NewBroken,
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(name) = words.next() else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    if name == "work" {
        let sizes: Result<Vec<usize>, _> = words.map(|word| word.parse()).collect();
        return match sizes {
            Ok(sizes) => table(&sizes),
            Err(_) => {
                eprintln!("{USAGE}");
                ExitCode::FAILURE
            }
        };
    }
    if name == "list" {
        for target in TARGETS {
            println!("{:16} {}", target.name, target.input);
        }
        return ExitCode::SUCCESS;
    }
    let targets: Vec<&'static Target> = TARGETS
        .iter()
        .filter(|target| name == "all" || name == target.name)
        .collect();
    let (Some(options), false) = (options(words), targets.is_empty()) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    if options.files.is_empty() {
        println!("seed {}", options.seed);
    }
    let run = |target| run_on_a_small_stack(target, options.clone());
    let outcomes: Vec<Outcome> = targets.into_iter().map(run).collect();
    let is_fine = |outcome: &Outcome| match outcome {
        Outcome::Held => true,
        Outcome::KnownBroken => false,
        Outcome::NewBroken => options.report_only,
    };
    if outcomes.iter().all(is_fine) {
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}

/// Prints the work of all parsers: a row for each, a column for each size.
fn table(sizes: &[usize]) -> ExitCode {
    let sizes = if sizes.is_empty() { &SIZES_KB } else { sizes };
    let columns: Vec<String> = sizes.iter().map(|size| format!("{size} KB")).collect();
    println!("| parser | {} | the worst text |", columns.join(" | "));
    println!("|---|{}---|", "--:|".repeat(columns.len()));
    for parser in PARSERS {
        let worst: Vec<Worst> = sizes
            .iter()
            .map(|size| worst(parser, size * 1_000))
            .collect();
        let cells: Vec<String> = worst
            .iter()
            .map(|it| format!("{:.1}", it.per_byte))
            .collect();
        let input = worst.last().map_or("", |it| it.input);
        println!("| {} | {} | {input} |", parser.name, cells.join(" | "));
    }
    ExitCode::SUCCESS
}

fn options(mut words: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options {
        bound: Bound::After(Duration::from_secs(60)),
        seed: 1,
        report_only: false,
        keep_in: None,
        keep_last: None,
        files: Vec::new(),
    };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => {
                let seconds = words.next()?.parse().ok()?;
                options.bound = Bound::After(Duration::from_secs(seconds));
            }
            "--inputs" => options.bound = Bound::Inputs(words.next()?.parse().ok()?),
            "--seed" => options.seed = seed(&words.next()?)?,
            "--report-only" => options.report_only = true,
            "--keep-in" => options.keep_in = Some(words.next()?.into()),
            "--keep-last" => options.keep_last = Some(words.next()?.into()),
            word if word.starts_with("--") => return None,
            file => options.files.push(file.into()),
        }
    }
    Some(options)
}

fn seed(word: &str) -> Option<u64> {
    if word != "random" {
        return word.parse().ok();
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let drawn = since.map_or(0, |since| since.as_nanos() / 1_000 % DRAWN_SEEDS);
    u64::try_from(drawn).ok()
}

fn run_on_a_small_stack(target: &'static Target, options: Options) -> Outcome {
    let thread = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || fuzz(target, &options));
    let outcome = thread.map(|thread| thread.join().unwrap_or(Outcome::KnownBroken));
    outcome.unwrap_or(Outcome::KnownBroken)
}

fn fuzz(target: &Target, options: &Options) -> Outcome {
    let corpus = match Corpus::read(target.name) {
        Ok(corpus) if !corpus.seeds.is_empty() => corpus,
        _ => {
            eprintln!(
                "{}: no corpus in {}",
                target.name,
                folder(target.name).display()
            );
            return Outcome::KnownBroken;
        }
    };
    let known: Vec<Vec<u8>> = if options.files.is_empty() {
        corpus.seeds.iter().map(|seed| seed.bytes.clone()).collect()
    } else {
        options
            .files
            .iter()
            .filter_map(|file| std::fs::read(file).ok())
            .collect()
    };
    for input in &known {
        if !holds(target, input) {
            eprintln!("{}: a known input breaks it", target.name);
            return Outcome::KnownBroken;
        }
    }
    if !options.files.is_empty() {
        println!("{}: {} inputs hold", target.name, known.len());
        return Outcome::Held;
    }
    generate(target, &corpus, options)
}

fn generate(target: &Target, corpus: &Corpus, options: &Options) -> Outcome {
    let mut mutator = Mutator::new(options.seed);
    let started = Instant::now();
    let (mut runs, mut slowest) = (0_u64, Duration::ZERO);
    let goes_on = |runs| match options.bound {
        Bound::After(time) => started.elapsed() < time,
        Bound::Inputs(inputs) => runs < inputs,
    };
    while goes_on(runs) {
        let input = mutator.input(corpus);
        if let Some(path) = &options.keep_last {
            let _ = std::fs::write(path, &input);
        }
        let before = Instant::now();
        if !holds(target, &input) {
            let folder = options
                .keep_in
                .as_ref()
                .map_or_else(|| folder(target.name), |root| root.join(target.name));
            let path = folder.join(format!("found-{:016x}", fnv(&input)));
            eprintln!(
                "{}",
                report(target.name, options.seed, runs, &keep(&path, &input))
            );
            return Outcome::NewBroken;
        }
        slowest = slowest.max(before.elapsed());
        runs += 1;
    }
    let rate = runs as f64 / started.elapsed().as_secs_f64();
    println!(
        "{:16} {runs:>9} runs, {rate:>8.0} a second, slowest {} ms, seed {}",
        target.name,
        slowest.as_millis(),
        options.seed
    );
    Outcome::Held
}

/// What is told of a new input that breaks a target, with the command that makes it again.
fn report(target: &str, seed: u64, runs: u64, kept: &str) -> String {
    let inputs = runs + 1;
    format!(
        "{target}: broken by a new input after {runs} runs of seed {seed}; {kept}\n  \
         again: cargo run -p vocative-fuzz -- {target} --seed {seed} --inputs {inputs}"
    )
}

fn holds(target: &Target, input: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_ok()
}

fn keep(path: &Path, input: &[u8]) -> String {
    let folder = path.parent().unwrap_or(Path::new("."));
    match std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, input)) {
        Ok(()) => format!("the input is {}", path.display()),
        Err(error) => format!("the input can't be kept in {}: {error}", path.display()),
    }
}

/// FNV-1a: a short name for an input.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_target_seed_input_and_the_command_to_repeat_it() {
        assert_eq!(
            report("split", 42, 7, "the input is x/found-1"),
            "split: broken by a new input after 7 runs of seed 42; the input is x/found-1\n  \
             again: cargo run -p vocative-fuzz -- split --seed 42 --inputs 8"
        );
    }

    #[test]
    fn a_seed_is_a_number_or_drawn() {
        assert_eq!(seed("7"), Some(7));
        assert_eq!(seed("seven"), None);
        assert!(seed("random").is_some_and(|seed| u128::from(seed) < DRAWN_SEEDS));
    }
}
