/** Server-sent events from a fetch, which can carry the key; `EventSource` cannot. */
import { headers } from './api';
import type { StreamEvent } from './types';

const SILENCE_MAX_MS = 25_000;

export interface Frame extends StreamEvent {
  id: string | null;
}

/** Splits a growing text into frames. Pure, so it is tested without a server. */
export class FrameReader {
  private rest = '';

  push(chunk: string): Frame[] {
    this.rest += chunk;
    const parts = this.rest.split(/\r?\n\r?\n/);
    this.rest = parts.pop() ?? '';
    return parts.map(parse).filter((frame) => frame !== null);
  }
}

function parse(block: string): Frame | null {
  let name = 'message';
  let id: string | null = null;
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon <= 0) continue;
    const field = line.slice(0, colon);
    const value = line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') name = value;
    else if (field === 'id') id = value;
    else if (field === 'data') data.push(value);
  }
  if (data.length === 0) return null;
  try {
    return { name, id, data: JSON.parse(data.join('\n')) as StreamEvent['data'] };
  } catch {
    return null;
  }
}

/** Reads a stream to its end; its status. One that says nothing for longer than its pings is no stream, and is given up. */
export async function listen(path: string, stop: AbortController, received: (frames: Frame[]) => void): Promise<number> {
  const answer = await fetch(path, { headers: headers(), signal: stop.signal, cache: 'no-store' });
  if (!answer.ok || !answer.body) return answer.status;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const frames = new FrameReader();
  for (;;) {
    const silence = setTimeout(() => stop.abort(), SILENCE_MAX_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return answer.status;
    const read = frames.push(value);
    if (read.length) received(read);
  }
}
