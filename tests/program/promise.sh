#!/usr/bin/env bash
# Bounds on what users promise, command by command: compare with and without a policy, search, grid and report (regress: broken_gate.sh; the
# target on a latency as a job: latency_target.sh).
#   tests/program/promise.sh build/foldline
. "$(dirname "$0")/shell.sh"
served=("$root/traces/samples/inference.csv" --platform a100 --arrivals poisson:rate=20,count=200)
plain=("$root/traces/samples/mix8.csv" --platform generic)
low=(--policy fixed:sm_mhz=810 --policy fixed:sm_mhz=1005)

# ---- as it is said ----
same() { cmp -s <("$f" compare "${plain[@]}" --policy nvboost --bound "$1") <("$f" compare "${plain[@]}" --policy nvboost --bound "$2"); }
check "5% is 0.05" same 5% 0.05
check "and slowdown<=0.05" same 5% 'slowdown<=0.05'
refuse "5 is not 5%" 2 "5, expected a share: 0.05 or 5%" "$f" compare "${plain[@]}" --policy nvboost --bound 5
for c in slowdown worst_window_slowdown; do
  refuse "nor is $c<=5" 2 "'$c<=5': 5, expected a share: 0.05 or 5%" "$f" compare "${plain[@]}" --policy nvboost --bound "$c<=5"
  refuse "nor $c<5" 2 "'$c<5': 5, expected a share: 0.05 or 5%" "$f" compare "${plain[@]}" --policy nvboost --bound "$c<5"
done
succeed "what is said in percent may be more" 'slowdown<5,' "$f" compare "${plain[@]}" --policy nvboost --bound 'slowdown<500%'
refuse "two shares" 2 'second bound on the slowdown' "$f" compare "${plain[@]}" --policy nvboost --bound 5% --bound 0.1
for c in "compare --policy nvboost" compare "grid --policy nvboost -o $dir/no.csv" "search --policy nvboost"; do
  refuse "${c%% *}: no such column" 2 "no column 'latency_p99', did you mean 'latency_p99_s'" "$f" $c "${served[@]}" --bound 'latency_p99<0.2'
  refuse "${c%% *}: no number" 2 "'0.2s', expected a number" "$f" $c "${served[@]}" --bound 'latency_p99_s<0.2s'
  refuse "${c%% *}: nothing arrives" 2 'latency_p99_s, but no requests arrive, expected --arrivals' "$f" $c "${plain[@]}" \
    --bound 'latency_p99_s<0.2'
done
for c in regret_static_pct rows regret_static_rows regret_clairvoyant_rows oracle_objective oracle_objective_bound regret_at_own_slowdown_j; do
  refuse "a bound on what is told under it: $c" 2 'depends on the bounds' "$f" compare "${plain[@]}" --policy nvboost --bound "$c>0"
done
refuse "a column of texts" 2 'holds text' "$f" compare "${plain[@]}" --policy nvboost --bound 'note<1'
refuse "sweep: a column that its CSV does not have" 2 'expected a column of its CSV' "$f" grid traces/samples/launches.csv --platform rtx4070-laptop --policy nvboost \
  -o "$dir/no.csv" --bound 'hottest_c<85'
refuse "the model moved" 2 'only a bound on the slowdown' "$f" compare "${served[@]}" --policy nvboost --bound 'latency_p99_s<0.2' --model-error 10 \
  --time-error 1 --power-error 1

# ---- compare: what is broken is counted and named, and the best static clock holds all ----
succeed "violated is told" 'fixed:sm_mhz=810 breaks latency_p99_s<0.17' "$f" compare "${served[@]}" "${low[@]}" --bound 'latency_p99_s<0.17' \
  --bound 5% -o "$dir/c.csv"
