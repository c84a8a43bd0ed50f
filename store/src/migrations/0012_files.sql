-- Files that were attached to turns. Their bytes are beside the database, in files/ab/cd..., by SHA-256.
CREATE TABLE files (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- the order in which they are fetched
    turn_seq     INTEGER NOT NULL REFERENCES turns(seq),
    platform_id  TEXT NOT NULL,              -- as in turns.attachments, which says what it is
    state        TEXT NOT NULL,              -- pending, fetched, refused, too_large, gone, failed
    reason       TEXT,
    not_before_ms INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    sha256       BLOB,                       -- of a fetched one
    size_bytes   INTEGER,
    speech       TEXT,                       -- of a voice note to be written down: pending, done, failed
    transcript   TEXT,
    finished_at_ms INTEGER,
    UNIQUE (turn_seq, platform_id)
) STRICT;
CREATE INDEX files_pending ON files (not_before_ms, id) WHERE state = 'pending';
CREATE INDEX files_to_hear ON files (not_before_ms, id) WHERE speech = 'pending';
CREATE INDEX files_by_content ON files (sha256, size_bytes) WHERE sha256 IS NOT NULL;

-- Contents whose last reference may have gone: to be removed from the disk unless one is left.
CREATE TABLE dropped_contents (
    sha256       BLOB PRIMARY KEY
) STRICT, WITHOUT ROWID;
