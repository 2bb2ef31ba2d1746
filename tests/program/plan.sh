#!/usr/bin/env bash
# Plans of clocks replayed at iteration markers, as a user does it: files that are right and wrong, stragglers, limits, the picture.
. "$(dirname "$0")/shell.sh"

sample=traces/samples/four-stages.pipeline.csv measured=traces/samples/perseus/A100-bert.plans.csv
run() { "$f" run "$sample" --platform a100-pcie "$@"; }
number() { "$@" --json 2>/dev/null | sed -n "s/^.*\"$key\":[[:space:]]*\([0-9.e+-]*\).*\$/\1/p" | head -1; }

printf '%s\n' '# foldline-plan 1' rank,instruction,first_microbatch,count,sm_mhz 0,forward,0,32,1200 0,backward,0,16,1410 0,backward,16,16,1395 \
  2,forward,0,32,1095 2,backward,0,32,1050 >"$dir/a.plan.csv"
succeed "a plan by instruction" '1395 MHz' run --policy plan --set plan="$dir/a.plan.csv" --log "$dir/log.csv"
succeed "its log is replayed" '0 differ' "$f" verify "$dir/log.csv"
check "the log says what woke it" grep -q '^1,[0-9]*,host,,1,' "$dir/log.csv"
sed 's/^1,\([0-9]*\),host,,1,,,1,/1,\1,host,,1,,,0,/' "$dir/log.csv" >"$dir/other.csv"
"$f" verify "$dir/other.csv" >"$dir/differs"
check "what it asks to be woken by is part of the log" grep -q 'step 1, .* host: wake recorded 0, decided 1' "$dir/differs"
succeed "an executed plan of many" '1065 MHz' run --policy plan --set plan="$measured#8"
succeed "beside other policies" 'plan' "$f" compare "$sample" --platform a100-pcie --policy "plan:plan=$dir/a.plan.csv" --policy maxfreq -o "$dir/c.csv"
check "the record names the plan" grep -q '"plan":[[:space:]]*0' "$dir/c.provenance.json"
succeed "a table of one's own" 'plan on' run --policy plan --set plan=<(printf 'gpu,count,sm_mhz\n0,1,1200\n0,1,1410\n')

refuse "one of many, unnamed" 2 'has 15 plans, expected .*#NUMBER' run --policy plan --set plan="$measured"
refuse "a plan that there is not" 2 'no plan 7, expected one of 15, 0 to 28' run --policy plan --set plan="$measured#7"
sed 's/1395/1400/' "$dir/a.plan.csv" >"$dir/bad.csv"
refuse "a clock off the ladder" 2 "bad.csv:5: sm_mhz: 1400 MHz is not on the SM ladder of rank 0's board; the next ones are 1395 and 1410" run --policy plan --set plan="$dir/bad.csv"
sed '/16,16/d' "$dir/a.plan.csv" >"$dir/bad.csv"
refuse "an instruction missing" 2 'no clock for the backward of microbatch 16 of rank 0' run --policy plan --set plan="$dir/bad.csv"
refuse "without a pipeline" 2 'expected it for a scene of a pipeline' "$f" run traces/samples/mix8.csv --platform a100-pcie --policy plan --set plan="$dir/a.plan.csv"
refuse "live" 2 'expected it for a scene of a pipeline' "$f" live --policy plan --set plan="$dir/a.plan.csv"

# Stragglers and limits.
key=makespan_s
plain=$(number run --policy nvboost) slow=$(number run --policy nvboost --slow rank=0:1.2) capped=$(number run --policy fixed:power_limits_w=300/150/300/300)
# Rank 0 computes for 32 x (44.5 + 129.5) ms: a fifth more of that is the most that the iteration can lose, and most of it is lost.
if awk -v a="$plain" -v b="$slow" 'BEGIN { most = 0.2 * 32 * 0.174; exit !(b - a > 0.8 * most && b - a < most + 1e-9) }'; then ok "a straggler"; else bad "a straggler" "$plain and $slow s"; fi
if awk -v a="$plain" -v b="$capped" 'BEGIN { exit !(b > a) }'; then ok "a limit on one board"; else bad "a limit on one board" "$plain and $capped s"; fi
refuse "a straggler that there is not" 2 'no rank 4, expected 0 to 3' run --policy nvboost --slow rank=4:1.2
refuse "a straggler of no pipeline" 2 '--slow has no effect without a pipeline' "$f" run traces/samples/mix8.csv --platform a100-pcie --policy nvboost --slow rank=0:1.2
refuse "a limit for three of four" 2 'one limit for each GPU' run --policy fixed:power_limits_w=300/150/300

