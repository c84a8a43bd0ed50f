//! Importing: messages of an export become turns as captured ones do, many in one transaction.
//!
//! An imported message has the same identity as its live event, so whichever comes first makes the
//! turn. It never newly addresses an agent and makes no run; it does not change what is known of the
//! present (that a chat can be posted to, names of people). Messages that every account numbers for
//! itself can't be recognised by their id: only those older than the first live turn of their chat are
//! imported, and those that exist already are found by sender, second and text.

use std::collections::HashMap;

use crate::acts::arrival::{Arrival, known_message, sent_at_ms};
use crate::acts::twins::{SECOND_MS, TwinRule, note_twin_txn, nth_twin};
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::participants::{keep_former_names_txn, names_of};
use crate::rows::turn_rows::turn_at;
use vocative_contract::envelope::{Sender, SenderKind};

use crate::acts::capture::{insert_txn, is_from_before_erasure};
use crate::acts::edits;
use crate::acts::facts::addressed_agents;
use crate::acts::learn::settle_kind_txn;
use crate::contract::{
    Captured, ImportAccount, ImportBatch, ImportCounts, ImportMessage, ImportProgress, NewMessage,
};
use crate::rows::columns::{chat_kind_name, platform};
use crate::rows::messages::KnownMessage;
use crate::rows::names::identity;
use crate::rows::places::{
    ChatRow, ConversationSeat, ensure_chat_txn, find_chat, find_conversation,
};
use crate::{Reader, Store, StoreError};
use vocative_core::addressing::{MessageFacts, RunVerdict, Verdict};
use vocative_core::ids::{AccountId, AgentName, ParticipantId};
use vocative_core::turn::ParticipantKind;

impl Reader {
    /// The account that a configured channel was last bound to; `None` if it never started.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn import_account(&self, channel: &str) -> Result<Option<ImportAccount>, StoreError> {
        let channel = channel.to_owned();
        self.read(move |connection| {
            let found = connection
                .prepare_cached(
                    "SELECT a.id, a.platform, a.platform_id, a.name
                     FROM channels n JOIN accounts a ON a.id = n.account_id WHERE n.name = ?1",
                )?
                .query_row([channel], |row| {
                    Ok(ImportAccount {
                        account: row.get("id")?,
                        platform: platform(row)?,
                        platform_id: row.get("platform_id")?,
                        name: row.get("name")?,
                        own_ids: Vec::new(),
                    })
                })
                .optional()?;
            let Some(mut found) = found else {
                return Ok(None);
            };
            if let Some(own) = identity(connection, found.account)? {
                found.own_ids.push(own.user_id);
                found.own_ids.extend(own.other_ids);
            }
            Ok(Some(found))
        })
        .await
    }

    /// How many items of an export an interrupted import had processed; 0 if there was none.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn import_progress(
        &self,
        account: AccountId,
        fingerprint: &str,
    ) -> Result<u64, StoreError> {
        let fingerprint = fingerprint.to_owned();
        self.read(move |connection| {
            let things: Option<i64> = connection
                .prepare_cached(
                    "SELECT things FROM imports
                     WHERE account_id = ?1 AND fingerprint = ?2 AND finished_at_ms IS NULL",
                )?
                .query_row(params![account, fingerprint], |row| row.get("things"))
                .optional()?;
            Ok(things.map_or(0, crate::rows::columns::count_from))
        })
        .await
    }

    /// What [`Store::import`](crate::Store::import) would make of a batch, as far as the store is now. Nothing is
    /// written.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn preview_import(&self, batch: ImportBatch) -> Result<ImportCounts, StoreError> {
        self.read(move |connection| {
            let mut books = Books::open(connection, batch.account)?;
            let mut counts = ImportCounts::default();
            for message in &batch.messages {
                let found = books.find(connection, message)?;
                count(&mut counts, &found);
            }
            Ok(counts)
        })
        .await
    }
}

impl Store {
    /// Imports a batch, and notes how far the import is, in one transaction.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses, and then nothing of the batch was written; never because of
    /// what a message says.
    pub async fn import(&self, batch: ImportBatch) -> Result<ImportCounts, StoreError> {
        self.write(move |connection| import_txn(connection, batch))
            .await
    }
}

