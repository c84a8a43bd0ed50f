//! `vocative backup` and `vocative restore`.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use super::args::{BackupArgs, RestoreArgs};
use super::context::CliContext;
use super::error::{CliError, Exit};
use crate::daemon::start::{DATABASE_NAME, wall_clock};
use vocative_core::counted::counted;
use vocative_store::{
    self, BackupOptions, BackupReport, CopiedFiles, CopyProgress, RestoreReport, StoreError,
};

const MIB: u64 = 1 << 20;

/// Makes a backup, beside a running daemon or without one.
pub(super) async fn make(args: &BackupArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let (config, _) = context.load_config()?;
    let database = config.daemon.data_dir.join(DATABASE_NAME);
    if !database.exists() {
        return Err(CliError::Unavailable {
            what: format!("there is no database at {}", database.display()),
            advice: "point --config at the daemon's configuration".to_owned(),
            cause: None,
        });
    }
    find_folder(&args.target)?;
    let options = BackupOptions {
        replaces: args.replace,
        keep: args.keep.map(std::num::NonZeroUsize::get),
        has_files: !args.without_files,
        bytes_per_s: (args.rate > 0).then(|| args.rate.saturating_mul(MIB)),
        now_ms: (wall_clock())(),
    };
    let target = args.target.clone();
    let report = off_thread(move |tell| vocative_store::backup(&database, &target, &options, tell))
        .await??;
    context.print(&made(&report))?;
    match report.copied_files {
        Some(files) if !files.lost.is_empty() => Err(lost(files.lost.len())),
        _ => Ok(Exit::Ok.into()),
    }
}

/// The error for stored files that are gone or altered.
pub(super) fn lost(count: usize) -> CliError {
    let what = match count {
        1 => "a stored file is lost; see above".to_owned(),
        count => format!("{count} stored files are lost; see above"),
    };
    CliError::Damaged {
        what,
        advice: "restart the daemon to have what is not there fetched again from the platforms; remove what \
                 holds other bytes before, or put both back from a backup's folder of files",
    }
}

/// A backup goes only into a folder that exists: where a disk is not mounted, a folder made by mistake would
/// be on another disk.
fn find_folder(target: &Path) -> Result<(), CliError> {
    let is_folder = target.as_os_str().as_encoded_bytes().ends_with(b"/");
    let folder = match target.parent() {
        _ if is_folder || target.is_dir() => target,
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if folder.is_dir() {
        return Ok(());
    }
    Err(CliError::Failed {
        what: format!("there is no folder {}", folder.display()),
        advice: Some("make it first, or look whether its disk is mounted".to_owned()),
        cause: None,
    })
}

/// Puts a backup in the place of the database.
pub(super) async fn restore(
    args: &RestoreArgs,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    let (config, _) = context.load_config()?;
    let database = config.daemon.data_dir.join(DATABASE_NAME);
    let backup = args.backup.clone();
    let now_ms = (wall_clock())();
    let report =
        off_thread(move |tell| vocative_store::restore(&backup, &database, now_ms, tell)).await?;
    let report = report.map_err(|error| match error {
        StoreError::Locked { .. } => CliError::Failed {
            what: "a daemon runs on this database, so nothing was restored".to_owned(),
            advice: Some("stop it (`systemctl stop vocative`), then restore".to_owned()),
            cause: None,
        },
        other => other.into(),
    })?;
    context.print(&restored(&report))?;
    Ok(Exit::Ok.into())
}

/// Runs a copy on a thread of its own, because it waits for the disk, and shows its progress.
async fn off_thread<T: Send + 'static>(
    job: impl FnOnce(&dyn Fn(CopyProgress)) -> Result<T, StoreError> + Send + 'static,
) -> Result<Result<T, StoreError>, CliError> {
    let done = tokio::task::spawn_blocking(move || {
        let bar = Bar::default();
        let result = job(&|progress| bar.show(progress));
        bar.clear();
        result
    });
    done.await
        .map_err(|cause| CliError::failed("the copy ended badly", cause))
}

/// A progress line on stderr, if that is a terminal.
#[derive(Default)]
struct Bar {
    /// What is shown: the percentage plus 1, or a larger number for a later phase; 0 = nothing yet.
    shown: AtomicU64,
}

