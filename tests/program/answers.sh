#!/usr/bin/env bash
# Measurements that contradict themselves are refused or told, never answered as if they were right: answers.sh PATH_TO_FOLDLINE
. "$(dirname "$0")/shell.sh"

# ---- sweeps: four workloads, from bound by compute to bound by memory ----
awk 'BEGIN {
  print "workload,sm_mhz,time_s,power_w,energy_j"
  split("1 0.6 0.35 0.15", share, " ")
  for (w = 1; w <= 4; w++)
    for (f = 510; f <= 1410; f += 100) {
      x = f / 1410
      t = 20 * w * (share[w] / x + 1 - share[w]) * (1 + ((w * 31 + f / 10 * 17) % 11 - 5) / 2500)
      p = 70 + (230 - 30 * w) * x * x * x
      printf "w%d,%d,%.3f,%.2f,%.9g\n", w, f, t, p, t * p
    }
}' >"$dir/good.csv"
succeed "a sound sweep gives advice" '^w2 +[0-9]+' "$f" advise "$dir/good.csv" --bound 10%
unit() { # FACTOR PATTERN: the energies in another unit
  awk -F, -v OFS=, -v x="$1" 'NR > 1 { $5 = sprintf("%.9g", $5 * x) } 1' "$dir/good.csv" >"$dir/unit.csv"
  refuse "advise: $2" 2 "unit.csv:2:[0-9]+: energy_j is .* times power_w x time_s, expected about 1 \($2" "$f" advise "$dir/unit.csv"
  refuse "oracle: $2" 2 "unit.csv:2:[0-9]+: .*$2" "$f" compare "$dir/unit.csv" --platform a100
  refuse "compare: $2" 2 "unit.csv:2:[0-9]+: .*$2" "$f" compare "$dir/unit.csv" --platform a100 --policy assure
  refuse "fit device: $2" 2 "unit.csv:2:[0-9]+: .*$2" "$f" fit device "$dir/unit.csv" -o "$dir/unit.json"
  check "and no device is left" [ ! -e "$dir/unit.json" ]
}
unit 2.777777e-7 'kWh instead of J'
unit 2.777777e-4 'Wh instead of J'
unit 1000 'mJ, mW or ms'
unit 1e-6 'MJ instead of J'
unit 12 'another unit'
unit 0.09 'another unit'
awk -F, -v OFS=, 'NR > 1 { $5 = sprintf("%.9g", $5 * 9) } 1' "$dir/good.csv" >"$dir/node.csv"
succeed "energy of a node of eight GPUs and one GPU's power is a note" '^w2' "$f" compare "$dir/node.csv" --platform a100
check "which says so" grep -q 'energy_j is not power_w x time_s' "$dir/err"
awk -F, -v OFS=, 'NR == 1 { $4 = "energy_j" } NR > 1 { $4 = sprintf("%.9g", $5 / 3.6e6) } { print $1, $2, $3, $4 }' "$dir/good.csv" >"$dir/only.csv"
refuse "kWh alone, oracle" 2 'only.csv:[0-9]+:[0-9]+: .*expected energy_j in J' "$f" compare "$dir/only.csv" --platform a100