check "the head has all bounds" grep -q 'bound on the slowdown 5 %, latency_p99_s<0.17, objective' "$dir/out"
column() { head -n 1 "$1" | tr ',' '\n' | grep -nx "$2" | cut -d: -f1; }
cell() { awk -F, -v p="$2" -v c="$(column "$1" "$3")" '$1 != "mean" && $2 == p { print $c; exit }' "$1"; }
check "which in the row" [ "$(cell "$dir/c.csv" fixed:sm_mhz=810 violated),$(cell "$dir/c.csv" fixed:sm_mhz=810 breaks)" = "1,latency_p99_s<0.17" ]
check "no regret of it" [ "$(cell "$dir/c.csv" fixed:sm_mhz=810 regret_static_pct)" = n/a ]
check "none of who holds" [ "$(cell "$dir/c.csv" fixed:sm_mhz=1005 violated),$(cell "$dir/c.csv" fixed:sm_mhz=1005 breaks)" = "0," ]
check "static holds it" awk -v x="$(cell "$dir/c.csv" baseline:static latency_p99_s)" 'BEGIN { exit !(x > 0.1 && x < 0.17) }'
check "the record has them" grep -q '"latency_p99_s<0.17"' "$dir/c.provenance.json"
succeed "without it static takes less" . "$f" compare "${served[@]}" "${low[@]}" -o "$dir/free.csv"
check "and breaks it" awk -v x="$(cell "$dir/free.csv" baseline:static latency_p99_s)" -v e="$(cell "$dir/free.csv" baseline:static energy_j)" \
  -v h="$(cell "$dir/c.csv" baseline:static energy_j)" 'BEGIN { exit !(x >= 0.17 && e < h) }'
succeed "none holds: said" 'no static clock holds all bounds on 1 of 1' "$f" compare "${served[@]}" "${low[@]}" --bound 'latency_p99_s<0.01' -o "$dir/n.csv"
check "no static row then" [ -z "$(cell "$dir/n.csv" baseline:static energy_j)" ]

# The clairvoyant schedule is bounded in time alone: it says so, and nobody has a regret against it unless it holds the rest.
sweep=("$root/traces/samples/energyucb-528.pot3d.csv" --platform pvc-max1550x6)
succeed "what the clairvoyant does not know is said" 'baseline:clairvoyant has no value for peak_power_w<2250' "$f" compare "${sweep[@]}" \
  --policy fixed:sm_mhz=900 --bound 'peak_power_w<2250' -o "$dir/p.csv"
check "it is no measure then" [ "$(cell "$dir/p.csv" baseline:static violated),$(cell "$dir/p.csv" baseline:static regret_clairvoyant_pct)" = 0,n/a ]
check "its row says what it holds" grep -q 'baseline:clairvoyant.*bounded in time alone' "$dir/p.csv"
succeed "where it holds all it is one" . "$f" compare "${sweep[@]}" --policy fixed:sm_mhz=1300 --bound 'mean_power_w<2250' -o "$dir/m.csv"
check "who holds it too" [ "$(cell "$dir/m.csv" fixed:sm_mhz=1300 violated)" = 0 ]
check "has a regret against it" awk -v x="$(cell "$dir/m.csv" fixed:sm_mhz=1300 regret_clairvoyant_pct)" 'BEGIN { exit !(x ~ /^[0-9.e+-]+$/ && x >= 0) }'
succeed "oracle says it too" 'clairvoyant .*bounded in time alone' "$f" compare "${sweep[@]}" --bound 'mean_power_w<2250'

# Every column is judged of static clocks as it is of policies: what the one row says, the other does.
for b in 'objective_saving_pct>1' 'policy_cost_s<1' 'worst_window_slowdown<5%'; do
  "$f" compare harness/experiments/first-light.json --policy fixed:sm_mhz=1300 --bound "$b" -o "$dir/b.csv" >"$dir/out"
  check "$b: static holds it, as the same clock does" [ "$(cell "$dir/b.csv" baseline:static violated),$(cell "$dir/b.csv" fixed:sm_mhz=1300 violated)" = 0,0 ]
done

