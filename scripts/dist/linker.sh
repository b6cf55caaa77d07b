#!/usr/bin/env bash
# The linker of release builds: puts the functions that a waiting Matsu uses next to each other (ADR 0079).
#
# The program has tens of thousands of functions, and a daemon that waits uses a few thousand of them. The kernel maps
# code in pieces of 64 KiB, so a daemon whose functions lie scattered holds most of its code in memory.
#
# All but the program `matsu` is linked as ever. It is linked twice: plainly, to see which functions are used, and then
# in their order. The list is left in functions.txt beside the program; with MATSU_FUNCTIONS=FILE that list is used, and
# the same commit gives the same binary again.
set -euo pipefail

cc "$@"
[ "${CARGO_BIN_NAME:-}" = matsu ] || exit 0

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program='' before=''
for argument in "$@"; do
  if [ "$before" = -o ]; then program=$argument; fi
  before=$argument
done
list=$(dirname "$program")/../functions.txt
if [ -n "${MATSU_FUNCTIONS:-}" ]; then
  cp "$MATSU_FUNCTIONS" "$list"
else
  python3 "$here/used_functions.py" "$program" "$list"
fi
cc "$@" "-Wl,--symbol-ordering-file=$list" -Wl,--no-warn-symbol-ordering
