-- What search and costs are counted and found by.

-- Tokens by what the provider's cache did with them. `prompt_tokens` are all of the prompt.
ALTER TABLE steps ADD COLUMN cache_read_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE steps ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN cache_read_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_events ADD COLUMN cache_read_tokens INTEGER;
ALTER TABLE run_events ADD COLUMN cache_write_tokens INTEGER;
-- Of answers and summaries; `tokens` counts voice notes, too.
ALTER TABLE usage_days ADD COLUMN prompt_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN cache_read_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN completion_tokens INTEGER NOT NULL DEFAULT 0;

-- Vectors of turns, where [embeddings] names a server. They go with their turns, and are made anew for another model.
CREATE TABLE embedding_models (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,        -- the provider's name, and the wanted dimensions where they are set
    is_current INTEGER NOT NULL,
    dimensions INTEGER,               -- of its vectors; unknown before the first answer
    turns INTEGER NOT NULL DEFAULT 0, -- with a vector of it
    newest_seq INTEGER NOT NULL,      -- turns after it are still to be embedded
    oldest_seq INTEGER NOT NULL,      -- and so are those before it, backwards; 0 = none is left
    day_start_ms INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0 -- spent on that UTC day
) STRICT;
CREATE TABLE turn_vectors (
    conversation_id INTEGER NOT NULL REFERENCES conversations(id),
    sent_at_ms INTEGER NOT NULL,
    seq INTEGER NOT NULL REFERENCES turns(seq),
    model_id INTEGER NOT NULL REFERENCES embedding_models(id),
    scale REAL NOT NULL,              -- times the signed byte of a dimension gives its number
    vector BLOB NOT NULL,
    PRIMARY KEY (conversation_id, sent_at_ms, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX turn_vectors_by_turn ON turn_vectors (seq);
CREATE INDEX turn_vectors_by_model ON turn_vectors (model_id);
-- Turns whose text changed after they were embedded.
CREATE TABLE turns_to_embed (
    seq INTEGER PRIMARY KEY REFERENCES turns(seq)
) STRICT;

-- Search that forgives: stems of turns, each with its conversation's row before it, so that a word in one
-- conversation reads no other's postings. The row id sorts by position (rows/stem_index). A job fills it, up to
-- through_seq; what is behind is scanned.
CREATE VIRTUAL TABLE turn_stems USING fts5 (
    stems,
    content = '',
    columnsize = 0,
    detail = none,
    tokenize = "ascii tokenchars '_@'"
);
INSERT INTO turn_stems (turn_stems, rank) VALUES ('secure-delete', 1);
CREATE TABLE stem_index (
    id           INTEGER PRIMARY KEY CHECK (id = 1),
    version      INTEGER NOT NULL,           -- of the rules that made the stems
    through_seq  INTEGER NOT NULL            -- turns up to here are in it
) STRICT;
INSERT INTO stem_index VALUES (1, 0, 0);
-- The stems that turns of a conversation have: what a misspelt word can have meant.
CREATE TABLE vocabulary (
    conversation_id INTEGER NOT NULL REFERENCES conversations(id),
    stem         TEXT NOT NULL,
    PRIMARY KEY (conversation_id, stem)
) STRICT, WITHOUT ROWID;
CREATE INDEX turns_with_files ON turns (conversation_id, sent_at_ms) WHERE attachments IS NOT NULL;

-- What calls of models cost, in millionths of the currency of the prices.
ALTER TABLE usage_days ADD COLUMN cost_micros INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_people ADD COLUMN cost_micros INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN cost_micros INTEGER NOT NULL DEFAULT 0;
CREATE TABLE cost_days (
    account_id INTEGER NOT NULL REFERENCES accounts(id),
    day_start_ms INTEGER NOT NULL,               -- UTC
    conversation_id INTEGER NOT NULL REFERENCES conversations(id),
    participant_id INTEGER REFERENCES participants(id), -- who asked; NULL of summaries
    agent TEXT NOT NULL,
    model TEXT NOT NULL,                         -- its name in the configuration
    calls INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost_micros INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX cost_days_once
    ON cost_days (account_id, day_start_ms, conversation_id, coalesce(participant_id, 0), agent, model);
CREATE INDEX cost_days_of_conversation ON cost_days (conversation_id);
CREATE INDEX cost_days_by_day ON cost_days (day_start_ms);
