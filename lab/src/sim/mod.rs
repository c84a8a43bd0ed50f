//! `vocative-lab sim`: the daemon on a clock of its own, in a world of its own, thousands of times.
//!
//! What runs is the daemon's own core (`daemon::core::Core`): its workers, its capture, its store. Everything around it
//! is simulated: the platform (`world`, `wire`), the network (`channel`, `hearing`, `past`), the model (`model`), the
//! machine's clock (`clocks`), time and death (`life`). All chance follows from the seed, so a failing seed fails
//! again. No promise is read from the store alone: the rooms are searched first.
//!
//! Reading order: `script` (what happens), `world`, `wire`, `life`, `channel`, `play` (one seed),
//! `verdict` (whether it is as promised), `plans` (reminders that people agree to), `networks` (several agents that
//! answer together), `report`.

mod channel;
mod clocks;

mod hearing;
mod life;
mod model;
mod networks;
mod past;
mod plans;
mod play;
mod report;
mod script;
#[cfg(test)]
mod tests;
mod verdict;
mod wire;
mod words;
mod world;

use std::collections::HashSet;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use vocative_contract::crash::{self, Sabotage};

use self::play::{SeedOutcome, Setting, play};
use self::report::{failure, report};
use self::verdict::SimTally;
use super::plan::Mode;
use crate::args::SimArgs;
use crate::dice::SeededDice;
use crate::{print, sabotage_of};
use vocative::cli::{CliError, Exit};

/// The modes of seeds in a row: most worlds of Telegram are as it is configured by default.
const MODES: [Mode; 6] = [
    Mode::Slack,
    Mode::TelegramLook,
    Mode::TelegramHold,
    Mode::Slack,
    Mode::TelegramLook,
    Mode::TelegramResend,
];

/// In one of this number of worlds of a mode people plan reminders.
const PLANS_EVERY: u64 = 3;

/// Failing seeds that are shown.
const SHOWN_MAX: usize = 3;

/// Runs the simulation.
///
/// # Errors
/// If a database can't be made, or this build lacks what was asked for.
pub(crate) fn run(args: &SimArgs) -> Result<ExitCode, CliError> {
    let sabotage = args.sabotage.as_deref().map(sabotage_of);
    let sabotage = sabotage.transpose()?;
    if sabotage.is_some_and(|promise| !is_offered(promise)) {
        return Err(CliError::Usage(
            "this promise can only be broken in a build with --features crash-points".to_owned(),
        ));
    }
    if args.trace {
        let outcome = trace(args, sabotage, args.seed)?;
        print(&outcome.trace)?;
        let is_fine = outcome.tally.wrong.is_empty();
        return Ok(if is_fine { Exit::Ok } else { Exit::Failed }.into());
    }
    let started = std::time::Instant::now();
    let played = play_many(args, sabotage)?;
    let elapsed = started.elapsed();
    let failed: Vec<u64> = played
        .iter()
        .filter(|(_, tally)| !tally.wrong.is_empty())
        .map(|(seed, _)| *seed)
        .collect();
    for seed in failed.iter().take(SHOWN_MAX) {
        let outcome = trace(args, sabotage, *seed)?;
        print(&failure(*seed, &outcome, args))?;
    }
    let by_mode = sum(args, &played);
    print(&report(&by_mode, &failed, args, elapsed))?;
    print(&different_networks(args, &played))?;
    let is_fine = failed.is_empty() || args.report_only;
    Ok(if is_fine { Exit::Ok } else { Exit::Failed }.into())
}

