-- What each run has cost. It outlives its task.

CREATE TABLE spent (
    run_id        TEXT PRIMARY KEY,
    owner         TEXT NOT NULL,
    at            BIGINT NOT NULL,
    agent         TEXT NOT NULL,
    model         TEXT,
    project       TEXT,
    input_tokens  BIGINT,
    output_tokens BIGINT,
    micro_cost    BIGINT
);
CREATE INDEX spent_by_owner ON spent (owner, at);
CREATE INDEX spent_by_age ON spent (at);
