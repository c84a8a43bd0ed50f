//! What rendering and splitting take per KiB of an answer, for both platforms, on the answers of
//! `tests/fixtures/answers`: `cargo bench -p vocative-channels --bench rendering`.
//!
//! Prints what it measures and judges nothing; what the figures mean is in benches/README.md.

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use vocative_channels::{slack, telegram};
use vocative_contract::outbound::Part;
use vocative_contract::people::People;

type Render = fn(&str, &People) -> Vec<Part>;

/// Everything is rendered again and again for at least so long.
const TIMED: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    match answers() {
        Ok(answers) => {
            measure("answers", &answers);
            measure("one of 1 MiB", &[answers.concat().repeat(24)]);
            ExitCode::SUCCESS
        }
        Err(cause) => {
            eprintln!("no figure: {cause}");
            ExitCode::FAILURE
        }
    }
}

fn answers() -> std::io::Result<Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/answers");
    let mut answers = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        answers.push(std::fs::read_to_string(entry?.path())?);
    }
    Ok(answers)
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn measure(what: &str, texts: &[String]) {
    let bytes: usize = texts.iter().map(String::len).sum();
    let platforms: [(&str, Render); 2] = [("slack", slack::render), ("telegram", telegram::render)];
    for (platform, render) in platforms {
        let (mut rounds, mut parts) = (0_u32, 0);
        let start = Instant::now();
        while start.elapsed() < TIMED {
            for text in texts {
                parts += black_box(render(black_box(text), &People::nobody())).len();
            }
            rounds += 1;
        }
        let kib = bytes as f64 * f64::from(rounds) / 1_024.0;
        let micros = start.elapsed().as_secs_f64() * 1e6;
        println!(
            "{what}, {platform}: {:.1} µs per KiB ({} KiB, {} parts a round)",
            micros / kib,
            bytes / 1_024,
            parts / rounds as usize
        );
    }
}
