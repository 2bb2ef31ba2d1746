#!/usr/bin/env bash
# The job of someone who recorded a run: a log of nvidia-smi and the kernels that nsys saw, to one clock and the command
# that sets it. It goes by README.md and harness/manual alone.
#   tests/program/advise_logs.sh build/foldline
. "$(dirname "$0")/shell.sh"

# Twenty seconds of an A100 at 1410 MHz: work and pauses of unequal length, a kernel every 5 ms while it works. What the
# profiler and the log say is what such tools print (names of columns, units, notices); the numbers are made up. Their clocks
# are 1.7 s apart.
awk -v nsys="$dir/nsys.csv" -v smi="$dir/smi.csv" 'BEGIN {
  print "NOTICE: existing file found" >nsys
  print "Processing [run.sqlite] with [gpu_trace.py]..." >nsys
  print "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB)," \
    "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name" >nsys
  print "timestamp, index, name, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%], utilization.memory [%]" >smi
  split("0.7 1.9 0.4 2.6 1.1 0.9 3.0 0.5 1.4 2.2", work, " ")
  split("0.3 0.6 1.0 0.2 0.5 0.8 0.4 0.9 0.3 0.3", pause, " ")
  for (i = 1; i <= 10; i++) {
    for (k = 0; k < work[i] / 0.005 - 0.5; k++) {
      name = k % 4 ? "\"gemm<float, 128>(float *, int)\"" : "norm(float *)"
      printf "%.0f,%d,%d,108,1,1,256,1,1,32,0.000,0.049,,,,,NVIDIA A100 (0),1,,7,%s\n", (t + k * 0.005) * 1e9,
        k % 4 ? 4900000 : 1200000, n++, name >nsys
    }
    from[i] = t
    to[i] = t + work[i]
    t = to[i] + pause[i]
  }
  for (s = 0; s < 200; s++) {
    at = s / 10
    busy = 0
    for (i = 1; i <= 10; i++) busy = busy || (at >= from[i] && at < to[i])
    at += 1.7
    printf "2026/03/04 10:00:%02d.%03d, 0, NVIDIA A100-SXM4-40GB, %.2f W, 1410 MHz, %d %%, %d %%\n", int(at + 0.0005), (at + 0.0005 - int(at + 0.0005)) * 1000,
      busy ? 248 + s % 3 : 61, busy ? 96 : 0, busy ? 35 : 0 >smi
  }
}'

succeed "import sees one run and finds the offset" 'offset' "$f" import "$dir/nsys.csv" "$dir/smi.csv" -o "$dir/run.csv"
succeed "advise goes from both files to a clock" '^  set +nvidia-smi -lgc [0-9]+,[0-9]+$' "$f" advise "$dir/nsys.csv" "$dir/smi.csv" \
  --platform a100 --bound 10%
cp "$dir/out" "$dir/advice"
check "and back" grep -qE '^  undo +nvidia-smi -rgc$' "$dir/advice"
check "says what it rests on" grep -qE 'nsys.csv|run' "$dir/advice"
check "says how sure it is" grep -qE 'with a chance of|the chance of that is unknown' "$dir/advice"
"$f" advise "$dir/nsys.csv" "$dir/smi.csv" --platform a100 --bound 10% --json >"$dir/advice.json"
# the last number of the slowdown's interval, and the clock
check "as JSON, within the bound" awk '
  /"sm_mhz"/ { gsub(/[^0-9.]/, ""); clock = $0 + 0 } /"slowdown_pct"/ { slow = 1 }
  slow && /"high"/ { gsub(/[^0-9.]/, ""); high = $0 + 0; slow = 0 } END { exit !(clock > 0 && clock < 1410 && high > 0 && high <= 10) }' \
  "$dir/advice.json"
succeed "a tighter bound does not ask for a lower clock" . "$f" advise "$dir/nsys.csv" "$dir/smi.csv" --platform a100 --bound 1%
clock() { sed -nE 's/^  set +nvidia-smi -lgc ([0-9]+),.*/\1/p' "$1"; }
check "1 % wants at least the clock of 10 %" [ "$(clock "$dir/out")" -ge "$(clock "$dir/advice")" ]
head -n 1 "$dir/smi.csv" >"$dir/empty.csv"
refuse "a log without a row is told" 2 'empty.csv' "$f" advise "$dir/nsys.csv" "$dir/empty.csv" --platform a100
sed '3s/[0-9.]* W/much W/' "$dir/smi.csv" >"$dir/odd.csv"
refuse "a reading that is none is told with its place" 2 'odd.csv:3:' "$f" advise "$dir/nsys.csv" "$dir/odd.csv" --platform a100

# What two runs may differ by, as harness/chip/log_run.c states it: measured on the sweeps of FOLDLINE_DATA, where it is set.
if [ -d "${FOLDLINE_DATA:-}/sweeps" ]; then
  for sweep in "$FOLDLINE_DATA"/sweeps/*.csv; do
    awk -F, '
      NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
      { key = $at["workload"] "," $at["kernel"] "," $at["mem_mhz"] "," ("power_cap_w" in at ? $at["power_cap_w"] : "")
        for (i = 1; i <= rows[key]; i++) {
          low = mhz[key, i] < $at["sm_mhz"] + 0
          if (mhz[key, i] == $at["sm_mhz"] + 0) continue
          share = low ? time[key, i] / $at["time_s"] : $at["time_s"] / time[key, i]
          clock = low ? $at["sm_mhz"] / mhz[key, i] : mhz[key, i] / $at["sm_mhz"]
          if (!pairs++ || share < least) least = share
          if (share / clock > most) most = share / clock
        }
        mhz[key, ++rows[key]] = $at["sm_mhz"] + 0; time[key, rows[key]] = $at["time_s"] }
      END { printf "%d pairs: the lower clock took at least %.3f of the time, and at most %.3f of what the clocks say\n", pairs,
              least, most; exit !(pairs && least > 0.8 && most < 2.5) }' "$sweep" >"$dir/pairs"
    held=$?
    check "$(basename "$sweep"): $(cat "$dir/pairs")" [ $held = 0 ]
  done
fi
finish
