#!/usr/bin/env bash
# Makes all artefacts of this machine's platform in dist/, with sums and a list of what is inside.
#
#   MATSU_BINARY=PATH scripts/dist.sh   pack a binary that was built already, instead of building one
#   MATSU_GLIBC=2.28 scripts/dist.sh    build for that glibc and newer ones, with zig as the linker (from PyPI)
#   MATSU_TARGET=TRIPLE scripts/dist.sh build for that target, which the toolchain must have
#   MATSU_FUNCTIONS=FILE scripts/dist.sh put the functions in the order of that list, as an earlier build left it in dist/
#
# Needs Python 3.11, npm, objdump and, on Linux, dpkg-deb. For other platforms see .github/workflows/release.yml.
set -euo pipefail
ZIG_VERSION=0.15.2
ZIGBUILD_VERSION=0.22.3
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh dist
for program in python3 npm objdump strip git cargo; do
  command -v "$program" >/dev/null || { echo "dist: $program is missing; install it, then run this again" >&2; exit 1; }
done
# The same commit gives the same binary in another folder and for another user: no path of this machine is in it.
cargo_home=$(realpath -m "${CARGO_HOME:-$HOME/.cargo}")
export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$PWD=/matsu"
target=${MATSU_TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
functions=''
if [ -z "${MATSU_BINARY:-}" ]; then
  if [ -n "${MATSU_GLIBC:-}" ]; then
    zig="${CARGO_TARGET_DIR:-target}/dist-zig"
    [ -x "$zig/bin/cargo-zigbuild" ] || {
      python3 -m venv "$zig"
      "$zig/bin/pip" install --disable-pip-version-check --quiet "ziglang==$ZIG_VERSION" "cargo-zigbuild==$ZIGBUILD_VERSION"
    }
    PATH="$(realpath "$zig")/bin:$PATH" cargo zigbuild --release --locked -p matsu --target "$target.$MATSU_GLIBC"
    MATSU_BINARY="${CARGO_TARGET_DIR:-target}/$target/release/matsu"
  elif [ -n "${MATSU_TARGET:-}" ]; then
    cargo build --release --locked -p matsu --target "$target"
    MATSU_BINARY="${CARGO_TARGET_DIR:-target}/$target/release/matsu"
  else
    # Elsewhere the functions stay in the order of the compiler: the linkers there take no list.
    [ "$target" != x86_64-unknown-linux-gnu ] || export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=$PWD/scripts/dist/linker.sh
    # Cargo does not know of the list, and would take a program that is linked already.
    [ -z "${MATSU_FUNCTIONS:-}" ] || cargo clean --quiet --release -p matsu
    cargo build --release --locked -p matsu
    MATSU_BINARY="${CARGO_TARGET_DIR:-target}/release/matsu"
    [ "$target" != x86_64-unknown-linux-gnu ] || functions=${CARGO_TARGET_DIR:-target}/release/functions.txt
  fi
fi
out=${MATSU_DIST:-dist}
rm -rf "$out"
python3 scripts/dist/target.py "$MATSU_BINARY" "$target" "$out"
[ -z "$functions" ] || gzip -nc "$functions" >"$out/functions-$target.txt.gz"
python3 scripts/dist/index.py "$out"
