-- What a transaction has written to be known by, should the answer to its commit be lost.

ALTER TABLE changes ADD COLUMN mark BIGINT NOT NULL DEFAULT 0;
