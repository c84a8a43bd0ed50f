//! The bounds that a run sets to what is read for it.

use super::statements::RUN_SQL;
use crate::StoreError;
use crate::engine::sql::Connection;
use crate::rows::columns::missing;
use vocative_core::ids::RunId;

/// What a run says about what may be read for it.
pub(super) struct RunFacts {
    pub(super) row: i64,
    pub(super) conversation_row: i64,
    pub(super) first_claimed_at_ms: i64,
    /// Only fresh starts up to this time count for it.
    pub(super) afresh_ms: i64,
}

impl RunFacts {
    /// The bounds without a run: no run is later than this.
    pub(super) const NONE: Self = Self {
        row: i64::MAX,
        conversation_row: 0,
        first_claimed_at_ms: i64::MAX,
        afresh_ms: i64::MAX,
    };
}

pub(super) fn run_facts(connection: &Connection, run: RunId) -> Result<RunFacts, StoreError> {
    connection
        .prepare_cached(RUN_SQL)?
        .query_row([run], |row| {
            let first_claimed_at_ms: Option<i64> = row.get("first_claimed_at_ms")?;
            Ok(RunFacts {
                row: row.get("id")?,
                conversation_row: row.get("conversation_id")?,
                first_claimed_at_ms: first_claimed_at_ms.unwrap_or(i64::MAX),
                afresh_ms: row.get::<_, Option<i64>>("afresh_ms")?.unwrap_or(i64::MAX),
            })
        })
        .map_err(|error| missing(error, || format!("run {run}")))
}
