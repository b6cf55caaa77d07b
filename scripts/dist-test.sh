#!/usr/bin/env bash
# Installs every artefact of dist/ as its users do, each in a folder of its own, and says aloud what could not be tried.
#
#   scripts/dist-test.sh [ROW…]                       all rows unless some are named; the function row_NAME is one
#   MATSU_DIST_STRICT=1 scripts/dist-test.sh [ROW…]   fails at the end if something was not run, except what needs a
#                                                     container service (image) or a published release (formula)
#
# Nothing is published and no account is used. Registries and file servers are on loopback.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
here=$PWD
scripts/setup.sh dist
dist=$(realpath "${MATSU_DIST:-dist}")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
target=$(rustc -vV | sed -n 's/^host: //p')
archive="matsu-$version-$target"
tools=$(scripts/dist/tools.sh)
npm_name=$(python3 -c 'import json; print(json.load(open("release.json"))["npm"])')
pypi_name=$(python3 -c 'import json; print(json.load(open("release.json"))["pypi"])')
# Not below /tmp: some clients refuse a home there.
scratch=$(mktemp -d "$here/target/dist-test.XXXXXX")
own_home=$HOME
# For files that another user reads.
bare=$(mktemp -d)
homes=()
left_out=()
row=
started=()

ok() { echo "dist-test: ok: $*"; }
not_run() {
  echo "dist-test: NOT RUN: $*"
  case $row in image | formula) ;; *) left_out+=("$*") ;; esac
}

finish() {
  local home pid
  # Every installed relay has started a daemon that outlives it.
  for home in "${homes[@]}"; do
    [ ! -d "$home/.local/share/matsu" ] ||
      "$scratch/$archive/matsu" --data-dir "$home/.local/share/matsu" shutdown >/dev/null || echo "dist-test: a daemon in $home could not be ended" >&2
  done
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$scratch" "$bare"
}
trap finish EXIT

# home NAME: a home of its own, with nothing of this machine's settings.
home() {
  mkdir -p "$scratch/$1"
  homes+=("$scratch/$1")
  export HOME="$scratch/$1" XDG_DATA_HOME="$scratch/$1/.local/share" XDG_CONFIG_HOME="$scratch/$1/.config" XDG_CACHE_HOME="$scratch/$1/.cache"
}

# count FOLDER TEST…: how many files find(1) finds. To be compared as a number: the wc of macOS puts spaces before it.
count() { find "$@" | wc -l; }

# The person's own Rust, whatever home a row has set.
own_rust() { CARGO_HOME=${CARGO_HOME:-$own_home/.cargo} RUSTUP_HOME=${RUSTUP_HOME:-$own_home/.rustup} "$@"; }

handshake() { python3 "$here/scripts/dist/handshake.py" "$version" "$@"; }

# serve_files FOLDER: a file server on loopback; its address is in $address.
serve_files() {
  local log
  log=$(mktemp "$scratch/server.XXXXXX")
  PYTHONUNBUFFERED=1 python3 -m http.server --bind 127.0.0.1 --directory "$1" 0 >"$log" 2>&1 &
  started+=("$!")
  until grep -q 'port [0-9]' "$log"; do kill -0 "$!" || { cat "$log" >&2; exit 1; }; sleep 0.05; done
  address="http://127.0.0.1:$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$log")"
}

