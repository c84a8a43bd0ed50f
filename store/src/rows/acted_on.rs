//! Tables that no other file in `rows` reads or writes: each belongs to an act.

use crate::registry::{
    ErasureRule, ExpiryRule, Fate, OTHER_SOURCE, Restore, STATE, StoreTable, account, nobody, text,
};

/// These tables, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "erased_identities",
        text(&[], &[], &["kind", "platform_id", "chat"]),
        Fate {
            restore: Restore::AsItWas,
            ..STATE
        },
    ),
    account(
        "erasure_traces",
        text(&["text"], &[], &[]),
        Fate {
            person: ErasureRule::Deleted,
            chat: ErasureRule::Deleted,
            message: ErasureRule::Nothing(OTHER_SOURCE),
            expiry: ExpiryRule::Nothing("it goes when its erasure is done"),
            ..STATE
        },
    ),
    account(
        "erasures",
        text(
            &[],
            &[],
            &["kind", "platform_id", "chat", "phase", "reach", "reached"],
        ),
        STATE,
    ),
    account("imports", text(&[], &[], &["fingerprint"]), STATE),
    nobody(
        "migrations",
        "the schema's own",
        text(&[], &[], &["name"]),
        STATE,
    ),
    account("numbers", text(&[], &[], &["sequence"]), STATE),
    nobody(
        "restores",
        "restores are the whole store's",
        text(&[], &[], &[]),
        Fate {
            restore: Restore::Noted,
            ..STATE
        },
    ),
    account("retention", text(&[], &[], &["class"]), STATE),
    account("sequences", text(&[], &[], &["name"]), STATE),
];
