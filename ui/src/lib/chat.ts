/** Chats and their messages, with agents and with models. */

export interface Chat { chat_id: string; title?: string | null; agent_id: string | null; models: string[] | null; state: string; agent_state: string | null; awaiting_reply: boolean; question?: { id: string; text: string }; project_id: string; last_seq: number }
export interface ToolUse { id?: string; name: string; state?: string; arguments?: unknown; result?: unknown; is_error?: boolean; ms?: number }
export interface Message {
  id: string; seq: number; sender?: string; sender_id?: string; role?: string; content: string; created_at?: string; model?: string | null; state?: string; error?: string | null;
  tools?: ToolUse[]; tool_calls?: ToolUse[];
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

export type Block = { kind: 'text'; text: string } | { kind: 'code'; language: string; text: string } | { kind: 'heading'; text: string } | { kind: 'item'; text: string };

/** The little Markdown that helps reading: fences, headings, lists. Everything else stays as written. */
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
    if (mark) fence = { language: mark[1] ?? '', lines: [] };
    else if (heading) found.push({ kind: 'heading', text: heading[1] ?? '' });
    else if (item) found.push({ kind: 'item', text: item[1] ?? '' });
    else if (last?.kind === 'text') last.text += `\n${line}`;
    else if (line.trim()) found.push({ kind: 'text', text: line });
  }
  // A fence that is still open belongs to an answer that is still coming.
  if (fence) found.push({ kind: 'code', language: fence.language, text: fence.lines.join('\n') });
  return found;
}

/** A line of text, with what is quoted as code told apart. Pure. */
export function inline(text: string): { text: string; isCode: boolean }[] {
  return text.split(/(`[^`\n]+`)/).filter(Boolean).map((part) => (/^`[^`]+`$/.test(part) ? { text: part.slice(1, -1), isCode: true } : { text: part, isCode: false }));
}
