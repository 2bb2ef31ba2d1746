#!/usr/bin/env bash
# What tables say: each number in its unit, each mean of how many rows, each static clock by its name; and that all of
# it is in the JSON and the CSV too.
. "$(dirname "$0")/shell.sh"

# cell FILE WORKLOAD POLICY COLUMN: of a CSV, by the names in its first line (commas only inside quotes)
cell() {
  python3 - "$@" <<'END'
import csv, sys
path, workload, policy, column = sys.argv[1:]
for row in csv.DictReader(open(path)):
    if row["workload"] == workload and row["policy"] == policy:
        print(row[column])
END
}
json() { # EXPRESSION over the tree `t` of a file: must be true
  python3 -c 'import json, sys; t = json.load(open(sys.argv[2])); sys.exit(not eval(sys.argv[1]))' "$1" "$2"
}
sweep=traces/samples/energyucb-table1.csv
study=("$f" compare --sweep $sweep --platform pvc-max1550x6 --bound 0.1 --policy assure:theta=0.9 --policy fixed:sm_mhz=1200)

# ---- the objective has its unit wherever it is printed ----
for case in "energy|J|" "edp|J s|EDP" "ed2p|J s\\^2|ED2P"; do
  IFS='|' read -r name unit title <<<"$case"
  succeed "oracle: the bound of $name is in ${unit//\\/}" "positions, bound [0-9.e+]+ $unit, gap" \
    "$f" oracle --sweep $sweep --platform pvc-max1550x6 --bound 0.1 --objective "$name"
  "$f" oracle --sweep $sweep --platform pvc-max1550x6 --bound 0.1 --objective "$name" --json >"$dir/oracle.json"
  check "oracle: the JSON of $name names the unit" json "all(w['objective'] == '$name' and w['objective_unit'] == '${unit//\\/}' for w in t)" "$dir/oracle.json"
  check "oracle: the gap of $name is between the two numbers beside it" \
    json "all(abs(100 * (w['oracle_objective'] / w['oracle_objective_bound'] - 1) - w['oracle_gap_pct']) < 1e-6 for w in t)" "$dir/oracle.json"
  power=$(case $name in energy) echo 0 ;; edp) echo 1 ;; *) echo 2 ;; esac)
  check "oracle: $name of the schedule is its energy times its time" \
    json "all(abs(w['oracle_j'] * w['oracle_s'] ** $power / w['oracle_objective'] - 1) < 1e-9 and abs(w['default_j'] * w['default_s'] ** $power / w['default_objective'] - 1) < 1e-9 for w in t)" "$dir/oracle.json"
  "${study[@]}" --objective "$name" --json --csv "$dir/$name.csv" >"$dir/$name.json"
  check "compare: $name and its unit in the JSON" \
    json "t['objective'] == '$name' and all(r['objective_unit'] == '${unit//\\/}' for r in t['rows'])" "$dir/$name.json"
  if [ -n "$title" ]; then
    succeed "oracle: a column of $title" "$title $unit  $title saving %" "$f" oracle --sweep $sweep --platform pvc-max1550x6 --objective "$name"
    succeed "compare: a column of $title, and regret in it" "$title $unit  $title saving % .* $title vs static %  $title vs clairvoyant %" \
      "${study[@]}" --objective "$name"
    value=$(cell "$dir/$name.csv" mean fixed:sm_mhz=1200 objective_saving_pct)
    check "compare: its saving is that of the CSV" grep -qE "^fixed:sm_mhz=1200 .* $(printf %.2f "$value") " "$dir/out"
  fi
done
"${study[@]}" >"$dir/plain"
check "compare: energy has one column of saving" test "$(head -n 3 "$dir/plain" | grep -o 'saving' | wc -l)" = 1

# ---- a mean says of how many rows it is ----
rows=$(awk -F, 'NR > 1 && $2 == "fixed:sm_mhz=1200" && $1 != "mean"' "$dir/energy.csv" | wc -l)
broken=$(cell "$dir/energy.csv" mean fixed:sm_mhz=1200 violated)
check "some rows break the bound, and some do not" test "$broken" -gt 0 -a "$broken" -lt "$rows"
check "violated of how many" grep -qE "^fixed:sm_mhz=1200 .* [0-9.]+\* .* $broken/$rows " "$dir/plain"
check "the mark is explained" grep -q '^\* a mean over some of the rows' "$dir/plain"
check "rows of the mean" test "$(cell "$dir/energy.csv" mean fixed:sm_mhz=1200 rows)" = "$rows"
check "rows that have a regret" test "$(cell "$dir/energy.csv" mean fixed:sm_mhz=1200 regret_static_rows)" = $((rows - broken))
check "and against the clairvoyant" test "$(cell "$dir/energy.csv" mean fixed:sm_mhz=1200 regret_clairvoyant_rows)" = $((rows - broken))
check "a whole mean has no mark" grep -qE '^baseline:default [^*]* 0/'"$rows " "$dir/plain"
check "partial means in the JSON" json "[sorted(r['partial']) for r in t['rows'] if r['workload'] == 'mean' and r['policy'] == 'fixed:sm_mhz=1200'] == [['regret_clairvoyant_pct', 'regret_static_j', 'regret_static_pct']]" "$dir/energy.json"
"${study[@]}" --bound 5 >"$dir/loose" 2>/dev/null || "${study[@]}" --bound 500% >"$dir/loose"
check "no mark and no note where no row is left out" awk '/\*/ { exit 1 }' "$dir/loose"

# ---- the static clock has a name ----
clocks=$(cell "$dir/energy.csv" mean baseline:static clock)
check "over several workloads, from the lowest to the highest" grep -qE '^sm_mhz=[0-9]+\.\.[0-9]+$' <<<"$clocks"
check "in the table" grep -qE "^baseline:static ${clocks//./\\.} " "$dir/plain"
check "the row's own name stays" test -n "$(cell "$dir/energy.csv" mean baseline:static energy_j)"
one=$("$f" compare harness/experiments/first-light.json | awk '$1 == "baseline:static" { print $2 }')
check "of one workload, as the policy fixed takes it" test "$one" = sm_mhz=1300
"$f" compare harness/experiments/first-light.json --policy "fixed:$one" --csv "$dir/light.csv" >/dev/null
check "which costs what the baseline says" awk -v a="$(cell "$dir/light.csv" mean baseline:static energy_j)" \
  -v b="$(cell "$dir/light.csv" mean "fixed:$one" energy_j)" 'BEGIN { exit !(a > 0 && (a - b) / a < 1e-4 && (b - a) / a < 1e-4) }'
"$f" compare traces/samples/launches.csv --platform generic --policy nvboost --csv "$dir/memory.csv" >/dev/null
check "both clocks where there are several memory clocks" grep -qE '^sm_mhz=[0-9]+,mem_mhz=[0-9]+$' \
  <<<"$(cell "$dir/memory.csv" mean baseline:static clock)"
succeed "each workload's own" 'baseline:static sm_mhz=[0-9]+ ' "${study[@]}" --each
succeed "of a distribution replay too" 'baseline:static sm_mhz=[0-9]+\.\.[0-9]+ .* 0/' "$f" compare harness/experiments/energyucb.json --policy energyucb --seeds 1

finish
