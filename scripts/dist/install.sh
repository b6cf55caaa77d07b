#!/bin/sh
# Installs the program matsu @VERSION@ for one user:  curl -fsSL URL/install.sh | sh
#
#   MATSU_INSTALL_DIR   where the program goes; ~/.local/bin unless set
#   MATSU_DOWNLOADS     another place that has the archives and SHA256SUMS
#   MATSU_SETUP=no      do not ask whether to run `matsu setup`; without a terminal nothing is asked either
#
# The archive is checked against SHA256SUMS before anything is written, and the program is put in place in one step, so
# that an interrupted installation leaves what was there before.
set -eu

version='@VERSION@'
downloads=${MATSU_DOWNLOADS:-'@DOWNLOADS@'}

fail() {
  echo "install: $*" >&2
  exit 1
}

fetch() {
  if command -v curl >/dev/null; then
    curl -fsSL --retry 2 -o "$2" "$1" || fail "cannot download $1; check the network, then run this again"
  elif command -v wget >/dev/null; then
    wget -q -O "$2" "$1" || fail "cannot download $1; check the network, then run this again"
  else
    fail "neither curl nor wget is installed; install one of them, then run this again"
  fi
}

sum() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# The whole script is a function, so that a download that was cut off runs nothing.
main() {
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) target=x86_64-unknown-linux-gnu ;;
    Linux-aarch64 | Linux-arm64) target=aarch64-unknown-linux-gnu ;;
    Darwin-x86_64) target=x86_64-apple-darwin ;;
    Darwin-arm64) target=aarch64-apple-darwin ;;
    *) fail "there is no build for $(uname -s) on $(uname -m); build it from source: docs/install.md" ;;
  esac
  folder=${MATSU_INSTALL_DIR:-${HOME:?install: HOME is not set; set MATSU_INSTALL_DIR}/.local/bin}
  mkdir -p "$folder" 2>/dev/null || fail "cannot create $folder; set MATSU_INSTALL_DIR to a folder that you can write to"
  [ -w "$folder" ] || fail "cannot write to $folder; set MATSU_INSTALL_DIR to a folder that you can write to"

  # Left by an installation that was killed.
  for left in "$folder"/.matsu-new-*; do
    kill -0 "${left##*-}" 2>/dev/null || rm -f "$left"
  done
  scratch=$(mktemp -d)
  new="$folder/.matsu-new-$$"
  trap 'rm -rf "$scratch" "$new"' EXIT
  trap 'exit 130' INT TERM HUP

  archive="matsu-$version-$target"
  fetch "$downloads/SHA256SUMS" "$scratch/SHA256SUMS"
  wanted=$(sed -n "s/^\([0-9a-f]\{64\}\)  $archive\.tar\.gz\$/\1/p" "$scratch/SHA256SUMS")
  [ -n "$wanted" ] || fail "this release has no build for $target; build it from source: docs/install.md"
  fetch "$downloads/$archive.tar.gz" "$scratch/matsu.tar.gz"
  found=$(sum "$scratch/matsu.tar.gz")
  [ "$found" = "$wanted" ] || fail "$archive.tar.gz has the SHA-256 sum $found; SHA256SUMS has $wanted. Nothing was installed"

  tar -xzf "$scratch/matsu.tar.gz" -C "$scratch"
  cp "$scratch/$archive/matsu" "$new"
  chmod 755 "$new"
  "$new" --version >"$scratch/said" 2>&1 || {
    cat "$scratch/said" >&2
    fail "the program does not run here; on Linux it needs the glibc that docs/install.md names. Nothing was installed"
  }
  [ "$(cat "$scratch/said")" = "matsu $version" ] || fail "the program reports '$(cat "$scratch/said")', not version $version. Nothing was installed"
  mv -f "$new" "$folder/matsu"
  # A failure here costs the man page only.
  man=${XDG_DATA_HOME:-${HOME:-/nonexistent}/.local/share}/man/man1
  if mkdir -p "$man" 2>/dev/null && cp "$scratch/$archive/matsu.1" "$man/" 2>/dev/null; then :; else echo "install: the man page was left out; cannot write to $man"; fi

  echo "install: matsu $version is in $folder"
  case ":$PATH:" in
    *":$folder:"*) echo "install: next: matsu setup" ;;
    *) echo "install: $folder is not on the PATH; add it, then run: matsu setup" ;;
  esac
  offer_setup
}

# The script itself may come through stdin, so a person is asked on the terminal.
offer_setup() {
  if [ "${MATSU_SETUP:-}" = no ] || ! [ -t 1 ] || ! (: </dev/tty) 2>/dev/null; then return; fi
  printf 'install: connect your AI clients now? Every file is shown before it is written. [Y/n] '
  read -r answer </dev/tty || return 0
  case $answer in
    "" | [Yy] | [Yy][Ee][Ss]) "$folder/matsu" setup </dev/tty || echo "install: setup was not finished; run it again: matsu setup" ;;
    *) ;;
  esac
}

main
