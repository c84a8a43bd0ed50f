//! The ledger: the ids of the identities that were erased or deleted.
//!
//! It is kept twice: as rows, and as lines of a file beside the database. Whichever of the two is
//! older (a backup that was put back, a file that was lost) is brought up to date at the next open.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use crate::engine::lock::make_private;
use crate::engine::sql::{Connection, params};
use serde::{Deserialize, Serialize};

use super::orders::add_order_txn;
use crate::StoreError;
use crate::new_id::NewId as _;
use vocative_core::counted::counted;
use vocative_core::ids::{AccountId, ErasureId};

/// The ledger file's name, in the folder of the database.
const LEDGER_NAME: &str = "erased.jsonl";
/// The version of a line.
const LINE_VERSION: u32 = 1;

/// What kind of identity was erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LedgerKind {
    /// A person of an account.
    Person,
    /// A conversation.
    Conversation,
    /// A chat with all its threads and topics, even those that are not known yet.
    Chat,
    /// One message, deleted by its platform.
    Message,
}

impl LedgerKind {
    pub(super) const ALL: [Self; 4] = [Self::Person, Self::Conversation, Self::Chat, Self::Message];

    /// The stored name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Conversation => "conversation",
            Self::Chat => "chat",
            Self::Message => "message",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// How far an order goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OrderReach {
    /// Everything that repeats what is erased, in every account, and old copies of the database: an operator
    /// ordered it.
    #[default]
    Everywhere,
    /// The turns themselves and what was certainly made from them, in their account: a person asked for it.
    Own,
}

impl OrderReach {
    /// The stored name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Everywhere => "everywhere",
            Self::Own => "own",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::Everywhere, Self::Own]
            .into_iter()
            .find(|reach| reach.name() == name)
    }
}

/// One erased identity: ids only, so that it may be kept for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The order's id, the same in every copy of the ledger.
    pub id: ErasureId,
    /// What kind of identity it is.
    pub kind: LedgerKind,
    /// How far the order goes.
    pub reach: OrderReach,
    /// The platform.
    pub platform: String,
    /// The platform's account id.
    pub account: String,
    /// The user id; the thread or topic (empty = the chat's own conversation, or a whole chat); the
    /// message id.
    pub platform_id: String,
    /// The platform's chat id; empty for a person.
    pub chat: String,
    /// The order covers only messages sent up to this time, in milliseconds since the Unix epoch.
    pub erased_at_ms: i64,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct LedgerLine {
    v: u32,
    id: String,
    platform: String,
    account: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reach: Option<String>,
    platform_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    chat: String,
    erased_at_ms: i64,
}

impl LedgerLine {
    fn of(entry: &LedgerEntry) -> Self {
        Self {
            v: LINE_VERSION,
            id: entry.id.to_string(),
            platform: entry.platform.clone(),
            account: entry.account.clone(),
            kind: entry.kind.name().to_owned(),
            reach: (entry.reach != OrderReach::Everywhere).then(|| entry.reach.name().to_owned()),
            platform_id: entry.platform_id.clone(),
            chat: entry.chat.clone(),
            erased_at_ms: entry.erased_at_ms,
        }
    }

    fn entry(self) -> Option<LedgerEntry> {
        Some(LedgerEntry {
            id: self.id.parse().ok()?,
            kind: LedgerKind::from_name(&self.kind)?,
            reach: match &self.reach {
                None => OrderReach::Everywhere,
                Some(name) => OrderReach::from_name(name)?,
            },
            platform: self.platform,
            account: self.account,
            platform_id: self.platform_id,
            chat: self.chat,
            erased_at_ms: self.erased_at_ms,
        })
    }
}

/// The ledger file of a database.
pub(crate) fn path_beside(database: &Path) -> PathBuf {
    database.with_file_name(LEDGER_NAME)
}

/// Adds lines to the file; with `must_last`, they are on disk when this returns.
pub(super) fn append(
    path: Option<&Path>,
    entries: &[LedgerEntry],
    must_last: bool,
) -> Result<(), StoreError> {
    let (Some(path), false) = (path, entries.is_empty()) else {
        return Ok(());
    };
    let cannot = |error: std::io::Error| StoreError::Unavailable {
        what: format!("the ledger {} can't be written: {error}", path.display()),
    };
    let mut text = String::new();
    // A line that a kill cut short must not swallow the next one.
    if !ends_a_line(path).map_err(cannot)? {
        text.push('\n');
    }
    for entry in entries {
        text += &serde_json::to_string(&LedgerLine::of(entry))?;
        text.push('\n');
    }
    make_private(path).map_err(cannot)?;
    let mut file = OpenOptions::new().append(true).open(path).map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)?;
    if must_last {
        file.sync_all().map_err(cannot)?;
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))
            .and_then(|folder| folder.sync_all())
            .map_err(cannot)?;
    }
    Ok(())
}

