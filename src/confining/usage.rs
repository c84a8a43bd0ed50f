//! The resources that processes use, as the kernel counts them.

/// The resources of a process group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupUsage {
    /// Its processes.
    pub(super) processes: u32,
    /// Their memory together, in bytes; shared memory counts for each.
    pub(super) memory_bytes: u64,
}

/// The fields of a line of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    group: i32,
    threads: u64,
    resident_pages: u64,
}

/// Reads the line's fields; the second one, a name in parentheses, may contain any characters.
fn stat(line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first of these fields is the third of the line. Source: proc_pid_stat(5).
    let field = |n: usize| fields.get(n - 3);
    Some(Stat {
        group: field(5)?.parse().ok()?,
        threads: field(20)?.parse().ok()?,
        resident_pages: field(24)?.parse().ok()?,
    })
}

/// Every visible process, with its user.
fn processes() -> impl Iterator<Item = (Option<u32>, Stat)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process = |name: &std::ffi::OsStr| {
        let name = name.to_str().unwrap_or_default();
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
    };
    entries
        .filter(move |entry| is_process(&entry.file_name()))
        .filter_map(|entry| {
            let line = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            Some((user_of(&entry), stat(&line)?))
        })
}

#[cfg(unix)]
fn user_of(entry: &std::fs::DirEntry) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    Some(entry.metadata().ok()?.uid())
}

#[cfg(not(unix))]
fn user_of(_: &std::fs::DirEntry) -> Option<u32> {
    None
}

/// The current resources of a group.
pub(super) fn of_group(group: i32) -> GroupUsage {
    let page_bytes = rustix::param::page_size() as u64;
    let of_group = processes().filter(|(_, stat)| stat.group == group);
    of_group.fold(GroupUsage::default(), |sum, (_, stat)| GroupUsage {
        processes: sum.processes + 1,
        memory_bytes: sum.memory_bytes + stat.resident_pages * page_bytes,
    })
}

/// Threads of all processes of this process's user.
#[cfg(target_os = "linux")]
pub(super) fn threads_of_user() -> u64 {
    let user = rustix::process::getuid().as_raw();
    let own = processes().filter(|(owner, _)| *owner == Some(user));
    own.map(|(_, stat)| stat.threads).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_moves_no_field() {
        let line = "7 (a) b) 1) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 5 9216 512 184";
        let expected = Stat {
            group: 7,
            threads: 3,
            resident_pages: 512,
        };
        assert_eq!(stat(line), Some(expected));
        assert_eq!(stat("7 (cat"), None);
    }
}
