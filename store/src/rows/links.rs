//! Accounts of one person, and the codes with which they are joined.

use crate::StoreError;
use crate::engine::sql::{Connection, OptionalExtension, Row, params};
use crate::new_id::random_code;
use crate::registry::{
    ErasureRule, Fate, MergeRule, OTHER_SOURCE, STATE, StoreTable, account, nobody, text,
};
use vocative_core::code::{Code, is_alive};
use vocative_core::ids::{AccountId, ParticipantId};
use vocative_core::linking::{
    LINK_CODE_LIFE_MS, LINKED_MAX, WRONG_CODES_MAX, WRONG_CODES_WITHIN_MS,
};
use vocative_core::prompting::clean_name;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "link_codes",
        text(&[], &[], &["code_digest", "chat"]),
        Fate {
            person: ErasureRule::Deleted,
            merge: MergeRule::Nothing("a direct chat is never merged"),
            ..STATE
        },
    )
    .goes_with_person("participant_id"),
    nobody(
        "persons",
        "it joins people of several accounts",
        text(&[], &["name"], &[]),
        Fate {
            person: ErasureRule::Deleted,
            chat: ErasureRule::Nothing("people may be elsewhere, too"),
            message: ErasureRule::Nothing(OTHER_SOURCE),
            ..STATE
        },
    ),
];

/// The account that asked for a code.
pub(crate) struct CodeOwner {
    pub(crate) participant: ParticipantId,
    pub(crate) account: AccountId,
    /// The platform's id of the direct chat in which the code was told.
    pub(crate) chat: String,
    /// The platform's id of the person, if they alone saw it there.
    pub(crate) person: Option<String>,
}

/// What became of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    Now,
    Before,
    /// As many accounts as the limit allows are joined to this person.
    Full,
}

/// Makes a code for a person, in the place of an earlier one.
pub(crate) fn make_link_code_txn(
    connection: &Connection,
    participant: ParticipantId,
    (chat, is_private): (&str, bool),
    now_ms: i64,
) -> Result<Code, StoreError> {
    let code = random_code();
    connection
        .prepare_cached(
            "INSERT INTO link_codes (participant_id, code_digest, chat, is_private, made_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (participant_id) DO UPDATE SET code_digest = excluded.code_digest, chat = excluded.chat,
                 is_private = excluded.is_private, made_at_ms = excluded.made_at_ms",
        )?
        .execute(params![participant, code.digest(), chat, is_private, now_ms])?;
    Ok(code)
}

/// Who asked for this code, if it is still valid.
pub(crate) fn owner_of_code(
    connection: &Connection,
    code: &Code,
    now_ms: i64,
) -> Result<Option<CodeOwner>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT c.participant_id, p.account_id, coalesce(c.chat, '') AS chat, c.made_at_ms,
                    iif(c.is_private, p.platform_id, NULL) AS person
             FROM link_codes c JOIN participants p ON p.id = c.participant_id WHERE c.code_digest = ?1",
        )?
        .query_row([code.digest()], |row| {
            let owner = CodeOwner {
                participant: row.get("participant_id")?,
                account: row.get("account_id")?,
                chat: row.get("chat")?,
                person: row.get("person")?,
            };
            Ok((owner, row.get("made_at_ms")?))
        })
        .optional()?;
    let is_good = |made_at_ms| is_alive(made_at_ms, now_ms, LINK_CODE_LIFE_MS);
    Ok(found.and_then(|(owner, made_at_ms)| is_good(made_at_ms).then_some(owner)))
}

/// Uses a code up: each is valid once.
pub(crate) fn use_up_code_txn(
    connection: &Connection,
    owner: ParticipantId,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE link_codes SET code_digest = NULL, chat = NULL WHERE participant_id = ?1",
        )?
        .execute([owner])?;
    Ok(())
}

/// Whether a person may try another code.
pub(crate) fn may_try(
    connection: &Connection,
    participant: ParticipantId,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let wrong: Option<(u32, i64)> = connection
        .prepare_cached(
            "SELECT wrong_count, wrong_since_ms FROM link_codes WHERE participant_id = ?1",
        )?
        .query_row([participant], |row| {
            Ok((row.get("wrong_count")?, row.get("wrong_since_ms")?))
        })
        .optional()?;
    Ok(wrong.is_none_or(|(count, since_ms)| {
        count < WRONG_CODES_MAX || !is_alive(since_ms, now_ms, WRONG_CODES_WITHIN_MS)
    }))
}

