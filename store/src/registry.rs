//! The registry of tables: what becomes of each table's rows, and which of its columns hold what people said.
//!
//! The registry is data. Merges, erasures and expiry read the links of a table from it, and `erase --verify` where words
//! may be. The tests of the store check the database against it: they fail if a table or a text column of the schema is
//! missing here, or if an act does something else than is declared. This file has the types of the declarations; the
//! declaration of a table is in the file of `rows` that reads and writes the table.

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

/// A table and what is declared of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreTable {
    /// Its name.
    pub(crate) name: &'static str,
    /// Who owns its rows.
    pub(crate) owner: RowOwner,
    /// What its text columns hold.
    pub(crate) text: TextColumns,
    /// What becomes of its rows.
    pub(crate) fate: Fate,
    /// The columns by which a merge, an erasure and expiry find its rows, where nothing else is to be done to them.
    pub(crate) links: RowLinks,
}

/// The columns that link the rows of a table to turns, chats and people. The acts read them, so a table that is
/// declared here needs no statement of its own in them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowLinks {
    /// Columns with the seq of a turn, with an index where a table has many rows: a merge writes the turn's new seq into
    /// them.
    pub(crate) turns: &'static [&'static str],
    /// The column with the turn that a row belongs to: the row is deleted when the turn is erased, deleted or expires.
    pub(crate) owner_turn: Option<&'static str>,
    /// The column with the person that a row belongs to: the row is deleted when the person is erased.
    pub(crate) owner_person: Option<&'static str>,
    /// The column with a chat of few rows: a merge writes the chat that stays into it.
    pub(crate) chat: Option<&'static str>,
    /// The column with a conversation of few rows: a merge writes the one that stays into it.
    pub(crate) conversation: Option<&'static str>,
}

impl RowLinks {
    const NONE: Self = Self {
        turns: &[],
        owner_turn: None,
        owner_person: None,
        chat: None,
        conversation: None,
    };
}

/// Who owns the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowOwner {
    /// An account: a column or a foreign key leads to it.
    Account,
    /// No account, and why.
    Nobody(&'static str),
}

/// The text columns of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextColumns {
    /// Columns of what people said, or of text that repeats it.
    pub(crate) words: &'static [&'static str],
    /// Columns of names of people and rooms.
    pub(crate) names: &'static [&'static str],
    /// All other columns: ids, words of closed lists, figures, and text of this program's or a platform's own.
    pub(crate) plain: &'static [&'static str],
}

/// What becomes of the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    /// When an operator erases a person.
    pub(crate) person: ErasureRule,
    /// When an operator erases a chat.
    pub(crate) chat: ErasureRule,
    /// When a message is deleted.
    pub(crate) message: ErasureRule,
    /// When two chats become one.
    pub(crate) merge: MergeRule,
    /// When they are older than their channel keeps.
    pub(crate) expiry: ExpiryRule,
    /// Whether an export of a conversation holds them.
    pub(crate) export: ExportRule,
    /// What a backup does with them.
    pub(crate) backup: BackupRule,
    /// When a backup takes the database's place.
    pub(crate) restore: Restore,
}

/// What an erasure does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErasureRule {
    /// The row goes.
    Deleted,
    /// The words and names in it go: a column is emptied, or the row is deleted if it holds nothing else.
    Emptied,
    /// The row stays as it is, and why.
    Nothing(&'static str),
}

/// What a merge of two chats does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeRule {
    /// The row goes to the chat or conversation that stays.
    Moves,
    /// The row refers to a turn, and gets the turn's new seq.
    FollowsTurn,
    /// Two rows become one that holds what both knew.
    Joined,
    /// The row stays as it is, and why.
    Nothing(&'static str),
}

/// What happens to a row by its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpiryRule {
    /// The row is deleted, with a class of `retention_days`.
    Deleted(Class),
    /// The row stays, but its words are removed.
    Emptied(Class),
    /// The row stays as it is, and why.
    Nothing(&'static str),
}

/// A class of data that `retention_days` limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Turns and their copies.
    Text,
    /// Events that did not become a turn.
    Raw,
    /// How answers were made.
    Runs,
}

