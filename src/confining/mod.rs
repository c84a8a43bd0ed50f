//! Third-party programs, started by the daemon and restricted to what they were given: files, network, memory,
//! processes, time.
//!
//! The daemon starts its own program again as a *keeper* (`keeper`), which drops the rights that the other program
//! must not have (`files`: Landlock; `filter`: seccomp; limits of the kernel), starts it, and ends all of it when the
//! daemon is gone. The daemon's handle for it is a [`StartedProgram`] (`started`): dropping it ends the whole process
//! group. `usage` counts the resources of a group.
//!
//! What a confined program can't do: read or write a file that it was not given, `/proc` of others included; connect to
//! a Unix socket; reach the network, but for the ports it was given; trace, signal or limit the daemon; leave its
//! process group.

#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod keeper;
mod order;
mod started;
mod usage;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

#[cfg(target_os = "linux")]
pub(crate) use files::allow;
pub use order::{ProgramBounds, ProgramOrder, ProgramReach};
pub use started::{Excess, KILL_AFTER, StartedProgram, Streams, start};

/// The command of this program that runs a keeper.
pub const KEEPER: &str = "keep-program";
/// The exit code of a keeper that could not start its program.
pub const NOT_STARTED: u8 = 125;
/// The folders in which programs are looked up by name.
pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Folders of the system's programs and libraries: a confined program may read and execute what is in them.
pub const SYSTEM_PROGRAMS: [&str; 9] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
];

/// The path of this program, even after a newer one took its place on disk.
#[must_use]
pub fn own_program() -> PathBuf {
    let own = Path::new("/proc/self/exe");
    if own.exists() {
        return own.to_owned();
    }
    std::env::current_exe().unwrap_or_else(|_| own.to_owned())
}

/// Whether this machine can confine programs: tested by a keeper that confines itself and starts no program.
///
/// # Errors
/// Why it can't, in words.
pub fn can_confine() -> Result<(), String> {
    let order = ProgramOrder {
        parent: std::process::id(),
        ..ProgramOrder::default()
    };
    let tried = Command::new(own_program())
        .arg(KEEPER)
        .arg(order.to_text())
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output();
    match tried {
        Err(error) => Err(format!("the program can't be started again: {error}")),
        Ok(told) if told.status.success() => Ok(()),
        Ok(told) if told.status.code().is_none() => Err(
            "the kernel or a service manager ends what tries to confine itself: install the unit of this version"
                .to_owned(),
        ),
        Ok(told) => Err(String::from_utf8_lossy(&told.stderr).trim().to_owned()),
    }
}

/// Whether the kernel restricts a program to its ports; on an older kernel it can connect to any port, including our
/// own listeners. Only meaningful where programs can be confined.
#[must_use]
pub fn holds_ports() -> bool {
    #[cfg(target_os = "linux")]
    return files::holds_ports();
    #[cfg(not(target_os = "linux"))]
    false
}

/// The keeper: confines itself, starts the program of the order and waits for its end.
#[cfg(target_os = "linux")]
#[must_use]
pub fn keep(order: &str) -> ExitCode {
    keeper::keep(order)
}

/// The keeper: confines itself, starts the program of the order and waits for its end.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn keep(_: &str) -> ExitCode {
    eprintln!("programs are confined on Linux only");
    ExitCode::from(NOT_STARTED)
}
