//! Which files a program may use, by Landlock: only those listed here.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort,
    PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _,
    RulesetError, Scope, make_bitflags,
};

use super::SYSTEM_PROGRAMS;
use super::order::ProgramOrder;

/// The oldest Landlock version that is enough; it restricts files.
const OLDEST: ABI = ABI::V1;
/// The newest version whose rights on files this file's lists include.
const NEWEST: ABI = ABI::V5;
/// The newest version whose other rights they include: TCP ports, signals and abstract sockets.
const NEWEST_OF_ALL: ABI = ABI::V6;

/// The files that the system's libraries read: names of hosts and users, certificates, time, the processor. None of
/// them is ours: `/etc` as a whole could contain a configuration or a credential.
const SYSTEM_READ: [&str; 28] = [
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/meminfo",
    "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/cpu",
];

/// Confines this thread and everything that it starts.
pub(super) fn restrict(order: &ProgramOrder) -> Result<(), String> {
    let confine = || {
        let rules = rules(!order.reach.connect_ports.is_empty())?;
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let rules = allow(rules, SYSTEM_READ.iter().map(Path::new), read)?;
        // This process's folder, not its parent's: the program that runs next has this process's number.
        let own = PathBuf::from(format!("/proc/{}", std::process::id()));
        let rules = allow(rules, [own.as_path()], read)?;
        let rules = allow(rules, [Path::new("/dev/null")], read | AccessFs::WriteFile)?;
        let programs = SYSTEM_PROGRAMS.iter().map(Path::new);
        let named = order.argv.first().map(Path::new);
        let programs = programs.chain(named.filter(|path| path.is_absolute()));
        let programs = programs.chain(order.reach.read.iter().map(PathBuf::as_path));
        let rules = allow(rules, programs, read | AccessFs::Execute)?;
        let own = order.reach.write.iter().chain([&order.folder]);
        let own = own
            .map(PathBuf::as_path)
            .filter(|it| !it.as_os_str().is_empty());
        let rules = allow(rules, own, in_own_folders())?;
        let mut rules = rules;
        for port in &order.reach.connect_ports {
            rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
        rules.restrict_self()
    };
    let why = |error: RulesetError| format!("its files can't be kept from it: {error}");
    confine().map(|_| ()).map_err(why)
}

/// Whether the kernel restricts a program to its ports (Linux 6.7).
pub(super) fn holds_ports() -> bool {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let rules = rules.handle_access(AccessNet::ConnectTcp);
    rules.and_then(Ruleset::create).is_ok()
}

/// Rules without any rights, to which rights are then added.
fn rules(has_network: bool) -> Result<RulesetCreated, RulesetError> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(OLDEST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST_OF_ALL))?;
    match has_network {
        true => rules
            .handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?
            .create(),
        false => rules.create(),
    }
}

/// Adds these rights for the files at the paths.
pub(crate) fn allow(
    mut rules: RulesetCreated,
    paths: impl IntoIterator<Item = impl AsRef<Path>>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    for path in paths {
        let path = path.as_ref();
        // A missing file needs no rule, and a file that can't be opened could not be used either.
        let Ok(opened) = PathFd::new(path) else {
            continue;
        };
        let access = match path.is_dir() {
            true => access,
            false => access & AccessFs::from_file(NEWEST),
        };
        rules = rules.add_rule(PathBeneath::new(opened, access))?;
    }
    Ok(rules)
}

/// All rights except to execute files that it wrote, and to make devices and sockets.
fn in_own_folders() -> BitFlags<AccessFs> {
    make_bitflags!(AccessFs::{ReadFile | ReadDir | WriteFile | Truncate | MakeReg | MakeDir | MakeSym
        | RemoveFile | RemoveDir | Refer})
}
