//! Fuzzes without a fuzzer: `cargo run -p vocative-fuzz -- TARGET --seconds 60 --seed N`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use vocative_fuzz::corpus::{Corpus, folder};
use vocative_fuzz::mutate::Mutator;
use vocative_fuzz::targets::{TARGETS, Target};

const USAGE: &str = "usage: vocative-fuzz TARGET|all [--seconds N] [--seed N] [--keep-last FILE]
       vocative-fuzz TARGET FILE...        runs these inputs and nothing else
       vocative-fuzz list

--seconds    how long each target runs (default 60)
--seed       which inputs are made (default 1); the same seed makes the same ones
--keep-last  writes each input there before it is run: for what kills the process, as an overflow of the
             stack does, instead of panicking

An input that breaks a promise is written to fuzz/corpus/TARGET/found-...; it stays there as a test.";

/// The stack of a runtime's worker, on which parsers run in the daemon.
const STACK_BYTES: usize = 2 << 20;

#[derive(Clone, Debug)]
struct Options {
    seconds: u64,
    seed: u64,
    keep_last: Option<PathBuf>,
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(name) = words.next() else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
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
    let broken = targets
        .into_iter()
        .filter(|target| !run_on_a_small_stack(target, options.clone()))
        .count();
    if broken > 0 {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn options(mut words: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options {
        seconds: 60,
        seed: 1,
        keep_last: None,
        files: Vec::new(),
    };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => options.seconds = words.next()?.parse().ok()?,
            "--seed" => options.seed = words.next()?.parse().ok()?,
            "--keep-last" => options.keep_last = Some(words.next()?.into()),
            word if word.starts_with("--") => return None,
            file => options.files.push(file.into()),
        }
    }
    Some(options)
}

fn run_on_a_small_stack(target: &'static Target, options: Options) -> bool {
    let thread = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || fuzz(target, &options));
    thread.is_ok_and(|thread| thread.join().unwrap_or(false))
}

/// Whether all went well.
fn fuzz(target: &Target, options: &Options) -> bool {
    let corpus = match Corpus::read(target.name) {
        Ok(corpus) if !corpus.seeds.is_empty() => corpus,
        _ => {
            eprintln!(
                "{}: no corpus in {}",
                target.name,
                folder(target.name).display()
            );
            return false;
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
            return false;
        }
    }
    if !options.files.is_empty() {
        println!("{}: {} inputs hold", target.name, known.len());
        return true;
    }
    generate(target, &corpus, options)
}

fn generate(target: &Target, corpus: &Corpus, options: &Options) -> bool {
    let mut mutator = Mutator::new(options.seed);
    let started = Instant::now();
    let end = Duration::from_secs(options.seconds);
    let (mut runs, mut slowest) = (0_u64, Duration::ZERO);
    while started.elapsed() < end {
        let input = mutator.input(corpus);
        if let Some(path) = &options.keep_last {
            let _ = std::fs::write(path, &input);
        }
        let before = Instant::now();
        if !holds(target, &input) {
            let path = folder(target.name).join(format!("found-{:016x}", fnv(&input)));
            let kept = keep(&path, &input);
            eprintln!("{}: broken after {runs} runs; {kept}", target.name);
            return false;
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
    true
}

fn holds(target: &Target, input: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_ok()
}

fn keep(path: &Path, input: &[u8]) -> String {
    match std::fs::write(path, input) {
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
