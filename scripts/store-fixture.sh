#!/usr/bin/env bash
# Makes a store as an earlier commit writes it, for the test that today's version goes on with it
# (crates/matsu/tests/it/older_store.rs, and scripts/release-check.sh).
#
#   scripts/store-fixture.sh COMMIT            builds that commit in a clone of its own
#   MATSU_BINARY=PATH scripts/store-fixture.sh COMMIT   takes a finished binary of it
#
# Writes crates/matsu/tests/it/testdata/store-COMMIT.db.gz, and what must be found in it as store-COMMIT.json. Made again,
# the files differ in ids and times.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
here=$PWD
commit=$(git rev-parse --short=7 "${1:?say which commit}")
scratch=$(mktemp -d)
daemon=
clean_up() {
  [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
  rm -rf "$scratch"
}
trap clean_up EXIT

matsu=${MATSU_BINARY:-}
if [ -z "$matsu" ]; then
  git clone --quiet "$here" "$scratch/source"
  git -C "$scratch/source" checkout --quiet "$commit"
  (cd "$scratch/source" && cargo build --quiet --locked -p matsu)
  matsu="${CARGO_TARGET_DIR:-$scratch/source/target}/debug/matsu"
fi

export HOME="$scratch/home" XDG_CONFIG_HOME="$scratch/home/.config" XDG_DATA_HOME="$scratch/home/.local/share"
unset XDG_RUNTIME_DIR
data="$XDG_DATA_HOME/matsu"
mkdir -p "$XDG_CONFIG_HOME/matsu/agents" "$HOME/docs" "$HOME/work"
printf '# Moss\n\nMoss holds rain water like a sponge. It grows best on the shady side of a tree.\n' >"$HOME/docs/moss.md"
printf 'name = "echo"\ncommand = "/bin/cat"\nprompt = "stdin"\noutput = "text"\n' >"$XDG_CONFIG_HOME/matsu/agents/echo.toml"
printf 'name = "fail"\ncommand = "/bin/false"\nprompt = "stdin"\noutput = "text"\n' >"$XDG_CONFIG_HOME/matsu/agents/fail.toml"
printf '[agents]\nconfine = "open"\nroots = "%s"\n' "$HOME/work" >"$XDG_CONFIG_HOME/matsu/config.toml"
cd "$HOME/work"
"$matsu" config show >/dev/null 2>&1 || sed -i '/confine/d' "$XDG_CONFIG_HOME/matsu/config.toml"

"$matsu" serve --port 0 >"$scratch/log" 2>&1 &
daemon=$!
until [ -s "$data/server.json" ]; do kill -0 "$daemon" || { cat "$scratch/log" >&2; exit 1; }; sleep 0.1; done
"$matsu" run echo "say hello" >/dev/null
"$matsu" run fail "say hello" >/dev/null || true
"$matsu" research "where does moss grow" --dir "$HOME/docs" >/dev/null
"$matsu" token new laptop >/dev/null

api() {
  local address
  address=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["address"])' "$data/server.json")
  curl --fail --silent --show-error -H "Authorization: Bearer $(cat "$data/token")" -H 'Content-Type: application/json' "$@" -X "${METHOD:-POST}" "$address/api/v1$PLACE"
}
PLACE=/agents api -d '{"id":"ada","name":"Ada","definition":"echo"}' >/dev/null
chat=$(PLACE=/chats api -d '{"agent_id":"ada"}' | python3 -c 'import json, sys; print(json.load(sys.stdin)["chat_id"])')
PLACE="/chats/$chat/messages" api -d '{"content":"are you there"}' >/dev/null
for _ in $(seq 100); do
  messages=$(METHOD=GET PLACE="/chats/$chat/messages" api | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["items"]))')
  [ "$messages" -lt 2 ] || break
  sleep 0.1
done
# Nothing may be open: the daemon of the next version would have to wait for it.
until [ "$("$matsu" tasks --json | python3 -c 'import json, sys; print(sum(task["status"] in ("queued", "running") for task in json.load(sys.stdin)["items"]))')" = 0 ]; do sleep 0.1; done
kill "$daemon"
wait "$daemon" || true
daemon=

"$matsu" backup "$scratch/store.db" >/dev/null
out="$here/crates/matsu/tests/it/testdata"
mkdir -p "$out"
gzip -9 -n -c "$scratch/store.db" >"$out/store-$commit.db.gz"
"$matsu" tasks --json | python3 - "$commit" "$chat" "$messages" "$data/token" >"$out/store-$commit.json" 3<&0 <<'PY'
import json, os, sys
commit, chat, messages, token = sys.argv[1:]
tasks = json.load(os.fdopen(3))["items"]
kept = [{"task_id": task["task_id"], "status": task["status"], "kind": task.get("kind")} for task in tasks]
found = {"commit": commit, "token": open(token).read().strip(), "chat_id": chat, "messages": int(messages), "tasks": kept}
print(json.dumps(found, indent=2))
PY
echo "wrote $out/store-$commit.db.gz, $(stat -c %s "$out/store-$commit.db.gz") bytes"
