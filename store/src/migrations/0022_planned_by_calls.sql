-- The call of an agent's tool that made a schedule: made again after a kill, it finds what it made.
ALTER TABLE schedules ADD COLUMN made_by_call BLOB;
CREATE UNIQUE INDEX schedules_by_call ON schedules (made_by_call) WHERE made_by_call IS NOT NULL;
