#!/usr/bin/env bash
# Schemathesis against a server of its own: whatever the OpenAPI document allows is asked, and what comes back must be
# what it promises. Streams and waits are left out; they have tests of their own. One check is left out, too: that
# whatever fits the schema is accepted. Some rules cannot be said there (a name that is taken, one of two fields).
set -euo pipefail
cd "$(dirname "$0")/.."

VERSION=4.32.5
target=${CARGO_TARGET_DIR:-$PWD/target}
venv=$target/schemathesis
if ! "$venv/bin/schemathesis" --version 2>/dev/null | grep -qF "$VERSION"; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet "schemathesis==$VERSION"
fi
cargo build --quiet --locked -p matsu

home=$(mktemp -d)
"$target/debug/matsu" --data-dir "$home" serve --json --port 0 >"$home/said" 2>"$home/log" &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -rf "$home"' EXIT
until [ -s "$home/server.json" ]; do
  kill -0 $server 2>/dev/null || { cat "$home/log" >&2; exit 1; }
  sleep 0.1
done
address=$(sed 's/.*"address":"\([^"]*\)".*/\1/' "$home/server.json")
cd "$home"
# Settings of ours alone, whatever lies above: none.
: >schemathesis.toml
"$venv/bin/schemathesis" --config-file "$home/schemathesis.toml" run "$address/api/v1/openapi.json" \
  --header "Authorization: Bearer $(cat "$home/token")" --url "$address/api/v1" --exclude-path-regex 'events$|/session$|/wait$|/login$' \
  --max-examples "${MATSU_EXAMPLES:-25}" --exclude-checks positive_data_acceptance --phases examples,coverage,fuzzing --seed 1 --no-color
