-- What a run has read that its askers did not write: from then on its calls that act are asked for.
CREATE TABLE run_taints (
    run_id       INTEGER NOT NULL REFERENCES runs(id),
    step         INTEGER NOT NULL,           -- whose calls gave it; 0: it stands in the prompt
    source       TEXT NOT NULL,              -- tool, found, recalled, file
    tool         TEXT NOT NULL,              -- that gave it; '': none did
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (run_id, step, source, tool)
) STRICT, WITHOUT ROWID;

-- What a run has used of what it may: time under a lease, and tokens of every call of its models.
ALTER TABLE runs ADD COLUMN worked_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN spent_tokens INTEGER NOT NULL DEFAULT 0;
