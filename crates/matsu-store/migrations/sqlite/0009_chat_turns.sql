-- Agents that are started for a chat: the job that works for it, the agent's own conversation, starts that failed.

ALTER TABLE chats ADD COLUMN job_id TEXT;
ALTER TABLE chats ADD COLUMN vendor_session TEXT;
ALTER TABLE chats ADD COLUMN place TEXT;
ALTER TABLE chats ADD COLUMN start_failures INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX chats_of_job ON chats (job_id) WHERE job_id IS NOT NULL;
