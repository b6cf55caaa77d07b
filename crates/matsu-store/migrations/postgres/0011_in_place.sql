-- A job that starts keeps its place on its page and in every index: none names its state or its owner any more. What
-- is in line is told by hold, which says of jobs that are not queued: 3 is held by a node without a permit (it waits
-- for an answer, or has lent its permit away), 4 is parked for a login.

LOCK TABLE tasks, jobs, permits IN ACCESS EXCLUSIVE MODE;

UPDATE jobs SET hold = 3 WHERE finished_at IS NULL AND (state = 'awaiting_input'
    OR (state = 'running' AND id NOT IN (SELECT job_id FROM permits WHERE job_id IS NOT NULL)));
UPDATE jobs SET hold = 4 WHERE finished_at IS NULL AND state = 'awaiting_auth';

-- The page needs room for what starts and what ends in one transaction.
ALTER TABLE jobs SET (fillfactor = 50);

DROP INDEX jobs_ready;
DROP INDEX jobs_delayed;
DROP INDEX jobs_by_owner;
DROP INDEX jobs_parked;
-- What runs stands here too, and is skipped: it is a handful.
CREATE INDEX jobs_in_line ON jobs (slot, priority, queued_at, seq) WHERE hold = 0 AND finished_at IS NULL;
CREATE INDEX jobs_delayed ON jobs (slot, run_at) WHERE hold = 1 AND finished_at IS NULL;
CREATE INDEX jobs_aside ON jobs (id) WHERE hold = 3 AND finished_at IS NULL;
CREATE INDEX jobs_parked ON jobs (id) WHERE hold = 4 AND finished_at IS NULL;
