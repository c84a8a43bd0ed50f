//! What the packages hold besides the program: man pages and completions for every command, and the notices of
//! all libraries.
#![allow(clippy::unwrap_used)]

#[path = "../examples/manual.rs"]
mod manual;

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
