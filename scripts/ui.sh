#!/usr/bin/env bash
# Builds the web page into ui/dist, if its sources differ from what was built last. The binary takes it from there.
#
#   scripts/ui.sh           build if needed
#   scripts/ui.sh --check   say whether what is built is what the sources make; build nothing
set -euo pipefail
cd "$(dirname "$0")/../ui"

sources() { find src public index.html package-lock.json svelte.config.js tsconfig.json vite.config.js -type f | LC_ALL=C sort; }
stamp=$(sources | xargs sha256sum | sha256sum | cut -c1-16)

if [ "$(cat dist/stamp 2>/dev/null || true)" = "$stamp" ]; then exit 0; fi
if [ "${1:-}" = --check ]; then
  echo "ui: the built page is missing or old; run make ui" >&2
  exit 1
fi
../scripts/setup.sh ui
. ../scripts/node.sh
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  echo "ui: installing the page's tools" >&2
  # Not npm ci: it refuses a lock file without the native parts of every other platform.
  npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error >&2
fi
echo "ui: building the page" >&2
npx --no-install vite build --logLevel warn >&2
# Last: a build that broke off has no stamp and is done again.
echo "$stamp" >dist/stamp
