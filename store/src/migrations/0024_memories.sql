-- What agents remember of what people told them, an entry each.
CREATE TABLE memories (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- by which people and operators call it; never given twice
    version      INTEGER NOT NULL,           -- a change names the one that it was read in
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    agent        TEXT NOT NULL,
    kind         TEXT NOT NULL,              -- core, fact, preference
    chat_id      INTEGER NOT NULL REFERENCES chats(id), -- where it was learnt
    learnt_kind  TEXT,                       -- what kind of chat that was then; NULL: not known
    share        TEXT NOT NULL,              -- room, team
    teller_id    INTEGER NOT NULL REFERENCES participants(id), -- who said it
    subject_id   INTEGER REFERENCES participants(id), -- whom it is about; NULL: the room
    text         TEXT NOT NULL,
    since_ms     INTEGER NOT NULL,           -- when it was said
    until_ms     INTEGER,                    -- when a newer one took its place
    superseded_by INTEGER,                   -- that one, while it is there
    written_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX memories_by_room ON memories (chat_id, agent);
CREATE INDEX memories_shared ON memories (account_id, agent) WHERE share = 'team';
CREATE INDEX memories_by_teller ON memories (teller_id);
CREATE INDEX memories_by_subject ON memories (subject_id) WHERE subject_id IS NOT NULL;
CREATE INDEX memories_superseded ON memories (superseded_by) WHERE superseded_by IS NOT NULL;

-- The turns that an entry was learnt from. When one goes, or says something else, the entry goes.
CREATE TABLE memory_sources (
    memory_id    INTEGER NOT NULL REFERENCES memories(id),
    turn_seq     INTEGER NOT NULL REFERENCES turns(seq),
    PRIMARY KEY (memory_id, turn_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_sources_by_turn ON memory_sources (turn_seq);

-- What calls of tools did to entries: a call that is made again has done it already.
CREATE TABLE memory_writes (
    call         BLOB PRIMARY KEY,           -- the id of the call
    run_id       INTEGER NOT NULL REFERENCES runs(id),
    outcome      TEXT NOT NULL,              -- JSON: numbers of entries
    at_ms        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_writes_by_run ON memory_writes (run_id);
