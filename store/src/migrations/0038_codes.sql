-- Who wrote to the bot in a direct chat and was told a code (code_digest), and who was let in by it (approved_at_ms).
CREATE TABLE pairings (
    account_id     INTEGER NOT NULL REFERENCES accounts(id),
    person         TEXT NOT NULL,            -- the platform's id
    chat           TEXT NOT NULL,            -- the platform's id of the direct chat
    code_digest    TEXT,                     -- NULL once it was used
    offered_at_ms  INTEGER NOT NULL,
    language       TEXT NOT NULL,            -- in which they are told that they were let in
    approved_at_ms INTEGER,
    approved_by    TEXT,
    PRIMARY KEY (account_id, person)
) STRICT, WITHOUT ROWID;
-- The code with which somebody joins another account to theirs, and how often they said a wrong one.
CREATE TABLE link_codes (
    participant_id INTEGER PRIMARY KEY REFERENCES participants(id),
    code_digest    TEXT,                     -- NULL: none was asked for, or it was used
    chat           TEXT,                     -- the platform's id of the direct chat it was told in
    is_private     INTEGER NOT NULL DEFAULT 0, -- whether only that person saw it there
    made_at_ms     INTEGER NOT NULL DEFAULT 0,
    wrong_count    INTEGER NOT NULL DEFAULT 0,
    wrong_since_ms INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX link_codes_by_digest ON link_codes (code_digest) WHERE code_digest IS NOT NULL;
CREATE INDEX participants_by_person ON participants (person_id) WHERE person_id IS NOT NULL;
