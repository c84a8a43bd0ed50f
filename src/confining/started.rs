//! A program that runs, held by who started it: dropped, its whole process group ends.

use std::fmt;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::order::{ProgramBounds, ProgramOrder};
use super::{KEEPER, PATH, own_program, usage};

/// How long a program has between the asking and the ending.
pub const KILL_AFTER: Duration = Duration::from_secs(2);
/// Between two counts of what a program uses.
const COUNT_EVERY: Duration = Duration::from_millis(100);

/// A program that runs, with its keeper and all that it started.
#[derive(Debug)]
pub struct StartedProgram {
    /// The keeper; `None` once it has ended.
    keeper: Option<Child>,
    group: Pid,
    bounds: ProgramBounds,
}

/// Its ends of the program's streams.
#[derive(Debug)]
pub struct Streams {
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it says.
    pub stdout: ChildStdout,
    /// What it logs.
    pub stderr: ChildStderr,
}

/// What a program used more of than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// Memory.
    Memory {
        /// What it may use, in bytes.
        max_bytes: u64,
    },
    /// Processes.
    Processes {
        /// How many it may have.
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

/// Starts the program of an order with these variables and no others but `PATH`, `HOME` and `TMPDIR`.
///
/// # Errors
/// If this program can't be started again. That the other one can't is its exit code.
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
                // The keeper is one of them.
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

    /// Ends all of it at once.
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

/// Signals a group; one that is gone needs none.
fn kill(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}
