-- What each node that runs jobs allows of each slot. The smallest counts for all of them, while its node lives.
CREATE TABLE slot_wishes (
    slot        TEXT NOT NULL,
    node_id     TEXT NOT NULL,
    permits_max INTEGER NOT NULL,
    PRIMARY KEY (slot, node_id)
) WITHOUT ROWID;

-- Jobs of the house belong to no task, so no task takes them along when it goes.
CREATE INDEX jobs_of_the_house ON jobs (finished_at) WHERE task_id IS NULL AND finished_at IS NOT NULL;

-- Tokens get a number, the cursor of their pages.
CREATE TABLE numbered_tokens (
    seq         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    name        TEXT NOT NULL,
    principal   TEXT NOT NULL,
    secret_hash TEXT NOT NULL UNIQUE,
    created_at  INTEGER NOT NULL,
    revoked_at  INTEGER
);
INSERT INTO numbered_tokens (id, name, principal, secret_hash, created_at, revoked_at)
    SELECT id, name, principal, secret_hash, created_at, revoked_at FROM tokens ORDER BY created_at, id;
DROP TABLE tokens;
ALTER TABLE numbered_tokens RENAME TO tokens;
CREATE UNIQUE INDEX tokens_by_name ON tokens (name) WHERE revoked_at IS NULL;
CREATE INDEX tokens_by_principal ON tokens (principal, seq);
CREATE INDEX tokens_revoked ON tokens (revoked_at) WHERE revoked_at IS NOT NULL;
