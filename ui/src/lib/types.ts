/** What the server says, in the shapes of its OpenAPI document. */

export type TaskStatus = 'queued' | 'running' | 'input_required' | 'paused' | 'blocked' | 'completed' | 'failed' | 'cancelled';
export type JobState = 'queued' | 'running' | 'awaiting_auth' | 'awaiting_input' | 'completed' | 'failed' | 'cancelled';

export interface Task {
  task_id: string;
  kind: 'research' | 'agent' | 'wait';
  title: string;
  status: TaskStatus;
  status_message: string | null;
  owner: string;
  parent_id: string | null;
  assignee: string | null;
  revision: number;
  jobs: Record<JobState, number>;
  stop: { mode: string; reason: string; requested_at: string } | null;
  created_at: string;
  updated_at: string;
  finished_at: string | null;
  unread: boolean;
  agents: string[];
  /** The last decision about the changes of its runs. */
  review: 'applied' | 'discarded' | 'sent_back' | null;
  /** After `sent_back`: the task in which the agent works on. */
  next_task_id: string | null;
}

/** Research without any search yet is open for one: nothing of it is queued. */
export const standing = (task: Task): string => (task.kind === 'research' && task.status === 'queued' && task.jobs.queued === 0 ? 'open' : task.status);

/** Whether a run of it ended before it was done, so that another can go on from what it left. */
export const canContinue = (task: Task): boolean => task.kind === 'agent' && task.finished_at !== null && task.jobs.failed + task.jobs.cancelled > 0;

export interface Job {
  id: string;
  task_id: string | null;
  kind: string;
  priority: string;
  slot: string;
  state: JobState;
  attempt: number;
  failures: number;
  error_code: string | null;
  error_message: string | null;
  progress: string | null;
  output: string | null;
  output_bytes: number | null;
  owner_node: string | null;
  queued_at: string;
  started_at: string | null;
  finished_at: string | null;
  revision?: number;
}

export interface Counts {
  running: number;
  queued: number;
  waiting_for_person: number;
  awaiting_auth: number;
  awaiting_input: number;
  failed: number;
  waiters: number;
  slots: { slot: string; limit: number; running: number; queued: number }[];
}

export interface Page<T> {
  items: T[];
  next: number | null;
}

export interface StreamEvent {
  name: string;
  data: Record<string, unknown> & { topic?: string; revision?: number; at?: string };
}