fn import_txn(connection: &Connection, batch: ImportBatch) -> Result<ImportCounts, StoreError> {
    let mut books = Books::open(connection, batch.account)?;
    let mut counts = ImportCounts::default();
    for person in &batch.people {
        let kind = ParticipantKind::User;
        ensure_participant_txn(connection, batch.account, kind, person, 0)?;
    }
    for mut message in batch.messages {
        let found = books.find(connection, &message)?;
        let is_revised = match &found {
            ExportedMatch::New => {
                insert_import_txn(connection, &mut message.message)?;
                false
            }
            ExportedMatch::Edited { chat, known, seq } => {
                edit_import_txn(connection, &message.message, chat, known, *seq)?
            }
            ExportedMatch::Twin { chat, seq } => {
                note_twin_txn(connection, &message.message, chat, *seq)?;
                false
            }
            _ => false,
        };
        match found {
            // An edit that does not change the text makes no revision.
            ExportedMatch::Edited { .. } if !is_revised => counts.known += 1,
            found => count(&mut counts, &found),
        }
    }
    note_progress_txn(connection, batch.account, &batch.progress, batch.now_ms)?;
    Ok(counts)
}

/// What the store knows of an exported message.
enum ExportedMatch {
    /// Nothing: it becomes a turn.
    New,
    /// A turn of the same message with an older text.
    Edited {
        chat: ChatRow,
        known: KnownMessage,
        seq: i64,
    },
    /// The message itself.
    Known,
    /// A turn of the same message, imported from another account's export.
    Twin { chat: ChatRow, seq: i64 },
    /// The message was deleted or erased.
    Gone,
    /// The message is an answer of ours, which is stored already.
    Own,
    /// A live turn that looks like the message (`is_found`), or a time for which there should be one.
    Overlap { is_found: bool },
    /// Another message with its id.
    Conflict,
}

fn count(counts: &mut ImportCounts, found: &ExportedMatch) {
    let field = match found {
        ExportedMatch::New => &mut counts.imported,
        ExportedMatch::Edited { .. } => &mut counts.revised,
        ExportedMatch::Known | ExportedMatch::Twin { .. } => &mut counts.known,
        ExportedMatch::Gone => &mut counts.gone,
        ExportedMatch::Own => &mut counts.own,
        ExportedMatch::Overlap { is_found: true } => &mut counts.overlap_found,
        ExportedMatch::Overlap { is_found: false } => &mut counts.overlap_missing,
        ExportedMatch::Conflict => &mut counts.conflicts,
    };
    *field += 1;
}

/// Facts that are read once for a whole batch: they do not change within its transaction.
struct Books {
    has_erased: bool,
    /// When the first post of ours was made; earlier posts of this bot were made from another store.
    first_post_ms: Option<i64>,
    /// When the first live message of a chat was sent, by platform chat id.
    live_since_ms: HashMap<String, Option<i64>>,
}

impl Books {
    fn open(connection: &Connection, account: AccountId) -> Result<Self, StoreError> {
        Ok(Self {
            has_erased: connection
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM erased_identities) AS is_so")?
                .query_row([], |row| row.get("is_so"))?,
            first_post_ms: connection
                .prepare_cached(
                    "SELECT created_at_ms FROM outbox WHERE account_id = ?1 ORDER BY id LIMIT 1",
                )?
                .query_row([account], |row| row.get("created_at_ms"))
                .optional()?,
            live_since_ms: HashMap::new(),
        })
    }

    fn find(
        &mut self,
        connection: &Connection,
        import: &ImportMessage,
    ) -> Result<ExportedMatch, StoreError> {
        let message = &import.message;
        if self.has_erased && is_erased(connection, message)? {
            return Ok(ExportedMatch::Gone);
        }
        let chat = find_chat(connection, message.account, &message.place.chat)?;
        if let Some(known) = known_message(connection, message, chat.as_ref())? {
            return found_known(connection, message, chat, known);
        }
        let sent_at_ms = sent_at_ms(message);
        if import.is_own && self.first_post_ms.is_some_and(|first| sent_at_ms >= first) {
            return Ok(ExportedMatch::Own);
        }
        let (Some(occurrence), Some(chat)) = (import.own_box, chat) else {
            return Ok(ExportedMatch::New);
        };
        let twin = nth_twin(connection, message, &chat, TwinRule::After(occurrence))?;
        if self
            .live_since(connection, message, &chat)?
            .is_some_and(|live| sent_at_ms >= live)
        {
            let is_found = twin.is_some();
            return Ok(ExportedMatch::Overlap { is_found });
        }
        Ok(twin.map_or(ExportedMatch::New, |seq| ExportedMatch::Twin { chat, seq }))
    }

    fn live_since(
        &mut self,
        connection: &Connection,
        message: &NewMessage,
        chat: &ChatRow,
    ) -> Result<Option<i64>, StoreError> {
        if let Some(known) = self.live_since_ms.get(&message.place.chat) {
            return Ok(*known);
        }
        // Live ids are numbers, which sort before `import:`.
        let since = connection
            .prepare_cached(
                "SELECT min(m.sent_at_ms) AS since FROM chat_ids i
                 JOIN messages m ON m.account_id = i.account_id AND m.chat_id = i.identity_id
                                AND m.platform_id < 'import:'
                 WHERE i.account_id = ?1 AND i.chat_id = ?2",
            )?
            .query_row(params![message.account, chat.id], |row| row.get("since"))?;
        self.live_since_ms.insert(message.place.chat.clone(), since);
        Ok(since)
    }
}

