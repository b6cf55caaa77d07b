-- What each run has cost. It outlives its task.

CREATE TABLE spent (
    run_id        TEXT PRIMARY KEY,
    owner         TEXT NOT NULL,
    at            INTEGER NOT NULL,
    agent         TEXT NOT NULL,
    model         TEXT,
    project       TEXT,
    input_tokens  INTEGER,
    output_tokens INTEGER,
    micro_cost    INTEGER
);
CREATE INDEX spent_by_owner ON spent (owner, at);
CREATE INDEX spent_by_age ON spent (at);
