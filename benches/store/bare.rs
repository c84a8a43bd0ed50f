//! The yardstick: the tables, indexes and full text that capture fills, filled by a plain loop of
//! prepared statements, the same number of messages to a transaction, each synced to disk.

use std::path::Path;

use rusqlite::{Connection, params};
use vocative_core::ids::{AccountId, ConversationId, TurnId};
use vocative_store::NewId as _;

use vocative_core::prompting::{ClassEstimate, content_count};

use crate::Fail;
use crate::place::PAGE_CACHE_KIB;
use crate::texts::line;

/// Whom the lines of a room concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concerns {
    /// Nobody.
    Nobody,
    /// The agent `steady`, each of them.
    Steady,
}

/// A database filled without the store.
pub(crate) struct Bare {
    connection: Connection,
    account: i64,
    has_full_text: bool,
}

/// A room of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BareRoom {
    pub(crate) id: ConversationId,
    pub(crate) row: i64,
    chat: i64,
    person: i64,
}

impl Bare {
    /// Opens a database that a store made and closed.
    pub(crate) fn open(path: &Path, account: AccountId, has_full_text: bool) -> Result<Self, Fail> {
        let connection = Connection::open(path)?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.pragma_update(None, "cache_size", -i64::from(PAGE_CACHE_KIB))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(Self {
            connection,
            account: account.0,
            has_full_text,
        })
    }

    /// Fewer syncs, for filling what is only read.
    pub(crate) fn hurry(&self) -> Result<(), Fail> {
        Ok(self.connection.pragma_update(None, "synchronous", "OFF")?)
    }

    pub(crate) fn room(&self, name: &str) -> Result<BareRoom, Fail> {
        let db = &self.connection;
        db.execute(
            "INSERT INTO chats (account_id, platform_id, kind, title) VALUES (?1, ?2, 'public', ?2)",
            params![self.account, name],
        )?;
        let chat = db.last_insert_rowid();
        db.execute(
            "INSERT INTO chat_ids (account_id, platform_id, chat_id, identity_id) VALUES (?1, ?2, ?3, ?3)",
            params![self.account, name, chat],
        )?;
        db.execute(
            "INSERT INTO participants (account_id, kind, platform_id, display_name) VALUES (?1, 'user', ?2, 'Ada')",
            params![self.account, format!("U{name}")],
        )?;
        let person = db.last_insert_rowid();
        let id = ConversationId::generate();
        db.execute(
            "INSERT INTO conversations (uuid, chat_id, created_at_ms) VALUES (?1, ?2, 0)",
            params![id.0.as_bytes(), chat],
        )?;
        Ok(BareRoom {
            id,
            row: db.last_insert_rowid(),
            chat,
            person,
        })
    }

    /// Fills lines `from..to` into the rooms by turns, `group` to a transaction.
    pub(crate) fn fill(
        &self,
        rooms: &[BareRoom],
        lines: std::ops::Range<i64>,
        group: i64,
        concerns: Concerns,
    ) -> Result<(), Fail> {
        let mut next = lines.start;
        while next < lines.end {
            let end = (next + group).min(lines.end);
            let transaction = self.connection.unchecked_transaction()?;
            for n in next..end {
                let room = rooms[usize::try_from(n)? % rooms.len()];
                self.insert(room, n, &line(n), concerns)?;
            }
            transaction.commit()?;
            next = end;
        }
        Ok(())
    }

    fn insert(&self, room: BareRoom, n: i64, text: &str, concerns: Concerns) -> Result<(), Fail> {
        let db = &self.connection;
        let at_ms = n * 1_000;
        let count = content_count(text, &ClassEstimate);
        db.prepare_cached(
            "INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope, participant_id, content,
                                tokens, counter, captured_at_ms, is_inbound)
             VALUES (?1, ?2, ?3, 0, 'message', 'channel', ?4, ?5, ?6, ?7, ?3, 1)",
        )?
        .execute(params![TurnId::generate().0.as_bytes(), room.row, at_ms, room.person, text, count.tokens,
            count.counter])?;
        let seq = db.last_insert_rowid();
        db.prepare_cached(
            "INSERT INTO messages (account_id, chat_id, platform_id, turn_seq, sent_at_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![self.account, room.chat, format!("{}.000100", 1_700_000_000 + n), seq, at_ms])?;
        db.prepare_cached("UPDATE conversations SET turn_count = turn_count + 1, last_seq = ?2, last_activity_ms = ?3 WHERE id = ?1")?
            .execute([room.row, seq, at_ms])?;
        if self.has_full_text {
            db.prepare_cached(
                "INSERT INTO turn_text (rowid, conversation, content) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![seq, format!("c{}", room.row), text])?;
        }
        if concerns == Concerns::Steady {
            self.involve(room, seq, n, "steady")?;
        }
        Ok(())
    }

    /// Notes that a line concerns an agent.
    pub(crate) fn involve(
        &self,
        room: BareRoom,
        seq: i64,
        n: i64,
        agent: &str,
    ) -> Result<(), Fail> {
        self.connection
            .prepare_cached("INSERT INTO involvements (conversation_id, agent, sent_at_ms, ordinal, seq, how) VALUES (?1, ?2, ?3, 0, ?4, 'addressed')")?
            .execute(params![room.row, agent, n * 1_000, seq])?;
        Ok(())
    }

    /// The capture order of a room's line.
    pub(crate) fn seq_of(&self, room: BareRoom, n: i64) -> Result<i64, Fail> {
        Ok(self.connection.query_row(
            "SELECT seq FROM turns WHERE conversation_id = ?1 AND sent_at_ms = ?2",
            params![room.row, n * 1_000],
            |row| row.get(0),
        )?)
    }
}
