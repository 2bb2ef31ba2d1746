#!/usr/bin/env bash
# What a newcomer types who knows other tools: one message leads to the right command, option, name or value.
. "$(dirname "$0")/shell.sh"

mix=traces/samples/mix8.csv
sweep=traces/samples/energyucb-table1.csv
light=harness/experiments/first-light.json
on=(--platform rtx4070-laptop --no-oracle)
"$f" compare $mix "${on[@]}" --policy energyucb --seeds 3 -o "$dir/r.csv" >/dev/null 2>&1

# leads COMMAND_LINE => what the one line on standard error says
while IFS= read -r row; do
  line=${row%% => *}
  # shellcheck disable=SC2086 # words
  refuse "$line" 2 "${row#* => }" "$f" ${line//RESULT/$dir/r.csv}
done <<END_OF_ROWS
simulate $mix => 'run'
oracle $mix => 'compare'
diff RESULT RESULT => 'regress'
sweep $light => 'grid'
merge a b => 'grid'
resume g.csv => 'grid'
optimize $mix => 'search'
ci $light => 'regress'
recommend x.csv => 'advise'
calibrate x.csv => 'fit'
replay d.csv => 'verify'
check d.csv => 'verify'
convert x.csv => 'import'
stats $mix => 'show'
draw RESULT => 'plot'
reset => 'restore'
policies => 'list policies'
platforms => 'list platforms'
requests => 'synth requests'
power-limit => 'fit power-limit'
list policy => 'policies'
show $mix --wide => show has no option '--wide'; compare, search, plan have it \(foldline show --help\)
grid $mix --policy assure --resume => starts again with the same -o
compare $mix --platform h200 --policy default => nvboost is the driver
compare $mix --platform h200 --policy all => repeat --policy
search $mix --policy assure --set theta=0.8:0.9 => with A/B for two values: --policy NAME:P=A/B
advise RESULT => is a result, .*foldline show
verify RESULT => is a result, .*run --log FILE
list platform h100 => 'platforms'
list gpus => 'platforms'
fit chip x.csv => 'device'
fit power_limit x.csv => 'power-limit'
help formats => 'import'
compare $mix --server 2 => did you mean '--servers'
compare $mix --platform h200 --policy assure:theta=0.8:0.9 => '0.8:0.9' is not a number; compare, grid and search try each value of --policy NAME:theta=A/B/C
search $mix --platform h200 --policy assure:theta=0.8..0.9 => '0.8\.\.0.9' is not a number; .*NAME:theta=A/B/C
run $mix --platform h200 --policy assure:theta=0.8/0.9 => '0.8/0.9' is not a number; compare, grid and search try .*NAME:theta=A/B/C
search $mix --platform h200 --policy assure:theta=0.8,0.85 => several values of one are parameter=A/B
compare $mix --policies assure => did you mean '--policy'
compare $mix --output x.csv => did you mean '-o'
compare $mix --csv x.csv => did you mean '-o'
compare $mix --gpu h200 => did you mean '--platform'
compare $mix --slowdown 5% => did you mean '--bound'
compare $mix --theta 0.9 => --policy NAME:P=V
compare $mix --platform h200 --bound 5 => 0\.05 or 5%
compare $mix --platform h200 --policy assure,bapm => repeat --policy
compare $mix --platform v100 --policy assure => did you mean 'v100-1
compare $mix --platform rtx4070 --policy assure => did you mean 'rtx4070-laptop'
compare $mix --platform h200 --policy mine.c => is a source, expected a plug-in: cc .*-DPOLICY_PLUGIN
compare $mix --platform h200 --policy powercap => 'cap-dynamic-min'
compare $mix --platform h200 --policy geepafs => 'assure'
run $mix --platform h200 --policy fixed --set sm=1200 => expected one of .*sm_mhz
run $mix --platform h200 --seeds 5 => run has no option '--seeds'; compare, grid, search have it; did you mean '--seed'\? \(foldline run --help\)
compare RESULT RESULT => is a result, .*show, plot and report read results, regress compares two
compare $mix --platform generic --servers 2 --policy assure => fit serving.*synth requests
regress RESULT RESULT --bound 5% => --bound has no effect on two results
regress RESULT RESULT --fail-if sm_mhz_mean>+1% => no column 'sm_mhz_mean'
regress RESULT RESULT RESULT => two results to compare
regress RESULT => is a result, expected another one beside it, or a baseline: regress EXPERIMENT.json --bless
regress $light --threshold 1% => did you mean '--fail-if'
verify d.csv mine.so => --policy NAME or FILE.so
plot RESULT => first what to draw, one of: pareto
plot pareto RESULT => -o pareto.svg
report RESULT => -o report.html
search $mix --policy assure --grid theta=1 => did you mean '--policy'
platform h100 => 'list platforms'
plattform h100 => 'list platforms'
list platforms RTX_309 => the board 'rtx3090'
list platforms qqqq => or a board
compare $mix --platform rtx-3090 --policy assure => fit device --facts rtx3090
fit device --facts rtx309 -o x.json => no board 'rtx309', did you mean 'rtx3090'
advise $sweep --workload 505.lbn => no workload '505.lbn', did you mean '505.lbm'
advise $sweep --sm-mhz 900 => advise: --sm-mhz has no effect without logs
advise $light --workload x => advise: --workload has no effect on an experiment
END_OF_ROWS

# ---- names of boards and platforms as their makers write them ----
succeed "a board" '^rtx3090: ' "$f" list platforms "RTX 3090"
succeed "the facts of a board" 'known chips' "$f" fit device --facts "RTX 3090" -o "$dir/rtx.json"
succeed "a platform" '"rtx4070-laptop"|rtx4070-laptop' "$f" run $mix --platform "RTX4070 Laptop" --policy nvboost

# ---- one workload of a sweep ----
advice() { "$f" advise $sweep --json "$@" | python3 -c 'import json, sys; print([a for a in json.load(sys.stdin)["advice"] if a["workload"] == "505.lbm"])'; }
check "as in advice on all" test "$(advice)" = "$(advice --workload 505.lbm)"
check "alone" test "$("$f" advise $sweep --workload 505.lbm --json | grep -c '"workload"')" = 1

# ---- a trace whose kernel classes were left behind ----
cp $mix "$dir/left.csv"
refuse "it says who names them, and what to do" 2 "left\\.csv:[0-9]+: kinds is 'mix8\\.kinds\\.csv'.*--kinds FILE or --assume" \
  "$f" compare "$dir/left.csv" "${on[@]}" --policy nvboost
refuse "advice has no --assume" 2 "expected that file beside this one, --kinds FILE$" "$f" advise "$dir/left.csv" --platform a100
check "--assume does" "$f" run "$dir/left.csv" --platform a100 --policy nvboost --assume balanced
succeed "show shows it" '^kinds file  mix8\.kinds\.csv$' "$f" show "$dir/left.csv"

printf 'time,GPU,watts\n0,0,100\n1,0,120\n' >"$dir/own.csv"
refuse "a map the wrong way round" 2 'expected t=time' "$f" import "$dir/own.csv" --map time=t,watts=power_w -o "$dir/own.out.csv"

# ---- forms that are taken ----
for form in "compare -h" "help compare"; do
  # shellcheck disable=SC2086
  check "$form" cmp <("$f" $form) <("$f" compare --help)
done
check "an option behind or before what it belongs to" cmp <("$f" compare $mix "${on[@]}" --policy nvboost --bound 0.05) \
  <("$f" compare --bound=5% --policy nvboost "${on[@]}" $mix)

# ---- verify says what decided ----
"$f" run $mix --platform rtx4070-laptop --policy assure --log "$dir/d.csv" >/dev/null
check "the parameters that were changed" sh -c '"$0" verify "$1" --set theta=0.8 | grep -q "^decided by policy assure with theta=0.8 on "' "$f" "$dir/d.csv"
check "in the JSON too" sh -c '"$0" verify "$1" --set theta=0.8 --json | grep -q "\"set\": *{\"theta\": *\"0.8\"}"' "$f" "$dir/d.csv"

# ---- what show shows ----
succeed "the head of a trace" '^source +foldline synth' "$f" show $mix --head
check "which its text has only then" sh -c '! "$0" show "$1" | grep -q ^source' "$f" $mix
check "in the JSON too" test "$("$f" show $mix --head --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["results"][0]["head"]["kinds"])')" = mix8.kinds.csv
COLUMNS=80 "$f" show "$dir/r.csv" >"$dir/show"
check "seeds of a result stand in its table" grep -qE '^workload +policy .* seed( |$)' "$dir/show"

# ---- what a grid counts ----
succeed "runs, and the baselines" '^3 runs, and the baselines of 1 workload; 0 of these 4 from an earlier start$' \
  "$f" grid $mix "${on[@]}" --policy energyucb --seeds 3 -o "$dir/g.csv"

# ---- a margin on latencies says its sign ----
for policy in throttllem ecofreq biscale-decode; do
  succeed "margin of $policy" '^  margin .*-0\.05 aims 5 % below' "$f" list policies $policy
done
finish