row_archive() {
  (cd "$dist" && sha256sum --quiet --check SHA256SUMS)
  local root="$scratch/root" library
  mkdir -p "$root"/{bin,data,tmp,proc}
  cp "$scratch/$archive/matsu" "$root/bin/"
  # The C library and its loader, and nothing else of this system.
  for library in $(ldd "$scratch/$archive/matsu" | grep -o '/[^ ]*'); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
  if [ "$(id -u)" = 0 ] || unshare -r true 2>/dev/null; then
    local enter=(chroot "$root")
    [ "$(id -u)" = 0 ] || enter=(unshare -r chroot "$root")
    [ "$("${enter[@]}" /bin/matsu --version)" = "matsu $version" ]
    # Without a daemon, because in this root there is nothing that could end one.
    HOME=/data MATSU_DATA_DIR=/data handshake "${enter[@]}" /bin/matsu mcp --no-daemon
    ok "$archive.tar.gz runs in a root with $(find "$root" -name '*.so*' | wc -l) libraries and nothing else, not even certificates"
  else
    not_run "the archive in a root of its own (chroot is not allowed here)"
  fi
  man --warnings -l "$scratch/$archive/matsu.1" 2>"$scratch/man.log" >/dev/null || { cat "$scratch/man.log" >&2; exit 1; }
  [ ! -s "$scratch/man.log" ] || { cat "$scratch/man.log" >&2; exit 1; }
  bash -n "$scratch/$archive/completions/matsu.bash"
  "$tools/venv/bin/python" - "$dist/$archive.cdx.json" <<'PY'
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
assert error is None, error
PY
  ok "sums, man page, completions and SBOM are well formed"
}

row_again() {
  MATSU_BINARY="$scratch/$archive/matsu" MATSU_DIST="$scratch/again" scripts/dist.sh >/dev/null
  # A release of all platforms has more in it than this machine can make again.
  diff <(grep -F -f <(cut -d' ' -f3 "$scratch/again/SHA256SUMS") "$dist/SHA256SUMS") "$scratch/again/SHA256SUMS"
  ok "packed again, $(wc -l <"$scratch/again/SHA256SUMS") files are the same byte for byte"
}

row_npm() {
  home npm
  cat >"$scratch/verdaccio.yaml" <<YAML
storage: $scratch/registry
uplinks: {}
packages: { "**": { access: \$all, publish: \$anonymous } }
log: { type: stdout, format: pretty, level: warn }
max_body_size: 500mb
YAML
  local port registry file
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  registry="http://127.0.0.1:$port/"
  "$tools/bin/node" "$tools/node_modules/.bin/verdaccio" --config "$scratch/verdaccio.yaml" --listen "127.0.0.1:$port" >"$scratch/verdaccio.log" 2>&1 &
  started+=("$!")
  until curl -fs -o /dev/null "$registry-/ping"; do kill -0 "$!" || { cat "$scratch/verdaccio.log" >&2; exit 1; }; sleep 0.1; done
  printf 'registry=%s\n//127.0.0.1:%s/:_authToken=none\nupdate-notifier=false\n' "$registry" "$port" >"$HOME/.npmrc"
  export NPM_CONFIG_USERCONFIG="$HOME/.npmrc" npm_config_cache="$HOME/.npm"
  for file in "$dist"/*.tgz; do npm publish --silent "$file" >/dev/null; done
  mkdir -p "$HOME/work"
  (cd "$HOME/work" && handshake npx -y "$npm_name" mcp)
  # Nothing of ours runs while it is installed.
  [ "$(npm view --json "$npm_name" scripts)" = "" ]
  [ "$(npm view "$npm_name" mcpName)" = "$(python3 -c 'import json; print(json.load(open("release.json"))["mcp"])')" ]
  (cd "$HOME/work" && npm install --silent --omit=optional "$npm_name" >/dev/null && rm -rf "node_modules/$npm_name-linux-x64")
  if (cd "$HOME/work" && npx --no-install matsu --version) 2>"$HOME/said"; then echo "npm: it started without its platform package" >&2; exit 1; fi
  grep -q 'is missing. Install again' "$HOME/said"
  ok "npx -y $npm_name mcp from a local registry; without its platform package it says what to do"
}

row_wheel() {
  home wheel
  local wheel
  wheel=$(echo "$dist"/*.whl)
  python3 -m venv "$HOME/venv"
  "$HOME/venv/bin/pip" install --disable-pip-version-check --quiet --no-index "$wheel"
  [ "$("$HOME/venv/bin/matsu" --version)" = "matsu $version" ]
  [ "$("$HOME/venv/bin/$pypi_name" --version)" = "matsu $version" ]
  "$HOME/venv/bin/pip" uninstall --quiet --yes "$pypi_name"
  [ ! -e "$HOME/venv/bin/matsu" ]
  handshake "$tools/venv/bin/uvx" --offline --from "$wheel" matsu mcp
  ok "pip installs and removes the wheel; uvx --from starts it"
}

row_deb() {
  home deb
  command -v dpkg >/dev/null || { not_run "the Debian package (dpkg is missing)"; return; }
  [ "$(id -u)" = 0 ] || { not_run "the Debian package (dpkg needs root)"; return; }
  local root="$scratch/debian" deb
  deb=$(echo "$dist"/*.deb)
  mkdir -p "$root/var/lib/dpkg"/{info,updates}
  touch "$root/var/lib/dpkg/"{status,available}
  # The root has no libc of its own, so its dependencies are only compared with this machine's.
  dpkg --root="$root" --force-not-root --force-depends --log="$scratch/dpkg.log" -i "$deb" >"$scratch/dpkg.out" 2>&1 || { cat "$scratch/dpkg.out" >&2; exit 1; }
  [ "$("$root/usr/bin/matsu" --version)" = "matsu $version" ]
  grep -qx 'ExecStart=/usr/bin/matsu serve' "$root/usr/lib/systemd/user/matsu.service"
  [ "$(count "$root/usr" -type f -perm /022)" -eq 0 ]
  local needed
  needed=$(dpkg-deb -f "$deb" Depends | sed -n 's/.*libc6 (>= \([0-9.]*\)).*/\1/p')
  dpkg --compare-versions "$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)" ge "$needed"
  if command -v systemd-analyze >/dev/null; then
    sed "s|/usr/bin/matsu|$root/usr/bin/matsu|" "$root/usr/lib/systemd/user/matsu.service" >"$scratch/matsu.service"
    local said
    said=$(XDG_RUNTIME_DIR="$scratch" systemd-analyze verify --user --man=no "$scratch/matsu.service" 2>&1 | grep -F matsu.service || true)
    [ -z "$said" ] || { echo "$said" >&2; exit 1; }
  else
    not_run "the unit of the Debian package (systemd-analyze is missing)"
  fi
  dpkg --root="$root" --force-not-root --log="$scratch/dpkg.log" -r matsu >/dev/null
  [ ! -e "$root/usr/bin/matsu" ]
  ok "dpkg installs and removes the package in a root of its own; it needs glibc $needed"
}

