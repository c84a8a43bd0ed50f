//! `vocative run`: the daemon.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use super::context::CliContext;
use super::error::{CliError, Exit};
use super::programs;
use crate::config::{Config, Secrets, channel_tables};
use crate::daemon::confinement::{self, Confinement};
use crate::daemon::start::{Daemon, ReadConfig, StartError};
use crate::daemon::system::{SignalRequest, Signals, tell_ready, tell_reloading, tell_stopping};
use crate::daemon::wiring::WiringError;
use vocative_store::{OpenWatch, StoreError};

/// The pause between two attempts to interrupt the database's upgrade after a stop signal.
const STOP_AGAIN: Duration = Duration::from_millis(100);

/// The configuration, the secrets, and how the process was confined.
pub(super) struct Prepared {
    config: Config,
    secrets: Secrets,
    confinement: Confinement,
}

/// Reads the configuration, starts the log and confines the process, which must have no other thread yet.
pub(super) fn prepare(context: &CliContext) -> Result<Prepared, CliError> {
    let (config, secrets, warnings) = context.load_with_secrets()?;
    if config.channels.is_empty() {
        return Err(nothing_to_serve(&config));
    }
    context.start_log(&config)?;
    for warning in &warnings {
        let setting = Some(warning.key.as_str()).filter(|key| !key.is_empty());
        tracing::warn!(setting, "{}", warning.what);
    }
    for program in programs::told(&config)? {
        tracing::info!("{program}");
    }
    let confinement = confinement::confine(&config, &context.environment)?;
    tracing::info!("landlock: {confinement}");
    Ok(Prepared {
        config,
        secrets,
        confinement,
    })
}

/// Serves until a stop signal; a second one ends the process at once.
pub(super) async fn run(prepared: Prepared, context: &CliContext) -> Result<ExitCode, CliError> {
    let mut signals =
        Signals::listen().map_err(|cause| CliError::failed("signals can't be heard", cause))?;
    let is_confined = prepared.confinement == Confinement::On;
    let read_config = read_config(context, is_confined);
    let Some(daemon) = start(prepared, read_config, &mut signals).await? else {
        tracing::info!("stopped before it served");
        return Ok(Exit::Ok.into());
    };
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "vocative serves");
    tell_ready();
    let broken = loop {
        tokio::select! {
            asked = signals.next() => match asked {
                SignalRequest::Reload => reload(&daemon).await,
                SignalRequest::Stop => break None,
            },
            damage = daemon.damaged() => {
                tell_stopping();
                // Draining would write to the damaged database; the process ends as if it was killed.
                return Err(damage.into());
            }
            name = daemon.broken() => break Some(name),
        }
    };
    tell_stopping();
    tracing::info!("stopping: intake first, then answers in progress, then posts");
    tokio::select! {
        () = daemon.stop() => {
            tracing::info!("stopped");
            broken.map_or(Ok(Exit::Ok.into()), |name| Err(ended_by_itself(&name)))
        }
        () = second_stop(&mut signals) => {
            tracing::warn!("stopped at once; what is committed goes on with the next start");
            Ok(Exit::Failed.into())
        }
    }
}

/// Starts the daemon; `None` if a stop signal arrives while its database is being opened.
async fn start(
    prepared: Prepared,
    read_config: ReadConfig,
    signals: &mut Signals,
) -> Result<Option<Daemon>, CliError> {
    let watch = OpenWatch::default();
    let (secrets, confinement) = (&prepared.secrets, &prepared.confinement);
    let starting = Daemon::start(prepared.config, secrets, read_config, &watch, confinement);
    tokio::pin!(starting);
    let mut is_stopped = false;
    loop {
        tokio::select! {
            started = &mut starting => return match started {
                Err(StartError::Store(StoreError::Stopped)) => Ok(None),
                Ok(daemon) if is_stopped => {
                    daemon.stop().await;
                    Ok(None)
                }
                started => Ok(Some(started?)),
            },
            asked = signals.next() => is_stopped |= asked == SignalRequest::Stop,
            () = tokio::time::sleep(STOP_AGAIN), if is_stopped => {}
        }
        if is_stopped {
            watch.stop();
        }
    }
}

