-- What happens in a run while it happens, for whoever follows it. Ids only ever grow, and are at least
-- 1,024 for each millisecond of the clock: so what a power cut or an older copy took back is never told
-- under an id that somebody knows.
CREATE TABLE run_events (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id       INTEGER NOT NULL REFERENCES runs(id),
    conversation_id INTEGER NOT NULL REFERENCES conversations(id), -- the run's
    kind         TEXT NOT NULL,              -- started, text, restarted, tool_call, tool_result, usage,
                                             -- finished, failed, cancelled, interrupted
    step         INTEGER,
    text         TEXT,                       -- said or asked while the run is worked on; never after
    call_id      TEXT,
    tool         TEXT,
    turn         BLOB,                       -- the turn that has the text for good
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    at_ms        INTEGER NOT NULL
) STRICT;
CREATE INDEX run_events_by_run ON run_events (run_id, id);
CREATE INDEX run_events_by_conversation ON run_events (conversation_id, id);
-- A run ends once.
CREATE UNIQUE INDEX run_events_ends ON run_events (run_id)
    WHERE kind IN ('finished', 'failed', 'cancelled', 'interrupted');
INSERT INTO sqlite_sequence (name, seq) VALUES ('run_events', 0);

-- Runs end in many places, and all of them must tell it in the transaction in which they do: so the
-- state itself tells it.
CREATE TRIGGER run_events_at_end AFTER UPDATE OF state ON runs
WHEN NEW.state IN ('done', 'failed', 'cancelled', 'superseded', 'dead')
 AND OLD.state NOT IN ('done', 'failed', 'cancelled', 'superseded', 'dead')
BEGIN
    INSERT INTO run_events (id, run_id, conversation_id, kind, turn, at_ms)
    -- One statement may end several runs, and sqlite_sequence is behind until it is done.
    VALUES (max((SELECT seq + 1 FROM sqlite_sequence WHERE name = 'run_events'),
                coalesce((SELECT max(id) + 1 FROM run_events), 0),
                coalesce(NEW.finished_at_ms, 0) * 1024),
            NEW.id, NEW.conversation_id,
            CASE WHEN NEW.state = 'done' THEN 'finished'
                 WHEN NEW.state IN ('failed', 'dead') THEN 'failed'
                 WHEN NEW.reason = 'interrupted' THEN 'interrupted'
                 ELSE 'cancelled' END,
            (SELECT uuid FROM turns WHERE run_id = NEW.id AND kind IN ('message', 'notice')
             ORDER BY seq DESC LIMIT 1),
            coalesce(NEW.finished_at_ms, 0));
END;

-- A run that a person or an edit brings back has not ended.
CREATE TRIGGER run_events_at_return AFTER UPDATE OF state ON runs
WHEN NEW.state NOT IN ('done', 'failed', 'cancelled', 'superseded', 'dead')
 AND OLD.state IN ('done', 'failed', 'cancelled', 'superseded', 'dead')
BEGIN
    DELETE FROM run_events WHERE run_id = NEW.id
       AND kind IN ('finished', 'failed', 'cancelled', 'interrupted');
END;

-- Text is there while somebody works on the run: then a turn has it, or it is void.
CREATE TRIGGER run_events_let_go AFTER UPDATE OF state ON runs WHEN OLD.state = 'leased'
BEGIN
    DELETE FROM run_events WHERE run_id = NEW.id AND kind = 'text';
    UPDATE run_events SET text = NULL WHERE run_id = NEW.id AND text IS NOT NULL;
END;

-- What was made from something that was deleted goes with it: its run is asked to stop, or its steps
-- are taken out.
CREATE TRIGGER run_events_at_stop AFTER UPDATE OF cancel_requested_by ON runs
WHEN NEW.cancel_requested_by IS NOT NULL
BEGIN
    DELETE FROM run_events WHERE run_id = NEW.id AND kind = 'text';
    UPDATE run_events SET text = NULL WHERE run_id = NEW.id AND text IS NOT NULL;
END;
CREATE TRIGGER run_events_of_steps AFTER DELETE ON steps
BEGIN
    DELETE FROM run_events WHERE run_id = OLD.run_id AND kind = 'text';
    UPDATE run_events SET text = NULL WHERE run_id = OLD.run_id AND text IS NOT NULL;
END;

-- Events follow their run when two chats turn out to be one.
CREATE TRIGGER run_events_move AFTER UPDATE OF conversation_id ON runs
WHEN NEW.conversation_id <> OLD.conversation_id
BEGIN
    UPDATE run_events SET conversation_id = NEW.conversation_id WHERE run_id = NEW.id;
END;
