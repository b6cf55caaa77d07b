-- Claims are ranked by the question: how likely each answers it, in ten-thousandths, what that was made of, and what a
-- reader needs to understand the claim.

ALTER TABLE claims ADD COLUMN relevance INTEGER NOT NULL DEFAULT 0;
ALTER TABLE claims ADD COLUMN context TEXT NOT NULL DEFAULT '';
ALTER TABLE claims ADD COLUMN parts_json TEXT NOT NULL DEFAULT '[]';
