-- By which time a post's not_before_ms was set; NULL: when it was committed. One that lies ahead was set by a clock
-- that was put right since.
ALTER TABLE outbox ADD COLUMN waits_from_ms INTEGER;
