-- What people looked at and did in the console: written before it happens, and never changed but for its outcome. Ids, names
-- of the configuration and words of closed lists; nothing that was said.
CREATE TABLE audit (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms    INTEGER NOT NULL,
    who      TEXT NOT NULL,                  -- the name in console.people
    via      TEXT NOT NULL,                  -- link, proxy
    act      TEXT NOT NULL,                  -- login, logout, look, approve, deny, ...
    target   TEXT NOT NULL,                  -- the id of what it is about; empty: of nothing
    outcome  TEXT NOT NULL                   -- begun, done, refused
) STRICT;
