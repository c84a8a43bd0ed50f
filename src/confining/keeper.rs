//! The keeper: a process between the daemon and a program. It drops the rights that the program must not have before
//! it starts the program, and ends the whole process group when the daemon is gone.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getpid, getppid, kill_current_process_group,
    kill_process, pidfd_open, setrlimit,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use super::order::ProgramOrder;
use super::{NOT_STARTED, files, filter, usage};

/// The longest file that a program may write, in bytes.
const FILE_MAX_BYTES: u64 = 1 << 30;
/// The most files that one of its processes may have open.
const OPEN_FILES_MAX: u64 = 1_024;
/// The most threads that all processes of the user may have in addition to those that exist when the program starts.
/// The daemon also counts the program's processes; this limits what is started between two counts. It is large, since
/// everything else that this user starts while the program runs counts as well.
const SPARE_THREADS: u64 = 1_024;

/// Carries out an order.
pub(super) fn keep(order: &str) -> ExitCode {
    match ProgramOrder::read(order).and_then(|order| kept(&order)) {
        Ok(code) => code,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn kept(order: &ProgramOrder) -> Result<ExitCode, String> {
    let parent = i32::try_from(order.parent).ok().and_then(Pid::from_raw);
    let parent = parent.ok_or("the order names no process that started it")?;
    let end_of_parent = pidfd_open(parent, PidfdFlags::empty());
    let end_of_parent = end_of_parent.map_err(|error| format!("no daemon to wait for: {error}"))?;
    if getppid() != Some(parent) {
        return Err("the process that started it is gone".to_owned());
    }
    // If memory is short, the kernel must end this process before the daemon.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    limit(order).map_err(|error| format!("its limits can't be set: {error}"))?;
    if let Err(why) = confine(order, parent)
        && !order.is_trusted
    {
        return Err(format!("this machine can't confine it: {why}"));
    }
    if order.argv.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    std::thread::spawn(move || end_with(&end_of_parent));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| format!("it can't be waited for: {error}"))?;
    let ended = runtime.block_on(async {
        // Caught, so that only the program answers a polite end of the group.
        let mut polite = signal(SignalKind::terminate()).map_err(|it| it.to_string())?;
        let mut program = Command::new(&order.argv[0])
            .args(&order.argv[1..])
            .current_dir(&order.folder)
            .spawn()
            .map_err(|error| format!("{} can't be started: {error}", order.argv[0]))?;
        loop {
            tokio::select! {
                ended = program.wait() => return ended.map_err(|it| it.to_string()),
                _ = polite.recv() => {}
            }
        }
    })?;
    Ok(as_own_end(ended))
}

/// Ends the whole group when the daemon is gone.
fn end_with(end_of_parent: &OwnedFd) {
    loop {
        let mut waited = [PollFd::new(end_of_parent, PollFlags::IN)];
        if poll(&mut waited, None).is_ok() {
            let _ = kill_current_process_group(Signal::KILL);
        }
    }
}

/// Ends with the exit code of the program.
fn as_own_end(ended: ExitStatus) -> ExitCode {
    if let Some(signal) = ended.signal().and_then(Signal::from_named_raw) {
        let _ = kill_process(getpid(), signal);
    }
    let code = ended.code().and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(NOT_STARTED))
}

fn limit(order: &ProgramOrder) -> rustix::io::Result<()> {
    let set = |resource, most| {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit)
    };
    set(Resource::Core, 0)?;
    set(Resource::Fsize, FILE_MAX_BYTES)?;
    set(Resource::Nofile, OPEN_FILES_MAX)?;
    if order.bounds.memory_bytes > 0 {
        set(Resource::Data, order.bounds.memory_bytes)?;
    }
    if order.bounds.processes > 0 {
        let threads = usage::threads_of_user() + u64::from(order.bounds.processes) + SPARE_THREADS;
        set(Resource::Nproc, threads)?;
    }
    Ok(())
}

fn confine(order: &ProgramOrder, parent: Pid) -> Result<(), String> {
    drop_rights()?;
    files::restrict(order)?;
    filter::restrict(!order.reach.connect_ports.is_empty(), parent)
}

/// Drops the rights of root, so that a daemon that runs as root does not pass them on. A process without such rights
/// must not make the call: a unit's filter may end it for that.
fn drop_rights() -> Result<(), String> {
    let why = |error: rustix::io::Errno| format!("its rights can't be dropped: {error}");
    let own = capabilities(None).map_err(why)?;
    if own.permitted.is_empty() && own.inheritable.is_empty() {
        return Ok(());
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(why)
}
