//! Rows of queues that can't be decoded. Such a row is set aside, so that it stops no queue, and an entry
//! here says which one and why, so that a person hears of it.
//!
//! A row that is set aside has the state `quarantined`; `leave_quarantine_txn` takes its entry away where the
//! row gets another state or goes. It is tried again at the first start of another
//! version of the program, which may know what this one does not, and when a person says so after mending
//! it. Entries hold ids and names of columns, nothing of what the row says.

use crate::engine::sql::{Connection, params};

use crate::registry::{Fate, Restore, STATE, StoreTable, nobody, text};
use crate::rows::run_events::forget_live_text_txn;
use crate::{Reader, StoreError};
use vocative_core::job::JobState;
use vocative_core::outbox::PostStage;
use vocative_core::run::RunStage;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[nobody(
    "quarantine",
    "ids of rows of other tables",
    text(&[], &[], &["queue", "reason", "version"]),
    Fate {
        restore: Restore::AsItWas,
        ..STATE
    },
)];

/// A queue whose rows can be set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Runs.
    Questions,
    /// The outbox.
    Posts,
    /// Background work.
    Jobs,
}

impl Queue {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Questions, Self::Posts, Self::Jobs];

    /// Its name, as it is stored and shown.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Questions => "question",
            Self::Posts => "post",
            Self::Jobs => "job",
        }
    }

    /// The queue of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|queue| queue.name() == name)
    }

    /// The state of its rows that are set aside.
    fn state_aside(self) -> &'static str {
        match self {
            Self::Questions => RunStage::Quarantined.name(),
            Self::Posts => PostStage::Quarantined.name(),
            Self::Jobs => JobState::Quarantined.name(),
        }
    }

    fn set_aside_sql(self) -> &'static str {
        match self {
            Self::Questions => {
                "UPDATE runs SET state = 'quarantined', owner = NULL, token = NULL,
                        lease_until_ms = NULL WHERE id = ?1"
            }
            Self::Posts => {
                "UPDATE outbox SET state = 'quarantined', owner = NULL, token = NULL,
                        lease_until_ms = NULL, placeholder_of = NULL WHERE id = ?1"
            }
            Self::Jobs => {
                "UPDATE jobs SET state = 'quarantined', owner = NULL, token = NULL,
                        lease_until_ms = NULL WHERE id = ?1"
            }
        }
    }
}

/// A row that is set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Which queue.
    pub queue: Queue,
    /// The row.
    pub row: i64,
    /// What can't be decoded, without what it says.
    pub reason: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

impl Reader {
    /// The rows that are set aside, oldest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn quarantined(&self) -> Result<Vec<Quarantined>, StoreError> {
        self.read(entries).await
    }
}

/// Sets a row aside.
pub(crate) fn set_aside_txn(
    connection: &Connection,
    queue: Queue,
    row: i64,
    what: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    tracing::error!(
        queue = queue.name(),
        row,
        what,
        "a row can't be decoded and is set aside; `vocative quarantine list` shows it"
    );
    if queue == Queue::Questions {
        forget_live_text_txn(connection, row)?;
    }
    connection
        .prepare_cached(queue.set_aside_sql())?
        .execute([row])?;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO quarantine (queue, row_id, reason, version, at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            queue.name(),
            row,
            what,
            env!("CARGO_PKG_VERSION"),
            now_ms
        ])?;
    Ok(())
}

/// Removes the entries of rows that are no longer set aside: they have another state, or are gone.
pub(crate) fn leave_quarantine_txn(connection: &Connection) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "DELETE FROM quarantine
             WHERE (queue = ?1 AND NOT EXISTS (SELECT 1 FROM runs WHERE id = row_id AND state = ?2))
                OR (queue = ?3 AND NOT EXISTS (SELECT 1 FROM outbox WHERE id = row_id AND state = ?4))
                OR (queue = ?5 AND NOT EXISTS (SELECT 1 FROM jobs WHERE id = row_id AND state = ?6))",
        )?
        .execute((
            Queue::Questions.name(),
            Queue::Questions.state_aside(),
            Queue::Posts.name(),
            Queue::Posts.state_aside(),
            Queue::Jobs.name(),
            Queue::Jobs.state_aside(),
        ))?;
    Ok(())
}

/// Returns what was decoded; if a row could not be, sets it aside and returns `None`.
pub(crate) fn kept_or_set_aside_txn<T>(
    connection: &Connection,
    (queue, row): (Queue, i64),
    decoded: Result<T, StoreError>,
    now_ms: i64,
) -> Result<Option<T>, StoreError> {
    match decoded {
        Ok(decoded) => Ok(Some(decoded)),
        Err(StoreError::Undecodable { what }) => {
            set_aside_txn(connection, queue, row, &what, now_ms)?;
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

/// The entries, oldest first.
pub(crate) fn entries(connection: &Connection) -> Result<Vec<Quarantined>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT queue, row_id, reason, at_ms FROM quarantine ORDER BY at_ms, row_id",
    )?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let queue: String = row.get("queue")?;
        // An entry of a queue that this build does not know stays for the build that does.
        if let Some(queue) = Queue::from_name(&queue) {
            found.push(Quarantined {
                queue,
                row: row.get("row_id")?,
                reason: row.get("reason")?,
                at_ms: row.get("at_ms")?,
            });
        }
    }
    Ok(found)
}
