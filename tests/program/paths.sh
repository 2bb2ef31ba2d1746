#!/usr/bin/env bash
# Results do not depend on the way of advancing: run, compare and grid print and write the same bytes by every
# path that --path forces, on 1 and 2 threads, and each path was taken. On samples, experiments and random workloads:
# FL_PATHS=100 of them instead of 3 (nightly, with the experiments that take longer); FL_PATHS_FROM: the first one.
. "$(dirname "$0")/shell.sh"
export FOLDLINE_SHARE=$PWD/models
count=${FL_PATHS:-3} from=${FL_PATHS_FROM:-1} # seeds of the random workloads
must="plain vector prefix events launches"                     # paths that are there; each is taken somewhere
declare -A taken
out=$dir/w # every run writes here, so that the paths it prints are the same

# one FOLDER ARGUMENTS...: what it printed, wrote and returned, into FOLDER; how often each path was taken, out of it
one() {
  local folder=$1 line path times
  shift
  rm -rf "$folder" "$out"
  mkdir -p "$folder" "$out"
  "$f" "$@" >"$folder/stdout" 2>"$folder/stderr" </dev/null
  echo $? >"$folder/status"
  line=$(sed -n 's/^paths taken: //p' "$folder/stderr")
  sed -i '/^paths taken: /d' "$folder/stderr"
  progress "$folder/stderr"
  mv "$out" "$folder/files"
  while read -r path times; do
    [ -z "$path" ] || taken[$path]=$((${taken[$path]:-0} + times))
  done <<<"${line//, /$'\n'}"
}

# same NAME ARGUMENTS...: the same bytes by every path; of what has threads, on 1 and on 2
same() {
  local name=$1 path threads ways=("")
  shift
  [ "$1" = run ] || ways=(${FL_PATHS:+"--threads 1"} "--threads 2")
  one "$dir/plain" "$@" --path plain $([ "$1" = run ] || echo "--threads 1")
  [ "$(cat "$dir/plain/status")" = 0 ] || { bad "$name" "$(head -c 300 "$dir/plain/stderr")"; return; }
  for path in auto plain vector prefix events launches; do
    for threads in "${ways[@]}"; do
      one "$dir/other" "$@" --path $path $threads
      if ! diff -r "$dir/plain" "$dir/other" >"$dir/diff"; then
        bad "$name: --path $path $threads" "foldline $*" "$(head -n 4 "$dir/diff" | cut -c1-300)"
        return
      fi
    done
  done
  ok "$name"
}

refuse "an unknown path" 2 "^foldline run: no --path 'scan', expected one of auto, plain, vector, prefix, events, launches$" \
  "$f" run traces/samples/mix8.csv --platform generic --policy maxfreq --path scan
for c in run compare grid; do
  check "--path in the help of $c" grep -q -- '--path auto|plain|vector' <("$f" $c --help all)
done

# ---- samples and experiments ----

for t in inference launches sweetspot-blackscholes mix8; do
  p=generic
  case $t in sweet*) p=rtx4070-laptop ;; mix8) p=v100-300w ;; esac
  same "run of $t" run "traces/samples/$t.csv" --platform $p --policy utilizscale:period_ms=20 --log "$out/log.csv" \
    --timeline "$out/timeline.csv" --telemetry "$out/telemetry.csv" --every-ms 50
  [ $t = mix8 ] || same "baselines of $t" compare "traces/samples/$t.csv" --platform $p --bound 10% --kernels
done
same "run of a sweep" run traces/samples/energyucb-table1.csv --workload 528.pot3d --platform pvc-max1550x6 \
  --policy energyucb --json
same "baselines of programs" compare traces/samples/powercap.programs.csv --platform k20xm-e5-2660 --seconds 1
# Policies that wake at markers: of ranks that wait for each other, and of one alone, whose stream is scanned otherwise.
sed -e 's/stages: 4/stages: 1/' traces/samples/four-stages.pipeline.csv >"$dir/one.pipeline.csv"
printf 'gpu,count,sm_mhz\n0,3,1200\n0,1,1410\n0,2,1050\n' >"$dir/clocks.csv"
same "a plan at markers" run traces/samples/four-stages.pipeline.csv --platform a100-pcie \
  --policy "plan:plan=traces/samples/perseus/A100-bert.plans.csv#8" --log "$out/log.csv" --telemetry "$out/telemetry.csv" --every-ms 7.3
