//! The progress display of an import, and its report at the end.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use super::reading::ImportTally;
use crate::admin::import::ImportCountsView;
use crate::cli::args::ImportArgs;
use vocative_core::counted::counted;

/// How often the progress line is redrawn on a terminal.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// How often a line is written where stderr is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(2);
/// The width of the progress bar in characters.
const BAR_CHARS: u64 = 24;

/// Shows the progress of an import on stderr.
pub(super) struct ImportMeter {
    total_bytes: u64,
    is_terminal: bool,
    verb: &'static str,
    started: Instant,
    shown: Option<Instant>,
}

impl ImportMeter {
    pub(super) fn new(total_bytes: u64, is_dry_run: bool) -> Self {
        Self {
            total_bytes,
            is_terminal: std::io::stderr().is_terminal(),
            verb: if is_dry_run { "to import" } else { "imported" },
            started: Instant::now(),
            shown: None,
        }
    }

    /// Prints a line before the work begins.
    pub(super) fn say(&self, what: &str) {
        // If stderr is closed, nobody reads the line.
        let _ = writeln!(std::io::stderr(), "{what}");
    }

    /// Shows the progress, if the last time was long enough ago.
    pub(super) fn show(&mut self, counts: &ImportCountsView, read_bytes: u64) {
        let every = if self.is_terminal {
            DRAW_EVERY
        } else {
            LINE_EVERY
        };
        if self.shown.is_some_and(|shown| shown.elapsed() < every) {
            return;
        }
        self.shown = Some(Instant::now());
        let line = line(counts, self.verb, percent(read_bytes, self.total_bytes));
        let mut stderr = std::io::stderr().lock();
        let _ = if self.is_terminal {
            let seconds = self.started.elapsed().as_secs_f64().max(0.001);
            let all = (counts.imported + counts.known) as f64;
            let bar = bar(percent(read_bytes, self.total_bytes));
            write!(
                stderr,
                "\r\x1b[2K{bar} {line}, {:.0} a second",
                all / seconds
            )
        } else {
            writeln!(stderr, "{line}")
        };
        let _ = stderr.flush();
    }

    /// Clears the progress line.
    pub(super) fn end(&self) {
        if self.is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}

fn percent(read_bytes: u64, total_bytes: u64) -> u64 {
    (read_bytes.saturating_mul(100) / total_bytes.max(1)).min(100)
}

fn bar(percent: u64) -> String {
    let full = percent * BAR_CHARS / 100;
    let part = |from, to, mark: &str| (from..to).map(|_| mark.to_owned()).collect::<String>();
    format!("[{}{}]", part(0, full, "="), part(full, BAR_CHARS, " "))
}

fn line(counts: &ImportCountsView, verb: &str, percent: u64) -> String {
    format!(
        "{percent:>3} %  {} {verb}, {} there already",
        counts.imported, counts.known
    )
}

/// The report at the end: what was imported, and what was not and why.
pub(super) fn report(
    args: &ImportArgs,
    outcome: &ImportTally,
    counts: &ImportCountsView,
) -> String {
    let mut out = String::new();
    let messages = counted(counts.imported, "message", "messages");
    let chats = counted(outcome.chats, "chat", "chats");
    let _ = if args.dry_run {
        writeln!(
            out,
            "{messages} of {chats} would be imported into {}. Nothing was stored.",
            args.channel
        )
    } else {
        writeln!(out, "Imported {messages} of {chats} into {}.", args.channel)
    };
    let lines = [
        (counts.known, "there already"),
        (
            counts.revised,
            "there already, with an edit that was not heard",
        ),
        (
            counts.gone,
            "deleted or erased before: they do not come back",
        ),
        (counts.own, "posts of this bot, whose answers are there"),
        (
            counts.overlap_found,
            "not older than the first message heard live, and found there",
        ),
        (
            counts.overlap_missing,
            "not older than the first message heard live, and not found there: not imported",
        ),
        (
            counts.conflicts,
            "with an id under which another message is known: not imported",
        ),
        (
            outcome.passed,
            "entries that an import before this one had dealt with",
        ),
    ];
    for (count, what) in lines.into_iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(out, "{count:>9}  {what}");
    }
    for (what, count) in &outcome.skipped {
        let _ = writeln!(out, "{count:>9}  passed over: {what}");
    }
    if outcome.unreadable > 0 {
        let _ = writeln!(out, "{:>9}  can't be read:", outcome.unreadable);
        for problem in &outcome.problems {
            let _ = writeln!(out, "           {problem}");
        }
    }
    if !outcome.not_served.is_empty() {
        let _ = writeln!(
            out,
            "To import these chats, too, add them to allow_chats of channel {}:",
            args.channel
        );
        for (chat, title) in &outcome.not_served {
            let title = title.as_deref().unwrap_or_default();
            let _ = writeln!(out, "    {chat}  {title}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_says_what_became_of_everything() {
        let args = ImportArgs {
            channel: "acme".to_owned(),
            path: "export.zip".into(),
            chat: Vec::new(),
            dry_run: false,
        };
        let outcome = ImportTally {
            chats: 2,
            skipped: [("joins and other service messages".to_owned(), 7)].into(),
            not_served: vec![("C9".to_owned(), Some("#secret".to_owned()))],
            unreadable: 1,
            problems: vec!["general/2026-01-10.json line 3: it ends".to_owned()],
            ..ImportTally::default()
        };
        let counts = ImportCountsView {
            imported: 1,
            known: 12,
            conflicts: 1,
            ..ImportCountsView::default()
        };
        insta::assert_snapshot!(report(&args, &outcome, &counts), @r"
        Imported 1 message of 2 chats into acme.
               12  there already
                1  with an id under which another message is known: not imported
                7  passed over: joins and other service messages
                1  can't be read:
                   general/2026-01-10.json line 3: it ends
        To import these chats, too, add them to allow_chats of channel acme:
            C9  #secret
        ");
    }

    #[test]
    fn the_meter_never_passes_its_end() {
        let counts = ImportCountsView::default();
        assert_eq!(percent(5, 0), 100);
        assert_eq!(percent(u64::MAX, 7), 100);
        assert_eq!(
            line(&counts, "imported", percent(1, 2)),
            " 50 %  0 imported, 0 there already"
        );
        assert_eq!(bar(50), "[============            ]");
    }
}
