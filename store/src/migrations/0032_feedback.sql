-- What people think of answers, by their thumbs: a row for each thumb that a person had on a run's answers. It stays when the
-- thumb is taken away, so that an older change that comes late does not put the thumb back.
CREATE TABLE feedback (
    run_id         INTEGER NOT NULL REFERENCES runs(id),
    participant_id INTEGER NOT NULL REFERENCES participants(id),
    thumb          TEXT NOT NULL CHECK (thumb IN ('up', 'down')),
    is_given       INTEGER NOT NULL,
    changed_at_ms  INTEGER NOT NULL,         -- by the platform's clock
    captured_at_ms INTEGER NOT NULL,
    PRIMARY KEY (run_id, participant_id, thumb)
) STRICT, WITHOUT ROWID;
CREATE INDEX feedback_by_participant ON feedback (participant_id);
CREATE INDEX feedback_by_time ON feedback (captured_at_ms);
