#!/usr/bin/env bash
# Does every row of tests/released.md name a suite, a case of it, and a source that exist? Without a row a section fails.
#   tests/released.sh [PAGE]     the page to look at (tests/released.md)
#   tests/released.sh --planted  does it find a row that names nothing? In a copy
set -u
export LC_ALL=C
self=$(realpath "$0")
cd "$(dirname "$0")/.." || exit 1

if [ "${1-}" = --planted ]; then
  work=$(mktemp) || exit 1
  trap 'rm -f "$work"' EXIT
  while IFS= read -r row; do
    { cat tests/released.md; echo "$row"; } >"$work"
    if bash "$self" "$work" >/dev/null; then
      echo "not found: $row"
      exit 1
    fi
  done <<'END'
| a rule | no_such_suite: probes | policies/fixed.c |
| a rule | foldfit: no such case | policies/fixed.c |
| a rule | foldfit: no solution | policies/no_such.c |
| a rule without its test |
## 9. A section without rows
END
  echo "released: every planted row is found"
  exit 0
fi

awk -F ' *[|] *' '
  function wrong(what) { print FILENAME ":" FNR ": " what; bad = 1 }
  function closed() { if (section != "" && !rows) { print "section without a row: " section; bad = 1 } }
  /^## / { closed(); section = $0; rows = 0; next }
  !/^[|]/ || /^[|]---/ || /^[|] rule / { next }
  {
    rows++
    total++
    if (NF != 5) { wrong("expected | rule | suite: case | file |"); next }
    at = index($3, ": ")
    suite = substr($3, 1, at - 1)
    file = "tests/test_" suite ".c"
    if (!(suite in text)) {
      text[suite] = ""
      while ((getline line < file) > 0) text[suite] = text[suite] line "\n"
      close(file)
    }
    if (!at || text[suite] == "") wrong("no suite \"" suite "\"")
    else if (!index(text[suite], "{\"" substr($3, at + 2) "\",")) wrong("no case \"" substr($3, at + 2) "\" in " file)
    if ($4 != "-" && !($4 in source)) source[$4] = $4 ~ /^[a-z]/ && (getline line < $4) > 0
    if ($4 != "-" && !source[$4]) wrong("no file \"" $4 "\"")
  }
  END { closed(); if (!bad) print "released: " total " rules, each with a case"; exit bad }
' "${1:-tests/released.md}"
