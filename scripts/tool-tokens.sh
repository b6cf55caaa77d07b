#!/usr/bin/env bash
# Counts the tokens (vocabulary o200k) of what a model reads of the tools: names, descriptions and input schemas.
# Fails if a preset is above its limit, or the whole list of core above 25 KB.
#
#   scripts/tool-tokens.sh         with target/debug/matsu, built if need be
#   MATSU_BIN=… scripts/tool-tokens.sh
set -euo pipefail
cd "$(dirname "$0")/.."

matsu=${MATSU_BIN:-${CARGO_TARGET_DIR:-target}/debug/matsu}
[ -n "${MATSU_BIN:-}" ] || cargo build --quiet --locked -p matsu
tokenizer=$(scripts/clients.sh tokens)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

hello='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tokens","version":"1"}}}'
ready='{"jsonrpc":"2.0","method":"notifications/initialized"}'
list='{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
cat >"$tokenizer/count.mjs" <<'JS'
import { encode } from "gpt-tokenizer/encoding/o200k_base";
const [preset, limit, bytesMax] = process.argv.slice(2);
let text = "";
for await (const part of process.stdin) text += part;
const line = text.split("\n").find((line) => line.includes('"inputSchema"'));
const { tools } = JSON.parse(line).result;
const read = JSON.stringify(tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })));
const tokens = encode(read).length;
const bytes = Buffer.byteLength(line);
console.log(`${preset}: ${tools.length} tools, ${tokens} tokens (limit ${limit}), ${read.length} bytes; whole list ${bytes} bytes (limit ${bytesMax})`);
if (tokens > Number(limit) || bytes > Number(bytesMax)) process.exit(1);
JS
for preset in core:3000:25000 all:6000:50000; do
  IFS=: read -r name tokens bytes <<<"$preset"
  # The input ends only after the answers have come.
  { printf '%s\n%s\n%s\n' "$hello" "$ready" "$list"; sleep 2; } |
    "$matsu" --data-dir "$scratch" --store memory: mcp --no-daemon --tools "$name" 2>/dev/null |
    node "$tokenizer/count.mjs" "$name" "$tokens" "$bytes"
done
