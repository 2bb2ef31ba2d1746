#!/usr/bin/env bash
# Kinds of wrong recordings, in every reader and command concerned: an answer that rests on one says so in its first
# lines, or is refused. Each row of the tables below is one input: kinds.sh PATH_TO_FOLDLINE
. "$(dirname "$0")/shell.sh"

# tells NAME PATTERN COMMAND...: ends well, and one of the first three lines of what it prints, or a note before, matches
tells() {
  local name=$1 pattern=$2 status
  shift 2
  "$@" >"$dir/out" 2>"$dir/err" </dev/null
  status=$?
  if [ $status = 0 ] && { head -n 3 "$dir/out" && cat "$dir/err"; } | grep -qE -- "$pattern"; then ok "$name"; else
    bad "$name" "exit $status: $(head -n 3 "$dir/out") $(head -c 400 "$dir/err")"
  fi
}
both() { # NAME PATTERN VALUE FILE: show tells, and prints VALUE; run tells
  tells "$1: show" "$2" "$f" show "$4"
  check "$1: what is left" grep -qE -- "$3" "$dir/out"
  tells "$1: run" "$2" "$f" run "$4" --platform a100 --policy nvboost --assume compute --no-cache
  tells "$1: advise" "$2" "$f" advise "$4" --platform a100
}

# ---- kernels: a record without times (0, 0), and one whose end was never written or lies before its start ----
three() { # LINE-OF-A-KERNEL: two kernels of 50 us, 50 us apart, between them one without times and one that ends before it begins
  "$1" 1 1000000 1050000
  "$1" 2 0 0
  "$1" 3 1120000 1090000
  "$1" 4 1100000 1150000
}
ours() { echo "0,1,7,$2,$3,a,8,1,1,128,1,1"; }
{ printf '%s\n' '# foldline-kernels 1' device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z && three ours; } >"$dir/ours.csv"
rocprof() { echo "\"KERNEL_DISPATCH\",1,1,69,$1,16,\"a\",$1,$2,$3,0,0,64,1,1,1024,1,1"; }
{ echo '"Kind","Agent_Id","Queue_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","Private_Segment_Size","Group_Segment_Size","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"' && three rocprof; } >"$dir/rocprof.csv"
nsys() { echo "$2,$(($3 - $2)),$1,8,1,1,128,1,1,32,0.000,0.000,,,,,NVIDIA A100 (0),1,,7,a"; }
{ echo 'Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name' && three nsys; } >"$dir/nsys.csv"
kineto() { printf '%s{"ph": "X", "cat": "kernel", "name": "a", "ts": %d, "dur": %d, "args": {"device": 0, "stream": 7, "grid": [8, 1, 1], "block": [128, 1, 1]}}\n' "$([ "$1" = 1 ] || echo ,)" $(($2 / 1000)) $((($3 - $2) / 1000)); }
{ echo '{"traceEvents": [' && three kineto && echo ']}'; } >"$dir/kineto.json"
for reader in ours.csv rocprof.csv nsys.csv kineto.json; do
  both "$reader without times" 'rows? without a value: left out' '^duration +0\.00015 s' "$dir/$reader"
done
for reader in ours.csv rocprof.csv nsys.csv kineto.json; do
  refuse "$reader --strict" 2 'expected' "$f" show "$dir/$reader" --strict
done

# ---- kernels: ranks that each see device 0 ----
for rank in 0 1; do
  for form in distributedInfo name; do
    { [ $form = name ] && echo '{' || echo "{\"distributedInfo\": {\"rank\": $rank, \"world_size\": 2},"; } >"$dir/$form$rank.json"
    { echo '"traceEvents": [' && kineto 1 $((1000000 + rank * 1000)) $((1050000 + rank * 1000)) && echo ']}'; } >>"$dir/$form$rank.json"
  done
  mv "$dir/name$rank.json" "$dir/rank$rank.json"
  sed -n '1,2p' "$dir/nsys.csv" >"$dir/nsys_rank$rank.csv"