# ---- oracle: JSON says what the text says ----
json() { # EXPRESSION over the first workload `w` of a file: must be true
  python3 -c 'import json, sys; w = json.load(open(sys.argv[2]))[0]; sys.exit(not eval(sys.argv[1]))' "$1" "$2"
}
few=("$root/traces/samples/inference.csv" --platform a100 --arrivals poisson:rate=5,count=200,seed=1)
"$f" compare "${few[@]}" --bound 'latency_p99_s<0.06' --json >"$dir/o.json"
check "no schedule where no clock holds" json "w['static_j'] is None and not w['bounded'] and all(w['oracle_' + k] is None for k in ('j', 's', 'objective', 'bound_j', 'gap_pct'))" "$dir/o.json"
"$f" compare "${few[@]}" --json >"$dir/o.json"
check "the reference where nothing is promised" json "w['oracle_j'] > 0 and not w['oracle_bounded_in_time_alone']" "$dir/o.json"
"$f" compare "${sweep[@]}" --bound 'mean_power_w<2250' --json >"$dir/o.json"
check "bounded in time alone" json "w['oracle_j'] > 0 and w['oracle_bounded_in_time_alone'] and w['per_kernel_held'] is True" "$dir/o.json"
"$f" compare "${sweep[@]}" --json >"$dir/o.json"
check "or whole" json "w['oracle_j'] > 0 and not w['oracle_bounded_in_time_alone'] and w['best_known_objective'] == w['oracle_objective']" "$dir/o.json"

# ---- a mean over a part of the draws ----
cat >"$dir/d.json" <<EOT
{"foldline_experiment": 1, "platform": "a100", "gpus": 1, "traces": ["$root/traces/samples/inference.csv"], "seeds": 4,
 "arrivals": "poisson:rate=20,count=200", "bounds": ["latency_p99_s<0.125"], "policies": [{"policy": "nvboost"}]}
EOT
"$f" compare "$dir/d.json" -o "$dir/d.csv" >"$dir/out"
draws=$(grep -c '^[^,]*inference.csv[^,]*,baseline:static,' "$dir/d.csv")
check "the case is one" [ "$draws" -gt 0 -a "$draws" -lt 4 ]
check "of how many draws is said" grep -qE "^note: these means cover fewer rows than the others: baseline:static $draws of 4$" "$dir/out"
check "not where it is of all" sh -c '"$@" | { ! grep -q "these means cover fewer"; }' - "$f" compare "$dir/d.json" --bound 'latency_p99_s<9'

# ---- a sweep, whose rows stand alone: none is told to be the best of all, for the others do not know of it ----
one=("$root/traces/samples/energyucb-table1.csv" --platform pvc-max1550x6 --positions 1 --bound 2% --workload 519.clvleaf --policy assure:theta=0.985 --policy assure:theta=0.99)
"$f" grid "${one[@]}" -o "$dir/one.csv" >"$dir/out"
check "better than the reference: no regret" [ "$(cell "$dir/one.csv" assure:theta=0.985 regret_clairvoyant_pct)" = n/a ]
check "and its note says so" grep -q 'assure:theta=0.985,.*% below what the regrets of this file are against' "$dir/one.csv"
check "the others have theirs" awk -v x="$(cell "$dir/one.csv" assure:theta=0.99 regret_clairvoyant_pct)" 'BEGIN { exit !(x > 0) }'

# ---- a distribution replay ----
"$f" compare harness/experiments/energyucb.json --seeds 1 --policy energyucb --workload 518.tealeaf --bound 'sm_mhz_mean<1500' -o "$dir/r.csv" >"$dir/out"
check "of drawn steps, a bound on clocks: static holds it" [ "$(cell "$dir/r.csv" baseline:static violated),$(cell "$dir/r.csv" baseline:default violated)" = 0,1 ]
check "no chance or regret is stated there" [ "$(cell "$dir/r.csv" energyucb bound_break_chance),$(cell "$dir/r.csv" energyucb expected_regret)" = n/a,n/a ]
succeed "of drawn steps" 'breaks slowdown<0.1' "$f" compare harness/experiments/energyucb.json --seeds 1 --policy random --bound 'slowdown<0.1'

# ---- an experiment says them, the command line goes before it ----
cat >"$dir/e.json" <<EOT
{"foldline_experiment": 1, "platform": "a100", "gpus": 1, "traces": ["$root/traces/samples/inference.csv"], "seeds": 2,
 "arrivals": "poisson:rate=20,count=200", "bound": "5%", "bounds": ["latency_p99_s<0.17"],
 "policies": [{"policy": "fixed", "set": {"sm_mhz": {"each": [810, 1005, 1200]}}}]}
