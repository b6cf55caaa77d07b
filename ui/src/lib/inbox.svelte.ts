/** What only a person can clear, from what the page knows anyway. */
import { get } from './api';
import type { Chat } from './chat';
import { live, on, tasks } from './live.svelte';
import type { Page, Task } from './types';

export type Want = 'question' | 'login' | 'blocked' | 'failed' | 'unread';
export interface Item { task: Task; want: Want }

const RANK: Record<Want, number> = { question: 0, login: 1, blocked: 2, failed: 3, unread: 4 };

function want(task: Task): Want | null {
  if (task.kind === 'wait') return null;
  if (task.jobs.awaiting_input > 0 || task.status === 'input_required') return 'question';
  if (task.jobs.awaiting_auth > 0) return 'login';
  if (task.status === 'blocked') return 'blocked';
  if (task.status === 'failed' && task.unread) return 'failed';
  if (task.unread) return 'unread';
  return null;
}

/** Those that hold something up or went wrong, in no order; what merely ended well does not call anybody. Found once per batch. */
const calling: Item[] = $derived.by(() => {
  void live.version;
  const items: Item[] = [];
  for (const task of tasks.values()) {
    const wants = want(task);
    if (wants && wants !== 'unread') items.push({ task, want: wants });
  }
  return items;
});

/** Chats whose agent waits for an answer. */
class Asking {
  chats = $state.raw<readonly Chat[]>([]);
}
const asking = new Asking();
export const askingChats = (): readonly Chat[] => asking.chats;

const ASKED_EVERY_MS = 500;

/** Keeps the questions of chats up to date. The answer ends it. */
export function followChats(): () => void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  const read = async (): Promise<void> => {
    timer = null;
    // While the server is away what is known stays; the stream's next hello reads again.
    const page = await get<Page<Chat>>('/chats').catch(() => null);
    if (page) asking.chats = page.items.filter((chat) => chat.question);
  };
  const off = on((event) => {
    if (!['chat', 'agent', 'session', 'hello', 'reset'].includes(event.name) && !event.data.topic?.startsWith('chat/')) return;
    timer ??= setTimeout(() => void read(), ASKED_EVERY_MS);
  });
  void read();
  return () => {
    off();
    if (timer) clearTimeout(timer);
  };
}

export const callers = (): readonly Item[] => calling;
export const attention = (): number => calling.length + asking.chats.length;

/** Everything, the most urgent first. */
export function inbox(): Item[] {
  void live.version;
  const items: Item[] = [];
  for (const task of tasks.values()) {
    const wants = want(task);
    if (wants) items.push({ task, want: wants });
  }
  const later = (a: Task, b: Task) => (a.updated_at < b.updated_at ? 1 : a.updated_at > b.updated_at ? -1 : 0);
  return items.sort((a, b) => RANK[a.want] - RANK[b.want] || later(a.task, b.task));
}
