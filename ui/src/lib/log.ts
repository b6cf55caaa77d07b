/** Lines of an agent's log: events where a line is one, plain text where it is not. Pure. */

export interface Line {
  raw: string;
  text: string;
  label: string;
  kind: 'text' | 'tool' | 'error' | 'notice' | 'raw';
}

/** Whole lines, and what is left of the last one. A line of megabytes is cut: it would be one paint. */
const LINE_MAX = 20_000;

export function lines(text: string): { lines: Line[]; rest: string } {
  const parts = text.split('\n');
  const rest = parts.pop() ?? '';
  return { lines: parts.map(read), rest };
}

function read(whole: string): Line {
  const raw = whole.length > LINE_MAX ? `${whole.slice(0, LINE_MAX)}…` : whole;
  const plain = strip(raw);
  if (!plain.startsWith('{')) return { raw: plain, text: plain, label: '', kind: 'text' };
  try {
    return event(plain, JSON.parse(whole) as Record<string, unknown>);
  } catch {
    return { raw: plain, text: plain, label: '', kind: 'text' };
  }
}

/** The event kinds of our own log and the common fields of CLI streams; anything else stays as it is. */
function event(raw: string, value: Record<string, unknown>): Line {
  const kind = String(value['kind'] ?? value['type'] ?? value['event'] ?? '');
  const text = [value['text'], value['message'], value['summary'], value['content'], value['result'], value['delta']].find((part) => typeof part === 'string');
  const name = [value['tool'], value['tool_name'], value['name']].find((part) => typeof part === 'string');
  if (/error|fail/.test(kind)) return { raw, text: text ?? raw, label: kind, kind: 'error' };
  if (/tool|command|exec/.test(kind)) return { raw, text: `${name ?? ''} ${text ?? ''}`.trim() || raw, label: kind, kind: 'tool' };
  if (/notice|interrupt|question|status/.test(kind)) return { raw, text: text ?? raw, label: kind, kind: 'notice' };
  if (text !== undefined) return { raw, text, label: kind === 'text' ? '' : kind, kind: 'text' };
  return { raw, text: raw, label: '', kind: 'raw' };
}

/** Terminal colours say nothing here. */
// eslint-disable-next-line no-control-regex
const strip = (text: string): string => text.replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, '');
