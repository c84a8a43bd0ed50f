-- Documents of operators in pieces, and what finds them. They are made from files and are made anew when those change.
CREATE TABLE knowledge_collections (
    id             INTEGER PRIMARY KEY,
    name           TEXT NOT NULL UNIQUE,     -- as configured
    version        INTEGER NOT NULL,         -- of the rules that made its pieces; another one: all is made anew
    roots          TEXT NOT NULL,            -- JSON: what each configured path was when it was last read
    problems       TEXT NOT NULL,            -- JSON: what the last reading could not do
    asked_at_ms    INTEGER,                  -- an operator wants all of it read again
    read_at_ms     INTEGER                   -- when it was last read through
) STRICT;
CREATE TABLE knowledge_documents (
    id             INTEGER PRIMARY KEY,
    collection_id  INTEGER NOT NULL REFERENCES knowledge_collections(id),
    root           TEXT NOT NULL,            -- the configured path
    path           TEXT NOT NULL,            -- below it
    stamp          TEXT NOT NULL,            -- size, times and place of the file; empty: to be read again
    hash           BLOB,                     -- of what was read; NULL: nothing was
    title          TEXT NOT NULL,
    bytes          INTEGER NOT NULL,
    chunks         INTEGER NOT NULL,
    is_cut         INTEGER NOT NULL,         -- it was longer than what is kept
    refused        TEXT,                     -- why nothing of it is kept
    read_at_ms     INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX knowledge_documents_once ON knowledge_documents (collection_id, root, path);
CREATE TABLE knowledge_chunks (
    id             INTEGER PRIMARY KEY,
    document_id    INTEGER NOT NULL REFERENCES knowledge_documents(id),
    headings       TEXT NOT NULL,            -- JSON
    line           INTEGER NOT NULL,
    page           INTEGER,
    content        TEXT NOT NULL
) STRICT;
CREATE INDEX knowledge_chunks_of_document ON knowledge_chunks (document_id);
-- Stems of pieces, each with its collection's row before it, as in turn_stems; the row id is the piece's.
CREATE VIRTUAL TABLE knowledge_stems USING fts5 (
    stems,
    content = '',
    columnsize = 0,
    detail = none,
    tokenize = "ascii tokenchars '_@'"
);
INSERT INTO knowledge_stems (knowledge_stems, rank) VALUES ('secure-delete', 1);
CREATE TABLE knowledge_words (
    collection_id  INTEGER NOT NULL REFERENCES knowledge_collections(id),
    stem           TEXT NOT NULL,
    PRIMARY KEY (collection_id, stem)
) STRICT, WITHOUT ROWID;
