//! Erasing a person or a conversation: from an order to nothing left of it in the files.
//!
//! An order is written into the ledger first (a file beside the database, and a row), so that a kill
//! at any instant is made good at the next start, and an older copy of the database that is put back
//! is brought up to date before anybody reads it. It is carried out in bounded batches of one
//! transaction each, live writes between them: `blank` empties the turns themselves and what was made
//! of them, `traces` notes what of their text was theirs alone, `sweep` takes that out of everything
//! else, and `files` removes old copies and searches the files. Ids stay, so that nothing comes back.
//!
//! Reading order: `target`, `ledger`, `orders`, `asked`, `work`, `blank`, `traces`, `needles`, `sweep`, `files`.

mod asked;
mod blank;
mod files;
mod ledger;
mod needles;
mod orders;
mod sweep;
mod target;
mod traces;
mod work;

pub use files::{FileHit, Verification};
pub use ledger::{LedgerEntry, LedgerKind};
pub use orders::{Erasure, ErasureCounts, ErasureId};
pub use target::{ErasurePlan, ErasureTarget};
pub use work::CarriedOut;

pub(super) use asked::{Forgotten, order_txn};
pub(super) use ledger::note_deleted_txn;
pub(super) use orders::{Heard, is_erased};
pub(super) use work::settle_at_open;
