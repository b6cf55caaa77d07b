-- Tasks that start after others.

CREATE TABLE task_dependencies (
    task_id    TEXT NOT NULL,
    depends_on TEXT NOT NULL,
    PRIMARY KEY (task_id, depends_on)
);
CREATE INDEX task_dependencies_awaited ON task_dependencies (depends_on);

ALTER TABLE tasks ADD COLUMN is_awaited BIGINT NOT NULL DEFAULT 0;