/// Counts a wrong code; after an hour the count starts over.
pub(crate) fn note_wrong_code_txn(
    connection: &Connection,
    participant: ParticipantId,
    now_ms: i64,
) -> Result<(), StoreError> {
    let since_ms = connection
        .prepare_cached("SELECT wrong_since_ms FROM link_codes WHERE participant_id = ?1")?
        .query_row([participant], |row| row.get("wrong_since_ms"))
        .optional()?;
    let counts_on = since_ms.is_some_and(|since| is_alive(since, now_ms, WRONG_CODES_WITHIN_MS));
    connection
        .prepare_cached(
            "INSERT INTO link_codes (participant_id, wrong_count, wrong_since_ms) VALUES (?1, 1, ?2)
             ON CONFLICT (participant_id) DO UPDATE SET
                 wrong_count = iif(?3, wrong_count, 0) + 1, wrong_since_ms = iif(?3, wrong_since_ms, ?2)",
        )?
        .execute(params![participant, now_ms, counts_on])?;
    Ok(())
}

/// Makes two accounts one person's, with all that are joined to either.
pub(crate) fn join_txn(
    connection: &Connection,
    one: ParticipantId,
    other: ParticipantId,
) -> Result<Joined, StoreError> {
    let (of_one, of_other) = (person_of(connection, one)?, person_of(connection, other)?);
    if of_one.is_some() && of_one == of_other {
        return Ok(Joined::Before);
    }
    let accounts: u32 = connection
        .prepare_cached(
            "SELECT count(*) AS accounts FROM participants WHERE id IN (?1, ?2) OR person_id IN (?3, ?4)",
        )?
        .query_row(params![one, other, of_one, of_other], |row| row.get("accounts"))?;
    if accounts > LINKED_MAX {
        return Ok(Joined::Full);
    }
    let person = match of_one.or(of_other) {
        Some(person) => person,
        None => {
            connection
                .prepare_cached("INSERT INTO persons (name) VALUES (NULL)")?
                .execute([])?;
            connection.last_insert_rowid()
        }
    };
    connection
        .prepare_cached(
            "UPDATE participants SET person_id = ?1 WHERE id IN (?2, ?3) OR person_id IN (?4, ?5)",
        )?
        .execute(params![person, one, other, of_one, of_other])?;
    remove_unused_txn(connection, of_other.filter(|other| *other != person))?;
    Ok(Joined::Now)
}

/// Unlinks an account from the other accounts of its person. Returns whether it was joined to any.
pub(crate) fn leave_txn(
    connection: &Connection,
    participant: ParticipantId,
) -> Result<bool, StoreError> {
    let Some(person) = person_of(connection, participant)? else {
        return Ok(false);
    };
    // An account that is left alone is joined to none.
    connection
        .prepare_cached(
            "UPDATE participants SET person_id = NULL WHERE id = ?1 OR (person_id = ?2
                 AND (SELECT count(*) FROM participants o WHERE o.person_id = ?2) <= 2)",
        )?
        .execute(params![participant, person])?;
    remove_unused_txn(connection, Some(person))?;
    Ok(true)
}

fn remove_unused_txn(connection: &Connection, person: Option<i64>) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "DELETE FROM persons WHERE id = ?1
               AND NOT EXISTS (SELECT 1 FROM participants p WHERE p.person_id = persons.id)",
        )?
        .execute([person])?;
    Ok(())
}

fn person_of(
    connection: &Connection,
    participant: ParticipantId,
) -> Result<Option<i64>, StoreError> {
    Ok(connection
        .prepare_cached("SELECT person_id FROM participants WHERE id = ?1")?
        .query_row([participant], |row| row.get("person_id"))?)
}

macro_rules! select_labels {
    ($which:literal) => {
        concat!(
            "SELECT coalesce((SELECT n.name FROM channels n WHERE n.account_id = a.id
                              ORDER BY n.bound_at_ms DESC LIMIT 1), a.name) AS channel,
                    coalesce(p.display_name, '@' || p.username, p.platform_id) AS name
             FROM participants p JOIN accounts a ON a.id = p.account_id WHERE ",
            $which,
            " ORDER BY p.id"
        )
    };
}

/// How people know an account: its channel, and the name that is seen there.
pub(crate) fn account_label(
    connection: &Connection,
    participant: ParticipantId,
) -> Result<String, StoreError> {
    let mut labels = labels(connection, select_labels!("p.id = ?1"), participant)?;
    Ok(labels.pop().unwrap_or_default())
}

/// The labels of the accounts that are joined to one.
pub(crate) fn joined_labels(
    connection: &Connection,
    participant: ParticipantId,
) -> Result<Vec<String>, StoreError> {
    let sql = select_labels!(
        "p.id <> ?1 AND p.person_id = (SELECT person_id FROM participants WHERE id = ?1)"
    );
    labels(connection, sql, participant)
}

fn labels(
    connection: &Connection,
    sql: &'static str,
    participant: ParticipantId,
) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let label = |row: &Row<'_>| {
        let (channel, name): (String, String) = (row.get("channel")?, row.get("name")?);
        Ok(format!("{channel}/{}", clean_name(&name)))
    };
    let found = statement.query_map([participant], label)?;
    Ok(found.collect::<Result<_, _>>()?)
}
