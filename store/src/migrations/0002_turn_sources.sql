-- What a turn quotes without being a reply to it (a tool's result, the turns it found): when the
-- source is deleted, what was made from it goes with it.
CREATE TABLE turn_sources (
    source_seq   INTEGER NOT NULL REFERENCES turns(seq),
    turn_seq     INTEGER NOT NULL REFERENCES turns(seq),
    PRIMARY KEY (source_seq, turn_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX turn_sources_by_turn ON turn_sources (turn_seq);
