# The tutorial's commands print what stands below them, and its picture is what they draw.
# FL_BLESS=1 writes what they print, and the picture, into the repository.
. "$(dirname "$0")/shell.sh"
command -v gnuplot >/dev/null || { echo "skipped: no gnuplot"; exit 0; }

page=$root/harness/TUTORIAL.md picture=$root/plots/tutorial-pareto.svg
mkdir -p "$dir/tree/build" "$dir/tree/results"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$f" >"$dir/tree/build/foldline"
chmod +x "$dir/tree/build/foldline"
ln -s "$root/traces" "$root/models" "$root/plots" "$dir/tree"
export FOLDLINE_SHARE=$root/models COLUMNS=80

# The page anew: each sh block's command is run, and what it prints on standard output becomes the text block behind it.
section= command= output=
while IFS= read -r line; do
  case $section$line in
  '```sh') section=sh command= ;;
  'sh```')
    section=
    (cd "$dir/tree" && bash -c "$command") >"$dir/out" 2>"$dir/err" </dev/null
    check "$command" test $? = 0 >&2
    output=$(sed 's/ *$//' "$dir/out")
    ;;
  sh*) command+=$line ;;
  '```text')
    printf '```text\n%s\n```\n' "$output"
    section=text
    continue
    ;;
  'text```')
    section=
    continue
    ;;
  text*) continue ;;
  esac
  printf '%s\n' "$line"
done <"$page" >"$dir/page"
if [ "${FL_BLESS:-}" = 1 ]; then
  cp "$dir/page" "$page"
  cp "$dir/tree/results/tutorial.svg" "$picture"
fi
check "the page says what its commands print" diff "$page" "$dir/page"
check "its picture is what they draw" cmp <(drawn "$picture") <(drawn "$dir/tree/results/tutorial.svg")
finish
