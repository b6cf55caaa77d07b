-- Research with nothing left to do is `finished`; it used to be `queued`.

UPDATE tasks SET status = 'finished'
    WHERE kind = 'research' AND status = 'queued' AND stop_mode IS NULL
    AND n_queued + n_running + n_awaiting_auth + n_awaiting_input = 0 AND n_completed + n_failed > 0;

-- Why an engine gave no answer the last time, so that a search that leaves it alone can name it.

ALTER TABLE breakers ADD COLUMN cause TEXT;
