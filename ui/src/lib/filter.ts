/** The filter language: `state:failed slot:cpu kind:agent words`. Words are looked for anywhere, folded. Pure. */
import { folded } from './text';

export interface Filter {
  fields: Map<string, string[]>;
  words: string[];
}

export function parse(text: string): Filter {
  const fields = new Map<string, string[]>();
  const words: string[] = [];
  for (const part of text.trim().split(/\s+/).filter(Boolean)) {
    const match = /^(\w+):(\S+)$/.exec(part);
    if (match?.[1] && match[2]) fields.set(match[1], [...(fields.get(match[1]) ?? []), ...match[2].split(',')]);
    else words.push(folded(part));
  }
  return { fields, words };
}

/** Fields that the row does not have match nothing, so a slip of the pen shows. */
export function matches(filter: Filter, fields: Record<string, string>, text: string): boolean {
  for (const [name, wanted] of filter.fields) {
    const value = fields[name];
    if (value === undefined || !wanted.includes(value)) return false;
  }
  // Folding costs more than everything else here, and most filters have no words.
  if (filter.words.length === 0) return true;
  const hay = folded(text);
  return filter.words.every((word) => hay.includes(word));
}
