-- What each node that runs jobs allows of each slot. The smallest counts for all of them, while its node lives.
CREATE TABLE slot_wishes (
    slot        TEXT NOT NULL,
    node_id     TEXT NOT NULL,
    permits_max BIGINT NOT NULL,
    PRIMARY KEY (slot, node_id)
);

-- Jobs of the house belong to no task, so no task takes them along when it goes.
CREATE INDEX jobs_of_the_house ON jobs (finished_at) WHERE task_id IS NULL AND finished_at IS NOT NULL;

-- Tokens get a number, the cursor of their pages.
ALTER TABLE tokens ADD COLUMN seq BIGINT GENERATED ALWAYS AS IDENTITY;
CREATE UNIQUE INDEX tokens_by_number ON tokens (seq);
CREATE INDEX tokens_by_principal ON tokens (principal, seq);
CREATE INDEX tokens_revoked ON tokens (revoked_at) WHERE revoked_at IS NOT NULL;
