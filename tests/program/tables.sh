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
study=("$f" compare $sweep --platform pvc-max1550x6 --bound 0.1 --policy assure:theta=0.9 --policy fixed:sm_mhz=1200)

# ---- the objective has its unit wherever it is printed ----
for case in "energy|J|" "edp|J s|EDP" "ed2p|J s\\^2|ED2P"; do
  IFS='|' read -r name unit title <<<"$case"
  succeed "baselines: the bound of $name is in ${unit//\\/}" ", bound [0-9.e+]+ $unit, gap" \
    "$f" compare $sweep --platform pvc-max1550x6 --bound 0.1 --objective "$name"
  "$f" compare $sweep --platform pvc-max1550x6 --bound 0.1 --objective "$name" --json >"$dir/oracle.json"
  check "baselines: the JSON of $name names the unit" json "all(w['objective'] == '$name' and w['objective_unit'] == '${unit//\\/}' for w in t)" "$dir/oracle.json"
  check "baselines: the gap of $name is between the two numbers beside it" \
    json "all(abs(100 * (w['oracle_objective'] / w['oracle_objective_bound'] - 1) - w['oracle_gap_pct']) < 1e-6 for w in t)" "$dir/oracle.json"
  power=$(case $name in energy) echo 0 ;; edp) echo 1 ;; *) echo 2 ;; esac)
  check "baselines: $name of the schedule is its energy times its time" \
    json "all(abs(w['oracle_j'] * w['oracle_s'] ** $power / w['oracle_objective'] - 1) < 1e-9 and abs(w['default_j'] * w['default_s'] ** $power / w['default_objective'] - 1) < 1e-9 for w in t)" "$dir/oracle.json"
  "${study[@]}" --objective "$name" --json -o "$dir/$name.csv" >"$dir/$name.json"
  check "compare: $name and its unit in the JSON" \
    json "t['objective'] == '$name' and all(r['objective_unit'] == '${unit//\\/}' for r in t['rows'])" "$dir/$name.json"
  if [ -n "$title" ]; then
    succeed "baselines: a column of $title" "$title saved % +time s" "$f" compare $sweep --platform pvc-max1550x6 --objective "$name"
    succeed "compare: the unit of $title" " $title $unit( |\$)" "${study[@]}" --objective "$name" --wide
    check "compare: regret in it" grep -q "$title above the best static clock, % \[regret_static_pct\]" "$dir/out"
    succeed "compare: a column of $title" "  saved %  $title saved %  time s" "${study[@]}" --objective "$name"
    value=$(cell "$dir/$name.csv" mean fixed:sm_mhz=1200 objective_saving_pct)
    check "compare: its saving is that of the CSV" grep -qE "^fixed:sm_mhz=1200 .* $(printf %.2f "$value") " "$dir/out"
  fi
done
"${study[@]}" >"$dir/plain"
check "compare: five columns, then the bound" grep -qxE 'policy +energy J +saved % +time s +slowdown % +bound' "$dir/plain"
check "a mean of ratios is called so" grep -qE '^  saved % +mean of the savings' "$dir/plain"
defined() { # FILE: below the table is one line for each of its columns, whose names are two blanks or more apart
  python3 - "$1" <<'END'
import re, sys
part = open(sys.argv[1]).read().split("\n\n")
heads = re.split("  +", next(t for t in part if t.startswith(("policy ", "servers ", "workload ", "held out ", "clocks "))).split("\n")[0])
lines = [t for t in part if t.startswith("  " + heads[0])]
terms = [re.split("  +", l[2:])[0] for l in "".join(lines).split("\n") if l[2:3] != " "]
sys.exit(len(lines) != 1 or terms[:len(heads)] != heads)
END
}
"${study[@]}" --wide >"$dir/wide"
"${study[@]}" --wide --each >"$dir/each"
"$f" compare $sweep --platform pvc-max1550x6 --bound 0.1 --objective edp --wide >"$dir/baselines"
"$f" search $sweep --platform pvc-max1550x6 --policy assure:theta=0.9 --policy assure --hold-out workload --wide >"$dir/search"
"$f" advise $sweep --platform pvc-max1550x6 >"$dir/advise"
"$f" plan traces/samples/four-stages.pipeline.csv --slowdown 5% --wide >"$dir/plan"
for table in plain wide each baselines search advise plan; do check "each column has its line: $table" defined "$dir/$table"; done
check "the share above the best static clock" grep -q 'energy above the best static clock, % \[regret_static_pct\]' "$dir/wide"
"${study[@]}" --no-oracle --wide >"$dir/none"
check "no column that no row has a value for" awk '/above static/ { exit 1 }' "$dir/none"

