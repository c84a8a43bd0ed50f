//! The crash matrix: the daemon is killed at every point, and nothing is lost or doubled.

use std::cmp::Reverse;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::try_join_all;
use vocative_contract::crash::{self, Sabotage};

use vocative::cli::{CliError, Exit};

use crate::args::CrashArgs;
use crate::piece::{RowPiece, pieces};
use crate::tally::{Tally, report};
use crate::{plan, play, print, sabotage_of};

/// Pieces that are played side by side. A piece mostly waits for rate limits and retries, and computes for about a
/// second per kill.
const LANES: usize = 10;
/// Threads that run the platforms, the model and the script.
const WORKER_THREADS: usize = 2;

/// Plays the matrix.
///
/// # Errors
/// If platforms or daemon can't be started, or this build lacks what was asked for.
pub(crate) fn run(args: &CrashArgs) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()?;
    let done = runtime.block_on(crash(args));
    runtime.shutdown_background();
    done
}

async fn crash(args: &CrashArgs) -> Result<ExitCode, CliError> {
    let sabotage = args.sabotage.as_deref().map(sabotage_of).transpose()?;
    if !crash::is_built_in() {
        if sabotage.is_some() || args.point.is_some() {
            return Err(CliError::Usage(
                "this build has no crash points, so it can't be stopped at one nor sabotaged; build with \
                 --features crash-points"
                    .to_owned(),
            ));
        }
        print(
            "This build has no crash points: random kills only. All of them: cargo run --release -p vocative-lab --features crash-points -- crash\n\n",
        )?;
    }
    let rows = plan::rows(args, sabotage);
    let pieces = pieces(&rows, args);
    if pieces.is_empty() {
        return Err(CliError::Usage(match (&args.piece, &args.sabotage) {
            (None, Some(promise)) => format!(
                "no row shows {promise} broken on that platform; try `vocative-lab sim --sabotage {promise}`"
            ),
            (None, None) => "no row has that point on that platform".to_owned(),
            (Some(piece), _) => format!(
                "there is no piece {piece:?} with these rounds, platforms and points; repeat the command as it was printed"
            ),
        }));
    }
    let started = std::time::Instant::now();
    let played = play_all(&pieces, args, sabotage).await?;
    let (text, is_fine) = report(&played, args, sabotage, started.elapsed());
    print(&text)?;
    Ok(if is_fine { Exit::Ok } else { Exit::Failed }.into())
}

/// Plays all pieces, many side by side: most of the time of a piece is waiting. The longest begin first, so that short
/// ones fill the time left at the end; the results are in the order of the table.
async fn play_all(
    pieces: &[RowPiece],
    args: &CrashArgs,
    sabotage: Option<Sabotage>,
) -> Result<Vec<(RowPiece, Tally)>, CliError> {
    let mut order: Vec<&RowPiece> = pieces.iter().collect();
    order.sort_by_key(|piece| Reverse(piece.row.kills));
    let next = AtomicUsize::new(0);
    let lanes = (0..LANES).map(|_| play_pieces(&order, &next, args, sabotage));
    let lanes = try_join_all(lanes).await?;
    let mut played: Vec<(RowPiece, Tally)> = lanes.into_iter().flatten().collect();
    played.sort_unstable_by_key(|(piece, _)| (piece.place, piece.number));
    Ok(played)
}

/// Plays pieces that have not been started, one after the other, until there are none.
async fn play_pieces(
    order: &[&RowPiece],
    next: &AtomicUsize,
    args: &CrashArgs,
    sabotage: Option<Sabotage>,
) -> Result<Vec<(RowPiece, Tally)>, CliError> {
    let mut played = Vec::new();
    while let Some(piece) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
        let tally = play::piece(piece, args, sabotage).await?;
        if args.progress {
            eprintln!("{}: {tally:?}", piece.name());
        }
        played.push((**piece, tally));
    }
    Ok(played)
}
