// Writes the summary of a conformance run as Markdown:
//   conformance-report.mjs SUITE LOGS REVISION…
import { readFileSync } from "node:fs";

const [suite, logs, ...revisions] = process.argv.slice(2);
const { version } = JSON.parse(readFileSync(`${suite}/package.json`, "utf8"));
const out = [
  "# Conformance",
  "",
  "Written by `make conformance`; do not edit. The official suite",
  `(\`@modelcontextprotocol/conformance\` ${version}) runs against the fixture of \`crates/matsu-conformance\`, which stands`,
  "behind the same listener, guard, Streamable HTTP and stored tasks as Matsu itself. What a revision does not score",
  "(extensions such as tasks, scenarios added later) is run too, and fails the run like the rest.",
];
for (const revision of revisions) {
  const text = readFileSync(`${logs}/${revision}.log`, "utf8");
  const summary = text.slice(text.indexOf("=== SUMMARY ==="));
  const notScored = new Map([...summary.matchAll(/^ {2}[✓✗] (\S+) \((.+)\)$/gm)].map((m) => [m[1], m[2]]));
  const rows = [...summary.matchAll(/^([✓✗]) (\S+): (\d+) passed, (\d+) failed/gm)];
  const [, passed, failed] = summary.match(/^Total: (\d+) passed, (\d+) failed/m) ?? [, "?", "?"];
  out.push("", `## ${revision}`, "", `${passed} checks passed, ${failed} failed.`, "");
  out.push("| Scenario | Passed | Failed | Scored |", "|---|---:|---:|---|");
  for (const [, , name, good, bad] of rows) {
    out.push(`| ${name} | ${good} | ${bad} | ${notScored.has(name) ? `no: ${notScored.get(name)}` : "yes"} |`);
  }
}
out.push("", "## On the real server", "");
out.push("The same suite against `matsu serve`, through a proxy that adds the token. Most scenarios call tools, prompts and");
out.push("resources of the fixture; only those that `scripts/conformance-expected-REVISION.yml` names, with what they miss, may");
out.push("fail, and a listed one that passes fails the run.", "");
out.push("| Revision | Passed | Failed, all listed |", "|---|---:|---:|");
for (const revision of revisions) {
  const text = readFileSync(`${logs}/real-${revision}.log`, "utf8");
  const [, passed, failed] = text.match(/^Total: (\d+) passed, (\d+) failed/m) ?? [, "?", "?"];
  out.push(`| ${revision} | ${passed} | ${failed} |`);
}
out.push("", "## Stock clients", "", "Against the real binary:", "");
for (const client of ["inspector", "typescript_sdk"]) {
  const lines = readFileSync(`${logs}/${client}.log`, "utf8").split("\n");
  const ok = lines.filter((line) => line.startsWith("ok: ")).map((line) => line.slice(4));
  out.push(`- ${client === "inspector" ? "Inspector CLI" : "TypeScript SDK"}: ${ok.join("; ") || "failed"}`);
}
out.push("- Python SDK, and every tool with the Python and TypeScript SDKs: in `make test` (`tests/clients/python_sdk.py`, `every_tool.*`)");
console.log(out.join("\n"));