row_bundle() {
  home bundle
  local bundle
  bundle=$(echo "$dist"/*.mcpb)
  python3 -m zipfile -e "$bundle" "$HOME/bundle"
  "$tools/node_modules/.bin/mcpb" validate "$HOME/bundle/manifest.json" >"$HOME/said" || { cat "$HOME/said" >&2; exit 1; }
  # Python's unpacker drops modes; clients keep them.
  python3 - "$bundle" <<'PY'
import sys, zipfile
mode = zipfile.ZipFile(sys.argv[1]).getinfo("server/matsu").external_attr >> 16
assert mode & 0o111, oct(mode)
PY
  chmod +x "$HOME/bundle/server/matsu"
  mapfile -t command < <(python3 - "$HOME/bundle" <<'PY'
import json, sys
config = json.load(open(f"{sys.argv[1]}/manifest.json"))["server"]["mcp_config"]
for word in [config["command"], *config["args"]]:
    print(word.replace("${__dirname}", sys.argv[1]))
PY
)
  handshake "${command[@]}"
  mkdir -p "$HOME/registry"
  cp "$dist/server.json" "$HOME/registry/"
  "$tools/venv/bin/skillsaw" lint "$HOME/registry" >"$HOME/said" 2>&1 || { cat "$HOME/said" >&2; exit 1; }
  python3 - "$dist" <<'PY'
import hashlib, json, pathlib, sys
dist = pathlib.Path(sys.argv[1])
for package in json.loads((dist / "server.json").read_text())["packages"]:
    if package["registryType"] == "mcpb":
        data = (dist / package["identifier"].rsplit("/", 1)[1]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == package["fileSha256"], package
PY
  ok "the bundle is valid, unpacks and starts; server.json fits the registry's schema and names its sum"
}

row_installer() {
  home installer
  serve_files "$dist"
  MATSU_DOWNLOADS="$address" sh "$dist/install.sh" >"$HOME/said"
  handshake "$HOME/.local/bin/matsu" mcp
  grep -q 'is not on the PATH' "$HOME/said"
  # A second time, over the first; then what can go wrong. What was installed stays as it was.
  MATSU_DOWNLOADS="$address" sh "$dist/install.sh" >/dev/null
  local before broken="$scratch/broken"
  before=$(sha256sum "$HOME/.local/bin/matsu")
  mkdir "$broken"
  cp "$dist/SHA256SUMS" "$broken/"
  head -c 1000 "$dist/$archive.tar.gz" >"$broken/$archive.tar.gz"
  serve_files "$broken"
  refused 'has the SHA-256 sum' env MATSU_DOWNLOADS="$address" sh "$dist/install.sh"
  refused 'cannot download' env MATSU_DOWNLOADS="$address/none" sh "$dist/install.sh"
  refused 'set MATSU_INSTALL_DIR' env MATSU_INSTALL_DIR=/proc/none sh "$dist/install.sh"
  [ "$(sha256sum "$HOME/.local/bin/matsu")" = "$before" ]
  [ "$(count "$HOME/.local/bin" -mindepth 1)" -eq 1 ]
  ok "the installer installs from a file server, and leaves what was there if the archive is cut off or missing"
  if ! script -qec true /dev/null >/dev/null 2>&1; then not_run "the installer on a terminal ('script' is missing)"; return; fi
  echo '{}' >"$HOME/.claude.json"
  serve_files "$dist"
  # On a terminal it asks: no, then yes. Then setup asks: no client, and the other questions by their defaults.
  echo n | MATSU_DOWNLOADS="$address" script -qec "sh '$dist/install.sh'" /dev/null >"$HOME/said"
  if ! grep -q 'connect your AI clients now' "$HOME/said" || grep -q 'AI clients found' "$HOME/said"; then cat "$HOME/said" >&2; exit 1; fi
  printf 'y\nn\n\n\n' | env -u XDG_RUNTIME_DIR -u DBUS_SESSION_BUS_ADDRESS PATH=/usr/bin:/bin MATSU_DOWNLOADS="$address" \
    script -qec "sh '$dist/install.sh'" /dev/null >"$HOME/said"
  grep -q 'AI clients found: Claude Code' "$HOME/said" || { cat "$HOME/said" >&2; exit 1; }
  [ "$(cat "$HOME/.claude.json")" = '{}' ]
  ok "on a terminal the installer offers setup, and setup asks there"
}

# without_rights COMMAND…: as a user who may install nothing.
without_rights() {
  if [ "$(id -u)" = 0 ]; then setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; else "$@"; fi
}

# What a bare machine lacks: Node.js, a C compiler, the network once the program is there, time to end an installation.
row_bare() {
  home bare
  local few="$bare/bin" network=(unshare -n)
  mkdir -m 755 "$few"
  ln -s "$(command -v id)" "$few/id"
  printf '#!/bin/sh\n' | tee "$few/cargo" >"$few/cc"
  chmod 755 "$bare" "$few"/c*
  refused 'Node.js is missing: install it (Debian: nodejs npm), then run this again' \
    without_rights env -i PATH="$few" "$BASH" -s ui <scripts/setup.sh
  rm "$few/cc"
  refused 'a C compiler is missing: install it (Debian: gcc libc6-dev), then run this again' \
    without_rights env -i PATH="$few" "$BASH" -s <scripts/setup.sh
  rm "$few/cargo"
  refused 'cargo is missing: install Rust with rustup, then run this again' without_rights env -i PATH="$few" "$BASH" -s <scripts/setup.sh
  ok "without Node.js, a C compiler or Rust, setup.sh says what to install"

  serve_files "$dist"
  MATSU_DOWNLOADS="$address" sh "$dist/install.sh" >/dev/null
  [ "$(id -u)" = 0 ] || network=(unshare -r -n)
  if "${network[@]}" true 2>/dev/null; then
    "${network[@]}" "$HOME/.local/bin/matsu" demo >"$HOME/said" 2>&1 || { cat "$HOME/said" >&2; exit 1; }
    ok "the installed program runs its demonstration without a network"
  else
    not_run "the program without a network (unshare is not allowed here)"
  fi

  # Killed right before the new program is put in place.
  local before slow="$scratch/slow" installer
  before=$(sha256sum "$HOME/.local/bin/matsu")
  mkdir "$slow"
  printf '#!/bin/sh\n: >"%s/reached"\nexec sleep 60\n' "$slow" >"$slow/mv"
  chmod +x "$slow/mv"
  PATH="$slow:$PATH" MATSU_DOWNLOADS="$address" setsid sh "$dist/install.sh" >/dev/null 2>&1 &
  installer=$!
  timeout 60 sh -c 'until [ -e "$0/reached" ]; do sleep 0.1; done' "$slow"
  kill -KILL -- "-$installer"
  wait "$installer" 2>/dev/null || true
  [ "$(sha256sum "$HOME/.local/bin/matsu")" = "$before" ]
  "$HOME/.local/bin/matsu" --version >/dev/null
  [ "$(count "$HOME/.local/bin" -name '.matsu-new-*')" -eq 1 ]
  MATSU_DOWNLOADS="$address" sh "$dist/install.sh" >/dev/null
  [ "$(count "$HOME/.local/bin" -mindepth 1)" -eq 1 ]
  ok "an installation that is killed leaves the old program, and the next one clears what it left"
}

# refused TEXT COMMAND…: the command fails and says TEXT.
refused() {
  local text=$1
  shift
  if "$@" >"$scratch/refused" 2>&1; then echo "dist-test: this should have failed: $*" >&2; exit 1; fi
  grep -q -- "$text" "$scratch/refused" || { cat "$scratch/refused" >&2; exit 1; }
}

row_formula() {
  if command -v ruby >/dev/null; then
    ruby -c "$dist/matsu.rb" >/dev/null
    ok "the Homebrew formula is Ruby"
  else
    not_run "the syntax of the Homebrew formula (ruby is missing)"
  fi
  grep -qF "$(sha256sum "$dist/$archive.tar.gz" | cut -d' ' -f1)" "$dist/matsu.rb"
  python3 - "$dist/$archive.tar.gz" "$target" "$version" <<'PY'
import json, pathlib, sys, tarfile, tomllib
archive, target, version = sys.argv[1:]
binstall = tomllib.loads(pathlib.Path("crates/matsu/Cargo.toml").read_text())["package"]["metadata"]["binstall"]
fill = lambda text: text.replace("{ version }", version).replace("{ target }", target).replace("{ bin }", "matsu").replace("{ binary-ext }", "")
repository = json.load(open("release.json"))["repository"]
assert fill(binstall["pkg-url"]) == f"{repository}/releases/download/v{version}/{pathlib.Path(archive).name}", binstall
assert fill(binstall["bin-dir"]) in tarfile.open(archive).getnames(), binstall
PY
  not_run "brew install and cargo binstall (the release they download from does not exist yet)"
  ok "formula and binstall metadata name the archive and its sum"
}

row_plugins() {
  if [ ! -x "${MATSU_TEST_AGENTS:-$here/target/agents/node_modules/.bin}/claude" ]; then
    not_run "the plugins in the real clients (set MATSU_TEST_AGENTS to the folder that scripts/agents.sh prints)"
    return
  fi
  tar -xzf "$dist/matsu-$version-plugins.tar.gz" -C "$scratch"
  SCRATCH="$scratch" PLUGINS="$scratch/matsu-$version-plugins" MATSU="$scratch/$archive/matsu" \
    CLIENTS="${MATSU_TEST_AGENTS:-$here/target/agents/node_modules/.bin}" own_rust scripts/dist/plugins-test.sh
  home agent-plugins
  "$tools/venv/bin/skillsaw" lint "$scratch/matsu-$version-plugins/plugins/agent-plugins" >"$scratch/said" 2>&1 || { cat "$scratch/said" >&2; exit 1; }
  ok "the Agent Plugins package fits its schemas"
}

# What Claude Code starts in an interactive session: it prints a line when work has ended, and no second one for it.
row_monitor() {
  home monitor
  mkdir -p "$HOME/bin" "$HOME/work" "$XDG_CONFIG_HOME/matsu/agents"
  ln -s "$scratch/$archive/matsu" "$HOME/bin/matsu"
  printf '#!/bin/sh\ncat >/dev/null\necho finished\n' >"$HOME/bin/quick"
  chmod +x "$HOME/bin/quick"
  printf 'name = "quick"\ncommand = "%s/bin/quick"\nprompt = "stdin"\noutput = "text"\n' "$HOME" >"$XDG_CONFIG_HOME/matsu/agents/quick.toml"
  export PATH="$HOME/bin:$PATH"
  (cd "$HOME/work" && matsu call use_agent '{"cli_name": "quick", "message": "go", "run_async": true}') >"$HOME/said" 2>&1 || { cat "$HOME/said" >&2; exit 1; }
  sh plugins/claude/monitors/news.sh >"$HOME/news" 2>&1 &
  local monitor=$!
  started+=("$monitor")
  timeout 60 sh -c 'until [ -s "$0" ]; do sleep 0.2; done' "$HOME/news" || { echo "dist-test: the monitor printed nothing" >&2; exit 1; }
  grep -q '^task_[a-z0-9]* completed: .*\. Read it with get_task_status or: matsu result task_' "$HOME/news" || { cat "$HOME/news" >&2; exit 1; }
  # A second line for the same end would come within seconds.
  sleep 10
  kill "$monitor"
  [ "$(wc -l <"$HOME/news")" -eq 1 ] || { cat "$HOME/news" >&2; exit 1; }
  ok "the monitor of the Claude Code plugin prints one line for work that has ended"
}

# A clone with all that a release needs is publishable; with one fault it is not, and the fault is named.
row_release() {
  local clone="$scratch/clone"
  # Cargo keeps its crates where they are.
  export CARGO_HOME=${CARGO_HOME:-$own_home/.cargo} RUSTUP_HOME=${RUSTUP_HOME:-$own_home/.rustup} CARGO_TARGET_DIR=$scratch/clone-target
  home release
  git clone --quiet "$here" "$clone"
  (
    cd "$clone"
    git config user.name dist-test
    git config user.email dist-test@example.org
    sed -i "s/EXAMPLE-OWNER/some-owner/g" release.json crates/matsu/Cargo.toml
    sed -i 's/"names_registered": false/"names_registered": true/' release.json
    sed -i "s/^## \\[Unreleased\\]$/&\n\n## [$version] - 2026-01-01/" CHANGELOG.md
    cargo run --quiet --locked -p xtask -- plugins >/dev/null
    git add --all
    git commit --quiet --message 'a release'
    git tag ready
    export MATSU_DIST=dist
    # Written by the build of the page, and not in the repository.
    cp "$here/ui/bundled.json" ui/
    MATSU_BINARY="$scratch/$archive/matsu" scripts/dist.sh >/dev/null
    scripts/release-check.sh --tag "v$version" >"$scratch/said" 2>&1 || { cat "$scratch/said" >&2; exit 1; }
    grep -q "version $version can be published" "$scratch/said"
    # What the page of the release says is this version's section alone.
    python3 scripts/dist/notes.py >"$scratch/notes"
    grep -q '^- ' "$scratch/notes"
    if grep -q -e '^## ' -e '^# ' "$scratch/notes"; then echo "dist-test: the notes of the release have more than one section" >&2; exit 1; fi

    refused 'the tag is v9.9.9' scripts/release-check.sh --tag v9.9.9
    fault 'names the placeholder EXAMPLE-OWNER' sed -i 's/some-owner/EXAMPLE-OWNER/' release.json
    fault 'names on npm and PyPI are not registered' sed -i 's/"names_registered": true/"names_registered": false/' release.json
    fault 'CHANGELOG.md has no section' sed -i "s/^## \\[$version\\].*//" CHANGELOG.md
    fault 'there are changes that are not committed' sed -i '1s/^/x/' README.md
    fault 'names another npm package' sed -i 's/--global @matsu/--global @other/' crates/matsu/src/commands/installed.rs
    fault 'not those that xtask generates' bash -c 'sed -i s/1/2/ plugins/gemini/gemini-extension.json && git commit --quiet --all --message other'
    fault 'is not below' sed -i 's/some-owner/other-owner/' crates/matsu/Cargo.toml
    fault 'has another sum than SHA256SUMS' bash -c 'echo >>dist/server.json'
    fault 'has no archive of the program' bash -c 'rm dist/matsu-*-linux-gnu.tar.gz && sed -i "/linux-gnu.tar.gz/d" dist/SHA256SUMS'
    fault "has no $archive.cdx.json" bash -c 'rm dist/*.cdx.json && sed -i "/cdx.json/d" dist/SHA256SUMS'
    fault 'has no .whl' bash -c 'rm dist/*.whl && sed -i "/whl/d" dist/SHA256SUMS'
    fault 'is not the file of the repository' bash -c '
      mkdir -p "$0/plugins" && tar -xzf dist/*-plugins.tar.gz -C "$0/plugins" && echo >>"$0"/plugins/*/plugins/gemini/GEMINI.md
      tar -czf dist/*-plugins.tar.gz -C "$0/plugins" "$(ls "$0/plugins")"' "$HOME"
    git commit --quiet --allow-empty --message another
    refused 'was made of another commit' scripts/release-check.sh
  )
  ok "release-check passes a tree that is ready, and names each of its faults"
}

# fault TEXT COMMAND…: after this change release-check fails and says TEXT; then the change is taken back.
fault() {
  local text=$1
  shift
  cp -a dist "$HOME/dist"
  "$@"
  refused "$text" scripts/release-check.sh
  git reset --quiet --hard ready
  rm -rf dist
  mv "$HOME/dist" dist
}

row_image() {
  scripts/deploy.sh
}

row_static() {
  local scripts=(scripts/dist.sh scripts/dist-test.sh scripts/release-check.sh scripts/dist/*.sh plugins/source/news.sh "$dist/install.sh")
  "$tools/venv/bin/shellcheck" --severity=warning "${scripts[@]}"
  "$tools/venv/bin/zizmor" --offline --quiet --min-severity=low .github/workflows
  "$tools/venv/bin/check-jsonschema" --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
  ok "scripts pass shellcheck, workflows pass zizmor and their schema"
}

[ -e "$dist/$archive.tar.gz" ] || { echo "dist-test: $dist/$archive.tar.gz is missing; run 'make dist' first" >&2; exit 1; }
tar -xzf "$dist/$archive.tar.gz" -C "$scratch"
rows=("$@")
[ $# -gt 0 ] || rows=(archive again npm wheel deb bundle installer bare formula plugins monitor release image static)
for row in "${rows[@]}"; do
  declare -F "row_$row" >/dev/null || { echo "dist-test: there is no row '$row'; the rows are in the head of this script" >&2; exit 2; }
  "row_$row"
done
if [ "${MATSU_DIST_STRICT:-}" = 1 ] && [ ${#left_out[@]} -gt 0 ]; then
  echo "dist-test: not everything was run, and MATSU_DIST_STRICT=1 asks for that; install what is missing, then run it again:" >&2
  printf '  %s\n' "${left_out[@]}" >&2
  exit 1
fi
