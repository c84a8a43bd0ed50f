-- One queue for durable work, causes as words of a closed list, and no triggers: what follows a change is said in code.

-- Durable background work: a row is work that is open, dead or can't be decoded; what is done has none. Ids only.
CREATE TABLE jobs (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    kind         TEXT NOT NULL,              -- core's JobKind
    key          TEXT NOT NULL,              -- what it is about
    account_id   INTEGER REFERENCES accounts(id), -- NULL = for the daemon itself
    payload      TEXT NOT NULL,              -- JSON
    version      INTEGER NOT NULL,           -- of the payload
    state        TEXT NOT NULL DEFAULT 'pending', -- pending, leased, waiting, dead, quarantined
    waits_for    TEXT,                       -- while it waits
    not_before_ms INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0, -- that count
    owner        BLOB,                       -- owner, token and end of a lease
    token        BLOB,
    lease_until_ms INTEGER,
    is_asked_again INTEGER NOT NULL DEFAULT 0, -- while it was at work: it is done once more
    cause        TEXT,                       -- why it was not done the last time
    asked_at_ms  INTEGER NOT NULL,           -- the last time
    updated_at_ms INTEGER NOT NULL,
    UNIQUE (kind, key)
) STRICT;
CREATE INDEX jobs_by_state ON jobs (state, kind, account_id, not_before_ms, id);
CREATE INDEX jobs_by_account ON jobs (account_id) WHERE account_id IS NOT NULL;
-- What was open becomes jobs; rows that could not be decoded are tried once more.
UPDATE files SET state = 'pending' WHERE state = 'quarantined';
UPDATE files SET speech = 'pending' WHERE speech = 'quarantined';
INSERT INTO jobs (kind, key, account_id, payload, version, not_before_ms, attempts, asked_at_ms, updated_at_ms)
SELECT k.kind, f.id, h.account_id, json_object('file', f.id), 1, f.not_before_ms, f.attempts, t.captured_at_ms,
       t.captured_at_ms
FROM (SELECT 'fetch-file' AS kind UNION ALL SELECT 'transcribe-file') k
JOIN files f ON iif(k.kind = 'fetch-file', f.state, f.speech) = 'pending'
JOIN turns t ON t.seq = f.turn_seq
JOIN conversations c ON c.id = t.conversation_id JOIN chats h ON h.id = c.chat_id
ORDER BY f.not_before_ms, f.id;
INSERT INTO jobs (kind, key, account_id, payload, version, not_before_ms, asked_at_ms, updated_at_ms)
SELECT 'answer-inquiry', q.id, h.account_id, json_object('inquiry', q.id), 1, q.asked_at_ms, q.asked_at_ms,
       q.asked_at_ms
FROM inquiries q JOIN conversations c ON c.id = q.conversation_id JOIN chats h ON h.id = c.chat_id
ORDER BY q.id;
INSERT INTO jobs (kind, key, payload, version, not_before_ms, asked_at_ms, updated_at_ms)
SELECT 'merge-chats', '', '{}', 1, 0, 0, 0 WHERE EXISTS (SELECT 1 FROM chat_merges);
DROP TRIGGER IF EXISTS quarantine_left_by_file;
DROP TRIGGER IF EXISTS quarantine_left_by_voice_note;
DROP TRIGGER IF EXISTS quarantine_left_by_gone_file;
DROP TRIGGER IF EXISTS quarantine_left_by_inquiry;
DROP TRIGGER IF EXISTS quarantine_left_by_gone_inquiry;
DELETE FROM quarantine WHERE queue IN ('file', 'voice-note', 'inquiry');
DROP INDEX files_pending;
DROP INDEX files_to_hear;
ALTER TABLE files DROP COLUMN not_before_ms;
ALTER TABLE files DROP COLUMN attempts;
ALTER TABLE inquiries DROP COLUMN state;
ALTER TABLE inquiries DROP COLUMN asked_at_ms;

-- No triggers: what follows a change is said where the change is made.
DROP TRIGGER run_events_at_end;
DROP TRIGGER run_events_at_return;
DROP TRIGGER run_events_let_go;
DROP TRIGGER run_events_at_stop;
DROP TRIGGER run_events_of_steps;
DROP TRIGGER run_events_move;
DROP TRIGGER former_names_are_kept;
DROP TRIGGER quarantine_left_by_run;
DROP TRIGGER quarantine_left_by_post;
DROP TRIGGER runs_asked;
DROP TRIGGER runs_asked_again;
DROP TRIGGER runs_wait_for_person;
DROP TRIGGER summaries_without_quote;
DROP TRIGGER summaries_set_aside;
DROP TRIGGER runs_follow_merge;
DROP TRIGGER runs_follow_merge_again;

-- Why a run stops and why a post is given up: words of a closed list. What people read stays in reason.
ALTER TABLE runs ADD COLUMN stop_cause TEXT;     -- deleted, edited, erased, interrupted, stopped, unserved, operator; set = it is to stop
UPDATE runs SET stop_cause = CASE coalesce(cancel_requested_by, reason)
                    WHEN 'deleted' THEN 'deleted' WHEN 'edited' THEN 'edited' WHEN 'erased' THEN 'erased'
                    WHEN 'interrupted' THEN 'interrupted' WHEN 'stopped' THEN 'stopped'
                    WHEN 'its chat or person is no longer served' THEN 'unserved' ELSE 'operator' END,
                reason = coalesce(cancel_requested_by, reason)
WHERE cancel_requested_by IS NOT NULL OR state IN ('cancelled', 'superseded');
ALTER TABLE runs DROP COLUMN cancel_requested_by;
ALTER TABLE runs DROP COLUMN deadline_ms;        -- nothing ever wrote it
ALTER TABLE outbox ADD COLUMN dead_cause TEXT;   -- of a dead one: given_up, dropped (needs no decision of a person)
UPDATE outbox SET dead_cause = iif(reason = 'dropped', 'dropped', 'given_up') WHERE state = 'dead';
ALTER TABLE outbox ADD COLUMN stays INTEGER NOT NULL DEFAULT 0; -- a reaction that is not taken away with the answer
UPDATE outbox SET stays = 1, progress = NULL WHERE operation = 'react' AND progress = 'stays';
-- Earlier texts of edited turns go by their age, account by account.
ALTER TABLE revisions ADD COLUMN account_id INTEGER REFERENCES accounts(id);
UPDATE revisions SET account_id = (
    SELECT h.account_id FROM turns t JOIN conversations c ON c.id = t.conversation_id
    JOIN chats h ON h.id = c.chat_id WHERE t.seq = revisions.turn_seq);
CREATE INDEX revisions_by_age ON revisions (account_id, replaced_at_ms);
