// The official TypeScript SDK against a running Matsu: stdio and HTTP, both eras of the protocol.
//   typescript_sdk.mjs DATA_DIR MATSU
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { address, key, matsu, relay, submit, until, waiters } from "./daemon.mjs";

const transports = {
  stdio: () => new StdioClientTransport({ command: matsu, args: relay }),
  http: () =>
    new StreamableHTTPClientTransport(new URL(`${address}/mcp`), { requestInit: { headers: { authorization: key } } }),
};

async function drive(transport, mode) {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(transports[transport]());
  assert.equal(client.getProtocolEra(), mode === "legacy" ? "legacy" : "modern");
  assert.match(client.getInstructions(), /get_task_status/);
  const call = (name, args, options) => client.callTool({ name, arguments: args }, options);

  const { tools } = await client.listTools();
  for (const name of ["get_task_status", "cancel_task"]) {
    assert.ok(tools.find((tool) => tool.name === name)?.outputSchema, name);
  }

  const task = await submit(5000);
  const received = [];
  const ended = await call(
    "get_task_status",
    { task_id: task, timeout: 20, since: 1 },
    { onprogress: (progress) => received.push(progress.message) },
  );
  assert.equal(ended.structuredContent.status, "completed");
  assert.equal(JSON.parse(ended.content[0].text).status, "completed");
  assert.match(received[0], /of 1 jobs done/);

  const long = await submit(600_000);
  await assert.rejects(call("get_task_status", { task_id: long, timeout: 40, since: 1 }, { timeout: 700 }), /time/i);
  await until("the wait has ended with the call", async () => (await waiters()) === 0);
  const still = await call("get_task_status", { task_id: long });
  assert.equal(still.structuredContent.status, "running");
  const gone = await call("cancel_task", { task_id: long, mode: "immediate" });
  assert.equal(gone.structuredContent.status, "cancelled");

  const refused = await call("get_task_status", { task_id: task, wait: 3 });
  assert.ok(refused.isError);
  assert.equal(refused.structuredContent.error_code, "INVALID_PARAMS");
  await assert.rejects(call("no_such_tool", {}), /no_such_tool/);
  await client.close();
  console.log(`ok: ${transport} ${mode}`);
}

for (const mode of ["legacy", "auto"]) {
  for (const transport of Object.keys(transports)) await drive(transport, mode);
}
