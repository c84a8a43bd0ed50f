//! The problems of a configuration, reported all at once, in words that say what to do.

use std::fmt;
use std::path::PathBuf;

use super::origin::WrittenAt;

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file it is in; `None` if it is in the environment or in no single place.
    pub file: Option<PathBuf>,
    /// The line in that file, from 1.
    pub line: Option<usize>,
    /// The environment variable it is in.
    pub variable: Option<String>,
    /// The setting, as a dotted path; empty for a file as a whole.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub suggestion: Option<String>,
}

impl Problem {
    /// A problem with a setting.
    pub(super) fn new(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            file: None,
            line: None,
            variable: None,
            key: key.into(),
            what: what.into(),
            suggestion: None,
        }
    }

    /// Adds the place where the problem is.
    #[must_use]
    pub(super) fn at(mut self, place: Option<&WrittenAt>) -> Self {
        match place {
            Some(WrittenAt::Line { file, line }) => {
                self.file = Some(file.clone());
                self.line = *line;
            }
            Some(WrittenAt::Variable(name)) => self.variable = Some(name.clone()),
            None => {}
        }
        self
    }

    /// Adds what to do.
    #[must_use]
    pub(super) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    fn place(&self) -> Option<String> {
        if let Some(variable) = &self.variable {
            return Some(format!("${variable}"));
        }
        let file = self.file.as_ref()?.display();
        Some(match self.line {
            Some(line) => format!("{file}:{line}"),
            None => file.to_string(),
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head: Vec<String> = self
            .place()
            .into_iter()
            .chain((!self.key.is_empty()).then(|| self.key.clone()))
            .collect();
        let lines = self
            .what
            .lines()
            .chain(self.suggestion.iter().flat_map(|s| s.lines()));
        if head.is_empty() {
            return write!(f, "{}", lines.collect::<Vec<_>>().join("\n"));
        }
        write!(f, "{}", head.join("  "))?;
        for line in lines {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}

/// A configuration that can't be used, with all its problems.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// At least one, in the order of files, lines and keys.
    pub problems: Vec<Problem>,
}

impl ConfigError {
    /// The error in one line, for a log: the first problems, and how many there are.
    #[must_use]
    pub fn in_one_line(&self) -> String {
        const SHOWN: usize = 3;
        let count = self.problems.len();
        let one = |problem: &Problem| {
            let place = problem.place().unwrap_or_default();
            let parts = [place.as_str(), &problem.key, &problem.what];
            let parts = parts.into_iter().filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join(" ").replace('\n', " ")
        };
        let shown: Vec<String> = self.problems.iter().take(SHOWN).map(one).collect();
        let more = match count.saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("; and {more} more, which `vocative check` shows"),
        };
        format!("{}{more}", shown.join("; "))
    }

    /// Fails if there are problems.
    pub(super) fn check(mut problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            return Ok(());
        }
        problems.sort_by(|a, b| {
            (
                a.variable.is_some(),
                a.file.is_none(),
                a.line,
                &a.key,
                &a.what,
            )
                .cmp(&(
                    b.variable.is_some(),
                    b.file.is_none(),
                    b.line,
                    &b.key,
                    &b.what,
                ))
        });
        problems.dedup();
        Err(Self { problems })
    }
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self {
            problems: vec![problem],
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.len() {
            1 => write!(f, "one problem in the configuration")?,
            n => write!(f, "{n} problems in the configuration")?,
        }
        for problem in &self.problems {
            write!(f, "\n\n  {}", problem.to_string().replace('\n', "\n  "))?;
        }
        write!(
            f,
            "\n\n`vocative config example` prints every setting with what it means"
        )
    }
}

/// Something that works but should be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The setting, as a dotted path; empty if it is about no single setting.
    pub key: String,
    /// What was found, and what to do.
    pub what: String,
}

impl Warning {
    pub(super) fn new(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}", self.what)
        } else {
            write!(f, "{}: {}", self.key, self.what)
        }
    }
}
