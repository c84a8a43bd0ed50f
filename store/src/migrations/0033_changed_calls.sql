-- Arguments of a call that waits can be changed: they are held against the schema that its tool had when it was asked for.
ALTER TABLE approvals ADD COLUMN parameters TEXT; -- JSON schema; NULL: asked for by an older version, and not to be changed
-- Who changed a call is not who may then allow it, wherever they do either.
ALTER TABLE approvals ADD COLUMN operator_people TEXT; -- JSON: the platform's ids of the people who are the operator
