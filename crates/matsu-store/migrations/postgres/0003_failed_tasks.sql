-- How much failed lately is asked every second while a page is open: that must not read all of history.

CREATE INDEX tasks_failed ON tasks (owner, finished_at) WHERE status = 'failed';
