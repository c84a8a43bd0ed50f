//! Names for mentions: people by what was heard of them, the bot by who it was last known to be.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::capability::MayCapture;
use crate::engine::sql::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::markup::{mentioned_ids, replace_mentions};

use crate::rows::participants::{
    HeardSender, NAME_BY_ID_SQL, NAME_BY_USERNAME_SQL, upsert_participant_txn,
};
use crate::{Reader, Store, StoreError};
use vocative_core::history::{HistoryRole, HistoryTurn};
use vocative_core::ids::AccountId;
use vocative_core::turn::ParticipantKind;

/// The longest name that is put in place of a mention, in characters.
const NAME_MAX_CHARS: usize = 64;
/// The most mentioned people whose names are looked up, the triggers' first, then the newest turns'.
const NAMES_MAX: usize = 200;
/// The version of the stored form.
const BOT_VERSION: u32 = 1;

/// Who the bot is at an account, as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredBot {
    version: u32,
    user_id: String,
    #[serde(default)]
    other_ids: Vec<String>,
    #[serde(default)]
    username: Option<String>,
    display_name: String,
}

pub(crate) fn learn_bot_txn(
    connection: &Connection,
    account: AccountId,
    identity: &Identity,
) -> Result<(), StoreError> {
    let bot = StoredBot {
        version: BOT_VERSION,
        user_id: identity.user_id.clone(),
        other_ids: identity.other_ids.clone(),
        username: identity.username.clone(),
        display_name: identity.display_name.clone(),
    };
    connection
        .prepare_cached("UPDATE accounts SET bot = ?2 WHERE id = ?1 AND bot IS NOT ?2")?
        .execute(params![account, serde_json::to_string(&bot)?])?;
    Ok(())
}

impl Reader {
    /// Who the bot is at an account, as last learnt; `None` if it never was.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn identity(&self, account: AccountId) -> Result<Option<Identity>, StoreError> {
        self.read(move |connection| identity(connection, account))
            .await
    }

    /// Texts with names in place of their mention tokens, as people read them.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn named(
        &self,
        account: AccountId,
        texts: Vec<String>,
    ) -> Result<Vec<String>, StoreError> {
        self.read(move |connection| {
            let mut names = NameLookup::new(connection, account);
            texts.iter().map(|text| names.named(text)).collect()
        })
        .await
    }
}

impl<C: MayCapture> Store<C> {
    /// Keeps names of people who were not heard, for their mentions: pairs of id and name.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn name_people(
        &self,
        account: AccountId,
        names: Vec<(String, String)>,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            for (id, name) in &names {
                let heard = HeardSender {
                    kind: ParticipantKind::User,
                    platform_id: id,
                    display_name: Some(name),
                    username: id.strip_prefix('@'),
                    is_bot: None,
                };
                upsert_participant_txn(connection, account, heard, 0)?;
            }
            Ok(())
        })
        .await
    }
}

/// Who the bot is at an account, as last learnt.
pub(crate) fn identity(
    connection: &Connection,
    account: AccountId,
) -> Result<Option<Identity>, StoreError> {
    let row: Option<(String, String, String, Option<String>)> = connection
        .prepare_cached("SELECT platform, platform_id, name, bot FROM accounts WHERE id = ?1")?
        .query_row([account], |row| {
            Ok((
                row.get("platform")?,
                row.get("platform_id")?,
                row.get("name")?,
                row.get("bot")?,
            ))
        })
        .optional()?;
    let Some((platform, account, account_name, Some(bot))) = row else {
        return Ok(None);
    };
    let bot: StoredBot = serde_json::from_str(&bot)?;
    Ok(Platform::from_name(&platform).map(|platform| Identity {
        platform,
        account,
        account_name,
        user_id: bot.user_id,
        other_ids: bot.other_ids,
        username: bot.username,
        display_name: bot.display_name,
        warnings: Vec::new(),
        organisation: None,
    }))
}

