#!/usr/bin/env bash
# One question asked of several commands has one answer: shares agree within 0.2 points, energies and times within
# 0.5 %. The one permitted difference is a stated option with another default: advise predicts clocks between measured
# ones, compare does so with --model fitted.
. "$(dirname "$0")/shell.sh"

value() { # FILE EXPRESSION of d
  python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print($2)" "$1" 2>&1 | tail -1
}
row() { printf 'next(r["%s"] for r in d["rows"] if r["policy"].startswith("%s"))' "$2" "$1"; } # of a policy: its column
agree() {                                                                                      # NAME UNIT A B...: points or %
  local name=$1 unit=$2
  shift 2
  if awk -v unit="$unit" 'BEGIN { for (i = 1; i < ARGC; i++) { x = ARGV[i]; if (x !~ /^-?[0-9.]+(e[-+]?[0-9]+)?$/) exit 1
    low = i == 1 || x + 0 < low ? x + 0 : low; high = i == 1 || x + 0 > high ? x + 0 : high }
    exit !(unit == "points" ? high - low <= 0.2 : high <= low * 1.005) }' "$@"; then ok "$name"; else bad "$name" "$*"; fi
}
# run_and_compare NAME CLOCK SCENE...: the driver's default and a fixed clock, by both commands
run_and_compare() {
  local name=$1 clock=$2 k
  shift 2
  "$f" run "$@" --policy nvboost --json >"$dir/default.json" 2>"$dir/err"
  "$f" run "$@" --policy "fixed:$clock" --json >"$dir/fixed.json" 2>>"$dir/err"
  "$f" compare "$@" --policy "fixed:$clock" --json >"$dir/compare.json" 2>>"$dir/err"
  for k in energy_j makespan_s; do
    agree "$name: $k of the default" % "$(value "$dir/default.json" "d['$k']")" "$(value "$dir/compare.json" "$(row baseline:default $k)")"
    agree "$name: $k at $clock" % "$(value "$dir/fixed.json" "d['$k']")" "$(value "$dir/compare.json" "$(row fixed $k)")"
  done
}
saving() { awk -v a="$(value "$dir/default.json" "d['energy_j']")" -v b="$(value "$dir/fixed.json" "d['energy_j']")" 'BEGIN { print 100 * (1 - b / a) }'; }
slowdown() { awk -v a="$(value "$dir/default.json" "d['makespan_s']")" -v b="$(value "$dir/fixed.json" "d['makespan_s']")" 'BEGIN { print 100 * (b / a - 1) }'; }
# advised NAME SCENE...: what advise found (advice.json), by run and compare at its clock
advised() {
  local name=$1
  shift
  run_and_compare "$name" "$(value "$dir/advice.json" "','.join('%s=%g' % (k, d['advice'][0][k]) for k in ('sm_mhz', 'mem_mhz') if d['advice'][0][k])")" "$@"
  agree "$name: the advised saving" points "$(value "$dir/advice.json" "d['advice'][0]['saving_pct']['value']")" "$(saving)" \
    "$(value "$dir/compare.json" "$(row fixed energy_saving_pct)")"
  agree "$name: its slowdown" points "$(value "$dir/advice.json" "d['advice'][0]['slowdown_pct']['value']")" "$(slowdown)" \
    "$(value "$dir/compare.json" "100 * $(row fixed slowdown)")"
}

# Recordings of kernels; the best static clock is the advised one where the bound leaves it. mix8 takes a minute.
mix=traces/samples/mix8.csv
kernels() { # TRACE PLATFORM
  local name="${1##*/} on $2"
  "$f" advise "$1" --platform "$2" --bound 400% --json >"$dir/advice.json" 2>"$dir/err"
  advised "$name" "$1" --platform "$2"
  agree "$name: the best static clock" points "$(value "$dir/advice.json" "d['advice'][0]['saving_pct']['value']")" \
    "$(value "$dir/compare.json" "$(row baseline:static energy_saving_pct)")"
}
scholes=traces/samples/sweetspot-blackscholes.csv
kernels $scholes rtx4070-laptop
[ -z "${FL_NIGHTLY-}" ] || kernels $mix rtx4070-laptop

# A measured sweep at measured clocks, and between them with the same model. Two memory clocks.
sweep=traces/samples/energyucb-528.pot3d.csv
"$f" advise $sweep --platform pvc-max1550x6 --json >"$dir/advice.json" 2>"$dir/err"
advised "a sweep" $sweep --platform pvc-max1550x6
awk 'BEGIN { print "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w"
  for (m = 500; m <= 1000; m += 500) for (f = 600; f <= 1500; f += 150)
    printf "a,,%d,%d,,%.4f,%.3f\n", f, m, 8 + 3 * 1500 / f + 500 / m, 20 + 0.02 * m + f / 20 + (f / 1000) ^ 3 * 30 }' >"$dir/mem.csv"
