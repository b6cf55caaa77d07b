-- Addresses that other services send to, and what came of each delivery.

CREATE TABLE webhooks (
    seq        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    secret     TEXT NOT NULL,
    run_json   TEXT NOT NULL,
    directory  TEXT,
    paused     TEXT,
    free_at    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (owner, name)
);

-- A row without try_at is settled.
CREATE TABLE deliveries (
    seq         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    webhook_id  TEXT NOT NULL,
    key         TEXT NOT NULL,
    digest      TEXT,
    received_at INTEGER NOT NULL,
    state       TEXT NOT NULL,
    payload     TEXT,
    try_at      INTEGER,
    task_id     TEXT,
    note        TEXT,
    UNIQUE (webhook_id, key),
    UNIQUE (webhook_id, digest)
);
CREATE INDEX deliveries_to_start ON deliveries (try_at) WHERE try_at IS NOT NULL;
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, seq);
