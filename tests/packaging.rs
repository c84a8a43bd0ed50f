//! What the packages hold besides the program: man pages and completions for every command, and the notices of
//! all libraries.
#![allow(clippy::unwrap_used)]

#[path = "../examples/manual.rs"]
mod manual;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use clap::CommandFactory as _;
use vocative::cli::args::Cli;

/// All commands with those above them: `vocative-held-list`.
fn names(command: &clap::Command, above: &str, found: &mut Vec<String>) {
    let name = match above {
        "" => command.get_name().to_owned(),
        above => format!("{above}-{}", command.get_name()),
    };
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    for below in shown {
        names(below, &name, found);
    }
    found.push(name);
}

#[test]
fn every_command_has_a_man_page_and_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    manual::write(folder.path()).unwrap();
    let mut commands = Vec::new();
    names(&Cli::command(), "", &mut commands);
    assert!(commands.len() > 40, "{commands:?}");
    for command in &commands {
        let page = folder.path().join(format!("man/{command}.1"));
        let page =
            std::fs::read_to_string(&page).unwrap_or_else(|_| panic!("{command} has no page"));
        assert!(page.contains(".SH SYNOPSIS"), "{command}");
    }
    for name in ["vocative.bash", "_vocative", "vocative.fish"] {
        let text = std::fs::read_to_string(folder.path().join("completions").join(name)).unwrap();
        for command in ["setup", "doctor", "conversations"] {
            assert!(text.contains(command), "{name} lacks {command}");
        }
    }
}

#[test]
fn the_program_prints_the_notices_of_its_libraries() {
    let output = Command::new(env!("CARGO_BIN_EXE_vocative"))
        .arg("--licenses")
        .output()
        .unwrap();
    assert!(output.status.success());
    let told = String::from_utf8(output.stdout).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let notices = std::fs::read_to_string(root.join("THIRD-PARTY.txt")).unwrap();
    assert!(told.contains("rustls ") && told.contains("Permission is hereby granted"));
    // What a terminal would take for a command is shown, and not obeyed; nothing else differs.
    let lines = notices.lines().filter(|line| line.is_ascii());
    assert_eq!(lines.filter(|line| !told.contains(*line)).count(), 0);
}

/// A unit's lines without comments, by section.
fn sections(name: &str) -> BTreeMap<String, Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("systemd")
        .join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let mut sections = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with('[') {
            section = line.to_owned();
        } else if !line.is_empty() {
            let lines: &mut Vec<String> = sections.entry(section.clone()).or_default();
            lines.push(line.to_owned());
        }
    }
    sections
}

/// A cell's unit is the plain one but for its paths, its user and its names. What is hardened or limited in one and not
/// in the other is found here.
#[test]
fn the_units_of_cells_are_the_plain_ones_with_a_name_in_them() {
    let plain = [
        ("vocative-cells-backup/%i", "vocative-backup"),
        ("vocative-cells/%i", "vocative"),
        ("vocative/cells/%i", "vocative"),
        ("vocative-cell-%i", "vocative"),
        ("vocative@%i.service", "vocative.service"),
        ("-api-%i", "-api"),
        ("-control-%i", "-control"),
        ("RandomizedDelaySec=60min", "RandomizedDelaySec=15min"),
        (", cell %i", ""),
        (" of %i", ""),
    ];
    for (template, unit) in [
        ("vocative@.service", "vocative.service"),
        ("vocative-api@.socket", "vocative-api.socket"),
        ("vocative-control@.socket", "vocative-control.socket"),
        ("vocative-backup@.service", "vocative-backup.service"),
        ("vocative-backup@.timer", "vocative-backup.timer"),
    ] {
        let mut found = sections(template);
        let mut expected = sections(unit);
        // The plain unit's user is named after the unit; the daemon and its backup share one.
        for lines in found.values_mut().chain(expected.values_mut()) {
            for line in lines.iter_mut() {
                for (own, shared) in plain {
                    *line = line.replace(own, shared);
                }
            }
            lines.retain(|line| line != "User=vocative");
        }
        assert_eq!(found, expected, "{template}");
        let text: String = sections(template).into_values().flatten().collect();
        let is_timer = template.ends_with(".timer");
        assert!(is_timer || text.matches("%i").count() >= 3, "{template}");
    }
    for template in ["vocative@.service", "vocative-backup@.service"] {
        let lines = &sections(template)["[Service]"];
        assert!(
            lines.iter().any(|line| line == "User=vocative-cell-%i"),
            "{template}"
        );
    }
}

/// A server's own unit may write and execute memory, as just-in-time compilers do, and give nothing else away.
#[test]
fn the_unit_of_a_server_of_tools_gives_up_one_thing_of_the_daemons() {
    let lines = |name: &str| sections(name).remove("[Service]").unwrap();
    let (daemon, server) = (lines("vocative.service"), lines("vocative-mcp@.service"));
    let begins = |line: &&String| {
        [
            "No", "Cap", "Amb", "Protect", "Private", "Restrict", "Proc", "Lock", "Memory",
            "Remove", "System", "Device", "Keyring", "Limit",
        ]
        .iter()
        .any(|start| line.starts_with(start))
    };
    let is_hardening = |line: &&String| begins(line) && !line.starts_with("RestartP");
    let missing: Vec<_> = daemon
        .iter()
        .filter(is_hardening)
        .filter(|line| !server.contains(line))
        .collect();
    assert_eq!(
        missing,
        [
            "NotifyAccess=main",
            "MemoryDenyWriteExecute=yes",
            "SystemCallFilter=landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp",
        ]
    );
}

#[test]
fn the_packaged_unit_starts_nothing_before_there_is_a_configuration() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let unit = std::fs::read_to_string(root.join("systemd/vocative.service")).unwrap();
    assert!(unit.contains("\nConditionPathExists=/etc/vocative/vocative.toml\n"));
    for script in ["preinst", "postinst", "prerm", "postrm"] {
        let path = root.join("packaging/debian").join(script);
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.starts_with("#!/bin/sh\n"), "{script}");
        assert!(text.contains("\n#DEBHELPER#\n"), "{script}");
        assert!(text.contains("\nset -e\n"), "{script}");
        assert!(
            !text.contains("/var/lib/vocative\n") && !text.contains("rm -rf /var"),
            "{script}"
        );
    }
}
