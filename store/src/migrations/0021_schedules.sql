-- What is to start at a time: by people's commands, by an operator, or by the configuration.
CREATE TABLE schedules (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- by which people call it; never given twice
    name         TEXT,                       -- in the configuration; NULL: made otherwise
    chat_id      INTEGER NOT NULL REFERENCES chats(id),
    conversation_id INTEGER NOT NULL REFERENCES conversations(id),
    participant_id INTEGER REFERENCES participants(id), -- whose; NULL: the operator's
    made_by_message TEXT,                    -- the platform's id of the message that was the command
    agent        TEXT,                       -- NULL: the task is posted as it is
    timing       TEXT NOT NULL,              -- an expression of cron, or once and a time
    zone         TEXT NOT NULL,
    jitter_ms    INTEGER NOT NULL,
    missed_rule  TEXT NOT NULL,              -- once, skip
    task         TEXT NOT NULL,
    state        TEXT NOT NULL,              -- active, paused, done, cancelled
    reason       TEXT,                       -- why it is paused or over
    at_ms        INTEGER,                    -- its next time; NULL: none
    due_ms       INTEGER,                    -- when that is looked at
    set_at_ms    INTEGER,                    -- when that was worked out; NULL: in a database that a backup replaced
    last_run_id  INTEGER REFERENCES runs(id),
    fired        INTEGER NOT NULL DEFAULT 0,
    missed       INTEGER NOT NULL DEFAULT 0,
    created_at_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX schedules_by_name ON schedules (name) WHERE name IS NOT NULL;
CREATE INDEX schedules_due ON schedules (due_ms) WHERE state = 'active';
CREATE INDEX schedules_set ON schedules (set_at_ms) WHERE state = 'active';
CREATE INDEX schedules_by_chat ON schedules (chat_id, id);
CREATE INDEX schedules_by_person ON schedules (participant_id);
CREATE INDEX schedules_by_conversation ON schedules (conversation_id);

-- What became of each time of a schedule; a time fires once.
CREATE TABLE firings (
    schedule_id  INTEGER NOT NULL REFERENCES schedules(id),
    at_ms        INTEGER NOT NULL,           -- by the schedule
    decided_at_ms INTEGER NOT NULL,
    outcome      TEXT NOT NULL,              -- fired, missed, overlapped, refused
    missed_before INTEGER NOT NULL,          -- times before it that nobody was there for
    run_id       INTEGER REFERENCES runs(id),
    PRIMARY KEY (schedule_id, at_ms)
) STRICT, WITHOUT ROWID;
CREATE INDEX firings_by_run ON firings (run_id) WHERE run_id IS NOT NULL;