awk -F, -v OFS=, '$1 == "w3" && $2 == 1010 { $3 /= 2; $5 = "" } 1' "$dir/good.csv" >"$dir/fast.csv"
succeed "a row that is too fast, oracle" '^w3' "$f" compare "$dir/fast.csv" --platform a100 --bound 5%
check "is told with its line" grep -qE 'w3 took .* at 1010 MHz \(line 27\), but .*no clock explains' "$dir/err"
line() { awk -F, -v OFS=, "NR == $2 { $3; \$5 = \"\" } 1" "$dir/good.csv" >"$dir/$1.csv"; } # NAME LINE CHANGE
line cold 27 '$4 *= 0.6'
succeed "a row that draws too little, advise" '^w3 +[0-9]+' "$f" advise "$dir/cold.csv" --bound 5%
check "is left out" grep -q '^note: cold.csv: rows left out, as they did not run at the clock they name .*: 1$' "$dir/out"
succeed "a table counts it" '^w3' "$f" compare "$dir/cold.csv" --platform a100 --bound 5%
check "and says so with its line" grep -qE 'cold.csv: 1 row is not in line with the other clocks; the first is line 27, 1010 MHz: .*power -39.9 %.*not to be trusted' "$dir/err"
check "once" test "$(grep -c 'not in line' "$dir/err")" = 1
{ cat "$dir/good.csv"; sed -n '27s/,[0-9.]*,[0-9.]*$/,250,/p' "$dir/good.csv"; } >"$dir/cold.csv"
succeed "of two rows of one setting" '^w3' "$f" compare "$dir/cold.csv" --platform a100 --bound 5%
check "the wrong one is named" grep -q 'the first is line 42, 1010 MHz' "$dir/err"
awk -F, -v OFS=, 'NR > 1 && $1 == "w2" { $3 = 20; $4 = 200; $5 = "" } 1' "$dir/good.csv" >"$dir/still.csv"
still='note: (still.csv: )?w2 draws 200 W at 510 MHz, and 200 W at 1410 MHz, in as much time: unless it hardly uses the GPU, a clock was not in force'
succeed "clocks that change nothing save nothing" '^w2 +1410 MHz, as it is ' "$f" advise "$dir/still.csv" --bound 5%
check "and are in doubt" grep -qE "^$still" "$dir/out"
succeed "clocks that change nothing, compare" '^w2' "$f" compare "$dir/still.csv" --platform a100 --bound 5%
check "are in doubt" grep -qE "^$still" "$dir/err"
awk -F, -v OFS=, 'NR > 1 && $1 == "w2" { $4 = 60; $5 = "" } 1' "$dir/good.csv" >"$dir/small.csv"
succeed "of one small kernel the time shows that the clocks were in force" '^w2' "$f" advise "$dir/small.csv" --bound 5%
check "which is in no doubt" test "$(grep -c 'not in force' "$dir/out")" = 0
line clockless 27 '$2 = ""'
succeed "a row without its clock, advise" '^w3 +[0-9]+' "$f" advise "$dir/clockless.csv" --bound 5%
check "is counted" grep -q 'note: clockless.csv: rows left out, as they name no SM clock: 1' "$dir/out"
succeed "compare leaves it out too" '^w3' "$f" compare "$dir/clockless.csv" --platform a100
check "and counts it" grep -q 'note: clockless.csv: rows left out, as they name no SM clock: 1' "$dir/err"
printf '%s\n' workload,kernel,sm_mhz,time_s,power_w a,,1410,20,300 a,k,1410,12,310 a,,1005,24,200 a,k,1005,14,210 >"$dir/parts.csv"
parts='parts.csv:3:1: a has rows of its kernel k and rows without a kernel, which are of the whole program'
refuse "a program and its kernels would count twice, advise" 2 "$parts" "$f" advise "$dir/parts.csv"
refuse "compare" 2 "$parts" "$f" compare "$dir/parts.csv" --platform a100
printf '%s\n' workload,power_cap_w,time_s,power_w a,50,24,97 a,200,22,195 a,300,20,290 >"$dir/caps.csv"
succeed "a sweep of limits has no column of clocks" '^a: a power limit of 200 W' "$f" advise "$dir/caps.csv" --bound 15%
check "a limit below what the board can hold is no setting" grep -q '^note: caps.csv: 1 setting whose power limit the board did not hold: left out; the first is line 2, 97 W under a limit of 50 W' "$dir/out"
printf '%s\n' workload,power_cap_w,time_s,power_w a,200,22,580 a,300,20,890 >"$dir/caps.csv"
succeed "nor is a row judged where the power is of several boards" '^a: a power limit of 200 W' "$f" advise "$dir/caps.csv" --bound 15%
awk -F, -v OFS=, 'NR > 1 { $3 = 60 * (0.6 + 0.4 * $2 / 1410); $5 = "" } 1' "$dir/good.csv" >"$dir/rises.csv"
refuse "advise on times that rise with the clock" 2 'rises.csv: w1 took .* at 510 MHz.* no clock explains' "$f" advise "$dir/rises.csv"
tr , ';' <"$dir/good.csv" >"$dir/semi.csv"
tr , '\t' <"$dir/good.csv" >"$dir/tabs.csv"
refuse "semicolons" 2 'semi.csv:1:9: fields are separated by semicolons, expected commas' "$f" advise "$dir/semi.csv"
refuse "tabs" 2 'tabs.csv:1:9: fields are separated by tabs, expected commas' "$f" compare "$dir/tabs.csv" --platform a100
sed '5s/[0-9.]*$/[N\/A]/' "$dir/good.csv" >"$dir/unknown.csv"
succeed "[N/A] is not known: power and time give the energy" '^w2' "$f" advise "$dir/unknown.csv" --bound 10%
sed '5s/,[0-9.]*,[0-9.]*$/,N\/A,N\/A/' "$dir/good.csv" >"$dir/dark.csv"
succeed "a row without power is left out" '^w2 +[0-9]+' "$f" advise "$dir/dark.csv" --bound 10%
first() { check "$1" grep -qE -- "$2" <(head -n 1 "$dir/out"); } # the first line of an answer
first "with its count first" '^note: dark.csv: 1 of 40 rows without a value: left out; the first is line 5: neither power_w nor energy_j'
check "and once" test "$(grep -c 'without a value' "$dir/out")" = 1

