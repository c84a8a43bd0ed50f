-- Tool calls: what a model asked for, a row each. A result is committed with its turns before the next wave begins.
CREATE TABLE tool_calls (
    id           INTEGER PRIMARY KEY,
    uuid         BLOB NOT NULL UNIQUE,       -- also the turn of the timeline that shows the call
    run_id       INTEGER NOT NULL REFERENCES runs(id),
    step         INTEGER,                    -- NULL: the step was forgotten; the row says only that it acted
    n            INTEGER NOT NULL,           -- its place in the step, from 0
    call_id      TEXT NOT NULL,              -- the provider's name for it
    tool         TEXT NOT NULL,
    arguments    TEXT NOT NULL,              -- as they are made
    digest       BLOB NOT NULL,
    rule         TEXT NOT NULL,              -- repeatable, keyed, once
    state        TEXT NOT NULL,              -- waiting, ready, running, done, failed, unknown, denied
    refusal      TEXT,
    attempts     INTEGER NOT NULL DEFAULT 0,
    result       TEXT,                       -- what the model is told
    created_at_ms INTEGER NOT NULL,
    started_at_ms INTEGER,
    finished_at_ms INTEGER
) STRICT;
CREATE UNIQUE INDEX tool_calls_once ON tool_calls (run_id, step, n);
-- Calls of tools in a day, of a person or of nobody.
CREATE TABLE tool_days (
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    day_start_ms INTEGER NOT NULL,           -- UTC
    tool         TEXT NOT NULL,
    participant_id INTEGER REFERENCES participants(id),
    begun        INTEGER NOT NULL DEFAULT 0,
    done         INTEGER NOT NULL DEFAULT 0,
    failed       INTEGER NOT NULL DEFAULT 0,
    unknown      INTEGER NOT NULL DEFAULT 0,
    denied       INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX tool_days_once ON tool_days (account_id, day_start_ms, tool, coalesce(participant_id, 0));
CREATE INDEX tool_days_by_day ON tool_days (day_start_ms);

-- Telegram: what a post that a person gave up may have left is told from another post's only by messages sent long after.
ALTER TABLE chats ADD COLUMN unsure_until_ms INTEGER;   -- until then by the platform's time
UPDATE chats SET unsure_until_ms = (SELECT max(s.heard_sent_at_ms) FROM sequences s
                                    WHERE s.account_id = chats.account_id) + 86400000
WHERE unsure_up_to IS NOT NULL;
ALTER TABLE chats DROP COLUMN unsure_up_to;
ALTER TABLE outbox ADD COLUMN above_sent_at_ms INTEGER; -- when the newest message that was heard then was sent
-- What was deleted before may have left copies in unused bytes of the file: they are overwritten once.
INSERT INTO jobs (kind, key, payload, version, not_before_ms, asked_at_ms, updated_at_ms)
SELECT 'clean-pages', '', '{}', 1, captured_at_ms, captured_at_ms, captured_at_ms FROM turns ORDER BY seq DESC LIMIT 1;

-- Who is another bot: what it says is never found without being asked for. Of those heard before only the sign is
-- known that their platform gives: Slack's ids of bots, and Telegram's usernames, which end so.
ALTER TABLE participants ADD COLUMN is_bot INTEGER NOT NULL DEFAULT 0;
UPDATE participants SET is_bot = 1
WHERE kind = 'user' AND account_id IN (SELECT id FROM accounts WHERE platform = 'slack') AND platform_id GLOB 'B[0-9A-Z]*';
UPDATE participants SET is_bot = 1
WHERE kind = 'user' AND account_id IN (SELECT id FROM accounts WHERE platform = 'telegram') AND lower(username) GLOB '*bot';
CREATE INDEX participants_not_people ON participants (account_id) WHERE is_bot OR kind <> 'user';