EOT
succeed "of an experiment" 'bound on the slowdown 5 %, latency_p99_s<0.17' "$f" compare "$dir/e.json"
succeed "another on the same column" 'bound on the slowdown 5 %, latency_p99_s<0.3,' "$f" compare "$dir/e.json" --bound 'latency_p99_s<0.3'
succeed "another column beside it" 'bound on the slowdown 1 %, latency_p99_s<0.17,' "$f" compare "$dir/e.json" --bound 1%
sed 's/latency_p99_s<0.17/latency_p9_s<0.17/' "$dir/e.json" >"$dir/w.json"
refuse "a wrong one, with its place" 2 "w.json:2:[0-9]+: bounds\[0\]: no column 'latency_p9_s', did you mean 'latency_p9" "$f" compare "$dir/w.json"

# ---- sweep: the same rows, and the bounds are part of what it goes on with ----
succeed "a sweep" written "$f" grid "$dir/e.json" -o "$dir/s.csv"
"$f" compare "$dir/e.json" -o "$dir/e.csv" >"$dir/out"
check "has the rows of compare" diff <(grep -v '^mean,' "$dir/e.csv" | sort) <(sort "$dir/s.csv")
check "and its record the bounds" grep -q '"latency_p99_s<0.17"' "$dir/s.provenance.json"

# ---- report: leads with latency; nobody comes first who breaks a bound; other bounds may be asked for ----
succeed "a page" written "$f" report "$dir/e.csv" -o "$dir/e.html"
text() { sed -e 's/<wbr>//g' -e 's/<[^>]*>//g' -e 's/&lt;/</g' "$1"; }
check "leads with latency" grep -qE '^fixed:sm_mhz=1005 comes first: [0-9.]+ J per request at a p99 latency of [0-9.]+ ms \(the driver.s default' <(text "$dir/e.html")
check "under its bounds" grep -qE 'under the bound of 5 %, latency_p99_s<0.17\. ' <(text "$dir/e.html")
check "with a figure of both" grep -q 'Energy per request against latency' "$dir/e.html"
check "which has the bound" grep -q 'bound 170 ms' <(text "$dir/e.html")
check "and a table that begins with both" grep -q '<table.*id="policies-0".*energy per request, J</th>.*latency p99, ms</th>.*over the bound' "$dir/e.html"
check "whose breaks are named" grep -q 'latency_p99_s<0.17 in 2 of 2' <(text "$dir/e.html")
succeed "a tighter bound" written "$f" report "$dir/e.csv" -o "$dir/t.html" --bound 'latency_p99_s<0.15'
check "another comes first" grep -qE '^fixed:sm_mhz=1200 comes first' <(text "$dir/t.html")
succeed "one that nobody holds" written "$f" report "$dir/e.csv" -o "$dir/n.html" --bound 'latency_p99_s<0.01'
check "none comes first" grep -q '^No policy holds the bounds in every run, so none comes first' <(text "$dir/n.html")
check "nor is it said of any" sh -c '! grep -q "comes first:" "$0"' "$dir/n.html"
cp "$dir/e.csv" "$dir/o.csv"
sed 's/latency_p99_s</latency_p_s</' "$dir/e.provenance.json" >"$dir/o.provenance.json"
refuse "report: a record with none such" 2 "o.provenance.json: options.bounds: no column 'latency_p_s'" "$f" report "$dir/o.csv" -o "$dir/x.html"
refuse "report: no such column" 2 "did you mean 'latency_p9" "$f" report "$dir/e.csv" -o "$dir/x.html" --bound 'latency_p9_s<0.1'
refuse "report: a column without a value" 2 'no row has reward_regret' "$f" report "$dir/e.csv" -o "$dir/x.html" --bound 'reward_regret<1'
check "and no page" test ! -e "$dir/x.html"
for o in "--positions 10" --no-oracle; do
  refuse "search: ${o%% *} is of other commands" 2 "search has no option '${o%% *}'; compare, grid have it \(foldline search --help\)" "$f" search harness/experiments/first-light.json $o
done
refuse "run: seeds are of other commands" 2 "run has no option '--seeds'; compare, grid, search have it" "$f" run x.csv --seeds 5
for o in tune score; do
  refuse "search: --hold-out beside --$o" 2 "hold-out beside --$o, expected either" "$f" search harness/experiments/first-light.json --hold-out workload --$o x
done
refuse "search: nothing to score on" 2 "nothing to score on" "$f" search harness/experiments/first-light.json --score nosuch

finish
