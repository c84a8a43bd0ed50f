//! Restricts the daemon's access to the file system before it serves: with Linux's Landlock it can write only below
//! its own folders, read only what it and the system's libraries need, and start no programs except tools, which
//! confine themselves further (`confining`).
//!
//! The kernel restricts a thread and those that it starts later, so this happens before the runtime has threads.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::config::{ApiAddress, Config, Environment, Landlock};
use crate::confining::{SYSTEM_PROGRAMS, own_program};
use crate::daemon::listeners::make_directory;
use crate::daemon::start::StartError;

/// The confinement of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// Confined to its own folders.
    On,
    /// Not confined, as configured.
    Off,
    /// Confined by its systemd unit.
    Unit,
    /// Not confined: the kernel can't; the text says why.
    Unavailable(String),
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::On => f.write_str("on: writes only below its own folders"),
            Self::Off => f.write_str("off (daemon.landlock)"),
            Self::Unit => f.write_str("left to the systemd unit, which filters system calls"),
            Self::Unavailable(why) => write!(f, "not here: {why}"),
        }
    }
}

/// The files and folders that the daemon needs.
#[derive(Debug, PartialEq, Eq)]
struct Needs {
    /// Folders in which it makes, writes and removes files.
    own: Vec<PathBuf>,
    /// Folders in which it makes and removes sockets.
    sockets: Vec<PathBuf>,
    /// Folders and files that are read.
    read: Vec<PathBuf>,
    /// Folders and files that are read and executed: none unless tools are programs.
    execute: Vec<PathBuf>,
}

/// Files that the system's libraries read: certificates, time zones, names of hosts and users, their own modules.
/// Missing ones are skipped.
const SYSTEM_READ: [&str; 15] = [
    "/etc",
    "/usr",
    "/lib",
    "/lib64",
    "/proc",
    "/sys",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/run/systemd",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/var/lib/ca-certificates",
    "/nix/store",
    "/gnu/store",
];
/// Files that a host may link from elsewhere and replace there.
const SYSTEM_LINKED: [&str; 3] = ["/etc/resolv.conf", "/etc/hosts", "/etc/localtime"];
/// Variables that name files or folders which the system's libraries read.
const VARIABLES: [&str; 3] = ["SSL_CERT_FILE", "SSL_CERT_DIR", "TZDIR"];

/// Confines this thread and every later one, as configured.
///
/// # Errors
/// If a folder can't be made, or `landlock = "on"` and the kernel can't.
pub fn confine(config: &Config, environment: &Environment) -> Result<Confinement, StartError> {
    let confinement = planned(config, environment);
    match &confinement {
        Confinement::On => {}
        Confinement::Unavailable(why) if config.daemon.landlock == Landlock::On => {
            return Err(StartError::Confinement(why.clone()));
        }
        _ => return Ok(confinement),
    }
    make_directory(&config.daemon.data_dir)?;
    make_directory(&config.daemon.runtime_dir)?;
    match kernel::restrict(&needs(config, environment)) {
        Ok(()) => Ok(confinement),
        Err(why) if config.daemon.landlock == Landlock::On => Err(StartError::Confinement(why)),
        Err(why) => Ok(Confinement::Unavailable(why)),
    }
}

/// What a start with this configuration and environment would do; restricts nothing.
#[must_use]
pub fn planned(config: &Config, environment: &Environment) -> Confinement {
    match config.daemon.landlock {
        Landlock::Off => Confinement::Off,
        Landlock::Auto if is_filtered_unit(environment) => Confinement::Unit,
        Landlock::Auto | Landlock::On => match kernel::can() {
            Ok(()) => Confinement::On,
            Err(why) => Confinement::Unavailable(why),
        },
    }
}

/// Whether a service manager started this process with a filter of system calls. The filter of an older unit may
/// kill a process that calls Landlock.
fn is_filtered_unit(environment: &Environment) -> bool {
    let is_filtered = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mode = status
            .lines()
            .find_map(|line| line.strip_prefix("Seccomp:"));
        mode.is_some_and(|mode| mode.trim() == "2")
    };
    environment.get_filled("NOTIFY_SOCKET").is_some() && is_filtered()
}

