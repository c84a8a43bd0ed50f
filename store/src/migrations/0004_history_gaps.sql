-- How far what was said is known, for platforms that let a bot read a room.
CREATE TABLE account_reach (
    account_id     INTEGER PRIMARY KEY REFERENCES accounts(id),
    heard_until_ms INTEGER NOT NULL,         -- a connection was open until here, as last noted
    unread_from_ms INTEGER,                  -- since here any chat may lack messages; NULL = none does
    epoch          INTEGER NOT NULL DEFAULT 0 -- counts the losses: a pass ends only the one it began with
) STRICT;

CREATE TABLE chat_reach (
    account_id     INTEGER NOT NULL REFERENCES accounts(id),
    chat           TEXT NOT NULL,            -- platform id, also where nothing was captured
    read_through_ms INTEGER,                 -- what was unread before here was read
    unread_from_ms INTEGER,                  -- this chat could not be read since here
    backfill_until_ms INTEGER,               -- what was said before this is still to be read
    gap_reason     TEXT,                     -- why something is missing there
    gap_turn_seq   INTEGER REFERENCES turns(seq), -- the notice that says so, while it may still be read
    PRIMARY KEY (account_id, chat)
) STRICT, WITHOUT ROWID;
