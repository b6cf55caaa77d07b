#!/usr/bin/env bash
# All Rust tests, several at a time. Many of them hold a real program to a time limit, and the tests beside them take
# the processor away. So what fails is run a second time, alone, and this run decides. Both results are printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# More failures than this are not bad luck.
readonly AGAIN_MAX=24

log=$(mktemp)
# What this machine cannot try is listed at the end; a test that passes prints nothing itself.
MATSU_TEST_SKIPPED=$(mktemp)
export MATSU_TEST_SKIPPED
at_end() {
  sort -u "$MATSU_TEST_SKIPPED"
  rm -f "$log" "$MATSU_TEST_SKIPPED"
}
trap at_end EXIT
# A linker can fail for want of memory or disk: shown, and tried once more with one job at a time.
if ! cargo test --workspace --locked --no-run; then
  df -h . "${TMPDIR:-/tmp}"
  free -m 2>/dev/null || true
  cargo test --workspace --locked --no-run --jobs 1
fi

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
