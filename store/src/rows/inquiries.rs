//! Inquiries: what people asked the daemon for, until it is looked up and told.

use crate::capability::MayReply;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::open::{open_post, open_run};
use vocative_contract::outbound::{Part, Target};

use crate::registry::{Fate, MergeRule, Restore, STATE, StoreTable, account, text};
use crate::rows::columns::{conversation_row_id, count_from};
use crate::rows::jobs::{enqueue_txn, leased_job, remove_txn};
use crate::rows::outbox_rows::{NewPosts, insert_posts_txn, said_to};
use crate::{Reader, Store, StoreError};
use vocative_core::command::{ChatStanding, Inquiry, OpenInquiry};
use vocative_core::ids::{AccountId, AgentName, ConversationId, InquiryId, JobId, LeaseToken};
use vocative_core::job::Job;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account(
    "inquiries",
    text(&[], &[], &["kind", "agent", "target", "person"]),
    Fate {
        merge: MergeRule::Moves,
        restore: Restore::Emptied,
        ..STATE
    },
)];

const HOUR_MS: i64 = 3_600_000;

impl Reader {
    /// An inquiry; `None` = it was answered.
    ///
    /// # Errors
    /// `Undecodable` if this build can't read it.
    pub async fn inquiry(&self, id: InquiryId) -> Result<Option<OpenInquiry>, StoreError> {
        self.read(move |connection| inquiry_at(connection, id))
            .await
    }

    /// How things stand in the chat of a conversation, for an agent.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn chat_standing(
        &self,
        conversation: ConversationId,
        agent: AgentName,
        now_ms: i64,
    ) -> Result<ChatStanding, StoreError> {
        self.read(move |connection| {
            let row = conversation_row_id(connection, conversation)?;
            chat_standing(connection, row, &agent, now_ms)
        })
        .await
    }
}

impl<C: MayReply> Store<C> {
    /// Answers an inquiry and ends its job, in one transaction. Returns whether the lease still held; if not,
    /// nothing was written.
    ///
    /// # Errors
    /// Storage refuses; it is still open then.
    pub async fn answer_inquiry(
        &self,
        lease: (JobId, LeaseToken),
        inquiry: OpenInquiry,
        parts: Vec<Part>,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        self.write(move |connection| {
            answer_inquiry_txn(connection, lease, &inquiry, &parts, now_ms)
        })
        .await
    }
}

/// Who asks, where, and where the answer goes.
pub(crate) struct NewInquiry<'a> {
    pub(crate) inquiry: Inquiry,
    pub(crate) agent: &'a AgentName,
    pub(crate) account: AccountId,
    pub(crate) conversation_row: i64,
    pub(crate) target: &'a Target,
    /// Who alone is to see the answer, by the platform's id.
    pub(crate) person: Option<&'a str>,
    pub(crate) now_ms: i64,
}

/// Stores an inquiry unless the same one is waiting: an inquiry that a person repeats is answered once, and
/// delays no other.
pub(crate) fn inquire_txn(connection: &Connection, new: &NewInquiry<'_>) -> Result<(), StoreError> {
    let kind = new.inquiry.name();
    let repeated = connection
        .prepare_cached(
            "SELECT id FROM inquiries
             WHERE kind = ?1 AND agent = ?2 AND conversation_id = ?3 AND person IS ?4",
        )?
        .query_row(
            params![kind, new.agent, new.conversation_row, new.person],
            |row| row.get("id"),
        )
        .optional()?;
    let inquiry = match repeated {
        Some(inquiry) => inquiry,
        None => connection
            .prepare_cached(
                "INSERT INTO inquiries (kind, agent, conversation_id, target, person)
                 VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id",
            )?
            .query_row(
                params![
                    kind,
                    new.agent,
                    new.conversation_row,
                    serde_json::to_string(new.target)?,
                    new.person
                ],
                |row| row.get("id"),
            )?,
    };
    let job = Job::AnswerInquiry { inquiry };
    enqueue_txn(connection, &job, Some(new.account), new.now_ms)
}

