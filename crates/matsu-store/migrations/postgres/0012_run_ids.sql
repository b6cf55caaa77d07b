-- A run has an id of its own, new with every start of its program; the session's token is that run's.

ALTER TABLE sessions ADD COLUMN run_id TEXT;
CREATE INDEX sessions_by_run ON sessions (run_id) WHERE run_id IS NOT NULL;