fn ends_a_line(path: &Path) -> std::io::Result<bool> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        other => other?,
    };
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// The entries of the file, and how many of its lines can't be decoded.
fn read_file(path: &Path) -> std::io::Result<(Vec<LedgerEntry>, u64)> {
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        other => other?,
    };
    let (mut entries, mut unread) = (Vec::new(), 0);
    for line in BufReader::new(file).lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<LedgerLine>(&line)
            .ok()
            .and_then(LedgerLine::entry)
        {
            Some(entry) => entries.push(entry),
            None => unread += 1,
        }
    }
    Ok((entries, unread))
}

/// Makes rows and file agree; returns how many orders only the file knew, and a sentence about what a person
/// should look at.
pub(super) fn reconcile_txn(
    connection: &Connection,
    path: &Path,
) -> Result<(u64, Option<String>), StoreError> {
    let cannot = |error: std::io::Error| StoreError::Unavailable {
        what: format!("the ledger {} can't be read: {error}", path.display()),
    };
    let (in_file, unread) = read_file(path).map_err(cannot)?;
    let known = known_ids(connection)?;
    let mut added = 0;
    let mut ids = HashSet::with_capacity(in_file.len());
    for entry in &in_file {
        ids.insert(entry.id);
        if !known.contains(&entry.id) {
            add_order_txn(connection, entry)?;
            added += 1;
        }
    }
    let lost: Vec<LedgerEntry> = if known.len() as u64 + added == ids.len() as u64 {
        Vec::new()
    } else {
        let kept = rows(connection)?;
        kept.into_iter()
            .filter(|row| !ids.contains(&row.id))
            .collect()
    };
    append(Some(path), &lost, true)?;
    let warning = (unread > 0).then(|| {
        format!(
            "{} not be read in {}; what is named there may be back after a restore",
            counted(unread, "line can", "lines can"),
            path.display()
        )
    });
    Ok((added, warning))
}

/// Notes a message that its platform deleted. The row is authoritative; the line is for an older copy that is
/// put back.
pub(crate) fn note_deleted_txn(
    connection: &Connection,
    file: Option<&Path>,
    account: AccountId,
    (chat, message_id): (&str, &str),
    now_ms: i64,
) -> Result<(), StoreError> {
    let (platform, account_id): (String, String) = connection
        .prepare_cached("SELECT platform, platform_id FROM accounts WHERE id = ?1")?
        .query_row([account], |row| {
            Ok((row.get("platform")?, row.get("platform_id")?))
        })?;
    let entry = LedgerEntry {
        id: ErasureId::generate(),
        kind: LedgerKind::Message,
        reach: OrderReach::Everywhere,
        platform,
        account: account_id,
        platform_id: message_id.to_owned(),
        chat: chat.to_owned(),
        erased_at_ms: now_ms,
    };
    connection
        .prepare_cached(
            "INSERT INTO erasures (uuid, account_id, kind, platform_id, chat, erased_at_ms, phase,
                                   finished_at_ms)
             VALUES (?1, ?2, 'message', ?3, ?4, ?5, 'done', ?5)",
        )?
        .execute(params![entry.id, account, message_id, chat, now_ms])?;
    append(file, &[entry], false)
}

fn known_ids(connection: &Connection) -> Result<HashSet<ErasureId>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT uuid FROM erasures")?;
    let ids = statement.query_map([], |row| row.get("uuid"))?;
    Ok(ids.collect::<crate::engine::sql::Result<_>>()?)
}

fn rows(connection: &Connection) -> Result<Vec<LedgerEntry>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT e.uuid, e.kind, a.platform, a.platform_id AS account, e.platform_id AS platform_id, e.chat, e.erased_at_ms,
                e.reach
         FROM erasures e JOIN accounts a ON a.id = e.account_id ORDER BY e.id",
    )?;
    let rows = statement.query_map([], |row| {
        let (kind, reach): (String, String) = (row.get("kind")?, row.get("reach")?);
        Ok(LedgerEntry {
            id: row.get("uuid")?,
            kind: LedgerKind::from_name(&kind).unwrap_or(LedgerKind::Message),
            reach: OrderReach::from_name(&reach).unwrap_or_default(),
            platform: row.get("platform")?,
            account: row.get("account")?,
            platform_id: row.get("platform_id")?,
            chat: row.get("chat")?,
            erased_at_ms: row.get("erased_at_ms")?,
        })
    })?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}
