//! Tables: what was seen, and the finding that follows.

use std::collections::BTreeMap;
use std::path::Path;

use super::finding::{DoctorFinding, Level, Report};
use super::judging::{self, Backup, Backups, Disk};
use super::looking::{backup_named, backups, unit_in};
use super::standing;
use super::unit::{self, Unit};
use crate::admin::view::{ChannelView, RunCounts, StatusView, StoreView, WaitingSkillView};
use crate::cli::service::Service;

const DAY_MS: i64 = 86_400_000;

fn level(finding: &DoctorFinding) -> (Level, Option<&str>) {
    (finding.level, finding.command.as_deref())
}

#[test]
fn a_clock_is_judged_by_the_platform_that_disagrees_most() {
    let ahead = |ms: &[i64]| -> Vec<(String, i64)> {
        ms.iter().map(|ms| ("acme".to_owned(), *ms)).collect()
    };
    assert_eq!(judging::clock(&[]), None);
    let table = [
        (vec![0, 1_500], Level::Ok),
        (vec![29_999, -29_999], Level::Ok),
        (vec![30_000], Level::Warn),
        (vec![0, -299_999], Level::Warn),
        (vec![300_000, 0], Level::Fix),
        (vec![-31_536_000_000], Level::Fix),
    ];
    for (off, expected) in table {
        let found = judging::clock(&ahead(&off)).unwrap();
        assert_eq!(found.level, expected, "{off:?}: {}", found.what);
    }
    let behind = judging::clock(&ahead(&[-600_000])).unwrap();
    assert!(
        behind.what.contains("10 min behind that of acme"),
        "{}",
        behind.what
    );
}

#[test]
fn a_disk_has_room_for_two_copies_of_the_database() {
    const GIB: u64 = 1 << 30;
    let table = [
        (Some(10 * GIB), GIB, Level::Ok),
        (Some(2 * GIB), GIB, Level::Ok),
        (Some(2 * GIB - 1), GIB, Level::Fix),
        (Some(GIB / 8), 0, Level::Fix),
        (Some(u64::MAX), u64::MAX, Level::Ok),
        (None, GIB, Level::Warn),
    ];
    for (free_bytes, database_bytes, expected) in table {
        let seen = Disk {
            folder: "/data".to_owned(),
            free_bytes,
            database_bytes,
        };
        assert_eq!(judging::disk(&seen).level, expected, "{seen:?}");
    }
}

#[test]
fn backups_are_named_counted_and_aged() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    assert_eq!(backups(&missing), Ok(Backups::default()));
    for name in [
        "vocative-20260101T033000Z.db",
        "vocative-20260102T033000Z.db",
        "vocative-20260102T033000Z_2.db",
        "vocative-before-0016.db",
        "notes.txt",
    ] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let found = backups(folder.path()).unwrap();
    let newest = Backup {
        name: "vocative-20260102T033000Z_2.db".to_owned(),
        made_at_ms: 1_767_324_600_000,
    };
    let made_at_ms = newest.made_at_ms;
    assert_eq!(
        found,
        Backups {
            count: 3,
            newest: Some(newest)
        }
    );
    assert_eq!(
        backup_named("vocative-20261301T033000Z.db".to_owned()),
        None
    );

    let judge = |seen: &Result<Backups, String>, has_database, now_ms| {
        let found = judging::backups(Path::new("/backups"), seen, has_database, now_ms);
        found.level
    };
    let none = Ok(Backups::default());
    assert_eq!(judge(&none, false, 0), Level::Ok);
    assert_eq!(judge(&none, true, 0), Level::Warn);
    assert_eq!(judge(&Err("no".to_owned()), true, 0), Level::Warn);
    let some = Ok(found);
    assert_eq!(judge(&some, true, made_at_ms + DAY_MS), Level::Ok);
    assert_eq!(judge(&some, true, made_at_ms + 3 * DAY_MS), Level::Warn);
    // A clock that is behind makes a backup appear to come from the future: no warning.
    assert_eq!(judge(&some, true, made_at_ms - DAY_MS), Level::Ok);
}

#[test]
fn a_unit_is_compared_with_the_shipped_one() {
    let as_packaged = Service::default()
        .shipped()
        .replace("/usr/local/bin/vocative ", "/usr/bin/vocative ");
    assert_eq!(
        unit::differing(Service::default().shipped(), &as_packaged),
        [""; 0]
    );
    assert_eq!(
        unit::differing(
            Service::default().shipped(),
            &format!("# mine\n\n{}", Service::default().shipped())
        ),
        [""; 0]
    );
    let weak = Service::default()
        .shipped()
        .replace("NoNewPrivileges=yes\n", "NoNewPrivileges=no\n");
    assert_eq!(
        unit::differing(Service::default().shipped(), &weak),
        ["-NoNewPrivileges=yes", "+NoNewPrivileges=no"]
    );
}

