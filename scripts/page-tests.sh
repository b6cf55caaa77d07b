#!/usr/bin/env bash
# The tests of the page: types, what is pure, and journeys in a real Chromium against the real binary.
#
#   scripts/page-tests.sh             all of them, on target/debug/matsu
#   scripts/page-tests.sh NAME        only the journeys of that file
#   MATSU_BIN=… scripts/page-tests.sh on another binary
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh browser
scripts/ui.sh
. scripts/node.sh
target=$(cargo metadata --no-deps --offline --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
export MATSU_BIN=${MATSU_BIN:-$target/debug/matsu}
[ -x "$MATSU_BIN" ] || cargo build --locked -p matsu
cd ui
journeys() { node --test --test-concurrency=1 --test-timeout=180000 "$@"; }
if [ $# -gt 0 ]; then
  journeys "test/journeys/$1.test.mjs"
  exit
fi
for file in test/journeys/*.mjs test/unit/*.mjs; do node --check "$file"; done
npx --no-install svelte-check --tsconfig ./tsconfig.json --fail-on-warnings --output machine
node --test test/unit/*.test.mjs

# As with the Rust tests (scripts/test.sh), a file that fails on a busy machine is run once more, and this run decides.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
journeys test/journeys/*.test.mjs | tee "$log" || status=$?
((status != 0)) || exit 0
mapfile -t failed < <(sed -n "s|^ *location: '.*/\(test/journeys/[^:]*\):.*|\1|p" "$log" | sort -u)
((${#failed[@]} == 1 || ${#failed[@]} == 2)) || exit "$status"
printf '\nRun again: %s\n' "${failed[*]}"
journeys "${failed[@]}"