same "a plan of one rank" run "$dir/one.pipeline.csv" --platform a100-pcie --policy "plan:plan=$dir/clocks.csv" \
  --log "$out/log.csv" --timeline "$out/timeline.csv" --telemetry "$out/telemetry.csv" --every-ms 3.3
for e in first-light ${FL_PATHS:+inference contention energyucb-node dynaco-states geepafs-sweetspot power-capping \
  mf-gpoeo-short}; do
  same "compare of $e" compare "harness/experiments/$e.json" -o "$out/r.csv"
  case $e in energyucb*) continue ;; esac # a distribution replay has no sweep
  same "grid of $e" grid "harness/experiments/$e.json" -o "$out/r.csv" --no-oracle
done

# ---- random workloads ----

draw() { # N: one of 0 .. N-1 into v
  seed=$(((seed * 1103515245 + 12345) & 0x7fffffff))
  v=$(((seed >> 12) % $1))
}
pick() { # one of the words into v
  draw $#
  shift "$v"
  v=$1
}
policies=(nvboost utilizscale assure sweetspot energyucb random round-robin mf-gpoeo depo skeleton odpp)

# Kernels of a microsecond to seconds, host time up to many milliseconds: both beyond what a short record holds, too.
# Kinds of some are copies.
make_trace() { # N: $dir/t.csv
  local arguments=(--seed "$1")
  seed=$((($1 * 2654435761) & 0x7fffffff))
  pick 40 400 3000 20000
  local kernels=$v mean
  pick 1 3 32
  arguments+=(--kinds "$v")
  pick 1 1 1 2 8
  arguments+=(--streams "$v")
  pick 1 1 1 2
  gpus=$v
  arguments+=(--gpus "$v")
  pick 1 30 30 300 1000 3000000
  mean=$v
  [ "$mean" -lt 3000000 ] || kernels=40
  pick 0 5 80 20000
  arguments+=(--kernels "$kernels" --mean-us "$mean" --gap-us "$v")
  every=$(awk "BEGIN { print ($mean + $v) * 0.3 }") # ms: some 300 kernels of a stream
  pick 0.1 1 0
  arguments+=(--sm-demand "$v" --memory 0.5)
  pick "" "" --launches
  arguments+=($v)
  pick generic a100 v100-300w h100
  platform=$v
  "$f" synth "${arguments[@]}" --platform "$platform" -o "$dir/t.csv" >"$dir/synth" 2>&1 || return 1
  draw 3
  [ "$v" != 0 ] || sed -i -E 's/,(comp|mem)_[0-9]*[37],[0-9]+,[0-9]+,[0-9]+,[0-9]+,[0-9]+,[0-9]+/,[CUDA memcpy HtoD],,,,,,/' "$dir/t.csv"
}

for ((n = from; n < from + count; n++)); do
  make_trace $n || { bad "workload $n" "$(cat "$dir/synth")"; continue; }
  pick "" "" --heat --no-cpu "--wall off"
  on=("$dir/t.csv" --platform "$platform" --gpus "$gpus" $v)
  pick "${policies[@]}"
  one_policy=$v
  pick "${policies[@]}"
  two=(--policy "$one_policy")
  [ "$v" = "$one_policy" ] || two+=(--policy "$v")
  same "random workload $n: run $one_policy" run "${on[@]}" --policy "$one_policy" --log "$out/log.csv" \
    --timeline "$out/timeline.csv" --telemetry "$out/telemetry.csv" --every-ms "$every"
  pick compare grid baselines
  for c in compare grid baselines; do
    [ -n "${FL_PATHS:-}" ] || [ "$c" = "$v" ] || continue
    case $c in
    compare) same "random workload $n: compare" compare "${on[@]}" "${two[@]}" --bound 5% --positions 200 -o "$out/r.csv" ;;
    grid) same "random workload $n: grid" grid "${on[@]}" "${two[@]}" --seeds 2 --no-oracle -o "$out/r.csv" ;;
    baselines) same "random workload $n: baselines" compare "${on[@]}" --bound 5% --positions 200 --json ;;
    esac
  done
done

for path in $must; do
  check "the path $path was taken" [ "${taken[$path]:-0}" -gt 0 ]
done
finish
