# The manual pages, the completions and the topics of help say what the tables say: those that print --help.
. "$(dirname "$0")/shell.sh"

pages=$dir/pages
check "the pages are written" "$f" help -o "$pages"
mapfile -t commands < <(all_commands)
whole=() # without the parts
for c in "${commands[@]}"; do [[ $c == *" "* ]] || whole+=("$c"); done
check "one for the program, and for every command" cmp <(ls "$pages/man1") \
  <(printf 'foldline%s.1\n' "" "${commands[@]/#/-}" | tr ' ' - | LC_ALL=C sort)

# ---- manual pages: every word of the help, as often, and the sections in order ----
words() { tr -s ' \n' '\n' | grep . | LC_ALL=C sort; }
plain() { # of roff
  sed -e '/^\.\(TH\|SH\|SS\|TP\|PP\|br\|nh\|ad\|ss\)/d' -e 's/^\.BR //' -e 's/\\f[BR]//g' -e 's/\\-/-/g' -e "s/\\\\(aq/'/g" \
    -e 's/\\(ha/^/g' -e 's/\\(ti/~/g' -e 's/\\(ga/`/g' -e 's/\\&\./\./g' -e 's/,\\:/,/g' -e 's/\\e/\\/g'
}
sections=$'NAME\nSYNOPSIS\nDESCRIPTION\nOPTIONS\nEXIT STATUS\nEXAMPLES\nSEE ALSO'
apart= lacking= unordered=
for c in "${commands[@]}"; do
  page=$pages/man1/foldline-${c// /-}.1
  # shellcheck disable=SC2086 # two words, of "fit device"
  COLUMNS=10000 "$f" $c --help all >"$dir/help"
  missing=$(comm -23 <(sed 's/^[a-z ]*:$//' "$dir/help" | words) <(plain <"$page" | words) | grep -vx '\\')
  [ -z "$missing" ] || apart+=" [$c: $missing]"
  wanted=$sections
  grep -q '^examples:$' "$dir/help" || wanted=${sections/EXAMPLES$'\n'/}
  [ "$(sed -n 's/^\.SH //p' "$page")" = "$wanted" ] || unordered+=" [$c]"
  grep -q '^\.BR foldline (1)' "$page" || lacking+=" [$c]"
done
check "every word of each help is in its page:$apart" test -z "$apart"
check "the sections are in order:$unordered" test -z "$unordered"
check "each page names foldline(1):$lacking" test -z "$lacking"
check "foldline(1) lists every command" cmp <(sed -n 's/^\.BR foldline\\-\([a-z\\-]*\) (1),\?$/\1/p' "$pages/man1/foldline.1" | sed 's|\\-|-|g') \
  <(printf '%s\n' "${commands[@]// /-}")
# Variables that the program asks for, but those that it sets for itself and those of other software.
asked=$(grep -rhoE 'getenv\("[A-Z_]+"|"FOLDLINE_[A-Z_]+"' "$root/harness" --include='*.c' | grep -oE '[A-Z]+_?[A-Z_]*' | sort -u |
  grep -vxE 'FOLDLINE_EMULATE.*|LD_LIBRARY_PATH|PATH|ZES_ENABLE_SYSMAN')
unnamed=$(for v in $asked; do plain <"$pages/man1/foldline.1" | sed -n '/^FOLDLINE_SHARE/,$p' | grep -qw -- "$v" || echo "$v"; done)
check "foldline(1) names every variable that the program asks for: $unnamed" test -z "$unnamed"
check "a page names the commands that its text names" grep -q '^\.BR foldline\\-verify (1)' "$pages/man1/foldline-run.1"
check "its NAME is the line of the list" grep -qF "foldline-run \\- $("$f" --help | sed -n 's/^  run  *//p')" "$pages/man1/foldline-run.1"
if command -v man >/dev/null; then
  succeed "man shows a page" 'foldline-fit-device - ' env MANWIDTH=80 man -l "$pages/man1/foldline-fit-device.1"
  check "man shows no line beyond its width" test "$(for p in "$pages"/man1/*; do MANWIDTH=80 man -l "$p" 2>/dev/null; done | col -b | wc -L)" -le 80
fi
check "the same bytes again" bash -c "'$f' help -o '$dir/again' && diff -r '$pages' '$dir/again'"
refuse "a folder that cannot be made" 3 'nothing/there' "$f" help -o "$dir/nothing/there"
refuse "-o beside a topic" 2 '^foldline help: -o DIR writes all pages' "$f" help traces -o "$dir/x"

# ---- completion of bash, as bash runs it ----
completed() { # the words of a command line, the last to be completed
  bash --norc -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _foldline; printf "%s\n" "${COMPREPLY[@]}"' - \
    "$pages/bash/foldline" "$@"
}
same() { # NAME, a file of what is wanted, the words
  local name=$1 want=$2
  shift 2
  completed "$@" | grep . | LC_ALL=C sort >"$dir/completed"
  check "$name" cmp "$dir/completed" <(LC_ALL=C sort "$want")
}
printf '%s\n' "${whole[@]}" --help --version >"$dir/want"
same "the commands" "$dir/want" foldline ""
"$f" list policies | sed 's/ .*//' >"$dir/policies"
"$f" list platforms | grep -v '(board data only)$' | sed -n 's/^\([a-z0-9][a-z0-9-]*\)  .*/\1/p' >"$dir/platforms"
check "there are policies and platforms" test "$(wc -l <"$dir/policies")" -ge 20 -a "$(wc -l <"$dir/platforms")" -ge 10
same "the policies" "$dir/policies" foldline compare --policy ""
same "the policies, behind =" "$dir/policies" foldline compare --policy = ""
same "the policies, while = is typed" "$dir/policies" foldline compare --policy =
same "the platforms" "$dir/platforms" foldline run x.csv --platform ""
"$f" list platforms | sed 's/ .*//' >"$dir/want"
same "platforms and boards, where either is shown" "$dir/want" foldline list platforms ""
grep '^as' "$dir/policies" >"$dir/want"
same "the policies that begin so" "$dir/want" foldline live --policy as
printf '%s\n' "${commands[@]}" | sed -n 's/^fit \([^ ]*\)$/\1/p' >"$dir/want"
same "what is fitted" "$dir/want" foldline fit ""
same "and behind help" "$dir/want" foldline help fit ""
printf '%s\n' "${commands[@]}" | sed -n 's/^fit policy //p' >"$dir/want"
same "parts of a part" "$dir/want" foldline fit policy ""
same "a policy of policies" "$dir/policies" foldline list policies ""
printf '%s\n' "${whole[@]}" experiment experiments traces platforms policies >"$dir/want"
same "topics of help" "$dir/want" foldline help ""
: >"$dir/want"
same "a value of no list is left to the shell" "$dir/want" foldline compare --kinds ""
if command -v zsh >/dev/null; then check "zsh reads its own" zsh -n "$pages/zsh/_foldline"; fi

# ---- topics ----
succeed "help traces lists the formats" '^  nsys-sqlite +Nsight' "$f" help traces
check "as import does" cmp <(COLUMNS=200 "$f" help traces | sed -n 's/^  \([a-z0-9][a-z0-9-]*\)  .*/\1/p') \
  <(COLUMNS=200 "$f" import --list | sed -n 's/^  \([a-z0-9][a-z0-9-]*\)  .*/\1/p')
check "help platforms lists them" cmp <("$f" help platforms | sed -n 's/^  \([a-z0-9][a-z0-9-]*\)  .*/\1/p') "$dir/platforms"
check "help policies lists them" cmp <("$f" help policies | sed -n 's/^  \([a-z0-9][a-z0-9-]*\)  .*/\1/p') "$dir/policies"
check "help experiments is help experiment" cmp <("$f" help experiments) <("$f" help experiment)
refuse "the nearest topic" 2 "no topic 'trases', did you mean 'traces'\?$" "$f" help trases
refuse "what is below a topic" 2 '.' "$f" help traces more
finish
