#!/usr/bin/env bash
# Boards of which facts are known and no law of power: shown with their sources, never simulated by themselves, and where a
# platform is made of one, every result on it says what is assumed.
. "$(dirname "$0")/shell.sh"

trace=traces/samples/mix8.csv
succeed "boards are listed behind the platforms" '^l40s  *NVIDIA L40S, 350 W \(board data only\)$' "$f" list platforms
check "and marked" test "$(grep -c 'board data only' "$dir/out")" = "$(ls models/boards | wc -l)"
succeed "a board: its facts and sources" '^  highest power limit +72 W +captured output of nvidia-smi' "$f" list platforms l4
check "and what is unknown" grep -q '^  law of power; ' "$dir/out"
check "in its own words" grep -qx '  lowest SM clock of the ladder' "$dir/out"
check "not what is known" test "$(grep -c 'default power limit' "$dir/out")" = 1
refuse "no board and no platform" 2 "unknown platform 'l40z'" "$f" list platforms l40z
for command in "run --policy nvboost" "compare --policy nvboost" compare; do
  # shellcheck disable=SC2086
  refuse "$command: no law of power" 2 "power model is unknown .*fit device --facts l40s -o l40s.json" "$f" ${command%% *} $trace --platform l40s \
    $([ "$command" = "${command#* }" ] || echo "${command#* }")
done

made=0
# FL_BOARDS=all: every board (nightly); otherwise some of each sort.
boards=(models/boards/{a30,l40s,l4}.json)
[ -z "${FL_BOARDS:-}" ] || boards=(models/boards/*.json)
for b in "${boards[@]}"; do
  name=$(basename "$b" .json)
  if grep -q 'to simulate this board, add' <("$f" list platforms "$name"); then
    refuse "fit device: $name lacks what no other chip tells" 2 "board $name: unknown: " "$f" fit device --facts "$name" -o "$dir/no.json"
    continue
  fi
  if ! "$f" fit device --facts "$name" -o "$dir/$name.json" >"$dir/out" 2>"$dir/err"; then
    check "no ladder where the step does not fit" grep -q "board $name: no ladder .*assumed: sm_step_mhz is unknown" "$dir/err"
    continue
  fi
  made=$((made + 1))
  limit=$(sed -n 's/^  "limit_default_w": \(.*\),$/\1/p' "$b")
  succeed "$name: a platform with its own limit" "power limit: $limit W" "$f" list platforms "$dir/$name.json"
  check "$name: its law of power is assumed" grep -qE '^  gpu.power.a_w +assumed: chips alike' "$dir/out"
  check "$name: its own facts are not" grep -qE "^  gpu.tdp_w +board $name: " "$dir/out"
  check "$name: no memory clock but its own" test "$(sed -n 's/^  "mem_mhz": \[\(.*\)\],$/\1/p' "$b" | tr -d ' ' | tr , '\n' | wc -l)" = \
    "$(sed -n 's/^  memory: .*, \([0-9]*\) clocks*: .*/\1/p' "$dir/out")"
done
check "most boards suffice" test $made -ge $((${#boards[@]} > 3 ? 12 : 2))
refuse "no such board" 2 "no board 'nosuch', expected one of" "$f" fit device --facts nosuch -o "$dir/no.json"

# ---- what is assumed is said in every result ----
own=(--platform "$dir/l40s.json")
note='power model of l40s is assumed, not measured'
succeed "run" "^note: the $note" "$f" run $trace "${own[@]}" --policy nvboost
succeed "run, JSON" "$note" "$f" run $trace "${own[@]}" --policy nvboost --json
succeed "compare" "^note: the $note" "$f" compare $trace "${own[@]}" --policy nvboost --no-oracle -o "$dir/c.csv"
check "its record" grep -q '"assumed_power":.*true' "$dir/c.provenance.json"
succeed "compare, JSON" "$note" "$f" compare $trace "${own[@]}" --policy nvboost --no-oracle --json
succeed "oracle" "^note: the $note" "$f" compare traces/samples/sweetspot-blackscholes.csv "${own[@]}"
succeed "oracle, JSON" '"assumed_power":.*true' "$f" compare traces/samples/sweetspot-blackscholes.csv "${own[@]}" --json
"$f" report "$dir/c.csv" -o "$dir/c.html" >/dev/null
check "report" grep -q "law of power assumed" "$dir/c.html"
succeed "a measured table has no law" 'policy' "$f" compare traces/samples/energyucb-528.pot3d.csv --platform pvc-max1550x6 --policy nvboost
check "and no such note" awk '/power model/ { exit 1 }' "$dir/out"

finish