# What each rank did: bars that follow each other and hold the energy of the run.
succeed "the instructions" 'makespan' run --policy plan --set plan="$dir/a.plan.csv" --instructions "$dir/i.csv"
key=energy_j
joules=$(number run --policy plan --set plan="$dir/a.plan.csv")
if awk -F, -v all="$joules" 'NR > 1 { e += ($6 - $5) * $8; if ($1 == rank && ($5 - end) ^ 2 > 1e-16) exit bad = 1; rank = $1; end = $6 } END { exit bad || !(all > 0 && (e / all - 1) ^ 2 < 1e-6) }' "$dir/i.csv"
then ok "they follow each other and hold its energy"; else bad "they follow each other and hold its energy" "$joules J"; fi
check "128 forwards and as many backwards" test "$(grep -c ',forward,' "$dir/i.csv") $(grep -c ',backward,' "$dir/i.csv")" = "128 128"
if command -v gnuplot >/dev/null; then
  check "their picture" "$f" plot gantt "$dir/i.csv" -o "$dir/g.svg"
  check "of two plans" "$f" plot gantt "$dir/i.csv" "$dir/i.csv" -o "$dir/two.svg"
  check "each with its ranks" test "$(grep -c 'rank 3' "$dir/g.svg") $(grep -c 'rank 3' "$dir/two.svg")" = "1 2"
  check "waiting is a band of its own colour" grep -qiE 'ece2c6|236, *226, *198' "$dir/g.svg"
  awk -F, -v OFS=, 'NR == 1 { print; next } { for (k = 0; k < 96; k += 4) { r = $0; sub(/^[0-9]*/, $1 + k, r); print r } }' "$dir/i.csv" >"$dir/many.csv"
  check "96 ranks" "$f" plot gantt "$dir/many.csv" -o "$dir/many.svg"
  check "their labels keep apart" test "$(grep -c 'rank [0-9]' "$dir/many.svg")" = 48
fi
refuse "three plans in a picture" 2 '3 inputs, expected one or two' "$f" plot gantt "$dir/i.csv" "$dir/i.csv" "$dir/i.csv" -o "$dir/three.svg"
refuse "two results in one" 2 '2 inputs, expected one$' "$f" plot pareto "$dir/i.csv" "$dir/i.csv" -o "$dir/three.svg"

# Training has a process for each GPU: what one sets keeps none of the others waiting.
key=policy_cost_s
one=$(number run --policy plan --set plan="$measured#28" --setting-hosts one) each=$(number run --policy plan --set plan="$measured#28")
if awk -v a="$one" -v b="$each" 'BEGIN { exit !(b > 0 && b < a / 3) }'; then ok "a host for each rank"; else bad "a host for each rank" "$one and $each s"; fi
succeed "it is told" 'busiest host.s time, one for each GPU' run --policy plan --set plan="$measured#28"
succeed "so is one host" 's of the host.s time' run --policy plan --set plan="$measured#28" --setting-hosts one
check "and recorded" grep -q '"setting_hosts":[[:space:]]*"per-gpu"' "$dir/c.provenance.json"
refuse "hosts that nobody knows" 2 "setting-hosts 'two', expected one of one, per-gpu" run --policy plan --set plan="$measured#28" --setting-hosts two
refuse "instructions of no pipeline" 2 '--instructions needs a pipeline' "$f" run traces/samples/mix8.csv --platform a100-pcie --policy nvboost --instructions "$dir/n.csv"
finish
