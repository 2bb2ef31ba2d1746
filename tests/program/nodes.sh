#!/usr/bin/env bash
# Many nodes under one budget that is dealt out once: the sum, the rules of dealing, threads, and what is refused.
#   tests/program/nodes.sh build/foldline
. "$(dirname "$0")/shell.sh"
plain=("$root/traces/samples/gridpilot/e1.sweep.csv" --model table --platform v100-300w)
three=("${plain[@]}" --nodes 3 --policy nvboost --json)
of() { # KEY FILE: every value of the key, one a line
  grep -o "\"$1\":[^,}]*" "$2" | sed 's/.*: *//'
}
near() { awk -v a="$1" -v b="$2" -v e="$3" 'BEGIN { exit !(a - b <= e && b - a <= e) }'; }

for deal in equal need sensitivity; do
  "$f" run "${three[@]}" --budget 500 --deal $deal --threads 1 --timeline "$dir/sum.csv" >"$dir/$deal" 2>/dev/null
  check "$deal: the shares are the budget" near 500 "$(of share_w "$dir/$deal" | awk '{ s += $1 } END { print s }')" 0.01
  check "$deal: power keeps to it" near "$(of mean_power_w "$dir/$deal" | head -1)" 495 5
  check "$deal: any number of threads" cmp -s "$dir/$deal" <("$f" run "${three[@]}" --budget 500 --deal $deal --threads 3 2>/dev/null)
done
check "the sum over time has the mean that is printed" near "$(of mean_power_w "$dir/sensitivity" | head -1)" \
  "$(awk -F, '/^[0-9]/ { s += $2; n++ } END { print s / n }' "$dir/sum.csv")" 0.001
check "its peak" near "$(of peak_power_w "$dir/sensitivity")" "$(awk -F, '/^[0-9]/ && $2 > m { m = $2 } END { print m }' "$dir/sum.csv")" 0.001
check "its steepest ramp" near "$(of steepest_ramp_w_per_s "$dir/sensitivity")" "$(awk -F, '/^[0-9]/ {
  r = $2 - p; if (n++ && r * r > m * m) m = r; p = $2 } END { print m }' "$dir/sum.csv")" 0.001
check "equal shares" [ "$(of share_w "$dir/equal" | sort -u | wc -l)" = 1 ]
check "who needs more gets more" [ "$(paste <(of need_w "$dir/need") <(of share_w "$dir/need") | awk '{ printf "%.4f\n", $2 / $1 }' | sort -u | wc -l)" = 1 ]
spread() { of slowdown "$1" | sort -g | awk 'NR == 1 { a = $1 } { b = $1 } END { print b - a }'; }
check "by sensitivity all lose about the same" near "$(awk -v s="$(spread "$dir/sensitivity")" -v e="$(spread "$dir/equal")" 'BEGIN { print (s < e / 2) }')" 1 0
# Without a cut a node is the run of the same seed.
name=$("$f" run "${plain[@]}" --nodes 1 --budget 300 --policy nvboost --json 2>/dev/null | tee "$dir/one" | grep -o '"workload":[^,]*' | head -1 | cut -d'"' -f4)
"$f" run "${plain[@]}" --workload "$name" --units 1 --policy nvboost --json >"$dir/alone" 2>/dev/null
check "a node is a run" [ "$(of energy_j "$dir/one" | head -1)" = "$(of energy_j "$dir/alone" | head -1)" ]
succeed "a policy that reads a target has the share as its target" 'as its target' "$f" run "${plain[@]}" --nodes 2 --budget 400 --policy gridpilot
succeed "compare says what a lock costs against a power limit" 'lock or cap: at the same mean power a lock costs' \
  "$f" compare "${plain[@]}" --policy nvboost --no-oracle
refuse "too little" 2 'power limits of 3 nodes go down to 450 W together' "$f" run "${three[@]}" --budget 400
refuse "no budget" 2 'no --budget given' "$f" run "${three[@]}"
refuse "no nodes" 2 'without --nodes' "$f" run "${plain[@]}" --workload matmul --policy nvboost --budget 400
refuse "a log" 2 'with --nodes' "$f" run "${three[@]}" --budget 500 --log "$dir/no.csv"
refuse "no power limit" 2 'has no power limit' "$f" run "${three[@]}" --budget 500 --wall off
finish