done
for pair in distributedInfo0.json,distributedInfo1.json rank0.json,rank1.json nsys_rank0.csv,nsys_rank1.csv; do
  succeed "two ranks: $pair" 'device 0 of rank 1 is another GPU than that of rank 0: numbered 1' "$f" import "$dir/${pair%,*}" "$dir/${pair#*,}" -o "$dir/two.csv"
  succeed "are two GPUs" '^device 1$' "$f" show "$dir/two.csv"
done
cp "$dir/nsys_rank0.csv" "$dir/one.csv" && sed 's/^1000000/3000000/' "$dir/nsys_rank0.csv" >"$dir/other.csv"
tells "two files of one board, or of two: nobody knows" 'several files have a device 0, and no rank or UUID: taken as one GPU' "$f" import "$dir/one.csv" "$dir/other.csv" -o "$dir/two.csv"
tells "the next command says so too" 'when it was made, several files have a device 0' "$f" show "$dir/two.csv"

# ---- logs ----
# Boards of two nodes that share an index are told apart by their UUID, or refused.
awk 'BEGIN { print "timestamp, index, uuid, power.draw [W], clocks.sm [MHz]"
  for (i = 0; i < 8; i++) for (g = 1; g <= 2; g++) printf "2026/03/04 10:00:%02d.000, 0, GPU-%d, %d.00 W, 1200 MHz\n", i, g, 100 * g + i }' >"$dir/nodes.csv"
tells "boards of one index: show" 'note: boards of several nodes have the same index: told apart by uuid' "$f" show "$dir/nodes.csv"
check "two boards" test "$(grep -c '^  power  *[12]03.5 W mean' "$dir/out")" = 2
cut -d, -f1,2,4,5 "$dir/nodes.csv" >"$dir/index.csv"
refuse "boards of one index and no UUID" 2 'index.csv: readings some ms apart go back and forth between levels, as of several GPUs in one log .device 0' "$f" show "$dir/index.csv"
printf '%s\n' '# foldline-telemetry 1' t_ns,device,power_w,sm_mhz >"$dir/ours.csv"
awk 'BEGIN { for (i = 0; i < 8; i++) for (g = 1; g <= 2; g++) printf "%d000000000,0,%d,1200\n", i, 100 * g + i }' >>"$dir/ours.csv"
refuse "the same of our own telemetry" 2 'ours.csv: readings some ms apart go back and forth' "$f" fit logs "$dir/ours.csv" -o "$dir/no.csv"

# smi MHZ SECONDS WATTS IDLE_BEFORE IDLE_AFTER: a run, as nvidia-smi logs it each second; a pause of PAUSE s after its 20th second
smi() {
  awk -v f="$1" -v s="$2" -v w="$3" -v idle="$4" -v tail="$5" -v pause="${PAUSE:-0}" 'BEGIN {
    print "timestamp, index, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%]"
    for (i = 0; i < idle + s + tail; i++) {
      busy = i >= idle && i < idle + s
      t = i + (i > idle + 20 ? pause : 0)
      printf "2026/03/04 1%d:%02d:%02d.000, 0, %.2f W, %d MHz, %d %%\n", int(t / 3600), int(t % 3600 / 60), t % 60, busy ? w + i * 7 % 5 / 10 : 56, f, busy ? 97 + i % 3 : 0
    } }'
}
smi 1410 100 300 10 10 >"$dir/j@1410.csv"
smi 1005 120 200 10 10 >"$dir/j@1005.csv"

# A pause: no sum over time includes it.
PAUSE=1800 smi 1005 120 200 10 10 >"$dir/pause@1005.csv"
tells "a pause: show" 'no readings for 1801 s' "$f" show "$dir/pause@1005.csv"
check "its energy" grep -qE '^  energy +24[0-9]{3}(\.[0-9]+)? J' "$dir/out"
refuse "a pause: fit logs" 2 'pause@1005.csv: no readings for 1801 s' "$f" fit logs "$dir/pause@1005.csv" "$dir/j@1410.csv" -o "$dir/no.csv"
tells "a pause: advise" 'set aside: pause@1005.csv: no readings for 1801 s' "$f" advise "$dir/pause@1005.csv" "$dir/j@1005.csv" "$dir/j@1410.csv" --workload j --bound 30%
succeed "a pause: import" 'no readings for 1801 s' "$f" import "$dir/pause@1005.csv" -o "$dir/pause"
tells "a pause: show of what import made" 'no readings for 1801 s' "$f" show "$dir/pause.telemetry.csv"