# ---- what import leaves out, the next command tells ----
told() { # COMMAND...: in its first lines
  "$f" "$@" >"$dir/out" 2>"$dir/err"
  check "$1 succeeds" [ $? = 0 ]
  check "and tells what import left out" grep -qE 'note: .*when it was made, from\.[a-z]*: 1 of [0-9]+ rows without a value: left out; the first is line' "$dir/out" "$dir/err"
}
sed '1s/.*/w,f,t,p,e/' "$dir/dark.csv" >"$dir/from.csv"
"$f" import "$dir/from.csv" --map workload=w,sm_mhz=f,time_s=t,power_w=p -o "$dir/made.csv" >"$dir/out" 2>"$dir/err"
check "import writes what it left out" grep -q '^# left_out: from.csv: 1 of 40 rows without a value' "$dir/made.csv"
told advise "$dir/made.csv"
first "first" '^note: made.csv: when it was made'
told compare "$dir/made.csv" --platform a100
told fit device "$dir/made.csv" -o "$dir/made.json"
told show "$dir/made.csv"
told plot models "$dir/made.csv" --platform a100 -o "$dir/made.svg"
"$f" import "$dir/made.csv" -o "$dir/again.csv" >"$dir/out" 2>"$dir/err"
check "import passes it on" grep -q '^# left_out: made.csv: when it was made, from.csv: 1 of 40' "$dir/again.csv"
printf '%s\n' '{"traceEvents": [' \
  '{"ph": "X", "cat": "kernel", "name": "a", "ts": 1000, "dur": 50, "args": {"device": 0, "stream": 7}},' \
  '{"ph": "X", "cat": "kernel", "name": "a", "ts": 0, "dur": 0, "args": {"device": 0, "stream": 7}}]}' >"$dir/from.json"
"$f" import "$dir/from.json" -o "$dir/made.csv" >"$dir/out" 2>"$dir/err"
for again in "" " (cached)"; do
  told show "$dir/made.csv"
  told run "$dir/made.csv" --platform a100 --policy nvboost --assume compute
  check "written once$again" test "$(cat "$dir/out" "$dir/err" | grep -c 'when it was made')" = 1
done
told advise "$dir/made.csv" --platform a100
printf '%s\n' t_ns,prompt_tokens,output_tokens 0,10,5 1000,N/A,5 2000,7,7 >"$dir/from.csv"
"$f" import "$dir/from.csv" -o "$dir/made.csv" >"$dir/out" 2>"$dir/err"
told show "$dir/made.csv"

