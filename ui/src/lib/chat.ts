/** Chats and their messages, with agents and with models. */
import { webAddress } from './text';

export interface Chat { chat_id: string; title?: string | null; agent_id: string | null; models: string[] | null; state: string; agent_state: string | null; awaiting_reply: boolean; question?: { id: string; text: string }; project_id: string; last_seq: number }
/** An image, without its data. */
export interface ImageNote { media_type: string; bytes: number }
export interface ToolUse { id?: string; name: string; state?: string; arguments?: unknown; result?: unknown; is_error?: boolean; ms?: number; images?: ImageNote[] }
export interface Message {
  id: string; seq: number; sender?: string; sender_id?: string; role?: string; content: string; created_at?: string; model?: string | null; state?: string; error?: string | null;
  tools?: ToolUse[]; tool_calls?: ToolUse[]; images?: ImageNote[];
}

export const chatIdOf = (chat: Chat): string => chat.chat_id;
export const nameOf = (chat: Chat): string => chat.title || chat.agent_id || chat.models?.join(', ') || chatIdOf(chat);

/** The models that a line is for: those it mentions as whole words, in any case; else the default model. */
export function addressees(text: string, models: readonly string[], fallback: string | null): string[] {
  const said = [...text.matchAll(/(?:^|\s)@([\p{L}\p{N}_.-]+)/gu)].map((match) => (match[1] ?? '').toLowerCase().replace(/[.]+$/, ''));
  if (said.includes('all')) return [...models];
  const named = models.filter((name) => said.includes(name.toLowerCase()));
  return named.length || !fallback ? named : [fallback];
}

export type Block = { kind: 'text'; text: string } | { kind: 'code'; language: string; text: string } | { kind: 'heading'; text: string } | { kind: 'item'; text: string } | { kind: 'table'; rows: string[][] };

const isTableRow = (line: string): boolean => /^\s*\|.*\|\s*$/.test(line);
const isTableRule = (line: string): boolean => /^\s*\|(\s*:?-+:?\s*\|)+\s*$/.test(line);
const cells = (line: string): string[] => line.trim().slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));

/** The Markdown that helps reading: fences, headings, lists, tables. Everything else stays as written. */
export function blocks(text: string): Block[] {
  const found: Block[] = [];
  let fence: { language: string; lines: string[] } | null = null;
  for (const line of text.split('\n')) {
    const mark = /^\s*```(\w*)/.exec(line);
    if (fence) {
      if (mark) {
        found.push({ kind: 'code', language: fence.language, text: fence.lines.join('\n') });
        fence = null;
      } else fence.lines.push(line);
      continue;
    }
    const last = found.at(-1);
    const heading = /^#{1,4}\s+(.*)/.exec(line);
    // A number that was written is part of what was said; only a mark is drawn anew.
    const item = /^\s*[-*]\s+(.*)/.exec(line);
    if (last?.kind === 'table' && isTableRow(line)) last.rows.push(cells(line));
    else if (last?.kind === 'text' && isTableRule(line) && isTableRow(last.text.split('\n').at(-1) ?? '')) {
      // The row above the rule is the head.
      const lines = last.text.split('\n');
      const head = cells(lines.pop() ?? '');
      last.text = lines.join('\n');
      if (!last.text.trim()) found.pop();
      found.push({ kind: 'table', rows: [head] });
    } else if (mark) fence = { language: mark[1] ?? '', lines: [] };
    else if (heading) found.push({ kind: 'heading', text: heading[1] ?? '' });
    else if (item) found.push({ kind: 'item', text: item[1] ?? '' });
    else if (last?.kind === 'text') last.text += `\n${line}`;
    else if (line.trim()) found.push({ kind: 'text', text: line });
  }
  // A fence that is still open belongs to an answer that is still coming.
  if (fence) found.push({ kind: 'code', language: fence.language, text: fence.lines.join('\n') });
  return found;
}

export interface Part {
  text: string;
  isCode: boolean;
  isBold?: boolean;
  /** A named link to the web; what it leads to is shown beside it. */
  link?: URL;
}

/** A line of text, with code, bold words and named links as parts of their own. A link that does not lead to the web stays text. Pure. */
export function inline(text: string): Part[] {
  return text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*|\[[^\]\n]+\]\([^()\s]+\))/).filter(Boolean).map((part) => {
    if (/^`[^`]+`$/.test(part)) return { text: part.slice(1, -1), isCode: true };
    if (/^\*\*[^*]+\*\*$/.test(part)) return { text: part.slice(2, -2), isCode: false, isBold: true };
    const named = /^\[([^\]]+)\]\(([^()]+)\)$/.exec(part);
    const link = named?.[2] ? webAddress(named[2]) : null;
    return link ? { text: named?.[1] ?? '', isCode: false, link } : { text: part, isCode: false };
  });
}
