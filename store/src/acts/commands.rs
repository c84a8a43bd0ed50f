//! Commands of people: carried out in the transaction that captures them, or noted there as something
//! that is looked up and told later.
//!
//! A command's identity is the message that it is, or the platform's own id of it; told twice, it is
//! carried out once. What it is answered is a post that is no turn, so that no prompt ever holds it.

use std::path::Path;

use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::open::{open_post, open_run};
use vocative_contract::envelope::{Place, Sender};
use vocative_contract::outbound::{Operation, Part, Target};

use crate::acts::erasure::{Forgotten, has_forgotten_lately, order_txn};
use crate::acts::learn::settle_kind_txn;
use crate::acts::overlap::{Stopped, stop_chat_txn};
use crate::acts::triggers::Addressed;
use crate::contract::NonMessage;
use crate::rows::columns::{conversation_row_id, count_from};
use crate::rows::fresh_starts::{begin_afresh_txn, behind_everything};
use crate::rows::jobs::{enqueue_txn, leased_job, remove_txn};
use crate::rows::outbox_rows::{NewPosts, insert_posts_txn};
use crate::rows::participants::{HeardSender, upsert_participant_txn};
use crate::rows::places::{
    ConversationRow, ConversationSeat, ensure_chat_txn, ensure_conversation_txn, find_chat,
    hear_chat_txn,
};
use crate::rows::raw::keep_non_message_txn;
use crate::{Store, StoreError};
use vocative_core::command::{
    ChatStanding, CommandFacts, CommandVerdict, Effect, Inquiry, OpenInquiry,
};
use vocative_core::ids::{
    AccountId, AgentName, ChatId, ConversationId, ErasureId, InquiryId, JobId, LeaseToken,
    ParticipantId, RunId,
};
use vocative_core::job::Job;
use vocative_core::turn::{ParticipantKind, Position};

const HOUR_MS: i64 = 3_600_000;

/// Decides about a command, given what is known of its chat. Pure.
pub type CommandJudge = Box<dyn FnOnce(CommandFacts) -> Option<CommandVerdict> + Send>;

/// A command that is not a message.
pub struct NewCommand {
    /// What is kept of it.
    pub event: NonMessage,
    /// Where it was given.
    pub place: Place,
    /// Who gave it.
    pub sender: Sender,
    /// Decides about it; `None` = it is kept, and nothing is done.
    pub judge: CommandJudge,
}

/// What a command did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOutcome {
    /// Whether it was given for the first time.
    pub is_new: bool,
    /// Runs ended, or asked to end.
    pub cancelled_runs: Vec<RunId>,
    /// Orders to erase that were written into the ledger.
    pub erasures: Vec<ErasureId>,
}

/// Who gave a command, and where.
pub(crate) struct CommandGiver<'a> {
    pub(crate) account: AccountId,
    pub(crate) chat: ChatId,
    /// The platform's id of the chat.
    pub(crate) platform_chat: &'a str,
    pub(crate) person: ParticipantId,
    /// The platform's id of the person.
    pub(crate) sender: &'a str,
    pub(crate) conversation: &'a ConversationRow,
    /// Where the command stands in it.
    pub(crate) at: Position,
    /// Where an answer goes.
    pub(crate) target: Target,
    /// Where orders to erase are written, too.
    pub(crate) ledger: Option<&'a Path>,
    pub(crate) now_ms: i64,
}

impl Store {
    /// Captures a command that is not a message and carries it out, once, in one transaction.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses, and then nothing was written.
    pub async fn capture_command(&self, command: NewCommand) -> Result<CommandOutcome, StoreError> {
        let ledger = self.ledger_path();
        self.write(move |connection| capture_command_txn(connection, command, ledger.as_deref()))
            .await
    }

