#!/usr/bin/env bash
# Makes docs/agents-tested.md from what `make test-agents` printed:  scripts/agents-report.sh < LOG > docs/agents-tested.md
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

cat <<'HEAD'
# The real command lines, tested

Made by `make test-agents`. The programs are those their vendors publish on npm, none of them with an account; their
models are played by the test kit's scripted server on loopback. Each was run by a Matsu daemon as `use_agent` runs it.

HEAD
printf 'Versions: '
sed -n 's/^  \(@\{0,1\}[a-z].*\)@\([0-9][0-9.]*\)$/`\1` \2/p' "$here/agents.sh" | grep -v node-linux | paste -sd, | sed 's/,/, /g; s/$/./'
echo
grep -o 'result: .*' | sed 's/^result: //' | awk -F ' [|] ' '
  { if (!($1 in seen)) { seen[$1] = 1; rows[++n] = $1 } if (!($2 in who)) { who[$2] = 1; columns[++m] = $2 } cell[$1, $2] = $3 }
  END {
    line = "| |"; rule = "|---|"
    for (c = 1; c <= m; c++) { line = line " " columns[c] " |"; rule = rule "---|" }
    print line; print rule
    for (r = 1; r <= n; r++) {
      line = "| " rows[r] " |"
      for (c = 1; c <= m; c++) line = line " " ((rows[r], columns[c]) in cell ? cell[rows[r], columns[c]] : "–") " |"
      print line
    }
  }'
