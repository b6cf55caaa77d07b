#!/usr/bin/env bash
# Makes docs/agents-tested.md from what `make test-agents` printed:  scripts/agents-report.sh < LOG > docs/agents-tested.md
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

cat <<'HEAD'
# The real command lines, tested

Made by `make test-agents`. The programs are those that their vendors publish on npm, without an account. A scripted
server on loopback answers in place of their models. A Matsu daemon started each program in the same way as `use_agent`.

HEAD
log=$(cat)
printf 'Every row about runs was tried: '
grep -o '^place: [^:]*\|place: [a-z]* as [a-z ]*' <<<"$log" | sed 's/.*place: //' | sort -u | paste -sd, | sed 's/,/, /g; s/$/./'
echo
printf 'Versions: '
sed -n 's/^  \(@\{0,1\}[a-z].*\)@\([0-9][0-9.]*\)$/`\1` \2/p' "$here/agents.sh" | grep -v node-linux | paste -sd, | sed 's/,/, /g; s/$/./'
echo
grep -o 'result: .* | .*' <<<"$log" | sed 's/^result: //' | awk -F ' [|] ' '
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
cat <<'TAIL'

A dash means that the row was not tested with that program:

- **A wait that wakes an idle session** needs a client that knows MCP's native tasks; of the five programs that is Claude Code.
- **Set up by `matsu connect`**: of the five programs, `matsu connect` supports Claude Code, Codex and Gemini CLI.
- **A question** needs a program that reads an answer while it runs. Claude Code reads answers on its standard input; the others never ask in their non-interactive mode.
- **A renewed login**: a proxy on loopback answers in place of the vendors' servers, with a certificate that the program is set to trust. Qwen Code has keys only, which are not renewed: its login with tokens ended with its free tier.
- **Its own sandbox**: of the five programs only Codex has one that is on by default.
- **Answered by wait, and a block**: with `delivery = "wait"` the program of an agent keeps running between two messages. These rows were tested with the two programs that have a hook after every tool call; through this hook a block reaches an agent that does not call Matsu.
TAIL
