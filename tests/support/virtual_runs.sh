# shellcheck shell=bash
# For scripts about virtual time, after shell.sh: a small workload, the command that emulates it, FL_LOAD busy loops beside
# it, and `same`.

clients=$(dirname "$f")/clients runs=${FL_RUNS:-3}
"$f" synth -o "$dir/w.csv" --kernels 2000 --mean-us 3000 --seed 3 >/dev/null || exit 1
virtual=("$f" emulate "$dir/w.csv" --platform generic --quiet --privileged --time virtual)
loops=()
for ((i = 0; i < ${FL_LOAD:-0}; i++)); do
  (while :; do :; done) &
  loops+=($!)
done
trap 'kill "${loops[@]}" 2>/dev/null; rm -rf "$dir"' EXIT

# same NAME PATTERN COMMAND...: succeeds, its output matches, and each run has the same output and hash
same() {
  local name=$1 pattern=$2 i
  shift 2
  for ((i = 0; i < runs; i++)); do
    timeout 300 "${virtual[@]}" -o "$dir/report.json" -- "$@" >"$dir/out" 2>"$dir/err" </dev/null
    echo "status $?" >>"$dir/out"
    grep -E '"(session_hash|time_s)"' "$dir/report.json" >>"$dir/out"
    [ $i = 0 ] && cp "$dir/out" "$dir/first"
    if ! grep -qE -- "$pattern" "$dir/out" || ! grep -qx 'status 0' "$dir/out" || ! cmp -s "$dir/first" "$dir/out"; then
      bad "$name, run $i" "$(head -c 600 "$dir/out")" "$(head -c 400 "$dir/err")"
      return
    fi
  done
  ok "$name, $runs runs"
}