if [ -n "${FL_NIGHTLY-}" ]; then # 10 s of processor time
  "$f" advise "$dir/mem.csv" --platform generic --bound 10% --json >"$dir/advice.json" 2>"$dir/err"
  advised "a sweep of two memory clocks" "$dir/mem.csv" --platform generic --model fitted
fi

# Between measured clocks, which advise says; and under limits, where advise has rows that compare simulates.
awk 'BEGIN { print "workload,sm_mhz,time_s,power_w"
  for (f = 510; f <= 1410; f += 300) printf "a,%d,%.4f,%.3f\n", f, 8 + 3 * 1410 / f, 60 + f / 20 + (f / 1000) ^ 3 * 40 }' >"$dir/between.csv"
"$f" advise "$dir/between.csv" --platform a100-pcie --bound 10% --json >"$dir/advice.json" 2>"$dir/err"
advised "between measured clocks" "$dir/between.csv" --platform a100-pcie --model fitted
succeed "which are not called measured" '^a: 1035 MHz instead of 1410, the first not measured but predicted' "$f" advise "$dir/between.csv" --platform a100-pcie --bound 10%
succeed "nor without a platform" '^a: 1035 MHz instead of 1410, the first not measured but predicted' "$f" advise "$dir/between.csv" --bound 10%
printf '%s\n' workload,sm_mhz,power_cap_w,time_s,power_w a,1005,150,22.6,139.9 a,1005,300,22.6,145.1 a,1410,150,23.5,149 a,1410,300,22.6,228 >"$dir/caps.csv"
succeed "rows under limits: advise says what measures others" 'as they were measured \(tune --caps measures others\): 2' "$f" advise "$dir/caps.csv" --platform a100-pcie
succeed "compare says so too" '^baseline:static' "$f" compare "$dir/caps.csv" --platform a100-pcie
check "in its first lines" grep -q "their power limit lies below its highest, 300 W: the platform's laws say what a limit does, and advise what was measured" "$dir/err"

# Logs of two runs, as a sweep, tell what the runs took.
for mhz in 1200 1500; do
  "$f" run $scholes --platform rtx4070-laptop --policy fixed:sm_mhz=$mhz --telemetry "$dir/job@$mhz.csv" --json >"$dir/$mhz.json"
done
"$f" fit logs "$dir/job@1200.csv" "$dir/job@1500.csv" -o "$dir/logs.csv" >"$dir/out" 2>"$dir/err"
for mhz in 1200 1500; do
  agree "a log at $mhz MHz: energy" % "$(value "$dir/$mhz.json" "d['energy_j']")" "$(awk -F, -v m=$mhz '$3 == m { print $8 }' "$dir/logs.csv")"
  agree "a log at $mhz MHz: time" % "$(value "$dir/$mhz.json" "d['makespan_s']")" "$(awk -F, -v m=$mhz '$3 == m { print $6 }' "$dir/logs.csv")"
done

# A run under a lower power limit than another is one under a limit for both.
limited() { # MHZ LIMIT_W POWER_W
  awk -v m="$1" -v l="$2" -v p="$3" 'BEGIN { print "# foldline-telemetry 1\nt_ns,device,power_w,sm_mhz,util_gpu_pct,power_limit_w"
    for (i = 0; i <= 160; i++) { on = i >= 20 && i < 140; printf "%.0f,0,%g,%d,%d,%g\n", i * 5e8, on ? p : 40, m, 100 * on, l } }' >"$dir/cap_$1MHz.csv"
}
limited 1005 200 190
limited 1410 300 280
succeed "a log under a lower limit: as a row" '^2 of 2 runs' "$f" fit logs "$dir"/cap_*.csv -o "$dir/cap.csv"
check "has its limit" [ "$(awk -F, '$3 == 1005 { print $5 }' "$dir/cap.csv") $(awk -F, '$3 == 1410 { print $5 }' "$dir/cap.csv")" = "200 " ]
for form in "$dir/cap.csv" "$dir/cap_1005MHz.csv $dir/cap_1410MHz.csv"; do
  succeed "advise on it says so" 'settings under a power limit, as they were measured .*: 1' "$f" advise $form
done

# A logger that was killed within a row.
{ echo 'timestamp, index, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%]'
  for i in {10..59}; do echo "2026/01/01 00:00:$i.000, 0, 190.00 W, 1005 MHz, 100 %"; done
  printf '2026/01/01 00:01:0'; } >"$dir/torn.csv"
succeed "a torn row: import says so" '^note: .*line 52, the last, .* left out' "$f" import "$dir/torn.csv"
succeed "and so does advise" '^note: torn.csv: line 52, the last, .* left out' "$f" advise "$dir/torn.csv" --platform a100-pcie
for mhz in 1005 1410; do
  awk -F, -v OFS=, '/^[0-9]/ { print; $2 = 1 } { print }' "$dir/cap_${mhz}MHz.csv" >"$dir/two_${mhz}MHz.csv"
