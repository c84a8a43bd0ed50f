-- Tasks that runs give other agents: each is a run of its own, which posts nothing.
CREATE TABLE delegations (
    id           INTEGER PRIMARY KEY,
    call_id      INTEGER REFERENCES tool_calls(id), -- NULL: the call was forgotten
    parent_id    INTEGER NOT NULL REFERENCES runs(id), -- the run that waits
    child_id     INTEGER NOT NULL UNIQUE REFERENCES runs(id), -- the run that works on it
    asked_by     TEXT NOT NULL,              -- the agent that gave it: the run's, or one of its network
    task         TEXT NOT NULL,
    sees_room    INTEGER NOT NULL,           -- its prompt shows the room
    tokens_max   INTEGER NOT NULL,           -- its share of what the other run may use; 0: no limit
    cost_max_micros INTEGER NOT NULL,
    worked_max_ms INTEGER NOT NULL,
    calls_max    INTEGER NOT NULL,
    state        TEXT NOT NULL,              -- open, answered, failed, cancelled, forgotten
    result       TEXT NOT NULL,
    asked_at_ms  INTEGER NOT NULL,
    ended_at_ms  INTEGER
) STRICT;
CREATE UNIQUE INDEX delegations_by_call ON delegations (call_id) WHERE call_id IS NOT NULL;
CREATE INDEX delegations_by_parent ON delegations (parent_id, state);
CREATE INDEX runs_by_parent ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX runs_open_children ON runs (id) WHERE parent_run_id IS NOT NULL AND state IN ('queued', 'leased', 'waiting');
