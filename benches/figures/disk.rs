//! How long this disk takes to make 4 KiB durable: the yardstick beside every durable figure.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Fail;

const BLOCK: [u8; 4_096] = [7; 4_096];

/// A file that is appended to.
pub(crate) struct AppendedFile(File);

impl AppendedFile {
    pub(crate) fn at(folder: &Path) -> Result<Self, Fail> {
        Ok(Self(File::create(folder.join("disk-probe"))?))
    }

    /// Appends 4 KiB and waits until they are on disk.
    pub(crate) fn probe(&mut self) -> Result<Duration, Fail> {
        let started = Instant::now();
        self.0.write_all(&BLOCK)?;
        self.0.sync_data()?;
        Ok(started.elapsed())
    }
}
