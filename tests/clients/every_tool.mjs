// The official TypeScript SDK calls every tool of a running Matsu: stdio and HTTP, both eras of the protocol.
//   every_tool.mjs DATA_DIR MATSU
// The SDK refuses a reply that does not fit the tool's output schema. The calls are in every_tool.json.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { address, key, matsu, relay } from "./daemon.mjs";

const steps = JSON.parse(readFileSync(new URL("./every_tool.json", import.meta.url), "utf8"));
const transports = {
  stdio: () => new StdioClientTransport({ command: matsu, args: relay }),
  http: () =>
    new StreamableHTTPClientTransport(new URL(`${address}/mcp?tools=all`), {
      requestInit: { headers: { authorization: key } },
    }),
};

async function post(path, body) {
  const headers = { authorization: key, "content-type": "application/json" };
  const answer = await fetch(`${address}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

/** An agent with a message in its chat, and one with a task. */
async function people(name) {
  const known = {};
  for (const role of ["chatter", "worker"]) {
    known[role] = `${name}-${role}`;
    known[`${role}_key`] = (await post("/agents", { id: known[role], name: known[role] })).passkey;
  }
  const { chat_id } = await post("/chats", { agent_id: known.chatter, project_id: "default" });
  await post(`/chats/${chat_id}/messages`, { content: "Hello?" });
  await post("/tasks", { kind: "agent", message: "Do it.", agent_id: known.worker });
  return known;
}

const filled = (value, known) => {
  if (typeof value === "string") return value.startsWith("$") ? known[value.slice(1)] : value;
  if (Array.isArray(value)) return value.map((each) => filled(each, known));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, filled(each, known)]));
};

async function drive(transport, mode) {
  const known = await people(`ts-${transport}-${mode}`);
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(transports[transport]());
  assert.equal(client.getProtocolEra(), mode === "legacy" ? "legacy" : "modern");
  const { tools } = await client.listTools();
  for (const { tool, arguments: given, keep = {}, refused } of steps) {
    const reply = await client.callTool({ name: tool, arguments: filled(given, known) });
    const said = reply.structuredContent;
    assert.equal(Boolean(reply.isError), refused !== undefined, `${tool} ${JSON.stringify(given)}: ${JSON.stringify(said)}`);
    if (refused) assert.equal(said.error_code, refused, tool);
    for (const [name, path] of Object.entries(keep)) {
      known[name] = path.split(".").reduce((value, part) => value[part], said);
    }
  }
  const called = new Set(steps.map((step) => step.tool));
  assert.deepEqual(tools.map((tool) => tool.name).filter((name) => !called.has(name)), []);
  await client.close();
  console.log(`ok: ${transport} ${mode}: ${tools.length} tools, ${steps.length} calls`);
}

const ways = ["legacy", "auto"].flatMap((mode) => Object.keys(transports).map((transport) => drive(transport, mode)));
await Promise.all(ways);
