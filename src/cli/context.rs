//! What every command has at hand: the options of every command, the environment, stdout.

use std::io::{ErrorKind, Write as _};

use super::args::GlobalArgs;
use super::error::CliError;
use super::logging;
use crate::config::{Config, Environment, LogFormat, Warning};

/// What every command has at hand.
#[derive(Debug)]
pub(super) struct Context {
    /// The options of every command.
    pub global: GlobalArgs,
    /// The environment.
    pub environment: Environment,
}

impl Context {
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
    pub(super) fn start_log_at(&self, level: &str) -> Result<(), CliError> {
        logging::start(LogFormat::Auto, level, &self.global, &self.environment)
    }

    /// Writes a result to stdout. A reader that has closed it has seen enough: no failure.
    ///
    /// # Errors
    /// If stdout can't be written.
    pub(super) fn print(&self, text: &str) -> Result<(), CliError> {
        let mut stdout = std::io::stdout().lock();
        match stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
        {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(CliError::failed("stdout can't be written", error))
            }
            _ => Ok(()),
        }
    }
}
