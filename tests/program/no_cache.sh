#!/usr/bin/env bash
# --no-cache: nothing is written beside a big trace, and what is there is not used; the results are the same.
. "$(dirname "$0")/shell.sh"

mkdir "$dir/in"
t="$dir/in/t.csv"
"$f" synth -o "$t" --kernels 90000 --kinds 8 --seed 3 >/dev/null
here() { ls "$dir/in" | tr '\n' ' '; }
run() { "$f" run "$t" --platform generic --policy utilizscale --json "$@"; }

run --no-cache >"$dir/plain" 2>"$dir/err"
check "run --no-cache runs" grep -q energy_j "$dir/plain"
check "and leaves the folder as it was" [ "$(here)" = "t.csv t.kinds.csv " ]
succeed "compare --no-cache" utilizscale "$f" compare "$t" --platform generic --policy utilizscale --no-cache
check "leaves it so too" [ "$(here)" = "t.csv t.kinds.csv " ]
succeed "show --no-cache" '90000|90,000|90 000' "$f" show "$t" --no-cache
check "and so does it" [ "$(here)" = "t.csv t.kinds.csv " ]
chmod -w "$dir/in"
run --no-cache >"$dir/again" 2>"$dir/err"
check "in a folder that nobody may write to: the same bytes" cmp "$dir/again" "$dir/plain"
chmod +w "$dir/in"
run >"$dir/again" 2>"$dir/err"
check "without it: the same bytes" cmp "$dir/again" "$dir/plain"
check "and a cache is kept" [ "$(here)" = "t.csv t.csv.foldline-cache t.kinds.csv " ]
if strace -V >/dev/null 2>&1; then
  strace -f -o "$dir/calls" "$f" run "$t" --platform generic --policy utilizscale --no-cache >/dev/null 2>&1
  check "what is kept is not even looked at" [ "$(grep -c "csv[.]foldline-" "$dir/calls")" = 0 ]
  strace -f -o "$dir/calls" "$f" run "$t" --platform generic --policy utilizscale >/dev/null 2>&1
  check "and without --no-cache it is" [ "$(grep -c "csv[.]foldline-" "$dir/calls")" -gt 0 ]
fi
cp "$t.foldline-cache" "$dir/kept" # a run without --no-cache may have put the time into it by which the trace is known
chmod 000 "$t.foldline-cache"
run --no-cache >"$dir/again" 2>"$dir/err"
check "beside what is kept: the same bytes" cmp "$dir/again" "$dir/plain"
chmod 600 "$t.foldline-cache"
check "which stays as it is" cmp "$t.foldline-cache" "$dir/kept"
for c in run compare grid show "fit trace"; do
  check "$c --help tells of it" grep -q -- '--no-cache ' <("$f" $c --help all)
done
refuse "it takes no value" 2 'no-cache' "$f" run "$t" --platform generic --policy maxfreq --no-cache=yes
finish
