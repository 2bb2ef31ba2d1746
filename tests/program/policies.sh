#!/usr/bin/env bash
# What tests/policies.sh computes, by hand: halves, lengths, late sensors, violations, goals that are held and missed. Then
# its smallest form, and the committed experiment, which is what the search found.
#   tests/program/policies.sh build/foldline
. "$(dirname "$0")/shell.sh"
tables() { python3 "$root/tests/support/policies.py" "$@"; }
sample=traces/samples/energyucb-table1.csv

# ---- halves and lengths ----
tables half $sample 100 tune "$dir/tune.csv"
tables half $sample 100 score "$dir/score.csv"
names() { tail -n +2 "$1" | cut -d, -f1 | sort -u; }
check "every workload is in one half" cmp <(names "$dir/tune.csv" "" && names "$dir/score.csv" | cat) <(names "$dir/tune.csv" && names "$dir/score.csv")
check "and none in both" [ -z "$(comm -12 <(names "$dir/tune.csv") <(names "$dir/score.csv"))" ]
check "all of them" [ "$(cat "$dir/tune.csv" "$dir/score.csv" | grep -v '^workload,' | cut -d, -f1 | sort -u | wc -l)" = 7 ]
check "three to tune on" [ "$(names "$dir/tune.csv" | wc -l)" = 3 ]
check "each takes 100 s at the top clock" awk -F, '$3 == 1600 { n++; if ($6 < 99.999999 || $6 > 100.000001) bad = 1 } END { exit bad || n != 3 }' "$dir/tune.csv"
check "power is what it was" awk -F, '$3 == 800 && ($8 / $6 < $7 * 0.999 || $8 / $6 > $7 * 1.001) { bad = 1 } END { exit bad }' "$dir/tune.csv"
{ echo workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j
  for w in a b; do echo $w,,1000,500,,9,10,; echo $w,,1000,900,,2,10,; echo $w,,700,900,,3,8,; done; } >"$dir/two.csv"
tables half "$dir/two.csv" 10 score "$dir/mem.csv"
check "the highest memory clock counts, and time is in its proportion" [ "$(tail -n +2 "$dir/mem.csv" | cut -d, -f3,4,6 | tr -d '\r' | tr '\n' ' ')" = "1000,900,10.0 700,900,15.0 " ]

# ---- sensors ----
tables sensor models/platforms/v100-300w.json late-0.5 "$dir/late.json"
succeed "half a second late" '^  power +20 +10 +- +500' "$f" list platforms "$dir/late.json"
tables sensor models/platforms/v100-300w.json ideal "$dir/ideal.json"
succeed "ideal" '^  power +1 +1 +- +-' "$f" list platforms "$dir/ideal.json"
tables sensor models/platforms/v100-300w.json platform "$dir/same.json"
check "as they are" cmp <("$f" list platforms "$dir/same.json" | tail -n +2) <("$f" list platforms v100-300w | tail -n +2)

# ---- violations: against the top clock of the same seed ----
{ echo workload,policy,makespan_s,seed,energy_saving_pct,regret_clairvoyant_pct,records
  echo w,maxfreq,10,1,0,5,; echo w,maxfreq,20,2,0,5,
  echo w,fixed:sm_mhz=9,10.5,1,7,0.1,; echo w,fixed:sm_mhz=9,20.5,2,7,0.1,; echo w,fixed:sm_mhz=8,10.51,1,7,n/a,
  echo mean,fixed:sm_mhz=9,99,1,0,0,; } >"$dir/rows.csv"
tables take "$dir/rows.csv" sweep=s seconds=100 bound=0.05 sensor=platform jitter=0 half=score >"$dir/long.csv"
check "5 % is held, 5.1 % is not" [ "$(cut -d, -f7,14 "$dir/long.csv" | tr -d '\r' | tr '\n' ' ')" = "fixed:sm_mhz=9,0 fixed:sm_mhz=9,0 fixed:sm_mhz=8,1 " ]
check "by the seed's own top clock" grep -q '^s,100,0.05,platform,0,score,fixed:sm_mhz=9,cost,w,2,7,0.1,0.024' "$dir/long.csv"