#[test]
fn a_unit_is_judged_by_its_state() {
    let unit = |properties: &[(&str, &str)]| Unit {
        file: Some((
            "/usr/lib/systemd/system/vocative.service".to_owned(),
            Service::default().shipped().to_owned(),
        )),
        drop_ins: Vec::new(),
        properties: properties
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    };
    let worst = |unit: &Unit| {
        let findings = unit::judged(unit, &Service::default());
        let worst = findings
            .into_iter()
            .max_by_key(|found| found.level)
            .unwrap();
        (worst.level, worst.command)
    };
    let typed = |command: &str| Some(command.to_owned());
    let active = [
        ("ActiveState", "active"),
        ("UnitFileState", "enabled"),
        ("NRestarts", "0"),
    ];
    assert_eq!(worst(&Unit::default()), (Level::Ok, None));
    assert_eq!(worst(&unit(&[])), (Level::Ok, None));
    assert_eq!(worst(&unit(&active)), (Level::Ok, None));
    let changed = [&active[..], &[("NeedDaemonReload", "yes")]].concat();
    assert_eq!(
        worst(&unit(&changed)),
        (Level::Fix, typed("systemctl daemon-reload"))
    );
    let failed = [
        ("ActiveState", "failed"),
        ("Result", "exit-code"),
        ("ExecMainStatus", "243"),
    ];
    let told = unit::judged(&unit(&failed), &Service::default())
        .pop()
        .unwrap();
    assert!(
        told.what.contains("/etc/vocative/credentials"),
        "{}",
        told.what
    );
    let disabled = [("ActiveState", "active"), ("UnitFileState", "disabled")];
    assert_eq!(
        worst(&unit(&disabled)),
        (Level::Warn, typed("systemctl enable vocative"))
    );
}

#[test]
fn the_unit_that_wins_is_found_with_its_drop_ins() {
    let root = tempfile::tempdir().unwrap();
    let (etc, lib) = (root.path().join("etc"), root.path().join("lib"));
    std::fs::create_dir_all(etc.join("vocative.service.d")).unwrap();
    std::fs::create_dir_all(&lib).unwrap();
    std::fs::write(lib.join("vocative.service"), "packaged").unwrap();
    std::fs::write(etc.join("vocative.service.d/limits.conf"), "").unwrap();
    std::fs::write(etc.join("vocative.service.d/notes.txt"), "").unwrap();
    let found = unit_in(&[&etc, &lib], &Service::default());
    assert_eq!(found.file.unwrap().1, "packaged");
    assert_eq!(found.drop_ins.len(), 1);
    std::fs::write(etc.join("vocative.service"), "by hand").unwrap();
    assert_eq!(
        unit_in(&[&etc, &lib], &Service::default()).file.unwrap().1,
        "by hand"
    );
    assert_eq!(
        unit_in(&[], &Service::default()),
        Unit {
            properties: BTreeMap::new(),
            ..Unit::default()
        }
    );
}

#[test]
fn what_waits_for_a_person_comes_with_what_to_type() {
    let view = StatusView {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at_ms: Some(0),
        channels: vec![
            ChannelView {
                name: "acme".to_owned(),
                state: "connected".to_owned(),
                ..ChannelView::default()
            },
            ChannelView {
                name: "team".to_owned(),
                state: "connected".to_owned(),
                other_connections: 1,
                ..ChannelView::default()
            },
        ],
        runs: RunCounts {
            approvals_open: 2,
            ..RunCounts::default()
        },
        skills: ["new", "changed", "broken"]
            .map(|state| WaitingSkillView {
                name: state.to_owned(),
                state: state.to_owned(),
                cause: None,
            })
            .to_vec(),
        store: StoreView {
            erasures_open: 1,
            ..StoreView::default()
        },
        needs_person: vec![
            "1 post may or may not have arrived: see `vocative held list`".to_owned(),
        ],
        ..StatusView::default()
    };
    let findings = standing::judged(&view, 60_000);
    let told: Vec<_> = findings.iter().map(level).collect();
    assert_eq!(
        told,
        [
            (Level::Ok, None),
            (Level::Ok, None),
            (Level::Fix, None),
            (Level::Fix, Some("vocative held list")),
            (Level::Warn, Some("vocative skills list")),
            (Level::Warn, Some("vocative skills list")),
            (Level::Warn, Some("vocative approvals list")),
            (Level::Warn, Some("vocative jobs")),
        ]
    );
    let skills: Vec<&str> = findings[4..6].iter().map(|it| it.what.as_str()).collect();
    assert_eq!(
        skills,
        [
            "2 skills wait for approval",
            "1 skill that an agent names is missing or broken"
        ]
    );
    let stopped = StatusView::default();
    assert_eq!(
        level(&standing::judged(&stopped, 0)[0]),
        (Level::Fix, Some("systemctl start vocative"))
    );
}

#[test]
fn a_report_has_one_verdict() {
    let mut report = Report::new();
    report.push(DoctorFinding::fine("disk", "room"));
    assert_eq!(
        report.text(),
        "ok    disk  room\n\nNothing is to be put right.\n"
    );
    report.push(DoctorFinding::warn("backups", "none", "make one"));
    report.push(DoctorFinding::fix("unit", "failed\nbadly", ""));
    insta::assert_snapshot!(report.text(), @r"
    ok    disk     room
    warn  backups  none
                   type: make one
    fix   unit     failed
                   badly

    1 thing is to be put right. 1 warning.
    ");
    assert_eq!(report.verdict(), Level::Fix);
}
