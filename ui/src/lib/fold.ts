/** Time on a line, with long idle stretches folded to a fixed width. Pure. */

export interface Span { from: number; to: number }
export interface Gap { x: number; width: number; ms: number }
export interface Fold {
  x: (at: number) => number;
  folds: Gap[];
  ticks: number[];
}

const GAP_WIDTH = 84;
/** A gap is folded when it takes a larger share of the line than this. */
const GAP_SHARE = 0.2;

export function fold(spans: readonly Span[], begin: number, end: number, width: number): Fold {
  const busy = merge(spans, begin, end);
  const gaps: Span[] = [];
  let at = begin;
  for (const span of [...busy, { from: end, to: end }]) {
    if (span.from - at > (end - begin) * GAP_SHARE) gaps.push({ from: at, to: span.from });
    at = Math.max(at, span.to);
  }
  // With nothing to show there is nothing to fold away.
  const folded = busy.length ? gaps : [];
  const hidden = folded.reduce((sum, gap) => sum + gap.to - gap.from, 0);
  const shown = Math.max(1, end - begin - hidden);
  const perMs = Math.max(0, width - folded.length * GAP_WIDTH) / shown;
  const x = (time: number): number => {
    let position = 0;
    let from = begin;
    for (const gap of folded) {
      if (time <= gap.from) break;
      position += (gap.from - from) * perMs + (Math.min(1, (time - gap.from) / (gap.to - gap.from))) * GAP_WIDTH;
      from = gap.to;
      if (time < gap.to) return position;
    }
    return position + Math.max(0, time - from) * perMs;
  };
  const folds = folded.map((gap) => ({ x: x(gap.from), width: GAP_WIDTH, ms: gap.to - gap.from }));
  return { x, folds, ticks: ticks(begin, end, shown, width).filter((tick) => !folded.some((gap) => tick > gap.from && tick < gap.to)) };
}

function merge(spans: readonly Span[], begin: number, end: number): Span[] {
  const sorted = spans.map((span) => ({ from: Math.max(begin, span.from), to: Math.min(end, span.to) }))
    .filter((span) => span.to >= span.from).sort((a, b) => a.from - b.from);
  const merged: Span[] = [];
  for (const span of sorted) {
    const last = merged.at(-1);
    if (last && span.from <= last.to) last.to = Math.max(last.to, span.to);
    else merged.push({ ...span });
  }
  return merged;
}

function ticks(begin: number, end: number, shown: number, width: number): number[] {
  const steps = [10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000, 3_600_000, 10_800_000, 21_600_000];
  const step = steps.find((candidate) => (shown / candidate) * 90 < width) ?? 21_600_000;
  const found: number[] = [];
  for (let tick = Math.ceil(begin / step) * step; tick < end; tick += step) found.push(tick);
  return found;
}
