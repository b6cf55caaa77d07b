// The TypeScript SDK's server as a peer: one tool that answers from memory what Matsu reads from its store.
//   typescript_server.mjs stdio
//   typescript_server.mjs http PORT
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer, createMcpHandler } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

const input = z.object({ task_id: z.string(), timeout: z.number().int().optional() });
const output = z.object({
  ok: z.boolean(),
  task_id: z.string(),
  status: z.string(),
  revision: z.number(),
  elapsed_time: z.number(),
  next: z.object({ since: z.number() }),
  waited_ms: z.number(),
  returned_because: z.string(),
});
const task = {
  ok: true,
  task_id: "task_01",
  status: "running",
  revision: 4,
  elapsed_time: 30,
  next: { since: 4 },
  waited_ms: 0,
  returned_because: "timeout",
};

function peer() {
  const server = new McpServer({ name: "peer", version: "1" });
  server.registerTool(
    "get_task_status",
    { description: "Where a task stands.", inputSchema: input, outputSchema: output, annotations: { readOnlyHint: true } },
    async () => ({ content: [{ type: "text", text: JSON.stringify(task) }], structuredContent: task }),
  );
  return server;
}

const [transport, port] = process.argv.slice(2);
if (transport === "stdio") serveStdio(peer);
else createServer(toNodeHandler(createMcpHandler(peer))).listen(Number(port), "127.0.0.1");
