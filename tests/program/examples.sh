# Every command's whole help ends in two examples, and each runs as it is printed, in a folder that has the shipped files.
# The first of each command is run; with FL_EXAMPLES=all (tests/run.sh --nightly) the second too. Of `fit policy draws`, which takes
# a minute under sanitizers, tests/energyucb.sh runs the first.
. "$(dirname "$0")/shell.sh"

FL_EXAMPLES=${FL_EXAMPLES:-}
mkdir -p "$dir/bin" "$dir/tree/harness"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$f" >"$dir/bin/foldline"
chmod +x "$dir/bin/foldline"
ln -s "$root/traces" "$dir/tree/traces"
ln -s "$root/harness/experiments" "$dir/tree/harness/experiments"
export FOLDLINE_STATE=$dir/state FOLDLINE_RUN=$dir/run PATH=$dir/bin:$PATH

examples_of() { COLUMNS=10000 "$f" "$@" --help all | sed -n '/^examples:$/,$s/^  //p'; }
mapfile -t commands < <(all_commands)
for c in "" "${commands[@]}"; do
  # shellcheck disable=SC2086 # two words, of "fit device"
  mapfile -t examples < <(examples_of $c)
  check "'foldline $c' has two examples" test ${#examples[@]} = 2
  name=foldline${c:+ $c}
  for e in "${examples[@]}"; do
    [[ "$e" == *"$name"* || -z "$c" || "$c" == fit || "$c" == "fit policy" || "$c" == list || "$c" == help ]] || bad "an example of $c is none" "$e"
  done
  [ "$c$FL_EXAMPLES" = "fit policy draws" ] && continue
  [ "$c" = plot ] && ! command -v gnuplot >/dev/null && echo "skipped: no gnuplot" && continue
  for e in "${examples[@]:0:$([ "$FL_EXAMPLES" = all ] && echo 2 || echo 1)}"; do
    if (cd "$dir/tree" && bash -c "set -e; $e") >"$dir/out" 2>"$dir/err" </dev/null; then
      ok "$e"
    else
      bad "$e" "$(tail -c 400 "$dir/err")"
    fi
  done
done
finish
