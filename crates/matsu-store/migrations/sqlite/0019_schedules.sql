-- Work that starts by itself: when, what, and what came of each time.

CREATE TABLE schedules (
    seq        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    rule_json  TEXT NOT NULL,
    plan_json  TEXT NOT NULL,
    directory  TEXT,
    overlap    TEXT NOT NULL,
    catch_up   INTEGER NOT NULL,
    paused     TEXT,
    next_at    INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL AND paused IS NULL;

-- A row without try_at is settled.
CREATE TABLE firings (
    seq         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    schedule_id TEXT NOT NULL,
    due_at      INTEGER NOT NULL,
    state       TEXT NOT NULL,
    try_at      INTEGER,
    task_id     TEXT,
    note        TEXT,
    UNIQUE (schedule_id, due_at)
);
CREATE INDEX firings_to_start ON firings (try_at) WHERE try_at IS NOT NULL;
