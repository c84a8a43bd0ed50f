//! Participants: one row per account, kind and platform id; names are learnt as they are heard.

use crate::engine::sql::{Connection, OptionalExtension, params};

use crate::StoreError;
use crate::registry::{
    ErasureRule, ExpiryRule, ExportRule, Fate, MergeRule, NO_CHAT, OF_RUN, OTHER_SOURCE, STATE,
    StoreTable, account, text,
};
use vocative_core::ids::{AccountId, ParticipantId};
use vocative_core::turn::ParticipantKind;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "former_names",
        text(&[], &["display_name", "username"], &[]),
        Fate {
            chat: ErasureRule::Nothing("it names people, who may be elsewhere, too"),
            message: ErasureRule::Nothing(OTHER_SOURCE),
            merge: MergeRule::Nothing(NO_CHAT),
            ..OF_RUN
        },
    )
    .goes_with_person("participant_id"),
    account(
        "participants",
        text(&[], &["display_name", "username"], &["kind", "platform_id"]),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Nothing("people may be elsewhere, too"),
            message: ErasureRule::Nothing(OTHER_SOURCE),
            expiry: ExpiryRule::Nothing("turns that stay bear their names"),
            export: ExportRule::Exported,
            ..STATE
        },
    ),
];

/// The platform id of the participant that speaks for the daemon.
pub(crate) const DAEMON: &str = "vocative";

/// What somebody is called, by their id on the platform.
pub(crate) const NAME_BY_ID_SQL: &str =
    "SELECT coalesce(display_name, username) AS name FROM participants
     WHERE account_id = ?1 AND kind = 'user' AND platform_id = ?2";
/// What a person is called, by their name for mentions.
pub(crate) const NAME_BY_USERNAME_SQL: &str =
    "SELECT coalesce(display_name, username) AS name FROM participants
     WHERE account_id = ?1 AND username = ?2 AND username IS NOT NULL AND kind = 'user'
     LIMIT 1";

/// How often the time at which a participant was last seen is noted anew, in milliseconds: it only orders who is
/// looked up first.
const SEEN_EVERY_MS: i64 = 60_000;

/// A sender as a message names them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeardSender<'a> {
    pub(crate) kind: ParticipantKind,
    pub(crate) platform_id: &'a str,
    pub(crate) display_name: Option<&'a str>,
    pub(crate) username: Option<&'a str>,
    /// Whether it is another bot; `None` where that is not told.
    pub(crate) is_bot: Option<bool>,
}

/// Finds or makes a participant; names that are given replace the stored ones.
pub(crate) fn upsert_participant_txn(
    connection: &Connection,
    account: AccountId,
    heard: HeardSender<'_>,
    seen_ms: i64,
) -> Result<ParticipantId, StoreError> {
    if let Some(known) = find_unchanged(connection, account, heard, seen_ms)? {
        return Ok(known);
    }
    let before = names_of(connection, account, heard.platform_id)?;
    let id = connection
        .prepare_cached(
            "INSERT INTO participants
                 (account_id, kind, platform_id, display_name, username, last_seen_ms, is_bot)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, coalesce(?7, 0))
             ON CONFLICT (account_id, kind, platform_id) DO UPDATE
             SET display_name = coalesce(excluded.display_name, display_name),
                 username = coalesce(excluded.username, username),
                 is_bot = coalesce(?7, is_bot),
                 last_seen_ms = max(excluded.last_seen_ms, last_seen_ms)
             RETURNING id",
        )?
        .query_row(
            params![
                account,
                heard.kind,
                heard.platform_id,
                heard.display_name,
                heard.username,
                seen_ms,
                heard.is_bot
            ],
            |row| row.get("id"),
        )?;
    keep_former_names_txn(connection, &before)?;
    Ok(id)
}

/// The names of a participant before they may change.
pub(crate) struct NamesBefore {
    row: i64,
    display_name: Option<String>,
    username: Option<String>,
}

/// The names of whoever has a platform id.
pub(crate) fn names_of(
    connection: &Connection,
    account: AccountId,
    platform_id: &str,
) -> Result<Vec<NamesBefore>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, display_name, username FROM participants
         WHERE account_id = ?1 AND kind IN ('user', 'agent', 'system') AND platform_id = ?2",
    )?;
    let names = statement.query_map(params![account, platform_id], |row| {
        Ok(NamesBefore {
            row: row.get("id")?,
            display_name: row.get("display_name")?,
            username: row.get("username")?,
        })
    })?;
    Ok(names.collect::<crate::engine::sql::Result<_>>()?)
}

/// Keeps names that changed, for the prompts that showed them. Of several names between two prompts the first is
/// the one that the earlier prompt showed.
pub(crate) fn keep_former_names_txn(
    connection: &Connection,
    before: &[NamesBefore],
) -> Result<(), StoreError> {
    for names in before {
        connection
            .prepare_cached(
                "INSERT OR IGNORE INTO former_names (participant_id, until_prompt, display_name, username)
                 SELECT id, (SELECT max(id) FROM sent_prompts), ?2, ?3 FROM participants
                 WHERE id = ?1 AND (display_name IS NOT ?2 OR username IS NOT ?3)
                   AND EXISTS (SELECT 1 FROM sent_prompts)",
            )?
            .execute(params![names.row, names.display_name, names.username])?;
    }
    Ok(())
}

/// Finds a participant of whom a message says nothing new: most messages, which then write nothing here.
fn find_unchanged(
    connection: &Connection,
    account: AccountId,
    heard: HeardSender<'_>,
    seen_ms: i64,
) -> Result<Option<ParticipantId>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT id FROM participants
             WHERE account_id = ?1 AND kind = ?2 AND platform_id = ?3
               AND (?4 IS NULL OR display_name IS ?4) AND (?5 IS NULL OR username IS ?5)
               AND last_seen_ms > ?6 - ?7 AND (?8 IS NULL OR is_bot = ?8)",
        )?
        .query_row(
            params![
                account,
                heard.kind,
                heard.platform_id,
                heard.display_name,
                heard.username,
                seen_ms,
                SEEN_EVERY_MS,
                heard.is_bot
            ],
            |row| row.get("id"),
        )
        .optional()?;
    Ok(found)
}
