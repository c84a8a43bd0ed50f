-- Which hooks are told of the ends of an agent's runs and approvals: the settings in force, written at a start and a
-- reload, so that the transaction that ends something knows whom to tell.
CREATE TABLE telling_hooks (
    agent        TEXT NOT NULL,
    point        TEXT NOT NULL,              -- run_ended, approval_decided
    hook         TEXT NOT NULL,              -- its configured name
    PRIMARY KEY (agent, point, hook)
) STRICT, WITHOUT ROWID;

-- What a hook is still to be told, a row each until it was; a job tells it.
CREATE TABLE tellings (
    id           INTEGER PRIMARY KEY,
    uuid         BLOB NOT NULL UNIQUE,       -- what is told, however often
    hook         TEXT NOT NULL,
    point        TEXT NOT NULL,
    run_id       INTEGER NOT NULL REFERENCES runs(id),
    approval_id  INTEGER REFERENCES approvals(id), -- at approval_decided
    outcome      TEXT NOT NULL,              -- the state that the run or the approval ended in
    at_ms        INTEGER NOT NULL
) STRICT;
CREATE INDEX tellings_by_run ON tellings (run_id);
