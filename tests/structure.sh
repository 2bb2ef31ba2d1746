#!/usr/bin/env bash
# The arrows of the house: which room may include which. They run downwards only, every file lies in a room, and the top
# folder holds nothing but the rooms and the files named here.
#   tests/structure.sh [FOLDER]    the tree to look at (this one)
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1

# A room, and the rooms that its files may include. A room may always include itself.
arrows='
policies             :
models               :
traces               :
sim                  : policies models traces
harness/base         : policies traces
harness/chip         : models traces sim harness/base
harness/input        : policies models traces sim harness/base harness/chip
harness/log          : policies traces sim harness/base
harness/study        : policies traces sim harness/base harness/input
harness/fit          : policies models traces sim harness/base harness/input harness/chip
harness/advise       : traces sim harness/base harness/chip harness/input harness/study
harness/report       : traces harness/base harness/study
harness/live/collector :
harness/live/vendor  : policies traces sim
harness/live         : policies traces sim harness/log harness/live/vendor harness/live/collector
harness/emulate/client :
harness/emulate      : policies traces sim harness/input harness/live harness/live/collector harness/emulate/client
harness/cmd          : policies models traces sim harness/base harness/input harness/log harness/study harness/fit harness/advise harness/report harness/live harness/live/vendor harness/emulate
harness              : harness/base harness/cmd
'

# Every file, then every include of a file of the project, in whatever way it is written, against the table.
{
  find . -name 'build*' -prune -o -path ./tests -prune -o -name .git -prune -o -name '*.[ch]' -printf '%P\n'
  grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*("|<(policies|models|traces|sim|harness|tests)/)' \
    policies models traces sim harness --include='*.[ch]'
} | ARROWS="$arrows" awk '
  function folder(path) { return sub(/\/[^\/]*$/, "", path) ? path : "." }
  function wrong(where, what) { print where ": " what; bad = 1 }
  BEGIN {
    rows = split(ENVIRON["ARROWS"], row, "\n")
    for (i = 1; i <= rows; i++)
      if (split(row[i], part, ":") == 2) {
        gsub(/ /, "", part[1])
        room[part[1]] = 1
        rooms = split(part[2], to, " ")
        for (k = 1; k <= rooms; k++)
          allowed[part[1] " -> " to[k]] = 1
      }
  }
  !/:/ {
    if (!(folder($0) in room) || (folder($0) == "harness" && $0 != "harness/main.c"))
      wrong($0, "is in no room")
    next
  }
  {
    split($0, at, ":")
    split($0, quoted, /["<>]/)
    arrow = folder(at[1]) " -> " folder(quoted[2])
    if (quoted[2] ~ /\.\.\// || !(folder(quoted[2]) in room))
      wrong(at[1] ":" at[2], "includes what is in no room, " quoted[2])
    else if (folder(at[1]) != folder(quoted[2]) && !(arrow in allowed))
      wrong(at[1] ":" at[2], "may not include " quoted[2])
    used[arrow] = 1
  }
  END {
    for (arrow in allowed)
      if (!(arrow in used))
        wrong(arrow, "is allowed, but no file needs it")
    exit bad
  }' >&2
bad=$?

# Of a checkout the files that are kept count, so that what a user writes beside them does no harm.
top='.ci .clang-format .gitignore CMakeLists.txt LICENSE README.md harness models plots policies sim tests traces'
kept=$(git ls-files 2>/dev/null | sed 's|/.*||' | sort -u)
for entry in ${kept:-$(ls)}; do
  case " $top " in *" $entry "*) continue ;; esac
  echo "$entry: does not belong into the top folder" >&2
  bad=1
done

rows=$(grep -nE '\b(exit|abort|printf|puts|perror)[[:space:]]*\(' models/*.c traces/*.c policies/*.c sim/*.c)
if [ -n "$rows" ]; then
  printf 'a library exits or prints:\n%s\n' "$rows" >&2
  bad=1
fi
[ $bad = 0 ] && echo "structure: the arrows run one way"
exit $bad
