# Every command of the manual's pages runs as it is printed, page by page in order, each page in a folder that has what the
# repository ships; and the page's blocks of text are lines that its commands print. Nightly. What needs hardware, rights or
# another machine is left out by the list below.
. "$(dirname "$0")/shell.sh"
command -v gnuplot >/dev/null || { echo "skipped: no gnuplot"; exit 0; }

export FOLDLINE_SHARE=$root/models FOLDLINE_STATE=$dir/state FOLDLINE_RUN=$dir/run
left_out='^(foldline tune |sudo |ssh |foldline live |build/foldline live |python)' # a GPU, the right to set it, another machine
for page in ${FL_PAGES:-"$root"/harness/manual/*.md}; do
  name=$(basename "$page" .md)
  tree=$dir/$name
  mkdir -p "$tree/build" "$tree/results" "$tree/harness"
  for program in foldline; do
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$f" >"$tree/build/$program"
    chmod +x "$tree/build/$program"
  done
  ln -s "$(dirname "$f")/tests" "$tree/build/tests"
  for shipped in models plots policies traces tests harness/experiments; do ln -s "$root/$shipped" "$tree/$shipped"; done
  : >"$dir/printed"
  mapfile -t commands < <(sed -n '/^```sh$/,/^```$/{/^```/d;p}' "$page" | sed -e ':a' -e '/\\$/{N;s/\\\n */ /;ba' -e '}')
  for c in "${commands[@]}"; do
    [[ -z "$c" || "$c" =~ $left_out ]] && continue
    if (cd "$tree" && PATH=$tree/build:$PATH timeout 900 bash -c "set -e; $c") >"$dir/out" 2>"$dir/err" </dev/null; then
      ok "$name: $c"
    else
      bad "$name: $c" "$(tail -c 300 "$dir/err")"
    fi
    sed 's/ *$//' "$dir/out" >>"$dir/printed"
  done
  sed -n '/^```text$/,/^```$/{/^```/d;/./p}' "$page" | grep -vxFf "$dir/printed" >"$dir/stale"
  check "$name: its commands print what it shows$(sed 's/^/\n    not printed: /' "$dir/stale")" test ! -s "$dir/stale"
done
finish