/// Whether a person, conversation or message was erased after it was sent: the one place where the
/// ledger is asked about what is imported.
fn is_erased(connection: &Connection, message: &NewMessage) -> Result<bool, StoreError> {
    if is_from_before_erasure(connection, message)? {
        return Ok(true);
    }
    let found = connection
        .prepare_cached(
            "SELECT EXISTS (
                 SELECT 1 FROM erased_identities
                 WHERE account_id = ?1 AND erased_at_ms >= ?2
                   AND kind = 'message' AND platform_id = ?3 AND chat = ?4) AS found",
        )?
        .query_row(
            params![
                message.account,
                sent_at_ms(message),
                message.message_id,
                message.place.chat
            ],
            |row| row.get("found"),
        )?;
    Ok(found)
}

fn found_known(
    connection: &Connection,
    message: &NewMessage,
    chat: Option<ChatRow>,
    known: KnownMessage,
) -> Result<ExportedMatch, StoreError> {
    let (Some(seq), Some(chat)) = (known.turn_seq, chat) else {
        return Ok(ExportedMatch::Gone);
    };
    if is_another(connection, message, &known)? {
        return Ok(ExportedMatch::Conflict);
    }
    if message.edit_marker.is_none() || message.edit_marker == known.edit_marker {
        return Ok(ExportedMatch::Known);
    }
    let turn = turn_at(connection, seq)?;
    // An answer of ours says what was committed.
    Ok(
        if turn.is_inbound && edits::is_later(message, &known, &turn) {
            ExportedMatch::Edited { chat, known, seq }
        } else {
            ExportedMatch::Known
        },
    )
}

/// Whether the message that is known under the id was sent by somebody at another time. A message dated in
/// the future was captured with another time than its own.
fn is_another(
    connection: &Connection,
    message: &NewMessage,
    known: &KnownMessage,
) -> Result<bool, StoreError> {
    let (stored_ms, is_inbound): (Option<i64>, bool) = connection
        .prepare_cached(
            "SELECT m.sent_at_ms, t.is_inbound FROM messages m JOIN turns t ON t.seq = m.turn_seq
             WHERE m.account_id = ?1 AND m.chat_id = ?2 AND m.platform_id = ?3",
        )?
        .query_row(
            params![message.account, known.identity, message.message_id],
            |row| Ok((row.get("sent_at_ms")?, row.get("is_inbound")?)),
        )?;
    let is_of_now = message.sent_at_ms >= message.received_at_ms;
    let second = |at_ms: i64| at_ms.div_euclid(SECOND_MS);
    Ok(is_inbound
        && !is_of_now
        && stored_ms.is_some_and(|stored| second(stored) != second(message.sent_at_ms)))
}

fn insert_import_txn(connection: &Connection, message: &mut NewMessage) -> Result<(), StoreError> {
    let chat = ensure_chat_txn(connection, message.account, &message.place.chat)?;
    // A known topic may have been renamed since.
    let seat = ConversationSeat::of(&message.place, &message.message_id);
    if message.place.topic_title.is_some()
        && find_conversation(connection, chat.id, seat.key())?.is_some()
    {
        message.place.topic_title = None;
    }
    let verdict = Verdict {
        is_admitted: true,
        ..Verdict::default()
    };
    let arrival = arrival_txn(connection, message, chat, Vec::new(), verdict)?;
    insert_txn(connection, &arrival).map(|_| ())
}

