-- Approvals: a call of a tool that waits for a person, a row each.
CREATE TABLE approvals (
    id           INTEGER PRIMARY KEY,
    uuid         BLOB NOT NULL UNIQUE,       -- stands in the buttons of its card
    call_id      INTEGER REFERENCES tool_calls(id), -- NULL: the call was forgotten
    run_id       INTEGER NOT NULL REFERENCES runs(id),
    participant_id INTEGER REFERENCES participants(id), -- who asked, for limits
    tool         TEXT NOT NULL,
    target       TEXT NOT NULL,              -- where its calls go, for people
    digest       BLOB NOT NULL,              -- of the call
    definition   BLOB NOT NULL,              -- of the tool
    asking       TEXT NOT NULL,              -- first, always
    approvers    TEXT NOT NULL,              -- who may decide
    is_whole     INTEGER NOT NULL,           -- its card shows all of the call
    card_post    INTEGER,                    -- the entry of the outbox that shows it
    outcome_post INTEGER,                    -- the one that shows what became of it
    outcomes     TEXT NOT NULL,              -- JSON: the posts that say that it expired or was cancelled
    state        TEXT NOT NULL,              -- open, approved, denied, expired, cancelled
    asked_at_ms  INTEGER NOT NULL,
    expires_at_ms INTEGER,                   -- NULL: never
    decided_at_ms INTEGER,
    decided_by   INTEGER REFERENCES participants(id),
    operator     TEXT,                       -- who decided outside the room
    via          TEXT,                       -- card, cli, api
    note         TEXT
) STRICT;
CREATE UNIQUE INDEX approvals_open_call ON approvals (call_id) WHERE state = 'open';
CREATE INDEX approvals_open ON approvals (expires_at_ms) WHERE state = 'open';
CREATE INDEX approvals_by_call ON approvals (call_id, id);
CREATE INDEX approvals_by_run ON approvals (run_id);

-- Standing consents: calls that were allowed once and are made without asking.
CREATE TABLE approval_grants (
    id           INTEGER PRIMARY KEY,
    uuid         BLOB NOT NULL UNIQUE,
    chat_id      INTEGER NOT NULL REFERENCES chats(id),
    participant_id INTEGER NOT NULL REFERENCES participants(id), -- whose questions it covers
    agent        TEXT NOT NULL,
    tool         TEXT NOT NULL,
    definition   BLOB NOT NULL,              -- of the tool: another one is not covered
    digest       BLOB,                       -- of the call; NULL: every call of the tool
    granted_by   INTEGER REFERENCES participants(id),
    operator     TEXT,                       -- who granted it outside the room
    granted_at_ms INTEGER NOT NULL,
    until_ms     INTEGER,                    -- NULL: until it is revoked
    uses         INTEGER NOT NULL DEFAULT 0,
    revoked_at_ms INTEGER,
    revoked_by   TEXT
) STRICT;
CREATE INDEX approval_grants_live ON approval_grants (chat_id, participant_id, tool) WHERE revoked_at_ms IS NULL;

-- Answers to presses wait for no post: they go with the signs.
DROP INDEX outbox_open;
ALTER TABLE outbox DROP COLUMN line;
ALTER TABLE outbox ADD COLUMN line TEXT NOT NULL GENERATED ALWAYS AS (
    CASE WHEN operation IN ('react', 'unreact', 'answer') THEN 'signs'
         WHEN NOT json_valid(target) THEN ''
         ELSE coalesce('thread ' || json_extract(target, '$.thread'), 'topic ' || json_extract(target, '$.topic'), '')
    END) VIRTUAL;
CREATE INDEX outbox_open ON outbox (chat_id, line, sort_key) WHERE state IN ('pending', 'leased', 'unknown');

-- Servers of tools: what they offer, and what of it was approved.
CREATE TABLE mcp_tools (
    server       TEXT NOT NULL,              -- its configured name
    tool         TEXT NOT NULL,              -- its name for the tool
    approved     TEXT,                       -- JSON: the definition that runs are offered
    waiting      TEXT,                       -- JSON: another one, until a person approves it
    is_listed    INTEGER NOT NULL,           -- the server listed it last
    seen_at_ms   INTEGER NOT NULL,
    approved_at_ms INTEGER,
    PRIMARY KEY (server, tool)
) STRICT, WITHOUT ROWID;
