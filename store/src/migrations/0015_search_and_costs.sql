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
