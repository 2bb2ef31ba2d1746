#!/usr/bin/env bash
# The arrows of the house: which room may include which. They run downwards only, every file lies in a room, and the top
# folder holds nothing but the rooms and the files named here.
#   tests/structure.sh [FOLDER]    the tree to look at (this one)
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1

# A room, and the rooms that its files may include. A room may always include itself.
arrows='
policies                    :
traces/io                   :
harness/base/cli            : policies traces/io
harness/base/work           : harness/base/cli policies traces/io
harness/base/json           : harness/base/cli traces/io
models/math                 :
models/laws                 : models/math
sim/base                    : policies
sim/instance                : policies sim/base traces/io
harness/input/platform      : harness/base/cli harness/base/json models/laws policies sim/instance traces/io
policies/compared           : policies
policies/mfgpoeo            : policies
policies/papers             : policies
policies/server             : policies
policies/tightrope          : policies policies/server
policies/registry           : policies
traces/files                : traces/io
traces/serving              : traces/io
traces/import               : traces/files traces/io traces/serving
traces/profiler             : traces/files traces/import traces/io
traces/open                 : traces/files traces/import traces/io
sim/workload                : models/laws policies sim/base traces/files traces/io
sim/gpu                     : models/laws policies sim/base sim/workload traces/io
sim/advance                 : sim/gpu sim/workload traces/io
sim/serving                 : models/laws sim/base sim/gpu sim/workload traces/io traces/serving
sim/node                    : models/laws policies sim/advance sim/base sim/gpu sim/instance sim/serving traces/io
traces/pipeline             : traces/io
harness/input/policy        : harness/base/cli policies policies/registry sim/base sim/instance sim/node traces/io traces/pipeline
models/fit                  : models/laws models/math
models/chip                 : models/fit models/laws models/math
models/unsound              : models/chip models/math
harness/chip                : harness/base/cli harness/base/json models/chip models/unsound sim/workload traces/files traces/import traces/io traces/open
sim/pipeline                : models/math policies sim/node sim/workload traces/pipeline
sim/synth                   : models/laws models/math policies sim/workload traces/files traces/io traces/serving
harness/input/scene         : harness/base/cli harness/base/json harness/base/work harness/chip harness/input/platform harness/input/policy models/chip models/laws sim/base sim/gpu sim/instance sim/pipeline sim/serving sim/synth sim/workload traces/files traces/import traces/io traces/open traces/pipeline traces/serving
harness/input/experiment    : harness/base/cli harness/base/json harness/input/policy harness/input/scene traces/io
sim/draws                   : sim/base sim/instance sim/node traces/io
sim/oracle                  : sim/base sim/gpu sim/node sim/workload traces/io
harness/study/trial         : harness/base/cli harness/base/json harness/base/work harness/input/experiment harness/input/policy harness/input/scene policies sim/draws sim/node sim/oracle sim/serving traces/io
harness/study/compare       : harness/base/cli harness/base/json harness/base/work harness/input/experiment harness/input/policy harness/input/scene harness/study/trial sim/draws traces/files traces/io
harness/study/grid          : harness/base/cli harness/base/json harness/base/work harness/study/compare harness/study/trial policies traces/io
harness/emulate/client      :
harness/live/collector      :
harness/emulate/driver      : harness/emulate/client harness/input/platform harness/input/scene harness/live/collector policies sim/instance sim/node traces/io
harness/emulate/virtual     : harness/emulate/client harness/emulate/driver
harness/live/vendor         : policies traces/io
harness/live/vendor/nvml    : harness/live/vendor sim/node traces/io
harness/live/vendor/rsmi    : harness/live/vendor sim/instance traces/io
harness/live/vendor/ze      : harness/live/vendor sim/instance traces/io
harness/live/guard          : harness/live/vendor harness/live/vendor/rsmi harness/live/vendor/ze policies sim/instance sim/node traces/io
harness/emulate/session     : harness/emulate/client harness/emulate/driver harness/emulate/virtual harness/live/guard
harness/fit/chip            : harness/base/cli harness/base/json harness/base/work harness/chip harness/input/platform models/chip models/fit policies traces/io traces/open
harness/live/records        : harness/live/collector harness/live/guard policies traces/io
harness/live/server         : harness/live/guard policies traces/io
harness/log                 : harness/base/cli harness/base/json policies sim/instance sim/node sim/serving traces/files traces/io
harness/live/host           : harness/live/guard harness/live/records harness/live/server harness/live/vendor harness/log policies sim/instance sim/node traces/io
harness/cmd/machine         : harness/base/cli harness/base/json harness/emulate/session harness/fit/chip harness/input/experiment harness/input/platform harness/input/policy harness/input/scene harness/live/guard harness/live/host harness/live/server sim/instance traces/files traces/io traces/open traces/profiler
harness/advise              : harness/base/cli harness/base/work harness/chip harness/input/platform harness/input/scene harness/study/compare harness/study/trial sim/oracle traces/files traces/import traces/io
harness/report/data         : harness/base/json harness/base/work harness/study/compare harness/study/trial traces/io
harness/report/picture      : harness/base/cli harness/base/work harness/report/data traces/files traces/io
harness/report/page         : harness/base/cli harness/base/work harness/report/data harness/report/picture traces/files traces/io
harness/plan                : harness/base/cli harness/base/json harness/base/work harness/input/platform harness/input/scene harness/study/trial models/laws models/math policies sim/oracle sim/pipeline traces/io traces/pipeline
harness/serving             : harness/advise harness/base/cli harness/base/json harness/base/work harness/input/platform harness/input/scene harness/plan harness/study/trial models/laws models/math sim/serving sim/synth traces/io traces/serving
harness/cmd/study           : harness/advise harness/base/cli harness/base/json harness/base/work harness/input/experiment harness/input/platform harness/input/policy harness/input/scene harness/log harness/report/data harness/report/page harness/report/picture harness/serving harness/study/compare harness/study/grid harness/study/trial sim/gpu sim/node sim/oracle traces/files traces/import traces/io
harness/fit/policy          : harness/base/cli harness/base/json harness/base/work harness/chip harness/input/experiment harness/input/platform harness/input/scene models/fit models/math policies/compared policies/registry sim/draws sim/gpu sim/node sim/oracle sim/workload traces/files traces/io
harness/fit/trace           : harness/base/cli harness/base/json harness/base/work harness/chip harness/input/platform harness/input/scene models/fit models/laws traces/files traces/import traces/io traces/open
harness/cmd                 : harness/base/cli harness/base/json harness/base/work harness/input/experiment harness/input/platform harness/input/policy harness/input/scene harness/live/guard harness/live/host harness/plan harness/report/picture models/laws policies/registry sim/instance sim/synth traces/files traces/import traces/io traces/open traces/profiler
harness                     : harness/base/cli harness/base/work
harness/emulate/client/time : harness/emulate/client
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

rows=$(grep -nE '\b(exit|abort|printf|puts|perror)[[:space:]]*\(' models/*/*.c traces/*/*.c policies/*.c policies/*/*.c sim/*/*.c)
if [ -n "$rows" ]; then
  printf 'a library exits or prints:\n%s\n' "$rows" >&2
  bad=1
fi
[ $bad = 0 ] && echo "structure: the arrows run one way"
exit $bad
