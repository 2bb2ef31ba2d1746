# What every end-to-end script of this folder begins with: `. "$(dirname "$0")/shell.sh"`, with the path of the program as
# its first argument. It goes to the root of the repository, makes the folder $dir, which goes at the end, and names the
# program $f. A script ends with `finish`.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
f=$(realpath "$1")
root=$PWD
dir=$(mktemp -d)
ulimit -t 300 # of the processor, so that a command that never ends fails, however busy the machine is
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0

ok() {
  passed=$((passed + 1))
  echo "ok - $1"
}
bad() {
  failed=$((failed + 1))
  echo "not ok - $1"
  shift
  printf '    %s\n' "$@"
}
# progress FILE: takes the lines of progress out of it that a command writes each 10 s where standard error is no terminal
progress() { sed -i -E '/^foldline [a-z ]+(, [a-z -]+)?: ([0-9]+ %, )?[0-9.]+ (s|min|h)(, about [0-9.]+ (s|min|h) left)?$/d' "$1"; }
# refuse NAME STATUS PATTERN COMMAND...: exits with STATUS, one line on stderr that matches PATTERN, nothing on stdout
refuse() {
  local name=$1 want=$2 pattern=$3 status lines
  shift 3
  "$@" >"$dir/out" 2>"$dir/err" </dev/null
  status=$?
  progress "$dir/err"
  lines=$(wc -l <"$dir/err")
  if [ $status = "$want" ] && [ "$lines" = 1 ] && grep -qE -- "$pattern" "$dir/err" && [ ! -s "$dir/out" ]; then
    ok "$name"
  else
    bad "$name" "exit $status (want $want), $lines lines: $(head -c 400 "$dir/err")"
  fi
}
# unwritten NAME PATTERN COMMAND...: cannot write a file, says so on one line, and prints its result all the same
unwritten() {
  local name=$1 pattern=$2 status
  shift 2
  "$@" >"$dir/out" 2>"$dir/err" </dev/null
  status=$?
  if [ $status = 3 ] && [ "$(grep -c 'cannot create' "$dir/err")" = 1 ] && grep -qE -- "$pattern" "$dir/out"; then
    ok "$name"
  else
    bad "$name" "exit $status (want 3): $(head -c 400 "$dir/err" "$dir/out")"
  fi
}
# succeed NAME PATTERN COMMAND...: exits 0, stdout matches PATTERN
succeed() {
  local name=$1 pattern=$2 status
  shift 2
  "$@" >"$dir/out" 2>"$dir/err" </dev/null
  status=$?
  if [ $status = 0 ] && grep -qE -- "$pattern" "$dir/out"; then
    ok "$name"
  else
    bad "$name" "exit $status: $(head -c 400 "$dir/err")" "$(head -n 5 "$dir/out")"
  fi
}
check() { # NAME, then a command that must be true
  local name=$1
  shift
  if "$@" >"$dir/check" 2>&1; then ok "$name"; else bad "$name" "$(head -c 400 "$dir/check")"; fi
}
# Every command, and every part of one: a line each.
all_commands() {
  local c
  "$f" --help | sed -n '/^examples:/q; s/^  \([a-z][a-z]*\)  .*/\1/p'
  for c in fit "fit policy" synth list; do
    # shellcheck disable=SC2086 # two words, of "fit policy"
    "$f" $c --help | sed -n "/^WHAT/,/^examples:/s/^  \([a-z][a-z-]*\)  .*/$c \1/p"
  done
}
# drawn PICTURE.svg: what it draws. gnuplot 5.4 begins lines of "lc rgb variable" with a colour that it has not set, in
# which nothing is drawn; what that colour is depends on the environment.
drawn() { sed -E 's/(color="#FFFFFF" stroke=)"rgb\([0-9, ]*\)"/\1unset/' "$1"; }
finish() {
  echo "$passed passed, $failed failed"
  [ $failed = 0 ]
}
