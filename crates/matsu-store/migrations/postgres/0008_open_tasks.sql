-- How many tasks an owner has open is asked when many are handed in: that must not read all of history.

CREATE INDEX tasks_unfinished ON tasks (owner) WHERE finished_at IS NULL;
