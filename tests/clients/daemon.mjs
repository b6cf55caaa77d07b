// A running Matsu as the JavaScript clients see it:  client.mjs DATA_DIR MATSU
import { readFileSync } from "node:fs";

export const [data, matsu] = process.argv.slice(2);
export const address = JSON.parse(readFileSync(`${data}/server.json`, "utf8")).address;
export const key = `Bearer ${readFileSync(`${data}/token`, "utf8").trim()}`;
export const relay = ["--data-dir", data, "mcp", "--tools", "all"];

/** A task that sleeps; its id. */
export async function submit(ms) {
  const answer = await fetch(`${address}/test/tasks`, {
    method: "POST",
    headers: { authorization: key, "content-type": "application/json" },
    body: JSON.stringify({ jobs: [{ kind: "sleep", input: { ms } }] }),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()).task.task_id;
}

/** How many wait at the server. */
export async function waiters() {
  const text = await (await fetch(`${address}/metrics`, { headers: { authorization: key } })).text();
  return Number(text.match(/^matsu_waiters(?:\{.*\})? (\S+)/m)?.[1] ?? 0);
}

export async function until(what, look) {
  for (const end = Date.now() + 5000; Date.now() < end; ) {
    if (await look()) return;
    await new Promise((wake) => setTimeout(wake, 50));
  }
  throw new Error(`not within 5 s: ${what}`);
}
