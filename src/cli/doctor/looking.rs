//! Looks at the machine: files, the disk, systemd. Judges nothing.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use chrono::NaiveDateTime;

use super::finding::DoctorFinding;
use super::judging::{Backup, Backups, Disk};
use super::unit::Unit;
use crate::cli::service::Service;
use crate::config::{Config, Environment};

/// Where systemd looks for units; the first file found wins. *Source:* systemd.unit(5), "Unit File Load Path".
const UNIT_FOLDERS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
/// The properties of the unit that systemctl is asked for.
const PROPERTIES: &str = "--property=LoadState,ActiveState,UnitFileState,NeedDaemonReload,NRestarts,Result,ExecMainStatus";
/// This folder exists where systemd runs. *Source:* `sd_booted(3)`.
const BOOTED: &str = "/run/systemd/system";

/// The installed unit's files, and what systemd knows about it.
pub(super) fn unit(service: &Service) -> Unit {
    let folders: Vec<&Path> = UNIT_FOLDERS.iter().map(Path::new).collect();
    Unit {
        properties: properties(&service.unit()),
        ..unit_in(&folders, service)
    }
}

/// The unit's file and drop-ins in these folders.
pub(super) fn unit_in(folders: &[&Path], service: &Service) -> Unit {
    let name = service.file_name();
    let files = folders.iter().map(|folder| folder.join(name));
    let file = files.into_iter().find_map(|path| {
        let text = std::fs::read_to_string(&path).ok()?;
        Some((path.display().to_string(), text))
    });
    let mut names = vec![name.to_owned(), format!("{}.service", service.unit())];
    names.dedup();
    let places = folders
        .iter()
        .flat_map(|folder| names.iter().map(|name| folder.join(format!("{name}.d"))));
    let drop_ins = places.flat_map(|place| {
        let entries = std::fs::read_dir(place);
        let paths = entries.into_iter().flatten().flatten();
        let paths = paths.map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|it| it == "conf"))
    });
    let mut drop_ins: Vec<String> = drop_ins.map(|path| path.display().to_string()).collect();
    drop_ins.sort();
    Unit {
        file,
        drop_ins,
        properties: BTreeMap::new(),
    }
}

/// What systemd says about the unit; empty where there is no systemd, or no answer.
fn properties(unit: &str) -> BTreeMap<String, String> {
    if !Path::new(BOOTED).is_dir() {
        return BTreeMap::new();
    }
    let asked = Command::new("systemctl")
        .args(["show", unit, PROPERTIES])
        .stdin(Stdio::null())
        .output();
    let told = asked.map(|output| output.stdout).unwrap_or_default();
    let told = String::from_utf8_lossy(&told);
    let pairs = told.lines().filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The length of a file in bytes; `None` if it does not exist, or this process can't see it.
pub(super) fn length(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|found| found.len())
}

/// The disk that the database is on, or will be.
pub(super) fn disk(database: &Path) -> Disk {
    let folders = database.ancestors().skip(1);
    let folder = folders.into_iter().find(|folder| folder.is_dir());
    let folder = folder.unwrap_or(Path::new("."));
    let room = rustix::fs::statvfs(folder);
    let log = database.with_extension("db-wal");
    Disk {
        folder: folder.display().to_string(),
        free_bytes: room
            .ok()
            .map(|room| room.f_bavail.saturating_mul(room.f_frsize)),
        database_bytes: length(database).unwrap_or(0) + length(&log).unwrap_or(0),
    }
}

/// The backups in a folder, known by the names that `vocative backup` gives; a missing folder holds none.
pub(super) fn backups(folder: &Path) -> Result<Backups, String> {
    let entries = match std::fs::read_dir(folder) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Backups::default()),
        entries => entries.map_err(|cause| cause.to_string())?,
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<Backup> = names.filter_map(backup_named).collect();
    // Names sort by time, and those of the same second by their number.
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Backups {
        count: found.len(),
        newest: found.pop(),
    })
}

/// The backup with a name like `vocative-20260102T033000Z.db`, whose time is UTC; `None` for any other name.
pub(super) fn backup_named(name: String) -> Option<Backup> {
    let at = name.strip_prefix("vocative-")?.strip_suffix(".db")?;
    let at = at.split_once('_').map_or(at, |(at, _)| at);
    let at = NaiveDateTime::parse_from_str(at, "%Y%m%dT%H%M%SZ").ok()?;
    Some(Backup {
        made_at_ms: at.and_utc().timestamp_millis(),
        name,
    })
}

/// Findings about files with secrets that other users of this machine can read.
pub(super) fn modes(config: &Config, environment: &Environment) -> Vec<DoctorFinding> {
    let open = open_secrets(config, environment);
    let finding = |path: PathBuf| {
        let path = path.display();
        DoctorFinding::fix(
            "secrets",
            format!("{path} can be read by others of this machine"),
            &format!("chmod go= {path}"),
        )
    };
    open.into_iter().map(finding).collect()
}

/// The files with secrets that others than their owner can read. Files that systemd passes in are systemd's concern.
pub(super) fn open_secrets(config: &Config, environment: &Environment) -> Vec<PathBuf> {
    if environment.get("CREDENTIALS_DIRECTORY").is_some() {
        return Vec::new();
    }
    let is_open = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
    };
    let mut open: Vec<PathBuf> = config.secret_files(environment);
    open.retain(is_open);
    open.sort();
    open.dedup();
    open
}
