//! The daemon as a process of its own: started, killed, asked over its socket.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::process::{Child, Command};
use vocative_contract::crash;

use super::plan::DeathWay;
use super::stage::LabStage;
use vocative::admin::operations::AdminOperation;
use vocative::admin::socket;
use vocative::cli::CliError;
use vocative::config::CONTROL_SOCKET_NAME;

/// Between two looks at a state.
pub(super) const LOOK: Duration = Duration::from_millis(10);
/// How long a state may take to come. Generous: a busy machine is no failure.
pub(super) const WAIT: Duration = Duration::from_secs(60);
/// The lease of a run in the row in which it expires: long enough to answer in on a busy machine.
const SHORT_LEASE_MS: &str = "1500";

/// A daemon.
pub(super) struct Process {
    child: Child,
    socket: PathBuf,
}

impl Process {
    /// Starts the daemon on the stage's configuration, to end in the given way at the n-th pass.
    pub(super) fn start(
        stage: &LabStage,
        way: Option<DeathWay>,
        pass: u64,
    ) -> Result<Self, CliError> {
        let mut command = command(stage, &["run"])?;
        let variable = match way {
            Some(DeathWay::Point(point)) => Some((crash::CRASH_AT, format!("{point}:{pass}"))),
            Some(DeathWay::LeaseEnds) => Some((crash::LEASE_MS, SHORT_LEASE_MS.to_owned())),
            _ => None,
        };
        command.envs(variable);
        Ok(Self {
            child: command.spawn()?,
            socket: stage.directory().join(CONTROL_SOCKET_NAME),
        })
    }

    /// Starts another command of the program, to end at that pass of a point.
    pub(super) fn start_command(
        stage: &LabStage,
        args: &[&str],
        at: Option<(&str, u64)>,
    ) -> Result<Self, CliError> {
        let mut command = command(stage, args)?;
        command.envs(at.map(|(point, pass)| (crash::CRASH_AT, format!("{point}:{pass}"))));
        Ok(Self {
            child: command.spawn()?,
            socket: stage.directory().join(CONTROL_SOCKET_NAME),
        })
    }

    /// Waits for its end; its exit code, if it was not killed.
    pub(super) async fn code(&mut self) -> Option<i32> {
        let ended = tokio::time::timeout(WAIT, self.child.wait()).await;
        ended.ok()?.ok()?.code()
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end.
    pub(super) async fn ended_within(&mut self, wait: Duration) {
        let _ = tokio::time::timeout(wait, self.child.wait()).await;
    }

    /// Whether it was killed (SIGKILL), by itself or another.
    pub(super) fn was_killed(&mut self) -> bool {
        use std::os::unix::process::ExitStatusExt as _;
        const SIGKILL: i32 = 9;
        let ended = self.child.try_wait().ok().flatten();
        ended.is_some_and(|status| status.signal() == Some(SIGKILL))
    }

    /// Waits until the daemon is connected to its platform; false if it ended before.
    pub(super) async fn listens(&mut self, stage: &LabStage) -> Result<bool, CliError> {
        let deadline = tokio::time::Instant::now() + WAIT;
        while !stage.is_heard() {
            if self.has_ended() {
                return Ok(false);
            }
            if tokio::time::Instant::now() > deadline {
                return Err(late("the daemon did not connect", stage.directory()));
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(true)
    }

    /// Asks it to stop (SIGTERM).
    pub(super) async fn ask_to_stop(&self) -> Result<(), CliError> {
        if let Some(id) = self.child.id() {
            let id = id.to_string();
            Command::new("kill")
                .args(["-s", "TERM", &id])
                .status()
                .await?;
        }
        Ok(())
    }

    /// Kills it (SIGKILL), if it still runs, and waits until the platform has noticed. Returns when
    /// its end was seen, in milliseconds since the Unix epoch.
    pub(super) async fn kill(mut self, stage: &LabStage) -> Result<i64, CliError> {
        if !self.has_ended() {
            self.child.kill().await?;
        }
        let ended_ms = chrono::Utc::now().timestamp_millis();
        let deadline = tokio::time::Instant::now() + WAIT;
        while stage.is_heard() {
            if tokio::time::Instant::now() > deadline {
                return Err(late(
                    "a killed daemon still has a connection",
                    stage.directory(),
                ));
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(ended_ms)
    }

    /// Asks over the socket; `None` while nobody answers there.
    pub(super) async fn ask<T: DeserializeOwned>(&self, operation: &AdminOperation) -> Option<T> {
        let answer = socket::ask(&self.socket, operation).await.ok()??;
        serde_json::from_value(answer).ok()
    }
}

/// A command of this program on the stage's configuration.
fn command(stage: &LabStage, args: &[&str]) -> Result<Command, CliError> {
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(stage.directory().join("daemon.log"))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(crate::AS_DAEMON);
    command
        .args(args)
        .arg("--config")
        .arg(stage.config_path())
        .env_clear()
        .env("HOME", stage.directory())
        .envs(stage.secrets())
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true);
    if let Some(promise) = stage.sabotage {
        command.env(crash::SABOTAGE, promise.name());
    }
    Ok(command)
}

/// The error of a state that did not come in time, with the end of the daemon's log.
pub(super) fn late(what: &str, directory: &Path) -> CliError {
    let log = std::fs::read_to_string(directory.join("daemon.log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().rev().take(20).collect();
    let lines: Vec<&str> = lines.into_iter().rev().collect();
    CliError::Failed {
        what: format!("{what} in time; the end of its log:\n{}", lines.join("\n")),
        advice: None,
        cause: None,
    }
}
