-- A claim is looked up by its statement, to give it another origin. The same columns as before, in another order.

DROP INDEX claims_once;
CREATE UNIQUE INDEX claims_once ON claims (task_id, text_hash, fragment_id);
