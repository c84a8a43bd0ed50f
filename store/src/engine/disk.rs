//! Measures the disk: what it has left, and how fast it is.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

/// The number of writes with which the disk is measured.
pub(crate) const SYNCS: usize = 100;
/// The file that the measurement writes, beside the database.
pub(crate) const PROBE_NAME: &str = ".vocative-disk-probe";

/// The bytes that a disk has free for the user of this process.
pub(crate) fn free_bytes(folder: &Path) -> std::io::Result<u64> {
    let room = rustix::fs::statvfs(folder)?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

/// How long each of `SYNCS` writes took to reach the disk, in microseconds.
pub(crate) fn sync_us(folder: &Path) -> std::io::Result<Vec<u64>> {
    let path = folder.join(PROBE_NAME);
    let measured = probe(&path);
    let _ = std::fs::remove_file(&path);
    measured
}

fn probe(path: &Path) -> std::io::Result<Vec<u64>> {
    let mut file = File::create(path)?;
    let mut took_us = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begun = Instant::now();
        file.write_all(&[0; 4_096])?;
        file.sync_data()?;
        took_us.push(u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    took_us.sort_unstable();
    Ok(took_us)
}