# ---- logs ----
log() { # MHZ SECONDS WATTS BOARD
  awk -v f="$1" -v s="$2" -v w="$3" -v board="$4" 'BEGIN {
    print "timestamp, index, name, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%]"
    for (i = 0; i < 2 * s + 20; i++) {
      busy = i >= 10 && i < 2 * s + 10
      printf "2026/03/04 10:%02d:%02d.%03d, 0, %s, %.2f W, %d MHz, %d %%\n", int(i / 120), int(i / 2) % 60, i % 2 * 500, board,
        busy ? w + i * 7 % 5 / 10 : 56, f, busy ? 97 + i % 3 : 0
    }
  }'
}
log 1410 100 300 'NVIDIA A100-SXM4-40GB' >"$dir/high.csv"
log 1005 120 200 'NVIDIA A100-SXM4-40GB' >"$dir/mid.csv"
log 705 160 150 'A100-SXM4-40GB' >"$dir/low.csv"
succeed "three logs give advice" 'program: [0-9]+ MHz' "$f" advise "$dir/high.csv" "$dir/mid.csv" "$dir/low.csv" --bound 25%
wrong() { # NAME PATTERN, of odd.csv in place of mid.csv
  refuse "$1" 2 "$2" "$f" advise --workload program "$dir/high.csv" "$dir/odd.csv" "$dir/low.csv" --bound 25%
}
awk 'NR > 130 { split(substr($0, 12, 8), t, ":"); at = t[1] * 3600 + t[2] * 60 + t[3] - 30
  $0 = substr($0, 1, 11) sprintf("%02d:%02d:%02d", int(at / 3600), int(at % 3600 / 60), at % 60) substr($0, 20) } 1' "$dir/mid.csv" >"$dir/odd.csv"
