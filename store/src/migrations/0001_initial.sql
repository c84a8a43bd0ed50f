-- The first schema. Instants are milliseconds since the Unix epoch; enums are their stored names;
-- JSON columns carry a version inside. Row ids never leave the store.

CREATE TABLE accounts (
    id           INTEGER PRIMARY KEY,
    platform     TEXT NOT NULL,
    platform_id  TEXT NOT NULL,
    name         TEXT NOT NULL,
    held_reason  TEXT,                       -- set while the platform refuses the account
    last_captured_ms INTEGER,
    UNIQUE (platform, platform_id)
) STRICT;

-- Which configured channel is bound to which account.
CREATE TABLE channels (
    name         TEXT PRIMARY KEY,
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    bound_at_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE chats (
    id           INTEGER PRIMARY KEY,
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    platform_id  TEXT NOT NULL,              -- the newest id; all ids are in chat_ids
    kind         TEXT,                       -- direct, group_direct, private, public, broadcast; NULL = not learnt
    title        TEXT,
    is_present   INTEGER NOT NULL DEFAULT 1, -- whether the bot can post there, as last heard
    parked_until_ms INTEGER,                 -- nothing is sent before; heard events lift it
    parked_reason   TEXT,
    refused_notice_at_ms INTEGER,
    limit_notice_at_ms   INTEGER,
    last_heard_ms INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE chat_ids (
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    platform_id  TEXT NOT NULL,
    chat_id      INTEGER NOT NULL REFERENCES chats(id),
    -- The chats row under which messages with this platform id are known. A merged chat keeps its
    -- own: Telegram counts messages anew after a supergroup upgrade, so ids of both would collide.
    identity_id  INTEGER NOT NULL REFERENCES chats(id),
    PRIMARY KEY (account_id, platform_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX chat_ids_by_chat ON chat_ids (chat_id);

CREATE TABLE persons (
    id           INTEGER PRIMARY KEY,
    name         TEXT
) STRICT;

CREATE TABLE participants (
    id           INTEGER PRIMARY KEY,
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    kind         TEXT NOT NULL,              -- user, agent, system
    platform_id  TEXT NOT NULL,              -- an agent's configured name for kind agent
    display_name TEXT,
    username     TEXT,
    person_id    INTEGER REFERENCES persons(id),
    last_seen_ms INTEGER NOT NULL DEFAULT 0,
    UNIQUE (account_id, kind, platform_id)
) STRICT;
CREATE INDEX participants_by_username ON participants (account_id, username) WHERE username IS NOT NULL;

CREATE TABLE conversations (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- stands in the index; never of another one later
    uuid         BLOB NOT NULL UNIQUE,
    chat_id      INTEGER NOT NULL REFERENCES chats(id),
    thread       TEXT NOT NULL DEFAULT '',   -- Slack thread root ts or Telegram topic id; '' = the chat itself
    is_topic     INTEGER NOT NULL DEFAULT 0,
    title        TEXT,                       -- a topic's name; else the chat's title is shown
    parent_id    INTEGER REFERENCES conversations(id),
    root_turn_seq INTEGER,                   -- a turn of the parent
    created_at_ms INTEGER NOT NULL,
    turn_count   INTEGER NOT NULL DEFAULT 0,
    last_seq     INTEGER,
    last_activity_ms INTEGER NOT NULL DEFAULT 0,
    archived_at_ms INTEGER,
    UNIQUE (chat_id, thread)
) STRICT;
CREATE INDEX conversations_by_activity ON conversations (last_activity_ms DESC);
CREATE INDEX conversations_by_parent ON conversations (parent_id) WHERE parent_id IS NOT NULL;

-- seq is capture order: AUTOINCREMENT never reuses one, also after a delete.
CREATE TABLE turns (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid         BLOB NOT NULL UNIQUE,
    conversation_id INTEGER NOT NULL REFERENCES conversations(id),
    sent_at_ms   INTEGER NOT NULL,
    ordinal      INTEGER NOT NULL,
    kind         TEXT NOT NULL,              -- message, tool_call, tool_result, notice
    scope        TEXT NOT NULL,              -- the conversation's at capture
    visibility   TEXT NOT NULL DEFAULT 'room',
    participant_id INTEGER NOT NULL REFERENCES participants(id),
    content      TEXT NOT NULL,
    attachments  TEXT,                       -- JSON array or NULL
    reply_to_seq INTEGER,                    -- the turn it replies to, where captured
    reply_to_message TEXT,                   -- the platform id it replies to, while that turn is not captured
    quote        TEXT,
    call_id      TEXT,
    parent_call_id TEXT,
    root_call_id TEXT,
    run_id       INTEGER REFERENCES runs(id),
    revision     INTEGER NOT NULL DEFAULT 1,
    tokens       INTEGER,
    counter      TEXT,
    album        TEXT,
    captured_at_ms INTEGER NOT NULL,
    is_inbound   INTEGER NOT NULL            -- 0 for turns of ours
) STRICT;
CREATE INDEX turns_by_position ON turns (conversation_id, sent_at_ms, ordinal, seq);
CREATE INDEX turns_by_album ON turns (conversation_id, album) WHERE album IS NOT NULL;
CREATE INDEX turns_waiting_for_reply_target ON turns (conversation_id, reply_to_message) WHERE reply_to_message IS NOT NULL;
CREATE INDEX turns_by_participant ON turns (participant_id, conversation_id, sent_at_ms);
CREATE INDEX turns_by_run ON turns (run_id) WHERE run_id IS NOT NULL;

-- The text an edit replaced.
CREATE TABLE revisions (
    turn_seq     INTEGER NOT NULL REFERENCES turns(seq),
    revision     INTEGER NOT NULL,
    content      TEXT NOT NULL,
    replaced_at_ms INTEGER NOT NULL,
    PRIMARY KEY (turn_seq, revision)
) STRICT, WITHOUT ROWID;

-- Which turns concern which agent; kept turns are found here, not by scanning the room.
CREATE TABLE involvements (
    conversation_id INTEGER NOT NULL REFERENCES conversations(id),
    agent        TEXT NOT NULL,
    sent_at_ms   INTEGER NOT NULL,
    ordinal      INTEGER NOT NULL,
    seq          INTEGER NOT NULL REFERENCES turns(seq),
    how          TEXT NOT NULL,              -- authored, addressed, answered
    PRIMARY KEY (conversation_id, agent, sent_at_ms, ordinal, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX involvements_by_turn ON involvements (seq);

-- Message identity. turn_seq NULL = a tombstone, which says why in gone; it never comes back.
CREATE TABLE messages (
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    chat_id      INTEGER NOT NULL REFERENCES chats(id), -- chat_ids.identity_id
    platform_id  TEXT NOT NULL,
    turn_seq     INTEGER REFERENCES turns(seq),
    part         INTEGER NOT NULL DEFAULT 0, -- which part of the turn (reply parts, album items)
    text         TEXT,                       -- an album item's own text
    edit_marker  TEXT,
    sent_at_ms   INTEGER,                    -- tells messages of merged chats apart; NULL = never heard
    gone         TEXT,                       -- deleted, erased, expired
    PRIMARY KEY (account_id, chat_id, platform_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_by_turn ON messages (turn_seq) WHERE turn_seq IS NOT NULL;

CREATE TABLE runs (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- the order of runs, also after old ones went
    uuid         BLOB NOT NULL UNIQUE,
    conversation_id INTEGER NOT NULL REFERENCES conversations(id),
    chat_id      INTEGER NOT NULL REFERENCES chats(id), -- the conversation's, for limits
    agent        TEXT NOT NULL,
    state        TEXT NOT NULL,              -- queued, leased, waiting, done, failed, cancelled, superseded, dead
    reason       TEXT,
    not_before_ms INTEGER NOT NULL,
    owner        BLOB,
    token        BLOB,
    lease_until_ms INTEGER,
    as_of_seq    INTEGER,
    first_claimed_at_ms INTEGER,
    attempt      INTEGER NOT NULL DEFAULT 0,
    waiting_for  TEXT,                       -- of a waiting run
    waiting_until_ms INTEGER,
    deadline_ms  INTEGER,                    -- NULL = the agent's own setting
    cancel_requested_by TEXT,
    parent_run_id INTEGER REFERENCES runs(id),
    person_participant_id INTEGER REFERENCES participants(id), -- whose message triggered it, for limits
    prompt_tokens INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    created_at_ms INTEGER NOT NULL,
    finished_at_ms INTEGER
) STRICT;
CREATE INDEX runs_waiting ON runs (state, not_before_ms, id) WHERE state IN ('queued', 'leased', 'waiting');
-- The order of unfinished runs within their conversation, whatever is finished there.
CREATE INDEX runs_open ON runs (conversation_id, id) WHERE state IN ('queued', 'leased', 'waiting');
CREATE INDEX runs_given_up ON runs (id) WHERE state = 'dead';
CREATE INDEX runs_by_conversation ON runs (conversation_id, id);
CREATE INDEX runs_by_person ON runs (person_participant_id, created_at_ms);
CREATE INDEX runs_by_chat ON runs (chat_id, created_at_ms);

-- Tokens that runs used, per UTC day; read at every capture, so never summed up there.
CREATE TABLE usage_days (
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    day_start_ms INTEGER NOT NULL,
    tokens       INTEGER NOT NULL,
    PRIMARY KEY (account_id, day_start_ms)
) STRICT, WITHOUT ROWID;

CREATE TABLE run_triggers (
    run_id       INTEGER NOT NULL REFERENCES runs(id),
    turn_seq     INTEGER NOT NULL REFERENCES turns(seq),
    agent        TEXT NOT NULL,
    revision     INTEGER NOT NULL,
    PRIMARY KEY (run_id, turn_seq),
    UNIQUE (turn_seq, agent)
) STRICT, WITHOUT ROWID;

CREATE TABLE steps (
    run_id       INTEGER NOT NULL REFERENCES runs(id),
    n            INTEGER NOT NULL,
    message      TEXT NOT NULL,              -- the provider's own message, opaque, versioned
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (run_id, n)
) STRICT, WITHOUT ROWID;

-- A chain of checkpoints: each stands for every kept turn up to its end. Only current ones are sent.
CREATE TABLE summaries (
    id           INTEGER PRIMARY KEY,
    conversation_id INTEGER NOT NULL REFERENCES conversations(id),
    agent        TEXT NOT NULL,
    fingerprint  TEXT NOT NULL,              -- of the options that say what it stands for
    covers       TEXT NOT NULL,              -- involved (turns that concern the agent), all
    from_sent_at_ms INTEGER NOT NULL,        -- the first turn that the previous one does not cover
    from_ordinal INTEGER NOT NULL,
    from_seq     INTEGER NOT NULL,
    through_sent_at_ms INTEGER NOT NULL,
    through_ordinal INTEGER NOT NULL,
    through_seq  INTEGER NOT NULL,
    newest_seq   INTEGER NOT NULL,           -- capture order of the newest turn it stands for
    turn_count   INTEGER NOT NULL,           -- folded into it, without those of the previous one
    previous_id  INTEGER REFERENCES summaries(id),
    source_hash  BLOB NOT NULL,              -- SHA-256 of the folded turns' ids and revisions
    text         TEXT NOT NULL,
    tokens       INTEGER NOT NULL,
    counter      TEXT NOT NULL,
    model        TEXT NOT NULL,
    state        TEXT NOT NULL,              -- current, stale, void
    created_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX summaries_current
    ON summaries (conversation_id, agent, fingerprint, through_sent_at_ms, through_ordinal, through_seq)
    WHERE state = 'current';
CREATE INDEX summaries_by_place ON summaries (conversation_id, through_sent_at_ms);
CREATE INDEX summaries_by_state ON summaries (state);
CREATE INDEX summaries_by_previous ON summaries (previous_id) WHERE previous_id IS NOT NULL;

CREATE TABLE outbox (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- the order of posts, also after old ones went
    uuid         BLOB NOT NULL UNIQUE,
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    chat_id      INTEGER NOT NULL REFERENCES chats(id), -- the order key
    turn_seq     INTEGER REFERENCES turns(seq),
    run_id       INTEGER REFERENCES runs(id),
    part         INTEGER NOT NULL,
    sort_key     REAL NOT NULL,              -- id of the entry, or between its neighbours for a replacing part
    operation    TEXT NOT NULL DEFAULT 'post',  -- post, edit, delete, react, ephemeral, upload
    edit_of      INTEGER REFERENCES outbox(id),
    target       TEXT NOT NULL,              -- JSON
    payload      TEXT NOT NULL,              -- JSON, rendered, versioned
    progress     TEXT,                       -- of an operation with several calls
    state        TEXT NOT NULL,              -- pending, leased, sent, unknown, held, dead, replaced
    reason       TEXT,
    not_before_ms INTEGER NOT NULL,
    owner        BLOB,
    token        BLOB,
    lease_until_ms INTEGER,
    send_started INTEGER NOT NULL DEFAULT 0, -- bytes may have left in the present attempt
    attempts     INTEGER NOT NULL DEFAULT 0,
    first_attempt_ms INTEGER,
    looks        INTEGER NOT NULL DEFAULT 0,
    resends      INTEGER NOT NULL DEFAULT 0,
    message_id   TEXT,
    created_at_ms INTEGER NOT NULL,
    finished_at_ms INTEGER
) STRICT;
-- Within a chat entries go in order of sort_key, so that parts that replace another stay in its place.
CREATE INDEX outbox_open ON outbox (chat_id, sort_key) WHERE state IN ('pending', 'leased', 'unknown');
CREATE INDEX outbox_stuck ON outbox (state, id) WHERE state IN ('held', 'dead');
CREATE INDEX outbox_by_turn ON outbox (turn_seq);

CREATE TABLE outbox_attempts (
    outbox_id    INTEGER NOT NULL REFERENCES outbox(id),
    n            INTEGER NOT NULL,
    started_at_ms INTEGER NOT NULL,
    ended_at_ms  INTEGER,
    outcome      TEXT,
    PRIMARY KEY (outbox_id, n)
) STRICT, WITHOUT ROWID;

-- Commands and interactions; identity is the platform's own id of them.
CREATE TABLE non_messages (
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    kind         TEXT NOT NULL,
    platform_id  TEXT NOT NULL,
    sender_id    TEXT NOT NULL,
    chat         TEXT,
    text         TEXT NOT NULL,
    received_at_ms INTEGER NOT NULL,
    PRIMARY KEY (account_id, kind, platform_id)
) STRICT, WITHOUT ROWID;

-- What did not translate, and raw envelopes while debug_raw_hours is set (reason NULL).
CREATE TABLE raw_envelopes (
    id           INTEGER PRIMARY KEY,
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    reason       TEXT,
    raw          TEXT NOT NULL,
    turn_seq     INTEGER,
    received_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX raw_envelopes_by_time ON raw_envelopes (received_at_ms);
CREATE INDEX raw_envelopes_by_turn ON raw_envelopes (turn_seq) WHERE turn_seq IS NOT NULL;

-- Identities that were erased (ids only); applied again after every restore and import.
CREATE TABLE erased_identities (
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    kind         TEXT NOT NULL,              -- person, chat, message
    platform_id  TEXT NOT NULL,
    chat         TEXT NOT NULL DEFAULT '',
    erased_at_ms INTEGER NOT NULL,
    PRIMARY KEY (account_id, kind, platform_id, chat)
) STRICT, WITHOUT ROWID;

-- Full text over room-visible turns; the conversation is an indexed column, so that a search in one
-- conversation reads only its own postings. Not contentless_delete: that leaves the words of a
-- deleted row in the index until a merge, while the delete command with the old text takes them out.
CREATE VIRTUAL TABLE turn_text USING fts5 (
    conversation,
    content,
    content = '',
    tokenize = "unicode61 remove_diacritics 2"
);
INSERT INTO turn_text (turn_text, rank) VALUES ('secure-delete', 1);