fn needs(config: &Config, environment: &Environment) -> Needs {
    let api = match &config.api.listen {
        ApiAddress::Unix(path) if config.api.enabled => Some(path),
        ApiAddress::Unix(_) | ApiAddress::Tcp(_) => None,
    };
    let daemon = &config.daemon;
    let sockets = [&daemon.control_socket].into_iter().chain(api);
    let mut read: Vec<PathBuf> = SYSTEM_READ.iter().map(PathBuf::from).collect();
    let linked = SYSTEM_LINKED.iter().map(PathBuf::from);
    // A file may be replaced by another of the same name, so reading its whole folder is allowed.
    for file in config.files_read(environment).into_iter().chain(linked) {
        read.extend(file.canonicalize().ok().as_deref().and_then(folder));
        read.extend(folder(&file));
    }
    read.extend(
        VARIABLES
            .iter()
            .filter_map(|name| environment.get_filled(name))
            .map(PathBuf::from),
    );
    for collection in config.knowledge.values() {
        read.extend(collection.paths.iter().cloned());
    }
    read.extend(config.skill_folders.iter().cloned());
    let mut own = with_linked(&daemon.data_dir);
    let mut execute = Vec::new();
    for (_, program) in config.programs() {
        execute.extend(SYSTEM_PROGRAMS.iter().map(PathBuf::from));
        execute.push(own_program());
        execute.extend(program.argv.first().map(PathBuf::from));
        execute.extend(program.reach.read.iter().cloned());
        own.extend(program.reach.write.iter().chain(&program.folder).cloned());
        read.push("/dev/zero".into());
        own.push("/dev/null".into());
    }
    Needs {
        own,
        execute,
        sockets: sockets
            .filter_map(|path| folder(path))
            .chain([daemon.runtime_dir.clone()])
            .collect(),
        read,
    }
}

/// A folder, and the targets of the links in it: files may be stored on another disk.
fn with_linked(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let links = entries.filter(|it| it.file_type().is_ok_and(|kind| kind.is_symlink()));
    let targets = links.filter_map(|link| link.path().canonicalize().ok());
    // For a file, its folder: the database has other files beside it.
    let folders = targets.filter_map(|target| match target.is_dir() {
        true => Some(target),
        false => target.parent().map(Path::to_owned),
    });
    folders.chain([folder.to_owned()]).collect()
}

fn folder(file: &Path) -> Option<PathBuf> {
    let folder = file.parent()?;
    let is_here = folder.as_os_str().is_empty();
    Some(if is_here {
        PathBuf::from(".")
    } else {
        folder.to_owned()
    })
}

#[cfg(target_os = "linux")]
mod kernel {
    use landlock::{
        ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, Ruleset,
        RulesetAttr as _, RulesetCreated, RulesetError, make_bitflags,
    };

    use super::Needs;
    use crate::confining::allow;

    /// Before this version, the kernel refuses every rename from one folder into another.
    const OLDEST: ABI = ABI::V2;
    /// The newest version whose rights this file's lists include.
    const NEWEST: ABI = ABI::V5;

    /// Whether the kernel supports what is needed.
    pub(super) fn can() -> Result<(), String> {
        let why = "this kernel has no Landlock, or one older than Linux 5.19's";
        rules().map(|_| ()).map_err(|_| why.to_owned())
    }

    pub(super) fn restrict(needs: &Needs) -> Result<(), String> {
        let confine = || {
            let rules = rules()?;
            let rules = allow(rules, &needs.read, AccessFs::ReadFile | AccessFs::ReadDir)?;
            let rules = allow(rules, &needs.execute, AccessFs::from_read(OLDEST))?;
            let rules = allow(rules, &needs.sockets, in_socket_folders())?;
            let rules = allow(rules, &needs.own, in_own_folders())?;
            rules.restrict_self()
        };
        confine().map(|_| ()).map_err(|error| error.to_string())
    }

    /// Rules without any rights, to which rights are then added.
    fn rules() -> Result<RulesetCreated, RulesetError> {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(OLDEST))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .create()
    }

    fn in_own_folders() -> BitFlags<AccessFs> {
        in_socket_folders()
            | make_bitflags!(AccessFs::{WriteFile | Truncate | MakeReg | MakeDir | MakeSym | RemoveDir | Refer})
    }

    fn in_socket_folders() -> BitFlags<AccessFs> {
        make_bitflags!(AccessFs::{ReadFile | ReadDir | MakeSock | RemoveFile})
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use super::Needs;

    pub(super) fn can() -> Result<(), String> {
        Err("only Linux has Landlock".to_owned())
    }

    pub(super) fn restrict(_: &Needs) -> Result<(), String> {
        can()
    }
}
