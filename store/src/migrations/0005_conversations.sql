-- Who the bot is at an account, as last learnt, so that mentions of it are named also while no
-- daemon runs. JSON, versioned.
ALTER TABLE accounts ADD COLUMN bot TEXT;

-- What a person called a conversation; it wins over every other title.
ALTER TABLE conversations ADD COLUMN own_title TEXT;

-- Runs that were open in a backup that was restored: a person decides (state held).
CREATE INDEX runs_held ON runs (id) WHERE state = 'held';

-- When a backup was put in place of the database. A restore makes this table in a database of any
-- schema, so it may be there already.
CREATE TABLE IF NOT EXISTS restores (
    at_ms        INTEGER PRIMARY KEY
) STRICT;
