-- What agents learn in the background: which calls and conversations made an entry, and how far each was read.
ALTER TABLE memories ADD COLUMN origin TEXT NOT NULL DEFAULT 'call'; -- call, conversation

-- How far an agent has read a conversation for what is worth keeping.
CREATE TABLE memory_marks (
    conversation_id INTEGER NOT NULL REFERENCES conversations(id),
    agent        TEXT NOT NULL,
    through_seq  INTEGER NOT NULL,           -- turns up to here are read
    through_sent_at_ms INTEGER NOT NULL,     -- the newest of them: older ones than a day before it are not looked for
    read_at_ms   INTEGER NOT NULL,
    PRIMARY KEY (conversation_id, agent)
) STRICT, WITHOUT ROWID;

-- Turns that were read and say something else by now: they are read again.
CREATE TABLE memory_rereads (
    turn_seq     INTEGER NOT NULL REFERENCES turns(seq),
    agent        TEXT NOT NULL,
    PRIMARY KEY (turn_seq, agent)
) STRICT, WITHOUT ROWID;

ALTER TABLE usage_days ADD COLUMN memory_tokens INTEGER NOT NULL DEFAULT 0; -- of its tokens
