//! People who wait to be let in to direct chats, and who were. Only their ids are kept: they are not served yet.

use std::collections::BTreeSet;

use crate::capability::MayAdmit;
use crate::contract::Pairing;
use crate::engine::sql::{Connection, Row, params};
use crate::new_id::random_code;
use crate::registry::{Fate, MergeRule, STATE, StoreTable, account, text};
use crate::{Reader, Store, StoreError};
use vocative_core::code::Code;
use vocative_core::ids::AccountId;
use vocative_core::pairing::{OPEN_CODES_MAX, PAIRED_MAX, PAIRING_CODE_LIFE_MS};
use vocative_core::words::Language;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account(
    "pairings",
    text(
        &[],
        &[],
        &["person", "chat", "code_digest", "approved_by", "language"],
    ),
    Fate {
        merge: MergeRule::Nothing("a direct chat is never merged"),
        ..STATE
    },
)];

/// Makes a code for a person who is not served; `None` if too many people wait.
pub(crate) fn offer_code_txn(
    connection: &Connection,
    account: AccountId,
    (person, chat): (&str, &str),
    language: Language,
    now_ms: i64,
) -> Result<Option<Code>, StoreError> {
    connection
        .prepare_cached(
            "DELETE FROM pairings WHERE account_id = ?1 AND approved_at_ms IS NULL
               AND (person = ?2 OR offered_at_ms NOT BETWEEN ?3 - ?4 + 1 AND ?3 + ?4)",
        )?
        .execute(params![account, person, now_ms, PAIRING_CODE_LIFE_MS])?;
    let waiting: u32 = connection
        .prepare_cached(
            "SELECT count(*) AS waiting FROM pairings WHERE account_id = ?1 AND approved_at_ms IS NULL",
        )?
        .query_row([account], |row| row.get("waiting"))?;
    if waiting >= OPEN_CODES_MAX {
        return Ok(None);
    }
    let code = random_code();
    // The person may have been let in just now.
    let offered = connection
        .prepare_cached(
            "INSERT INTO pairings (account_id, person, chat, code_digest, offered_at_ms, language)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (account_id, person) DO NOTHING",
        )?
        .execute(params![
            account,
            person,
            chat,
            code.digest(),
            now_ms,
            language.name()
        ])?;
    Ok((offered > 0).then_some(code))
}

impl Reader {
    /// Who waits for being let in with a code that is still good, and then who was let in, the newest of either first;
    /// at most [`PAIRED_MAX`].
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn pairings(&self, now_ms: i64) -> Result<Vec<Pairing>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT q.account_id, q.person, coalesce(p.display_name, p.username) AS name,
                        q.offered_at_ms, q.approved_at_ms, q.approved_by
                 FROM pairings q LEFT JOIN participants p
                      ON p.account_id = q.account_id AND p.kind = 'user' AND p.platform_id = q.person
                 WHERE q.approved_at_ms IS NOT NULL OR q.offered_at_ms BETWEEN ?1 - ?2 + 1 AND ?1 + ?2
                 ORDER BY q.approved_at_ms IS NOT NULL, q.offered_at_ms DESC, q.account_id, q.person LIMIT ?3",
            )?;
            let pairing = |row: &Row<'_>| {
                let approved_at_ms: Option<i64> = row.get("approved_at_ms")?;
                let by: Option<String> = row.get("approved_by")?;
                Ok(Pairing {
                    account: row.get("account_id")?,
                    person: row.get("person")?,
                    name: row.get("name")?,
                    offered_at_ms: row.get("offered_at_ms")?,
                    approved: approved_at_ms.map(|at_ms| (at_ms, by.unwrap_or_default())),
                })
            };
            let bounds = params![now_ms, PAIRING_CODE_LIFE_MS, PAIRED_MAX];
            let found = statement.query_map(bounds, pairing)?;
            Ok(found.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// The people of an account who were let in, by the platform's id.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn paired(&self, account: AccountId) -> Result<BTreeSet<String>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT person FROM pairings WHERE account_id = ?1 AND approved_at_ms IS NOT NULL ORDER BY person",
            )?;
            let people = statement.query_map([account], |row| row.get("person"))?;
            Ok(people.collect::<Result<_, _>>()?)
        })
        .await
    }
}

impl<C: MayAdmit> Store<C> {
    /// Stops letting a person in. Returns whether they were let in, or waited.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn revoke_pairing(
        &self,
        account: AccountId,
        person: String,
    ) -> Result<bool, StoreError> {
        self.write(move |connection| {
            let revoked = connection
                .prepare_cached("DELETE FROM pairings WHERE account_id = ?1 AND person = ?2")?
                .execute(params![account, person])?;
            Ok(revoked > 0)
        })
        .await
    }
}
