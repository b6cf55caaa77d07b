#!/usr/bin/env bash
# How long a build from source takes, as `make run` makes it: from a clean clone with downloaded crates, and again after
# a change of one line. Writes docs/bench/build.md.
#
#   scripts/build-time.sh            measure and write the page
#   scripts/build-time.sh --print    measure and print it
#   scripts/build-time.sh --all      also `make test` from a clean clone, and `make newcomer`: an hour more
#
# A figure that was not measured is written as "not measured". Let nothing else run beside it: the load of the machine is written down with the figures.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset CARGO_TARGET_DIR
prints='' all=''
for option in "$@"; do
  case $option in
    --print) prints=1 ;;
    --all) all=1 ;;
    *) echo "build-time: there is no option '$option'; the options are --print and --all" >&2; exit 2 ;;
  esac
done

load() { cut -d' ' -f1-3 /proc/loadavg 2>/dev/null || uptime | sed 's/.*averages*: //'; }
# timed COMMAND…: seconds that it took, on stdout; what it says goes to the log.
timed() {
  local began
  began=$(date +%s.%N)
  "$@" >>"$scratch/log" 2>&1 || { tail -n 30 "$scratch/log" >&2; exit 1; }
  awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "%.0f", b - a }'
}
build() { cargo build --profile source --locked -p matsu; }
# changed FILE FROM TO: another value in one line of code, then the build.
changed() {
  sed -i "s/$2/$3/" "$1"
  git diff --quiet -- "$1" && { echo "build-time: $1 has no line with $2" >&2; exit 1; }
  timed build
}

git clone --quiet "$here" "$scratch/matsu"
cd "$scratch/matsu"
commit=$(git log -1 --format=%h)
cargo fetch --locked --quiet
before=$(load)
page=$(timed scripts/ui.sh)
clean=$(timed build)
nothing=$(timed build)
matsu=$(changed crates/matsu/src/paths.rs '"daemon.log"' '"daemon-1.log"')
core=$(changed crates/matsu-core/src/limits.rs 'from_secs(30 \* 60), "a daemon' 'from_secs(31 * 60), "a daemon')
tests="not measured" newcomer="not measured"
if [ -n "$all" ]; then
  # A clone of its own: what the builds above made is no part of a clean `make test`.
  git clone --quiet "$here" "$scratch/tested"
  cd "$scratch/tested"
  tests=$(timed make test)
  cd "$scratch/matsu"
  # It makes a clean clone itself.
  newcomer=$(timed "$here/scripts/newcomer.sh")
fi
after=$(load)
size=$(awk -v b="$(stat -c %s target/source/matsu)" 'BEGIN { printf "%.0f", b / 1e6 }')
crates=$(cargo tree -p matsu -e normal,build --prefix none --locked | sed 's/ (.*//; /^$/d' | sort -u | wc -l)

report() {
  cat <<MD
# Build times

Measured by \`scripts/build-time.sh\`, which makes a clean clone, builds as \`make run\` does (profile \`source\`), and builds again after a change of one line.

| what | seconds | bar |
|---|---:|---:|
| the page, its npm packages in npm's cache | $page | |
| the program from a clean clone, crates downloaded | $clean | |
| both: \`make run\` until it serves | $((page + clean)) | 360 |
| after a change of one line in \`crates/matsu\` | $matsu | 15 |
| after a change of one line in \`crates/matsu-core\` | $core | 60 |
| without a change | $nothing | |
| \`make test\` from a clean clone, wall time (\`--all\`) | $tests | 1500 |
| \`make newcomer\`: clone, build, and every command of the README's first minutes (\`--all\`) | $newcomer | |

Commit $commit, $(getconf _NPROCESSORS_ONLN) cores, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1); $(rustc --version); load average $before before, $after after. The program is made of $crates crates; the binary has $size MB.
MD
}
if [ -n "$prints" ]; then report; else report >"$here/docs/bench/build.md"; echo "wrote docs/bench/build.md"; fi
