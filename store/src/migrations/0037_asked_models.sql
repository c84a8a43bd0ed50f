-- The model that a question asks for, by its configured name; NULL: its agent's own.
ALTER TABLE runs ADD COLUMN asked_model TEXT;
-- Whether a conversation goes on from a turn of its parent (root_turn_seq), as another course of it.
ALTER TABLE conversations ADD COLUMN is_fork INTEGER NOT NULL DEFAULT 0;
-- Up to where the person of a program's conversation has read it; NULL: never told.
ALTER TABLE conversations ADD COLUMN last_read_seq INTEGER;
-- Whence a conversation's own title is: person, model; NULL: an operator gave it.
ALTER TABLE conversations ADD COLUMN own_title_from TEXT;
ALTER TABLE conversations ADD COLUMN own_title_participant_id INTEGER REFERENCES participants(id);
-- What a person's questions cost, by UTC day: under a wrong clock the day before must not take the place of today.
CREATE TABLE usage_people_by_day (
    participant_id INTEGER NOT NULL REFERENCES participants(id),
    day_start_ms INTEGER NOT NULL,
    tokens       INTEGER NOT NULL,
    cost_micros  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (participant_id, day_start_ms)
) STRICT, WITHOUT ROWID;
INSERT INTO usage_people_by_day SELECT participant_id, day_start_ms, tokens, cost_micros FROM usage_people;
DROP TABLE usage_people;
ALTER TABLE usage_people_by_day RENAME TO usage_people;