/// Plays a seed and records its trace: on a thread of its own, since this one has a runtime.
fn trace(args: &SimArgs, sabotage: Option<Sabotage>, seed: u64) -> Result<SeedOutcome, CliError> {
    let setting = setting(args, sabotage, seed);
    std::thread::scope(|scope| {
        let played = scope.spawn(|| play(seed, setting, true)).join();
        played.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Whether a promise can be broken in this build: most are kept in the daemon itself.
fn is_offered(promise: Sabotage) -> bool {
    let is_of_the_adapter = matches!(promise, Sabotage::AckBeforeCommit | Sabotage::NoDedupe);
    crash::is_built_in() || is_of_the_adapter
}

fn setting(args: &SimArgs, sabotage: Option<Sabotage>, seed: u64) -> Setting {
    let modes: Vec<Mode> = MODES
        .into_iter()
        .filter(|mode| mode.is_of(args.platform))
        .collect();
    let place = usize::try_from(seed % modes.len().max(1) as u64).unwrap_or(0);
    let number = seed / MODES.len() as u64;
    let plans = args.plans && number.is_multiple_of(PLANS_EVERY);
    // The second world of each such group, since people plan in the first.
    let answers = |every: u64| !plans && number % every == 1 % every;
    let is_of_network = args.networks.is_some_and(answers);
    Setting {
        mode: modes[place],
        steps: args.steps,
        sabotage,
        plans,
        network: is_of_network.then(|| SeededDice::of(seed, "networks").below(networks::SHAPES)),
    }
}

/// How many networks answered, and how many of them differ; empty if there was none.
fn different_networks(args: &SimArgs, played: &[(u64, SimTally)]) -> String {
    let numbers = played.iter();
    let numbers = numbers.filter_map(|(seed, _)| setting(args, None, *seed).network);
    let shapes: Vec<String> = numbers.map(networks::shape).collect();
    let different = shapes.iter().collect::<HashSet<_>>().len();
    match shapes.len() {
        0 => String::new(),
        all => format!("{all} networks answered, {different} of them different.\n"),
    }
}

fn play_many(args: &SimArgs, sabotage: Option<Sabotage>) -> Result<Vec<(u64, SimTally)>, CliError> {
    let seeds = (0..args.seeds).map(|n| args.seed.wrapping_add(n));
    play_seeds(args, sabotage, seeds)
}

/// Plays seeds, as many at a time as the machine has processors; each on one thread from its beginning to
/// its end.
fn play_seeds(
    args: &SimArgs,
    sabotage: Option<Sabotage>,
    seeds: impl Iterator<Item = u64> + Send,
) -> Result<Vec<(u64, SimTally)>, CliError> {
    let seeds = Mutex::new(seeds);
    let played = Mutex::new(Vec::new());
    let failure = Mutex::new(None);
    let is_over = AtomicBool::new(false);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = seeds.lock().expect("no holder of this lock panics").next();
                    let Some(seed) = next.filter(|_| !is_over.load(Ordering::SeqCst)) else {
                        return;
                    };
                    match play(seed, setting(args, sabotage, seed), false) {
                        Ok(SeedOutcome { tally, .. }) => {
                            if args.until_wrong && !tally.wrong.is_empty() {
                                is_over.store(true, Ordering::SeqCst);
                            }
                            let mut played = played.lock().expect("no holder of this lock panics");
                            played.push((seed, tally));
                        }
                        Err(cause) => {
                            let mut failure =
                                failure.lock().expect("no holder of this lock panics");
                            *failure = Some(cause);
                            return;
                        }
                    }
                }
            });
        }
    });
    if let Some(cause) = failure.into_inner().expect("no holder of this lock panics") {
        return Err(cause);
    }
    let mut played = played.into_inner().expect("no holder of this lock panics");
    played.sort_unstable_by_key(|(seed, _)| *seed);
    Ok(played)
}

fn sum(args: &SimArgs, played: &[(u64, SimTally)]) -> Vec<(Mode, SimTally)> {
    let modes = Mode::ALL
        .into_iter()
        .filter(|mode| mode.is_of(args.platform));
    let of_mode = |mode: Mode| {
        let mut sum = SimTally::default();
        let is_of = |seed: u64| setting(args, None, seed).mode == mode;
        for (_, tally) in played.iter().filter(|(seed, _)| is_of(*seed)) {
            sum.add(tally);
        }
        (mode, sum)
    };
    modes.map(of_mode).collect()
}
