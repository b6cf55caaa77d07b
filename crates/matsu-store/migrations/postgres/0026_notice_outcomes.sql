-- What the last message of a channel came to, and which notices were tried as one message.

ALTER TABLE notify_channels ADD COLUMN last_error TEXT;
ALTER TABLE outbox ADD COLUMN bundle TEXT;
