-- The engine: tasks, jobs, permits, budgets, rates, changes, nodes, tokens.
-- Times are milliseconds since 1970. Words are those of matsu-core. Never edited, only added to.

CREATE TABLE tasks (
    seq                BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE,
    kind               TEXT NOT NULL,
    owner              TEXT NOT NULL,
    project_id         TEXT,
    title              TEXT NOT NULL,
    status             TEXT NOT NULL,
    status_message     TEXT,
    held_by            TEXT,
    revision           BIGINT NOT NULL,
    finished_revision  BIGINT NOT NULL,
    attention_revision BIGINT NOT NULL,
    config_json        TEXT NOT NULL,
    assignee           TEXT,
    parent_id          TEXT,
    depth              BIGINT NOT NULL,
    n_queued           BIGINT NOT NULL,
    n_running          BIGINT NOT NULL,
    n_awaiting_auth    BIGINT NOT NULL,
    n_awaiting_input   BIGINT NOT NULL,
    n_completed        BIGINT NOT NULL,
    n_failed           BIGINT NOT NULL,
    n_cancelled        BIGINT NOT NULL,
    stop_mode          TEXT,
    stop_reason        TEXT,
    stop_requested_at  BIGINT,
    created_at         BIGINT NOT NULL,
    updated_at         BIGINT NOT NULL,
    finished_at        BIGINT,
    first_read_at      BIGINT
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
    expired_at BIGINT NOT NULL
);
CREATE INDEX tombstones_by_age ON tombstones (expired_at);

CREATE TABLE jobs (
    seq             BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    task_id         TEXT,
    kind            TEXT NOT NULL,
    priority        BIGINT NOT NULL,
    slot            TEXT NOT NULL,
    state           TEXT NOT NULL,
    -- Of queued jobs: 0 can be claimed, 1 is delayed until run_at, 2 is held back with its task.
    hold            BIGINT NOT NULL,
    input_json      TEXT NOT NULL,
    output_json     TEXT,
    error_code      TEXT,
    error_message   TEXT,
    queued_at       BIGINT NOT NULL,
    started_at      BIGINT,
    finished_at     BIGINT,
    cause_id        TEXT,
    run_at          BIGINT NOT NULL,
    attempt         BIGINT NOT NULL,
    failures        BIGINT NOT NULL,
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
    n       BIGINT NOT NULL,
    job_id  TEXT,
    attempt BIGINT,
    PRIMARY KEY (slot, n)
);
-- Hot rows that never change an indexed column stay on their page.
ALTER TABLE permits SET (fillfactor = 50);
ALTER TABLE jobs SET (fillfactor = 70);
ALTER TABLE tasks SET (fillfactor = 50);

CREATE TABLE budgets (
    task_id    TEXT NOT NULL,
    unit       TEXT NOT NULL,
    amount_max BIGINT NOT NULL,
    used       BIGINT NOT NULL,
    PRIMARY KEY (task_id, unit)
);

CREATE TABLE reservations (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id  TEXT NOT NULL,
    task_id TEXT NOT NULL,
    unit    TEXT NOT NULL,
    amount  BIGINT NOT NULL
);
CREATE INDEX reservations_by_job ON reservations (job_id);

CREATE TABLE rates (
    name    TEXT PRIMARY KEY,
    next_at BIGINT NOT NULL
);

CREATE TABLE changes (
    -- Commits can overtake each other, so a reader orders by transaction and stops before the oldest open one.
    xid      BIGINT NOT NULL DEFAULT (pg_current_xact_id()::text::bigint),
    seq      BIGINT GENERATED ALWAYS AS IDENTITY,
    topic    TEXT NOT NULL,
    kind     TEXT NOT NULL,
    revision BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    PRIMARY KEY (xid, seq)
);

CREATE TABLE idempotency (
    principal  TEXT NOT NULL,
    tool       TEXT NOT NULL,
    name       TEXT NOT NULL,
    body_hash  TEXT NOT NULL,
    task_id    TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (principal, tool, name)
);
CREATE INDEX idempotency_by_age ON idempotency (created_at);

CREATE TABLE nodes (
    id         TEXT PRIMARY KEY,
    role       TEXT NOT NULL,
    host       TEXT NOT NULL,
    pid        BIGINT NOT NULL,
    version    TEXT NOT NULL,
    beat       BIGINT NOT NULL,
    started_at BIGINT NOT NULL
);

CREATE TABLE tokens (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    principal   TEXT NOT NULL,
    secret_hash TEXT NOT NULL UNIQUE,
    created_at  BIGINT NOT NULL,
    revoked_at  BIGINT
);
CREATE UNIQUE INDEX tokens_by_name ON tokens (name) WHERE revoked_at IS NULL;
