//! Commands of a person about links to their accounts elsewhere, carried out in the transaction that captures
//! them. `core/linking.rs` says what a link is.

use crate::StoreError;
use crate::acts::command_giver::CommandGiver;
use crate::acts::notices::tell_chat_txn;
use crate::engine::sql::Connection;
use crate::rows::accounts::platform_of;
use crate::rows::links::{
    CodeOwner, Joined, account_label, join_txn, joined_labels, leave_txn, make_link_code_txn,
    may_try, note_wrong_code_txn, owner_of_code, use_up_code_txn,
};
use crate::rows::places::ensure_chat_txn;
use vocative_core::code::Code;
use vocative_core::linking::{LINKED_MAX, LinkCommand, LinkOrder};
use vocative_core::words::Language;

/// Carries out what a person asks for about their accounts. `is_private`: whether they alone see the answer. Returns
/// what they are told.
pub(crate) fn order_link_txn(
    connection: &Connection,
    asker: &CommandGiver<'_>,
    command: &LinkCommand,
    is_private: bool,
) -> Result<String, StoreError> {
    let language = command.language;
    match &command.order {
        LinkOrder::Ask => {
            let told_in = (asker.platform_chat, is_private);
            let code = make_link_code_txn(connection, asker.person, told_in, asker.now_ms)?;
            let joined = joined_labels(connection, asker.person)?;
            let mut lines = vec![language.link_code(code.shown())];
            if !joined.is_empty() {
                lines.push(language.link_accounts(joined.join(", ")));
            }
            Ok(lines.join("\n"))
        }
        LinkOrder::Say { code } => say_txn(connection, asker, code, language),
        LinkOrder::TakeAway => Ok(match leave_txn(connection, asker.person)? {
            true => language.link_taken_away(),
            false => language.link_not_there(),
        }),
        LinkOrder::Other => Ok(language.link_code_wrong()),
    }
}

fn say_txn(
    connection: &Connection,
    asker: &CommandGiver<'_>,
    code: &Code,
    language: Language,
) -> Result<String, StoreError> {
    if !may_try(connection, asker.person, asker.now_ms)? {
        return Ok(language.link_tries_used_up());
    }
    let Some(owner) = owner_of_code(connection, code, asker.now_ms)? else {
        note_wrong_code_txn(connection, asker.person, asker.now_ms)?;
        return Ok(language.link_code_wrong());
    };
    if owner.participant == asker.person {
        return Ok(language.link_code_is_own());
    }
    use_up_code_txn(connection, owner.participant)?;
    let label = account_label(connection, owner.participant)?;
    match join_txn(connection, asker.person, owner.participant)? {
        Joined::Before => Ok(language.link_is_there(label)),
        Joined::Full => Ok(language.link_full(LINKED_MAX)),
        Joined::Now => {
            let said_by = account_label(connection, asker.person)?;
            tell_txn(
                connection,
                &owner,
                &language.link_was_said(said_by),
                asker.now_ms,
            )?;
            Ok(language.link_done(label))
        }
    }
}

/// Tells the owner of a code that it was said, where they were told the code.
fn tell_txn(
    connection: &Connection,
    owner: &CodeOwner,
    text: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let chat = ensure_chat_txn(connection, owner.account, &owner.chat)?;
    let text = platform_of(connection, owner.account)?.as_text(text);
    // Sent to the person alone only where the bot is no member: they see such a post only if they are present then.
    let person = owner.person.as_deref().filter(|_| chat.last_heard_ms == 0);
    let place = (owner.account, chat.id);
    tell_chat_txn(connection, place, (&owner.chat, person), &text, now_ms)
}
