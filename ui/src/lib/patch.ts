/** The patch of one file as rows with line numbers, and comments on them as one message. Pure. */

export type RowKind = 'hunk' | 'added' | 'removed' | 'same' | 'note';
export interface Row {
  kind: RowKind;
  text: string;
  /** The number of the line before the change and after it. */
  old: number | null;
  now: number | null;
}

/** Heads of a patch that say something which the list of files does not. */
const NOTES = /^(new file mode|deleted file mode|old mode|new mode|rename from|rename to|copy from|copy to|GIT binary patch)/;

export function rows(patch: string): Row[] {
  const found: Row[] = [];
  let [old, now, isBody] = [0, 0, false];
  const lines = patch.split('\n');
  if (lines.at(-1) === '') lines.pop();
  for (const line of lines) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      [old, now, isBody] = [Number(hunk[1]), Number(hunk[2]), true];
      found.push({ kind: 'hunk', text: line, old: null, now: null });
    } else if (!isBody) {
      if (NOTES.test(line)) found.push({ kind: 'note', text: line, old: null, now: null });
      // What follows are bytes in letters.
      if (line === 'GIT binary patch') break;
    } else if (line.startsWith('+')) found.push({ kind: 'added', text: line.slice(1), old: null, now: now++ });
    else if (line.startsWith('-')) found.push({ kind: 'removed', text: line.slice(1), old: old++, now: null });
    else if (line.startsWith('\\')) found.push({ kind: 'note', text: line.slice(2), old: null, now: null });
    else found.push({ kind: 'same', text: line.slice(1), old: old++, now: now++ });
  }
  return found;
}

/** A comment on one line. */
export interface Remark {
  path: string;
  line: number;
  /** The line is not there any more. */
  removed: boolean;
  /** What the line says. */
  text: string;
  comment: string;
}

export const placeOf = (remark: { path: string; line: number; removed: boolean }): string => `${remark.path}:${remark.line}${remark.removed ? ' (removed line)' : ''}`;

/** What the agent reads: the words on everything, then each comment below its place and its line. */
export function message(remarks: readonly Remark[], overall: string): string {
  const ordered = [...remarks].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line));
  const parts = ordered.map((remark) => `${placeOf(remark)}\n> ${remark.text.trim()}\n${remark.comment.trim()}`);
  return [overall.trim(), ...parts].filter(Boolean).join('\n\n');
}
