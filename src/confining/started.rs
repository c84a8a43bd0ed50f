//! A running program, held by the code that started it: dropping the handle ends its whole process group.

use std::fmt;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::order::{ProgramBounds, ProgramOrder};
use super::{KEEPER, PATH, own_program, usage};

/// How long a program has to end itself before it is killed.
pub const KILL_AFTER: Duration = Duration::from_secs(2);
/// The time between two measurements of a program's resources.
const COUNT_EVERY: Duration = Duration::from_millis(100);

/// A running program, with its keeper and everything that it started.
#[derive(Debug)]
pub struct StartedProgram {
    /// The keeper; `None` once it has ended.
    keeper: Option<Child>,
    group: Pid,
    bounds: ProgramBounds,
}

/// Our ends of the program's streams.
#[derive(Debug)]
pub struct Streams {
    /// The program's standard input.
    pub stdin: ChildStdin,
    /// Its standard output.
    pub stdout: ChildStdout,
    /// Its standard error, used as a log.
    pub stderr: ChildStderr,
}

/// The limit that a program exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// Memory.
    Memory {
        /// The limit, in bytes.
        max_bytes: u64,
    },
    /// Processes.
    Processes {
        /// The limit.
        max: u32,
    },
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { max_bytes } => {
                write!(f, "it used more than {} MiB of memory", max_bytes >> 20)
            }
            Self::Processes { max } => write!(f, "it started more than {max} processes"),
        }
    }
}

/// Starts the program of an order with these variables and no others except `PATH`, `HOME` and `TMPDIR`.
///
/// # Errors
/// If this program can't be started again. A failure to start the other one is reported by its exit code.
pub fn start<'a>(
    order: &ProgramOrder,
    variables: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> io::Result<(StartedProgram, Streams)> {
    let order = ProgramOrder {
        parent: std::process::id(),
        ..order.clone()
    };
    let mut keeper = Command::new(own_program())
        .arg(KEEPER)
        .arg(order.to_text())
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", &order.folder)
        .env("TMPDIR", &order.folder)
        .envs(variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let pid = keeper.id().and_then(|id| i32::try_from(id).ok());
    let group = pid.and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    let (Some(stdin), Some(stdout), Some(stderr)) = (
        keeper.stdin.take(),
        keeper.stdout.take(),
        keeper.stderr.take(),
    ) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let started = StartedProgram {
        keeper: Some(keeper),
        group,
        bounds: order.bounds,
    };
    Ok((
        started,
        Streams {
            stdin,
            stdout,
            stderr,
        },
    ))
}

impl StartedProgram {
    /// Waits for the program's end, and ends what it left running. May be dropped and called again.
    ///
    /// # Errors
    /// If the system can't tell.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        let Some(keeper) = &mut self.keeper else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let ended = keeper.wait().await?;
        self.keeper = None;
        kill(self.group, Signal::KILL);
        Ok(ended)
    }

    /// Waits until the program uses more than it may; forever if it does not.
    pub fn exceeds(&self) -> impl Future<Output = Excess> + use<> {
        let (group, bounds) = (self.group.as_raw_pid(), self.bounds);
        async move {
            loop {
                tokio::time::sleep(COUNT_EVERY).await;
                let counted = tokio::task::spawn_blocking(move || usage::of_group(group)).await;
                let usage = counted.unwrap_or_default();
                // The keeper counts as one of the processes.
                if bounds.processes > 0 && usage.processes > bounds.processes + 1 {
                    let max = bounds.processes;
                    return Excess::Processes { max };
                }
                if bounds.memory_bytes > 0 && usage.memory_bytes > bounds.memory_bytes {
                    let max_bytes = bounds.memory_bytes;
                    return Excess::Memory { max_bytes };
                }
            }
        }
    }

    /// Kills the whole group at once.
    pub fn kill(&self) {
        if self.keeper.is_some() {
            kill(self.group, Signal::KILL);
        }
    }
}

impl Drop for StartedProgram {
    fn drop(&mut self) {
        let Some(mut keeper) = self.keeper.take() else {
            return;
        };
        let group = self.group;
        kill(group, Signal::TERM);
        match tokio::runtime::Handle::try_current() {
            // If this task is dropped with its runtime, the keeper sees the end of the process.
            Ok(runtime) => {
                runtime.spawn(async move {
                    let _ = tokio::time::timeout(KILL_AFTER, keeper.wait()).await;
                    kill(group, Signal::KILL);
                    let _ = keeper.wait().await;
                });
            }
            Err(_) => kill(group, Signal::KILL),
        }
    }
}

/// Signals a group; a group that is gone needs no signal.
fn kill(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}
