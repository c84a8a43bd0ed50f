//! Erases a person or a conversation, from the order until nothing is left in the files.
//!
//! An order is written into the ledger first (a file beside the database, and a row), so that a kill
//! at any instant is made good at the next start, and an older copy of the database that is put back
//! is brought up to date before anybody reads it. It is carried out in bounded batches of one
//! transaction each, live writes between them: `blank` empties the turns themselves and what was made
//! from them, `traces` notes which parts of their text nobody else said, `sweep` removes those from everything
//! else, and `files` removes old copies and searches the files. Ids stay, so that nothing comes back.
//!
//! What a person asks for themselves reaches less far than an operator's order: their turns and what was
//! certainly made from them, in their account. It has no traces, stops only the runs that `readers` finds to
//! have read them, and leaves copies to the operator.
//!
//! A message that was deleted on its platform is erased by `deletes`.
//!
//! Reading order: `target`, `ledger`, `orders`, `asked`, `deletes`, `work`, `blank`, `readers`, `traces`, `needles`,
//! `sweep`, `files`.

mod asked;
mod blank;
mod columns;
mod deletes;
mod files;
mod ledger;
mod needles;
mod orders;
mod readers;
mod sweep;
mod target;
mod traces;
mod work;

pub use columns::ColumnHit;
pub use files::{FileHit, Verification};
pub use ledger::{LedgerEntry, LedgerKind, OrderReach};
pub use orders::{Erasure, ErasureCounts, ErasureId};
pub use target::{ErasurePlan, ErasureTarget};
pub use work::CarriedOut;

pub(crate) use asked::{Forgotten, has_forgotten_lately, order_txn};
pub(crate) use ledger::note_deleted_txn;
pub(crate) use orders::{IncomingMessage, is_erased};
pub(crate) use work::settle_at_open;

/// `text` without the traces of `of`; `None` if it holds none.
pub(crate) fn without_traces(of: &str, text: &str) -> Option<String> {
    traces::needles_of(of).cut(text)
}

/// The statements that run repeatedly while the words of one person's own order are blanked.
#[cfg(test)]
pub(crate) const STATEMENTS_OF_OWN: [&str; 6] = [
    asked::LATELY_SQL,
    blank::OF_PERSON_SQL,
    blank::OF_ROOM_SQL,
    sweep::UNTRANSLATED_SQL,
    sweep::COMMANDS_SQL,
    super::made_from::MADE_FROM_SQL,
];
