//! What people looked at and did in the console. A row is written before that happens; only its outcome is added.

use crate::engine::sql::params;

use crate::registry::{ExpiryRule, Fate, MergeRule, STATE, StoreTable, nobody, text};
use crate::rows::columns::limit_of;
use crate::{Reader, Store, StoreError};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[nobody(
    "audit",
    "what those who run the daemon looked at and did in the console",
    text(&[], &[], &["who", "via", "act", "target", "outcome"]),
    Fate {
        merge: MergeRule::Nothing("it says what somebody did, of the room as it was then"),
        expiry: ExpiryRule::Nothing(
            "an audit that gets shorter by itself is none, and its rows are small",
        ),
        ..STATE
    },
)];

/// What somebody is about to look at or do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAudit {
    /// Their name in the configuration.
    pub who: String,
    /// How they came in.
    pub via: &'static str,
    /// What it is, in a word.
    pub act: &'static str,
    /// The id of what it is about; empty = of nothing. Never a text, and never the name of a person in a room.
    pub target: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// The number of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditId(pub i64);

/// The outcome of what a person did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditOutcome {
    /// It was done.
    Done,
    /// It was refused, or failed.
    Refused,
}

impl AuditOutcome {
    fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
        }
    }
}

/// What somebody looked at or did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAudit {
    /// Its number.
    pub id: AuditId,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Their name in the configuration.
    pub who: String,
    /// How they came in.
    pub via: String,
    /// What it is, in a word.
    pub act: String,
    /// The id of what it is about.
    pub target: String,
    /// `begun` (it may have happened or not), `done`, `refused`.
    pub outcome: String,
}

impl Store {
    /// Writes down what somebody is about to look at or do.
    ///
    /// # Errors
    /// Storage refuses; then it must not happen.
    pub async fn begin_audit(&self, new: NewAudit) -> Result<AuditId, StoreError> {
        self.write(move |connection| {
            let id = connection
                .prepare_cached(
                    "INSERT INTO audit (at_ms, who, via, act, target, outcome)
                     VALUES (?1, ?2, ?3, ?4, ?5, 'begun') RETURNING id",
                )?
                .query_row(
                    params![new.at_ms, new.who, new.via, new.act, new.target],
                    |row| row.get("id"),
                )?;
            Ok(AuditId(id))
        })
        .await
    }

    /// Adds the outcome of what a person did. The first outcome stays.
    ///
    /// # Errors
    /// Storage refuses; then the row goes on saying that it was begun.
    pub async fn end_audit(&self, id: AuditId, outcome: AuditOutcome) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection
                .prepare_cached(
                    "UPDATE audit SET outcome = ?2 WHERE id = ?1 AND outcome = 'begun'",
                )?
                .execute(params![id.0, outcome.name()])?;
            Ok(())
        })
        .await
    }
}

impl Reader {
    /// What people looked at and did, the newest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn audit(
        &self,
        before: Option<AuditId>,
        limit: usize,
    ) -> Result<Vec<StoredAudit>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, at_ms, who, via, act, target, outcome FROM audit WHERE id < ?1
                 ORDER BY id DESC LIMIT ?2",
            )?;
            let before = before.map_or(i64::MAX, |id| id.0);
            let rows = statement.query_map(params![before, limit_of(limit)], |row| {
                Ok(StoredAudit {
                    id: AuditId(row.get("id")?),
                    at_ms: row.get("at_ms")?,
                    who: row.get("who")?,
                    via: row.get("via")?,
                    act: row.get("act")?,
                    target: row.get("target")?,
                    outcome: row.get("outcome")?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}
