-- Questions that models ask people while they work on an answer, a row each.
CREATE TABLE questions (
    id           INTEGER PRIMARY KEY,
    uuid         BLOB NOT NULL UNIQUE,       -- stands in the buttons of its post
    call_id      INTEGER REFERENCES tool_calls(id), -- NULL: the call was forgotten
    run_id       INTEGER NOT NULL REFERENCES runs(id),
    participant_id INTEGER REFERENCES participants(id), -- who asked for the run, for limits
    asked_id     INTEGER REFERENCES participants(id), -- whose answer counts; NULL: who asked for the run
    is_for_experts INTEGER NOT NULL,         -- asked in a room of experts, where everybody's answer counts
    question     TEXT NOT NULL,
    options      TEXT NOT NULL,              -- JSON: the answers that it offers
    card_post    INTEGER,                    -- the entry of the outbox that shows it
    outcome_post INTEGER,                    -- the one that shows what became of it
    card_message TEXT,                       -- the platform's id of that, once it is over
    outcomes     TEXT NOT NULL,              -- JSON: the posts that say that it expired, was taken back, was answered
    state        TEXT NOT NULL,              -- open, answered, expired, cancelled
    asked_at_ms  INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    ended_at_ms  INTEGER,
    answered_by  INTEGER REFERENCES participants(id),
    answer_turn  BLOB                        -- the id of the turn that is the answer
) STRICT;
CREATE UNIQUE INDEX questions_open_call ON questions (call_id) WHERE state = 'open';
CREATE INDEX questions_open ON questions (expires_at_ms) WHERE state = 'open';
CREATE INDEX questions_by_call ON questions (call_id, id);
CREATE INDEX questions_by_run ON questions (run_id);
CREATE INDEX questions_by_message ON questions (card_message) WHERE card_message IS NOT NULL;
CREATE INDEX questions_by_answer ON questions (answer_turn) WHERE answer_turn IS NOT NULL;
