#!/usr/bin/env bash
# Checks the dependencies against the advisory database.
# Exits 0 if it was read and is silent about us, 1 if it names one of our dependencies, and 3, aloud, if it could
# not be read: "not checked" must never look like "nothing found".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The database is fetched by itself first, so that a failure of the network is not taken for a finding.
if ! output=$(cargo deny --locked fetch db 2>&1); then
  {
    echo "$output"
    echo
    echo "NOT CHECKED: the advisory database could not be reached, so nothing is known about vulnerabilities."
    echo "Run 'make advisories' again from a machine that can reach it."
  } >&2
  exit 3
fi
exec cargo deny --locked check --disable-fetch advisories