/// Whether a conversation's export holds a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportRule {
    /// The export holds them.
    Exported,
    /// The export leaves them out, and why.
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
    /// The rows stay as they are in the backup.
    AsItWas,
    /// Open entries wait for a person.
    Held,
    /// Rows of work in progress are removed.
    Emptied,
    /// A row is added that records the restore.
    Noted,
}

impl StoreTable {
    /// The columns that may hold words or names of people.
    pub(crate) fn spoken(&self) -> impl Iterator<Item = &'static str> {
        self.text.words.iter().chain(self.text.names).copied()
    }

    /// Its columns with the seq of a turn.
    pub(crate) const fn follows(mut self, columns: &'static [&'static str]) -> Self {
        self.links.turns = columns;
        self
    }

    /// The column with the turn that a row is deleted with.
    pub(crate) const fn goes_with_turn(mut self, column: &'static str) -> Self {
        self.links.owner_turn = Some(column);
        self
    }

    /// The column with the person that a row is deleted with.
    pub(crate) const fn goes_with_person(mut self, column: &'static str) -> Self {
        self.links.owner_person = Some(column);
        self
    }

    /// The column with the chat that a row moves with.
    pub(crate) const fn moves_with_chat(mut self, column: &'static str) -> Self {
        self.links.chat = Some(column);
        self
    }

    /// The column with the conversation that a row moves with.
    pub(crate) const fn moves_with_conversation(mut self, column: &'static str) -> Self {
        self.links.conversation = Some(column);
        self
    }
}

/// Why an erasure leaves a row as it is.
pub(crate) const SAYS_NOTHING: &str = "it holds ids, times and counts, and nothing that was said";
/// Why a delete of a message leaves a row as it is.
pub(crate) const OTHER_SOURCE: &str = "it was not made from the message";
/// Why a merge leaves a row as it is.
pub(crate) const NO_CHAT: &str = "it names no chat, conversation or turn";
/// Why a merge leaves a row as it is when the row's parent moves.
pub(crate) const BY_PARENT: &str = "it belongs to a row that moves";
/// Why age leaves a row as it is.
pub(crate) const IS_SMALL: &str = "it is no copy of what was said, and small";
/// Why an export leaves a row out.
pub(crate) const HOW_MADE: &str = "an export says what was said, and not how it came about";
/// Why rows made from operators' files belong to no account: no person said them, and they can be made again.
pub(crate) const DOCUMENTS: &str =
    "what is made of the operator's files is the operator's: it goes with the files";
/// Why an export leaves a row out.
pub(crate) const OWN_STATE: &str = "it is the daemon's own state";

/// The fate of a table that says nothing about people: only a restore, a merge or age may concern it.
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

/// The fate of rows that belong to a turn and are deleted with it.
pub(crate) const OF_TURN: Fate = Fate {
    person: ErasureRule::Deleted,
    chat: ErasureRule::Deleted,
    message: ErasureRule::Deleted,
    merge: MergeRule::FollowsTurn,
    expiry: ExpiryRule::Deleted(Class::Text),
    export: ExportRule::Nothing(HOW_MADE),
    ..STATE
};

/// The fate of rows that record how an answer was made.
pub(crate) const OF_RUN: Fate = Fate {
    person: ErasureRule::Deleted,
    chat: ErasureRule::Deleted,
    message: ErasureRule::Deleted,
    merge: MergeRule::Nothing(BY_PARENT),
    expiry: ExpiryRule::Deleted(Class::Runs),
    export: ExportRule::Nothing(HOW_MADE),
    ..STATE
};

/// The full-text indexes: they hold single words, but no texts of their own.
pub(crate) const FULL_TEXT: [&str; 3] = ["knowledge_stems", "turn_stems", "turn_text"];

/// A table whose rows are an account's.
pub(crate) const fn account(name: &'static str, text: TextColumns, fate: Fate) -> StoreTable {
    StoreTable {
        name,
        owner: RowOwner::Account,
        text,
        fate,
        links: RowLinks::NONE,
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
        links: RowLinks::NONE,
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
