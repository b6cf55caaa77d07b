#!/usr/bin/env bash
# Schemathesis against a server of its own: whatever the OpenAPI document allows is asked, and what comes back must be
# what it promises; what it allows is accepted, but for the routes below, each with its reason. Streams and waits are
# left out; they have tests of their own. So is revoking tokens: it finds out which token it goes with, and revokes it.
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
# Not asked for what a schema cannot say: these answer 400 to data that fits.
cat >schemathesis.toml <<'SETTINGS'
# The token alone: with a made-up cookie beside it every call would come from a foreign page.
[generation]
with-security-parameters = false

# A name that is taken.
[[operations]]
include-name = ["POST /agents", "POST /projects", "POST /tokens"]
[operations.checks]
positive_data_acceptance.enabled = false

# Engines and models are those that a server has been given.
[[operations]]
include-name = ["POST /tasks/{id}/searches", "POST /chats"]
[operations.checks]
positive_data_acceptance.enabled = false

# The same, and more is taken than is described: null for a field that is absent.
[[operations]]
include-name = "POST /tasks"
[operations.checks]
positive_data_acceptance.enabled = false
negative_data_rejection.enabled = false

# A cursor is one that was given out.
[[operations]]
include-name = ["GET /tasks/{id}/graph", "GET /tasks/{id}/materials"]
[operations.checks]
positive_data_acceptance.enabled = false

# A text in one of two formats, that of a header or that of a file.
[[operations]]
include-name = "POST /auth-queue/cookies"
[operations.checks]
positive_data_acceptance.enabled = false

# A whole number that is written with a point, 382.0, is none to us.
[[operations]]
include-name = "POST /calibration/rollback"
[operations.checks]
positive_data_acceptance.enabled = false

# More is taken than is described: an address in any way of writing its numbers, null for a field that is absent.
[[operations]]
include-name = "POST /feedback"
[operations.checks]
negative_data_rejection.enabled = false
SETTINGS
"$venv/bin/schemathesis" --config-file "$home/schemathesis.toml" run "$address/api/v1/openapi.json" \
  --header "Authorization: Bearer $(cat "$home/token")" --url "$address/api/v1" --exclude-path-regex 'events$|/session$|/wait$|/login$' \
  --exclude-operation-id revoke_token \
  --max-examples "${MATSU_EXAMPLES:-25}" --phases examples,coverage,fuzzing --seed 1 --no-color
