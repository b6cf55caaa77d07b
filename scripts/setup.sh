#!/usr/bin/env bash
# Looks for what a build of Matsu needs and installs only what is missing.
# The Rust toolchain is not installed here: rustup reads rust-toolchain.toml.
# The linker needs nothing: on x86_64 Linux the toolchain ships its own lld.
set -euo pipefail

say() { echo "setup: $*" >&2; }

if ! command -v cargo >/dev/null; then
  say "cargo is missing: install Rust with rustup, then run this again"
  exit 1
fi

# SQLite is compiled from C into the binary.
if ! command -v cc >/dev/null; then
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    say "a C compiler is missing: install one (Debian: gcc and libc6-dev), then run this again"
    exit 1
  fi
  say "installing a C compiler"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/dev/null
  apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null
fi
