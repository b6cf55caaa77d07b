/** Comments that were written and not sent yet. They survive a reload of the tab. */
import type { Remark } from './patch';

const isSame = (a: Remark, b: Remark): boolean => a.path === b.path && a.line === b.line && a.removed === b.removed;

export class Remarks {
  items = $state.raw<readonly Remark[]>([]);
  overall = $state('');
  readonly #place: string;

  constructor(run: string) {
    this.#place = `matsu.remarks.${run}`;
    try {
      const kept = JSON.parse(sessionStorage.getItem(this.#place) ?? '{}') as { items?: Remark[]; overall?: string };
      this.items = kept.items ?? [];
      this.overall = kept.overall ?? '';
    } catch {
      sessionStorage.removeItem(this.#place);
    }
  }

  put(remark: Remark): void {
    this.items = [...this.items.filter((other) => !isSame(other, remark)), remark];
    this.keep();
  }

  drop(remark: Remark): void {
    this.items = this.items.filter((other) => !isSame(other, remark));
    this.keep();
  }

  clear(): void {
    [this.items, this.overall] = [[], ''];
    sessionStorage.removeItem(this.#place);
  }

  keep(): void {
    sessionStorage.setItem(this.#place, JSON.stringify({ items: this.items, overall: this.overall }));
  }
}
