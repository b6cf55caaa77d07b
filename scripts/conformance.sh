#!/usr/bin/env bash
# The official conformance suite against its fixture on Matsu's own server layer and against the real server, then the
# Inspector and the TypeScript SDK against the real binary. Writes docs/conformance.md and fails if anything required
# does. On the real server only the scenarios of scripts/conformance-expected-REVISION.yml may fail, and must: most of the suite
# calls tools, prompts and resources that only the fixture has.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target="${CARGO_TARGET_DIR:-$here/target}"
report="$here/docs/conformance.md"
REVISIONS=(2025-11-25 2026-07-28)

say() { echo "conformance: $*"; }

scratch=$(mktemp -d)
pids=()
cleanup() {
  for pid in "${pids[@]}"; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$scratch"
}
trap cleanup EXIT

# Waits until a file has something to say.
await_text() {
  for _ in $(seq 200); do
    if [ -s "$1" ]; then return 0; fi
    sleep 0.05
  done
  say "nothing came: $1"
  exit 1
}

cd "$here"
cargo build --quiet --locked -p matsu -p matsu-conformance
clients=$(scripts/clients.sh node)
node="$clients/node_modules/.bin/node"
suite="$clients/node_modules/@modelcontextprotocol/conformance"
failed=0

"$target/debug/matsu-conformance" >"$scratch/address" 2>"$scratch/fixture.log" &
pids+=($!)
await_text "$scratch/address"
url=$(head -n 1 "$scratch/address")
for revision in "${REVISIONS[@]}"; do
  say "suite, requirements of $revision"
  if ! "$node" "$suite/dist/index.js" server --url "$url" --requirements "$revision" >"$scratch/$revision.log" 2>&1; then
    failed=1
  fi
  sed -n '/^=== SUMMARY ===/,$p' "$scratch/$revision.log" | tee "$scratch/summary"
  # The suite does not score extensions such as tasks. We do.
  if ! grep -q '^Total: ' "$scratch/summary" || grep -q '^✗' "$scratch/summary"; then
    failed=1
  fi
done

"$target/debug/matsu" --data-dir "$scratch/data" serve --test-jobs --port 0 >"$scratch/daemon.out" 2>"$scratch/daemon.log" &
pids+=($!)
await_text "$scratch/daemon.out"
address=$(sed -n 's/.*"address": *"\([^"]*\)".*/\1/p' "$scratch/data/server.json")
"$node" scripts/conformance-proxy.mjs "$address" "$scratch/data/token" >"$scratch/proxy" &
pids+=($!)
await_text "$scratch/proxy"
for revision in "${REVISIONS[@]}"; do
  say "suite on the real server, requirements of $revision"
  expected="scripts/conformance-expected-$revision.yml"
  if ! "$node" "$suite/dist/index.js" server --url "$(head -n 1 "$scratch/proxy")" --requirements "$revision" \
    --expected-failures "$expected" >"$scratch/real-$revision.log" 2>&1; then
    failed=1
    sed -n '/^=== SUMMARY ===/,$p' "$scratch/real-$revision.log"
  fi
  grep '^Total: ' "$scratch/real-$revision.log" || failed=1
done

for client in inspector typescript_sdk; do
  say "$client"
  # Modules are looked for beside the file that asks for them.
  cp tests/clients/daemon.mjs "tests/clients/$client.mjs" "$clients/"
  if ! "$node" "$clients/$client.mjs" "$scratch/data" "$target/debug/matsu" >"$scratch/$client.log" 2>&1; then
    failed=1
    cat "$scratch/$client.log"
  else
    grep '^ok: ' "$scratch/$client.log"
  fi
done

"$node" scripts/conformance-report.mjs "$suite" "$scratch" "${REVISIONS[@]}" >"$scratch/report.md"
mv "$scratch/report.md" "$report"
if [ "$failed" -ne 0 ]; then
  say "FAILED"
  exit 1
fi
say "all required checks pass; see docs/conformance.md"