wrong "a clock that was set back" 'odd.csv:131:1: the time stamp is 29.5 s earlier than the one before'
refuse "import counts its rows" 2 'odd.csv:131:1: the time stamp is 29.5 s earlier .*; 59 of 260 rows contradict' "$f" import "$dir/odd.csv"
awk 'NR == 131 { $0 = "2036" substr($0, 5) } 1' "$dir/mid.csv" >"$dir/odd.csv"
succeed "one wrong time costs one reading" 'odd.csv: 1 of 260 rows that contradict: left out; the first is line 132' "$f" advise --workload program "$dir/high.csv" "$dir/odd.csv" "$dir/low.csv" --bound 25%
awk '{ print } NR == 130 || NR == 140 { print "[Unknown Error], [Unknown Error], [Unknown Error], [Unknown Error], [Unknown Error], [Unknown Error]" }' "$dir/mid.csv" >"$dir/odd.csv"
succeed "rows of a lost GPU" 'odd.csv: 2 of 262 rows without a value: left out; the first is line 131' "$f" advise --workload program "$dir/high.csv" "$dir/odd.csv" "$dir/low.csv" --bound 25%
awk '{ print } NR > 1 && NR % 2 == 0' "$dir/mid.csv" >"$dir/double.csv"
succeed "a reading twice changes nothing" 'program: [0-9]+ MHz' "$f" advise --workload program "$dir/high.csv" "$dir/double.csv" "$dir/low.csv" --bound 25%
awk -F, -v OFS=, 'NR > 40 && NR < 240 { $4 = " 200.00 W" } 1' "$dir/mid.csv" >"$dir/odd.csv"
succeed "a sensor that hangs is set aside" '^program: 900 MHz instead of 1410' "$f" advise --workload program "$dir/high.csv" "$dir/odd.csv" "$dir/low.csv" --bound 70%
check "with the reason" grep -q 'set aside: odd.csv: power_w is 200 in all readings of .* of a sensor that hangs' "$dir/out"
awk -F, -v OFS=, 'NR > 40 && NR < 130 { $4 = " 200.00 W" } 1' "$dir/mid.csv" >"$dir/short.csv"
succeed "one that repeats itself for less than half of the run" 'program: [0-9]+ MHz' "$f" advise --workload program "$dir/high.csv" "$dir/short.csv" "$dir/low.csv" --bound 25%
awk -F, -v OFS=, 'NR > 40 && NR < 240 { $4 = " 200.00 W"; $6 = " 100 %" } 1' "$dir/mid.csv" >"$dir/even.csv"
succeed "an even load draws an even power" 'program: [0-9]+ MHz' "$f" advise --workload program "$dir/high.csv" "$dir/even.csv" "$dir/low.csv" --bound 25%
log 1005 170 200 'NVIDIA A100-SXM4-40GB' >"$dir/long.csv"
succeed "of two runs at one clock that differ in time, the one that contradicts others too" 'program: 1005 MHz' "$f" advise --workload program "$dir/high.csv" "$dir/mid.csv" "$dir/long.csv" --bound 25%
check "is set aside" grep -q 'set aside: long.csv: 170 s .* but 120 s .* in mid.csv: runs at one clock do not differ so much' "$dir/out"
log 1005 121 300 'NVIDIA A100-SXM4-40GB' >"$dir/hot.csv"
refuse "two that differ in power" 2 'mid.csv: 120 s .* but 121 s and 300.* in hot.csv: runs at one clock do not differ so much' "$f" advise --workload program "$dir/high.csv" "$dir/mid.csv" "$dir/hot.csv"
log 1410 4 300 'NVIDIA A100-SXM4-40GB' >"$dir/brief.csv"
log 1005 4 200 'NVIDIA A100-SXM4-40GB' >"$dir/short.csv"
succeed "runs of 4 s, read each half second, may differ by 12 %" 'program: 1410 MHz, as it is' "$f" advise --workload program "$dir/brief.csv" "$dir/short.csv" --bound 5%
check "which is said" grep -q "the readings' spacing: it leaves a run's length open by up to 12 %, which the intervals and the chance" "$dir/out"
log 1005 138 200 'NVIDIA A100-SXM4-40GB' | awk -F, -v OFS=, 'NR > 211 && NR <= 251 { $4 = " 56.00 W"; $6 = " 0 %" } 1' >"$dir/odd.csv"
succeed "two runs in one log" '^note: odd.csv: the GPU idles for 20 s, from 100.2 s after the run.s begin on: counted as part of the run; of two runs' "$f" advise --workload program "$dir/high.csv" "$dir/odd.csv" --bound 25%
succeed "fit logs too" '1 of 1 runs' "$f" fit logs "$dir/odd.csv" -o "$dir/made.csv"
check "says so in the sweep" grep -q '^# left_out: .*the GPU idles for 20 s' "$dir/made.csv"
awk -F, -v OFS=, '{ $6 = $6 (NR == 1 ? ", clocks.current.memory [MHz]" : NR < 130 ? ", 1215 MHz" : ", 810 MHz") } 1' "$dir/mid.csv" >"$dir/odd.csv"
refuse "a memory clock that changes" 2 'odd.csv: the memory clock changed during the run, from 810 to 1215 MHz' "$f" advise "$dir/odd.csv" --platform a100
awk '{ print } NR == 130 { print "[N/A], [N/A], [N/A], [N/A], [N/A], [N/A]" }' "$dir/mid.csv" >"$dir/from.csv"
"$f" import "$dir/from.csv" -o "$dir/from" >"$dir/out" 2>"$dir/err"
told show "$dir/from.telemetry.csv"
told advise "$dir/from.telemetry.csv" "$dir/high.csv" --workload program
"$f" fit logs "$dir/from.csv" "$dir/high.csv" -o "$dir/made.csv" >"$dir/out" 2>"$dir/err"
told compare "$dir/made.csv" --platform a100
log 1005 121 203 'NVIDIA A100-SXM4-40GB' >"$dir/again.csv"
succeed "two that hardly differ" 'program: [0-9]+ MHz' "$f" advise --workload program "$dir/high.csv" "$dir/mid.csv" "$dir/again.csv" "$dir/low.csv" --bound 25%
awk -F, -v OFS=, 'NR % 7 == 3 { $4 = " 0.00 W" } 1' "$dir/mid.csv" >"$dir/odd.csv"
succeed "readings of 0 W are none" 'odd.csv: 37 of 260 readings of power_w are 0 W, which no GPU draws: taken as not known' "$f" advise --workload program "$dir/high.csv" "$dir/odd.csv" "$dir/low.csv" --bound 25%
succeed "nor are they for show" 'power +189.62 W mean' "$f" show "$dir/odd.csv"
counter() { # FACTOR: 10 Hz of 300 W, with a counter of J times it
  awk -v x="$1" 'BEGIN { print "# foldline-telemetry 1\nt_ns,device,power_w,energy_j"
    for (i = 0; i < 100; i++) printf "%d00000000,0,300,%.9g\n", i, i * 30 * x }' >"$dir/counter.csv"
}
for unit in 1000:mJ 1e6:uJ 1e-3:kJ 2.7777778e-4:Wh 2.7777778e-7:kWh; do
  counter "${unit%:*}"
  succeed "a counter in ${unit#*:}" '^  energy +2970 J$' "$f" show "$dir/counter.csv"
  check "is left out, in the first lines" grep -q "^note: device 0: the energy counter gives .* W, the power readings 300 W: it seems to count ${unit#*:} instead of J, and is left out" "$dir/out"
