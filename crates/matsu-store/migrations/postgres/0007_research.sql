-- Research: pages, fragments, claims, edges, result lists, the auth queue, rules, feedback, calibration.
-- Times are milliseconds since 1970. Words are those of matsu-core. Never edited, only added to.
-- Confidence and its companions are thousandths; probabilities are text, so that every digit comes back.

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
    year          BIGINT,
    doi           TEXT,
    authors_json  TEXT NOT NULL,
    is_primary    BIGINT NOT NULL,
    content_hash  TEXT NOT NULL,
    etag          TEXT,
    last_modified TEXT,
    fetched_at    BIGINT NOT NULL
);
CREATE UNIQUE INDEX pages_by_url ON pages (url, owner);

CREATE TABLE fragments (
    id           TEXT PRIMARY KEY,
    page_id      TEXT NOT NULL,
    -- The state of the page that it was last seen in.
    content_hash TEXT NOT NULL,
    position     BIGINT NOT NULL,
    text         TEXT NOT NULL,
    heading      TEXT NOT NULL,
    char_offset  BIGINT NOT NULL,
    hash         TEXT NOT NULL,
    sketch       BIGINT NOT NULL
);
CREATE UNIQUE INDEX fragments_by_page ON fragments (page_id, hash);

-- Which pages a task has reached, and who wrote it down.
CREATE TABLE task_pages (
    task_id TEXT NOT NULL,
    page_id TEXT NOT NULL,
    job_id  TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (task_id, page_id)
);
CREATE INDEX task_pages_by_page ON task_pages (page_id);

CREATE TABLE claims (
    seq              BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id               TEXT NOT NULL UNIQUE,
    task_id          TEXT NOT NULL,
    job_id           TEXT NOT NULL,
    attempt          BIGINT NOT NULL,
    text             TEXT NOT NULL,
    text_hash        TEXT NOT NULL,
    quote            TEXT NOT NULL,
    fragment_id      TEXT NOT NULL,
    extraction       TEXT NOT NULL,
    adoption         TEXT NOT NULL,
    rejection_reason TEXT,
    confidence       BIGINT NOT NULL,
    uncertainty      BIGINT NOT NULL,
    controversy      BIGINT NOT NULL,
    n_supports       BIGINT NOT NULL,
    n_refutes        BIGINT NOT NULL,
    created_at       BIGINT NOT NULL
);
CREATE UNIQUE INDEX claims_once ON claims (task_id, fragment_id, text_hash);
CREATE INDEX claims_by_task ON claims (task_id, confidence, seq);
CREATE INDEX claims_by_job ON claims (job_id, seq);
CREATE INDEX claims_by_fragment ON claims (fragment_id);

CREATE TABLE edges (
    seq                 BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id                  TEXT NOT NULL UNIQUE,
    claim_id            TEXT NOT NULL,
    fragment_id         TEXT NOT NULL,
    relation            TEXT NOT NULL,
    probability         TEXT NOT NULL,
    stance_json         TEXT,
    source              TEXT,
    calibration_version BIGINT NOT NULL,
    is_corrected        BIGINT NOT NULL,
    job_id              TEXT NOT NULL,
    attempt             BIGINT NOT NULL,
    created_at          BIGINT NOT NULL
);
CREATE UNIQUE INDEX edges_once ON edges (claim_id, fragment_id);
CREATE INDEX edges_by_fragment ON edges (fragment_id);

-- What came of a search so far.
CREATE TABLE searches (
    job_id     TEXT PRIMARY KEY,
    task_id    TEXT NOT NULL,
    attempt    BIGINT NOT NULL,
    ended_as   TEXT,
    tally_json TEXT NOT NULL
);
CREATE INDEX searches_by_task ON searches (task_id);

CREATE TABLE hits (
    seq     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id TEXT NOT NULL,
    job_id  TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    engine  TEXT NOT NULL,
    place   BIGINT NOT NULL,
    url     TEXT NOT NULL,
    title   TEXT NOT NULL,
    snippet TEXT NOT NULL
);
CREATE INDEX hits_by_task ON hits (task_id);

CREATE TABLE auth_items (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    owner       TEXT NOT NULL,
    url         TEXT NOT NULL,
    domain      TEXT NOT NULL,
    auth_type   TEXT NOT NULL,
    priority    BIGINT NOT NULL,
    status      TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    resolved_at BIGINT
);
CREATE UNIQUE INDEX auth_items_pending ON auth_items (owner, url) WHERE status = 'pending';
CREATE INDEX auth_items_by_expiry ON auth_items (expires_at) WHERE status = 'pending';

CREATE TABLE auth_blocked (
    item_id TEXT NOT NULL,
    job_id  TEXT NOT NULL,
    task_id TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (item_id, job_id)
);
CREATE INDEX auth_blocked_by_job ON auth_blocked (job_id);

CREATE TABLE domain_rules (
    seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    owner      TEXT NOT NULL,
    pattern    TEXT NOT NULL,
    decision   TEXT NOT NULL,
    reason     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    cleared_at BIGINT
);
CREATE INDEX domain_rules_active ON domain_rules (owner) WHERE cleared_at IS NULL;

-- Only ever added to.
CREATE TABLE feedback (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    owner       TEXT NOT NULL,
    action      TEXT NOT NULL,
    target      TEXT NOT NULL,
    reason      TEXT,
    detail_json TEXT NOT NULL,
    at          BIGINT NOT NULL
);
CREATE INDEX feedback_by_owner ON feedback (owner, seq);

CREATE TABLE calibrations (
    source       TEXT NOT NULL,
    version      BIGINT NOT NULL,
    params_json  TEXT NOT NULL,
    samples_used BIGINT NOT NULL,
    brier_before TEXT NOT NULL,
    brier_after  TEXT NOT NULL,
    in_force     BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (source, version)
);

CREATE TABLE calibration_samples (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    source      TEXT NOT NULL,
    edge_id     TEXT NOT NULL,
    stance_json TEXT NOT NULL,
    correct     TEXT NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE INDEX calibration_samples_by_source ON calibration_samples (source, seq);

CREATE TABLE calibration_rollbacks (
    seq          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source       TEXT NOT NULL,
    from_version BIGINT NOT NULL,
    to_version   BIGINT NOT NULL,
    reason       TEXT NOT NULL,
    at           BIGINT NOT NULL
);

CREATE TABLE evaluations (
    seq             BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    source          TEXT NOT NULL,
    evaluation_json TEXT NOT NULL,
    at              BIGINT NOT NULL
);
CREATE INDEX evaluations_by_source ON evaluations (source, seq);

CREATE TABLE breakers (
    engine     TEXT PRIMARY KEY,
    failures   BIGINT NOT NULL,
    open_until BIGINT
);

CREATE TABLE daily_uses (
    name TEXT PRIMARY KEY,
    day  BIGINT NOT NULL,
    used BIGINT NOT NULL
);

-- Jobs that wait for a login, so that one whose door was opened in the same moment is found again.
CREATE INDEX jobs_parked ON jobs (id) WHERE state = 'awaiting_auth';
