-- Skills that an operator approved, as they were then: another hash is another skill.
CREATE TABLE skill_approvals (
    skill          TEXT NOT NULL PRIMARY KEY,  -- its name
    digest         TEXT NOT NULL,              -- of all its files, in hexadecimal
    approved_by    TEXT NOT NULL,              -- the operator's name
    approved_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
