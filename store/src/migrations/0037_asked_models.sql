-- The model that a question asks for, by its configured name; NULL: its agent's own.
ALTER TABLE runs ADD COLUMN asked_model TEXT;
-- Whence a conversation's own title is: person, model; NULL: an operator gave it.
ALTER TABLE conversations ADD COLUMN own_title_from TEXT;
ALTER TABLE conversations ADD COLUMN own_title_participant_id INTEGER REFERENCES participants(id);
