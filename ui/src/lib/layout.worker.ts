/** Places the nodes of a graph, beside the page. Sends what it has a few times while it settles. */
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type SimulationNodeDatum } from 'd3-force';

interface Node extends SimulationNodeDatum { id: string; kind: string }
interface Wish { nodes: Node[]; links: { source: string; target: string }[] }

self.onmessage = ({ data }: MessageEvent<Wish>) => {
  const few = data.nodes.length < 40;
  const simulation = forceSimulation<Node>(data.nodes)
    .force('link', forceLink<Node, { source: string | Node; target: string | Node }>(data.links).id((node) => node.id).distance(few ? 80 : 44).strength(0.6))
    .force('charge', forceManyBody().strength(few ? -260 : -90))
    .force('x', forceX(0).strength(0.06))
    .force('y', forceY(0).strength(0.1))
    .force('collide', forceCollide(few ? 26 : 14))
    .stop();
  const ticks = 260;
  for (let tick = 0; tick < ticks; tick++) {
    simulation.tick();
    const isLast = tick === ticks - 1;
    if (tick === 20 || tick === 80 || isLast) postMessage({ places: data.nodes.map((node) => [node.id, node.x ?? 0, node.y ?? 0]), isLast });
  }
};
