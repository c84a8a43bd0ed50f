-- Whether a message may be meant for somebody else than the agent that its run is of.
ALTER TABLE run_triggers ADD COLUMN is_unsure INTEGER NOT NULL DEFAULT 0;
