#!/usr/bin/env bash
# tests/bench: every row of its table is measured, what it prints can be read back, and --against tells what moved. No
# figure is asserted: machines are slow and shared.
. "$(dirname "$0")/shell.sh"
bench=$(dirname "$f")/tests/bench

export TMPDIR=$dir
small=(--kernels 20000 --repeat 2)
succeed "the rows of one stream, beside their goals" 'one\.energyucb .*of the bare loop .*0\.75' "$bench" "${small[@]}" --only '^one'
check "none of another group" bash -c "! grep -q '^free' '$dir/out'"
succeed "and as JSON" '"key":' "$bench" "${small[@]}" --only '^(one|step|features|free|scarce|draws|serving)' --json
cp "$dir/out" "$dir/before.json"
for key in bare one.launches one.gaps step.prefix features.step features.eight free.2 free.32 scarce.none draws.energyucb serving.requests serving.pools; do
  check "$key has a value, a goal or none, and what it is compared by" python3 - "$dir/before.json" "$key" <<'PY'
import json, sys
row = [r for r in json.load(open(sys.argv[1])) if r["key"] == sys.argv[2]]
assert len(row) == 1 and row[0]["value"] > 0 and row[0]["relative"] > 0 and row[0]["noise"] >= 0, row
assert row[0]["measure"] in ("ratio", "rate", "time", "memory") and "goal" in row[0] and "of_goal" in row[0], row
PY
done
succeed "rows about files and commands" 'load.run_mb' "$bench" --kernels 20000 --repeat 1 --only 'load|command.run|grid.sweep|threads'
check "leaves no file behind" bash -c "! ls -d '$dir'/foldline-bench-* 2>/dev/null | grep -q ."
"$bench" --kernels 1000000 --repeat 1 --only 'load[.](csv|json_mb)' >"$dir/out" 2>"$dir/err" # much is freed before the last
check "what is read of JSON takes memory beyond its records, other rows before it or not" grep -Eq '^load.json_mb .* (0[.]0*[1-9]|[1-9])[0-9.]* +MB' "$dir/out"
for end in TERM HUP; do
  "$bench" --kernels 20000 --repeat 1000 --only 'load|command.run' >"$dir/out" 2>"$dir/err" &
  child=$!
  for _ in $(seq 200); do
    compgen -G "$dir/foldline-bench-*/?*" >/dev/null && break
    sleep 0.05
  done
  check "it has files" compgen -G "$dir/foldline-bench-*/?*"
  kill -$end $child
  wait $child
  check "SIG$end ends it" [ $? = $((128 + $(kill -l $end))) ]
  check "and removes them" bash -c "! compgen -G '$dir/foldline-bench-*'"
done

# ---- against an earlier run ----
# Its figures are made worse and better by a factor that no noise reaches, so that what is said does not hang on speed.
scaled() { # factor on everything that is compared
  python3 - "$dir/before.json" "$1" >"$dir/scaled.json" <<'PY'
import json, sys
rows = json.load(open(sys.argv[1]))
for r in rows:
    r["relative"] *= float(sys.argv[2]) if r["measure"] in ("ratio", "rate") else 1 / float(sys.argv[2])
    r["noise"] = 0.5
print(json.dumps(rows))
PY
}
moved() { # name, exit status, pattern
  local status
  "$bench" "${small[@]}" --only 'features.step|draws|step.prefix' --against "$dir/scaled.json" >"$dir/out" 2>"$dir/err"
  status=$?
  if [ $status = "$2" ] && grep -q "$3" "$dir/out"; then ok "$1"; else bad "$1" "exit $status: $(tail -n 4 "$dir/out" "$dir/err")"; fi
}
scaled 100
moved "a hundred times slower than before is worse" 1 'draws.energyucb.*beyond the noise.*worse'
scaled 0.001
moved "a thousand times faster is better, and no failure" 0 'draws.energyucb.*beyond the noise.*better'
python3 - "$dir/before.json" >"$dir/scaled.json" <<'PY'
import json, sys
rows = json.load(open(sys.argv[1]))
for r in rows:
    r["noise"] = 1e6
print(json.dumps(rows))
PY
moved "within the noise nothing has moved" 0 ' 0 moved beyond their noise'

# ---- a command that fails ----
mkdir -p "$dir/share/platforms"
cp models/platforms/generic.json "$dir/share/platforms"
FOLDLINE_SHARE=$dir/share refuse "why a command failed is told" 3 \
  "foldline synth --apps did not end well \(exit status 2\): foldline synth: .*rtx3080ti" \
  "$bench" "${small[@]}" --only command.oracle

# ---- bad input ----
refuse "no such row is refused with the groups of names" 2 \
  "'sixteen' is the name of no row, expected part of one: bare, one.*, step.*, .*, command.* " "$bench" --only sixteen --json
refuse "a row that only --long measures" 2 "'plan.executed_10k' names only rows that are measured with --long" \
  "$bench" "${small[@]}" --only plan.executed_10k --json
refuse "no regular expression" 2 'is no regular expression' "$bench" --only '('
refuse "no file to compare with" 2 'nowhere.json' "$bench" --against "$dir/nowhere.json"
echo '{}' >"$dir/none.json"
refuse "figures of something else" 2 'none.json.*expected an array' "$bench" "${small[@]}" --only draws --against "$dir/none.json" --json
refuse "an argument too many" 2 "unexpected 'fast'" "$bench" fast
finish