done
counter 1.5
succeed "one that differs otherwise is taken" '^  energy +4455 J by the counter$' "$f" show "$dir/counter.csv"
series() { # LABELS VALUE [METRIC]
  printf '{"metric": {"__name__": "DCGM_FI_DEV_%s", "gpu": "0", %s}, "values": [[1787000000, "%s"], [1787000015, "%s"]]}' "${3-POWER_USAGE}" "$1" "$2" "$2"
}
for label in Hostname hostname instance; do
  printf '{"status": "success", "data": {"resultType": "matrix", "result": [%s, %s]}}' "$(series "\"$label\": \"n1\"" 250)" "$(series "\"$label\": \"n2\"" 90)" >"$dir/nodes.json"
  succeed "boards of two nodes without UUIDs, by $label" '^  power +90 W mean' "$f" show "$dir/nodes.json"
  check "are two" grep -q '^  power *250 W mean' "$dir/out"
done
printf '{"status": "success", "data": {"resultType": "matrix", "result": [%s, %s]}}' "$(series '"instance": "n1:9400"' 250)" "$(series '"instance": "n1:9835"' 1410 SM_CLOCK)" >"$dir/nodes.json"
succeed "two exporters on one node" '^  clock +1410 MHz mean' "$f" show "$dir/nodes.json"
check "see one board" test "$(grep -c '^device' "$dir/out")" = 1
awk 'BEGIN { print "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name"
  for (i = 0; i < 20; i++) printf "%d,900,%d,1,1,1,1,1,1,16,0,0,,,,,Board (0),1,7,k\n", 1000 * i, i }' >"$dir/once.csv"
{ cat "$dir/once.csv"; sed 1d "$dir/once.csv"; } >"$dir/twice.csv"
succeed "kernels that are there once" '^kernels +20 ' "$f" show "$dir/once.csv"
refuse "kernels that are there twice" 2 '20 of 40 kernels and copies are there again, in the same stream' "$f" show "$dir/twice.csv"
awk 'BEGIN { print "t_ns,prompt_tokens,output_tokens"; for (i = 0; i < 20; i++) printf "%d000000000,100,10\n", 86400 + i }' >"$dir/late.csv"
succeed "requests that begin a day late" '^note: late.csv: .* line 2: the first request arrives at 86400 s, and the last 19 s later: the time before counts' "$f" import "$dir/late.csv"
log 1005 120 200 'NVIDIA H100 PCIe' >"$dir/odd.csv"
wrong "logs of two boards" 'odd.csv: the board is NVIDIA H100 PCIe, but NVIDIA A100-SXM4-40GB in .*high.csv'
finish
