//! The findings of the doctor, and the report that is made of them.

use std::fmt::Write as _;

use serde::Serialize;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::cli) enum Level {
    /// All is well.
    Ok,
    /// It works, but a person should know about it.
    Warn,
    /// Something must be put right.
    Fix,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fix => "fix",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct DoctorFinding {
    /// The subject, in a word: `configuration`, `daemon`, `unit`, a channel's name.
    pub subject: String,
    /// How serious it is.
    pub level: Level,
    /// What was found, without secrets and without the text of rooms.
    pub what: String,
    /// What to type, where a command helps.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Whether it is a mistake of the configuration.
    #[serde(skip)]
    pub is_configuration: bool,
}

impl DoctorFinding {
    /// A finding. The last command that its text names in backticks becomes the command to type, unless all is well.
    pub(super) fn of(subject: &str, level: Level, what: impl Into<String>) -> Self {
        let what = what.into();
        let command = command_in(&what).filter(|_| level != Level::Ok);
        Self {
            subject: subject.to_owned(),
            level,
            command: command.map(str::to_owned),
            what,
            is_configuration: false,
        }
    }

    /// A finding that all is well.
    pub(super) fn fine(subject: &str, what: impl Into<String>) -> Self {
        Self::of(subject, Level::Ok, what)
    }

    /// A finding that a person should know about. `command` may be empty.
    pub(super) fn warn(subject: &str, what: impl Into<String>, command: &str) -> Self {
        Self::of(subject, Level::Warn, what).typing(command)
    }

    /// A finding on which a person must act. `command` may be empty.
    pub(super) fn fix(subject: &str, what: impl Into<String>, command: &str) -> Self {
        Self::of(subject, Level::Fix, what).typing(command)
    }

    fn typing(self, command: &str) -> Self {
        match command {
            "" => self,
            command => Self {
                command: Some(command.to_owned()),
                ..self
            },
        }
    }
}

/// The last command of this program or of systemctl that a sentence names in backticks.
fn command_in(text: &str) -> Option<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_command = |word: &&str| word.starts_with("vocative ") || word.starts_with("systemctl ");
    quoted.filter(is_command).last()
}

/// All findings, as they are printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct Report {
    /// The version of the program.
    pub version: &'static str,
    /// The worst of the findings.
    pub verdict: Level,
    /// The findings, in the order in which things depend on each other.
    pub findings: Vec<DoctorFinding>,
    /// What `--fix` put right.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mended: Vec<String>,
}

impl Report {
    /// A report without findings.
    pub(super) fn new() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            verdict: Level::Ok,
            findings: Vec::new(),
            mended: Vec::new(),
        }
    }

    /// Adds a finding, and raises the verdict to its level.
    pub(super) fn push(&mut self, finding: DoctorFinding) {
        self.verdict = self.verdict.max(finding.level);
        self.findings.push(finding);
    }

    /// Adds findings.
    pub(super) fn extend(&mut self, findings: impl IntoIterator<Item = DoctorFinding>) {
        for finding in findings {
            self.push(finding);
        }
    }

    /// Rewrites every command for the units of this daemon.
    pub(super) fn spell(&mut self, spelled: impl Fn(&str) -> String) {
        for finding in &mut self.findings {
            finding.command = finding.command.take().map(|command| spelled(&command));
        }
    }

    /// The worst of the findings.
    pub(super) fn verdict(&self) -> Level {
        self.verdict
    }

    /// Whether a finding is a mistake of the configuration.
    pub(super) fn is_misconfigured(&self) -> bool {
        self.findings.iter().any(|found| found.is_configuration)
    }

    fn count(&self, level: Level) -> usize {
        let of_level = self.findings.iter().filter(|found| found.level == level);
        of_level.count()
    }

    /// The report as text: a line for each finding with its command below it, and the verdict.
    pub(in crate::cli) fn text(&self) -> String {
        let subjects = self.findings.iter();
        let width = subjects
            .map(|it| it.subject.chars().count())
            .max()
            .unwrap_or(0);
        let indent = " ".repeat(width + 8);
        let mut out = String::new();
        for told in &self.mended {
            let _ = writeln!(out, "put right: {told}");
        }
        for found in &self.findings {
            let mut lines = found.what.lines();
            let first = lines.next().unwrap_or_default();
            let _ = writeln!(
                out,
                "{:<4}  {:<width$}  {first}",
                found.level.word(),
                found.subject
            );
            for line in lines {
                let _ = writeln!(out, "{indent}{line}");
            }
            if let Some(command) = &found.command {
                let _ = writeln!(out, "{indent}type: {command}");
            }
        }
        let warnings = match self.count(Level::Warn) {
            0 => String::new(),
            1 => " 1 warning.".to_owned(),
            count => format!(" {count} warnings."),
        };
        let verdict = match self.count(Level::Fix) {
            0 => "Nothing is to be put right.".to_owned(),
            1 => "1 thing is to be put right.".to_owned(),
            count => format!("{count} things are to be put right."),
        };
        let _ = writeln!(out, "\n{verdict}{warnings}");
        out
    }
}
