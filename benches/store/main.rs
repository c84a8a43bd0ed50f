//! What the store and the assembler take, in this process and without any platform:
//! `cargo bench --bench store [-- NAME...] [--turns N]`.
//!
//! Names: `capture`, `growth`, `assemble`, `search`; all of them without a name. `--turns` is the size of
//! the largest conversation (1,000,000). Prints what it measures and judges nothing: what the figures
//! mean is in benches/README.md.

mod assembling;
mod bare;
mod capturing;
mod place;
mod sample;
mod searching;
mod texts;

use std::process::ExitCode;

/// Why a figure could not be taken.
pub(crate) type Fail = Box<dyn std::error::Error + Send + Sync>;

const NAMES: [&str; 4] = ["capture", "growth", "assemble", "search"];
const TURNS: i64 = 1_000_000;

#[tokio::main]
async fn main() -> ExitCode {
    match run(std::env::args().skip(1)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("no figure: {cause}");
            ExitCode::FAILURE
        }
    }
}

async fn run(mut args: impl Iterator<Item = String>) -> Result<(), Fail> {
    let (mut names, mut turns) = (Vec::new(), TURNS);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            // cargo adds it.
            "--bench" => {}
            "--turns" => turns = args.next().unwrap_or_default().parse()?,
            name if NAMES.contains(&name) => names.push(arg),
            other => return Err(format!("no figure {other}; there are: {NAMES:?}").into()),
        }
    }
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    if is_wanted("capture") {
        capturing::measure().await?;
    }
    if is_wanted("growth") {
        capturing::measure_growth(turns).await?;
    }
    if is_wanted("assemble") {
        assembling::measure(turns).await?;
    }
    if is_wanted("search") {
        searching::measure(turns).await?;
    }
    Ok(())
}
