-- What all migrations make of an empty file. Written by MATSU_WRITE_SCHEMA=1 cargo test -p matsu-store schema
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
, review_json TEXT, is_awaited INTEGER NOT NULL DEFAULT 0);
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
, deaths INTEGER NOT NULL DEFAULT 0);
CREATE INDEX jobs_ready ON jobs (slot, priority, queued_at, seq) WHERE state = 'queued' AND hold = 0;
CREATE INDEX jobs_delayed ON jobs (slot, run_at) WHERE state = 'queued' AND hold = 1;
CREATE INDEX jobs_by_task ON jobs (task_id, seq);
CREATE INDEX jobs_unfinished ON jobs (task_id, dedupe_key) WHERE finished_at IS NULL;
CREATE INDEX jobs_by_owner ON jobs (owner_node) WHERE state IN ('running', 'awaiting_input');
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
, left_at INTEGER) WITHOUT ROWID;
CREATE TABLE projects (
    seq               INTEGER PRIMARY KEY,
    id                TEXT NOT NULL UNIQUE,
    name              TEXT NOT NULL,
    working_directory TEXT,
    status            TEXT NOT NULL,
    created_at        INTEGER NOT NULL
);
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
, job_id TEXT, vendor_session TEXT, place TEXT, start_failures INTEGER NOT NULL DEFAULT 0);
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
, run_id TEXT);
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
CREATE INDEX tasks_failed ON tasks (owner, finished_at) WHERE status = 'failed';
CREATE TABLE transcripts (
    chat_id       TEXT NOT NULL PRIMARY KEY,
    owner         TEXT NOT NULL,
    name          TEXT,
    system_prompt TEXT,
    place         TEXT NOT NULL,
    updated_at    INTEGER NOT NULL
, run_id TEXT) WITHOUT ROWID;
CREATE UNIQUE INDEX transcripts_name ON transcripts (owner, name) WHERE name IS NOT NULL;
CREATE INDEX transcripts_updated ON transcripts (owner, updated_at);
CREATE TABLE transcript_entries (
    chat_id    TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    entry_json TEXT NOT NULL,
    PRIMARY KEY (chat_id, seq)
) WITHOUT ROWID;
CREATE TABLE transcript_drafts (
    chat_id      TEXT NOT NULL,
    model        TEXT NOT NULL,
    entries_json TEXT NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (chat_id, model)
) WITHOUT ROWID;
CREATE TABLE slot_wishes (
    slot        TEXT NOT NULL,
    node_id     TEXT NOT NULL,
    permits_max INTEGER NOT NULL,
    PRIMARY KEY (slot, node_id)
) WITHOUT ROWID;
CREATE INDEX jobs_of_the_house ON jobs (finished_at) WHERE task_id IS NULL AND finished_at IS NOT NULL;
CREATE TABLE "tokens" (
    seq         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    name        TEXT NOT NULL,
    principal   TEXT NOT NULL,
    secret_hash TEXT NOT NULL UNIQUE,
    created_at  INTEGER NOT NULL,
    revoked_at  INTEGER
, role TEXT NOT NULL DEFAULT 'admin', tools TEXT, expires_at INTEGER);
CREATE UNIQUE INDEX tokens_by_name ON tokens (name) WHERE revoked_at IS NULL;
CREATE INDEX tokens_by_principal ON tokens (principal, seq);
CREATE INDEX tokens_revoked ON tokens (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE TABLE run_output (
    seq     INTEGER PRIMARY KEY,
    job_id  TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    stream  TEXT NOT NULL,
    -- Bytes of the stream before this part, and of this part.
    start   INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,
    text    TEXT NOT NULL
, read_to INTEGER);
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
CREATE TABLE pages (
    id            TEXT PRIMARY KEY,
    url           TEXT NOT NULL,
    -- Empty for what anybody could have fetched; else whose cookies or folders it took.
    owner         TEXT NOT NULL,
    final_url     TEXT NOT NULL,
    domain        TEXT NOT NULL,
    origin        TEXT NOT NULL,
    title         TEXT NOT NULL,
    language      TEXT,
    year          INTEGER,
    doi           TEXT,
    authors_json  TEXT NOT NULL,
    is_primary    INTEGER NOT NULL,
    content_hash  TEXT NOT NULL,
    etag          TEXT,
    last_modified TEXT,
    fetched_at    INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX pages_by_url ON pages (url, owner);
CREATE TABLE fragments (
    id           TEXT PRIMARY KEY,
    page_id      TEXT NOT NULL,
    -- The state of the page that it was last seen in.
    content_hash TEXT NOT NULL,
    position     INTEGER NOT NULL,
    text         TEXT NOT NULL,
    heading      TEXT NOT NULL,
    char_offset  INTEGER NOT NULL,
    hash         TEXT NOT NULL,
    sketch       INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX fragments_by_page ON fragments (page_id, hash);
CREATE TABLE task_pages (
    task_id TEXT NOT NULL,
    page_id TEXT NOT NULL,
    job_id  TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (task_id, page_id)
) WITHOUT ROWID;
CREATE INDEX task_pages_by_page ON task_pages (page_id);
CREATE TABLE claims (
    seq              INTEGER PRIMARY KEY,
    id               TEXT NOT NULL UNIQUE,
    task_id          TEXT NOT NULL,
    job_id           TEXT NOT NULL,
    attempt          INTEGER NOT NULL,
    text             TEXT NOT NULL,
    text_hash        TEXT NOT NULL,
    quote            TEXT NOT NULL,
    fragment_id      TEXT NOT NULL,
    extraction       TEXT NOT NULL,
    adoption         TEXT NOT NULL,
    rejection_reason TEXT,
    confidence       INTEGER NOT NULL,
    uncertainty      INTEGER NOT NULL,
    controversy      INTEGER NOT NULL,
    n_supports       INTEGER NOT NULL,
    n_refutes        INTEGER NOT NULL,
    created_at       INTEGER NOT NULL
, relevance INTEGER NOT NULL DEFAULT 0, context TEXT NOT NULL DEFAULT '', parts_json TEXT NOT NULL DEFAULT '[]');
CREATE INDEX claims_by_task ON claims (task_id, confidence, seq);
CREATE INDEX claims_by_job ON claims (job_id, seq);
CREATE INDEX claims_by_fragment ON claims (fragment_id);
CREATE TABLE edges (
    seq                 INTEGER PRIMARY KEY,
    id                  TEXT NOT NULL UNIQUE,
    claim_id            TEXT NOT NULL,
    fragment_id         TEXT NOT NULL,
    relation            TEXT NOT NULL,
    probability         TEXT NOT NULL,
    stance_json         TEXT,
    source              TEXT,
    calibration_version INTEGER NOT NULL,
    is_corrected        INTEGER NOT NULL,
    job_id              TEXT NOT NULL,
    attempt             INTEGER NOT NULL,
    created_at          INTEGER NOT NULL
);
CREATE UNIQUE INDEX edges_once ON edges (claim_id, fragment_id);
CREATE INDEX edges_by_fragment ON edges (fragment_id);
CREATE TABLE searches (
    job_id     TEXT PRIMARY KEY,
    task_id    TEXT NOT NULL,
    attempt    INTEGER NOT NULL,
    ended_as   TEXT,
    tally_json TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX searches_by_task ON searches (task_id);
CREATE TABLE hits (
    seq     INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    job_id  TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    engine  TEXT NOT NULL,
    place   INTEGER NOT NULL,
    url     TEXT NOT NULL,
    title   TEXT NOT NULL,
    snippet TEXT NOT NULL
);
CREATE INDEX hits_by_task ON hits (task_id);
CREATE TABLE auth_items (
    seq         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    owner       TEXT NOT NULL,
    url         TEXT NOT NULL,
    domain      TEXT NOT NULL,
    auth_type   TEXT NOT NULL,
    priority    INTEGER NOT NULL,
    status      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    resolved_at INTEGER
);
CREATE UNIQUE INDEX auth_items_pending ON auth_items (owner, url) WHERE status = 'pending';
CREATE INDEX auth_items_by_expiry ON auth_items (expires_at) WHERE status = 'pending';
CREATE TABLE auth_blocked (
    item_id TEXT NOT NULL,
    job_id  TEXT NOT NULL,
    task_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (item_id, job_id)
) WITHOUT ROWID;
CREATE INDEX auth_blocked_by_job ON auth_blocked (job_id);
CREATE TABLE domain_rules (
    seq        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    owner      TEXT NOT NULL,
    pattern    TEXT NOT NULL,
    decision   TEXT NOT NULL,
    reason     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    cleared_at INTEGER
);
CREATE INDEX domain_rules_active ON domain_rules (owner) WHERE cleared_at IS NULL;
CREATE TABLE feedback (
    seq         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    owner       TEXT NOT NULL,
    action      TEXT NOT NULL,
    target      TEXT NOT NULL,
    reason      TEXT,
    detail_json TEXT NOT NULL,
    at          INTEGER NOT NULL
);
CREATE INDEX feedback_by_owner ON feedback (owner, seq);
CREATE TABLE calibrations (
    source       TEXT NOT NULL,
    version      INTEGER NOT NULL,
    params_json  TEXT NOT NULL,
    samples_used INTEGER NOT NULL,
    brier_before TEXT NOT NULL,
    brier_after  TEXT NOT NULL,
    in_force     INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (source, version)
) WITHOUT ROWID;
CREATE TABLE calibration_samples (
    seq         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    source      TEXT NOT NULL,
    edge_id     TEXT NOT NULL,
    stance_json TEXT NOT NULL,
    correct     TEXT NOT NULL,
    created_at  INTEGER NOT NULL
);
CREATE INDEX calibration_samples_by_source ON calibration_samples (source, seq);
CREATE TABLE calibration_rollbacks (
    seq          INTEGER PRIMARY KEY,
    source       TEXT NOT NULL,
    from_version INTEGER NOT NULL,
    to_version   INTEGER NOT NULL,
    reason       TEXT NOT NULL,
    at           INTEGER NOT NULL
);
CREATE TABLE evaluations (
    seq             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    source          TEXT NOT NULL,
    evaluation_json TEXT NOT NULL,
    at              INTEGER NOT NULL
);
CREATE INDEX evaluations_by_source ON evaluations (source, seq);
CREATE TABLE breakers (
    engine     TEXT PRIMARY KEY,
    failures   INTEGER NOT NULL,
    open_until INTEGER
, cause TEXT) WITHOUT ROWID;
CREATE TABLE daily_uses (
    name TEXT PRIMARY KEY,
    day  INTEGER NOT NULL,
    used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX jobs_parked ON jobs (id) WHERE state = 'awaiting_auth';
CREATE INDEX tasks_unfinished ON tasks (owner) WHERE finished_at IS NULL;
CREATE UNIQUE INDEX chats_of_job ON chats (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX sessions_by_run ON sessions (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX jobs_alone ON jobs (slot) WHERE hold = 5 AND finished_at IS NULL;
CREATE TABLE users (
    seq        INTEGER PRIMARY KEY,
    principal  TEXT NOT NULL UNIQUE,
    roots_json TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX sessions_by_owner ON sessions (owner, seq);
CREATE TABLE notify_channels (
    name         TEXT PRIMARY KEY,
    owner        TEXT NOT NULL,
    events       TEXT NOT NULL,
    reply_topic  TEXT NOT NULL,
    position     TEXT,
    reader_node  TEXT,
    reader_until INTEGER,
    seen_at      INTEGER NOT NULL
, last_error TEXT);
CREATE TABLE outbox (
    seq        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    channel    TEXT NOT NULL,
    event      TEXT NOT NULL,
    task_id    TEXT NOT NULL,
    key        TEXT NOT NULL,
    attempts   INTEGER NOT NULL DEFAULT 0,
    due_at     INTEGER,
    last_error TEXT,
    created_at INTEGER NOT NULL,
    settled_at INTEGER, bundle TEXT,
    UNIQUE (channel, task_id, key)
);
CREATE INDEX outbox_due ON outbox (channel, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX outbox_settled ON outbox (settled_at) WHERE settled_at IS NOT NULL;
CREATE TABLE answer_codes (
    hash        TEXT PRIMARY KEY,
    channel     TEXT NOT NULL,
    task_id     TEXT NOT NULL,
    job_id      TEXT NOT NULL,
    question_id TEXT NOT NULL,
    choice      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    used_at     INTEGER
);
CREATE INDEX answer_codes_made ON answer_codes (created_at);
CREATE TABLE task_dependencies (
    task_id    TEXT NOT NULL,
    depends_on TEXT NOT NULL,
    PRIMARY KEY (task_id, depends_on)
);
CREATE INDEX task_dependencies_awaited ON task_dependencies (depends_on);
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
CREATE TABLE push_subscriptions (
    seq        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    owner      TEXT NOT NULL,
    token_id   TEXT,
    endpoint   TEXT NOT NULL,
    p256dh     TEXT NOT NULL,
    auth       TEXT NOT NULL,
    sender_key TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (owner, endpoint)
);
CREATE UNIQUE INDEX claims_once ON claims (task_id, text_hash, fragment_id);
INSERT INTO projects (seq, id, name, working_directory, status, created_at) VALUES (1, 'default', 'Default', NULL, 'active', 0);