fn nothing_to_serve(config: &Config) -> CliError {
    let file = config.file.as_ref().map_or_else(
        || "no configuration file was found".to_owned(),
        |file| format!("{} has no channel", file.display()),
    );
    CliError::Unconfigured {
        what: format!("there is nothing to serve: {file}"),
        advice: format!(
            "add a {}; `vocative config example` shows how, and `vocative demo` works without",
            channel_tables()
        ),
    }
}

/// Exits as a failure, so that `Restart=on-failure` starts the daemon again.
fn ended_by_itself(name: &str) -> CliError {
    CliError::Failed {
        what: format!("a part of the daemon ended by itself, which is a bug: {name}"),
        advice: Some("the log says how; nothing stored is lost, start it again".to_owned()),
        cause: None,
    }
}

async fn second_stop(signals: &mut Signals) {
    while signals.next().await != SignalRequest::Stop {}
}

/// Reloads the configuration; a wrong one changes nothing.
async fn reload(daemon: &Daemon) {
    tell_reloading();
    match daemon.reload().await {
        Ok(summary) => tracing::info!("reloaded: {summary}"),
        Err(what) => tracing::error!("not reloaded, the old configuration stays: {what}"),
    }
    tell_ready();
}

fn read_config(context: &CliContext, is_confined: bool) -> ReadConfig {
    let (path, environment) = (context.global.config.clone(), context.environment.clone());
    Arc::new(move || {
        let loaded = Config::load_with_secrets(path.as_deref(), &environment);
        let (config, secrets, _) = loaded.map_err(|cause| {
            let what = cause.in_one_line();
            match is_confined && what.contains(REFUSED) {
                true => format!("{what} ({UNREADABLE})"),
                false => what,
            }
        })?;
        Ok((config, secrets))
    })
}

/// The system's message for a file that may not be read.
const REFUSED: &str = "Permission denied";
const UNREADABLE: &str = "a file in a folder that was not named when the daemon started can be read after a \
                          restart only, see daemon.landlock";

impl From<StartError> for CliError {
    fn from(cause: StartError) -> Self {
        match cause {
            StartError::Store(StoreError::Locked { path }) => Self::Unavailable {
                what: format!("another daemon has the database ({})", path.display()),
                advice: "stop it first, or ask it: vocative status".to_owned(),
                cause: None,
            },
            StartError::Listen { .. } => taken(
                &cause,
                "choose another http.listen, or set http.enabled = false",
            ),
            StartError::ListenApi { .. } => taken(
                &cause,
                "choose another api.listen, or set api.enabled = false",
            ),
            StartError::Console { .. } => taken(&cause, "choose another console.listen"),
            StartError::Webhooks { .. } => taken(&cause, "choose another webhooks.listen"),
            StartError::Wiring(cause) => cause.into(),
            StartError::Confinement(_) => Self::Failed {
                what: cause.to_string(),
                advice: Some("set daemon.landlock = \"auto\"".to_owned()),
                cause: None,
            },
            StartError::Path { what, path, cause } => Self::Storage {
                what: format!("{what} {}: {cause}", path.display()),
                advice: vocative_store::advice_on(&cause),
            },
            StartError::Store(cause) => cause.into(),
        }
    }
}

/// The error for an address that is in use. It may be free again later, so the exit code lets the daemon be restarted.
fn taken(cause: &StartError, advice: &str) -> CliError {
    CliError::Unavailable {
        what: cause.to_string(),
        advice: format!("end what has it, or {advice}"),
        cause: std::error::Error::source(cause).map(|cause| cause.to_string().into()),
    }
}

impl From<WiringError> for CliError {
    fn from(cause: WiringError) -> Self {
        let advice = matches!(cause, WiringError::ModelClient { .. }).then(|| {
            "HTTPS needs the certificates of the system: install them (Debian: apt install \
             ca-certificates)"
                .to_owned()
        });
        Self::Failed {
            what: "the configuration can't be put to work".to_owned(),
            advice,
            cause: Some(Box::new(cause)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_lost_a_part_fails_so_that_it_is_started_again() {
        let error = ended_by_itself("posts");
        assert_eq!(error.exit(), Exit::Failed);
        assert!(error.to_string().contains("posts"));
    }
}
