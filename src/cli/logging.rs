//! The log: on stderr, as text or JSON. The journal of systemd adds time and unit itself, so text leaves them out
//! there.
//!
//! Lines of libraries below info are never written, whatever level is set: their debug lines hold URLs with tokens,
//! headers and message texts.

use std::io::IsTerminal as _;

use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::args::GlobalArgs;
use super::error::CliError;
use crate::config::{Environment, LogFormat};

/// Starts the log. Call it once.
///
/// # Errors
/// If the level can't be read (a configuration's level was checked before), or a log was started
/// already.
pub(super) fn start(
    format: LogFormat,
    level: &str,
    global: &GlobalArgs,
    environment: &Environment,
) -> Result<(), CliError> {
    let directives = directives(level, global.verbose, global.quiet);
    let filter = EnvFilter::builder()
        .parse(&directives)
        .map_err(|error| CliError::failed("the log level can't be read", error))?;
    let stderr = Stderr {
        is_terminal: std::io::stderr().is_terminal(),
        stream: stream_of_stderr(),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    let lines = match look(global.log_format.unwrap_or(format), &stderr, environment) {
        LogLook::Json => lines.json().flatten_event(true).boxed(),
        LogLook::Text {
            has_time: true,
            has_colours,
        } => lines.with_ansi(has_colours).with_target(false).boxed(),
        LogLook::Text {
            has_time: false,
            has_colours,
        } => lines
            .with_ansi(has_colours)
            .with_target(false)
            .without_time()
            .boxed(),
    };
    let discreet = filter_fn(is_discreet).with_max_level_hint(LevelFilter::TRACE);
    let started = tracing_subscriber::registry()
        .with(lines.with_filter(discreet))
        .with(filter)
        .try_init();
    started.map_err(|error| CliError::failed("the log can't be started", error))
}

/// Whether a line can't hold secrets or content: it is the program's own, or a library's from info up.
fn is_discreet(line: &Metadata<'_>) -> bool {
    is_discreet_of(line.target(), *line.level())
}

fn is_discreet_of(target: &str, level: Level) -> bool {
    let root = target.split("::").next().unwrap_or_default();
    root == "vocative" || root.starts_with("vocative_") || level <= Level::INFO
}

/// The filter: the level from the command line, otherwise the configured one.
fn directives(configured: &str, verbose: u8, quiet: u8) -> String {
    match (verbose, quiet) {
        (0, 0) => configured.to_owned(),
        (1, _) => "info,vocative=debug".to_owned(),
        (2.., _) => "info,vocative=trace".to_owned(),
        (_, 1) => "warn".to_owned(),
        (_, 2..) => "error".to_owned(),
    }
}

/// What stderr is connected to.
struct Stderr {
    is_terminal: bool,
    /// Device and inode, as in `$JOURNAL_STREAM`.
    stream: Option<String>,
}

#[cfg(target_os = "linux")]
fn stream_of_stderr() -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::metadata("/proc/self/fd/2").ok()?;
    Some(format!("{}:{}", found.dev(), found.ino()))
}

#[cfg(not(target_os = "linux"))]
fn stream_of_stderr() -> Option<String> {
    None
}

/// The format of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogLook {
    Json,
    Text { has_time: bool, has_colours: bool },
}

fn look(format: LogFormat, stderr: &Stderr, environment: &Environment) -> LogLook {
    // A child of a service inherits the variable, so it counts only if it names this very stream.
    // Source: systemd.exec(5), $JOURNAL_STREAM.
    let is_journal = stderr.stream.is_some()
        && environment.get_filled("JOURNAL_STREAM") == stderr.stream.as_deref();
    let has_colours = stderr.is_terminal && environment.get_filled("NO_COLOR").is_none();
    match format {
        LogFormat::Json => LogLook::Json,
        LogFormat::Text => LogLook::Text {
            has_time: true,
            has_colours,
        },
        LogFormat::Auto => LogLook::Text {
            has_time: !is_journal,
            has_colours,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_look_as_their_place_wants() {
        let terminal = Stderr {
            is_terminal: true,
            stream: Some("1:2".to_owned()),
        };
        let pipe = Stderr {
            is_terminal: false,
            stream: Some("8:99".to_owned()),
        };
        let plain = Environment::default();
        let no_colour = Environment::from([("NO_COLOR", "1")]);
        let systemd = Environment::from([("JOURNAL_STREAM", "8:99")]);
        let text = |has_time, has_colours| LogLook::Text {
            has_time,
            has_colours,
        };
        let cases = [
            (LogFormat::Auto, &terminal, &plain, text(true, true)),
            (LogFormat::Auto, &terminal, &no_colour, text(true, false)),
            (LogFormat::Auto, &pipe, &plain, text(true, false)),
            (LogFormat::Auto, &pipe, &systemd, text(false, false)),
            // A terminal below a service: the variable names another stream.
            (LogFormat::Auto, &terminal, &systemd, text(true, true)),
            (LogFormat::Text, &pipe, &systemd, text(true, false)),
            (LogFormat::Json, &terminal, &systemd, LogLook::Json),
        ];
        for (n, (format, stderr, environment, want)) in cases.into_iter().enumerate() {
            assert_eq!(look(format, stderr, environment), want, "case {n}");
        }
    }

    #[test]
    fn libraries_are_never_heard_below_info_and_what_quotes_answers_never() {
        let table = [
            ("vocative::agent::run", Level::TRACE, true),
            ("vocative_channels::slack", Level::DEBUG, true),
            ("vocative_store::writer", Level::DEBUG, true),
            ("vocativelike::writer", Level::DEBUG, false),
            ("hyper_util::client", Level::INFO, true),
            ("hyper_util::client", Level::DEBUG, false),
            ("tungstenite::handshake", Level::TRACE, false),
            ("vocativex", Level::DEBUG, false),
            ("reqwest::connect", Level::WARN, true),
        ];
        for (target, level, expected) in table {
            assert_eq!(is_discreet_of(target, level), expected, "{target} {level}");
        }
    }

    #[test]
    fn flags_win_over_the_configured_level() {
        assert_eq!(directives("warn", 0, 0), "warn");
        assert!(directives("warn", 1, 0).contains("vocative=debug"));
        assert!(directives("warn", 3, 0).contains("vocative=trace"));
        assert_eq!(directives("debug", 0, 1), "warn");
        assert_eq!(directives("debug", 0, 2), "error");
    }
}
