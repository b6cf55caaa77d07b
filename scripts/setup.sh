#!/usr/bin/env bash
# Looks for what a build of Matsu needs and installs only what is missing.
#
#   scripts/setup.sh         what a build needs
#   scripts/setup.sh ui      and what the web page is built with: Node.js 20 or newer
#   scripts/setup.sh browser and a Chromium, for the tests of the page
#   scripts/setup.sh test    and what the tests make certificates with: Python, OpenSSL
#   scripts/setup.sh remote  and what stands in front of a remote server: Caddy, nginx, ssh
#   scripts/setup.sh recording and what the recording is drawn with: Python with venv, fonts
#   scripts/setup.sh desktop and a desktop that shows notices without a screen: dunst, notify-send, Xvfb, a bus
#   scripts/setup.sh dist    and what packs and tests the artefacts: Python with venv and YAML, binutils, man, curl,
#                            Ruby, valgrind
#   scripts/setup.sh bench   and what the release build needs that is measured: Python, valgrind
#   scripts/setup.sh chaos   and what the chaos tests need besides: a clock that can be set for one process
#
# The Rust toolchain is not installed here: rustup reads rust-toolchain.toml.
# The linker needs nothing: on x86_64 Linux the toolchain ships its own lld.
set -euo pipefail

say() { echo "setup: $*" >&2; }

if ! command -v cargo >/dev/null; then
  say "cargo is missing: install Rust with rustup, then run this again"
  exit 1
fi

# install WHAT PACKAGE…: from Debian, if we may.
install() {
  local what=$1
  shift
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    say "$what is missing: install it (Debian: $*), then run this again"
    exit 1
  fi
  say "installing $what"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/dev/null
  apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" >/dev/null
}

# SQLite is compiled from C into the binary.
if ! command -v cc >/dev/null; then install "a C compiler" gcc libc6-dev; fi

if [ "${1:-}" = ui ] || [ "${1:-}" = browser ] || [ "${1:-}" = dist ]; then
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then install Node.js nodejs npm; fi
fi

if [ "${1:-}" = browser ]; then
  if ! command -v chromium >/dev/null; then install Chromium chromium; fi
  if ! compgen -G '/usr/share/fonts/opentype/noto/NotoSansCJK*' >/dev/null; then install "fonts for ja and ko" fonts-noto-cjk; fi
fi

if [ "${1:-}" = test ]; then
  command -v python3 >/dev/null || install Python python3
  command -v openssl >/dev/null || install OpenSSL openssl
fi

if [ "${1:-}" = recording ]; then
  command -v python3 >/dev/null || install Python python3
  python3 -c 'import ensurepip, venv' 2>/dev/null || install "venv for Python" python3-venv
  [ -e /usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf ] || install "a font of one width" fonts-dejavu-core
  [ -e /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc ] || install "fonts for ja and ko" fonts-noto-cjk
fi

if [ "${1:-}" = desktop ]; then
  command -v dbus-run-session >/dev/null || install "a bus" dbus
  command -v dunst >/dev/null || install dunst dunst
  command -v notify-send >/dev/null || install notify-send libnotify-bin
  command -v Xvfb >/dev/null || install Xvfb xvfb
fi

if [ "${1:-}" = dist ] || [ "${1:-}" = bench ]; then
  command -v python3 >/dev/null || install Python python3
  # The linker of release builds looks with it which functions are used (scripts/dist/linker.sh).
  if [ "$(uname -sm)" = "Linux x86_64" ]; then command -v valgrind >/dev/null || install valgrind valgrind; fi
fi

if [ "${1:-}" = dist ]; then
  python3 -c 'import ensurepip, venv' 2>/dev/null || install "venv for Python" python3-venv
  command -v objdump >/dev/null || install "the binary utilities" binutils
  command -v man >/dev/null || install man man-db
  command -v curl >/dev/null || install curl curl ca-certificates
  # Only the check of the Homebrew formula.
  command -v ruby >/dev/null || install Ruby ruby
  # Only the check of the compose file reads YAML. Another Python than the system's may be the first on the PATH.
  if [ "$(uname -s)" = Linux ] && ! python3 -c 'import yaml' 2>/dev/null && ! /usr/bin/python3 -c 'import yaml' 2>/dev/null; then
    install "YAML for Python" python3-yaml
  fi
fi

if [ "${1:-}" = chaos ] && ! compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null; then
  install libfaketime libfaketime
fi

if [ "${1:-}" = remote ]; then
  if ! command -v caddy >/dev/null; then install Caddy caddy; fi
  if ! command -v nginx >/dev/null && [ ! -x /usr/sbin/nginx ]; then install nginx nginx-light; fi
  if ! command -v sshd >/dev/null && [ ! -x /usr/sbin/sshd ]; then install "ssh and its server" openssh-client openssh-server; fi
  if ! command -v openssl >/dev/null; then install OpenSSL openssl; fi
fi
