#!/usr/bin/env bash
# Installs the plugins with the real command lines and lets a scripted model call a tool through each of them.
# Started by scripts/dist-test.sh with SCRATCH, PLUGINS, MATSU and CLIENTS. MATSU_SCRIPTED_MODEL=PATH takes a model that
# was built already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

model=${MATSU_SCRIPTED_MODEL:-}
if [ -z "$model" ]; then
  cargo build --quiet --locked -p matsu-testkit --bin scripted-model
  model="${CARGO_TARGET_DIR:-$PWD/target}/debug/scripted-model"
fi
export HOME="$SCRATCH/plugins-home" XDG_DATA_HOME="$SCRATCH/plugins-home/.local/share" XDG_CONFIG_HOME="$SCRATCH/plugins-home/.config"
mkdir -p "$HOME/work" "$HOME/bin" "$HOME/.codex" "$HOME/.gemini"
# Notes where each client starts the server.
printf '#!/bin/sh\necho "$(pwd) $*" >>"%s/starts"\nexec "%s" "$@"\n' "$HOME" "$MATSU" >"$HOME/bin/matsu"
chmod +x "$HOME/bin/matsu"
export PATH="$HOME/bin:$CLIENTS:$PATH"

cat >"$HOME/script.json" <<'JSON'
[
  {"when": {"anywhere": "plugin of claude"}, "reply": {"say": [{"tool": {"name": "mcp__plugin_matsu_matsu__get_task_status", "arguments": {}}}]}, "times": 1},
  {"when": {"last": "plugin of codex"}, "reply": {"say": [{"tool": {"name": "mcp__matsu/get_task_status", "arguments": {}}}]}, "times": 1},
  {"when": {"last": "plugin of gemini"}, "reply": {"say": [{"tool": {"name": "mcp_matsu_get_task_status", "arguments": {}}}]}, "times": 1},
  {"when": {"last": "plugin of agent-plugins"}, "reply": {"say": [{"tool": {"name": "mcp__matsu/get_task_status", "arguments": {}}}]}, "times": 1},
  {"when": {}, "reply": {"say": [{"text": "finished"}]}}
]
JSON
# The model ends with its input.
mkfifo "$HOME/input"
"$model" "$HOME/script.json" <"$HOME/input" >"$HOME/model.log" &
exec 7>"$HOME/input"
finish() {
  exec 7>&-
  matsu shutdown >/dev/null 2>&1 || true
}
trap finish EXIT
until [ -s "$HOME/model.log" ]; do sleep 0.05; done
url=$(head -1 "$HOME/model.log")
seen=1

# called NAME: since the last call, a request of the client carried the tool's answer back to the model, and both hooks ran.
called() {
  python3 - "$HOME" "$1" "$seen" <<'PY'
import json, sys
home, client, seen = sys.argv[1:]
lines = open(f"{home}/model.log").read().splitlines()[int(seen):]
answers = [message for line in lines for message in json.loads(line)["asked"]["messages"] if '"total":0' in message.replace("\\", "")]
starts = open(f"{home}/starts").read().splitlines()
assert answers, f"{client}: no request to the model has the tool's answer in it; it asked {len(lines)} times"
assert any(" mcp " in start for start in starts), starts
if client != "agent-plugins":
    assert any(start.endswith("hook prompt") for start in starts), starts
    assert any(start.endswith("hook stop") for start in starts), starts
print(f"dist-test: ok: the plugin of {client} was installed, started in {next(s for s in starts if ' mcp ' in s).split()[0].removeprefix(home)} of its home, and its tool was called")
PY
  : >"$HOME/starts"
  # What the next client sends is looked for from here on.
  seen=$(wc -l <"$HOME/model.log")
}

log="$HOME/client.log"
quietly() {
  if ! timeout 180 "$@" >"$log" 2>&1; then echo "plugins-test: failed: $*" >&2; tail -n 30 "$log" >&2; exit 1; fi
}

quietly claude plugin validate --strict "$PLUGINS"
quietly claude plugin validate --strict "$PLUGINS/plugins/claude"
quietly claude plugin marketplace add "$PLUGINS"
quietly claude plugin install matsu@matsu
cd "$HOME/work"
export ANTHROPIC_BASE_URL="$url" ANTHROPIC_API_KEY=none DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
quietly claude -p --allowedTools mcp__plugin_matsu_matsu <<<"plugin of claude"
called claude

cat >"$HOME/.codex/config.toml" <<TOML
model = "gpt-5"
model_provider = "p"
web_search = "disabled"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.p]
name = "p"
base_url = "$url/v1"
env_key = "P_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
TOML
export P_KEY=none
quietly codex plugin marketplace add "$PLUGINS"
quietly codex plugin add matsu@matsu
quietly codex exec --skip-git-repo-check --dangerously-bypass-hook-trust - <<<"plugin of codex"
called codex
quietly codex plugin remove matsu@matsu

# The same format that other clients read; of the three Codex knows it.
mkdir -p "$HOME/portable/.agents/plugins"
cp -r "$PLUGINS/plugins/agent-plugins" "$HOME/portable/matsu"
echo '{"name":"portable","plugins":[{"name":"matsu","source":{"source":"local","path":"./matsu"},"policy":{"installation":"AVAILABLE","authentication":"ON_INSTALL"},"category":"Productivity"}]}' \
  >"$HOME/portable/.agents/plugins/marketplace.json"
quietly codex plugin marketplace add "$HOME/portable"
quietly codex plugin add matsu@portable
quietly codex exec --skip-git-repo-check - <<<"plugin of agent-plugins"
called agent-plugins

echo '{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}},"general":{"enableAutoUpdate":false},"privacy":{"usageStatisticsEnabled":false}}' >"$HOME/.gemini/settings.json"
export GOOGLE_GEMINI_BASE_URL="$url" GEMINI_API_KEY=none
quietly gemini extensions validate "$PLUGINS/plugins/gemini"
quietly gemini extensions install "$PLUGINS/plugins/gemini" --consent <<<y
quietly gemini -m gemini-2.5-pro --yolo <<<"plugin of gemini"
called gemini
