//! Whether the programs of tools can be kept from reading the archive on this machine.

use super::error::CliError;
use crate::config::Config;
use crate::confining;

/// A line about each program that is started for a tool: how it is confined.
///
/// # Errors
/// If the machine can't confine programs, and one of them is not trusted.
pub(super) fn told(config: &Config) -> Result<Vec<String>, CliError> {
    if config.programs().next().is_none() {
        return Ok(Vec::new());
    }
    told_with(config, &confining::can_confine(), confining::holds_ports)
}

fn told_with(
    config: &Config,
    confined: &Result<(), String>,
    holds_ports: impl Fn() -> bool,
) -> Result<Vec<String>, CliError> {
    let mut lines = Vec::new();
    for (table, program) in config.programs() {
        let line = match confined {
            Ok(()) if program.reach.connect_ports.is_empty() => {
                "confined: no network, and no file but those that it was given".to_owned()
            }
            Ok(()) if holds_ports() => {
                "confined: no file but those that it was given, and its ports".to_owned()
            }
            Ok(()) => "confined: no file but those that it was given; this kernel does not hold it to its ports \
                       (Linux 6.7 does)"
                .to_owned(),
            Err(why) if program.is_trusted => {
                format!("this tool can read the archive: {why}")
            }
            Err(why) => {
                return Err(CliError::Unconfigured {
                    what: format!("[{table}]: this tool can read the archive: {why}"),
                    advice: "set trusted = true there if it may, or run the daemon where Landlock and seccomp work".to_owned(),
                });
            }
        };
        lines.push(format!("{table}: {line}"));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use super::*;
    use crate::config::Environment;

    fn config(settings: &str) -> Config {
        let text = format!(
            "[channels.telegram.acme]\ntoken = \"env:TOKEN\"\n[tools.refund]\nkind = \"command\"\n\
             description = \"Refunds.\"\nargv = [\"/bin/refund\"]\napproval = \"never\"\n{settings}"
        );
        let file = Some((Path::new("/etc/vocative.toml"), text.as_str()));
        let environment = Environment::from([("HOME", "/home/ada")]);
        Config::from_text(file, &environment).unwrap().0
    }

    #[test]
    fn a_tool_that_can_read_the_archive_must_be_trusted() {
        let cannot = || Err("no Landlock".to_owned());
        let told = |settings: &str, confined, holds_ports: bool| {
            told_with(&config(settings), &confined, || holds_ports)
                .map_err(|error| error.to_string())
        };
        let cases = [
            (told("", Ok(()), false), "no network"),
            (told("connect_ports = [443]", Ok(()), true), "and its ports"),
            (
                told("connect_ports = [443]", Ok(()), false),
                "does not hold it to its ports",
            ),
            (
                told("trusted = true", cannot(), false),
                "can read the archive: no Landlock",
            ),
        ];
        for (lines, expected) in cases {
            let lines = lines.unwrap();
            assert!(lines[0].contains(expected), "{lines:?}");
        }
        let refused = told("", cannot(), true).unwrap_err();
        assert!(
            refused.contains("[tools.refund]: this tool can read the archive"),
            "{refused}"
        );
    }
}
