-- Orders to erase a person, a conversation or a message. The newest state of each is also a line in a
-- file beside the database (ids only), from which an older copy that is put back is brought up to date.
CREATE TABLE erasures (
    id           INTEGER PRIMARY KEY,
    uuid         BLOB NOT NULL UNIQUE,       -- the same in the file
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    kind         TEXT NOT NULL,              -- person, conversation, message
    platform_id  TEXT NOT NULL,              -- user id; thread or topic, '' = the chat's own; message id
    chat         TEXT NOT NULL DEFAULT '',   -- the platform's id of the chat, but for a person
    erased_at_ms INTEGER NOT NULL,           -- what was sent later is not meant
    phase        TEXT NOT NULL,              -- what is done next
    cursor       INTEGER NOT NULL DEFAULT 0, -- how far that is done
    turns        INTEGER NOT NULL DEFAULT 0, -- blanked
    answers      INTEGER NOT NULL DEFAULT 0, -- turns of ours made from them, blanked
    repeats      INTEGER NOT NULL DEFAULT 0, -- turns of others that repeated them, cut
    details      INTEGER NOT NULL DEFAULT 0, -- other rows that held something of them
    finished_at_ms INTEGER
) STRICT;
CREATE INDEX erasures_open ON erasures (id) WHERE finished_at_ms IS NULL;

-- What is looked for elsewhere while an order is carried out; empty once none is open.
CREATE TABLE erasure_traces (
    erasure_id   INTEGER NOT NULL REFERENCES erasures(id),
    text         TEXT NOT NULL,
    chat_id      INTEGER,                    -- NULL = anywhere; else only in our own turns of that chat
    after_seq    INTEGER NOT NULL,           -- captured after this
    PRIMARY KEY (erasure_id, text)
) STRICT, WITHOUT ROWID;

-- Replies to a turn: what they quote goes with it, and what was answered to them.
CREATE INDEX turns_by_reply ON turns (reply_to_seq) WHERE reply_to_seq IS NOT NULL;

-- Retention: up to when the turns of a conversation are gone (a turn that comes late sets it back),
-- and how far the other classes are, per account.
ALTER TABLE conversations ADD COLUMN expired_through_ms INTEGER NOT NULL DEFAULT -9223372036854775808;
CREATE TABLE retention (
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    class        TEXT NOT NULL,              -- text, raw, runs
    through_ms   INTEGER NOT NULL DEFAULT -9223372036854775808,
    through_id   INTEGER NOT NULL DEFAULT 0,
    expired      INTEGER NOT NULL DEFAULT 0, -- turns, raw events, runs so far
    last_at_ms   INTEGER,                    -- when the last one went
    PRIMARY KEY (account_id, class)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_end ON runs (finished_at_ms, id) WHERE finished_at_ms IS NOT NULL;
