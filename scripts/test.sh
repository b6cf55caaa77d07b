#!/usr/bin/env bash
# All Rust tests, several at a time. Many of them hold a real program to a time limit, and the tests beside them take
# the processor away. So what fails is run a second time, alone, and this run decides. Both results are printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# More failures than this are not bad luck.
readonly AGAIN_MAX=8

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
cargo test --workspace --locked --no-fail-fast 2>&1 | tee "$log" || status=$?
((status != 0)) || exit 0

mapfile -t failed < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log" | sort -u)
# Without a name it was not a test that failed: a compiler error, or a test program that crashed.
if ((${#failed[@]} == 0 || ${#failed[@]} > AGAIN_MAX)) || grep -q '^error: could not compile\|(signal: ' "$log"; then
  exit "$status"
fi

printf '\nFailed beside other tests, run again alone:\n'
printf '  %s\n' "${failed[@]}"
RUST_TEST_THREADS=1 cargo test --workspace --locked --no-fail-fast --lib --bins --tests -- --exact "${failed[@]}"
