//! Makes findings from what was seen of the clock, the disk and the backups. Pure.

use std::path::Path;

use vocative_core::counted::counted;
use vocative_store::CheckReport;

use super::finding::DoctorFinding;
use crate::cli::table::span;

/// A clock this far off, in milliseconds, is a warning.
const CLOCK_OFF_MS: i64 = 30_000;
/// A clock this far off, in milliseconds, breaks things: requests that Slack signed longer ago are refused.
/// *Source:* Slack, "Verifying requests": five minutes.
const CLOCK_WRONG_MS: i64 = 300_000;
/// A backup older than this, in milliseconds, is a warning: the timer makes one every night.
const BACKUP_OLD_MS: i64 = 2 * 86_400_000;
/// A disk with less than this free, in bytes, is nearly full, however small the database is.
const FREE_MIN: u64 = 256 << 20;

/// What was seen of the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Disk {
    /// The folder that was looked at.
    pub folder: String,
    /// Bytes that the user of this process may still write.
    pub free_bytes: Option<u64>,
    /// Bytes of the database with its write-ahead log; 0 without one.
    pub database_bytes: u64,
}

/// A backup, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Backup {
    /// Its name in the folder.
    pub name: String,
    /// When it was made, in milliseconds since the Unix epoch.
    pub made_at_ms: i64,
}

/// What was seen of the backups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Backups {
    /// How many there are.
    pub count: usize,
    /// The newest.
    pub newest: Option<Backup>,
}

/// Compares the machine's clock with the platforms'. `None` where no platform told its time.
///
/// `ahead` has a channel's name, and by how many milliseconds the machine is ahead of its platform.
pub(super) fn clock(ahead: &[(String, i64)]) -> Option<DoctorFinding> {
    const SUBJECT: &str = "clock";
    const COMMAND: &str = "timedatectl set-ntp true";
    let (channel, ahead_ms) = ahead.iter().max_by_key(|(_, ahead_ms)| ahead_ms.abs())?;
    let off = span(ahead_ms.abs());
    let word = if *ahead_ms > 0 { "ahead of" } else { "behind" };
    Some(match ahead_ms.abs() {
        0..CLOCK_OFF_MS => {
            DoctorFinding::fine(SUBJECT, "this machine's clock agrees with the platforms'")
        }
        CLOCK_OFF_MS..CLOCK_WRONG_MS => DoctorFinding::warn(
            SUBJECT,
            format!("this machine's clock is {off} {word} that of {channel}"),
            COMMAND,
        ),
        _ => DoctorFinding::fix(
            SUBJECT,
            format!(
                "this machine's clock is {off} {word} that of {channel}: signed requests are refused, and \
                 nothing is deleted for its age"
            ),
            COMMAND,
        ),
    })
}

/// Whether the disk has the room that an upgrade and a restore need: for a copy of the database, and as much again to
/// work.
pub(super) fn disk(seen: &Disk) -> DoctorFinding {
    const SUBJECT: &str = "disk";
    let Some(free) = seen.free_bytes else {
        return DoctorFinding::warn(
            SUBJECT,
            format!("the room on the disk of {} can't be asked", seen.folder),
            "",
        );
    };
    let (free_mib, database_mib) = (free >> 20, seen.database_bytes.div_ceil(1 << 20));
    let room = format!(
        "{free_mib} MiB are free in {}, the database has {database_mib}",
        seen.folder
    );
    match free {
        0..FREE_MIN => DoctorFinding::fix(
            SUBJECT,
            format!("{room}: the disk is nearly full, and what can't be stored is not answered"),
            "vocative status --capacity",
        ),
        free if free < seen.database_bytes.saturating_mul(2) => DoctorFinding::fix(
            SUBJECT,
            format!("{room}: an upgrade copies the database first, and wants twice its size"),
            "vocative status --capacity",
        ),
        _ => DoctorFinding::fine(SUBJECT, room),
    }
}

/// Whether there is a backup, and how old it is.
pub(super) fn backups(
    folder: &Path,
    seen: &Result<Backups, String>,
    has_database: bool,
    now_ms: i64,
) -> DoctorFinding {
    const SUBJECT: &str = "backups";
    const TIMER: &str = "systemctl enable --now vocative-backup.timer";
    let shown = folder.display();
    let found = match seen {
        Err(why) => {
            return DoctorFinding::warn(
                SUBJECT,
                format!("{shown} can't be looked into: {why}"),
                "",
            );
        }
        Ok(found) => found,
    };
    let Some(newest) = &found.newest else {
        let what = format!("there is no backup in {shown}");
        return match has_database {
            true => DoctorFinding::warn(SUBJECT, what, TIMER),
            false => DoctorFinding::fine(SUBJECT, format!("{what}, and nothing stored yet")),
        };
    };
    let age_ms = now_ms.saturating_sub(newest.made_at_ms);
    let what = format!(
        "the newest of {} is {} old: {shown}/{}",
        counted(found.count as u64, "backup", "backups"),
        span(age_ms),
        newest.name
    );
    match age_ms > BACKUP_OLD_MS {
        true => DoctorFinding::warn(SUBJECT, what, "systemctl start vocative-backup.service"),
        false => DoctorFinding::fine(SUBJECT, what),
    }
}

/// The finding about the newest backup, which was read through.
pub(super) fn verified(path: &Path, read: Result<CheckReport, String>) -> DoctorFinding {
    const SUBJECT: &str = "backups";
    let shown = path.display();
    match read {
        Ok(report) if report.findings.is_empty() => DoctorFinding::fine(
            SUBJECT,
            format!(
                "{shown} is whole: {}",
                counted(report.turns, "turn", "turns")
            ),
        ),
        Ok(report) => DoctorFinding::fix(
            SUBJECT,
            format!("{shown} is damaged: {}", report.findings.join("; ")),
            "systemctl start vocative-backup.service",
        ),
        Err(why) => DoctorFinding::fix(
            SUBJECT,
            format!("{shown} can't be read: {why}"),
            "systemctl start vocative-backup.service",
        ),
    }
}
