-- Turns that would go on with their thread, were it an agent's. A platform may tell of them before it
-- tells of what makes it one; they are judged again then.
ALTER TABLE turns ADD COLUMN follows_up INTEGER NOT NULL DEFAULT 0;
CREATE INDEX turns_following_up ON turns (conversation_id, sent_at_ms, ordinal, seq) WHERE follows_up = 1;
