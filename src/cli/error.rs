//! The errors of commands, by what the person should do next; each has its exit code.

use std::error::Error;
use std::process::ExitCode;

use crate::admin::operations::OperationError;
use crate::config::ConfigError;

/// A boxed cause.
pub type ErrorCause = Box<dyn Error + Send + Sync>;

/// Exit codes that are documented in `--help`; the numbers over 2 are those of `sysexits.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Ok = 0,
    /// The command failed, or something needs a person.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The database or a backup is damaged.
    Damaged = 65,
    /// The daemon, a platform or a model can't be reached, or an address is taken.
    Unavailable = 69,
    /// The database can't be used: rights, room, a failing disk.
    Storage = 74,
    /// A platform or a model refused the credentials.
    Refused = 77,
    /// The configuration is wrong.
    Config = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is nothing to do with this configuration.
    #[error("{what}")]
    Unconfigured {
        /// What is missing.
        what: String,
        /// What to do.
        advice: String,
    },
    /// The command line is wrong in a way that only the command can see.
    #[error("{0}")]
    Usage(String),
    /// The database or a backup is damaged.
    #[error("{what}")]
    Damaged {
        /// Which file, and what is damaged.
        what: String,
        /// What to do.
        advice: &'static str,
    },
    /// The database, its folder or the socket's can't be used.
    #[error("{what}")]
    Storage {
        /// Which file, and why.
        what: String,
        /// What to do.
        advice: &'static str,
    },
    /// The daemon, a platform or a model can't be reached.
    #[error("{what}")]
    Unavailable {
        /// What can't be reached.
        what: String,
        /// What to do.
        advice: String,
        /// Why.
        #[source]
        cause: Option<ErrorCause>,
    },
    /// A platform or a model refused the credentials.
    #[error("{what}")]
    Refused {
        /// Who refused what.
        what: String,
        /// What to do.
        advice: String,
        /// Why.
        #[source]
        cause: Option<ErrorCause>,
    },
    /// Any other failure.
    #[error("{what}")]
    Failed {
        /// What failed.
        what: String,
        /// What to do, where that is known.
        advice: Option<String>,
        /// Why.
        #[source]
        cause: Option<ErrorCause>,
    },
}

impl CliError {
    /// A failure with its cause and without advice.
    pub(super) fn failed(what: impl Into<String>, cause: impl Into<ErrorCause>) -> Self {
        Self::Failed {
            what: what.into(),
            advice: None,
            cause: Some(cause.into()),
        }
    }

    /// The exit code of the error.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::Unconfigured { .. } => Exit::Config,
            Self::Usage(_) => Exit::Usage,
            Self::Damaged { .. } => Exit::Damaged,
            Self::Storage { .. } => Exit::Storage,
            Self::Unavailable { .. } => Exit::Unavailable,
            Self::Refused { .. } => Exit::Refused,
            Self::Failed { .. } => Exit::Failed,
        }
    }

    fn advice(&self) -> Option<&str> {
        match self {
            Self::Unconfigured { advice, .. }
            | Self::Unavailable { advice, .. }
            | Self::Refused { advice, .. } => Some(advice),
            Self::Failed { advice, .. } => advice.as_deref(),
            Self::Damaged { advice, .. } | Self::Storage { advice, .. } => Some(advice),
            Self::Usage(_) => Some("`vocative --help` explains the commands"),
            Self::Config(_) => None,
        }
    }

    /// The error with the whole chain of causes, and what to do.
    #[must_use]
    pub fn report(&self) -> String {
        let mut text = format!("error: {self}");
        // A configuration error has no chain of causes: its own text says everything.
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(&format!("\n  because: {error}"));
            cause = error.source();
        }
        if let Some(advice) = self.advice() {
            text.push_str(&format!("\n{advice}"));
        }
        text
    }
}

impl From<std::io::Error> for CliError {
    fn from(cause: std::io::Error) -> Self {
        Self::failed("a file, port or socket can't be used", cause)
    }
}

impl From<OperationError> for CliError {
    fn from(cause: OperationError) -> Self {
        match cause {
            OperationError::Wrong(what)
            | OperationError::Missing(what)
            | OperationError::Over(what)
            | OperationError::NotTheirs(what) => Self::Failed {
                what,
                advice: None,
                cause: None,
            },
            OperationError::Store(cause) => cause.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_whole_chain_once_and_the_advice() {
        let error = CliError::Unavailable {
            what: "the daemon does not answer".to_owned(),
            advice: "start it with `vocative run`".to_owned(),
            cause: Some(Box::new(std::io::Error::other("no such socket"))),
        };
        assert_eq!(
            error.report(),
            "error: the daemon does not answer\n  because: no such socket\n\
             start it with `vocative run`"
        );
        assert_eq!(error.exit(), Exit::Unavailable);
    }
}
