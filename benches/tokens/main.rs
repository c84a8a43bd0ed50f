//! The error and the speed of each token counter, per script, on `tests/fixtures/tokens/corpus.toml`:
//! `cargo bench --bench tokens` (with `--features tiktoken` also the exact one).
//!
//! The error is against the corpus' own counts by `o200k`. Prints what it measures and judges
//! nothing; `tests/token_corpus.rs` holds the limits.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use vocative_core::prompting::{ClassEstimate, TokenCounter, Utf16Div4};

type Fail = Box<dyn std::error::Error + Send + Sync>;

/// A text of fewer tokens is no measure: one token more or less is a tenth of it.
const ERROR_MIN_TOKENS: u32 = 20;
/// Each script is counted again and again for at least so long.
const TIMED: Duration = Duration::from_millis(200);

#[derive(serde::Deserialize)]
struct Corpus {
    text: Vec<SampleText>,
}

#[derive(serde::Deserialize)]
struct SampleText {
    script: String,
    o200k: u32,
    text: String,
}

/// Characters divided by four: the estimate that is everywhere.
struct CharsDiv4;

impl TokenCounter for CharsDiv4 {
    fn name(&self) -> &'static str {
        "chars_div4"
    }

    fn count(&self, text: &str) -> u32 {
        u32::try_from(text.chars().count().div_ceil(4)).unwrap_or(u32::MAX)
    }

    fn per_message_overhead(&self) -> u32 {
        0
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("no figure: {cause}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Fail> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/tokens/corpus.toml"
    );
    let corpus: Corpus = toml::from_str(&std::fs::read_to_string(path)?)?;
    let counters: Vec<&dyn TokenCounter> = vec![
        &ClassEstimate,
        &Utf16Div4,
        &CharsDiv4,
        #[cfg(feature = "tiktoken")]
        &vocative_core::prompting::O200k,
    ];
    print!("{:12}{:>8}", "script", "tokens");
    for counter in &counters {
        print!("  {:>24}", counter.name());
    }
    println!(
        "\n{:20}{}",
        "",
        "  bias   p95     µs/KiB  ".repeat(counters.len())
    );
    for script in scripts(&corpus.text) {
        let texts: Vec<&SampleText> = corpus.text.iter().filter(|t| t.script == script).collect();
        let tokens: u32 = texts.iter().map(|text| text.o200k).sum();
        print!("{script:12}{tokens:>8}");
        for counter in &counters {
            let figure = Figure::of(*counter, &texts);
            print!(
                "  {:>+5.1}% {:>5.1}% {:>9.2}",
                figure.bias * 100.0,
                figure.percentile_95 * 100.0,
                figure.micros_per_kib
            );
        }
        println!();
    }
    Ok(())
}

/// In the order of the corpus, each once.
fn scripts(texts: &[SampleText]) -> Vec<&str> {
    let mut scripts: Vec<&str> = Vec::new();
    for text in texts {
        if !scripts.contains(&text.script.as_str()) {
            scripts.push(&text.script);
        }
    }
    scripts
}

struct Figure {
    /// All counted tokens over all real ones, less one.
    bias: f64,
    /// The error that 95 of 100 texts do not exceed.
    percentile_95: f64,
    micros_per_kib: f64,
}

impl Figure {
    fn of(counter: &dyn TokenCounter, texts: &[&SampleText]) -> Self {
        let (mut counted, mut real, mut errors) = (0, 0, Vec::new());
        for text in texts {
            let tokens = counter.count(&text.text);
            counted += tokens;
            real += text.o200k;
            if text.o200k >= ERROR_MIN_TOKENS {
                let off = f64::from(tokens.abs_diff(text.o200k));
                errors.push(off / f64::from(text.o200k));
            }
        }
        errors.sort_by(f64::total_cmp);
        let rank = (errors.len() * 95).div_ceil(100).max(1) - 1;
        Self {
            bias: f64::from(counted) / f64::from(real) - 1.0,
            percentile_95: errors.get(rank).copied().unwrap_or_default(),
            micros_per_kib: micros_per_kib(counter, texts),
        }
    }
}

fn micros_per_kib(counter: &dyn TokenCounter, texts: &[&SampleText]) -> f64 {
    let bytes: usize = texts.iter().map(|text| text.text.len()).sum();
    let (mut rounds, started) = (0_u32, Instant::now());
    while started.elapsed() < TIMED {
        for text in texts {
            std::hint::black_box(counter.count(std::hint::black_box(&text.text)));
        }
        rounds += 1;
    }
    let micros = started.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
    let kib = f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / 1_024.0;
    micros / kib
}