# A log that ends (or begins) under load, where its sibling idles.
for cut in "10 0 ends" "0 10 begins"; do
  # shellcheck disable=SC2086 # two words
  smi 1005 70 200 ${cut% *} >"$dir/cut@1005.csv"
  refuse "a log that ${cut##* } under load: advise" 2 "cut@1005.csv: the log ${cut##* } under load" "$f" advise "$dir/cut@1005.csv" "$dir/j@1410.csv" --workload j
  tells "fit logs" "cut@1005.csv: the log ${cut##* } under load, .*: it does not have the whole run; left out" "$f" fit logs "$dir/cut@1005.csv" "$dir/j@1410.csv" --workload j -o "$dir/logs.csv"
  check "one row is left" test "$(grep -c '^j,' "$dir/logs.csv")" = 1
  tells "which the next command says" 'left out: .*|when it was made, cut@1005.csv: .*left out' "$f" show "$dir/logs.csv"
done
smi 1005 120 200 0 0 >"$dir/busy@1005.csv"
"$f" fit logs "$dir/busy@1005.csv" -o "$dir/logs.csv" >"$dir/out" 2>"$dir/err"
tells "a log without idle ends: the next command" 'when it was made, busy@1005.csv: the GPU does not idle before and after the run, which may be longer' "$f" compare "$dir/logs.csv" --platform a100

# A clock that wanders between neighbouring steps counts with its mean; one that falls for good is no run at one clock.
awk -F, -v OFS=, 'NR > 1 { $4 = NR % 2 ? " 1395 MHz" : " 1410 MHz" } 1' "$dir/j@1410.csv" >"$dir/wander.csv"
succeed "a clock that wanders: advise" '^j: 1005 MHz instead of 140[0-9]' "$f" advise "$dir/wander.csv" "$dir/j@1005.csv" --workload j --bound 30%
check "by its mean" grep -q 'wander.csv: the clock moved between 1395 and 1410 MHz: its mean' "$dir/out"
succeed "fit logs" '2 of 2 runs' "$f" fit logs "$dir/wander.csv" "$dir/j@1005.csv" --workload j -o "$dir/logs.csv"
awk -F, -v OFS=, 'NR > 60 { $4 = " 1200 MHz" } 1' "$dir/j@1410.csv" >"$dir/falls.csv"
refuse "a clock that falls: advise" 2 'falls.csv: the SM clock changed during the run, from 1200 to 1410 MHz' "$f" advise "$dir/falls.csv" "$dir/j@1005.csv" --workload j
tells "fit logs" 'falls.csv: the SM clock changed during the run, from 1200 to 1410 MHz; left out' "$f" fit logs "$dir/falls.csv" "$dir/j@1005.csv" --workload j -o "$dir/logs.csv"

# Two accounts of energy.
{ printf '#Entity   POWER     TOTEC     SMCLK  GPUTL\nID        W         mJ        MHz\n' && awk 'BEGIN { for (i = 0; i < 30; i++) printf "GPU 0     300       %-9d 1410   %d\n", 1e6 + i * 170000, (i > 2 && i < 27 ? 97 : 0) }'; } >"$dir/dcgmi.txt"
{ printf '%s\n' '# foldline-telemetry 1' t_ns,device,power_w,energy_j,sm_mhz,util_gpu_pct && awk 'BEGIN { for (i = 0; i < 30; i++) printf "%d000000000,0,300,%d,1410,%d\n", i, 1000 + i * 170, (i > 2 && i < 27 ? 97 : 0) }'; } >"$dir/ours.telemetry.csv"
for log in dcgmi.txt ours.telemetry.csv; do
  tells "two accounts: show $log" "two accounts of its energy differ: 170 W by the energy counter, 300 W by the power readings; the counter's is taken" "$f" show "$dir/$log"
  tells "fit logs $log" 'two accounts of .* differ: 170 W' "$f" fit logs "$dir/$log" --workload j -o "$dir/logs.csv"
  tells "advise $log" 'two accounts of .* differ: 170 W' "$f" advise "$dir/$log" --platform a100
