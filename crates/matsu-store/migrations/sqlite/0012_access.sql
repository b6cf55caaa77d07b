-- Users beside the local owner, what a token allows and for how long, and which run opened a chat.

CREATE TABLE users (
    seq        INTEGER PRIMARY KEY,
    principal  TEXT NOT NULL UNIQUE,
    roots_json TEXT NOT NULL,
    created_at INTEGER NOT NULL
);

-- The tokens that exist are the local owner's own.
ALTER TABLE tokens ADD COLUMN role TEXT NOT NULL DEFAULT 'admin';
ALTER TABLE tokens ADD COLUMN tools TEXT;
ALTER TABLE tokens ADD COLUMN expires_at INTEGER;

ALTER TABLE transcripts ADD COLUMN run_id TEXT;

CREATE INDEX sessions_by_owner ON sessions (owner, seq);
