-- How often the server died while a job ran, in a row and without a new checkpoint. A job that did so too often is held
-- (5) until it can run with no other beside it.

ALTER TABLE jobs ADD COLUMN deaths BIGINT NOT NULL DEFAULT 0;
CREATE INDEX jobs_alone ON jobs (slot) WHERE hold = 5 AND finished_at IS NULL;