done
printf '%s\n' workload,sm_mhz,time_s,power_w,energy_j a,1005,12,150,1200 a,1410,10,300,3000 >"$dir/accounts.csv"
for command in advise "compare --platform a100" "fit device -o $dir/device.json"; do
  # shellcheck disable=SC2086 # words
  tells "two accounts in a sweep: ${command%% *}" 'energy_j is (0.6667 times|not) power_w x time_s' "$f" $command "$dir/accounts.csv"
done

# ---- units ----
unit() { # COLUMN VALUE PATTERN: of telemetry
  awk -F, -v OFS=, -v column="$1" -v x="$2" 'NR == 2 { for (i = 1; i <= NF; i++) at[$i] = i } NR > 2 { $at[column] = x } 1' "$dir/ours.telemetry.csv" >"$dir/unit.csv"
  tells "$1 is $2: show" "$3" "$f" show "$dir/unit.csv"
}
unit util_gpu_pct 0.97 'util_gpu_pct is 0.97 at most: is it a share of 1 instead of percent'
unit sm_mhz 1.41 'sm_mhz is 1.41 at most: is it GHz instead of MHz'
unit power_w 0.3 'power_w is 0.3 at most: is it kW instead of W'
for unit in "s " "ms 000"; do
  sed -E "s/^([0-9]+)000000000,/\\1${unit#* },/" "$dir/ours.telemetry.csv" >"$dir/unit.csv"
  tells "times in ${unit% *}" 'its readings are 1e-0[69] s apart: are the times s or ms instead of ns' "$f" show "$dir/unit.csv"
done
refuse_unit() { # COLUMN VALUE
  awk -F, -v OFS=, -v column="$1" -v x="$2" 'NR == 2 { for (i = 1; i <= NF; i++) at[$i] = i } NR > 2 { $at[column] = x } 1' "$dir/ours.telemetry.csv" >"$dir/unit.csv"
  refuse "$1 is $2" 2 "unit.csv:3:[0-9]+: $1 is $2" "$f" show "$dir/unit.csv"
}
refuse_unit power_w 300000
refuse_unit util_gpu_pct 970
refuse_unit sm_mhz 20000

# ---- sweeps: rows that contradict, and rows without a value ----
printf '%s\n' workload,sm_mhz,time_s,power_w a,1005,10,150 a,1005,20,150 a,1410,9,250 >"$dir/twice.csv"
refuse "one setting, two times: advise" 2 'twice.csv:3:1: a at 1005 MHz took 20 s, and 10 s in line 2' "$f" advise "$dir/twice.csv"
tells "compare" 'line 3: a at 1005 MHz took 20 s, and 10 s in line 2: .*not to be trusted' "$f" compare "$dir/twice.csv" --platform a100
refuse "compare --model fitted" 2 'twice.csv:3:1: a at 1005 MHz took 20 s' "$f" compare "$dir/twice.csv" --platform a100 --model fitted
printf '%s\n' t_ns,prompt_tokens,output_tokens 0,10,5 1000,10,inf 2000,7,7 3000,N/A,8 >"$dir/requests.csv"
tells "requests: rows without a value" '1 of 4 rows without a value: left out; the first is line 5' "$f" import "$dir/requests.csv"
check "rows that contradict" grep -q '1 of 4 rows that contradict: left out; the first is line 3' "$dir/out"
printf '%s\n' workload,sm_mhz,time_s,power_w a,,12,160 a,1005,12,150 a,1200,11,200 a,1410,10,300 >"$dir/clockless.csv"
tells "a row without a clock: advise" 'clockless.csv: rows left out, as they name no SM clock: 1' "$f" advise "$dir/clockless.csv"
finish
