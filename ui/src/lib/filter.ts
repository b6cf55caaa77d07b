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
export function matches<T extends object>(filter: Filter, row: T, text: (row: T) => string): boolean {
  for (const [name, wanted] of filter.fields) {
    const fields = row as Record<string, unknown>;
    // Tasks call it their status, jobs their state; one word finds both.
    const value = fields[name] ?? (name === 'state' ? fields['status'] : undefined);
    if (typeof value !== 'string' || !wanted.includes(value)) return false;
  }
  if (filter.words.length === 0) return true;
  const hay = foldedOnce(row, text);
  return filter.words.every((word) => hay.includes(word));
}

/** The row that Enter in the filter's field opens: the selected one if the filter still shows it, else the first. */
export const opened = <T>(rows: readonly T[], id: (row: T) => string, selected: string): T | undefined =>
  rows.find((row) => id(row) === selected) ?? rows[0];

/** Folding costs more than everything else here, and ten thousand rows are asked again twenty times a second. */
const folds = new WeakMap<object, { text: string; hay: string }>();
function foldedOnce<T extends object>(row: T, text: (row: T) => string): string {
  const said = text(row);
  const known = folds.get(row);
  if (known?.text === said) return known.hay;
  const hay = folded(said);
  folds.set(row, { text: said, hay });
  return hay;
}
