# No line of a help, and on a terminal no line of a message, is wider than the terminal.
. "$(dirname "$0")/shell.sh"

mapfile -t commands < <(all_commands)
check "the commands are found" test ${#commands[@]} -ge 35
too_wide() { awk -v width="$1" 'length > width { print; wide = 1 } END { exit !wide }'; }
for width in 60 80 120; do
  export COLUMNS=$width
  wide= sources=
  most=0
  while read -r c; do
    # shellcheck disable=SC2086 # two words, of "fit device"
    ("$f" $c --help && "$f" $c --help all) >"$dir/help" || wide+=" [$c fails]"
    too_wide $width <"$dir/help" >>"$dir/lines" && wide+=" [$c]"
    ! grep -qE '[a-z]/[a-z_]+\.[ch]\b' "$dir/help" || sources+=" [$c]"
    longest=$(wc -L <"$dir/help")
    [ "$longest" -le "$most" ] || most=$longest
  done < <(printf '%s\n' "" "${commands[@]}" "help experiment")
  "$f" help experiment | too_wide $width >>"$dir/lines" && wide+=" [help experiment]"
  check "every help fits $width columns:$wide" test -z "$wide"
  check "none names a source file:$sources" test -z "$sources"
  check "and uses them" test "$most" -gt $((width - 5))
done
check "the same words at any width" cmp <(COLUMNS=60 "$f" compare --help all | tr -s ' \n' '\n' | grep -vxF '\') \
  <(COLUMNS=120 "$f" compare --help all | tr -s ' \n' '\n' | grep -vxF '\')
check "a word longer than the line is broken at a comma" grep -q '^ *kernel,.*,$' <(COLUMNS=40 "$f" fit policy sensitivity --help all)
for columns in "" 0 -5 wide; do
  check "80 where COLUMNS is '$columns'" cmp <(COLUMNS=$columns "$f" compare --help) <(COLUMNS=80 "$f" compare --help)
done
unset COLUMNS
check "80 where nothing tells" cmp <("$f" compare --help) <(COLUMNS=80 "$f" compare --help)

# ---- a row of options that three commands share is a macro ----
shared=$(find harness -name '*.[ch]' -exec cat {} + | sed 's/\\$//' | perl -0ne 'print "--$1: $2\n" while
  /\{\s*"([a-z0-9-]+)",\s*(?:NULL|"[^"]*"),\s*FL_OPTION_\w+,[^"]*?"((?:[^"\\]|\\.)*)"/g' | sort | uniq -c | awk '$1 >= 3')
check "no row is written three times: $shared" test -z "$shared"

# ---- on a terminal: its width counts, not $COLUMNS ----
terminal() { # WIDTH, then a command line
  COLUMNS=300 script -qec "stty cols $1; $2" /dev/null </dev/null | tr -d '\r'
}
if command -v script >/dev/null; then
  check "the terminal's width" cmp <(terminal 66 "'$f' compare --help") <(COLUMNS=66 "$f" compare --help)
  line="'$f' run nothing.csv --platform nothing-of-this-name-is-there --policy assure"
  whole=$($f run nothing.csv --platform nothing-of-this-name-is-there --policy assure 2>&1)
  check "the message is a long line where no terminal is" test "$(wc -l <<<"$whole")/$((${#whole} > 60))" = 1/1
  terminal 60 "$line" >"$dir/message"
  check "on a terminal it is broken" test "$(wc -l <"$dir/message")" -gt 1
  check "within the width" test "$(wc -L <"$dir/message")" -le 60
  check "and says the same" cmp <(tr -s ' \n' '\n' <"$dir/message") <(tr -s ' \n' '\n' <<<"$whole")
else
  echo "skipped: no script(1), which makes a terminal"
fi
finish
