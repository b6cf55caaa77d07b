-- A job that starts keeps its place on its page and in every index: none names its state or its owner any more. What
-- is in line is told by hold, with 3 for a job that is set aside: it is parked, or has lent its permit away.

UPDATE jobs SET hold = 3 WHERE finished_at IS NULL AND (state IN ('awaiting_input', 'awaiting_auth')
    OR (state = 'running' AND id NOT IN (SELECT job_id FROM permits WHERE job_id IS NOT NULL)));

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
