//! Accounts and the channels bound to them.

use crate::engine::sql::{Connection, params};
use crate::rows::columns::platform;
use vocative_contract::identity::{Identity, Platform};

use crate::contract::AccountBinding;
use crate::registry::{STATE, StoreTable, account, text};
use crate::rows::names::learn_bot_txn;
use crate::{Reader, Store, StoreError};
use vocative_core::ids::AccountId;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "accounts",
        text(
            &[],
            &[],
            &["platform", "platform_id", "name", "held_reason", "bot"],
        ),
        STATE,
    ),
    account("channels", text(&[], &[], &["name"]), STATE),
];

impl Reader {
    /// The configured channel that was last bound to an account; the account's own name if none is.
    ///
    /// # Errors
    /// `NotFound` if there is no such account.
    pub async fn channel_of(&self, account: AccountId) -> Result<String, StoreError> {
        self.read(move |connection| {
            Ok(connection
                .prepare_cached(
                    "SELECT coalesce((SELECT n.name FROM channels n WHERE n.account_id = a.id
                                      ORDER BY n.bound_at_ms DESC LIMIT 1), a.name) AS value
                     FROM accounts a WHERE a.id = ?1",
                )?
                .query_row([account], |row| row.get("value"))?)
        })
        .await
    }

    /// The topics that are known of an account's chats, at most 100,000: chat, topic, title.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn topics_of(
        &self,
        account: AccountId,
    ) -> Result<Vec<(String, String, Option<String>)>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT h.platform_id, c.thread, c.title
                 FROM chats h JOIN conversations c ON c.chat_id = h.id
                 WHERE h.account_id = ?1 AND c.is_topic AND c.thread <> '' LIMIT 100000",
            )?;
            let rows = statement.query_map([account], |row| {
                Ok((
                    row.get("platform_id")?,
                    row.get("thread")?,
                    row.get("title")?,
                ))
            })?;
            Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
        })
        .await
    }

    /// Every binding of a channel to its account, the newest of an account first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn bindings(&self) -> Result<Vec<ChannelBinding>, StoreError> {
        self.read(bindings).await
    }
}

impl Store {
    /// Finds or makes the account of a bot and binds the channel to it. Two bots of one workspace are two
    /// accounts, each with its own record of the rooms it is in. The first is stored under the
    /// workspace's id; a channel whose app was replaced keeps its account. `taken` are the accounts that
    /// other channels serve. Returns also the binding as it is stored.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn bind_bot(
        &self,
        binding: AccountBinding,
        identity: &Identity,
        taken: Vec<AccountId>,
        now_ms: i64,
    ) -> Result<(AccountId, AccountBinding), StoreError> {
        let identity = identity.clone();
        self.write(move |connection| {
            let stored = AccountBinding {
                account: stored_account(connection, &binding, &identity.user_id, &taken)?,
                ..binding
            };
            let account = bind_txn(connection, &stored, now_ms)?;
            learn_bot_txn(connection, account, &identity)?;
            Ok((account, stored))
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

/// What the account of a bot is stored under: the platform's id of the account, or that and the bot's own.
fn stored_account(
    connection: &Connection,
    binding: &AccountBinding,
    user_id: &str,
    taken: &[AccountId],
) -> Result<String, StoreError> {
    struct KnownAccount {
        id: AccountId,
        stored: String,
        bot: Option<String>,
        was_this_channels: bool,
    }
    let known: Vec<KnownAccount> = connection
        .prepare_cached(
            "SELECT a.id, a.platform_id,
                    CASE WHEN json_valid(a.bot) THEN json_extract(a.bot, '$.user_id') END AS bot,
                    EXISTS (SELECT 1 FROM channels c WHERE c.account_id = a.id AND c.name = ?3) AS was_this_channels
             FROM accounts a
             WHERE a.platform = ?1 AND (a.platform_id = ?2 OR a.platform_id LIKE ?2 || '/%')
             ORDER BY a.id",
        )?
        .query_map(
            params![binding.platform.name(), binding.account, binding.channel],
            |row| {
                Ok(KnownAccount {
                    id: row.get("id")?,
                    stored: row.get("platform_id")?,
                    bot: row.get("bot")?,
                    was_this_channels: row.get("was_this_channels")?,
                })
            },
        )?
        .collect::<crate::engine::sql::Result<_>>()?;
    let same = known.iter().find(|it| it.bot.as_deref() == Some(user_id));
    let former = known
        .iter()
        .find(|it| !taken.contains(&it.id) && (it.was_this_channels || it.bot.is_none()));
    if let Some(account) = same.or(former) {
        return Ok(account.stored.clone());
    }
    Ok(match known.is_empty() {
        true => binding.account.clone(),
        false => format!("{}/{user_id}", binding.account),
    })
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
            |row| row.get("id"),
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

/// Which account a channel was last signed in to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelBinding {
    /// The configured name.
    pub channel: String,
    /// The account.
    pub account: AccountId,
    /// What people call it.
    pub account_name: String,
}

pub(crate) fn bindings(connection: &Connection) -> Result<Vec<ChannelBinding>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT n.name AS channel, a.id, a.name AS account_name FROM channels n JOIN accounts a ON a.id = n.account_id
         ORDER BY a.id, n.bound_at_ms DESC, n.name",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(ChannelBinding {
            channel: row.get("channel")?,
            account: row.get("id")?,
            account_name: row.get("account_name")?,
        })
    })?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}

