-- Runs that outlive the node that started them. A node that is gone stays known as `left` while such a run waits to be
-- taken over. A part of a run's output says up to where the program's own output was read with it.

ALTER TABLE nodes ADD COLUMN left_at INTEGER;
ALTER TABLE run_output ADD COLUMN read_to INTEGER;
