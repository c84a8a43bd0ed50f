//! Counts of what turns cost, made after they were captured.

use crate::capability::MayReply;
use crate::engine::sql::Connection;

use crate::{Store, StoreError};
use vocative_core::turn::Recount;

/// The most counts that are stored in one transaction.
const RECOUNTS_MAX: usize = 1_000;

impl<C: MayReply> Store<C> {
    /// Stores what turns cost by another counter than before. A turn that was edited meanwhile keeps
    /// what its edit brought; of more than a thousand the rest is left for the next time.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn record_counts(&self, mut counts: Vec<Recount>) -> Result<(), StoreError> {
        counts.truncate(RECOUNTS_MAX);
        self.write_riding(move |connection| record_counts_txn(connection, &counts))
            .await
    }
}

fn record_counts_txn(connection: &Connection, counts: &[Recount]) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "UPDATE turns SET tokens = ?3, counter = ?4
         WHERE uuid = ?1 AND revision = ?2 AND visibility <> 'hidden'",
    )?;
    for count in counts {
        let tokens = &count.tokens;
        statement.execute((count.turn, count.revision, tokens.tokens, &tokens.counter))?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::contract::TurnFilter;
    use crate::new_id::NewId as _;
    use crate::scene::Scene;
    use vocative_core::ids::TurnId;
    use vocative_core::turn::TokenCount;

    fn recount(turn: TurnId, revision: u32) -> Recount {
        Recount {
            turn,
            revision,
            tokens: TokenCount {
                tokens: 7,
                counter: "another_v1".to_owned(),
            },
        }
    }

    #[tokio::test]
    async fn a_count_is_stored_beside_the_revision_that_was_counted() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let counted = scene.say(&room, "hello", 5).await;
        let edited = scene.say(&room, "before the edit", 6).await;
        let counts = vec![
            recount(counted.turn, 1),
            recount(edited.turn, 7),
            recount(TurnId::generate(), 1),
        ];
        scene.store.record_counts(counts).await.unwrap();
        let turns = scene.store.turns(room.id, TurnFilter::default()).await;
        let stored: Vec<Option<u32>> = turns
            .unwrap()
            .into_iter()
            .map(|turn| {
                turn.tokens
                    .filter(|t| t.counter == "another_v1")
                    .map(|t| t.tokens)
            })
            .collect();
        assert_eq!(stored, [Some(7), None]);
    }
}
