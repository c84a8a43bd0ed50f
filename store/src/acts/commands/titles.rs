//! Commands of a person about a conversation's title: to show, set or remove it, in the transaction that captures the
//! command. `core/title.rs` cleans titles.

use crate::StoreError;
use crate::acts::command_giver::CommandGiver;
use crate::engine::sql::Connection;
use crate::rows::names::NameLookup;
use crate::rows::titles::{give_title_txn, own_title, take_title_txn};
use crate::views::overview::title_without_own;
use vocative_core::title::{TitleCommand, TitleOrder, clean_title};

/// Carries out what a person asks for about the title of their conversation. Returns what they are told.
pub(crate) fn order_title_txn(
    connection: &Connection,
    asker: &CommandGiver<'_>,
    command: &TitleCommand,
) -> Result<String, StoreError> {
    let (language, row) = (command.language, asker.conversation.row);
    let own = own_title(connection, row)?;
    let is_kept = own.as_ref().is_some_and(|own| own.is_operators) && !command.is_admin;
    match (&command.order, own) {
        (TitleOrder::Tell, Some(own)) => Ok(language.title_is(own.text)),
        (TitleOrder::Tell, None) => {
            let shown = title_without_own(connection, asker.conversation.id, row)?;
            Ok(language.title_is_none(shown))
        }
        _ if is_kept => Ok(language.title_is_operators()),
        (TitleOrder::Give { text }, _) => {
            let named = NameLookup::new(connection, asker.account).named(text)?;
            let Some(title) = clean_title(&named) else {
                return Ok(language.title_says_nothing());
            };
            give_title_txn(connection, row, &title, asker.person)?;
            // The title is the person's words: it is stored only in its column, where an erasure finds it.
            Ok(language.title_given())
        }
        (TitleOrder::TakeAway, Some(_)) => {
            take_title_txn(connection, row)?;
            Ok(language.title_taken_away())
        }
        (TitleOrder::TakeAway, None) => Ok(language.title_not_there()),
    }
}
