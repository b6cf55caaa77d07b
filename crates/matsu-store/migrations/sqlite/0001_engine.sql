-- The engine: tasks, jobs, permits, budgets, rates, changes, nodes, tokens.
-- Times are milliseconds since 1970. Words are those of matsu-core. Never edited, only added to.

CREATE TABLE tasks (
    seq                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE,
    kind               TEXT NOT NULL,
    owner              TEXT NOT NULL,
    project_id         TEXT,
    title              TEXT NOT NULL,
    status             TEXT NOT NULL,
    status_message     TEXT,
    held_by            TEXT,
    revision           INTEGER NOT NULL,
    finished_revision  INTEGER NOT NULL,
    attention_revision INTEGER NOT NULL,
    config_json        TEXT NOT NULL,
    assignee           TEXT,
    parent_id          TEXT,
    depth              INTEGER NOT NULL,
    n_queued           INTEGER NOT NULL,
    n_running          INTEGER NOT NULL,
    n_awaiting_auth    INTEGER NOT NULL,
    n_awaiting_input   INTEGER NOT NULL,
    n_completed        INTEGER NOT NULL,
    n_failed           INTEGER NOT NULL,
    n_cancelled        INTEGER NOT NULL,
    stop_mode          TEXT,
    stop_reason        TEXT,
    stop_requested_at  INTEGER,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    finished_at        INTEGER,
    first_read_at      INTEGER
);
CREATE INDEX tasks_by_owner ON tasks (owner, seq);
CREATE INDEX tasks_by_parent ON tasks (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX tasks_by_end ON tasks (finished_at) WHERE finished_at IS NOT NULL AND kind <> 'research';
CREATE INDEX tasks_open_waits ON tasks (created_at) WHERE kind = 'wait' AND finished_at IS NULL;
CREATE INDEX tasks_by_reading ON tasks (first_read_at) WHERE first_read_at IS NOT NULL AND kind <> 'research';

CREATE TABLE tombstones (
    id         TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,
    status     TEXT NOT NULL,
    expired_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tombstones_by_age ON tombstones (expired_at);

CREATE TABLE jobs (
    seq             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    task_id         TEXT,
    kind            TEXT NOT NULL,
    priority        INTEGER NOT NULL,
    slot            TEXT NOT NULL,
    state           TEXT NOT NULL,
    -- Of queued jobs: 0 can be claimed, 1 is delayed until run_at, 2 is held back with its task.
    hold            INTEGER NOT NULL,
    input_json      TEXT NOT NULL,
    output_json     TEXT,
    error_code      TEXT,
    error_message   TEXT,
    queued_at       INTEGER NOT NULL,
    started_at      INTEGER,
    finished_at     INTEGER,
    cause_id        TEXT,
    run_at          INTEGER NOT NULL,
    attempt         INTEGER NOT NULL,
    failures        INTEGER NOT NULL,
    owner_node      TEXT,
    dedupe_key      TEXT,
    progress_json   TEXT,
    checkpoint_json TEXT
);
CREATE INDEX jobs_ready ON jobs (slot, priority, queued_at, seq) WHERE state = 'queued' AND hold = 0;
CREATE INDEX jobs_delayed ON jobs (slot, run_at) WHERE state = 'queued' AND hold = 1;
CREATE INDEX jobs_by_task ON jobs (task_id, seq);
CREATE INDEX jobs_unfinished ON jobs (task_id, dedupe_key) WHERE finished_at IS NULL;
CREATE INDEX jobs_by_owner ON jobs (owner_node) WHERE state IN ('running', 'awaiting_input');

-- A permit is a row: free while job_id is null. Numbers above the slot's limit are extra ones, taken by jobs that
-- come back from waiting for their own descendants.
CREATE TABLE permits (
    slot    TEXT NOT NULL,
    n       INTEGER NOT NULL,
    job_id  TEXT,
    attempt INTEGER,
    PRIMARY KEY (slot, n)
) WITHOUT ROWID;

CREATE TABLE budgets (
    task_id    TEXT NOT NULL,
    unit       TEXT NOT NULL,
    amount_max INTEGER NOT NULL,
    used       INTEGER NOT NULL,
    PRIMARY KEY (task_id, unit)
) WITHOUT ROWID;

CREATE TABLE reservations (
    id      INTEGER PRIMARY KEY,
    job_id  TEXT NOT NULL,
    task_id TEXT NOT NULL,
    unit    TEXT NOT NULL,
    amount  INTEGER NOT NULL
);
CREATE INDEX reservations_by_job ON reservations (job_id);

CREATE TABLE rates (
    name    TEXT PRIMARY KEY,
    next_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE changes (
    -- The newest row is never pruned, so numbers only grow and a cursor that points behind the end stays there.
    seq      INTEGER PRIMARY KEY,
    topic    TEXT NOT NULL,
    kind     TEXT NOT NULL,
    revision INTEGER NOT NULL,
    at       INTEGER NOT NULL
);

CREATE TABLE idempotency (
    principal  TEXT NOT NULL,
    tool       TEXT NOT NULL,
    name       TEXT NOT NULL,
    body_hash  TEXT NOT NULL,
    task_id    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (principal, tool, name)
) WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (created_at);

CREATE TABLE nodes (
    id         TEXT PRIMARY KEY,
    role       TEXT NOT NULL,
    host       TEXT NOT NULL,
    pid        INTEGER NOT NULL,
    version    TEXT NOT NULL,
    beat       INTEGER NOT NULL,
    started_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE tokens (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    principal   TEXT NOT NULL,
    secret_hash TEXT NOT NULL UNIQUE,
    created_at  INTEGER NOT NULL,
    revoked_at  INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_by_name ON tokens (name) WHERE revoked_at IS NULL;
