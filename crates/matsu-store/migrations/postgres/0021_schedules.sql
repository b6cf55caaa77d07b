-- Work that starts by itself: when, what, and what came of each time.

CREATE TABLE schedules (
    seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    rule_json  TEXT NOT NULL,
    plan_json  TEXT NOT NULL,
    directory  TEXT,
    overlap    TEXT NOT NULL,
    catch_up   BIGINT NOT NULL,
    paused     TEXT,
    next_at    BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL AND paused IS NULL;

-- A row without try_at is settled.
CREATE TABLE firings (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    schedule_id TEXT NOT NULL,
    due_at      BIGINT NOT NULL,
    state       TEXT NOT NULL,
    try_at      BIGINT,
    task_id     TEXT,
    note        TEXT,
    UNIQUE (schedule_id, due_at)
);
CREATE INDEX firings_to_start ON firings (try_at) WHERE try_at IS NOT NULL;
