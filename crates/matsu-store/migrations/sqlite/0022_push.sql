-- Browsers that get notices by push.

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
