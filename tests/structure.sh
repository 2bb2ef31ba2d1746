#!/usr/bin/env bash
# The arrows of the house: which room may include which. Three ground rooms, sim above them, harness above all.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
forbid() { # folder, pattern of includes that it must not have, why
  local rows
  rows=$(grep -rnE "#include \"$2" "$1" --include='*.c' --include='*.h' || true)
  if [ -n "$rows" ]; then
    echo "$3:"
    echo "$rows"
    bad=1
  fi
}
forbid policies '(models|traces|sim|harness|tests)/' 'a policy reaches beyond its contract'
forbid models '(policies|traces|sim|harness|tests)/' 'a model knows another room'
forbid traces '(policies|models|sim|harness|tests)/' 'a trace reader knows another room'
forbid sim '(harness|tests)/' 'the simulator reaches up'
forbid harness 'tests/' 'the program needs a test'
for room in policies models traces sim harness tests; do
  forbid $room '\.\./' 'an include climbs'
done
rows=$(grep -nE '\b(exit|abort|printf|puts|perror)[[:space:]]*\(' models/*.c traces/*.c policies/*.c sim/*.c || true)
if [ -n "$rows" ]; then
  echo "a library exits or prints:"
  echo "$rows"
  bad=1
fi
[ $bad = 0 ] && echo "structure: the arrows run one way"
exit $bad
