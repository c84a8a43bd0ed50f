-- What programs asked through the API: by which name, and what they gave for that run's prompt alone.
CREATE TABLE run_requests (
    run_id         INTEGER PRIMARY KEY REFERENCES runs(id),
    participant_id INTEGER NOT NULL REFERENCES participants(id), -- who asked
    key            BLOB,                     -- SHA-256 of the name that the program gave its request; NULL: none
    body           BLOB NOT NULL,            -- SHA-256 of what it asked
    given          TEXT                      -- JSON; NULL: nothing was given, or the run has ended
) STRICT;
CREATE UNIQUE INDEX run_requests_once ON run_requests (participant_id, key) WHERE key IS NOT NULL;
