//! Putting captured turns into the index of stems, a bounded step at a time, behind capture.

use crate::capability::MayWork;
use crate::rows::stem_index::{StemEntry, index_through_txn, next_turns, through_seq};
use crate::{Store, StoreError};

/// The turns of one step, which takes the writer about ten milliseconds.
const STEP_TURNS: i64 = 250;

impl<C: MayWork> Store<C> {
    /// Puts the next turns into the index of stems; returns whether there are more. One caller at a time: the
    /// job `index-turns`, and an import at its end.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn index_turns(&self) -> Result<bool, StoreError> {
        // The stems are made beside the writer.
        let (entries, next) = self
            .read(|connection| {
                let mut next = next_turns(connection, STEP_TURNS)?;
                let turns = std::mem::take(&mut next.turns);
                Ok((turns.into_iter().map(StemEntry::of).collect(), next))
            })
            .await?;
        let has_more = next.has_more;
        if next.through > next.from {
            self.write(move |connection| {
                if through_seq(connection)? == next.from {
                    index_through_txn(connection, entries, next.through)?;
                }
                Ok(())
            })
            .await?;
        }
        Ok(has_more)
    }
}
