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
