/**
 * A chat with models, live. Its stream is open only while a model answers, and at most a few in all tabs: a
 * browser opens six connections to one host, and the next tab would not load at all. Who gets none, or loses it, asks.
 */
import type { Message } from './chat';
import { listen } from './sse';

/** The data of an event `chat`. */
export interface Now { kept_to: number; messages: Message[]; notices: string[]; answering: boolean }

const STREAMS_MAX = 3;
const ASK_EVERY_MS = 1_000;

/** What is settled stays, and the rest is replaced. Pure. */
export const merge = (held: readonly Message[], now: Now): Message[] => [...held.filter((message) => message.seq <= now.kept_to), ...now.messages];

/** Up to here nothing changes any more, as far as messages tell. Pure. */
export function settledTo(messages: readonly Message[]): number {
  const running = messages.filter((message) => message.state === 'running').map((message) => message.seq);
  return running.length ? Math.min(...running) - 1 : Math.max(0, ...messages.map((message) => message.seq));
}

export class Talk {
  private stop: AbortController | null = null;
  private isAwake = false;
  private isNews = false;
  private isOver = false;

  /** `ask` reads the messages without the stream; `settled` says up to which of them nothing changes. */
  constructor(
    private readonly id: string,
    private readonly received: (now: Now) => void,
    private readonly ask: () => Promise<void>,
    private readonly settled: () => number,
  ) {}

  /** There is or may be a new message: reads the stream until no answer is being written. */
  wake(): void {
    this.isNews = true;
    if (!this.isAwake && !this.isOver) void this.listenWhileAnswered();
  }

  close(): void {
    this.isOver = true;
    this.stop?.abort();
  }

  private async listenWhileAnswered(): Promise<void> {
    this.isAwake = true;
    while (this.isNews && !this.isOver) {
      this.isNews = false;
      while (!(await this.listenOnce()) && !this.isOver) {
        await this.ask();
        await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
      }
    }
    this.isAwake = false;
  }

  /** Whether the stream was read to the event that no answer is being written. */
  private async listenOnce(): Promise<boolean> {
    const stop = new AbortController();
    this.stop = stop;
    let isDone = false;
    const read = () => listen(`/api/v1/chats/${this.id}/stream?after=${this.settled()}`, stop, (frames) => {
      for (const frame of frames) {
        if (frame.name !== 'chat' || this.isOver) continue;
        const now = frame.data as unknown as Now;
        this.received(now);
        isDone = !now.answering;
      }
      if (isDone) stop.abort();
    });
    await inTurn(read).catch(() => {});
    return isDone;
  }
}

/** Reads while one of the few streams of this browser is ours; not at all if others have them. */
async function inTurn(read: () => Promise<unknown>): Promise<void> {
  if (!navigator.locks) return void (await read());
  for (let n = 0; n < STREAMS_MAX; n++) {
    const was = await navigator.locks.request(`matsu-chat-${n}`, { ifAvailable: true }, async (lock) => lock !== null && (await read(), true));
    if (was) return;
  }
}
