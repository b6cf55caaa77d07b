-- Transcripts: chats with models, what was said in them, and answers under way.

CREATE TABLE transcripts (
    chat_id       TEXT NOT NULL PRIMARY KEY,
    owner         TEXT NOT NULL,
    name          TEXT,
    system_prompt TEXT,
    place         TEXT NOT NULL,
    updated_at    INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX transcripts_name ON transcripts (owner, name) WHERE name IS NOT NULL;
CREATE INDEX transcripts_updated ON transcripts (owner, updated_at);

CREATE TABLE transcript_entries (
    chat_id    TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    entry_json TEXT NOT NULL,
    PRIMARY KEY (chat_id, seq)
) WITHOUT ROWID;

CREATE TABLE transcript_drafts (
    chat_id      TEXT NOT NULL,
    model        TEXT NOT NULL,
    entries_json TEXT NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (chat_id, model)
) WITHOUT ROWID;
