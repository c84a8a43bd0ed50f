//! What every command needs: the global options, the environment, stdout.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;

use tokio::io::Interest;
use tokio::net::unix::pipe;
use vocative_contract::work::looked_at;

use super::args::GlobalArgs;
use super::error::CliError;
use super::logging;
use crate::config::{Config, Environment, Secrets, Warning};

/// What every command needs.
#[derive(Debug)]
pub(super) struct CliContext {
    /// The global options.
    pub global: GlobalArgs,
    /// The environment.
    pub environment: Environment,
}

impl CliContext {
    /// Loads the configuration.
    ///
    /// # Errors
    /// Everything wrong with it.
    pub(super) fn load_config(&self) -> Result<(Config, Vec<Warning>), CliError> {
        Ok(Config::load(
            self.global.config.as_deref(),
            &self.environment,
        )?)
    }

    /// Loads the configuration and every secret it refers to.
    ///
    /// # Errors
    /// Everything wrong with both, at once.
    pub(super) fn load_with_secrets(&self) -> Result<(Config, Secrets, Vec<Warning>), CliError> {
        Ok(Config::load_with_secrets(
            self.global.config.as_deref(),
            &self.environment,
        )?)
    }

    /// Starts the log as configured.
    ///
    /// # Errors
    /// If it was started already.
    pub(super) fn start_log(&self, config: &Config) -> Result<(), CliError> {
        let daemon = &config.daemon;
        logging::start(
            daemon.log_format,
            &daemon.log_level,
            &self.global,
            &self.environment,
        )
    }

    /// Starts the log of a command that has no configuration.
    ///
    /// # Errors
    /// If it was started already.
    #[cfg(feature = "demo")]
    pub(super) fn start_log_at(&self, level: &str) -> Result<(), CliError> {
        logging::start(
            crate::config::LogFormat::Auto,
            level,
            &self.global,
            &self.environment,
        )
    }

    /// Writes a result to stdout, with what could steer a terminal escaped. A closed pipe is no error.
    ///
    /// # Errors
    /// If stdout can't be written.
    pub(super) fn print(&self, text: &str) -> Result<(), CliError> {
        self.print_on(text).map(|_| ())
    }

    /// Like [`Self::print`]; returns whether stdout still has a reader, so that a caller can stop printing.
    ///
    /// # Errors
    /// As for [`Self::print`].
    pub(super) fn print_on(&self, text: &str) -> Result<bool, CliError> {
        let mut stdout = std::io::stdout().lock();
        match stdout
            .write_all(harmless(text).as_bytes())
            .and_then(|()| stdout.flush())
        {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(CliError::failed("stdout can't be written", error))
            }
            written => Ok(written.is_ok()),
        }
    }
}

/// Waits until the reader of stdout has gone; forever if stdout is no pipe.
pub(super) async fn reader_gone() {
    let gone = match stdout_pipe() {
        Some(pipe) => pipe.ready(Interest::ERROR).await.is_ok(),
        None => false,
    };
    if !gone {
        std::future::pending::<()>().await;
    }
}

/// Stdout as a pipe, to watch whether its reader is there; `None` if it is no pipe.
fn stdout_pipe() -> Option<pipe::Sender> {
    let stdout = std::io::stdout().as_fd().try_clone_to_owned().ok()?;
    let stdout = File::from(stdout);
    let is_pipe = stdout.metadata().ok()?.file_type().is_fifo();
    is_pipe.then(|| pipe::Sender::from_owned_fd_unchecked(stdout.into()).ok())?
}

/// The text with what can steer a terminal, control characters and changes of the writing direction, as `\u` escapes:
/// visible in a text, and still the same string in JSON.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    let steers = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    looked_at(text.len());
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) {
            let _ = write!(safe, "\\u{:04x}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn what_steers_a_terminal_is_shown_and_not_obeyed() {
        let typed = "a\tb\n\u{1b}]0;title\u{7}\u{202e}live\u{2066}\u{9b}2J é漢";
        let shown = harmless(typed);
        assert_eq!(
            shown,
            "a\tb\n\\u001b]0;title\\u0007\\u202elive\\u2066\\u009b2J é漢"
        );
        let json = harmless("\"live\u{202e}\"").into_owned();
        let read: String = serde_json::from_str(&json).unwrap();
        assert_eq!(read, "live\u{202e}");
    }
}