# ---- goals ----
row() { echo "s,$1,0.05,platform,$2,score,\"tightrope:bound=0.05,signal=$3\",$4,w$5,1,10,$6,$7,$8"; }
goals() { tables gates "$dir/goals.csv" >"$dir/said"; }
{ row 100 0 records free 1 0.25 0.049 0; row 100 0 records free 2 0.25 0.049 0; row 30 0 kernels free 1 0.6 0.05 0; } >"$dir/goals.csv"
check "at the goal it is held" goals
check "which is said" grep -q 'held .*100 s, bound 5 %, records free: mean 0.250 % (goal 0.25), worst 0.250 % (goal 1), violated 0/2' "$dir/said"
check "and what was not run" grep -q 'not run .*10 s, bound 10 %, kernels' "$dir/said"
missed() { # NAME WHY ROW...
  printf '%s\n' "${@:3}" >"$dir/goals.csv"
  goals
  check "$1" [ $? = 1 ]
  check "$1: said" grep -q "MISSED .*$2" "$dir/said"
}
missed "a mean above" 'missed: mean' "$(row 100 0 records free 1 0.2501 0.04 0)"
missed "one far off" 'missed: mean, worst' "$(row 100 0 kernels free 1 1.01 0.04 0)"
missed "30 s" 'missed: mean' "$(row 30 0 kernels free 1 0.61 0.04 0)"
missed "10 s" 'missed: mean' "$(row 10 0 kernels free 1 1.51 0.04 0)"
missed "jitter" 'jitter 5 %.*missed: mean' "$(row 100 0.05 kernels free 1 1.01 0.04 0)"
missed "one violation at cost" 'all runs, records: .*missed: 1 violated' "$(row 100 0 records cost 1 "" 0.06 1)"
missed "late sensors" 'late.*missed: mean' "$(row 100 0 kernels free 1 2.01 0.04 0 | sed 's/platform/late-0.5/')"
missed "less than Assure" 'saving above Assure' "$(row 100 0 util cost w 1 0.04 0)" 's,100,0.05,platform,0,score,assure:theta=1,cost,ww,1,10.1,1,0.01,0'
printf '%s\n' "$(row 100 0 util cost w 1 0.04 0)" 's,100,0.05,platform,0,score,assure:theta=1,cost,ww,1,10.1,1,0.06,1' >"$dir/goals.csv"
check "but where Assure breaks the bound it is no measure" goals

# ---- the script ----
bash tests/policies.sh "$f" --tiny >"$dir/tiny" 2>"$dir/err"
check "the smallest form holds every goal" [ $? = 0 ]
check "and says the seed of its halves" grep -q '^seed of the halves: 20$' "$dir/tiny"
for p in fixed assure sweetspot energyucb mf-gpoeo depo odpp bapm; do
  check "it has a row of $p" grep -q "^energyucb-table1 .* $p:.* [0-9]*/4\$" "$dir/tiny"
done
"$f" compare --help all | grep -q -e '--jitter SHARE' && check "with jitter, by seed" grep -qE '^energyucb-table1 +10 +5% platform +5% tightrope:bound=0.05,signal=kernels .*/8$' "$dir/tiny"
check "and late sensors" grep -qE '^energyucb-table1 +10 +5% late-0.5 .*/4$' "$dir/tiny"
refuse "another form" 2 "'--some', expected" bash tests/policies.sh "$f" --some

# ---- the page ----
printf '%s\n' '# t' '' '| policy | a |' '|---|---|---|---|---|' '| old | 1 |' '' 'end' >"$dir/page.md"
{ echo workload,policy,makespan_s,seed,energy_saving_pct,regret_clairvoyant_pct
  echo a,maxfreq,10,1,0,5; echo b,maxfreq,20,1,0,5; echo a,tightrope:bound=0.05,10.5,1,7,1; echo b,tightrope:bound=0.05,21.2,1,5,n/a; } >"$dir/page.csv"
tables page "$dir/page.csv" "$dir/page.md" 0.05
check "its table is made anew" [ "$(tail -n +5 "$dir/page.md" | tr '\n' ';')" = '| `tightrope:bound=0.05` | 6.00 | 1.00 | 6.00 | 1/2 |;;end;' ]

# ---- the experiment ----
refuse "a picture of nothing" 2 "nothing to draw|expected" "$f" plot workloads traces/samples/mix8.csv -o "$dir/no.svg"
check "the experiment is what the search found" cmp harness/experiments/ladder.json \
  <(tables experiment harness/experiments/ladder.csv $sample pvc-max1550x6 0.05)
succeed "it runs" 'tightrope' "$f" compare harness/experiments/ladder.json -o "$dir/e.csv"
check "every run is drawn" "$f" plot workloads "$dir/e.csv" -o "$dir/e.svg"
check "under its title" grep -q 'of every run' "$dir/e.svg"
refuse "nothing to draw" 2 'expected the CSV of compare' "$f" plot workloads "$sample" -o "$dir/no.svg"

finish
