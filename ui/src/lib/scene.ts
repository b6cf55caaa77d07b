/** What the graph shows: claims, fragments and domains, and how they hang together. Pure. */
import type { Claim } from './research';

export type View = 'focus' | 'domains' | 'everything';
export interface SceneNode { id: string; kind: 'claim' | 'fragment' | 'domain'; label: string }
export interface SceneLink { from: string; to: string; relation: 'supports' | 'refutes' | 'neutral' | 'origin'; weight?: number }
export interface Scene { nodes: SceneNode[]; links: SceneLink[] }

export function scene(claims: readonly Claim[], selected: string, view: View): Scene {
  const nodes = new Map<string, SceneNode>();
  const links: SceneLink[] = [];
  const wanted = view === 'focus' ? claims.filter((claim) => claim.id === selected) : claims;
  for (const claim of wanted) {
    nodes.set(claim.id, { id: claim.id, kind: 'claim', label: claim.text });
    for (const evidence of claim.evidence ?? []) {
      const domain = `domain:${evidence.domain ?? evidence.url}`;
      nodes.set(domain, { id: domain, kind: 'domain', label: evidence.domain ?? evidence.url });
      const link = { to: claim.id, relation: evidence.relation, weight: evidence.probability };
      if (view === 'domains') links.push({ from: domain, ...link });
      else {
        nodes.set(evidence.fragment_id, { id: evidence.fragment_id, kind: 'fragment', label: evidence.title ?? evidence.url });
        links.push({ from: evidence.fragment_id, ...link });
        if (!links.some((known) => known.from === domain && known.to === evidence.fragment_id)) links.push({ from: domain, to: evidence.fragment_id, relation: 'origin' });
      }
    }
    const origin = claim.origin?.fragment_id;
    if (origin && view !== 'domains') {
      if (!nodes.has(origin)) nodes.set(origin, { id: origin, kind: 'fragment', label: claim.origin?.url ?? '' });
      if (!links.some((link) => link.from === origin && link.to === claim.id)) links.push({ from: origin, to: claim.id, relation: 'origin' });
    }
  }
  return { nodes: [...nodes.values()], links };
}

export interface Label { id: string; text: string; width: number; x: number; y: number }
interface Box { left: number; right: number; top: number; bottom: number }

const overlap = (a: Box, b: Box): boolean => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const around = (x: number, y: number, reach: number): Box => ({ left: x - reach, right: x + reach, top: y - reach, bottom: y + reach });

/**
 * Words beside their nodes: below, else above, right or left, where they cover neither each other nor another node. Those
 * that come first choose first; a node without free space stays without. What comes back is where the middle of the line stands. Pure.
 */
export function labels(wanted: readonly Label[], nodes: readonly { id: string; x: number; y: number }[], size: { width: number; height: number }): Label[] {
  const taken = new Map(nodes.map((node) => [node.id, around(node.x, node.y, 9)]));
  const placed: { label: Label; box: Box }[] = [];
  for (const label of wanted) {
    const { x, y, width } = label;
    const aside = 16 + width / 2;
    for (const [middle, line] of [[x, y + 24], [x, y - 15], [x + aside, y + 4], [x - aside, y + 4]] as const) {
      const box = { left: middle - width / 2, right: middle + width / 2, top: line - 11, bottom: line + 4 };
      const isInside = box.left >= 0 && box.right <= size.width && box.top >= 0 && box.bottom <= size.height;
      const isFree = !placed.some((other) => overlap(other.box, box)) && ![...taken].some(([id, node]) => id !== label.id && overlap(node, box));
      if (!isInside || !isFree) continue;
      placed.push({ label: { ...label, x: middle, y: line }, box });
      break;
    }
  }
  return placed.map((one) => one.label);
}
