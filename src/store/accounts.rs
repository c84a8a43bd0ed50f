//! Accounts and the channels bound to them.

use rusqlite::{Connection, params};

use super::contract::AccountBinding;
use super::{Store, StoreError};
use crate::domain::ids::AccountId;

impl Store {
    /// The configured channel that was last bound to an account; the account's own name if none is.
    ///
    /// # Errors
    /// `NotFound` if there is no such account.
    pub async fn channel_of(&self, account: AccountId) -> Result<String, StoreError> {
        self.read(move |connection| {
            Ok(connection
                .prepare_cached(
                    "SELECT coalesce((SELECT n.name FROM channels n WHERE n.account_id = a.id
                                      ORDER BY n.bound_at_ms DESC LIMIT 1), a.name)
                     FROM accounts a WHERE a.id = ?1",
                )?
                .query_row([account], |row| row.get(0))?)
        })
        .await
    }

    /// Finds or makes the account, binds the channel to it (renaming a channel changes nothing
    /// stored), lifts an account hold.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn bind_account(
        &self,
        binding: AccountBinding,
        now_ms: i64,
    ) -> Result<AccountId, StoreError> {
        self.write(move |connection| bind_txn(connection, &binding, now_ms))
            .await
    }
}

fn bind_txn(
    connection: &Connection,
    binding: &AccountBinding,
    now_ms: i64,
) -> Result<AccountId, StoreError> {
    let account: AccountId = connection
        .prepare_cached(
            "INSERT INTO accounts (platform, platform_id, name) VALUES (?1, ?2, ?3)
             ON CONFLICT (platform, platform_id)
             DO UPDATE SET name = excluded.name, held_reason = NULL
             RETURNING id",
        )?
        .query_row(
            params![binding.platform.name(), binding.account, binding.name],
            |row| row.get(0),
        )?;
    connection
        .prepare_cached(
            "INSERT INTO channels (name, account_id, bound_at_ms) VALUES (?1, ?2, ?3)
             ON CONFLICT (name)
             DO UPDATE SET account_id = excluded.account_id, bound_at_ms = excluded.bound_at_ms",
        )?
        .execute(params![binding.channel, account, now_ms])?;
    Ok(account)
}
