-- How far an import of an export is, so that one that was cut off goes on where it was.
CREATE TABLE imports (
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    fingerprint  TEXT NOT NULL,              -- of the files and the choice of chats
    things       INTEGER NOT NULL,           -- of the export, dealt with
    updated_at_ms INTEGER NOT NULL,
    finished_at_ms INTEGER,                  -- the next one starts over
    PRIMARY KEY (account_id, fingerprint)
) STRICT, WITHOUT ROWID;
