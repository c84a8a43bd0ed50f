//! Who is meant by a name, and who is no person.

use std::collections::HashSet;

use super::ForgivingSearch;
use crate::StoreError;
use crate::contract::SearchQuery;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::columns::{is_person, limit_of};
use crate::views::search::SearchRange;
use crate::views::search::candidates::Named;
use vocative_core::ids::{AccountId, ParticipantId};
use vocative_core::search::query::{Query, WordWish};
use vocative_core::search::text::words;

/// The most people of an account whose names are compared.
const PEOPLE_MAX: usize = 5_000;

const PEOPLE_SQL: &str = "SELECT id, platform_id, display_name, username FROM participants
     WHERE account_id = ?1 LIMIT ?2";
const NOT_PEOPLE_SQL: &str = concat!(
    "SELECT p.id FROM participants p INDEXED BY participants_not_people
     WHERE p.account_id = ?1 AND (p.is_bot OR p.kind <> 'user') AND NOT ",
    is_person!("p")
);
const IS_HERE_SQL: &str = "SELECT 1 AS it FROM turns INDEXED BY turns_by_participant
     WHERE participant_id = ?1 AND conversation_id = ?2 LIMIT 1";

/// A person of an account, by name.
pub(super) struct NamedPerson {
    pub(super) id: ParticipantId,
    pub(super) mention: String,
    pub(super) username: Option<String>,
    pub(super) names: HashSet<String>,
}

impl ForgivingSearch<'_> {
    /// The people whose name a wished word is.
    pub(super) fn named(&self, wish: &WordWish) -> Named {
        let of_name = self.people.iter().filter(|person| {
            person.names.contains(&wish.plain) || person.username.as_deref() == Some(&*wish.plain)
        });
        let mut named = Named::default();
        for person in of_name {
            named.participants.push(person.id);
            named.mentions.push(person.mention.clone());
            named
                .mentions
                .extend(person.username.iter().map(|it| format!("@{it}")));
        }
        named
    }
}

/// Agents, other bots and the platform.
pub(super) fn not_people(
    connection: &Connection,
    account: AccountId,
) -> Result<HashSet<ParticipantId>, StoreError> {
    let mut statement = connection.prepare_cached(NOT_PEOPLE_SQL)?;
    let ids = statement.query_map([account], |row| row.get("id"))?;
    Ok(ids.collect::<crate::engine::sql::Result<_>>()?)
}

pub(super) fn people(
    connection: &Connection,
    range: &SearchRange,
    query: &SearchQuery,
    wordings: &[Query],
) -> Result<Vec<NamedPerson>, StoreError> {
    let asked = wordings
        .iter()
        .flat_map(|it| &it.wished)
        .map(|wish| wish.plain.clone());
    let from = words(query.filter.from.as_deref().unwrap_or_default());
    let asked: HashSet<String> = asked
        .chain(from.into_iter().map(|word| word.plain))
        .collect();
    let mut statement = connection.prepare_cached(PEOPLE_SQL)?;
    let mut rows = statement.query(params![range.account, limit_of(PEOPLE_MAX)])?;
    let mut people = Vec::new();
    while let Some(row) = rows.next()? {
        let shown: Option<String> = row.get("display_name")?;
        let mention: String = row.get("platform_id")?;
        let username: Option<String> = row.get("username")?;
        let username = username.map(|it| it.to_lowercase());
        let names: HashSet<String> = words(shown.as_deref().unwrap_or_default())
            .into_iter()
            .map(|it| it.plain)
            .collect();
        let is_asked = |name: &String| asked.contains(name);
        let by_id = query.filter.from.as_deref() == Some(mention.as_str());
        if by_id || names.iter().any(is_asked) || username.as_ref().is_some_and(is_asked) {
            people.push(NamedPerson {
                id: row.get("id")?,
                mention,
                username,
                names,
            });
        }
    }
    Ok(people)
}

/// Those of a name who have said something in what is searched: a shown name or a part of it, a username, or the
/// platform's id.
pub(super) fn speakers_named(
    connection: &Connection,
    range: &SearchRange,
    people: &[NamedPerson],
    from: &str,
) -> Result<Vec<ParticipantId>, StoreError> {
    let from = from.trim().trim_start_matches('@');
    let asked: Vec<String> = words(from).into_iter().map(|word| word.plain).collect();
    let lower = from.to_lowercase();
    let mut speakers = Vec::new();
    for person in people {
        let has_name = !asked.is_empty() && asked.iter().all(|word| person.names.contains(word));
        let is_meant = has_name
            || person.mention == from
            || person.username.as_deref() == Some(lower.as_str());
        if !is_meant {
            continue;
        }
        for row in &range.rows {
            let here: Option<i64> = connection
                .prepare_cached(IS_HERE_SQL)?
                .query_row((person.id, row), |row| row.get("it"))
                .optional()?;
            if here.is_some() {
                speakers.push(person.id);
                break;
            }
        }
    }
    Ok(speakers)
}

/// The wished words that are a speaker's name, one bit each.
pub(super) fn said_by(named: &[Named], participant: ParticipantId) -> u64 {
    let is_one = |named: &Named| named.participants.contains(&participant);
    let bits = named.iter().enumerate().filter(|(_, named)| is_one(named));
    bits.map(|(n, _)| 1_u64 << n.min(63)).fold(0, |a, b| a | b)
}
