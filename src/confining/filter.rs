//! Which system calls a program may make, by seccomp: closes what Landlock leaves open and leads to the daemon.

use std::collections::BTreeMap;

use rustix::process::Pid;
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

/// System calls that are refused with any arguments, with the reasons.
const REFUSED: &[i64] = &[
    // Leaves the process group, which is ended as a whole.
    libc::SYS_setsid,
    libc::SYS_setpgid,
    // Act on a file by its path, which Landlock does not check (some of them: before Linux 6.2).
    libc::SYS_truncate,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    // Look into other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Makes system calls that no filter sees, sockets among them.
    libc::SYS_io_uring_setup,
    // Keys belong to the user, and so to the daemon.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Other views of the system, and its internals.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_open_by_handle_at,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // Signals a thread of any process.
    libc::SYS_tkill,
    FCHMODAT2,
    SETXATTRAT,
    REMOVEXATTRAT,
];

/// Since Linux 6.6, for all architectures.
const FCHMODAT2: i64 = 452;
/// Since Linux 6.13, for all architectures.
const SETXATTRAT: i64 = 463;
/// Since Linux 6.13, for all architectures.
const REMOVEXATTRAT: i64 = 466;

/// Older forms of these calls, which other architectures don't have.
#[cfg(target_arch = "x86_64")]
const REFUSED_OLDER: &[i64] = &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_OLDER: &[i64] = &[];

/// The bit by which x86-64 marks calls of its 32-bit-pointer form: the same calls under other numbers.
#[cfg(target_arch = "x86_64")]
const OTHER_NUMBERS: i64 = 0x4000_0000;

/// Filters the system calls of this thread and of what it starts.
pub(super) fn restrict(has_network: bool, parent: Pid) -> Result<(), String> {
    let apply = || -> Result<(), Error> { apply_filter(&program(has_network, parent)?) };
    apply().map_err(|error| format!("its system calls can't be filtered: {error}"))
}

fn program(has_network: bool, parent: Pid) -> Result<BpfProgram, Error> {
    let always = REFUSED.iter().chain(REFUSED_OLDER);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        always.map(|call| (*call, Vec::new())).collect();
    for (call, conditions) in conditional(has_network, parent)? {
        rules.insert(call, conditions);
    }
    #[cfg(target_arch = "x86_64")]
    {
        let others: Vec<_> = rules
            .iter()
            .map(|(call, rules)| (call | OTHER_NUMBERS, rules.clone()))
            .collect();
        rules.extend(others);
    }
    let refuse = SeccompAction::Errno(u32::try_from(libc::EPERM).unwrap_or(1));
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()?)
}

/// Calls that are refused for some arguments: for each, the rules of which one match is enough.
fn conditional(has_network: bool, parent: Pid) -> Result<Vec<(i64, Vec<SeccompRule>)>, Error> {
    let value = |number: i32| u64::from(number.cast_unsigned());
    let is = |argument, number| {
        SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Eq,
            value(number),
        )
    };
    let is_not = |argument, number| {
        SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            value(number),
        )
    };
    let parent = parent.as_raw_pid();
    // Unix sockets can't be opened at all; with network access, only the families that a network needs can.
    let socket = match has_network {
        false => Vec::new(),
        true => vec![SeccompRule::new(vec![
            is_not(0, libc::AF_INET)?,
            is_not(0, libc::AF_INET6)?,
            is_not(0, libc::AF_NETLINK)?,
        ])?],
    };
    // A pair of datagram sockets could send elsewhere; the low bits of the type are the socket type.
    let is_datagram = SeccompCondition::new(
        1,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(0xf),
        value(libc::SOCK_DGRAM),
    )?;
    let signals = |argument| -> Result<_, seccompiler::BackendError> {
        Ok(vec![
            SeccompRule::new(vec![is(argument, parent)?])?,
            SeccompRule::new(vec![is(argument, -1)?])?,
        ])
    };
    Ok(vec![
        (libc::SYS_socket, socket),
        (
            libc::SYS_socketpair,
            vec![SeccompRule::new(vec![is_datagram])?],
        ),
        // Before Linux 6.12 Landlock does not check signals.
        (libc::SYS_kill, signals(0)?),
        (libc::SYS_tgkill, signals(0)?),
        (libc::SYS_rt_sigqueueinfo, signals(0)?),
        (libc::SYS_rt_tgsigqueueinfo, signals(0)?),
        (libc::SYS_pidfd_open, signals(0)?),
        // Could change the limits of other processes.
        (
            libc::SYS_prlimit64,
            vec![SeccompRule::new(vec![is_not(0, 0)?])?],
        ),
    ])
}
