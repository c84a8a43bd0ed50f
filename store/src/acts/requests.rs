//! Questions that programs ask through the API.

use crate::acts::capture::capture_txn;
use crate::capability::MayCapture;
use crate::contract::{AskedRun, Captured, CapturedRequest, CapturedTurn, NewMessage, NewRequest};
use crate::rows::run_requests::{keep_request_txn, known_request};
use crate::{Store, StoreError};
use vocative_core::ids::RunId;

impl<C: MayCapture> Store<C> {
    /// Captures a program's question with the data of its request, and queues its run, in one transaction. A request
    /// that has a name is captured once.
    ///
    /// # Errors
    /// Storage refuses; then nothing was written.
    pub async fn capture_request(
        &self,
        message: NewMessage,
        request: NewRequest,
    ) -> Result<CapturedRequest, StoreError> {
        let ledger = self.ledger_path();
        self.write_shared(move |connection| {
            if let Some(known) = known_request(connection, &message, &request)? {
                return Ok(known);
            }
            let captured = capture_txn(connection, message, ledger)?.captured;
            let (turn, is_new) = match captured {
                Captured::New(turn) => (turn, true),
                Captured::Duplicate(turn) | Captured::Revised(turn) => (turn, false),
                Captured::Tombstone => return Ok(CapturedRequest::Gone),
                Captured::NotAdmitted { .. } => return Ok(CapturedRequest::NotAdmitted),
            };
            match turn.new_runs.first() {
                Some(run) => {
                    keep_request_txn(connection, *run, &request)?;
                    Ok(CapturedRequest::Asked(asked(&turn, *run)))
                }
                // The message exists but the request does not: an erasure removed how it was answered.
                None if !is_new => Ok(CapturedRequest::Gone),
                None => Ok(CapturedRequest::NotAdmitted),
            }
        })
        .await
    }
}

fn asked(turn: &CapturedTurn, run: RunId) -> AskedRun {
    AskedRun {
        run,
        conversation: turn.conversation,
        turn: turn.turn,
    }
}
