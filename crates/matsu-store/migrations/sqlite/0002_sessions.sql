-- Sessions: projects, agents, chats and their messages, sessions, notifications.

CREATE TABLE projects (
    seq               INTEGER PRIMARY KEY,
    id                TEXT NOT NULL UNIQUE,
    name              TEXT NOT NULL,
    working_directory TEXT,
    status            TEXT NOT NULL,
    created_at        INTEGER NOT NULL
);
INSERT INTO projects (id, name, status, created_at) VALUES ('default', 'Default', 'active', 0);

CREATE TABLE agents (
    seq           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    name          TEXT NOT NULL,
    definition    TEXT,
    system_prompt TEXT,
    passkey_hash  TEXT NOT NULL,
    created_at    INTEGER NOT NULL
);

CREATE TABLE chats (
    seq              INTEGER PRIMARY KEY,
    id               TEXT NOT NULL UNIQUE,
    -- Either an agent or models.
    agent_id         TEXT,
    project_id       TEXT NOT NULL,
    models_json      TEXT,
    state            TEXT NOT NULL,
    last_seq         INTEGER NOT NULL,
    acked_seq        INTEGER NOT NULL,
    handed_seq       INTEGER NOT NULL,
    last_person_seq  INTEGER NOT NULL,
    last_reply_seq   INTEGER NOT NULL,
    connecting_since INTEGER,
    last_message_at  INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    ended_at         INTEGER
);
CREATE UNIQUE INDEX chats_open ON chats (agent_id, project_id) WHERE state = 'open' AND agent_id IS NOT NULL;
CREATE INDEX chats_connecting ON chats (connecting_since) WHERE connecting_since IS NOT NULL;

CREATE TABLE messages (
    chat_id    TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    id         TEXT NOT NULL UNIQUE,
    sender     TEXT NOT NULL,
    sender_id  TEXT NOT NULL,
    content    TEXT NOT NULL,
    reply_to   TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (chat_id, seq)
) WITHOUT ROWID;

CREATE TABLE sessions (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    token_hash   TEXT NOT NULL UNIQUE,
    owner        TEXT NOT NULL,
    agent_id     TEXT NOT NULL,
    project_id   TEXT NOT NULL,
    purpose      TEXT NOT NULL,
    task_id      TEXT,
    chat_id      TEXT,
    job_id       TEXT,
    mode         TEXT,
    grants       TEXT,
    state        TEXT NOT NULL,
    end_reason   TEXT,
    -- The last messages handed out, and over which connection.
    handed_seq   INTEGER,
    handed_to    TEXT,
    report_json  TEXT,
    created_at   INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    ended_at     INTEGER
);
CREATE INDEX sessions_active ON sessions (agent_id, project_id) WHERE state = 'active';
CREATE UNIQUE INDEX sessions_of_chat ON sessions (chat_id) WHERE state = 'active' AND chat_id IS NOT NULL;
CREATE INDEX sessions_of_task ON sessions (task_id) WHERE state = 'active' AND task_id IS NOT NULL;
CREATE INDEX sessions_of_job ON sessions (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX sessions_unended ON sessions (expires_at) WHERE state <> 'ended';
CREATE INDEX sessions_ended ON sessions (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE notifications (
    seq             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    agent_id        TEXT NOT NULL,
    project_id      TEXT NOT NULL,
    session_id      TEXT,
    kind            TEXT NOT NULL,
    action          TEXT NOT NULL,
    cause           TEXT NOT NULL,
    task_id         TEXT,
    text            TEXT,
    instruction     TEXT,
    times           INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    delivered_at    INTEGER,
    acknowledged_at INTEGER,
    voided_at       INTEGER
);
CREATE INDEX notifications_unread ON notifications (session_id)
    WHERE acknowledged_at IS NULL AND voided_at IS NULL;
CREATE INDEX notifications_of_task ON notifications (task_id)
    WHERE acknowledged_at IS NULL AND voided_at IS NULL AND task_id IS NOT NULL;
CREATE INDEX notifications_interrupts ON notifications (created_at)
    WHERE kind = 'interrupt' AND acknowledged_at IS NULL AND voided_at IS NULL;
CREATE INDEX notifications_by_age ON notifications (created_at);

CREATE INDEX tasks_by_assignee ON tasks (assignee, project_id) WHERE assignee IS NOT NULL AND finished_at IS NULL;
CREATE INDEX tasks_unread ON tasks (owner)
    WHERE kind = 'agent' AND status IN ('completed', 'failed') AND first_read_at IS NULL;