refuse "a distribution replay is judged by its energy" 2 '\-\-objective edp has no effect in a distribution replay' \
  "$f" compare harness/experiments/energyucb.json --policy energyucb --seeds 1 --objective edp

# ---- a mean says of how many rows it is ----
rows=$(awk -F, 'NR > 1 && $2 == "fixed:sm_mhz=1200" && $1 != "mean"' "$dir/energy.csv" | wc -l)
broken=$(cell "$dir/energy.csv" mean fixed:sm_mhz=1200 violated)
check "some rows break the bound, and some do not" test "$broken" -gt 0 -a "$broken" -lt "$rows"
check "held in how many" grep -qE "^fixed:sm_mhz=1200 .* $((rows - broken)) of $rows .* [0-9.]+\* " "$dir/wide"
check "the mark is explained, and what n/a is" test "$(grep -cE '^  (\*|n/a)  +[a-z]' "$dir/wide")" = 2
check "rows of the mean" test "$(cell "$dir/energy.csv" mean fixed:sm_mhz=1200 rows)" = "$rows"
check "rows that have a regret" test "$(cell "$dir/energy.csv" mean fixed:sm_mhz=1200 regret_static_rows)" = $((rows - broken))
check "and against the clairvoyant" test "$(cell "$dir/energy.csv" mean fixed:sm_mhz=1200 regret_clairvoyant_rows)" = $((rows - broken))
check "a whole mean has no mark" grep -qE '^baseline:default [^*]* '"$rows of $rows " "$dir/wide"
check "partial means in the JSON" json "[sorted(r['partial']) for r in t['rows'] if r['workload'] == 'mean' and r['policy'] == 'fixed:sm_mhz=1200'] == [['regret_clairvoyant_pct', 'regret_static_j', 'regret_static_pct']]" "$dir/energy.json"
"${study[@]/0.1/500%}" --wide >"$dir/loose"
check "no mark and no note where no row is left out" awk '/\*/ { exit 1 }' "$dir/loose"

# ---- the static clock has a name ----
clocks=$(cell "$dir/energy.csv" mean baseline:static clock)
check "over several workloads, from the lowest to the highest" grep -qE '^sm_mhz=[0-9]+\.\.[0-9]+$' <<<"$clocks"
check "in the table" grep -q "^baseline:static ${clocks#*=} MHz " "$dir/plain"
check "the row's own name stays" test -n "$(cell "$dir/energy.csv" mean baseline:static energy_j)"
"$f" compare harness/experiments/first-light.json -o "$dir/light.csv" | grep -q '^baseline:static 1300 MHz '
one=$(cell "$dir/light.csv" mean baseline:static clock)
check "of one workload, as the policy fixed takes it" test "$one" = sm_mhz=1300
"$f" compare harness/experiments/first-light.json --policy "fixed:$one" -o "$dir/light.csv" >/dev/null
check "which costs what the baseline says" awk -v a="$(cell "$dir/light.csv" mean baseline:static energy_j)" \
  -v b="$(cell "$dir/light.csv" mean "fixed:$one" energy_j)" 'BEGIN { exit !(a > 0 && (a - b) / a < 1e-4 && (b - a) / a < 1e-4) }'
"$f" compare traces/samples/launches.csv --platform generic --policy nvboost -o "$dir/memory.csv" >"$dir/memory"
check "and in the table" grep -qE '^baseline:static [0-9]+/[0-9]+ MHz ' "$dir/memory"
check "both clocks where there are several memory clocks" grep -qE '^sm_mhz=[0-9]+,mem_mhz=[0-9]+$' \
  <<<"$(cell "$dir/memory.csv" mean baseline:static clock)"
check "each workload's own" grep -qE '  baseline:static [0-9]+ MHz ' "$dir/each"
replay=("$f" compare harness/experiments/energyucb.json --policy energyucb)
succeed "of a distribution replay too" 'baseline:static [0-9]+\.\.[0-9]+ MHz ' "${replay[@]}" --seeds 1
succeed "several seeds of a workload: one row, with its interval" '^528.pot3d +energyucb +[0-9.]+ \+-[0-9.]+ ' "${replay[@]}" --seeds 3 --each --wide
check "the replay's own column" grep -q 'Eq. 3 of EnergyUCB \[reward_regret\]' "$dir/out"

