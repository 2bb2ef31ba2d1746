#!/usr/bin/env bash
# The arrows of the house: which room may include which. They run downwards only, and every file lies in a room.
#   tests/structure.sh [FOLDER]    the tree to look at (this one)
#   tests/structure.sh --planted   does it find an arrow that should not be there? In a copy of this tree
set -u
self=$(realpath "$0")
if [ "${1-}" = --planted ]; then
  work=$(mktemp -d) || exit 1
  trap 'rm -rf "$work"' EXIT
  cd "$(dirname "$0")/.." && cp -r policies models traces sim harness "$work" || exit 1
  bash "$self" "$work" || exit 1
  while read -r file line; do
    [ -f "$work/$file" ] && cp "$work/$file" "$work/kept" || : >"$work/kept"
    echo "$line" >>"$work/$file"
    if bash "$self" "$work" >/dev/null 2>&1; then
      echo "not found: $line in $file"
      exit 1
    fi
    if [ -s "$work/kept" ]; then mv "$work/kept" "$work/$file"; else rm "$work/$file"; fi
  done <<'EOF'
models/time.c #include "traces/csv.h"
policies/fixed.c #include "sim/run.h"
sim/run.c #include "harness/base/args.h"
harness/base/pool.c #include "harness/study/trial.h"
harness/live/host.c #include "harness/emulate/emulate.h"
harness/report/plot.c #include "harness/cmd/commands.h"
traces/csv.c #include "../models/time.h"
traces/csv.c   # include "models/time.h"
harness/flat.c #include "traces/diag.h"
sim/score.c void f(void) { exit(1); }
EOF
  echo "structure: every planted arrow is found"
  exit 0
fi
cd "${1:-$(dirname "$0")/..}" || exit 1

# A room, and the rooms that its files may include. A room may always include itself.
arrows='
policies             :
models               :
traces               :
sim                  : policies models traces
harness/base         : policies traces
harness/input        : policies models traces sim harness/base
harness/log          : policies models traces sim harness/base
harness/study        : policies models traces sim harness/base harness/input
harness/fit          : policies models traces sim harness/base harness/input
harness/report       : policies models traces sim harness/base harness/study
harness/live/collector :
harness/live/vendor  : policies traces sim harness/base
harness/live         : policies traces sim harness/base harness/log harness/live/vendor harness/live/collector
harness/emulate/client : policies
harness/emulate      : policies models traces sim harness/base harness/input harness/live harness/live/vendor harness/live/collector harness/emulate/client
harness/cmd          : policies models traces sim harness/base harness/input harness/log harness/study harness/fit harness/report harness/live harness/live/vendor harness/live/collector harness/emulate
harness              : harness/base harness/cmd
'

# Rows "file line included-file" of every include between quotes, against the table.
grep -rnE '^[[:space:]]*#[[:space:]]*include "' policies models traces sim harness --include='*.c' --include='*.h' |
  ARROWS="$arrows" awk '
    function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
    BEGIN {
      rows = split(ENVIRON["ARROWS"], row, "\n")
      for (i = 1; i <= rows; i++)
        if (split(row[i], part, ":") == 2) {
          gsub(/ /, "", part[1])
          room[part[1]] = 1
          rooms = split(part[2], to, " ")
          for (k = 1; k <= rooms; k++)
            allowed[part[1], to[k]] = 1
        }
    }
    {
      split($0, at, ":")
      split($0, quoted, "\"")
      from = folder(at[1])
      to_room = folder(quoted[2])
      if (!(from in room) || (from == "harness" && at[1] != "harness/main.c"))
        what = "is in no room"
      else if (quoted[2] ~ /\.\.\// || !(to_room in room))
        what = "includes what is in no room, " quoted[2]
      else if (from != to_room && !((from, to_room) in allowed))
        what = "may not include " quoted[2]
      else
        next
      print at[1] ":" at[2] ": " what
      bad = 1
    }
    END { exit bad }' >/dev/stderr
bad=$?

rows=$(grep -nE '\b(exit|abort|printf|puts|perror)[[:space:]]*\(' models/*.c traces/*.c policies/*.c sim/*.c)
if [ -n "$rows" ]; then
  printf 'a library exits or prints:\n%s\n' "$rows" >&2
  bad=1
fi
[ $bad = 0 ] && echo "structure: the arrows run one way"
exit $bad
