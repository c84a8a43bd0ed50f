//! Finds by name what an operator wants erased, and counts how much that is.

use crate::engine::sql::{Connection, params};

use super::ledger::{LedgerEntry, LedgerKind, OrderReach};
use super::orders::targets;
use crate::new_id::NewId as _;
use crate::rows::columns::count_from;
use crate::{Reader, StoreError};
use vocative_core::ids::ErasureId;

/// The most candidates that an ambiguous name lists.
const CANDIDATES_MAX: i64 = 8;

/// What is to be erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErasureTarget {
    /// Everything of a person: by platform id, `@username` or display name, with `channel/` before it
    /// where several channels know one.
    Person(String),
    /// A conversation with its threads, named as [`Reader::find_conversation`](crate::Reader::find_conversation) takes
    /// it.
    Conversation(String),
}

/// What an erasure would remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErasurePlan {
    /// Who or what it is, for people.
    pub label: String,
    /// The identities that go into the ledger.
    pub entries: Vec<LedgerEntry>,
    /// Turns that are blanked.
    pub turns: u64,
    /// Conversations they are in.
    pub conversations: u64,
    /// Runs they triggered, whose answers are blanked.
    pub runs: u64,
}

/// A person as found.
struct PersonRow {
    row: i64,
    channel: String,
    platform: String,
    account: String,
    platform_id: String,
    display_name: Option<String>,
    username: Option<String>,
}

impl PersonRow {
    fn label(&self) -> String {
        let name = self.display_name.as_deref().unwrap_or("no name");
        let username = self
            .username
            .as_ref()
            .map_or_else(String::new, |username| format!(", @{username}"));
        format!("{}/{} ({name}{username})", self.channel, self.platform_id)
    }
}

impl Reader {
    /// What erasing would remove; changes nothing.
    ///
    /// # Errors
    /// `NotFound` if nothing has that name, `Ambiguous` if several things have: it names them.
    pub async fn plan_erasure(
        &self,
        target: ErasureTarget,
        now_ms: i64,
    ) -> Result<ErasurePlan, StoreError> {
        match target {
            ErasureTarget::Person(name) => {
                self.read(move |connection| plan_person(connection, &name, now_ms))
                    .await
            }
            ErasureTarget::Conversation(name) => {
                let found = self.find_conversation(&name).await?;
                self.read(move |connection| {
                    let entries = entries_of_conversation(connection, &found, now_ms)?;
                    let label = format!("the conversation {} ({})", found.title, found.id);
                    plan(connection, label, entries)
                })
                .await
            }
        }
    }
}

fn plan_person(
    connection: &Connection,
    name: &str,
    now_ms: i64,
) -> Result<ErasurePlan, StoreError> {
    let found = persons(connection, name.trim())?;
    let Some(first) = found.first() else {
        return Err(StoreError::NotFound {
            what: format!(
                "a person {name:?} (give the platform's user id, @username or the full name, with CHANNEL/ before it)"
            ),
        });
    };
    if found.len() > 1 {
        return Err(StoreError::Ambiguous {
            what: format!("a person {name:?}"),
            meanings: found.iter().map(PersonRow::label).collect(),
            advice: "name one as CHANNEL/ID",
        });
    }
    let entry = |person: &PersonRow| LedgerEntry {
        id: ErasureId::generate(),
        kind: LedgerKind::Person,
        reach: OrderReach::Everywhere,
        platform: person.platform.clone(),
        account: person.account.clone(),
        platform_id: person.platform_id.clone(),
        chat: String::new(),
        erased_at_ms: now_ms,
    };
    let mut label = first.label();
    let mut entries = vec![entry(first)];
    for twin in joined(connection, first.row)? {
        label = format!("{label} and {}", twin.label());
        entries.push(entry(&twin));
    }
    plan(connection, label, entries)
}

macro_rules! select_persons {
    ($tail:literal) => {
        concat!(
            "SELECT p.id,
                    coalesce((SELECT n.name FROM channels n WHERE n.account_id = a.id
                              ORDER BY n.bound_at_ms DESC LIMIT 1), a.name) AS channel,
                    a.platform, a.platform_id AS account, p.platform_id, p.display_name, p.username
             FROM participants p JOIN accounts a ON a.id = p.account_id
             WHERE p.kind = 'user' AND ",
            $tail
        )
    };
}

