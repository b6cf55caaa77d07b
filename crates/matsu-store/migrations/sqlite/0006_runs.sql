-- Runs of agents: what they said, the conversations they belong to, answers to their questions.

CREATE TABLE run_output (
    seq     INTEGER PRIMARY KEY,
    job_id  TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    stream  TEXT NOT NULL,
    -- Bytes of the stream before this part, and of this part.
    start   INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,
    text    TEXT NOT NULL
);
CREATE UNIQUE INDEX run_output_by_place ON run_output (job_id, stream, start);

CREATE TABLE agent_sessions (
    owner          TEXT NOT NULL,
    name           TEXT NOT NULL,
    agent          TEXT NOT NULL,
    directory      TEXT NOT NULL,
    vendor_session TEXT,
    place          TEXT,
    task_id        TEXT NOT NULL,
    updated_at     INTEGER NOT NULL,
    PRIMARY KEY (owner, name)
) WITHOUT ROWID;
CREATE INDEX agent_sessions_by_task ON agent_sessions (task_id);
CREATE INDEX agent_sessions_by_age ON agent_sessions (updated_at);

CREATE TABLE run_answers (
    job_id      TEXT NOT NULL,
    question    TEXT NOT NULL,
    answer_json TEXT NOT NULL,
    answered_at INTEGER NOT NULL,
    PRIMARY KEY (job_id, question)
) WITHOUT ROWID;
