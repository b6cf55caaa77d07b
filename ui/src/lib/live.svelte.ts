/**
 * What this page knows: rows by id, and the newer one wins. Fed by the stream in batches; a list that is on the screen
 * reads it through the version number, so two hundred changes a second cost one pass each twentieth of a second.
 */
import { get } from './api';
import { follow, pause as pauseStream, start, type LinkState } from './stream';
import type { Counts, Job, Page, StreamEvent, Task } from './types';

const BATCH_MS = 50;
const BATCH_HIDDEN_MS = 1_000;
const JOBS_MAX = 20_000;
const TASKS_MAX = 5_000;

export const tasks = new Map<string, Task>();
export const jobs = new Map<string, Job>();
/** The same, newest first. Kept in order as they come, because sorting ten thousand rows for each batch would take its time. */
export const newestJobs: Job[] = [];

class Live {
  /** Grows with every applied batch. */
  version = $state(0);
  counts = $state.raw<Counts | null>(null);
  link = $state<LinkState>('connecting');
  linkSince = $state(Date.now());
  paused = $state(false);
  tasksLoaded = $state(false);
  /** Where older tasks begin that were not read; `null`: there are none. */
  olderTasks = $state<number | null>(null);
  serverVersion = $state('');
  newBuild = $state(false);
}

export const live = new Live();

type Handler = (event: StreamEvent) => void;
const handlers = new Set<Handler>();
let pending: StreamEvent[] = [];
let timer: ReturnType<typeof setTimeout> | null = null;
let build: string | null = null;
let generation = 0;

/** Hears every event until the answer is called. */
export function on(handler: Handler): () => void {
  handlers.add(handler);
  return () => handlers.delete(handler);
}

const topicCounts = new Map<string, number>();

/** Follows topics while a page is open; call the answer when it closes. */
export function watch(topics: string[]): () => void {
  for (const topic of topics) topicCounts.set(topic, (topicCounts.get(topic) ?? 0) + 1);
  follow([...topicCounts.keys()]);
  return () => {
    for (const topic of topics) {
      const left = (topicCounts.get(topic) ?? 1) - 1;
      if (left > 0) topicCounts.set(topic, left);
      else topicCounts.delete(topic);
    }
    follow([...topicCounts.keys()]);
  };
}

export function pause(on: boolean): void {
  live.paused = on;
  pauseStream(on);
  if (!on) void reload();
}

export function begin(): void {
  start(
    (events) => {
      pending.push(...events);
      timer ??= setTimeout(apply, document.hidden ? BATCH_HIDDEN_MS : BATCH_MS);
    },
    (state, since) => {
      live.link = state;
      live.linkSince = since;
    },
  );
  void reload();
}

function apply(): void {
  timer = null;
  const events = pending;
  pending = [];
  let again = false;
  for (const event of events) {
    if (event.name === 'task') putTask(event.data as unknown as Task & { deleted?: boolean });
    else if (event.name === 'job') putJob(event.data as unknown as Job);
    else if (event.name === 'counts') live.counts = event.data as unknown as Counts;
    else if (event.name === 'reset') again = true;
    else if (event.name === 'hello') {
      greet(event.data);
      // A stream that begins afresh tells nothing of what happened before it.
      again ||= event.data['resumed'] !== true;
    }
  }
  live.version++;
  for (const event of events) for (const handler of handlers) handler(event);
  if (again) void reload();
}

function greet(data: StreamEvent['data']): void {
  live.serverVersion = String(data['version'] ?? '');
  const current = String(data['ui_build'] ?? '');
  if (build !== null && build !== current) live.newBuild = true;
  build ??= current;
}

export function putTask(task: Task & { deleted?: boolean }): void {
  const held = tasks.get(task.task_id);
  if (task.deleted) tasks.delete(task.task_id);
  else if (!held || held.revision <= task.revision) tasks.set(task.task_id, task);
}

export function putJob(job: Job): void {
  const held = jobs.get(job.id);
  if (held && (held.revision ?? 0) > (job.revision ?? 0)) return;
  jobs.set(job.id, job);
  const place = placeOf(job);
  if (held && held.queued_at === job.queued_at) {
    newestJobs[place] = job;
    return;
  }
  if (held) newestJobs.splice(placeOf(held), 1);
  newestJobs.splice(held ? placeOf(job) : place, 0, job);
  if (jobs.size > JOBS_MAX) jobs.delete(newestJobs.pop()?.id ?? '');
}

/** Where a job stands among those that are there: before all that were queued earlier. */
function placeOf(job: Job): number {
  let [low, high] = [0, newestJobs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const other = newestJobs[middle];
    if (other && (other.queued_at > job.queued_at || (other.queued_at === job.queued_at && other.id > job.id))) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Reads the tasks again without emptying the page meanwhile. */
export async function reload(): Promise<void> {
  const mine = ++generation;
  try {
    live.counts = await get<Counts>('/metrics/summary');
    await loadTasks(null, mine);
  } catch {
    // The link state says it; the stream's next hello reads again.
  }
}

/** Reads as many older tasks as are read at first. */
export async function loadOlderTasks(): Promise<void> {
  if (live.olderTasks !== null) await loadTasks(live.olderTasks, generation);
}

async function loadTasks(from: number | null, mine: number): Promise<void> {
  let after = from;
  let seen = 0;
  do {
    const page: Page<Task> = await get(`/tasks?limit=200${after === null ? '' : `&after=${after}`}`);
    if (mine !== generation) return;
    page.items.forEach(putTask);
    seen += page.items.length;
    live.version++;
    live.tasksLoaded = true;
    after = page.next;
  } while (after !== null && seen < TASKS_MAX);
  live.olderTasks = after;
}

/** Reads jobs, newest first, window by window; stops when the page has gone. */
export async function loadJobs(most: number, isWanted: () => boolean): Promise<void> {
  let after: number | null = null;
  let seen = 0;
  do {
    const page: Page<Job> = await get(`/jobs?order=newest&limit=200${after === null ? '' : `&after=${after}`}`);
    if (!isWanted()) return;
    page.items.forEach(putJob);
    seen += page.items.length;
    live.version++;
    after = page.next;
  } while (after !== null && seen < most);
}
