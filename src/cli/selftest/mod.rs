//! `vocative selftest crash`: the daemon is killed at every point, and nothing is lost or doubled.
//! `vocative selftest sim`, in `sim`, does it in a simulated world, thousands of times.
//!
//! The loopback platforms and a scripted model run in this process; the daemon is another process of
//! the same program, killed with SIGKILL and started again. Reading order: `plan` (which kills),
//! `scene` (what people say, and what must come back), `stage` (platforms and model), `process` (the
//! daemon), `play` (one row of kills), `memory` (the rows that import and erase), `tally` (what came of it, and whether that is allowed).

mod memory;
mod plan;
mod play;
mod process;
mod scene;
mod sim;
mod stage;
mod tally;

use std::cmp::Reverse;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::try_join_all;
use vocative_channels::crash::{self, Sabotage};

use self::plan::Row;
use self::tally::{Tally, report};
use super::args::{CrashArgs, SelftestCommand};
use super::context::Context;
use super::error::{CliError, Exit};

/// Rows that are played side by side. A row waits for paces and retries most of its time, and computes
/// for about a second of it.
const LANES: usize = 10;

/// Runs a self-test.
///
/// # Errors
/// If platforms or daemon can't be started, or this build lacks what was asked for.
pub(super) async fn run(
    command: &SelftestCommand,
    context: &Context,
) -> Result<ExitCode, CliError> {
    match command {
        SelftestCommand::Crash(args) => crash(args, context).await,
        SelftestCommand::Sim(args) => sim::run(args, context),
    }
}

async fn crash(args: &CrashArgs, context: &Context) -> Result<ExitCode, CliError> {
    context.start_log_at("error")?;
    let sabotage = args.sabotage.as_deref().map(sabotage_of).transpose()?;
    if !crash::is_built_in() {
        if sabotage.is_some() || args.point.is_some() {
            return Err(CliError::Usage(
                "this build has no crash points, so it can't be stopped at one nor sabotaged; build with \
                 --features crash-points"
                    .to_owned(),
            ));
        }
        context.print("This build has no crash points: random kills only. All of them: cargo run --release --features crash-points -- selftest crash\n\n")?;
    }
    let rows = plan::rows(args, sabotage);
    if rows.is_empty() {
        return Err(CliError::Usage(
            "no row has that point on that platform".to_owned(),
        ));
    }
    let started = std::time::Instant::now();
    let played = play_all(&rows, args, sabotage).await?;
    let (text, is_fine) = report(&played, args, sabotage, started.elapsed());
    context.print(&text)?;
    Ok(if is_fine { Exit::Ok } else { Exit::Failed }.into())
}

/// Plays all rows, many side by side: most of the time of a row is waiting. The longest begin first, so that
/// none is left alone with its waiting; what is given is in the order of the rows.
async fn play_all(
    rows: &[Row],
    args: &CrashArgs,
    sabotage: Option<Sabotage>,
) -> Result<Vec<(Row, Tally)>, CliError> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|place| Reverse(rows[*place].kills));
    let next = AtomicUsize::new(0);
    let lanes = (0..LANES).map(|_| play_rows(rows, &order, &next, args, sabotage));
    let lanes = try_join_all(lanes).await?;
    let mut played: Vec<(usize, Tally)> = lanes.into_iter().flatten().collect();
    played.sort_unstable_by_key(|(place, _)| *place);
    let named = |(place, tally): (usize, Tally)| (rows[place], tally);
    Ok(played.into_iter().map(named).collect())
}

/// Plays the next row that nobody plays yet, until there is none.
async fn play_rows(
    rows: &[Row],
    order: &[usize],
    next: &AtomicUsize,
    args: &CrashArgs,
    sabotage: Option<Sabotage>,
) -> Result<Vec<(usize, Tally)>, CliError> {
    let mut played = Vec::new();
    loop {
        let Some(place) = order.get(next.fetch_add(1, Ordering::Relaxed)) else {
            return Ok(played);
        };
        let row = &rows[*place];
        let tally = play::row(row, args, sabotage).await?;
        if args.progress {
            eprintln!("{} {}: {tally:?}", row.platform(), row.name());
        }
        played.push((*place, tally));
    }
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
