//! Leases: whether a run's is still held (who writes for a run asks here first), and whose are not taken over.

use vocative_contract::crash::{self, Sabotage};

use crate::StoreError;
use crate::engine::sql::{Connection, OptionalExtension};
use vocative_core::ids::{LeaseToken, OwnerId, RunId};

/// A run whose lease is held.
pub(crate) struct LeasedRun {
    pub(crate) row: i64,
    pub(crate) conversation_row: i64,
    pub(crate) is_cancelled: bool,
}

/// The row of a leased run, if the token still holds it, and whether it was asked to stop.
pub(crate) fn leased_run(
    connection: &Connection,
    run: RunId,
    token: LeaseToken,
) -> Result<Option<LeasedRun>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT id, conversation_id, stop_cause IS NOT NULL AS is_cancelled FROM runs
             WHERE uuid = ?1 AND ((token = ?2 AND state = 'leased') OR ?3)",
        )?
        .query_row(
            (run, token, crash::is_sabotaged(Sabotage::NoLeaseToken)),
            |row| {
                Ok(LeasedRun {
                    row: row.get("id")?,
                    conversation_row: row.get("conversation_id")?,
                    is_cancelled: row.get("is_cancelled")?,
                })
            },
        )
        .optional()?)
}

/// The owner whose leases are not taken over, whatever the clock says of their end.
pub(crate) fn spared_owner(owner: OwnerId) -> Option<OwnerId> {
    let takes_over_own =
        crash::is_sabotaged(Sabotage::ReclaimOwn) || crash::is_sabotaged(Sabotage::NoLeaseToken);
    (!takes_over_own).then_some(owner)
}