"$f" report "$dir/energy.csv" -o "$dir/report.html" >/dev/null
check "the report marks such means" grep -qE '>[0-9.]+\*(<| )' "$dir/report.html"
check "says of how many runs" grep -qE "A mean over some of the runs: .*fixed:sm_mhz=1200 $((rows - broken)) of $rows" "$dir/report.html"
check "how many break the bound, of how many" grep -q ">$broken of $rows<" "$dir/report.html"
check "and names the static clocks" grep -qE 'baseline:static is [^,<]+: sm_mhz=[0-9]+, [^,<]+: sm_mhz=[0-9]+' "$dir/report.html"
"$f" compare $sweep --platform pvc-max1550x6 --policy assure:theta=0.9 -o "$dir/free.csv" >/dev/null
"$f" report "$dir/free.csv" -o "$dir/report.html" >/dev/null
check "no mark where no run is left out" awk '/A mean over some|[0-9]\*[< ]/ { exit 1 }' "$dir/report.html"

# ---- one run, beside the default clocks, in parts ----
run=("$f" run traces/samples/sweetspot-blackscholes.csv --platform rtx4070-laptop --policy fixed:sm_mhz=1200)
"${run[@]}" >"$dir/run.txt"
"${run[@]}" --json >"$dir/run.json"
"$f" run traces/samples/sweetspot-blackscholes.csv --platform rtx4070-laptop --policy nvboost --json >"$dir/default.json"
cost() { # of the tree, or of a part of it
  python3 -c 'import json, sys; t = json.load(open(sys.argv[1])); d = t[sys.argv[2]] if sys.argv[2] else t; print(d["energy_j"], d["makespan_s"])' "$@"
}
check "the default beside a run is what the driver does by itself" test "$(cost "$dir/run.json" default)" = "$(cost "$dir/default.json" '')"
check "a run's saving and slowdown against it" json \
  "abs(t['energy_saving_pct'] - 100 * (1 - t['energy_j'] / t['default']['energy_j'])) < 1e-9 and abs(t['slowdown'] - t['makespan_s'] / t['default']['makespan_s'] + 1) < 1e-12 and t['slowdown'] > 0.01 and t['energy_saving_pct'] > 1" "$dir/run.json"
said=$(python3 -c 'import json, sys; t = json.load(open(sys.argv[1])); print("%.2f %% of the energy, slowdown %.2f %%" % (t["energy_saving_pct"], 100 * t["slowdown"]))' "$dir/run.json")
check "its text says both" grep -qF "saving      $said" "$dir/run.txt"
check "its parts: asked, energy, time, clocks, policy" test "$(awk 'BEGIN { RS = "" } { printf "%s ", $1 }' "$dir/run.txt" | cut -d' ' -f2-6)" = \
  'asked energy makespan clocks policy'
succeed "the sensors that a policy reads" '^sensors +power each 100 ms, mean of 100 ms; utilisation each 167 ms' \
  "$f" run traces/samples/sweetspot-blackscholes.csv --platform rtx4070-laptop --policy assure
check "or none" grep -q '^sensors  *none' "$dir/run.txt"

# ---- a run that ends before its policy decides ----
short=(traces/samples/launches.csv --platform generic)
"$f" run "${short[@]}" --policy assure --json >"$dir/short.json"
check "said of a run" json "any('assure looked a second time' in n for n in t['notes'])" "$dir/short.json"
"$f" compare "${short[@]}" --policy assure --policy nvboost --policy sweetspot --seeds 2 --json -o "$dir/short.csv" >"$dir/short.json"
check "said of a comparison, with the policies" \
  json "[n for n in t['notes'] if 'looked a second time' in n][0].endswith('(assure, sweetspot)') and '4 runs' in str(t['notes'])" "$dir/short.json"
check "said in their rows" test "$(grep -c 'ended before the policy looked a second time' "$dir/short.csv")" = 4
"$f" run traces/samples/sweetspot-blackscholes.csv --platform rtx4070-laptop --policy assure --json >"$dir/long.json"
check "not said of a longer one" json "not any('second time' in n for n in t['notes'])" "$dir/long.json"

