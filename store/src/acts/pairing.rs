//! Admits people to direct chats by the code that an operator was told, and tells them.

use crate::acts::notices::tell_chat_txn;
use crate::capability::MayAdmit;
use crate::contract::{LetIn, Pairing, SaidCode};
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::places::ensure_chat_txn;
use crate::{Store, StoreError};
use vocative_core::code::is_alive;
use vocative_core::pairing::{PAIRED_MAX, PAIRING_CODE_LIFE_MS};
use vocative_core::words::Language;

impl<C: MayAdmit> Store<C> {
    /// Admits the person of a code, and tells them.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn approve_pairing(&self, said: SaidCode) -> Result<LetIn, StoreError> {
        self.write(move |connection| approve_txn(connection, &said))
            .await
    }
}

/// A person who waits to be admitted.
struct WaitingPerson {
    person: String,
    chat: String,
    language: String,
    offered_at_ms: i64,
}

fn approve_txn(connection: &Connection, said: &SaidCode) -> Result<LetIn, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT person, chat, language, offered_at_ms FROM pairings
             WHERE account_id = ?1 AND code_digest = ?2",
        )?
        .query_row(params![said.account, said.code.digest()], |row| {
            Ok(WaitingPerson {
                person: row.get("person")?,
                chat: row.get("chat")?,
                language: row.get("language")?,
                offered_at_ms: row.get("offered_at_ms")?,
            })
        })
        .optional()?;
    let is_good =
        |it: &WaitingPerson| is_alive(it.offered_at_ms, said.now_ms, PAIRING_CODE_LIFE_MS);
    let Some(waiting) = found.filter(is_good) else {
        return Ok(LetIn::NoSuchCode);
    };
    let let_in: u32 = connection
        .prepare_cached(
            "SELECT count(*) AS let_in FROM pairings WHERE account_id = ?1 AND approved_at_ms IS NOT NULL",
        )?
        .query_row([said.account], |row| row.get("let_in"))?;
    if let_in >= PAIRED_MAX {
        return Ok(LetIn::Full);
    }
    connection
        .prepare_cached(
            "UPDATE pairings SET code_digest = NULL, approved_at_ms = ?3, approved_by = ?4
             WHERE account_id = ?1 AND person = ?2",
        )?
        .execute(params![said.account, waiting.person, said.now_ms, said.by])?;
    let chat = ensure_chat_txn(connection, said.account, &waiting.chat)?;
    let text = Language::from_name(&waiting.language).pairing_done();
    let place = (said.account, chat.id);
    tell_chat_txn(connection, place, (&waiting.chat, None), &text, said.now_ms)?;
    Ok(LetIn::Now(Pairing {
        account: said.account,
        person: waiting.person,
        name: None,
        offered_at_ms: waiting.offered_at_ms,
        approved: Some((said.now_ms, said.by.clone())),
    }))
}
