#!/usr/bin/env bash
# Checks deploy/ as far as this machine can, and says aloud what was not checked.
set -euo pipefail
cd "$(dirname "$0")/.."

not_run() { echo "deploy: NOT RUN: $*"; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The unit starts a program below the user's home; for the check one stands there.
if command -v systemd-analyze >/dev/null; then
  mkdir -p "$scratch/home/.cargo/bin" "$scratch/run"
  printf '#!/bin/sh\n' >"$scratch/home/.cargo/bin/matsu"
  chmod +x "$scratch/home/.cargo/bin/matsu"
  # Only what it says of our file: it also reads, and grumbles about, every other unit of the machine.
  sed "s|%h|$scratch/home|" deploy/matsu.service >"$scratch/matsu.service"
  said=$(XDG_RUNTIME_DIR="$scratch/run" HOME="$scratch/home" systemd-analyze verify --user --man=no "$scratch/matsu.service" 2>&1 | grep -F matsu.service || true)
  [ -z "$said" ] || { echo "$said" >&2; exit 1; }
  echo "deploy: the systemd unit is well formed"
else
  not_run "the systemd unit (systemd-analyze is missing)"
fi

# Every file that the container file copies is there, and builds without a registry of ours.
while read -r source; do
  [ -e "$source" ] || { echo "deploy: Containerfile copies $source, which is not there" >&2; exit 1; }
done < <(sed -n 's/^COPY \([^-][^ ]*\) .*/\1/p' deploy/Containerfile)
echo "deploy: what the container file copies is there"

if docker info >/dev/null 2>&1; then
  docker build --quiet --file deploy/Containerfile --tag matsu:check . >/dev/null
  [ "$(docker run --rm matsu:check --version | cut -d' ' -f1)" = matsu ]
  echo "deploy: the container was built and says its version"
else
  not_run "building the container (no Docker daemon answers)"
fi

if docker compose version >/dev/null 2>&1; then
  docker compose --file deploy/compose.yaml config --quiet
  echo "deploy: Compose accepts the compose file"
else
  not_run "the compose file as Compose reads it (docker compose is missing)"
  # As YAML at least, with its anchors, and with nothing misspelt in what it says of Matsu.
  scripts/setup.sh dist
  python=python3
  "$python" -c 'import yaml' 2>/dev/null || python=/usr/bin/python3
  "$python" - <<'PY'
import yaml
services = yaml.safe_load(open("deploy/compose.yaml"))["services"]
assert set(services) == {"db", "serve", "worker"}, services
keys = {key for service in services.values() for key in service.get("environment", {}) if key.startswith("MATSU_")}
known = open("docs/reference/configuration.md").read()
assert keys and all(f"`{key}`" in known for key in keys), keys
print("deploy: the compose file is YAML, and every setting in it exists")
PY
fi