/// Applies an edit that was not received live. The turn still addresses the same agents.
fn edit_import_txn(
    connection: &Connection,
    message: &NewMessage,
    chat: &ChatRow,
    known: &KnownMessage,
    seq: i64,
) -> Result<bool, StoreError> {
    let addressed = addressed_agents(connection, seq)?;
    let verdict = Verdict {
        is_admitted: true,
        addressed_to: addressed.clone(),
        runs: RunVerdict::TooOld,
        ..Verdict::default()
    };
    let arrival = arrival_txn(connection, message, chat.clone(), addressed, verdict)?;
    let turn = turn_at(connection, seq)?;
    let captured = edits::edit_txn(connection, &arrival, turn, known)?;
    Ok(matches!(captured, Captured::Revised(_)))
}

fn arrival_txn<'a>(
    connection: &Connection,
    message: &'a NewMessage,
    mut chat: ChatRow,
    addressed_before: Vec<AgentName>,
    verdict: Verdict,
) -> Result<Arrival<'a>, StoreError> {
    learn_chat_txn(connection, message, &mut chat)?;
    let facts = MessageFacts {
        is_known_chat: true,
        chat_kind: chat.kind,
        addressed_before,
        ..MessageFacts::default()
    };
    Ok(Arrival {
        message,
        person: ensure_participant_txn(
            connection,
            message.account,
            message.sender_kind,
            &message.sender,
            sent_at_ms(message),
        )?,
        chat,
        facts,
        verdict,
        ledger: None,
    })
}

/// Stores the kind and title of a chat where they are unknown.
fn learn_chat_txn(
    connection: &Connection,
    message: &NewMessage,
    chat: &mut ChatRow,
) -> Result<(), StoreError> {
    let place = &message.place;
    connection
        .prepare_cached(
            "UPDATE chats SET title = coalesce(title, ?2), kind = coalesce(kind, ?3)
             WHERE id = ?1 AND (title IS NULL AND ?2 IS NOT NULL OR kind IS NULL AND ?3 IS NOT NULL)",
        )?
        .execute(params![chat.id, place.title, place.kind.map(chat_kind_name)])?;
    if chat.kind.is_none() {
        settle_kind_txn(connection, chat, place.kind, message.received_at_ms)?;
        chat.kind = place.kind;
    }
    Ok(())
}

/// Finds or makes a participant; a name is noted where none is known.
fn ensure_participant_txn(
    connection: &Connection,
    account: AccountId,
    kind: ParticipantKind,
    sender: &Sender,
    seen_ms: i64,
) -> Result<ParticipantId, StoreError> {
    let before = names_of(connection, account, &sender.id)?;
    let id = connection
        .prepare_cached(
            "INSERT INTO participants
                 (account_id, kind, platform_id, display_name, username, last_seen_ms, is_bot)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (account_id, kind, platform_id) DO UPDATE
             SET display_name = coalesce(display_name, excluded.display_name),
                 username = coalesce(username, excluded.username),
                 is_bot = max(is_bot, excluded.is_bot),
                 last_seen_ms = max(excluded.last_seen_ms, last_seen_ms)
             RETURNING id",
        )?
        .query_row(
            params![
                account,
                kind,
                sender.id,
                sender.display_name,
                sender.username,
                seen_ms,
                sender.kind == SenderKind::Bot
            ],
            |row| row.get("id"),
        )?;
    keep_former_names_txn(connection, &before)?;
    Ok(id)
}

fn note_progress_txn(
    connection: &Connection,
    account: AccountId,
    progress: &ImportProgress,
    now_ms: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO imports (account_id, fingerprint, things, updated_at_ms, finished_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (account_id, fingerprint) DO UPDATE
             SET things = excluded.things, updated_at_ms = excluded.updated_at_ms,
                 finished_at_ms = excluded.finished_at_ms",
        )?
        .execute(params![
            account,
            progress.fingerprint,
            i64::try_from(progress.things).unwrap_or(i64::MAX),
            now_ms,
            progress.is_finished.then_some(now_ms)
        ])?;
    Ok(())
}
