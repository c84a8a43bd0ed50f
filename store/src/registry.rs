//! The registry of tables: what becomes of each table's rows, and which of its columns hold what people said.
//!
//! It is data, and the tests of the store hold the database to it: a table or a text column of the schema that
//! has no answer fails them, and so does an answer that isn't what an erasure, a merge, expiry or a restore does.
//! `erase --verify` reads it to know where words may be. Here are the words of the answers; those of a table stand in the
//! file of `rows` that reads and writes it.

#![cfg_attr(
    not(test),
    allow(
        dead_code,
        reason = "the tests hold the schema and the acts to the answers"
    )
)]

/// The table whose rows refer to stored contents, by `sha256` and `size_bytes`.
macro_rules! refers_to_contents {
    () => {
        "files"
    };
}
pub(crate) use refers_to_contents;

/// A table and its answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreTable {
    /// Its name.
    pub(crate) name: &'static str,
    /// Whose its rows are.
    pub(crate) owner: RowOwner,
    /// What its text columns hold.
    pub(crate) text: TextColumns,
    /// What becomes of its rows.
    pub(crate) fate: Fate,
}

/// Whose rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowOwner {
    /// An account's: a column or a foreign key leads to it.
    Account,
    /// No account's, and why.
    Nobody(&'static str),
}

/// The text columns of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextColumns {
    /// What people said, or what repeats it.
    pub(crate) words: &'static [&'static str],
    /// How people and rooms are called.
    pub(crate) names: &'static [&'static str],
    /// Neither: ids, words of closed lists, figures, and what this program or a platform says itself.
    pub(crate) plain: &'static [&'static str],
}

/// What becomes of the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    /// When a person is erased by an operator.
    pub(crate) person: ErasureRule,
    /// When a chat is.
    pub(crate) chat: ErasureRule,
    /// When a message is deleted.
    pub(crate) message: ErasureRule,
    /// When two chats become one.
    pub(crate) merge: MergeRule,
    /// When they are older than their channel keeps.
    pub(crate) expiry: ExpiryRule,
    /// Whether an export of a conversation holds them.
    pub(crate) export: ExportRule,
    /// In a backup.
    pub(crate) backup: BackupRule,
    /// When a backup takes the database's place.
    pub(crate) restore: Restore,
}

/// What an erasure does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErasureRule {
    /// The row goes.
    Deleted,
    /// What was said or named in it goes: as a column, or the row where it is no more than that.
    Emptied,
    /// The row stays as it is, and why.
    Nothing(&'static str),
}

/// What a merge of two chats does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeRule {
    /// The row goes to the chat or conversation that stays.
    Moves,
    /// The row names a turn, and its new seq with it.
    FollowsTurn,
    /// Two rows become one that holds what both knew.
    Joined,
    /// The row stays as it is, and why.
    Nothing(&'static str),
}

/// What age does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpiryRule {
    /// The row goes, with a class of `retention_days`.
    Deleted(Class),
    /// The row stays, without words.
    Emptied(Class),
    /// The row stays as it is, and why.
    Nothing(&'static str),
}

/// A class of what `retention_days` lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Turns and the copies of them.
    Text,
    /// What did not become a turn.
    Raw,
    /// How answers were made.
    Runs,
}

/// Whether a conversation's export holds a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportRule {
    /// It does.
    Exported,
    /// It does not, and why.
    Nothing(&'static str),
}

/// What a backup does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackupRule {
    /// The rows are copied.
    Copied,
    /// The rows are copied, and the files that they name.
    WithFiles,
}

/// What a restore does, before erasures are carried out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restore {
    /// The rows are those of the backup.
    AsItWas,
    /// What was open waits for a person.
    Held,
    /// What it held of work under way goes.
    Emptied,
    /// A row says that there was one.
    Noted,
}

impl StoreTable {
    /// The columns that may hold what somebody said or is called.
    pub(crate) fn spoken(&self) -> impl Iterator<Item = &'static str> {
        self.text.words.iter().chain(self.text.names).copied()
    }
}

/// Why an erasure leaves a row as it is.
pub(crate) const SAYS_NOTHING: &str = "it holds ids, times and counts, and nothing that was said";
/// Why a delete of a message leaves a row as it is.
pub(crate) const OTHER_SOURCE: &str = "it was not made from the message";
/// Why a merge leaves a row as it is.
pub(crate) const NO_CHAT: &str = "it names no chat, conversation or turn";
/// Why a merge leaves a row as it is whose parent moves.
pub(crate) const BY_PARENT: &str = "it belongs to a row that moves";
/// Why age leaves a row as it is.
pub(crate) const IS_SMALL: &str = "it is no copy of what was said, and small";
/// Why an export leaves a row out.
pub(crate) const HOW_MADE: &str = "an export says what was said, and not how it came about";
/// Whose what is made of files is: nobody said it, and it is made anew from them.
pub(crate) const DOCUMENTS: &str =
    "what is made of the operator's files is the operator's: it goes with the files";
/// Why an export leaves a row out.
pub(crate) const OWN_STATE: &str = "it is the daemon's own state";

/// A table that says nothing about people: only a restore, a merge or age may have to do with it.
pub(crate) const STATE: Fate = Fate {
    person: ErasureRule::Nothing(SAYS_NOTHING),
    chat: ErasureRule::Nothing(SAYS_NOTHING),
    message: ErasureRule::Nothing(SAYS_NOTHING),
    merge: MergeRule::Nothing(NO_CHAT),
    expiry: ExpiryRule::Nothing(IS_SMALL),
    export: ExportRule::Nothing(OWN_STATE),
    backup: BackupRule::Copied,
    restore: Restore::AsItWas,
};

/// What hangs on a turn and goes with it.
pub(crate) const OF_TURN: Fate = Fate {
    person: ErasureRule::Deleted,
    chat: ErasureRule::Deleted,
    message: ErasureRule::Deleted,
    merge: MergeRule::FollowsTurn,
    expiry: ExpiryRule::Deleted(Class::Text),
    export: ExportRule::Nothing(HOW_MADE),
    ..STATE
};

/// How an answer was made.
pub(crate) const OF_RUN: Fate = Fate {
    person: ErasureRule::Deleted,
    chat: ErasureRule::Deleted,
    message: ErasureRule::Deleted,
    merge: MergeRule::Nothing(BY_PARENT),
    expiry: ExpiryRule::Deleted(Class::Runs),
    export: ExportRule::Nothing(HOW_MADE),
    ..STATE
};

/// The full-text indexes: they hold words, and no texts of their own.
pub(crate) const FULL_TEXT: [&str; 3] = ["knowledge_stems", "turn_stems", "turn_text"];

/// A table whose rows are an account's.
pub(crate) const fn account(name: &'static str, text: TextColumns, fate: Fate) -> StoreTable {
    StoreTable {
        name,
        owner: RowOwner::Account,
        text,
        fate,
    }
}

/// A table whose rows are no account's, and why.
pub(crate) const fn nobody(
    name: &'static str,
    why: &'static str,
    text: TextColumns,
    fate: Fate,
) -> StoreTable {
    StoreTable {
        name,
        owner: RowOwner::Nobody(why),
        text,
        fate,
    }
}

/// What text columns hold: words, names, or neither.
pub(crate) const fn text(
    words: &'static [&'static str],
    names: &'static [&'static str],
    plain: &'static [&'static str],
) -> TextColumns {
    TextColumns {
        words,
        names,
        plain,
    }
}
