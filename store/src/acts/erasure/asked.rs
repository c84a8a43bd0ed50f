//! Erasure orders that a person gives in a room, written in the transaction that captures the command.

use std::path::Path;

use crate::engine::sql::{Connection, params};

use super::ledger::{LedgerEntry, LedgerKind, OrderReach, append};
use super::orders::add_order_txn;
use crate::StoreError;
use crate::new_id::NewId as _;
use crate::rows::jobs::enqueue_txn;
use vocative_core::ids::{AccountId, ChatId, ErasureId};
use vocative_core::job::Job;

/// The time within which a person may have all that they said forgotten only once, in milliseconds.
const PERSON_EVERY_MS: i64 = 86_400_000;

/// What a person wants forgotten.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Forgotten<'a> {
    /// One message, by the platform's ids.
    Message {
        /// The chat.
        chat: &'a str,
        /// The message.
        message_id: &'a str,
    },
    /// All that a person said; the person by the platform's id.
    Person {
        /// The person.
        person: &'a str,
    },
    /// All that was said in a chat, its threads and topics.
    Chat {
        /// The chat.
        chat: ChatId,
    },
}

/// Writes orders into the ledger and queues them: from here on they are carried out, whatever happens. Returns
/// the orders.
pub(crate) fn order_txn(
    connection: &Connection,
    file: Option<&Path>,
    account: AccountId,
    what: &Forgotten<'_>,
    now_ms: i64,
) -> Result<Vec<ErasureId>, StoreError> {
    let (platform, account_id): (String, String) = connection
        .prepare_cached("SELECT platform, platform_id FROM accounts WHERE id = ?1")?
        .query_row([account], |row| {
            Ok((row.get("platform")?, row.get("platform_id")?))
        })?;
    let entry = |kind, platform_id: &str, chat: &str| LedgerEntry {
        id: ErasureId::generate(),
        kind,
        reach: OrderReach::Own,
        platform: platform.clone(),
        account: account_id.clone(),
        platform_id: platform_id.to_owned(),
        chat: chat.to_owned(),
        erased_at_ms: now_ms,
    };
    let entries = match what {
        Forgotten::Message { chat, message_id } => {
            vec![entry(LedgerKind::Message, message_id, chat)]
        }
        Forgotten::Person { person } => vec![entry(LedgerKind::Person, person, "")],
        Forgotten::Chat { chat } => ids_of(connection, *chat)?
            .iter()
            .map(|id| entry(LedgerKind::Chat, "", id))
            .collect(),
    };
    append(file, &entries, true)?;
    for entry in &entries {
        add_order_txn(connection, entry)?;
        enqueue_txn(
            connection,
            &Job::Erase { order: entry.id },
            Some(account),
            now_ms,
        )?;
    }
    Ok(entries.iter().map(|entry| entry.id).collect())
}

/// Whether a person had all that they said forgotten within the last day.
pub(crate) fn has_forgotten_lately(
    connection: &Connection,
    account: AccountId,
    person: &str,
    now_ms: i64,
) -> Result<bool, StoreError> {
    Ok(connection.prepare_cached(LATELY_SQL)?.query_row(
        params![
            account,
            person,
            now_ms - PERSON_EVERY_MS,
            // A clock that was set back does not lengthen the wait.
            now_ms + PERSON_EVERY_MS
        ],
        |row| row.get("is_so"),
    )?)
}

pub(crate) const LATELY_SQL: &str =
    "SELECT EXISTS (SELECT 1 FROM erasures INDEXED BY erasures_asked
                    WHERE reach = 'own' AND kind <> 'message' AND kind = 'person'
                      AND account_id = ?1 AND platform_id = ?2
                      AND erased_at_ms > ?3 AND erased_at_ms < ?4) AS is_so";

/// Every id that the chat has had: a copy from before a change of ids knows only the old id.
fn ids_of(connection: &Connection, chat: ChatId) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT platform_id FROM chat_ids WHERE chat_id = ?1 ORDER BY platform_id",
    )?;
    let ids = statement.query_map(params![chat], |row| row.get("platform_id"))?;
    Ok(ids.collect::<crate::engine::sql::Result<_>>()?)
}