impl Bar {
    fn show(&self, progress: CopyProgress) {
        const VERIFYING: u64 = 1_000;
        let (mark, text) = match progress {
            CopyProgress::Copied { bytes, of } => {
                let percent = bytes * 100 / of.max(1);
                let text = format!("copying: {percent} % of {} MiB", of.div_ceil(MIB));
                (percent + 1, text)
            }
            CopyProgress::Verifying => (VERIFYING, "verifying".to_owned()),
            CopyProgress::Files { bytes, of } => {
                let percent = bytes * 100 / of.max(1);
                let text = format!("files: {percent} % of {} MiB", of.div_ceil(MIB));
                (VERIFYING + 1 + percent, text)
            }
        };
        if self.shown.swap(mark, Ordering::Relaxed) != mark {
            Self::write(&text);
        }
    }

    fn clear(&self) {
        if self.shown.load(Ordering::Relaxed) > 0 {
            Self::write("");
        }
    }

    fn write(text: &str) {
        let mut stderr = std::io::stderr().lock();
        if stderr.is_terminal() {
            // If stderr is closed, nobody sees the line.
            let _ = write!(stderr, "\r\x1b[2K{text}").and_then(|()| stderr.flush());
        }
    }
}

fn made(report: &BackupReport) -> String {
    let mut out = format!(
        "{}: {} in {}, {} KiB, verified.\n",
        report.path.display(),
        counted(report.turns, "turn", "turns"),
        counted(report.conversations, "conversation", "conversations"),
        report.bytes.div_ceil(1_024)
    );
    match &report.copied_files {
        Some(files) if report.files > 0 => out.push_str(&about_files(files)),
        None if report.files > 0 => {
            let _ = writeln!(
                out,
                "The bytes of {} are not in it. What a restored one lacks is fetched from the platforms \
                 again, as long as they have it.",
                attached(report.files)
            );
        }
        _ => {}
    }
    for path in &report.removed {
        let _ = writeln!(out, "removed {}", path.display());
    }
    out
}

fn about_files(files: &CopiedFiles) -> String {
    let mut out = format!(
        "{}: {}, {} KiB, verified.\n",
        files.folder.display(),
        attached(files.files),
        files.bytes.div_ceil(1_024)
    );
    for lost in &files.lost {
        let _ = writeln!(out, "  {lost}");
    }
    out
}

fn attached(files: u64) -> String {
    counted(files, "attached file", "attached files")
}

fn restored(report: &RestoreReport) -> String {
    let mut out = format!(
        "Restored {} in {}.\n",
        counted(report.turns, "turn", "turns"),
        counted(report.conversations, "conversation", "conversations")
    );
    if let Some(kept) = &report.kept {
        let _ = writeln!(
            out,
            "The database that was there is kept as {}; remove it once you don't need it: it holds \
             the rooms' text.",
            kept.display()
        );
    }
    if report.files > 0 {
        let _ = writeln!(out, "{} restored.", attached(report.files));
    }
    if report.files_missing > 0 {
        let _ = writeln!(
            out,
            "{} not in the backup as stored: fetched from the platforms again at the next start, as long as \
             they have it.",
            attached(report.files_missing)
        );
    }
    let (posts, runs) = (report.posts_held, report.runs_held);
    if posts + runs > 0 {
        let _ = writeln!(
            out,
            "Open in the backup and held: {} and {}, which may have been dealt with since. \
             `vocative held list` shows them.",
            counted(posts, "post", "posts"),
            counted(runs, "question", "questions")
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restore_says_what_waits_for_a_decision() {
        let report = |posts_held, kept: Option<&str>| RestoreReport {
            kept: kept.map(Into::into),
            turns: 3,
            conversations: 1,
            posts_held,
            runs_held: 0,
            files: 0,
            files_missing: 0,
        };
        assert_eq!(
            restored(&report(0, None)),
            "Restored 3 turns in 1 conversation.\n"
        );
        let text = restored(&report(2, Some("old.db")));
        assert!(text.contains("kept as old.db"), "{text}");
        assert!(text.contains("2 posts and 0 questions"), "{text}");
    }
}
