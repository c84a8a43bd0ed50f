//! Commands of people: carried out in the transaction that captures them, or stored there as an inquiry, which is
//! answered later. `core/judging/commands.rs` decides.
//!
//! A command is identified by its message, or by the platform's own id of it; received twice, it is carried
//! out once. Its answer is a post that is no turn, so that no prompt ever holds it. What a command does that has a
//! subject of its own is in a file beside this one, in `commands/`.

mod approvals;
mod links;
mod memories;
mod titles;

use std::path::Path;

use crate::acts::command_giver::CommandGiver;
use crate::acts::parking::hear_chat_txn;
use crate::capability::MayCapture;
use crate::engine::sql::Connection;
use crate::rows::accounts::platform_of;
use vocative_contract::envelope::{Place, Sender, SenderKind};
use vocative_contract::outbound::{Part, Target};

use crate::acts::erasure::{Forgotten, has_forgotten_lately, order_txn};
use crate::acts::learn::settle_kind_txn;
use crate::acts::overlap::{Stopped, stop_chat_txn};
use crate::acts::schedules::order_schedule_txn;
use crate::acts::triggers::Addressed;
use crate::contract::NonMessage;
use crate::rows::fresh_starts::{begin_afresh_txn, behind_everything};
use crate::rows::inquiries::{NewInquiry, inquire_txn};
use crate::rows::outbox_rows::{NewPosts, insert_posts_txn, said_to};
use crate::rows::participants::{HeardSender, upsert_participant_txn};
use crate::rows::places::{ConversationSeat, ensure_chat_txn, ensure_conversation_txn, find_chat};
use crate::rows::raw::keep_non_message_txn;
use crate::{Store, StoreError};
use vocative_core::command::{CommandFacts, CommandFate, CommandVerdict, Effect};
use vocative_core::ids::{AccountId, ChatId, ErasureId, RunId};
use vocative_core::turn::ParticipantKind;

/// Decides about a command, given what is known of its chat. Pure.
pub type CommandJudge = Box<dyn FnOnce(CommandFacts) -> Option<CommandVerdict> + Send>;

/// A command that is not a message.
pub struct NewCommand {
    /// The event that is stored of it.
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

impl<C: MayCapture> Store<C> {
    /// Captures a command that is not a message and carries it out, once, in one transaction.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses, and then nothing was written.
    pub async fn capture_command(&self, command: NewCommand) -> Result<CommandOutcome, StoreError> {
        let ledger = self.ledger_path();
        self.write(move |connection| capture_command_txn(connection, command, ledger.as_deref()))
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
    let verdict = match CommandFate::from(judge(facts)) {
        CommandFate::Keep => {
            let is_new = keep_non_message_txn(connection, &event)?;
            return Ok(CommandOutcome {
                is_new,
                ..CommandOutcome::default()
            });
        }
        CommandFate::Ignore => return Ok(CommandOutcome::default()),
        CommandFate::Refuse(verdict) => {
            let chat = ensure_chat_txn(connection, account, &place.chat)?.id;
            answer_txn(
                connection, account, chat, &sender.id, &target, &verdict, now_ms,
            )?;
            return Ok(CommandOutcome::default());
        }
        CommandFate::CarryOut(verdict) => verdict,
    };
    let chat = ensure_chat_txn(connection, account, &place.chat)?;
    if !keep_non_message_txn(connection, &event)? {
        return Ok(CommandOutcome::default());
    }
    // A command may be given in a chat that the bot is not in; it must not count as a sign that the bot is there.
    if facts.is_in_room {
        hear_chat_txn(connection, &chat, &place, now_ms)?;
    }
    settle_kind_txn(connection, &chat, place.kind, now_ms)?;
    let heard = HeardSender {
        kind: ParticipantKind::User,
        platform_id: &sender.id,
        display_name: sender.display_name.as_deref(),
        username: sender.username.as_deref(),
        is_bot: Some(sender.kind == SenderKind::Bot),
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

/// Carries out a command and commits its answer.
pub(crate) fn carry_out_txn(
    connection: &Connection,
    asker: &CommandGiver<'_>,
    verdict: &CommandVerdict,
) -> Result<Addressed, StoreError> {
    let mut done = Addressed::default();
    let mut answer = verdict.answer.clone();
    let forget = |what| order_txn(connection, asker.ledger, asker.account, &what, asker.now_ms);
    match &verdict.effect {
        Effect::Nothing => {}
        Effect::BeginAfresh { agents } => {
            let row = asker.conversation.row;
            begin_afresh_txn(connection, row, agents, asker.at, asker.now_ms)?;
        }
        Effect::Stop { of_everybody } => {
            let thread = Some(asker.conversation.row).filter(|_| asker.target.thread.is_some());
            let what = Stopped {
                chat: asker.chat,
                thread,
                person: asker.person,
                of_everybody: *of_everybody,
            };
            done.cancelled_runs = stop_chat_txn(connection, &what, asker.now_ms)?;
        }
        Effect::Inquire { inquiry, agent } => {
            let new = NewInquiry {
                inquiry: *inquiry,
                agent,
                account: asker.account,
                conversation_row: asker.conversation.row,
                target: &asker.target,
                person: verdict.is_private.then_some(asker.sender),
                now_ms: asker.now_ms,
            };
            inquire_txn(connection, &new)?;
        }
        Effect::Schedule(command) => {
            answer = Some(order_schedule_txn(connection, asker, command)?);
        }
        Effect::Approvals(command) => {
            answer = Some(approvals::order_approvals_txn(connection, asker, command)?);
        }
        Effect::Memory(command) => {
            answer = Some(memories::order_memory_txn(connection, asker, command)?);
        }
        Effect::Title(command) => {
            answer = Some(titles::order_title_txn(connection, asker, command)?);
        }
        Effect::Link(command) => {
            answer = Some(links::order_link_txn(
                connection,
                asker,
                command,
                verdict.is_private,
            )?);
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
    let verdict = CommandVerdict {
        answer,
        ..verdict.clone()
    };
    answer_txn(
        connection,
        asker.account,
        asker.chat,
        asker.sender,
        &asker.target,
        &verdict,
        asker.now_ms,
    )?;
    Ok(done)
}

/// Commits the immediate answer to a command.
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
    // The answer may quote people's words, which must not be read as markup.
    let platform = platform_of(connection, account)?;
    let person = verdict.is_private.then(|| sender.to_owned());
    let posts = NewPosts {
        account,
        chat,
        turn: None,
        run_row: None,
        operation: &said_to(person),
        target,
        parts: &[Part::plain(platform.as_text(answer))],
        now_ms,
    };
    insert_posts_txn(connection, &posts).map(drop)
}
