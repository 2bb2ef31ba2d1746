#!/usr/bin/env bash
# The job of someone with a policy of their own: copied from the skeleton, built as the manual says, its parameters searched,
# compared and reported, with nothing of the program rebuilt. It goes by README.md, harness/manual and
# policies/README.md alone.
#   tests/program/own_policy.sh build/foldline
. "$(dirname "$0")/shell.sh"
cd "$dir" || exit 1

cp "$root/policies/skeleton.c" mine.c
check "it builds as the manual says" gcc -O2 -fPIC -shared -fvisibility=hidden -DPOLICY_PLUGIN -I"$root" mine.c -o mine.so -lm
succeed "a trace to try it on" . "$f" synth -o demo.csv --kernels 20000 --mean-us 500 --seed 7
succeed "it runs" 'skeleton|mine' "$f" run demo.csv --platform generic --policy ./mine.so
succeed "its parameters are listed" '^  low_pct .* 60 %' "$f" list policies ./mine.so

# Thresholds and target were fixed before the first run.
cat >mine.json <<'EOT'
{"foldline_experiment": 1, "about": "Which thresholds of mine, for work that leaves the GPU idle now and then?", "platform": "generic",
 "traces": ["demo.csv"], "bounds": ["5%", "peak_power_w<1000"],
 "policies": ["nvboost", {"policy": "./mine.so", "set": {"low_pct": {"each": [40, 60, 80]}, "high_pct": {"each": [85, 95]}}}]}
EOT
succeed "it is searched" '^\./mine[^ ]+ .* held$' "$f" search mine.json -o tried.csv
found=$(awk '/^policy / { getline; print $1; exit }' out)
shown=$(grep -cE '^(\./mine|nvboost).* (held|broken)$' out)
check "with the runners-up: $shown" [ "$shown" = 5 ]
check "and all that were tried in the file" [ "$(wc -l <tried.csv)" = 8 ]
check "and checked" grep -q 'check: all 7 candidates on 1 of 1 pairs' out
"$f" synth -o brief.csv --kernels 200 >/dev/null # it ends before the first decision of assure
succeed "equal candidates are a tie" '^tie: 1 other candidate had' "$f" search brief.csv --platform generic --policy assure:theta=0.95/0.9
succeed "compared" 'every run holds all bounds|^violated:' "$f" compare mine.json -o mine.csv
# by column name, the best of those that hold the bounds
at() { head -n 1 mine.csv | tr ',' '\n' | grep -nx "$1" | cut -d: -f1; }
check "the best that holds is the one found: $found" [ "$found" = "$(awk -F, -v s="$(at energy_saving_pct)" -v v="$(at violated)" '
  NR > 1 && $1 != "mean" && $2 !~ /^baseline/ && $v == 0 && (best == "" || $s > most) { best = $2; most = $s } END { print best }' \
  <(sed -E 's/"([^",]*),([^",]*)"/\1;\2/g' mine.csv) | tr ';' ',')" ]
succeed "reported" written "$f" report mine.csv -o mine.html
check "the page names it" grep -q "mine" mine.html
check "where it came from stands beside it" grep -q '"plug_in"' mine.provenance.json
finish