# ---- a run of nothing ----
{ sed -n 1,6p traces/samples/launches.csv | sed "s|^# kinds: |# kinds: $root/traces/samples/|"; echo device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z; echo '0,0,0,5,5,gemm,640,1,1,256,1,1'; } >"$dir/nothing.csv"
succeed "it has no saving" '^saving +n/a' "$f" run "$dir/nothing.csv" --platform generic --policy nvboost
check "and no -nan" sh -c '! grep -q nan "$0"' "$dir/out"

# ---- sweeps with power alone, or energy alone, besides time ----
printf 'workload,sm_mhz,mem_mhz,time_s,power_w,energy_j\n' >"$dir/both.csv"
for w in 2 3 4 5; do
  for mhz in 600 700 800 900 1000 1100 1200 1300 1400 1500; do
    awk -v w=$w -v m=$mhz 'BEGIN { c = 0.14 * w; t = 10 * (c * 1500 / m + 1 - c); p = 60 + 40 * (1 - c) + 90 * (m / 1500) ^ 2 * (0.5 + w / 10)
      printf "w%d,%d,1000,%.9g,%.9g,%.17g\n", w, m, t, p, sprintf("%.9g", t) * sprintf("%.9g", p) }'
  done
done >>"$dir/both.csv"
cut -d, -f1-5 "$dir/both.csv" >"$dir/power.csv"
cut -d, -f1-4,6 "$dir/both.csv" >"$dir/energy.csv"
cut -d, -f1-4 "$dir/both.csv" >"$dir/times.csv"
"$f" fit device "$dir/both.csv" -o "$dir/chip.json" >/dev/null 2>&1
while IFS= read -r command; do
  for part in both power energy; do
    # shellcheck disable=SC2086
    (cd "$dir" && cp $part.csv sweep.csv && "$f" $command) >"$dir/$part.out" 2>&1 || bad "${command%% *} with $part" "$(head -c 300 "$dir/$part.out")"
    progress "$dir/$part.out"
    sed -i 's/[0-9a-f]\{64\}//g; s/n\/a/-/g' "$dir/$part.out"
  done
  check "power alone is enough: $command" cmp "$dir/both.out" "$dir/power.out"
  # the last of 17 digits of energy / time may differ from those of power
  check "energy alone is enough: $command" awk -v tolerance=1e-6 '
    NR == FNR { line[FNR] = $0; n = FNR; next }
    { a = split(line[FNR], x, /[ ,:]+/); b = split($0, y, /[ ,:]+/); if (a != b) exit 1
      for (i = 1; i <= a; i++) if (x[i] != y[i] && !(x[i] + 0 && (x[i] - y[i]) ^ 2 < (tolerance * x[i]) ^ 2)) { print x[i], y[i]; exit 1 } }
    END { if (n != FNR) exit 1 }' "$dir/both.out" "$dir/energy.out"
done <<'END'
run sweep.csv --workload w3 --platform generic --policy utilizscale
compare sweep.csv --platform generic --policy utilizscale --policy assure --bound 0.1
compare sweep.csv --platform generic --policy utilizscale --model fitted
compare sweep.csv --platform generic --bound 0.1
advise sweep.csv --platform generic
fit device sweep.csv -o out.json
fit workload --device chip.json sweep.csv --at corners
fit workload sweep.csv --at ends
fit policy sweetspot --platform generic sweep.csv
END
for part in power energy; do
  "$f" import "$dir/$part.csv" -o "$dir/$part.sweep.csv" >/dev/null
  check "import derives what $part leaves out" awk -F, '/^w[0-9]/ { if (($6 * $7) == 0 || ($6 * $7 / $8 - 1) ^ 2 > 1e-20) exit 1; n++ } END { exit n != 40 }' \
    "$dir/$part.sweep.csv"
done
for command in "run --policy nvboost --platform generic" "compare --policy nvboost --platform generic" \
  "compare --platform generic" "fit policy sweetspot --platform generic" "import -o $dir/none.csv"; do
  # shellcheck disable=SC2086
  refuse "neither: $command" 2 "times.csv:1:[0-9]+: columns 'power_w' and 'energy_j' are missing, expected one" "$f" $command "$dir/times.csv"
done

finish
