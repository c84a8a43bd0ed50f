-- What decided who is next in a run of a network, once before the first agent call and once behind each.
CREATE TABLE network_decisions (
    run_id       INTEGER NOT NULL REFERENCES runs(id),
    calls        INTEGER NOT NULL,           -- agent calls before it
    agent        TEXT,                       -- who is called; NULL: the run ends
    decided_by   TEXT NOT NULL,              -- rule, list, router, default; of an end why
    rule         INTEGER,                    -- that matched, from 1
    stack        TEXT NOT NULL,              -- JSON: who waits to be called
    state        TEXT NOT NULL,              -- JSON: the values behind it
    refused      TEXT NOT NULL,              -- JSON: who was disabled
    words        TEXT NOT NULL,              -- the routing agent's reason, or an operator's; empty: none
    steps        INTEGER NOT NULL,           -- of the run so far
    state_version INTEGER,                   -- of the conversation's values that the run began with
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (run_id, calls)
) STRICT, WITHOUT ROWID;

-- Agent calls of a run of a network that ended, each with the values behind it.
CREATE TABLE network_calls (
    run_id       INTEGER NOT NULL REFERENCES runs(id),
    n            INTEGER NOT NULL,           -- from 1
    agent        TEXT NOT NULL,
    outcome      TEXT NOT NULL,              -- done, failed
    text         TEXT NOT NULL,              -- what it said; empty: it failed
    note         TEXT,                       -- what the room is told of it besides
    reason       TEXT,                       -- why it failed, for operators
    told         TEXT,                       -- what the room is told if nobody takes over
    tools        TEXT NOT NULL,              -- JSON: that it called
    state        TEXT NOT NULL,              -- JSON: the values behind it
    steps        INTEGER NOT NULL,           -- of the run so far
    prompt_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (run_id, n)
) STRICT, WITHOUT ROWID;

-- Values that outlive the run, of networks with persist = true.
CREATE TABLE network_states (
    conversation_id INTEGER NOT NULL REFERENCES conversations(id),
    network      TEXT NOT NULL,
    version      INTEGER NOT NULL,           -- a change names the one that it was read in
    state        TEXT NOT NULL,              -- JSON
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (conversation_id, network)
) STRICT, WITHOUT ROWID;
