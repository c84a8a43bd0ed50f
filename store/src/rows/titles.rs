//! Titles of their own that conversations have, and whose they are.
//!
//! `own_title_from` stays when a title goes: where it says something, no model makes a title there any more.

use crate::StoreError;
use crate::engine::sql::{Connection, params};
use vocative_core::ids::ParticipantId;

/// A conversation's own title, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnTitle {
    /// The title.
    pub(crate) text: String,
    /// Whether an operator gave it.
    pub(crate) is_operators: bool,
}

/// The own title of a conversation.
pub(crate) fn own_title(connection: &Connection, row: i64) -> Result<Option<OwnTitle>, StoreError> {
    let (text, from): (Option<String>, Option<String>) = connection
        .prepare_cached(
            "SELECT nullif(own_title, '') AS own_title, own_title_from FROM conversations WHERE id = ?1",
        )?
        .query_row([row], |row| Ok((row.get("own_title")?, row.get("own_title_from")?)))?;
    Ok(text.map(|text| OwnTitle {
        text,
        is_operators: from.is_none(),
    }))
}

/// Gives a conversation a title of its own, by the word of somebody who is there.
pub(crate) fn give_title_txn(
    connection: &Connection,
    row: i64,
    title: &str,
    person: ParticipantId,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE conversations SET own_title = ?2, own_title_from = 'person', own_title_participant_id = ?3
             WHERE id = ?1",
        )?
        .execute(params![row, title, person])?;
    Ok(())
}

/// Takes the title of its own from a conversation, by the word of somebody who is there.
pub(crate) fn take_title_txn(connection: &Connection, row: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE conversations SET own_title = NULL, own_title_from = 'person', own_title_participant_id = NULL
             WHERE id = ?1",
        )?
        .execute([row])?;
    Ok(())
}

/// Takes the titles away that people gave. `people` = rows of participants, as JSON.
pub(crate) fn forget_titles_of_people_txn(
    connection: &Connection,
    people: &str,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE conversations SET own_title = NULL, own_title_participant_id = NULL
             WHERE own_title_participant_id IN (SELECT value FROM json_each(?1))",
        )?
        .execute([people])?;
    Ok(())
}

/// Takes the titles away that a model made where a turn is, or begins a thread: it may have read it.
pub(crate) fn forget_titles_of_turn_txn(
    connection: &Connection,
    seq: i64,
) -> Result<(), StoreError> {
    for sql in [
        "UPDATE conversations SET own_title = NULL
         WHERE id = (SELECT conversation_id FROM turns WHERE seq = ?1)
           AND own_title_from = 'model' AND own_title IS NOT NULL",
        "UPDATE conversations SET own_title = NULL
         WHERE root_turn_seq = ?1 AND own_title_from = 'model' AND own_title IS NOT NULL",
    ] {
        connection.prepare_cached(sql)?.execute([seq])?;
    }
    Ok(())
}