/// The platform of an account.
pub(crate) fn platform_of(
    connection: &Connection,
    account: AccountId,
) -> Result<Platform, StoreError> {
    Ok(connection
        .prepare_cached("SELECT platform FROM accounts WHERE id = ?1")?
        .query_row([account], platform)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_contract::identity::Platform;

    use super::*;
    use crate::StoreOptions;

    struct Bots {
        store: Store,
    }

    impl Bots {
        /// Binds a channel that turns out to be this bot of a workspace. Returns the account and what it is stored
        /// under.
        async fn bind(&self, channel: &str, bot: &str, taken: &[AccountId]) -> (AccountId, String) {
            let binding = AccountBinding {
                channel: channel.to_owned(),
                platform: Platform::Slack,
                account: "T1".to_owned(),
                name: "Acme".to_owned(),
            };
            let identity = Identity {
                platform: Platform::Slack,
                account: "T1".to_owned(),
                account_name: "Acme".to_owned(),
                user_id: bot.to_owned(),
                other_ids: Vec::new(),
                username: None,
                display_name: bot.to_owned(),
                warnings: Vec::new(),
                organisation: None,
            };
            let bound = self.store.bind_bot(binding, &identity, taken.to_vec(), 1);
            let (account, stored) = bound.await.unwrap();
            (account, stored.account)
        }
    }

    fn bots() -> Bots {
        let options = StoreOptions {
            path: None,
            readers: 1,
            page_cache_kib: 1_024,
        };
        let (store, _) = Store::open(&options, 0).unwrap();
        Bots { store }
    }

    #[tokio::test]
    async fn two_apps_of_a_workspace_are_two_accounts_in_whatever_order_they_come() {
        let bots = bots();
        let (first, stored) = bots.bind("acme", "UONE", &[]).await;
        assert_eq!(stored, "T1");
        let (second, stored) = bots.bind("helper", "UTWO", &[first]).await;
        assert_eq!(stored, "T1/UTWO");
        for (channel, bot, expected) in [
            ("helper", "UTWO", second),
            ("acme", "UONE", first),
            ("renamed", "UTWO", second),
            // The names are exchanged: a bot keeps its account.
            ("helper", "UONE", first),
        ] {
            let (account, _) = bots.bind(channel, bot, &[]).await;
            assert_eq!(account, expected, "{channel} {bot}");
        }
    }

    #[tokio::test]
    async fn a_channel_whose_app_was_replaced_keeps_its_account_unless_another_channel_serves_it() {
        let bots = bots();
        let (first, _) = bots.bind("acme", "UONE", &[]).await;
        let (again, stored) = bots.bind("acme", "UNEW", &[]).await;
        assert_eq!((again, stored.as_str()), (first, "T1"));
        let (other, stored) = bots.bind("acme", "UTHIRD", &[first]).await;
        assert_ne!(other, first);
        assert_eq!(stored, "T1/UTHIRD");
    }

    #[tokio::test]
    async fn an_account_of_which_no_bot_is_known_is_the_first_channels() {
        let bots = bots();
        let binding = AccountBinding {
            channel: "old".to_owned(),
            platform: Platform::Slack,
            account: "T1".to_owned(),
            name: "Acme".to_owned(),
        };
        let before = bots.store.bind_account(binding, 0).await.unwrap();
        let (account, _) = bots.bind("acme", "UONE", &[]).await;
        assert_eq!(account, before);
    }
}
