-- From where on the prompts of an agent read a conversation: a person said `new` there. Ids and times only.
CREATE TABLE fresh_starts (
    conversation_id INTEGER NOT NULL REFERENCES conversations(id),
    agent        TEXT NOT NULL,
    at_ms        INTEGER NOT NULL,           -- when it was said; a run that was claimed before reads on
    sent_at_ms   INTEGER NOT NULL,           -- nothing at this position or before it is read
    ordinal      INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    PRIMARY KEY (conversation_id, agent, at_ms)
) STRICT, WITHOUT ROWID;

-- Questions of people to the daemon that are answered once what they ask about was read; the answer's
-- commit removes them.
CREATE TABLE inquiries (
    id           INTEGER PRIMARY KEY,
    kind         TEXT NOT NULL,              -- status, context, summary
    agent        TEXT NOT NULL,
    conversation_id INTEGER NOT NULL REFERENCES conversations(id),
    target       TEXT NOT NULL,              -- JSON: where the answer goes
    person       TEXT,                       -- who alone sees it
    asked_at_ms  INTEGER NOT NULL
) STRICT;

-- When a chat was told who the bot is; how many messages of other bots were answered there since a person
-- spoke (one more once that was refused and told); up to when it was told that it is quiet.
ALTER TABLE chats ADD COLUMN introduced_at_ms INTEGER;
ALTER TABLE chats ADD COLUMN bot_exchanges INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chats ADD COLUMN quiet_told_until_ms INTEGER;
