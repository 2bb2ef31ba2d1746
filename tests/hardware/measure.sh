#!/usr/bin/env bash
# Measures this machine's NVIDIA GPU as Foldline meets it: what its library says, how long readings take, how often they
# change, what loads draw, what activity records cost, and what a policy decides in shadow mode. Reads only: it sets no
# clock, limit or mode.
#   tests/hardware/measure.sh FOLDLINE OUT [PART...]
# FOLDLINE is an installed or built program, OUT a folder that it makes. PARTS: board times profile square levels wall
# overhead programs alternate waiting live samples kineto (all). Needs nvcc, a C compiler, and PyTorch for the parts from wall on but overhead.
set -u
[ $# -ge 2 ] || { sed -n '2,7p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
foldline=$(realpath "$1")
mkdir -p "$2" && out=$(realpath "$2") || exit 3
shift 2
parts=" ${*:-board times profile square levels wall overhead programs alternate waiting live samples kineto} "
started=$SECONDS

nvcc -O2 -o "$out/load" "$here/load.cu" && cc -O2 -o "$out/nvml_times" "$here/nvml_times.c" -ldl || exit 3
wanted() { [[ $parts == *" $1 "* ]] && echo "== $1 at $((SECONDS - started)) s"; }
# watched NAME COMMAND...: every change of a reading while the command runs goes into NAME.changes.csv, what it prints
# into NAME.csv
watched() {
  local name=$1 job
  shift
  "$out/nvml_times" changes 600 >"$out/$name.changes.csv" &
  job=$!
  "$@" >"$out/$name.csv"
  sleep 3
  kill $job
  wait $job 2>/dev/null
}
tell() { # a line on how a command ended
  local what=$1 rc
  shift
  "$@"
  rc=$?
  echo "$what: rc $rc"
}

if wanted board; then
  nvidia-smi -q -x >"$out/board.xml"
  nvidia-smi -q -d SUPPORTED_CLOCKS >"$out/clocks.txt"
  tell doctor "$foldline" doctor >"$out/doctor.txt" 2>&1
  tell doctor "$foldline" doctor --policy tightrope >"$out/doctor-tightrope.txt" 2>&1
  tell doctor "$foldline" doctor --json >"$out/doctor.json" 2>"$out/doctor.err"
  tell record "$foldline" record -o "$out/idle.csv" --every-ms 20 --for 3s >"$out/idle.txt" 2>&1
  cat "$out/doctor.txt" "$out/idle.txt"
fi
if wanted times; then
  "$out/nvml_times" latency 100 >"$out/latency-idle.csv"
  "$out/load" square 6000 0 1 >/dev/null &
  sleep 4
  "$out/nvml_times" latency 100 >"$out/latency-busy.csv"
  wait
  "$out/nvml_times" spaced 8 130 >"$out/latency-spaced.csv"
  for ms in 5 20 100; do "$out/nvml_times" rounds 40 $ms; done >"$out/rounds.csv"
fi
if wanted profile; then
  "$out/nvml_times" profile 7 >"$out/profile.csv" &
  sleep 1.5
  "$out/load" square 1000 1000 1 >/dev/null
  wait
fi
if wanted square; then
  watched square-short "$out/load" square 300 700 8
  watched square-long "$out/load" square 2500 2500 2
fi
if wanted levels; then
  "$foldline" record -o "$out/levels.telemetry.csv" --every-ms 20 >"$out/levels.record.txt" 2>&1 &
  job=$!
  watched levels "$out/load" levels 3
  kill -TERM $job
  wait $job
fi
if wanted wall; then
  watched wall python3 "$here/programs.py" gemm 120
  watched small python3 "$here/programs.py" small
  watched bursts python3 "$here/programs.py" bursts 100
fi
if wanted overhead; then
  for i in 1 2 3 4; do
    "$out/load" kernels >"$out/kernels-off-$i.csv"
    "$foldline" record -o "$out/kernels-$i.telemetry.csv" --every-ms 100 --kernels "$out/kernels-$i.trace.csv" \
      -- "$out/load" kernels >"$out/kernels-on-$i.csv" 2>"$out/kernels-on-$i.txt"
    [ $i = 1 ] || rm -f "$out/kernels-$i.trace.csv"
  done
  cat "$out/kernels-on-1.txt"
fi
if wanted programs; then
  for i in 1 2 3; do
    python3 "$here/programs.py" all >"$out/programs-off-$i.csv" 2>"$out/programs-off-$i.txt"
    "$foldline" record -o "$out/programs-$i.telemetry.csv" --every-ms 50 --kernels "$out/programs-$i.trace.csv" \
      --iteration iteration -- python3 "$here/programs.py" all >"$out/programs-on-$i.csv" 2>"$out/programs-on-$i.txt"
    [ $i = 1 ] || rm -f "$out/programs-$i.trace.csv"
  done
  cat "$out"/programs-o*.csv "$out/programs-on-1.txt"
fi
collector=$(realpath "$(dirname "$foldline")/../lib/foldline/libfoldline-collector.so")
if wanted alternate; then
  rings=$(mktemp -d)
  for program in train decode image; do
    FOLDLINE_RINGS=$rings CUDA_INJECTION64_PATH=$collector python3 "$here/programs.py" $program --alternate 24
  done >"$out/alternate.csv" 2>"$out/alternate.txt"
  rm -rf "$rings"
  cat "$out/alternate.csv" "$out/alternate.txt"
fi
timed() { # NAME COMMAND...: how a command ended and what processor time it took
  local name=$1
  shift
  tell "$name" bash -c 'TIMEFORMAT="%R s, user %U s, system %S s"; time "$@"' - "$@"
}
if wanted waiting; then # what a policy costs as long as no program has begun
  for policy in tightrope:30s tightrope:trust=counters:8s assure:8s; do
    timed "${policy%:*}, no program" "$foldline" live --policy "${policy%:*}" --for "${policy##*:}"
  done 2>&1 | tee "$out/waiting.txt"
fi
if wanted live; then
  rings=$(mktemp -d)
  FOLDLINE_RINGS=$rings CUDA_INJECTION64_PATH=$collector NVTX_INJECTION64_PATH=$collector \
    python3 "$here/programs.py" train 1700 >"$out/live.program.csv" 2>"$out/live.program.txt" &
  sleep 9 # until it trains
  for policy in tightrope assure; do
    extra=()
    [ $policy = assure ] || extra=(--rings "$rings" --iteration iteration --bound 5%)
    timed "$policy" "$foldline" live --policy $policy --for 40s -o "$out/live-$policy.log" "${extra[@]}" >"$out/live-$policy.txt" 2>&1 &
  done
  wait
  cat "$out"/live-*.txt "$out/live.program.csv"
  rm -rf "$rings"
  for policy in tightrope assure; do tell "replay $policy" "$foldline" verify "$out/live-$policy.log"; done
fi
if wanted samples; then
  "$foldline" record -o "$out/square.telemetry.csv" --every-ms 20 -- "$out/load" square 400 600 12 >"$out/square.csv" 2>"$out/square.txt"
  for program in "train 30" "decode 30" "image 30" "gemm 60"; do
    name=${program% *}
    "$foldline" record -o "$out/$name.telemetry.csv" --every-ms 20 --kernels "$out/$name.trace.csv" --iteration iteration \
      -- python3 "$here/programs.py" $program >"$out/$name.csv" 2>"$out/$name.txt"
    cat "$out/$name.txt"
    tell "run $name" "$foldline" run "$out/$name.trace.csv" --platform h200 --assume compute --policy nvboost >"$out/$name.run.txt" 2>&1
    tail -n 1 "$out/$name.run.txt"
  done
fi
if wanted kineto; then
  python3 "$here/programs.py" decode 20 --kineto "$out/decode.kineto.json" >"$out/kineto.csv" 2>"$out/kineto.txt"
fi
rm -f "$out/load" "$out/nvml_times"
echo "== done at $((SECONDS - started)) s"