    /// An inquiry; `None` = it was answered.
    ///
    /// # Errors
    /// `Undecodable` if this build can't read it.
    pub async fn inquiry(&self, id: InquiryId) -> Result<Option<OpenInquiry>, StoreError> {
        self.read(move |connection| inquiry_at(connection, id))
            .await
    }

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

fn capture_command_txn(
    connection: &Connection,
    command: NewCommand,
    ledger: Option<&Path>,
) -> Result<CommandOutcome, StoreError> {
    let NewCommand {
        event,
        place,
        sender,
        judge,
    } = command;
    let (account, now_ms) = (event.account, event.received_at_ms);
    let known = find_chat(connection, account, &place.chat)?;
    let facts = CommandFacts {
        kind: place.kind.or(known.as_ref().and_then(|chat| chat.kind)),
        is_in_room: known.is_some_and(|chat| chat.is_present && chat.last_heard_ms > 0),
        belonging: None,
        has_forgotten_lately: has_forgotten_lately(connection, account, &sender.id, now_ms)?,
    };
    let target = Target {
        chat: place.chat.clone(),
        thread: place.thread.clone(),
        topic: None,
        reply_to: None,
    };
    let Some(verdict) = judge(facts) else {
        let is_new = keep_non_message_txn(connection, &event)?;
        return Ok(CommandOutcome {
            is_new,
            ..CommandOutcome::default()
        });
    };
    if !verdict.is_admitted && verdict.answer.is_none() {
        return Ok(CommandOutcome::default());
    }
    let chat = ensure_chat_txn(connection, account, &place.chat)?;
    if !verdict.is_admitted {
        answer_txn(
            connection, account, chat.id, &sender.id, &target, &verdict, now_ms,
        )?;
        return Ok(CommandOutcome::default());
    }
    if !keep_non_message_txn(connection, &event)? {
        return Ok(CommandOutcome::default());
    }
    // A command may be given where the bot is not; that is not to be taken for being there.
    if facts.is_in_room {
        hear_chat_txn(connection, &chat, &place, now_ms)?;
    }
    settle_kind_txn(connection, &chat, place.kind, now_ms)?;
    let heard = HeardSender {
        kind: ParticipantKind::User,
        platform_id: &sender.id,
        display_name: sender.display_name.as_deref(),
        username: sender.username.as_deref(),
    };
    let seat = place
        .thread
        .as_deref()
        .map_or(ConversationSeat::Chat, ConversationSeat::Thread);
    let conversation = ensure_conversation_txn(connection, chat.id, seat, now_ms)?;
    let asker = CommandGiver {
        account,
        chat: chat.id,
        platform_chat: &place.chat,
        person: upsert_participant_txn(connection, account, heard, now_ms)?,
        sender: &sender.id,
        at: behind_everything(connection, &conversation)?,
        conversation: &conversation,
        target,
        ledger,
        now_ms,
    };
    let done = carry_out_txn(connection, &asker, &verdict)?;
    Ok(CommandOutcome {
        is_new: true,
        cancelled_runs: done.cancelled_runs,
        erasures: done.erasures,
    })
}

/// Does what a command says and commits its answer.
pub(crate) fn carry_out_txn(
    connection: &Connection,
    asker: &CommandGiver<'_>,
    verdict: &CommandVerdict,
) -> Result<Addressed, StoreError> {
    let mut done = Addressed::default();
    let forget = |what| order_txn(connection, asker.ledger, asker.account, &what, asker.now_ms);
    match &verdict.effect {
        Effect::Nothing => {}
        Effect::BeginAfresh { agents } => {
            let row = asker.conversation.row;
            begin_afresh_txn(connection, row, agents, asker.at, asker.now_ms)?;
        }
        Effect::Stop { of_everybody } => {
            let whose = (!of_everybody).then_some(asker.person);
            let thread = Some(asker.conversation.row).filter(|_| asker.target.thread.is_some());
            let what = Stopped {
                chat: asker.chat,
                thread,
                whose,
            };
            done.cancelled_runs = stop_chat_txn(connection, &what, asker.now_ms)?;
        }
        Effect::Inquire { inquiry, agent } => {
            ask_txn(connection, asker, *inquiry, agent, verdict.is_private)?;
        }
        Effect::ForgetMessage { message_id } => {
            let chat = asker.platform_chat;
            done.erasures = forget(Forgotten::Message { chat, message_id })?;
        }
        Effect::ForgetPerson => {
            let person = asker.sender;
            done.erasures = forget(Forgotten::Person { person })?;
        }
        Effect::ForgetChat => {
            let chat = asker.chat;
            done.erasures = forget(Forgotten::Chat { chat })?;
        }
    }
    answer_txn(
        connection,
        asker.account,
        asker.chat,
        asker.sender,
        &asker.target,
        verdict,
        asker.now_ms,
    )?;
    Ok(done)
}

/// Commits what a command is answered at once.
fn answer_txn(
    connection: &Connection,
    account: AccountId,
    chat: ChatId,
    sender: &str,
    target: &Target,
    verdict: &CommandVerdict,
    now_ms: i64,
) -> Result<(), StoreError> {
    let Some(answer) = &verdict.answer else {
        return Ok(());
    };
    let person = verdict.is_private.then(|| sender.to_owned());
    let posts = NewPosts {
        account,
        chat,
        turn: None,
        run_row: None,
        operation: &said_to(person),
        target,
        parts: &[Part::plain(answer)],
        now_ms,
    };
    insert_posts_txn(connection, &posts).map(drop)
}

/// What a line is: for one person's eyes, or a post.
pub(crate) fn said_to(person: Option<String>) -> Operation {
    person.map_or(Operation::Post, |person| Operation::Ephemeral { person })
}

/// Stores an inquiry unless the same one is waiting: an inquiry that a person repeats is answered once, and
/// delays no other.
fn ask_txn(
    connection: &Connection,
    asker: &CommandGiver<'_>,
    inquiry: Inquiry,
    agent: &AgentName,
    is_private: bool,
) -> Result<(), StoreError> {
    let conversation = asker.conversation.row;
    let person = is_private.then_some(asker.sender);
    let repeated = connection
        .prepare_cached(
            "SELECT id FROM inquiries
             WHERE kind = ?1 AND agent = ?2 AND conversation_id = ?3 AND person IS ?4",
        )?
        .query_row(
            params![inquiry.name(), agent, conversation, person],
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
                    inquiry.name(),
                    agent,
                    conversation,
                    serde_json::to_string(&asker.target)?,
                    person
                ],
                |row| row.get("id"),
            )?,
    };
    let job = Job::AnswerInquiry { inquiry };
    enqueue_txn(connection, &job, Some(asker.account), asker.now_ms)
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
    // Asked again while it was looked up, it is answered by this.
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
                       AND state <> 'leased' AND chat_id = (SELECT chat FROM here)),
                    (SELECT count(*) FROM runs WHERE ",
            open_run!(),
            "
                       AND state = 'leased' AND chat_id = (SELECT chat FROM here)),
                    (SELECT count(*) FROM outbox WHERE ",
            open_post!(),
            "
                       AND chat_id = (SELECT chat FROM here)),
                    (SELECT coalesce(sum(turn_count), 0) FROM conversations
                     WHERE chat_id = (SELECT chat FROM here)),
                    (SELECT count(*) FROM runs WHERE chat_id = (SELECT chat FROM here)
                       AND created_at_ms > ?3),
                    (SELECT max(at_ms) FROM fresh_starts
                     WHERE conversation_id = ?1 AND agent = ?2)"
        ))?
        .query_row(params![conversation_row, agent, now_ms - HOUR_MS], |row| {
            Ok(ChatStanding {
                runs_waiting: count_from(row.get(0)?),
                runs_working: count_from(row.get(1)?),
                posts_waiting: count_from(row.get(2)?),
                turns: count_from(row.get(3)?),
                runs_last_hour: count_from(row.get(4)?),
                afresh_since_ms: row.get(5)?,
            })
        })?;
    Ok(standing)
}
