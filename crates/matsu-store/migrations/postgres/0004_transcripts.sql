-- Transcripts: chats with models, what was said in them, and answers under way.

CREATE TABLE transcripts (
    chat_id       TEXT NOT NULL PRIMARY KEY,
    owner         TEXT NOT NULL,
    name          TEXT,
    system_prompt TEXT,
    place         TEXT NOT NULL,
    updated_at    BIGINT NOT NULL
);
CREATE UNIQUE INDEX transcripts_name ON transcripts (owner, name) WHERE name IS NOT NULL;
CREATE INDEX transcripts_updated ON transcripts (owner, updated_at);

CREATE TABLE transcript_entries (
    chat_id    TEXT NOT NULL,
    seq        BIGINT NOT NULL,
    entry_json TEXT NOT NULL,
    PRIMARY KEY (chat_id, seq)
);

CREATE TABLE transcript_drafts (
    chat_id      TEXT NOT NULL,
    model        TEXT NOT NULL,
    entries_json TEXT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (chat_id, model)
);