/// The persons whose id is exactly that name; if there are none, those with that username or display name.
fn persons(connection: &Connection, name: &str) -> Result<Vec<PersonRow>, StoreError> {
    let whole = persons_named(connection, None, name)?;
    if !whole.is_empty() {
        return Ok(whole);
    }
    match name.split_once('/') {
        Some((channel, name)) => persons_named(connection, Some(channel), name),
        None => Ok(Vec::new()),
    }
}

fn persons_named(
    connection: &Connection,
    channel: Option<&str>,
    name: &str,
) -> Result<Vec<PersonRow>, StoreError> {
    let by_id = select_persons!(
        "p.platform_id = ?1
         AND (?2 IS NULL OR a.id = (SELECT account_id FROM channels WHERE name = ?2)) LIMIT ?3"
    );
    let by_name = select_persons!(
        "(p.username = ltrim(?1, '@') COLLATE NOCASE OR p.display_name = ?1 COLLATE NOCASE)
         AND (?2 IS NULL OR a.id = (SELECT account_id FROM channels WHERE name = ?2)) LIMIT ?3"
    );
    for sql in [by_id, by_name] {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![name, channel, CANDIDATES_MAX], person_from_row)?;
        let found: Vec<PersonRow> = rows.collect::<crate::engine::sql::Result<_>>()?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// The other participants that are known to be the same person.
fn joined(connection: &Connection, row: i64) -> Result<Vec<PersonRow>, StoreError> {
    let mut statement = connection.prepare_cached(select_persons!(
        "p.id <> ?1 AND p.person_id = (SELECT person_id FROM participants WHERE id = ?1)"
    ))?;
    let rows = statement.query_map([row], person_from_row)?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}

fn person_from_row(row: &crate::engine::sql::Row<'_>) -> crate::engine::sql::Result<PersonRow> {
    Ok(PersonRow {
        row: row.get("id")?,
        channel: row.get("channel")?,
        platform: row.get("platform")?,
        account: row.get("account")?,
        platform_id: row.get("platform_id")?,
        display_name: row.get("display_name")?,
        username: row.get("username")?,
    })
}

/// One entry for each id that the chat has had: a copy from before a change of ids knows only the old id.
fn entries_of_conversation(
    connection: &Connection,
    conversation: &vocative_core::place::Conversation,
    now_ms: i64,
) -> Result<Vec<LedgerEntry>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT a.platform, a.platform_id AS account, i.platform_id AS chat
         FROM chat_ids i JOIN accounts a ON a.id = i.account_id
         WHERE i.chat_id = ?1 ORDER BY i.platform_id = ?2 DESC, i.platform_id",
    )?;
    let key = conversation.key.thread_or_topic.clone().unwrap_or_default();
    let rows = statement.query_map(
        params![conversation.key.chat, conversation.platform_chat],
        |row| {
            Ok(LedgerEntry {
                id: ErasureId::generate(),
                kind: LedgerKind::Conversation,
                reach: OrderReach::Everywhere,
                platform: row.get("platform")?,
                account: row.get("account")?,
                platform_id: key.clone(),
                chat: row.get("chat")?,
                erased_at_ms: now_ms,
            })
        },
    )?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}

fn plan(
    connection: &Connection,
    label: String,
    entries: Vec<LedgerEntry>,
) -> Result<ErasurePlan, StoreError> {
    let mut found = super::orders::Targets::default();
    for entry in &entries {
        found.join(targets(connection, entry)?);
    }
    let (people, rooms) = found.json();
    let (turns, conversations, runs) = connection
        .prepare_cached(
            "WITH theirs (seq, conversation_id) AS (
                 SELECT seq, conversation_id FROM turns
                 WHERE participant_id IN (SELECT value FROM json_each(?1))
                   AND visibility <> 'hidden'
                 UNION
                 SELECT seq, conversation_id FROM turns
                 WHERE conversation_id IN (SELECT value FROM json_each(?2))
                   AND visibility <> 'hidden')
             SELECT count(*) AS turns, count(DISTINCT conversation_id) AS conversations,
                    (SELECT count(DISTINCT g.run_id) FROM theirs x
                     JOIN run_triggers g ON g.turn_seq = x.seq) AS runs
             FROM theirs",
        )?
        .query_row((people, rooms), |row| {
            Ok((
                count_from(row.get("turns")?),
                count_from(row.get("conversations")?),
                count_from(row.get("runs")?),
            ))
        })?;
    Ok(ErasurePlan {
        label,
        entries,
        turns,
        conversations,
        runs,
    })
}
