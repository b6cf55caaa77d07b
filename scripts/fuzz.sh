#!/usr/bin/env bash
# Runs every fuzz target for a bounded number of executions and writes the figures to docs/bench/fuzz.md.
#   RUNS=1000000   executions of each target; PDF and HTML, which take longer, get a tenth
#   SECONDS_MAX=3600  no target runs longer, whatever is left
#   TARGETS="pdf sse" only these; the rows of the others are kept as they are, each with the commit it was measured at
set -euo pipefail
cd "$(dirname "$0")/.."

RUNS=${RUNS:-1000000}
SECONDS_MAX=${SECONDS_MAX:-3600}
ALL=$(ls fuzz/fuzz_targets | sed 's/\.rs$//')
export CARGO_TARGET_DIR=$PWD/fuzz/target

if ! rustup run nightly rustc --version >/dev/null 2>&1; then
  echo "fuzzing needs a nightly compiler: rustup toolchain install nightly" >&2
  exit 1
fi
# Without a sanitizer: the code is safe Rust, and a build with one is several times slower (ADR 0039).
RUSTUP_TOOLCHAIN=nightly cargo fuzz build --sanitizer none
programs=$CARGO_TARGET_DIR/$(rustup run nightly rustc -vV | sed -n 's/^host: //p')/release

# As much stack as a reader process gives its parser.
ulimit -s 65536 2>/dev/null || true

row() { # target
  local name=$1 runs=$RUNS length=4096 log=$CARGO_TARGET_DIR/$1.log grown=$CARGO_TARGET_DIR/corpus/$1 status=0
  local options=()
  case $name in
    html) runs=$((RUNS / 10)) length=16384 ;;
    # The library below recurses without a bound; a reader process of the product dies of it, alone. So each is counted
    # and the fuzzer goes on.
    pdf) runs=$((RUNS / 10)) length=16384 options+=(-fork=1 -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1) ;;
  esac
  if [ -f "fuzz/dictionaries/$name.dict" ]; then options+=("-dict=fuzz/dictionaries/$name.dict"); fi
  mkdir -p "$grown" "fuzz/artifacts/$name"
  # Only -max_total_time ends a run that is slow; -timeout and -rss_limit_mb make a finding of one slow or large input.
  "$programs/$name" "$grown" "fuzz/corpus/$name" -runs="$runs" -max_len="$length" -timeout=10 -rss_limit_mb=1024 \
    -max_total_time="$SECONDS_MAX" -print_final_stats=1 -artifact_prefix="fuzz/artifacts/$name/" \
    "${options[@]}" >"$log" 2>&1 || status=$?
  local executions edges features inputs found contained=0
  executions=$(grep -oaE '^(stat::number_of_executed_units: *[0-9]+|#[0-9]+:? )' "$log" | grep -oE '[0-9]+' | tail -1)
  read -r edges features inputs < <(grep -oaE 'cov: [0-9]+ ft: [0-9]+ corp: [0-9]+' "$log" | tail -1 | awk '{print $2, $4, $6}') || true
  found=$(find "fuzz/artifacts/$name" -type f | wc -l)
  if [ "$name" = pdf ]; then
    # What a panic of our own code caused is a finding; what is left ended the process inside the library.
    contained=$found found=$(grep -ac 'panicked at .*crates/matsu' "$log" || true)
  fi
  echo "| $name | $(git rev-parse --short HEAD) | ${executions:-0} | ${edges:-0} | ${features:-0} | ${inputs:-0} | $(ls "fuzz/corpus/$name" | wc -l) | $found | $contained |"
  if [ "$found" != 0 ] || { [ "$status" != 0 ] && [ "$name" != pdf ]; }; then
    echo "$name: ended with status $status; see $log and fuzz/artifacts/$name" >&2
    return 1
  fi
}

report=docs/bench/fuzz.md
out=$(mktemp)
status=0
for name in $ALL; do
  case " ${TARGETS:-$ALL} " in
    *[[:space:]]"$name"[[:space:]]*) row "$name" | tee -a "$out" || status=1 ;;
    *) { [ -f "$report" ] && grep "^| $name |" "$report" >>"$out"; } || echo "| $name | not run yet | | | | | | | |" >>"$out" ;;
  esac
done
{
  echo "# Fuzzing"
  echo
  echo "Written by \`make fuzz\`. Edges and features are what libFuzzer counts in the whole program of a target, libraries included; \"inputs kept\" are those in the repository, which \`make test\` runs. \"Findings\" are inputs that broke a property, took 10 s or took 1 GiB in this run; \"contained\" are PDFs that made the library recurse or allocate without a bound, which in the product ends a reader process and is that document's error; what was found and mended so far is in [fuzz/FINDINGS.md](../../fuzz/FINDINGS.md)."
  echo
  echo "| target | commit | executions | edges | features | inputs grown | inputs kept | findings | contained |"
  echo "|---|---|---:|---:|---:|---:|---:|---:|---:|"
  cat "$out"
} >"$report.new"
mv "$report.new" "$report"
rm "$out"
exit "$status"
