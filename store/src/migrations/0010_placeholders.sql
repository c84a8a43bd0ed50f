-- An answer that people see while it is written begins as a post of its run: its placeholder, until
-- the answer is committed or there will be none. A run has one, so that another attempt finds it.
ALTER TABLE outbox ADD COLUMN placeholder_of INTEGER REFERENCES runs(id);
CREATE UNIQUE INDEX outbox_placeholder ON outbox (placeholder_of) WHERE placeholder_of IS NOT NULL;
