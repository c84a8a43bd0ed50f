//! The store's behaviour, told in sentences, on a private database.

#![allow(clippy::unwrap_used)]

mod approving;
mod backups;
mod bounded;
mod cleaning;
mod commands;
mod conversation_stats;
mod damage;
mod deletes;
mod edits;
mod endings;
mod erasing;
mod expiring;
mod files;
mod forgetting;
mod imports;
mod interleavings;
mod jobs;
mod knowledge;
mod lines;
mod merging;
mod merging_steps;
mod neighbours;
mod opening;
mod pages;
mod placeholders;
mod probing;
mod quarantine;
mod reanswer;
mod registry;
mod requests;
mod run_events;
#[path = "../../tests/conformance/said.rs"]
mod said;
mod schedules;
mod searching;
mod summaries;
mod vectors;
mod writing;

use crate::engine::sql::Connection;
use crate::engine::sql::FromSql;
use crate::registry::FULL_TEXT;
use crate::rows::tables;
use vocative_contract::envelope::{ChatKind, Place, Sender, SenderKind};
use vocative_contract::identity::Platform;

use super::contract as api;
use super::contract::{AccountBinding, Captured, NewMessage};
use super::{Store, StoreError, StoreOptions};
use crate::rows::columns::{select_turns, turn_from_row};
pub(super) use said::{NOW_MS, Said, admitted, agent, binding, said, turn_of};
use vocative_core::addressing::{MessageFacts, Verdict};
use vocative_core::ids::{AccountId, AgentName};
use vocative_core::turn::Turn;

/// A store with one account.
pub(super) struct Fixture {
    pub(super) store: Store,
    pub(super) account: AccountId,
}

impl Fixture {
    pub(super) async fn new() -> Self {
        let options = StoreOptions {
            path: None,
            readers: 2,
            page_cache_kib: 1_024,
        };
        Self::with(Store::open(&options, NOW_MS).unwrap().0).await
    }

    pub(super) async fn with(store: Store) -> Self {
        let account = store.bind_account(binding("acme"), NOW_MS).await.unwrap();
        Self { store, account }
    }

    /// Captures a message that everybody may send and that addresses nobody.
    pub(super) async fn hear(&self, said: Said) -> Captured {
        self.judge(said, |_| admitted(&[])).await
    }

    /// Captures a message that addresses an agent.
    pub(super) async fn hear_for(&self, agents: &'static [&'static str], said: Said) -> Captured {
        self.judge(said, |_| admitted(agents)).await
    }

    pub(super) async fn judge(
        &self,
        said: Said,
        judge: impl FnOnce(&MessageFacts) -> Verdict + Send + 'static,
    ) -> Captured {
        let message = said.message(self.account, Box::new(judge));
        self.store.capture_message(message).await.unwrap()
    }

    pub(super) async fn turns(&self) -> Vec<Turn> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(select_turns!("ORDER BY t.seq"))?;
            let rows = statement.query_map([], turn_from_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(super) async fn only_turn(&self) -> Turn {
        let mut turns = self.turns().await;
        assert_eq!(turns.len(), 1);
        turns.remove(0)
    }

    pub(super) async fn contents(&self) -> Vec<String> {
        let turns = self.turns().await;
        turns.into_iter().map(|turn| turn.content).collect()
    }

    /// All values of a one-column query.
    pub(super) async fn column<T: FromSql + Send + 'static>(&self, sql: &'static str) -> Vec<T> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// The one value of a query.
    pub(super) async fn value<T: FromSql + Send + 'static>(&self, sql: &'static str) -> T {
        let mut values = self.column(sql).await;
        assert_eq!(values.len(), 1, "{sql}");
        values.remove(0)
    }

    pub(super) async fn execute(&self, sql: &'static str) {
        self.store
            .write(move |connection| Ok(connection.execute_batch(sql)?))
            .await
            .unwrap();
    }

    /// Seqs of turns found in a conversation.
    pub(super) async fn found(&self, query: &'static str) -> Vec<i64> {
        self.read(move |connection| {
            let mut statement = connection
                .prepare_cached("SELECT rowid FROM turn_text WHERE turn_text MATCH ?1")?;
            let rows = statement.query_map([query], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Every text that is anywhere in the database, index included, holds no such word.
    pub(super) async fn is_nowhere(&self, word: &'static str) -> bool {
        let places: i64 = self
            .read(move |connection| {
                let texts = tables()
                    .into_iter()
                    .filter(|it| !FULL_TEXT.contains(&it.name))
                    .flat_map(|table| {
                        table
                            .spoken()
                            .map(|column| (table.name, format!("coalesce({column}, '')")))
                    });
                let index = ("turn_text_data", "CAST(block AS TEXT)".to_owned());
                let stems = ("turn_stems_data", "CAST(block AS TEXT)".to_owned());
                let target = ("inquiries", "target".to_owned());
                let mut places = 0;
                for (table, text) in texts.chain([index, stems, target]) {
                    let sql = format!("SELECT count(*) FROM {table} WHERE instr({text}, ?1)");
                    places += connection.query_row(&sql, [word], |row| row.get::<_, i64>(0))?;
                }
                Ok(places)
            })
            .await;
        places == 0
    }

    async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> T {
        self.store.read(job).await.unwrap()
    }
}
