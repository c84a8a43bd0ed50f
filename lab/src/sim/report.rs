//! What the simulation says in the end.

use std::fmt::Write as _;
use std::time::Duration;

use super::networks::NetworkCalls;
use super::play::SeedOutcome;
use super::verdict::SimTally;
use crate::args::{CrashPlatform, SimArgs};
use crate::plan::Mode;
use vocative::cli::table::table;

/// Lines of the trace that are shown of a failing seed.
const TRACE_LINES: usize = 30;

/// A failing seed, the end of its trace, and how to see all of it.
pub(super) fn failure(seed: u64, outcome: &SeedOutcome, args: &SimArgs) -> String {
    let mut out = format!("seed {seed} FAILS: {}\n", outcome.tally.wrong.join("; "));
    let lines: Vec<&str> = outcome.trace.lines().collect();
    let from = lines.len().saturating_sub(TRACE_LINES);
    for line in &lines[from..] {
        let _ = writeln!(out, "  {line}");
    }
    let _ = writeln!(out, "all of it: {}\n", command(seed, args));
    out
}

fn command(seed: u64, args: &SimArgs) -> String {
    let mut command = format!(
        "vocative-lab sim --seed {seed} --trace --steps {}",
        args.steps
    );
    let platform = args.platform.map(|platform| match platform {
        CrashPlatform::Slack => "slack",
        CrashPlatform::Telegram => "telegram",
    });
    if let Some(platform) = platform {
        let _ = write!(command, " --platform {platform}");
    }
    if args.plans {
        command.push_str(" --plans");
    }
    if let Some(every) = args.networks {
        let _ = write!(command, " --networks={every}");
    }
    if let Some(promise) = &args.sabotage {
        let _ = write!(command, " --sabotage {promise}");
    }
    command
}

/// The table with what follows from it.
pub(super) fn report(
    by_mode: &[(Mode, SimTally)],
    failed: &[u64],
    args: &SimArgs,
    elapsed: Duration,
) -> String {
    let mut all = SimTally::default();
    let mut rows = Vec::new();
    for (mode, tally) in by_mode {
        rows.push(cells(mode.name(), tally));
        all.add(tally);
    }
    rows.push(cells("all", &all));
    let header = [
        "platform",
        "seeds",
        "faults",
        "kills",
        "stops",
        "messages",
        "questions",
        "answered",
        "lost",
        "doubled",
        "excused",
        "left",
        "held",
    ];
    let mut out = table(&header, &rows);
    let seconds = elapsed.as_secs_f64().max(0.001);
    #[allow(clippy::cast_precision_loss, reason = "only shown")]
    let rate = all.seeds as f64 / seconds;
    let _ = writeln!(
        out,
        "\n{} seeds from {} on, {} of virtual time in {seconds:.1} s: {rate:.0} seeds a second.",
        all.seeds,
        args.seed,
        shown_time(all.virtual_ms),
    );
    if all.doubled > all.doubled_outside {
        out.push_str(
            "Excused ones are of Telegram: they had arrived, and nobody could know, or a person found a held post whose answer was to change.\n",
        );
    }
    if all.calls != NetworkCalls::default() {
        out.push_str(&all.calls.shown());
    }
    if failed.is_empty() {
        out.push_str("Nothing is lost, and nothing is doubled that may not be.\n");
    } else {
        let seeds: Vec<String> = failed.iter().map(ToString::to_string).collect();
        let _ = writeln!(
            out,
            "This is not what is promised: {} seeds fail: {}",
            failed.len(),
            seeds.join(" ")
        );
        for seed in failed {
            let _ = writeln!(out, "{}", command(*seed, args));
        }
    }
    out
}

fn shown_time(ms: i64) -> String {
    let minutes = ms / 60_000;
    format!("{} h {} min", minutes / 60, minutes % 60)
}

fn cells(name: &str, tally: &SimTally) -> Vec<String> {
    let numbers = [
        tally.seeds,
        tally.faults,
        tally.kills,
        tally.stops,
        tally.messages,
        tally.questions,
        tally.answered,
        tally.lost,
        tally.doubled,
        tally.doubled - tally.doubled_outside,
        tally.left,
        tally.held,
    ];
    let name = std::iter::once(name.to_owned());
    name.chain(numbers.iter().map(ToString::to_string))
        .collect()
}
