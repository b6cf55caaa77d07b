-- Notices to people: the channels that were configured, what waits to be sent, and the codes of answers.

CREATE TABLE notify_channels (
    name         TEXT PRIMARY KEY,
    owner        TEXT NOT NULL,
    events       TEXT NOT NULL,
    reply_topic  TEXT NOT NULL,
    position     TEXT,
    reader_node  TEXT,
    reader_until INTEGER,
    seen_at      INTEGER NOT NULL
);

-- A row without due_at is settled, and kept so that the same notice is not made again.
CREATE TABLE outbox (
    seq        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    channel    TEXT NOT NULL,
    event      TEXT NOT NULL,
    task_id    TEXT NOT NULL,
    key        TEXT NOT NULL,
    attempts   INTEGER NOT NULL DEFAULT 0,
    due_at     INTEGER,
    last_error TEXT,
    created_at INTEGER NOT NULL,
    settled_at INTEGER,
    UNIQUE (channel, task_id, key)
);
CREATE INDEX outbox_due ON outbox (channel, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX outbox_settled ON outbox (settled_at) WHERE settled_at IS NOT NULL;

CREATE TABLE answer_codes (
    hash        TEXT PRIMARY KEY,
    channel     TEXT NOT NULL,
    task_id     TEXT NOT NULL,
    job_id      TEXT NOT NULL,
    question_id TEXT NOT NULL,
    choice      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    used_at     INTEGER
);
CREATE INDEX answer_codes_made ON answer_codes (created_at);
