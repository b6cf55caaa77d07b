-- What a person decided about the changes of a task's runs.

ALTER TABLE tasks ADD COLUMN review_json TEXT;
