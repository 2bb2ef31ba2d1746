#!/usr/bin/env bash
# Planning the clocks of a pipeline as a user does it: one plan, a frontier, replays, stragglers and limits, and what is wrong.
. "$(dirname "$0")/shell.sh"
export COLUMNS=300

sample=traces/samples/four-stages.pipeline.csv base=traces/samples/perseus/A100-bert
succeed "the plan of least energy" '^plan 0 ' "$f" plan "$sample"
succeed "beside it the default" '^default ' "$f" plan "$sample" --platform a100-pcie
succeed "within a slowdown" '^plan 0 .* +6\.[0-9]+ +4\.9[0-9]$' "$f" plan "$sample" --slowdown 5%
succeed "within a time" '^plan 0 .* +6\.(4[0-9]+|5000) ' "$f" plan "$sample" --time 6.5
succeed "another objective has its bound" 'least EDP: plan 0, .* no plan has less than' "$f" plan "$sample" --objective edp
# The sample states three clocks: one of them for all must not beat the plan of least energy (1 J below it once).
"$f" plan "$sample" --rows "$dir/least.csv" >/dev/null
check "one clock for all does not beat it" awk -F, '$1 == "plan" { p = $4 } $1 == "static" && (s == "" || $4 < s) { s = $4 } END { exit !(p > 0 && p <= s) }' "$dir/least.csv"
# The frontier begins a ten-thousandth above the shortest time; another objective has a plan before that, too.
succeed "another objective, hardly any time" '^least EDP: plan 0, ' "$f" plan "$sample" --objective edp --time 6.3803
succeed "a straggler" 'all at their fastest take (7|8)\.' "$f" plan "$sample" --slow rank=0:1.2
succeed "a power limit" '^plan 0 ' "$f" plan "$sample" --power-limit rank=3:240 --power-limit rank=1:220 --time 7.5

# A frontier: the same bytes again, and no plan below its bound.
for n in 1 2; do "$f" plan "$sample" --platform a100-pcie --frontier --points 8 -o "$dir/$n.plan.csv" --rows "$dir/$n.csv" >"$dir/$n.txt"; done
for x in plan.csv csv txt; do check "the same $x again" cmp -s "$dir/1.$x" "$dir/2.$x"; done
check "it is a plan file" grep -qx '# foldline-plan 1' "$dir/1.plan.csv"
check "that names its pipeline" grep -qx "# pipeline: $sample" "$dir/1.plan.csv"
check "energy falls with time, and is not below the bound" python3 - "$dir/1.csv" <<'END'
import csv, sys
rows = [r for r in csv.DictReader(open(sys.argv[1]))]
plans = [(float(r["time_s"]), float(r["energy_j"])) for r in rows if r["kind"] == "plan"]
assert len(plans) == 8 and all(a[0] < b[0] and a[1] > b[1] for a, b in zip(plans, plans[1:])), plans
assert all(float(r["energy_j"]) >= float(r["bound_j"]) for r in rows), rows
assert {r["kind"] for r in rows} == {"plan", "static", "rank", "default"}
END
check "drawn" "$f" plot frontier "$dir/1.csv" -o "$dir/1.svg"
check "a picture" grep -q 'a clock for each rank' "$dir/1.svg"

# Replayed by the policy, on boards whose clocks change at once, a plan takes what the planner said.
sed 's/"call_ms": 4.5, "settle_ms": 20/"call_ms": 0, "settle_ms": 0/' models/platforms/a100-pcie.json >"$dir/at-once.json"
check "the platform was changed" grep -q '"settle_ms": 0,' "$dir/at-once.json"
for n in 0 3 7; do
  "$f" run "$sample" --platform "$dir/at-once.json" --policy "plan:plan=$dir/1.plan.csv#$n" --json >"$dir/run.json"
  check "plan $n replays within 0.1 %" python3 - "$dir/1.csv" "$dir/run.json" "$n" <<'END'
import csv, json, sys
row = [r for r in csv.DictReader(open(sys.argv[1])) if r["kind"] == "plan"][int(sys.argv[3])]
run = json.load(open(sys.argv[2]))
assert abs(run["makespan_s"] / float(row["time_s"]) - 1) < 0.001, (run["makespan_s"], row)
assert abs(run["energy_j"] / float(row["energy_j"]) - 1) < 0.001, (run["energy_j"], row)
END
done

# Executed plans, and a second fit that shares none with the first.
"$f" fit pipeline $base --learn half -o "$dir/half.csv" >/dev/null
"$f" fit pipeline $base --learn others -o "$dir/others.csv" >/dev/null
succeed "beside executed plans" 'as predicted, both: at or below [0-9]+ of [0-9]+ measured plans' "$f" plan "$dir/half.csv" --frontier --points 12 --measured $base
succeed "judged by another fit" 'as the judge predicts both: at or below' "$f" plan "$dir/half.csv" --frontier --points 12 --measured $base --judge "$dir/others.csv" \
  --rows "$dir/judged.csv"
