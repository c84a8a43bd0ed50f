//! Lets another thread watch a database being opened, and stop it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, InterruptHandle};

/// The phase that the opening of a database is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenPhase {
    /// Its files are being checked.
    #[default]
    Looking,
    /// The copy that an upgrade keeps is being written.
    Copying {
        /// Bytes written so far.
        bytes: u64,
        /// Bytes in all.
        of: u64,
    },
    /// A step of the schema is being applied.
    Migrating {
        /// The step.
        number: u32,
        /// The last step of this upgrade.
        through: u32,
    },
    /// Unfinished work of a previous process is being settled: leases, erasures, files.
    Settling,
}

impl std::fmt::Display for OpenPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const MIB: u64 = 1 << 20;
        match self {
            Self::Looking => write!(f, "looking at the database"),
            Self::Copying { bytes, of } => write!(
                f,
                "keeping a copy of the database before its upgrade: {} of {} MiB",
                bytes / MIB,
                of / MIB
            ),
            Self::Migrating { number, through } => {
                write!(f, "upgrading the database: schema {number} of {through}")
            }
            Self::Settling => write!(f, "settling what was left at the last stop"),
        }
    }
}

/// A view of a database being opened. Cloning shares it.
#[derive(Clone, Default)]
pub struct OpenWatch(Arc<Mutex<Watched>>);

#[derive(Default)]
struct Watched {
    phase: OpenPhase,
    is_stopped: bool,
    interrupt: Option<InterruptHandle>,
}

impl OpenWatch {
    /// The current phase.
    #[must_use]
    pub fn phase(&self) -> OpenPhase {
        self.watched().phase
    }

    /// Asks for opening to be stopped. An upgrade is rolled back at any step; once it is committed, opening
    /// goes on to its end. Call it repeatedly until opening has returned: a statement that begins just after
    /// a call is not interrupted.
    pub fn stop(&self) {
        let mut watched = self.watched();
        watched.is_stopped = true;
        if let Some(interrupt) = &watched.interrupt {
            interrupt.interrupt();
        }
    }

    pub(crate) fn enter(&self, phase: OpenPhase) {
        self.watched().phase = phase;
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.watched().is_stopped
    }

    /// Lets `stop` interrupt the statements of a connection while `work` runs.
    pub(crate) fn interruptible<T>(&self, connection: &Connection, work: impl FnOnce() -> T) -> T {
        self.watched().interrupt = Some(connection.get_interrupt_handle());
        let done = work();
        self.watched().interrupt = None;
        done
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
