# Every command that README.md shows runs as it is printed, one after the other, in a folder that has what the repository
# ships; and its table is what the program prints. The commands that install, build or test are left out by name.
. "$(dirname "$0")/shell.sh"
command -v gnuplot >/dev/null || { echo "skipped: no gnuplot"; exit 0; }

mkdir -p "$dir/tree/build" "$dir/tree/results" "$dir/tree/harness"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$f" >"$dir/tree/build/foldline"
chmod +x "$dir/tree/build/foldline"
for shipped in models plots policies traces tests harness/experiments; do ln -s "$root/$shipped" "$dir/tree/$shipped"; done
export FOLDLINE_SHARE=$root/models FOLDLINE_STATE=$dir/state FOLDLINE_RUN=$dir/run

# Commands of the page's sh blocks, a line each: those that go on behind a backslash are joined.
mapfile -t commands < <(sed -n '/^```sh$/,/^```$/{/^```/d;p}' "$root/README.md" | sed -e ':a' -e '/\\$/{N;s/\\\n */ /;ba' -e '}')
check "the page has commands" test ${#commands[@]} -ge 8
left_out='^(harness/quickstart[.]sh|tests/run[.]sh|cmake )'
for c in "${commands[@]}"; do
  [[ "$c" =~ $left_out ]] && continue
  if (cd "$dir/tree" && bash -c "set -e; $c") >"$dir/out" 2>"$dir/err" </dev/null; then
    ok "$c"
  else
    bad "$c" "$(tail -c 400 "$dir/err")"
  fi
done

# The first table of the page, line by line.
(cd "$dir/tree" && build/foldline compare harness/experiments/first-light.json) >"$dir/table" 2>"$dir/err"
sed -n '/^```text$/,/^```$/{/^```/d;p}' "$root/README.md" | sed '/^ harness/,$d' | while IFS= read -r line; do
  grep -qxF -- "$line" "$dir/table" || echo "not printed: $line"
done >"$dir/missing"
check "the page's table is what compare prints" test ! -s "$dir/missing"
[ ! -s "$dir/missing" ] || head -n 5 "$dir/missing"
finish
