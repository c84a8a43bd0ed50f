//! The list: every table of the schema, by name.

use super::{
    BackupRule, Class, ErasureRule, ExpiryRule, ExportRule, Fate, MergeRule, Restore, RowOwner,
    StoreTable, TextColumns,
};

/// Why an erasure leaves a row as it is.
const SAYS_NOTHING: &str = "it holds ids, times and counts, and nothing that was said";
/// Why a delete of a message leaves a row as it is.
const OTHER_SOURCE: &str = "it was not made from the message";
/// Why a merge leaves a row as it is.
const NO_CHAT: &str = "it names no chat, conversation or turn";
/// Why a merge leaves a row as it is whose parent moves.
const BY_PARENT: &str = "it belongs to a row that moves";
/// Why age leaves a row as it is.
const IS_SMALL: &str = "it is no copy of what was said, and small";
/// Why an export leaves a row out.
const HOW_MADE: &str = "an export says what was said, and not how it came about";
/// Whose what is made of files is: nobody said it, and it is made anew from them.
const DOCUMENTS: &str =
    "what is made of the operator's files is the operator's: it goes with the files";
/// Why an export leaves a row out.
const OWN_STATE: &str = "it is the daemon's own state";

/// A table that says nothing about people: only a restore, a merge or age may have to do with it.
const STATE: Fate = Fate {
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
const OF_TURN: Fate = Fate {
    person: ErasureRule::Deleted,
    chat: ErasureRule::Deleted,
    message: ErasureRule::Deleted,
    merge: MergeRule::FollowsTurn,
    expiry: ExpiryRule::Deleted(Class::Text),
    export: ExportRule::Nothing(HOW_MADE),
    ..STATE
};

/// How an answer was made.
const OF_RUN: Fate = Fate {
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

/// Every table, by name.
pub(crate) const TABLES: &[StoreTable] = &[
    account("account_reach", text(&[], &[], &[]), STATE),
    account(
        "accounts",
        text(
            &[],
            &[],
            &["platform", "platform_id", "name", "held_reason", "bot"],
        ),
        STATE,
    ),
    account(
        "approval_grants",
        text(&[], &[], &["agent", "tool", "operator", "revoked_by"]),
        Fate {
            merge: MergeRule::Moves,
            ..STATE
        },
    ),
    account(
        "approvals",
        text(
            &["note", "outcomes"],
            &[],
            &[
                "tool",
                "target",
                "asking",
                "approvers",
                "state",
                "operator",
                "via",
                "parameters",
                "operator_people",
            ],
        ),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            restore: Restore::Held,
            ..OF_RUN
        },
    ),
    nobody(
        "audit",
        "what those who run the daemon looked at and did in the console",
        text(&[], &[], &["who", "via", "act", "target", "outcome"]),
        Fate {
            merge: MergeRule::Nothing("it says what somebody did, of the room as it was then"),
            expiry: ExpiryRule::Nothing(
                "an audit that gets shorter by itself is none, and its rows are small",
            ),
            ..STATE
        },
    ),
    account("channels", text(&[], &[], &["name"]), STATE),
    account(
        "chat_ids",
        text(&[], &[], &["platform_id"]),
        Fate {
            merge: MergeRule::Moves,
            ..STATE
        },
    ),
    account(
        "chat_merges",
        text(&[], &[], &[]),
        Fate {
            merge: MergeRule::Joined,
            ..STATE
        },
    ),
    account(
        "chat_reach",
        text(&[], &[], &["chat", "gap_reason"]),
        Fate {
            merge: MergeRule::Nothing("it is kept by the platform's id of the chat"),
            ..STATE
        },
    ),
    account(
        "chats",
        text(&[], &["title"], &["platform_id", "kind", "parked_reason"]),
        Fate {
            person: ErasureRule::Nothing(
                "a room's title is not theirs; that of a direct chat goes",
            ),
            chat: ErasureRule::Nothing(
                "a room's title is not what was said in it; that of a direct chat goes",
            ),
            message: ErasureRule::Nothing(OTHER_SOURCE),
            merge: MergeRule::Joined,
            export: ExportRule::Exported,
            ..STATE
        },
    ),
    nobody(
        "context_limits",
        "what the contexts of models hold",
        text(&[], &[], &["model"]),
        STATE,
    ),
    account(
        "conversation_merges",
        text(&[], &[], &[]),
        Fate {
            merge: MergeRule::Joined,
            ..STATE
        },
    ),
    account(
        "conversations",
        text(&[], &["title", "own_title"], &["thread", "own_title_from"]),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            // A title that a model made of what was said; what people call the room stays.
            message: ErasureRule::Emptied,
            merge: MergeRule::Joined,
            expiry: ExpiryRule::Emptied(Class::Text),
            export: ExportRule::Exported,
            ..STATE
        },
    ),
    account(
        "cost_days",
        text(&[], &[], &["agent", "model"]),
        Fate {
            merge: MergeRule::Joined,
            ..STATE
        },
    ),
    account(
        "delegations",
        text(&["task", "result"], &[], &["asked_by", "state"]),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            restore: Restore::Held,
            ..OF_RUN
        },
    ),
    nobody(
        "dropped_contents",
        "hashes of files that are about to be removed",
        text(&[], &[], &[]),
        STATE,
    ),
    nobody(
        "embedding_models",
        "models are the operator's",
        text(&[], &[], &["name"]),
        Fate {
            merge: MergeRule::Joined,
            ..STATE
        },
    ),
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
    account(
        "feedback",
        text(&[], &[], &["thumb"]),
        Fate {
            message: ErasureRule::Nothing(OTHER_SOURCE),
            ..OF_RUN
        },
    ),
    account(
        "files",
        text(
            &["transcript"],
            &[],
            &["platform_id", "state", "reason", "speech"],
        ),
        Fate {
            export: ExportRule::Exported,
            backup: BackupRule::WithFiles,
            ..OF_TURN
        },
    ),
    account(
        "firings",
        text(&[], &[], &["outcome"]),
        Fate {
            person: ErasureRule::Deleted,
            chat: ErasureRule::Deleted,
            message: ErasureRule::Deleted,
            merge: MergeRule::Nothing(BY_PARENT),
            ..STATE
        },
    ),
    account(
        "former_names",
        text(&[], &["display_name", "username"], &[]),
        Fate {
            chat: ErasureRule::Nothing("it names people, who may be elsewhere, too"),
            message: ErasureRule::Nothing(OTHER_SOURCE),
            merge: MergeRule::Nothing(NO_CHAT),
            ..OF_RUN
        },
    ),
    account(
        "fresh_starts",
        text(&[], &[], &["agent"]),
        Fate {
            merge: MergeRule::Joined,
            ..STATE
        },
    ),
    account(
        "hook_verdicts",
        text(&["reason", "changed"], &[], &["point", "hook", "verdict"]),
        OF_RUN,
    ),
    account("imports", text(&[], &[], &["fingerprint"]), STATE),
    account(
        "inquiries",
        text(&[], &[], &["kind", "agent", "target", "person"]),
        Fate {
            merge: MergeRule::Moves,
            restore: Restore::Emptied,
            ..STATE
        },
    ),
    account("involvements", text(&[], &[], &["agent", "how"]), OF_TURN),
    account(
        "jobs",
        text(
            &[],
            &[],
            &["kind", "key", "payload", "state", "waits_for", "cause"],
        ),
        Fate {
            // What is to be done with a file goes with its turn.
            merge: MergeRule::Nothing(NO_CHAT),
            // Inquiries are not answered again.
            restore: Restore::Emptied,
            export: ExportRule::Nothing(OWN_STATE),
            ..OF_TURN
        },
    ),
    nobody(
        "knowledge_chunks",
        DOCUMENTS,
        text(&[], &[], &["headings", "content"]),
        STATE,
    ),
    nobody(
        "knowledge_collections",
        DOCUMENTS,
        text(&[], &[], &["name", "roots", "problems"]),
        STATE,
    ),
    nobody(
        "knowledge_documents",
        DOCUMENTS,
        text(&[], &[], &["root", "path", "stamp", "title", "refused"]),
        STATE,
    ),
    nobody(
        "knowledge_stems",
        DOCUMENTS,
        text(&[], &[], &["stems"]),
        STATE,
    ),
    nobody(
        "knowledge_words",
        DOCUMENTS,
        text(&[], &[], &["stem"]),
        STATE,
    ),
    account(
        "link_codes",
        text(&[], &[], &["code_digest", "chat"]),
        Fate {
            person: ErasureRule::Deleted,
            merge: MergeRule::Nothing("a direct chat is never merged"),
            ..STATE
        },
    ),
    nobody(
        "mcp_tools",
        "what servers of tools offer is the operator's",
        text(&[], &[], &["server", "tool", "approved", "waiting"]),
        STATE,
    ),
    account(
        "memories",
        text(
            &["text"],
            &[],
            &["agent", "kind", "learnt_kind", "origin", "share"],
        ),
        Fate {
            merge: MergeRule::Moves,
            export: ExportRule::Nothing("it is a note of what is exported"),
            ..OF_TURN
        },
    ),
    account(
        "memory_marks",
        text(&[], &[], &["agent"]),
        Fate {
            merge: MergeRule::Joined,
            ..STATE
        },
    ),
    account("memory_rereads", text(&[], &[], &["agent"]), OF_TURN),
    account("memory_sources", text(&[], &[], &[]), OF_TURN),
    account(
        "memory_writes",
        text(&[], &[], &["outcome"]),
        Fate {
            person: ErasureRule::Nothing(SAYS_NOTHING),
            chat: ErasureRule::Nothing(SAYS_NOTHING),
            message: ErasureRule::Nothing(SAYS_NOTHING),
            ..OF_RUN
        },
    ),
    account(
        "messages",
        text(&["text"], &[], &["platform_id", "edit_marker", "gone"]),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            expiry: ExpiryRule::Emptied(Class::Text),
            export: ExportRule::Nothing("its text is part of its turn's"),
            ..OF_TURN
        },
    ),
    nobody(
        "migrations",
        "the schema's own",
        text(&[], &[], &["name"]),
        STATE,
    ),
    nobody(
        "model_rests",
        "models are the operator's",
        text(&[], &[], &["model", "reason"]),
        STATE,
    ),
    account(
        "network_calls",
        text(
            &["text", "state"],
            &[],
            &["agent", "outcome", "note", "reason", "told", "tools"],
        ),
        OF_RUN,
    ),
    account(
        "network_decisions",
        text(
            &["state", "words"],
            &[],
            &["agent", "decided_by", "stack", "refused"],
        ),
        OF_RUN,
    ),
    account(
        "network_states",
        text(&["state"], &[], &["network", "since"]),
        // Its version stays: no run keeps what it made of values that are gone.
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            expiry: ExpiryRule::Emptied(Class::Text),
            merge: MergeRule::Joined,
            export: ExportRule::Nothing("agents made it of what is exported"),
            ..OF_TURN
        },
    ),
    account(
        "non_messages",
        text(
            &["text"],
            &[],
            &["kind", "platform_id", "sender_id", "chat"],
        ),
        Fate {
            person: ErasureRule::Deleted,
            chat: ErasureRule::Deleted,
            message: ErasureRule::Nothing(OTHER_SOURCE),
            expiry: ExpiryRule::Deleted(Class::Raw),
            export: ExportRule::Nothing("commands are no messages of the room"),
            ..STATE
        },
    ),
    account("numbers", text(&[], &[], &["sequence"]), STATE),
    account(
        "outbox",
        text(
            &["payload", "progress"],
            &[],
            &[
                "operation",
                "target",
                "state",
                "dead_cause",
                "reason",
                "message_id",
                "line",
                "sequence",
                "probing",
            ],
        ),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            merge: MergeRule::Moves,
            expiry: ExpiryRule::Emptied(Class::Text),
            export: ExportRule::Nothing("its text is the turn's"),
            restore: Restore::Held,
            ..STATE
        },
    ),
    account(
        "outbox_attempts",
        text(&[], &[], &["outcome"]),
        Fate {
            merge: MergeRule::Nothing(BY_PARENT),
            expiry: ExpiryRule::Deleted(Class::Runs),
            restore: Restore::Held,
            ..STATE
        },
    ),
    account(
        "pairings",
        text(
            &[],
            &[],
            &["person", "chat", "code_digest", "approved_by", "language"],
        ),
        Fate {
            merge: MergeRule::Nothing("a direct chat is never merged"),
            ..STATE
        },
    ),
    account(
        "participants",
        text(&[], &["display_name", "username"], &["kind", "platform_id"]),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Nothing("people may be elsewhere, too"),
            message: ErasureRule::Nothing(OTHER_SOURCE),
            expiry: ExpiryRule::Nothing("turns that stay bear their names"),
            export: ExportRule::Exported,
            ..STATE
        },
    ),
    nobody(
        "persons",
        "it joins people of several accounts",
        text(&[], &["name"], &[]),
        Fate {
            person: ErasureRule::Deleted,
            chat: ErasureRule::Nothing("people may be elsewhere, too"),
            message: ErasureRule::Nothing(OTHER_SOURCE),
            ..STATE
        },
    ),
    nobody(
        "prompt_texts",
        "instructions and tools are the operator's",
        text(&[], &[], &["text"]),
        STATE,
    ),
    nobody(
        "quarantine",
        "ids of rows of other tables",
        text(&[], &[], &["queue", "reason", "version"]),
        Fate {
            restore: Restore::AsItWas,
            ..STATE
        },
    ),
    account(
        "questions",
        text(
            &["question", "options", "outcomes", "asked_form"],
            &[],
            &["state", "card_message"],
        ),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            restore: Restore::Held,
            ..OF_RUN
        },
    ),
    account(
        "raw_envelopes",
        text(&["raw"], &[], &["reason"]),
        Fate {
            expiry: ExpiryRule::Deleted(Class::Raw),
            ..OF_TURN
        },
    ),
    account(
        "refolds",
        text(&[], &[], &[]),
        Fate {
            merge: MergeRule::Moves,
            ..STATE
        },
    ),
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
    account("revisions", text(&["content"], &[], &[]), OF_TURN),
    nobody(
        "run_clock",
        "one clock for all runs",
        text(&[], &[], &[]),
        STATE,
    ),
    account(
        "run_events",
        text(&["text"], &[], &["kind", "call_id", "tool"]),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            merge: MergeRule::Moves,
            restore: Restore::Emptied,
            ..OF_RUN
        },
    ),
    account("run_requests", text(&["given"], &[], &[]), OF_RUN),
    account(
        "run_sources",
        text(&[], &[], &[]),
        Fate {
            person: ErasureRule::Nothing(SAYS_NOTHING),
            chat: ErasureRule::Nothing(SAYS_NOTHING),
            message: ErasureRule::Nothing(SAYS_NOTHING),
            ..OF_TURN
        },
    ),
    account("run_taints", text(&[], &[], &["source", "tool"]), OF_RUN),
    account(
        "run_triggers",
        text(&[], &[], &["agent"]),
        Fate {
            merge: MergeRule::FollowsTurn,
            ..STATE
        },
    ),
    account(
        "runs",
        text(
            &[],
            &[],
            &[
                "agent",
                "asked_model",
                "state",
                "reason",
                "waiting_for",
                "stop_cause",
            ],
        ),
        Fate {
            merge: MergeRule::Moves,
            restore: Restore::Held,
            ..STATE
        },
    ),
    account(
        "schedules",
        text(
            &["task"],
            &[],
            &[
                "name",
                "made_by_message",
                "agent",
                "timing",
                "zone",
                "missed_rule",
                "state",
                "reason",
            ],
        ),
        Fate {
            person: ErasureRule::Deleted,
            chat: ErasureRule::Deleted,
            message: ErasureRule::Deleted,
            merge: MergeRule::Moves,
            expiry: ExpiryRule::Nothing(
                "it is to be done yet; of those that are over a chat keeps a few",
            ),
            restore: Restore::Held,
            ..STATE
        },
    ),
    account(
        "sent_prompts",
        text(&[], &["recipe"], &[]),
        Fate {
            person: ErasureRule::Nothing("it holds ids of turns and hashes of texts"),
            message: ErasureRule::Nothing("it holds ids of turns and hashes of texts"),
            ..OF_RUN
        },
    ),
    account("sequences", text(&[], &[], &["name"]), STATE),
    nobody(
        "skill_approvals",
        "what operators approve of their skills is the operators'",
        text(&[], &[], &["skill", "digest", "approved_by"]),
        STATE,
    ),
    nobody(
        "stem_index",
        "how far an index over all turns is",
        text(&[], &[], &[]),
        STATE,
    ),
    account("steps", text(&["message"], &[], &[]), OF_RUN),
    account(
        "summaries",
        text(
            &["text"],
            &[],
            &[
                "agent",
                "fingerprint",
                "covers",
                "counter",
                "model",
                "state",
            ],
        ),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            merge: MergeRule::Moves,
            expiry: ExpiryRule::Nothing("a summary is the room's memory of what went by its age"),
            export: ExportRule::Nothing("what it stands for is exported"),
            ..STATE
        },
    ),
    account(
        "summary_turns",
        text(&[], &[], &[]),
        Fate {
            merge: MergeRule::FollowsTurn,
            ..STATE
        },
    ),
    nobody(
        "telling_hooks",
        "which hooks are told is the operator's setting",
        text(&[], &[], &["agent", "point", "hook"]),
        STATE,
    ),
    account(
        "tellings",
        text(&[], &[], &["hook", "point", "outcome"]),
        Fate {
            merge: MergeRule::Nothing(BY_PARENT),
            expiry: ExpiryRule::Deleted(Class::Runs),
            ..STATE
        },
    ),
    nobody(
        "token_ratios",
        "how models count",
        text(&[], &[], &["model", "counter"]),
        STATE,
    ),
    account(
        "tool_calls",
        text(
            &["arguments", "result"],
            &[],
            &["call_id", "tool", "rule", "state", "refusal"],
        ),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            ..OF_RUN
        },
    ),
    account("tool_days", text(&[], &[], &["tool"]), STATE),
    account("turn_sources", text(&[], &[], &[]), OF_TURN),
    nobody(
        "turn_stems",
        "an index over turns, which are an account's",
        text(&["stems"], &[], &[]),
        Fate {
            export: ExportRule::Nothing("it is an index"),
            ..OF_TURN
        },
    ),
    nobody(
        "turn_text",
        "an index over turns, which are an account's",
        text(&["content"], &[], &["conversation"]),
        Fate {
            export: ExportRule::Nothing("it is an index"),
            ..OF_TURN
        },
    ),
    account("turn_vectors", text(&[], &[], &[]), OF_TURN),
    account(
        "turns",
        text(
            &["content", "attachments", "quote"],
            &[],
            &[
                "kind",
                "scope",
                "visibility",
                "reply_to_message",
                "call_id",
                "parent_call_id",
                "root_call_id",
                "counter",
                "album",
            ],
        ),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            merge: MergeRule::FollowsTurn,
            expiry: ExpiryRule::Emptied(Class::Text),
            export: ExportRule::Exported,
            ..STATE
        },
    ),
    account("turns_to_embed", text(&[], &[], &[]), OF_TURN),
    account("usage_days", text(&[], &[], &[]), STATE),
    account("usage_people", text(&[], &[], &[]), STATE),
    account(
        "vocabulary",
        text(&["stem"], &[], &[]),
        Fate {
            merge: MergeRule::Joined,
            export: ExportRule::Nothing("it is an index"),
            ..OF_TURN
        },
    ),
];

const fn account(name: &'static str, text: TextColumns, fate: Fate) -> StoreTable {
    StoreTable {
        name,
        owner: RowOwner::Account,
        text,
        fate,
    }
}

const fn nobody(
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

const fn text(
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