check "the bound is near at each point" python3 -c "
import csv
gaps = [float(r['gap_pct']) for r in csv.DictReader(open('$dir/judged.csv')) if r['kind'] == 'plan']
assert len(gaps) > 8 and max(gaps) < 0.5, gaps"
# Executed plans that a limit forbids may well be below what the plans within it can reach: no bound is told of them.
"$f" plan "$sample" --frontier --points 4 --measured $base --power-limit rank=0:220 --rows "$dir/limit.csv" >/dev/null
check "no bound for what may not be planned" awk -F, '$1 == "measured" { n++; bad += $5 != "n/a" || $6 != "n/a" } $1 != "measured" && NR > 1 { bad += !($6 >= 0) } END { exit !(n == 15 && !bad) }' "$dir/limit.csv"
check "a bound for what may" awk -F, '$1 == "measured" { n++; bad += !($6 >= 0) } END { exit !(n == 15 && !bad) }' "$dir/judged.csv"
check "drawn with both" "$f" plot frontier "$dir/judged.csv" -o "$dir/judged.svg"
check "executed plans are in it" grep -q 'measured: executed plans' "$dir/judged.svg"

# ---- what is wrong ----
refuse "no pipeline" 2 'expected one PIPELINE' "$f" plan
refuse "no such file" 2 'nowhere\.csv' "$f" plan nowhere.csv
refuse "no such platform" 2 "a100-pcei" "$f" plan "$sample" --platform a100-pcei
refuse "another objective" 2 "edq" "$f" plan "$sample" --objective edq
refuse "sooner than can be" 2 'no plan takes 1 s or less, expected at least 6\.38 s' "$f" plan "$sample" --time 1
refuse "two times" 2 'expected one of them' "$f" plan "$sample" --time 7 --slowdown 5%
refuse "a time for a frontier" 2 'frontier is of all times' "$f" plan "$sample" --frontier --time 7
refuse "executed plans beside one" 2 'stand beside a frontier, expected --frontier' "$f" plan "$sample" --measured $base
refuse "a rank that there is not" 2 'no rank 4, expected 0 to 3' "$f" plan "$sample" --slow rank=4:1.2
refuse "a limit of a rank that there is not" 2 'no such rank, expected 0 to 3' "$f" plan "$sample" --power-limit rank=9:200
refuse "a factor that is none" 2 "expected rank=R:X, such as rank=3:1.2" "$f" plan "$sample" --slow 3:1.2
refuse "a limit below all clocks" 2 'rank 1: its forward draws more than the limit of 50 W at every clock' "$f" plan "$sample" --power-limit rank=1:50
refuse "a judge of another pipeline" 2 '4 ranks, 1 chunks and 8 microbatches, expected 4, 1 and 32' "$f" plan "$sample" \
  --judge <(sed 's/microbatches: 32/microbatches: 8/' "$sample")
refuse "plans of another pipeline" 2 'microbatch' "$f" plan <(sed 's/microbatches: 32/microbatches: 8/' "$sample") --frontier --measured $base
sed 's/^\*,forward,1200.*/*,forward,1200,x,240/' "$sample" >"$dir/broken.csv"
refuse "a broken file, nothing written" 2 'broken\.csv:[0-9]+:[0-9]+: time_s' "$f" plan "$dir/broken.csv" -o "$dir/none.plan.csv" --rows "$dir/none.csv"
unwritten "a folder that there is not" '^plan ' "$f" plan "$sample" -o "$dir/nowhere/none.plan.csv"
unwritten "and no plan beside it" '^plan ' "$f" plan "$sample" -o "$dir/none.plan.csv" --rows "$dir/nowhere/none.csv"
printf 'kind,plan,time_s\nplan,0,1\n' >"$dir/short.csv"
refuse "another table drawn" 2 "short\.csv:1:1: no column 'energy_j', expected the file of foldline plan --rows" "$f" plot frontier "$dir/short.csv" -o "$dir/none.svg"
sed 's/1f1b/list/;5i # order: list.csv' "$sample" | sed 's/stages: 4/stages: 1/;s/microbatches: 32/microbatches: 1/' >"$dir/list.pipeline.csv"
printf '%s\n' stage,index,instruction,microbatch,microbatch2 0,0,forward,0,-1 0,1,backward,0,-1 >"$dir/list.csv"
refuse "ranks that do not end together" 2 "stage 0 does not end with 'step'" "$f" plan "$dir/list.pipeline.csv"

# Interrupted in the midst of it: no file, and none half-written.
mkdir "$dir/cut"
sed 's/microbatches: 32/microbatches: 4096/' "$sample" >"$dir/long.csv"
"$f" plan "$dir/long.csv" --frontier --points 2000 -o "$dir/cut/a.plan.csv" --rows "$dir/cut/a.csv" >"$dir/out" 2>&1 &
pid=$!
sleep 0.5
check "it is at work" kill -0 $pid
kill -TERM $pid
wait $pid 2>/dev/null
check "nothing is left" test -z "$(ls -A "$dir/cut")"
check "nothing of what was refused" sh -c "! ls '$dir'/none.* 2>/dev/null"
finish