/// Looks names up, each once.
pub(crate) struct NameLookup<'a> {
    connection: &'a Connection<'a>,
    account: AccountId,
    /// Read at the first mention.
    bot: Option<Option<Identity>>,
    known: HashMap<String, Option<String>>,
}

impl<'a> NameLookup<'a> {
    pub(crate) fn new(connection: &'a Connection<'a>, account: AccountId) -> Self {
        Self {
            connection,
            account,
            bot: None,
            known: HashMap::new(),
        }
    }

    /// The text with names in place of mention tokens; who is not known stands as an id.
    pub(crate) fn named(&mut self, text: &str) -> Result<String, StoreError> {
        let mut names = Vec::new();
        for id in mentioned_ids(text) {
            let name = self.name(&id)?;
            names.push(name.unwrap_or_else(|| id.trim_start_matches('@').to_owned()));
        }
        let mut names = names.iter().map(|name| one_line(name));
        Ok(replace_mentions(text, |_| {
            format!("@{}", names.next().unwrap_or_default())
        }))
    }

    /// What somebody who is mentioned is called.
    pub(crate) fn name(&mut self, id: &str) -> Result<Option<String>, StoreError> {
        if let Some(known) = self.known.get(id) {
            return Ok(known.clone());
        }
        let name = match self.bot_name(id)? {
            Some(name) => Some(name),
            None => self.person_name(id)?,
        };
        self.known.insert(id.to_owned(), name.clone());
        Ok(name)
    }

    /// Whether a mention is of the bot itself.
    pub(crate) fn is_bot(&mut self, id: &str) -> Result<bool, StoreError> {
        let bot = self.bot()?;
        Ok(bot.is_some_and(|bot| match id.strip_prefix('@') {
            Some(username) => bot.username.as_deref() == Some(username),
            None => bot.is_self(id),
        }))
    }

    fn bot_name(&mut self, id: &str) -> Result<Option<String>, StoreError> {
        if !self.is_bot(id)? {
            return Ok(None);
        }
        let bot = self.bot()?;
        Ok(bot.and_then(|bot| {
            let named = [Some(&bot.display_name), bot.username.as_ref()];
            named
                .into_iter()
                .flatten()
                .find(|name| !name.is_empty())
                .cloned()
        }))
    }

    fn bot(&mut self) -> Result<Option<&Identity>, StoreError> {
        if self.bot.is_none() {
            self.bot = Some(identity(self.connection, self.account)?);
        }
        Ok(self.bot.as_ref().and_then(Option::as_ref))
    }

    fn person_name(&self, id: &str) -> Result<Option<String>, StoreError> {
        let (sql, key) = match id.strip_prefix('@') {
            Some(username) => (NAME_BY_USERNAME_SQL, username),
            None => (NAME_BY_ID_SQL, id),
        };
        let name: Option<Option<String>> = self
            .connection
            .prepare_cached(sql)?
            .query_row(params![self.account, key], |row| row.get("name"))
            .optional()?;
        Ok(name.flatten())
    }
}

fn one_line(name: &str) -> String {
    let visible = name.chars().map(|c| if c.is_control() { ' ' } else { c });
    visible.take(NAME_MAX_CHARS).collect()
}

/// Who is mentioned, each once: by the triggers, then by the newest turns.
pub(crate) fn mentioned(read: &[HistoryTurn]) -> Vec<String> {
    let mut turns: Vec<&HistoryTurn> = read.iter().collect();
    turns.sort_by_key(|read| {
        let is_trigger = read.role == HistoryRole::Trigger;
        (Reverse(is_trigger), Reverse(read.turn.position))
    });
    let mut ids = Vec::new();
    let mut seen = HashSet::new();
    for id in turns
        .into_iter()
        .flat_map(|read| mentioned_ids(&read.turn.content))
    {
        if ids.len() == NAMES_MAX {
            break;
        }
        if seen.insert(id.clone()) {
            ids.push(id);
        }
    }
    ids
}