fn inquiry_at(connection: &Connection, id: InquiryId) -> Result<Option<OpenInquiry>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT q.kind, q.agent, h.account_id, h.id AS chat_id, c.uuid, q.target, q.person
             FROM inquiries q JOIN conversations c ON c.id = q.conversation_id
             JOIN chats h ON h.id = c.chat_id WHERE q.id = ?1",
        )?
        .query_row([id], |row| {
            let (kind, target): (String, String) = (row.get("kind")?, row.get("target")?);
            Ok((
                kind,
                target,
                row.get("agent")?,
                row.get("account_id")?,
                row.get("chat_id")?,
                row.get("uuid")?,
                row.get("person")?,
            ))
        })
        .optional()?;
    let Some((kind, target, agent, account, chat, conversation, person)) = found else {
        return Ok(None);
    };
    Ok(Some(OpenInquiry {
        id,
        // An inquiry of a later build may be unknown to this one; it is answered as far as this build can.
        inquiry: Inquiry::from_name(&kind).unwrap_or(Inquiry::Status),
        agent,
        account,
        chat,
        conversation,
        target: serde_json::from_str(&target)?,
        person,
    }))
}

fn answer_inquiry_txn(
    connection: &Connection,
    (job, token): (JobId, LeaseToken),
    inquiry: &OpenInquiry,
    parts: &[Part],
    now_ms: i64,
) -> Result<bool, StoreError> {
    if leased_job(connection, job, token)?.is_none() {
        return Ok(false);
    }
    // If the same was asked again while this was looked up, this answers both.
    remove_txn(connection, job)?;
    connection
        .prepare_cached("DELETE FROM inquiries WHERE id = ?1")?
        .execute([inquiry.id])?;
    let posts = NewPosts {
        account: inquiry.account,
        chat: inquiry.chat,
        turn: None,
        run_row: None,
        operation: &said_to(inquiry.person.clone()),
        target: &inquiry.target,
        parts,
        now_ms,
    };
    insert_posts_txn(connection, &posts)?;
    Ok(true)
}

fn chat_standing(
    connection: &Connection,
    conversation_row: i64,
    agent: &AgentName,
    now_ms: i64,
) -> Result<ChatStanding, StoreError> {
    let standing = connection
        .prepare_cached(concat!(
            "WITH here (chat) AS (SELECT chat_id FROM conversations WHERE id = ?1)
             SELECT (SELECT count(*) FROM runs WHERE ",
            open_run!(),
            "
                       AND state <> 'leased' AND chat_id = (SELECT chat FROM here)) AS runs_waiting,
                    (SELECT count(*) FROM runs WHERE ",
            open_run!(),
            "
                       AND state = 'leased' AND chat_id = (SELECT chat FROM here)) AS runs_working,
                    (SELECT count(*) FROM outbox WHERE ",
            open_post!(),
            "
                       AND chat_id = (SELECT chat FROM here)) AS posts_waiting,
                    (SELECT coalesce(sum(turn_count), 0) FROM conversations
                     WHERE chat_id = (SELECT chat FROM here)) AS turns,
                    (SELECT count(*) FROM runs WHERE chat_id = (SELECT chat FROM here)
                       AND created_at_ms > ?3) AS runs_last_hour,
                    (SELECT max(at_ms) FROM fresh_starts
                     WHERE conversation_id = ?1 AND agent = ?2) AS afresh_since_ms"
        ))?
        .query_row(params![conversation_row, agent, now_ms - HOUR_MS], |row| {
            Ok(ChatStanding {
                runs_waiting: count_from(row.get("runs_waiting")?),
                runs_working: count_from(row.get("runs_working")?),
                posts_waiting: count_from(row.get("posts_waiting")?),
                turns: count_from(row.get("turns")?),
                runs_last_hour: count_from(row.get("runs_last_hour")?),
                afresh_since_ms: row.get("afresh_since_ms")?,
            })
        })?;
    Ok(standing)
}