done
succeed "two GPUs" '^rests on' "$f" advise "$dir/two_1410MHz.csv" "$dir/two_1005MHz.csv"
check "the advice says each thing that it rests on once" [ "$(grep -c 'measured settings of 1 workload' "$dir/out")" = 1 ]

# A pipeline of training, from executed plans to a run: one iteration at the default clocks, and at one clock.
base=traces/samples/perseus/A100-bert
measured=$(awk -F, '$1 == "0" { print $8, $10; exit }' $base.measured.csv)
"$f" fit pipeline $base -o "$dir/bert.pipeline.csv" >"$dir/fit"
fitted=$(awk '$1 == "0" { print $3, $6; exit }' "$dir/fit")
"$f" plan "$dir/bert.pipeline.csv" --platform a100-pcie --slowdown 5% --rows "$dir/rows.csv" -o "$dir/bert.plan.csv" >"$dir/plan"
run_and_compare "a pipeline" sm_mhz=1170 "$dir/bert.pipeline.csv" --platform a100-pcie
planned() { awk -F, -v kind="$1" -v plan="$2" '$1 == kind && (plan == "" || $2 == plan) { print $3, $4; exit }' "$dir/rows.csv"; }
of() { value "$dir/$1.json" "str(d['makespan_s']) + ' ' + str(d['energy_j'])"; }
all() { # NAME "TIME ENERGY"...: both agree
  local name=$1 times=() energies=() both
  shift
  for both in "$@"; do times+=("${both% *}") energies+=("${both#* }"); done
  agree "$name: time" % "${times[@]}"
  agree "$name: energy" % "${energies[@]}"
}
all "the default iteration: measured, fitted" "$measured" "$fitted"
all "the default iteration: fitted, planned, run" "$fitted" "$(planned default '')" "$(of default)"
all "an iteration at 1170 MHz: planned, run" "$(planned static 1170)" "$(of fixed)"
"$f" run "$dir/bert.pipeline.csv" --platform a100-pcie --policy "plan:plan=$dir/bert.plan.csv" --actuator 0 --json >"$dir/replay.json"
all "a plan: promised, replayed" "$(planned plan 0)" "$(of replay)"

# Measured rows above the board's power limit are clocks that the limit left; under lower limits they are held, as measured.
capped=$(awk -F, '$1 == "global" && $3 == 0 && $4 == 275 { print $10, $12; exit }' $base.caps.csv)
"$f" run "$dir/bert.pipeline.csv" --platform a100-pcie --policy fixed:power_limit_w=275 --json >"$dir/capped.json"
agree "under 275 W: measured, run" % "${capped% *}" "$(value "$dir/capped.json" "d['makespan_s']")"

sed '/power_limit_w/d' "$dir/bert.pipeline.csv" >"$dir/none.pipeline.csv"
"$f" run "$dir/none.pipeline.csv" --platform a100-pcie --policy nvboost >"$dir/out" 2>"$dir/err"
check "a limit that no line states is assumed in words" grep -q 'rows draw up to [0-9]* W, above the power limit of 300 W of .*: taken as measured under it' "$dir/err"
sed -i 's/power_limit_w: 300/power_limit_w: 0/' "$dir/bert.pipeline.csv"
refuse "a limit of nothing" 2 "bert\.pipeline\.csv:[0-9]+: power_limit_w is '0', expected a limit in W" "$f" plan "$dir/bert.pipeline.csv"

# A server of a language model.
cat >"$dir/s.csv" <<'END'
# foldline-serving 1
# model: made up, about 8 billion parameters
# gpu: made up
# max_seqs: 16
# token_budget: 512
# block_tokens: 16
# kv_blocks: 1000
what,at,kv,value
host_s,,,0.001
host_sequence_s,,,0.00001
token,,,0.0002
sequence,,,0.0001
weights_s,,,0.01
kv_s,,,0.00000013
pair,,,0.0000000005
sharpness,,,4
ref_sm_mhz,,,1410
clock,,,1410
END
server=("$dir/s.csv" --platform a100)
printf '%s\n' '# foldline-requests 1' t_ns,prompt_tokens,output_tokens >"$dir/r.csv"
awk 'BEGIN { for (i = 0; i < 60; i++) printf "%.0f,%d,%d\n", i * 5e8, 50 + i * 37 % 900, 1 + i * 13 % 120 }' >>"$dir/r.csv"
"$f" advise "$dir/r.csv" "${server[@]}" --ttft 2s --tbt 100ms --json >"$dir/advice.json" 2>"$dir/err"
run_and_compare "a server" "sm_mhz=$(value "$dir/advice.json" "d['best_sm_mhz']")" "${server[@]}" "$dir/r.csv" --ttft 2s --tbt 100ms
agree "a server: the advised saving" points "$(value "$dir/advice.json" "d['saving_pct']")" "$(saving)" \
  "$(value "$dir/compare.json" "$(row fixed energy_saving_pct)")" "$(value "$dir/compare.json" "$(row baseline:static energy_saving_pct)")"
finish
