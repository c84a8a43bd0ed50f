//! Findings about the systemd unit: whether it is installed as shipped, and its state. Pure.

use std::collections::BTreeMap;

use vocative_core::counted::counted;

use super::finding::DoctorFinding;
use crate::cli::service::{SHIPPED_PROGRAM, Service};

const SUBJECT: &str = "unit";

/// What was seen of the unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Unit {
    /// The unit's file that systemd reads: its path and its text.
    pub file: Option<(String, String)>,
    /// The paths of drop-in files, which change the unit.
    pub drop_ins: Vec<String>,
    /// What `systemctl show` says; empty where there is no systemd.
    pub properties: BTreeMap<String, String>,
}

impl Unit {
    fn property(&self, name: &str) -> &str {
        self.properties.get(name).map_or("", String::as_str)
    }
}

/// The findings about the unit.
pub(super) fn judged(unit: &Unit, service: &Service) -> Vec<DoctorFinding> {
    let Some((path, text)) = &unit.file else {
        return vec![DoctorFinding::fine(
            SUBJECT,
            format!(
                "no {} is installed: something else must start the daemon again",
                service.file_name()
            ),
        )];
    };
    let mut findings = vec![drift(service.shipped(), path, text)];
    if !unit.drop_ins.is_empty() {
        let what = format!("it is changed by {}", unit.drop_ins.join(", "));
        findings.push(DoctorFinding::fine(SUBJECT, what));
    }
    if unit.properties.is_empty() {
        return findings;
    }
    if unit.property("NeedDaemonReload") == "yes" {
        findings.push(DoctorFinding::fix(
            SUBJECT,
            "its file was changed, and systemd has not read it again",
            "systemctl daemon-reload",
        ));
    }
    findings.push(match unit.property("UnitFileState") {
        "disabled" => DoctorFinding::warn(
            SUBJECT,
            "it is not started when the machine is",
            "systemctl enable vocative",
        ),
        "masked" | "masked-runtime" => DoctorFinding::fix(
            SUBJECT,
            "it is masked, so nothing can start it",
            "systemctl unmask vocative",
        ),
        _ => DoctorFinding::fine(SUBJECT, "it is started with the machine"),
    });
    findings.push(state(unit, service));
    findings
}

/// Whether the installed unit is the one of this version.
fn drift(shipped: &str, path: &str, text: &str) -> DoctorFinding {
    let differing = differing(shipped, text);
    match differing.len() {
        0 => DoctorFinding::fine(SUBJECT, format!("{path} is the one of this version")),
        count => DoctorFinding::warn(
            SUBJECT,
            format!(
                "{path} is not the one of this version; {} differ: {}",
                counted(count as u64, "line", "lines"),
                differing.join(", ")
            ),
            "install the shipped unit, and keep changes in a drop-in: systemctl edit vocative",
        ),
    }
}

/// The lines by which two units differ, apart from comments and the program's path: `-` for lines of the shipped one
/// only, `+` for lines of the installed one only.
pub(super) fn differing(shipped: &str, installed: &str) -> Vec<String> {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
        lines
            .map(|line| line.replace("/usr/bin/vocative ", &format!("{SHIPPED_PROGRAM} ")))
            .collect()
    };
    let (shipped, installed) = (lines(shipped), lines(installed));
    let missing = shipped.iter().filter(|line| !installed.contains(line));
    let added = installed.iter().filter(|line| !shipped.contains(line));
    let missing = missing.map(|line| format!("-{line}"));
    missing
        .chain(added.map(|line| format!("+{line}")))
        .collect()
}

/// The unit's state, and how it last ended.
fn state(unit: &Unit, service: &Service) -> DoctorFinding {
    let restarts: u64 = unit.property("NRestarts").parse().unwrap_or(0);
    match (unit.property("ActiveState"), unit.property("Result")) {
        ("active", _) if restarts > 0 => DoctorFinding::warn(
            SUBJECT,
            format!(
                "it is active, and was restarted {} since it was started",
                counted(restarts, "time", "times")
            ),
            "journalctl --unit=vocative --priority=warning",
        ),
        ("active", _) => DoctorFinding::fine(SUBJECT, "it is active"),
        ("activating" | "reloading" | "deactivating", _) => {
            DoctorFinding::fine(SUBJECT, "it is starting or stopping")
        }
        ("failed", result) => DoctorFinding::fix(
            SUBJECT,
            format!(
                "it failed ({result}, exit code {}): {}",
                unit.property("ExecMainStatus"),
                meaning(unit.property("ExecMainStatus"), service)
            ),
            "journalctl --unit=vocative --lines=20",
        ),
        _ => DoctorFinding::warn(SUBJECT, "it is not started", "systemctl start vocative"),
    }
}

/// What an exit code of the daemon, or of systemd for it, means.
///
/// *Source:* `vocative --help`; systemd.exec(5), "Process Exit Codes".
fn meaning(code: &str, service: &Service) -> String {
    let told = match code {
        "65" => "the database is damaged",
        "69" => "an address is taken",
        "74" => "the database can't be used: rights, room, a failing disk",
        "77" => "a platform refused the tokens",
        "78" => "the configuration is wrong",
        "203" => "the program is not where the unit says",
        "243" => {
            let folder = service.credentials();
            return format!(
                "the folder of the credentials is missing: {}",
                folder.display()
            );
        }
        _ => "the journal says why",
    };
    told.to_owned()
}
