#!/usr/bin/env bash
# A newcomer's first minutes, as the README has them, with a clock: a clean clone, `make run`, the page behind the link
# it prints, then every command of "The first minute" and "A tour in five minutes" as it stands there.
#
#   scripts/newcomer.sh
#
# Uses a scratch folder as home, and the port 7878, which must be free. What was downloaded for Rust and npm before
# is used again; nothing that was built is.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scratch=$(mktemp -d)
server=

fail() { echo "newcomer.sh: $*" >&2; exit 1; }
clean_up() {
  if [ -n "$server" ]; then kill -- "-$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

if (exec 3<>/dev/tcp/127.0.0.1/7878) 2>/dev/null; then fail "port 7878 is taken: stop what listens there"; fi

# What lies in the old home and is not the product's.
export CARGO_HOME=${CARGO_HOME:-$HOME/.cargo} RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}
export npm_config_cache=${npm_config_cache:-$HOME/.npm}
unset CARGO_TARGET_DIR
# Settings that would lead out of the scratch home.
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME XDG_STATE_HOME CLAUDE_CONFIG_DIR CODEX_HOME MATSU_DATA_DIR
[ -e "$HOME/.npmrc" ] && export npm_config_userconfig=$HOME/.npmrc
mkdir "$scratch/home"
export HOME=$scratch/home
# One AI client is there for Matsu to be added to.
echo '{}' >"$HOME/.claude.json"
git clone --quiet "$here" "$scratch/matsu"
cd "$scratch/matsu"
export PATH=$PWD/target/source:$PATH

began=$(date +%s)
since() { echo "$(($(date +%s) - began)) s"; }

set -m
make run >"$scratch/log" 2>&1 &
server=$!
set +m
until grep -q 'matsu serves at' "$scratch/log"; do
  kill -0 "$server" 2>/dev/null || { cat "$scratch/log" >&2; fail "make run ended"; }
  sleep 0.2
done
echo "$(since): make run has built everything, and serves"
address=$(grep -o 'http://[^ ]*' "$scratch/log" | head -1)
curl --fail --silent --show-error --output /dev/null "$address/login"
echo "$(since): the page is there"

# The lines of sh blocks between the two headings, without what is said about them.
commands() {
  awk '/^## The first minute/ { on = 1 } /^## From an MCP client/ { on = 0 }
       /^```/ { block = (block == "" ? $0 : ""); next } on && block == "```sh"' README.md |
    sed -e 's/ #.*//' -e 's/[[:space:]]*$//' -e '/^#/d' -e '/^$/d' -e '/^make /d'
}

count=0
while IFS= read -r line <&3; do
  case $line in
    # There is no person to look at a browser, or to say yes.
    "matsu open") typed="matsu open --print" ;;
    # No service of the user who runs this script is installed.
    "matsu setup"*) typed="env -u XDG_RUNTIME_DIR -u DBUS_SESSION_BUS_ADDRESS matsu setup --yes" ;;
    "matsu connect") typed="matsu connect --yes" ;;
    *) typed=$line ;;
  esac
  bash -c "$typed" >"$scratch/said" 2>&1 || { cat "$scratch/said" >&2; fail "failed: $line"; }
  echo "$(since): $line"
  count=$((count + 1))
done 3< <(commands)
[ "$count" -ge 10 ] || fail "the README shows only $count commands"
echo "$(since): $count commands, all of them worked"
