-- What hooks said of a run: each is asked once at a point, and a resumed run reads it here.
CREATE TABLE hook_verdicts (
    run_id   INTEGER NOT NULL REFERENCES runs(id),
    point    TEXT NOT NULL,                  -- before_run, before_model, ...
    step     INTEGER NOT NULL,               -- from 1; 0: the run or its answer
    n        INTEGER NOT NULL,               -- the call's place in its step; 0: about no call
    hook     TEXT NOT NULL,                  -- its name in the configuration
    verdict  TEXT NOT NULL,                  -- pass, deny, ask, narrow, redact, note, failed
    reason   TEXT NOT NULL,                  -- in words; empty: none
    changed  TEXT,                           -- what it put in the place of what it was asked about
    removed  INTEGER NOT NULL,               -- how many times words were taken out
    at_ms    INTEGER NOT NULL,
    PRIMARY KEY (run_id, point, step, n, hook)
) STRICT, WITHOUT ROWID;
