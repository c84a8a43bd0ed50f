//! Starts the daemon of a set-up, and waits until it is connected and has answered.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::answers::{DaemonPlace, PlaceKind};
use super::files::replace;
use crate::admin::operations::AdminOperation;
use crate::admin::socket;
use crate::admin::view::StatusView;
use crate::cli::CliError;
use crate::cli::service::{SHIPPED_PROGRAM, Service};
use crate::config::Config;

/// How long the daemon may take to connect all channels.
const CONNECT_WAIT: Duration = Duration::from_secs(60);
/// How long the first answer may take: a model on a small machine is slow.
const ANSWER_WAIT: Duration = Duration::from_secs(180);
/// The pause between two looks at the daemon's status.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// How long a daemon may take to end.
const END_WAIT: Duration = Duration::from_secs(30);
/// Where an installed unit may be.
const UNIT_FOLDERS: [&str; 3] = [
    "/etc/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// A daemon that was started.
pub(super) enum StartedDaemon {
    /// By systemd: it keeps running.
    Unit,
    /// By this process, only for a try.
    Child(Box<Child>),
}

/// Starts the daemon; where systemd does that, installs a missing unit first.
///
/// # Errors
/// If it can't be started, with what to look at.
pub(super) async fn start(
    place: &DaemonPlace,
    home: Option<&Path>,
) -> Result<StartedDaemon, CliError> {
    match place.kind {
        PlaceKind::System => {
            let service = Service::of(Some(&place.file()));
            let name = service.file_name();
            let units: Vec<PathBuf> = UNIT_FOLDERS.iter().map(PathBuf::from).collect();
            if !units.iter().any(|folder| folder.join(name).exists()) {
                let program = format!("{} ", program()?.display());
                let unit = service
                    .shipped()
                    .replace(&format!("{SHIPPED_PROGRAM} "), &program);
                replace(&units[0].join(name), &unit, 0o644)?;
            }
            by_systemd(&[], &service).await
        }
        PlaceKind::User => {
            let home = home.unwrap_or(Path::new("/"));
            let folder = home.join(".config/systemd/user");
            std::fs::create_dir_all(&folder)?;
            replace(
                &folder.join(Service::default().file_name()),
                &user_unit(&program()?, &place.file()),
                0o644,
            )?;
            by_systemd(&["--user"], &Service::default()).await
        }
        PlaceKind::Files => {
            let child = Command::new(program()?)
                .args(["run", "--quiet", "--quiet", "--config"])
                .arg(place.file())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .kill_on_drop(true)
                .spawn()?;
            Ok(StartedDaemon::Child(Box::new(child)))
        }
    }
}

fn program() -> Result<PathBuf, CliError> {
    std::env::current_exe()
        .map_err(|cause| CliError::failed("this program's own place is not known", cause))
}

/// A unit for the user's own systemd, without settings that need root.
fn user_unit(program: &Path, configuration: &Path) -> String {
    let (program, configuration) = (program.display(), configuration.display());
    format!(
        "# Made by `vocative setup`.\n[Unit]\nDescription=Vocative chat bot daemon\nStartLimitIntervalSec=300\n\
         StartLimitBurst=10\n\n[Service]\nType=notify\nNotifyAccess=main\n\
         ExecStart=\"{program}\" run --config \"{configuration}\"\n\
         ExecReload=\"{program}\" reload --config \"{configuration}\"\nRestart=on-failure\nRestartSec=2s\n\
         RestartPreventExitStatus=65 77 78\nWatchdogSec=30s\nTimeoutStopSec=45s\nUMask=0077\n\
         NoNewPrivileges=yes\n\n[Install]\nWantedBy=default.target\n"
    )
}

async fn by_systemd(scope: &[&str], service: &Service) -> Result<StartedDaemon, CliError> {
    let unit = service.unit();
    for words in [
        &["daemon-reload"][..],
        &["enable", &unit],
        &["restart", &unit],
    ] {
        let output = Command::new("systemctl")
            .args(scope)
            .args(words)
            .stdin(Stdio::null())
            .output()
            .await;
        let failed = match output {
            Ok(output) if output.status.success() => continue,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(cause) => cause.to_string(),
        };
        return Err(CliError::Failed {
            what: format!("systemctl {} failed: {failed}", words.join(" ")),
            advice: Some(format!(
                "everything is written. See `journalctl --unit={unit} --lines=20`, then start it: systemctl restart \
                 {unit}"
            )),
            cause: None,
        });
    }
    Ok(StartedDaemon::Unit)
}

/// How far the daemon got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Got {
    /// All channels are connected, and no message waits for an answer.
    Connected,
    /// The message was answered.
    Answered,
    /// The message was stored, but not answered in time.
    Heard,
    /// All channels are connected, but the message did not come again.
    Unheard,
    /// Not all channels are connected.
    Unconnected,
}

/// Waits until all channels are connected and the messages, if there are any, are answered.
///
/// # Errors
/// If the daemon ends.
pub(super) async fn wait(
    started: &mut StartedDaemon,
    config: &Config,
    words: u64,
) -> Result<Got, CliError> {
    let begun = Instant::now();
    let mut got = Got::Unconnected;
    loop {
        if let Some(view) = look(config).await {
            got = far(&view, words);
            if matches!(got, Got::Connected | Got::Answered) {
                return Ok(got);
            }
        }
        if let StartedDaemon::Child(child) = started
            && let Some(status) = child.try_wait()?
        {
            return Err(CliError::Failed {
                what: format!("the daemon ended at once ({status})"),
                advice: Some(
                    "everything is written; `vocative check --live` says what is wrong".to_owned(),
                ),
                cause: None,
            });
        }
        let limit = match got {
            Got::Unconnected => CONNECT_WAIT,
            _ => ANSWER_WAIT,
        };
        if begun.elapsed() > limit {
            return Ok(got);
        }
        sleep(LOOK_AGAIN).await;
    }
}

async fn look(config: &Config) -> Option<StatusView> {
    let answer = socket::ask(&config.daemon.control_socket, &AdminOperation::Status).await;
    serde_json::from_value(answer.ok()??).ok()
}

/// How far the daemon got, by its status. `words`: how many messages wait for an answer.
pub(super) fn far(view: &StatusView, words: u64) -> Got {
    let is_connected = |channel: &crate::admin::view::ChannelView| channel.state == "connected";
    if view.channels.is_empty() || !view.channels.iter().all(is_connected) {
        return Got::Unconnected;
    }
    if words == 0 {
        return Got::Connected;
    }
    let (runs, posts) = (&view.runs, &view.posts);
    let is_open = runs.queued + runs.leased + posts.pending + posts.unknown > 0;
    match view.intake.runs_queued >= words {
        true if !is_open && runs.dead == 0 && posts.dead == 0 => Got::Answered,
        true => Got::Heard,
        false => Got::Unheard,
    }
}

/// Ends a daemon that was started only for a try.
pub(super) async fn end(started: StartedDaemon) {
    let StartedDaemon::Child(mut child) = started else {
        return;
    };
    if let Some(id) = child
        .id()
        .and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()))
    {
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
    if tokio::time::timeout(END_WAIT, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}
