// The Inspector's command line against a running Matsu: stdio and HTTP, in each of its three eras.
//   inspector.mjs DATA_DIR MATSU
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { address, key, matsu, relay, submit } from "./daemon.mjs";

const home = dirname(createRequire(import.meta.url).resolve("@modelcontextprotocol/inspector/package.json"));
const inspector = join(home, "clients/launcher/build/index.js");
const targets = {
  stdio: [matsu, ...relay],
  http: ["--transport", "http", "--server-url", `${address}/mcp`, "--header", `Authorization: ${key}`],
};

async function inspect(transport, era, ...args) {
  const flags = ["--cli", "--protocol-era", era, "--format", "json", "-q", ...args];
  const all = [inspector, ...flags, ...targets[transport]];
  const ran = await promisify(execFile)(process.execPath, all, { maxBuffer: 1 << 24 });
  const said = JSON.parse(ran.stdout);
  return said.result ?? said;
}

async function drive(transport, era) {
  const call = (name, args) =>
    inspect(transport, era, "--method", "tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args));
  const { tools } = await inspect(transport, era, "--method", "tools/list");
  assert.ok(tools.some((tool) => tool.name === "get_task_status" && tool.outputSchema));

  const task = await submit(1);
  const ended = await call("get_task_status", { task_id: task, timeout: 20, since: 1 });
  assert.equal(ended.structuredContent.status, "completed");

  // Longer than a call waits inline: the call itself waits on, or it ends as a native task, which the Inspector follows.
  // Both bring the result. A native task is answered from the store, without a wait of its own.
  const slow = (await call("get_task_status", { task_id: await submit(6000), timeout: 30, since: 1 })).structuredContent;
  assert.equal(slow.status, "completed");
  assert.match(slow.result, /slept_ms/);
  assert.equal(slow.waited_ms === 0, era !== "legacy");

  const gone = await call("cancel_task", { task_id: await submit(600_000), mode: "immediate" });
  assert.equal(gone.structuredContent.status, "cancelled");
  console.log(`ok: ${transport} ${era}`);
}

for (const era of ["legacy", "auto", "modern"]) {
  await Promise.all(Object.keys(targets).map((transport) => drive(transport, era)));
}
