#!/usr/bin/env bash
# Measures whether results reach the agents that wait for them, and writes docs/delivery.md.
#
#   DELIVERY_COUNT=60    delegations for each fault and store (10)
#   DELIVERY_REAL=5      and for each fault and real command line, from npm (0: none)
#   DELIVERY_WAIT=1800   and what a wait of so many seconds costs a model (0: not measured)
#   DELIVERY_AWAY=120    how long parent and daemon are both stopped, in seconds (10)
#   DELIVERY_PEERS=5     and for each fault of other tools, which are installed (0: what was measured of them before)
#   MATSU_BIN=PATH       another binary than target/debug/matsu, for the scripted parents
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${MATSU_BIN:-}" ]; then
  cargo build --locked --quiet -p matsu
  target=$(cargo metadata --no-deps --offline --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
  MATSU_BIN=$target/debug/matsu
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
if [ "${DELIVERY_REAL:-0}" -gt 0 ]; then
  programs=$(scripts/agents.sh)
  MATSU_TEST_AGENTS=$programs DELIVERY_REAL=$DELIVERY_REAL cargo test --locked -p matsu --test clients \
    agents::delivery:: -- --nocapture --test-threads=1 | tee "$log" || status=$?
fi
if [ "${DELIVERY_PEERS:-0}" -gt 0 ]; then
  MATSU_TEST_AGENTS=$(scripts/agents.sh)
  export MATSU_TEST_AGENTS
fi
python3 tests/delivery/measure.py --binary "$MATSU_BIN" --count "${DELIVERY_COUNT:-10}" --away "${DELIVERY_AWAY:-10}" \
  --wait "${DELIVERY_WAIT:-0}" --real "$log" --peers "${DELIVERY_PEERS:-0}" || status=$?
exit "$status"
