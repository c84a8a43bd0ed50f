-- What a server of tools asks a person, with the question that is asked for it.
ALTER TABLE questions ADD COLUMN asked_form TEXT; -- JSON: the round of the call and which of its forms; NULL: a model asks
