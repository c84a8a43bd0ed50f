-- How often a process ended while it worked on the run.
ALTER TABLE runs ADD COLUMN interruptions INTEGER NOT NULL DEFAULT 0;
-- Since when each kept value is there, as JSON; of one that is not named, since at_ms. oldest_ms: the least of them.
ALTER TABLE network_states ADD COLUMN since TEXT NOT NULL DEFAULT '{}';
ALTER TABLE network_states ADD COLUMN oldest_ms INTEGER NOT NULL DEFAULT 0;
UPDATE network_states SET oldest_ms = at_ms;
CREATE INDEX network_states_by_age ON network_states(oldest_ms) WHERE state <> '{}';
