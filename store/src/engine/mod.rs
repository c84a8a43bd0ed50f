//! The database: writer, readers, opening, migrations, backup, damage.

pub(crate) mod backup;
pub(crate) mod beside;
pub(crate) mod content_copies;
pub(crate) mod contents;
pub(crate) mod damage;
pub(crate) mod disk;
pub(crate) mod error;
pub(crate) mod faults;
pub(crate) mod kept_copies;
pub(crate) mod lock;
pub(crate) mod open;
pub(crate) mod pages;
pub(crate) mod reader;
pub(crate) mod restore;
pub(crate) mod restore_traces;
pub(crate) mod schema;
pub(crate) mod sql;
pub(crate) mod untyped;
pub(crate) mod upgrade;
pub(crate) mod watch;
pub(crate) mod work;
pub(crate) mod writer;
