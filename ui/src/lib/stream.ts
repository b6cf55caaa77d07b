/**
 * One stream per browser, not per tab: a lock elects the tab that reads, a channel carries what it reads to the others.
 * A browser opens six connections to one host; a stream per tab would stop the seventh tab from loading at all.
 */
import { post, signedIn } from './api';
import { listen, type Frame } from './sse';
import type { StreamEvent } from './types';

export type LinkState = 'live' | 'connecting' | 'offline' | 'paused';
type Message =
  | { kind: 'events'; events: StreamEvent[]; cursor: string | null }
  | { kind: 'link'; state: LinkState; since: number }
  | { kind: 'topics'; tab: string; topics: string[] }
  | { kind: 'who' };

const tab = crypto.randomUUID();
const channel = new BroadcastChannel('matsu');
const topicsOf = new Map<string, string[]>();

let listener: (events: StreamEvent[]) => void = () => {};
let linkListener: (state: LinkState, since: number) => void = () => {};
let mine: string[] = [];
let isLeader = false;
let paused = false;
let streamId = '';
let cursor: string | null = null;
let abort: AbortController | null = null;
let wake: () => void = () => {};

export function start(onEvents: typeof listener, onLink: typeof linkListener): void {
  listener = onEvents;
  linkListener = onLink;
  channel.onmessage = ({ data }: MessageEvent<Message>) => hear(data);
  addEventListener('pagehide', () => channel.postMessage({ kind: 'topics', tab, topics: [] } satisfies Message));
  addEventListener('online', () => wake());
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && wake());
  if (navigator.locks) void navigator.locks.request('matsu-stream', lead);
  else void lead();
}

/** What this tab wants to hear of besides tasks and counts. */
export function follow(topics: string[]): void {
  mine = topics;
  topicsOf.set(tab, topics);
  channel.postMessage({ kind: 'topics', tab, topics } satisfies Message);
  if (isLeader) void sendTopics();
}

/** Really stops the traffic; what was missed is read again on resume. */
export function pause(on: boolean): void {
  paused = on;
  if (on) {
    abort?.abort();
    tellLink('paused');
  } else wake();
}

function hear(message: Message): void {
  if (message.kind === 'events') {
    // The next leading tab continues from here.
    cursor = message.cursor;
    if (!paused) listener(message.events);
  }
  else if (message.kind === 'link' && !paused) linkListener(message.state, message.since);
  else if (message.kind === 'who') channel.postMessage({ kind: 'topics', tab, topics: mine } satisfies Message);
  else if (message.kind === 'topics') {
    if (message.topics.length) topicsOf.set(message.tab, message.topics);
    else topicsOf.delete(message.tab);
    if (isLeader) void sendTopics();
  }
}

async function lead(): Promise<void> {
  isLeader = true;
  channel.postMessage({ kind: 'who' } satisfies Message);
  let pauseMs = 500;
  for (;;) {
    if (signedIn() && !paused) {
      const began = Date.now();
      await read().catch(() => {});
      if (Date.now() - began > 10_000) pauseMs = 500;
    }
    if (!paused) tellLink(signedIn() ? 'offline' : 'connecting');
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, pauseMs * (0.5 + Math.random()));
      wake = () => {
        clearTimeout(timer);
        pauseMs = 500;
        resolve();
      };
    });
    pauseMs = Math.min(pauseMs * 2, 30_000);
  }
}

async function read(): Promise<void> {
  abort = new AbortController();
  tellLink('connecting');
  const query = new URLSearchParams({ topics: wanted().join(',') });
  const resumed = cursor !== null;
  if (cursor) query.set('cursor', cursor);
  const status = await listen(`/api/v1/events?${query}`, abort, (frames) => tell(frames, resumed));
  if (status === 400) cursor = null;
}

function tell(frames: Frame[], resumed: boolean): void {
  const events: StreamEvent[] = [];
  for (const frame of frames) {
    if (frame.id) cursor = frame.id;
    if (frame.name === 'hello') {
      streamId = String(frame.data['stream_id']);
      frame.data['resumed'] = resumed;
      tellLink('live');
      void sendTopics();
    }
    if (frame.name !== 'ping') events.push({ name: frame.name, data: frame.data });
  }
  if (!events.length) return;
  listener(events);
  channel.postMessage({ kind: 'events', events, cursor } satisfies Message);
}

const wanted = (): string[] => [...new Set([...mine, ...[...topicsOf.values()].flat()])].sort();

let sent = '';
async function sendTopics(): Promise<void> {
  const topics = wanted();
  const text = `${streamId} ${topics.join()}`;
  if (!streamId || text === sent) return;
  sent = text;
  await post(`/events/${streamId}/topics`, { topics }).catch(() => {});
}

function tellLink(state: LinkState): void {
  const since = Date.now();
  linkListener(state, since);
  channel.postMessage({ kind: 'link', state, since } satisfies Message);
}
