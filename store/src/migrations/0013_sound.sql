-- What the daemon needs to be sound under a wrong clock, a sick provider and a long run.

-- What the prompts of runs were made from: ids, revisions and settings, and one hash of the whole; no text of
-- a room. Numbered in the order in which they were made.
CREATE TABLE sent_prompts (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id       INTEGER NOT NULL UNIQUE REFERENCES runs(id),
    recipe       TEXT NOT NULL,              -- versioned JSON
    instructions BLOB NOT NULL REFERENCES prompt_texts(hash),
    tools        BLOB NOT NULL REFERENCES prompt_texts(hash),
    summary_id   INTEGER,                    -- may be gone
    turns        BLOB NOT NULL,              -- 21 bytes each: id, role, revision
    thread_answers BLOB NOT NULL             -- 32 bytes each: question, answer or zeros
) STRICT;
-- Instructions and tools as they were configured, once each.
CREATE TABLE prompt_texts (
    hash         BLOB PRIMARY KEY,           -- SHA-256
    text         TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- The names that somebody had up to a prompt, and has no longer.
CREATE TABLE former_names (
    participant_id INTEGER NOT NULL REFERENCES participants(id),
    until_prompt INTEGER NOT NULL,           -- sent_prompts.id
    display_name TEXT,
    username     TEXT,
    PRIMARY KEY (participant_id, until_prompt)
) STRICT, WITHOUT ROWID;
CREATE INDEX former_names_by_prompt ON former_names (until_prompt);
CREATE TRIGGER former_names_are_kept AFTER UPDATE OF display_name, username ON participants
WHEN (OLD.display_name IS NOT NEW.display_name OR OLD.username IS NOT NEW.username)
 AND EXISTS (SELECT 1 FROM sent_prompts)
BEGIN
    -- Of several names between two prompts the first is the one that the earlier prompt showed.
    INSERT OR IGNORE INTO former_names (participant_id, until_prompt, display_name, username)
    VALUES (OLD.id, (SELECT max(id) FROM sent_prompts), OLD.display_name, OLD.username);
END;
-- Posts go in order within their line: a thread, a topic, or what is said at the top of a chat. Signs have their own.
ALTER TABLE outbox ADD COLUMN line TEXT NOT NULL GENERATED ALWAYS AS (
    CASE WHEN operation IN ('react', 'unreact') THEN 'signs'
         WHEN NOT json_valid(target) THEN ''
         ELSE coalesce('thread ' || json_extract(target, '$.thread'), 'topic ' || json_extract(target, '$.topic'), '')
    END) VIRTUAL;
DROP INDEX outbox_open;
CREATE INDEX outbox_open ON outbox (chat_id, line, sort_key) WHERE state IN ('pending', 'leased', 'unknown');
-- Until then the platform takes no further post in the chat, whatever line it is of.
ALTER TABLE chats ADD COLUMN rests_until_ms INTEGER;
-- While the chat refuses posts: those that have waited so long are given up.
ALTER TABLE chats ADD COLUMN parked_keep_ms INTEGER;
-- Rows of queues that can't be decoded: set aside, shown, tried again by another version or when a person says so.
-- Ids only. An entry goes as soon as its row has another state or is gone.
CREATE TABLE quarantine (
    queue        TEXT NOT NULL,              -- question, post, file, voice-note, inquiry
    row_id       INTEGER NOT NULL,
    reason       TEXT NOT NULL,              -- which column, not what it says
    version      TEXT NOT NULL,              -- of the program that could not decode it
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (queue, row_id)
) STRICT, WITHOUT ROWID;
ALTER TABLE inquiries ADD COLUMN state TEXT NOT NULL DEFAULT 'open';
CREATE TRIGGER quarantine_left_by_run AFTER UPDATE OF state ON runs
WHEN OLD.state = 'quarantined' AND NEW.state <> 'quarantined' BEGIN
    DELETE FROM quarantine WHERE queue = 'question' AND row_id = OLD.id;
END;
CREATE TRIGGER quarantine_left_by_post AFTER UPDATE OF state ON outbox
WHEN OLD.state = 'quarantined' AND NEW.state <> 'quarantined' BEGIN
    DELETE FROM quarantine WHERE queue = 'post' AND row_id = OLD.id;
END;
CREATE TRIGGER quarantine_left_by_file AFTER UPDATE OF state ON files
WHEN OLD.state = 'quarantined' AND NEW.state <> 'quarantined' BEGIN
    DELETE FROM quarantine WHERE queue = 'file' AND row_id = OLD.id;
END;
CREATE TRIGGER quarantine_left_by_voice_note AFTER UPDATE OF speech ON files
WHEN OLD.speech = 'quarantined' AND NEW.speech IS NOT 'quarantined' BEGIN
    DELETE FROM quarantine WHERE queue = 'voice-note' AND row_id = OLD.id;
END;
CREATE TRIGGER quarantine_left_by_gone_file AFTER DELETE ON files
WHEN OLD.state = 'quarantined' OR OLD.speech = 'quarantined' BEGIN
    DELETE FROM quarantine WHERE queue IN ('file', 'voice-note') AND row_id = OLD.id;
END;
CREATE TRIGGER quarantine_left_by_inquiry AFTER UPDATE OF state ON inquiries
WHEN OLD.state = 'quarantined' AND NEW.state <> 'quarantined' BEGIN
    DELETE FROM quarantine WHERE queue = 'inquiry' AND row_id = OLD.id;
END;
CREATE TRIGGER quarantine_left_by_gone_inquiry AFTER DELETE ON inquiries
WHEN OLD.state = 'quarantined' BEGIN
    DELETE FROM quarantine WHERE queue = 'inquiry' AND row_id = OLD.id;
END;
-- Fresh starts up to this one are those that a run reads by: set at its first claim, in the order of commits
-- and not by the clock.
ALTER TABLE runs ADD COLUMN afresh_ms INTEGER;
-- Waiting for a model. The run clock counts the milliseconds for which a daemon worked while a run was
-- unfinished: no step of the wall clock changes it. By it a question's age is counted.
CREATE TABLE run_clock (
    id           INTEGER PRIMARY KEY CHECK (id = 1),
    elapsed_ms   INTEGER NOT NULL
) STRICT;
INSERT INTO run_clock (id, elapsed_ms) VALUES (1, 0);
ALTER TABLE runs ADD COLUMN asked_at_run_ms INTEGER NOT NULL DEFAULT 0; -- by the run clock; while it waits for a person, minus its age
ALTER TABLE runs ADD COLUMN put_offs INTEGER NOT NULL DEFAULT 0; -- attempts that do not count
ALTER TABLE runs ADD COLUMN put_off_at_ms INTEGER; -- when not_before_ms was set for another attempt
CREATE INDEX runs_open_by_agent ON runs (conversation_id, agent, id) WHERE state IN ('queued', 'leased', 'waiting');
CREATE TRIGGER runs_asked AFTER INSERT ON runs
BEGIN
    UPDATE runs SET asked_at_run_ms = (SELECT elapsed_ms FROM run_clock) WHERE id = NEW.id;
END;
-- A run that comes back has not waited yet.
CREATE TRIGGER runs_asked_again AFTER UPDATE OF state ON runs
WHEN NEW.state = 'queued' AND OLD.state NOT IN ('queued', 'leased', 'waiting')
BEGIN
    UPDATE runs SET asked_at_run_ms = (SELECT elapsed_ms FROM run_clock), put_off_at_ms = NULL,
                    put_offs = min(put_offs, attempt)
    WHERE id = NEW.id;
END;
-- While a person is waited for, a run does not age.
CREATE TRIGGER runs_wait_for_person AFTER UPDATE OF state ON runs
WHEN (NEW.state = 'waiting') <> (OLD.state = 'waiting')
BEGIN
    UPDATE runs SET asked_at_run_ms = asked_at_run_ms
                  + iif(NEW.state = 'waiting', -1, 1) * (SELECT elapsed_ms FROM run_clock)
    WHERE id = NEW.id;
END;
-- Models that are not asked for now: over their limit or down until a time, or their account is refused
-- until it is not, or a person releases it.
CREATE TABLE model_rests (
    model        TEXT PRIMARY KEY,           -- its configured name
    is_held      INTEGER NOT NULL,           -- its account is refused
    reason       TEXT NOT NULL,
    since_ms     INTEGER NOT NULL,
    noted_at_ms  INTEGER NOT NULL,
    until_ms     INTEGER NOT NULL            -- then one question tries it
) STRICT, WITHOUT ROWID;

-- How platforms number messages: the newest number known of a sequence, and the newest that an event told of,
-- with the platform's time of that message. Numbers that are known, of the last ones. Never what was said.
CREATE TABLE sequences (
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    name         TEXT NOT NULL,              -- as the adapter names it
    newest       INTEGER NOT NULL,
    heard        INTEGER,
    heard_sent_at_ms INTEGER,
    PRIMARY KEY (account_id, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE numbers (
    account_id   INTEGER NOT NULL REFERENCES accounts(id),
    sequence     TEXT NOT NULL,
    number       INTEGER NOT NULL,
    PRIMARY KEY (account_id, sequence, number)
) STRICT, WITHOUT ROWID;
ALTER TABLE chats ADD COLUMN newest_own_number INTEGER; -- of a chat identity: our newest post that is there
ALTER TABLE chats ADD COLUMN unsure_up_to INTEGER;      -- up to there a post may be that was given up
ALTER TABLE accounts ADD COLUMN other_sender_ms INTEGER; -- when another program was seen to act as the bot, platform time
ALTER TABLE accounts ADD COLUMN resent_undecided INTEGER NOT NULL DEFAULT 0; -- posts sent again though they may be there
ALTER TABLE outbox ADD COLUMN sequence TEXT;            -- of the chat when it was sent, where numbers tell anything
ALTER TABLE outbox ADD COLUMN number_above INTEGER;     -- the newest number known then
ALTER TABLE outbox ADD COLUMN probing TEXT;             -- JSON: what was learnt by asking about numbers
ALTER TABLE outbox ADD COLUMN is_undecided INTEGER NOT NULL DEFAULT 0; -- it was asked about, and nobody can say
-- Tokens that a person's questions and voice notes cost on the newest UTC day on which there were any. Numbers only.
CREATE TABLE usage_people (
    participant_id INTEGER PRIMARY KEY REFERENCES participants(id),
    day_start_ms INTEGER NOT NULL,
    tokens       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
ALTER TABLE usage_days ADD COLUMN summary_tokens INTEGER NOT NULL DEFAULT 0; -- of its tokens
ALTER TABLE usage_days ADD COLUMN speech_tokens INTEGER NOT NULL DEFAULT 0;

-- Which turns were folded into which summary: a change to one of them touches what holds it and nothing else.
CREATE TABLE summary_turns (
    turn_seq     INTEGER NOT NULL REFERENCES turns(seq),
    summary_id   INTEGER NOT NULL REFERENCES summaries(id) ON DELETE CASCADE,
    PRIMARY KEY (turn_seq, summary_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX summary_turns_by_summary ON summary_turns (summary_id);
ALTER TABLE summaries ADD COLUMN is_traced INTEGER NOT NULL DEFAULT 0; -- its turns are in summary_turns
ALTER TABLE summaries ADD COLUMN holds_expired INTEGER NOT NULL DEFAULT 0; -- of a turn that went by its age: it can't be made again
UPDATE summaries SET holds_expired = 1
WHERE from_sent_at_ms < (SELECT c.expired_through_ms FROM conversations c WHERE c.id = conversation_id);
-- A quote goes when what it quotes is deleted; so does every summary that holds it.
CREATE TRIGGER summaries_without_quote AFTER UPDATE OF quote ON turns
WHEN OLD.quote IS NOT NULL AND NEW.quote IS NULL AND NEW.visibility = 'room' BEGIN
    UPDATE summaries SET state = 'void', text = '', tokens = 0
    WHERE conversation_id = NEW.conversation_id AND through_sent_at_ms >= NEW.sent_at_ms AND state <> 'void'
      AND EXISTS (SELECT 1 FROM summary_turns x CROSS JOIN summaries d ON d.id = x.summary_id
                  WHERE x.turn_seq = NEW.seq AND d.agent = summaries.agent AND d.fingerprint = summaries.fingerprint
                    AND (d.through_sent_at_ms, d.through_ordinal, d.through_seq)
                        <= (summaries.through_sent_at_ms, summaries.through_ordinal, summaries.through_seq));
END;
-- Conversations whose summaries were set aside: when they are made again, and how much of that a day.
CREATE TABLE refolds (
    conversation_id INTEGER PRIMARY KEY REFERENCES conversations(id) ON DELETE CASCADE,
    until_sent_at_ms INTEGER NOT NULL,       -- up to there turns were folded before
    changes      INTEGER NOT NULL,           -- summaries that were set aside, ever
    seen_changes INTEGER NOT NULL DEFAULT 0, -- of these, up to the last look
    seen_at_ms   INTEGER NOT NULL DEFAULT 0, -- when a look found new ones
    since_ms     INTEGER,                    -- when a look found the first since anything was made again
    day_from_ms  INTEGER NOT NULL DEFAULT 0,
    requests     INTEGER NOT NULL DEFAULT 0  -- in the day from there
) STRICT;
CREATE TRIGGER summaries_set_aside AFTER UPDATE OF state ON summaries
WHEN OLD.state = 'current' AND NEW.state <> 'current' BEGIN
    INSERT INTO refolds (conversation_id, until_sent_at_ms, changes)
    VALUES (NEW.conversation_id, NEW.through_sent_at_ms, 1)
    ON CONFLICT DO UPDATE SET changes = changes + 1,
                              until_sent_at_ms = max(until_sent_at_ms, excluded.until_sent_at_ms);
END;
-- Erasures that people asked for reach what they said and what was made from it, in their account; an
-- operator's reach everything.
ALTER TABLE erasures ADD COLUMN reach TEXT NOT NULL DEFAULT 'everywhere'; -- everywhere, own
ALTER TABLE erasures ADD COLUMN reached TEXT;           -- JSON: the place of the last turn that was blanked
CREATE INDEX erasures_asked ON erasures (erased_at_ms) WHERE reach = 'own' AND kind <> 'message';
CREATE INDEX raw_envelopes_without_turn ON raw_envelopes (account_id, id) WHERE turn_seq IS NULL;
CREATE INDEX non_messages_by_sender ON non_messages (account_id, sender_id);
-- What a run read for certain besides its question: turns whose files its prompt held, and turns that its
-- tools found. Its answer goes with them.
CREATE TABLE run_sources (
    source_seq   INTEGER NOT NULL REFERENCES turns(seq),
    run_id       INTEGER NOT NULL REFERENCES runs(id),
    PRIMARY KEY (source_seq, run_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_sources_by_run ON run_sources (run_id);
INSERT INTO run_sources (source_seq, run_id)
SELECT DISTINCT s.source_seq, t.run_id FROM turn_sources s JOIN turns t ON t.seq = s.turn_seq
WHERE t.run_id IS NOT NULL;

-- Chats that are becoming one in bounded steps (docs/adr/0037-merging-chats.md): what is left to move. Ids only.
CREATE TABLE chat_merges (
    from_chat_id INTEGER PRIMARY KEY REFERENCES chats(id),
    chat_id      INTEGER NOT NULL REFERENCES chats(id),
    posts_through INTEGER NOT NULL DEFAULT 0 -- outbox.id; those up to it have moved
) STRICT;
CREATE TABLE conversation_merges (
    source_id    INTEGER PRIMARY KEY REFERENCES conversations(id), -- gone when it is empty
    target_id    INTEGER NOT NULL REFERENCES conversations(id)
) STRICT;
CREATE INDEX conversation_merges_by_target ON conversation_merges (target_id);
ALTER TABLE conversations ADD COLUMN merged_seq INTEGER; -- the newest seq that a turn got by moving in or out
CREATE INDEX conversations_by_root ON conversations (root_turn_seq) WHERE root_turn_seq IS NOT NULL;
-- A run of a conversation that is being emptied works where its turns go.
CREATE TRIGGER runs_follow_merge AFTER INSERT ON runs
WHEN EXISTS (SELECT 1 FROM conversation_merges WHERE source_id = NEW.conversation_id) BEGIN
    UPDATE runs SET conversation_id = (SELECT target_id FROM conversation_merges WHERE source_id = NEW.conversation_id)
    WHERE id = NEW.id;
END;
CREATE TRIGGER runs_follow_merge_again AFTER UPDATE OF state ON runs
WHEN NEW.state IN ('queued', 'leased', 'waiting')
 AND EXISTS (SELECT 1 FROM conversation_merges WHERE source_id = NEW.conversation_id) BEGIN
    UPDATE runs SET conversation_id = (SELECT target_id FROM conversation_merges WHERE source_id = NEW.conversation_id)
    WHERE id = NEW.id;
END;

-- What the contexts of models were found to hold.
CREATE TABLE context_limits (
    model        TEXT PRIMARY KEY,           -- its configured name and the provider's
    tokens       INTEGER NOT NULL,
    learnt_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
