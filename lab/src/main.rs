//! The laboratory: what proves that nothing is lost and nothing doubled. Never part of the product.
//!
//! `crash` kills the real daemon at every point; `sim` runs its core in simulated worlds, thousands of times. The
//! loopback platforms and a scripted model run in this process; the daemon of `crash` is another process of
//! this same program, killed with SIGKILL and started again.
//!
//! Reading order: `args`, `crash`, then `plan` (which kills), `piece` (how they are dealt out), `scene` (what people
//! say, and what must come back), `stage` (platforms and model), `process` (the daemon), `play` (one piece of
//! kills), `memory` (the rows that import and erase), `noting` (those that learn), `network` (those of several agents),
//! `tally` (what came of it, and whether that is allowed); then `sim`; then `recall`, which measures how much of what
//! was said is found again; `documents`, which measures the reading of folders; `learning`, which judges memory;
//! `cells`, which measures many daemons on one machine.

mod args;
mod cells;
mod crash;
mod dice;
mod documents;
mod firing;
mod judged;
mod learning;
mod memory;
mod network;
mod noting;
mod piece;
mod plan;
mod play;
mod process;
mod recall;
mod scene;
mod sim;
mod stage;
mod summaries;
mod tally;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use vocative::cli::CliError;
use vocative_contract::crash::Sabotage;

use self::args::{LabCli, LabCommand};

/// The first argument of this program when it is the daemon.
const AS_DAEMON: &str = "vocative";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.peek().is_some_and(|first| first == AS_DAEMON) {
        return vocative::cli::main_of(arguments);
    }
    let cli = LabCli::parse();
    // It fails only if another part of the process has chosen a provider, which then serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let done = match &cli.command {
        LabCommand::Crash(args) => crash::run(args),
        LabCommand::Sim(args) => sim::run(args),
        LabCommand::Recall(args) => recall::run(args),
        LabCommand::Documents(args) => documents::run(args),
        LabCommand::Memory(args) => learning::run(args),
        LabCommand::Summaries(args) => summaries::run(args),
        LabCommand::Cells(args) => cells::run(args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("{}", error.report());
        error.exit().into()
    })
}

/// Writes a result to stdout.
fn print(text: &str) -> Result<(), CliError> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

fn sabotage_of(name: &str) -> Result<Sabotage, CliError> {
    let found = Sabotage::ALL
        .into_iter()
        .find(|promise| promise.name() == name);
    found.ok_or_else(|| {
        let names = Sabotage::ALL.map(Sabotage::name).join(", ");
        CliError::Usage(format!("there is no sabotage {name}; there are: {names}"))
    })
}
