#!/usr/bin/env bash
# Do two programs say the same? Runs both on the samples and the experiments and compares, byte for byte, what they print,
# what they write and how they end: for changes that must not change a result.
#   tests/same_bytes.sh BEFORE AFTER [PATTERN]   two foldline programs; only lines whose name matches PATTERN
# The hash of the policies' archive is left out, since any rebuilt policy changes it. SAME_BYTES_ALL=1 adds what takes
# minutes; FOLDLINE_DATA adds measured sweeps and logs. Ends with 1 where anything differs, and keeps that (it says where).
set -u
export LC_ALL=C
[ $# -ge 2 ] || { sed -n '2,6s/^# \?//p' "$0" >&2; exit 2; }
before=$(realpath "$1") after=$(realpath "$2") pattern=${3:-}
cd "$(dirname "$0")/.." || exit 2
export FOLDLINE_SHARE=$PWD/models FOLDLINE_PLOTS=$PWD/plots
work=$(mktemp -d "${TMPDIR:-/tmp}/foldline-same-XXXXXX") || exit 2
out=$work/out # both programs write here in turn, so that paths they print are the same
tried=0 different=0

declare -A archive # the hash of a program's policies
for program in "$before" "$after"; do
  archive[$program]=$("$program" run traces/samples/mix8.csv --platform v100-300w --policy maxfreq --json |
    sed -n 's/.*"policy_archive_sha256":[[:space:]]*"\([0-9a-f]*\)".*/\1/p')
  [ -n "${archive[$program]}" ] || { echo "$program does not run" >&2; exit 2; }
done

# one PROGRAM FOLDER ARGUMENTS...: what it printed, wrote and returned, into FOLDER
one() {
  local program=$1 folder=$2
  shift 2
  mkdir -p "$folder/files"
  "$program" "$@" >"$folder/stdout" 2>"$folder/stderr" </dev/null
  echo $? >"$folder/status"
  [ -n "$(ls -A "$out")" ] && mv "$out"/* "$folder/files"
  grep -rlF "${archive[$program]}" "$folder" | xargs -r sed -i "s/${archive[$program]}/ARCHIVE/g"
}

# same NAME ARGUMENTS...: $out stands for the folder to write into
same() {
  local name=$1
  shift
  [[ $name =~ $pattern ]] || return 0
  rm -rf "$work/before" "$work/after" "$out"
  mkdir -p "$out"
  prepare "$before"
  one "$before" "$work/before" "$@"
  prepare "$after"
  one "$after" "$work/after" "$@"
  tried=$((tried + 1))
  if ! diff -r "$work/before" "$work/after" >"$work/diff"; then
    different=$((different + 1))
    mkdir -p "$work/kept/$name"
    mv "$work/before" "$work/after" "$work/kept/$name"
    echo "DIFFERS: $name: foldline $*"
    head -n 6 "$work/diff"
  fi
}
prepare() { :; }

# Which platform a sample was made for.
platform_of() {
  case $1 in
  *dynaco*) echo apu-a10-5800k ;;
  *powercap*) echo k20xm-e5-2660 ;;
  *mf-gpoeo*) echo rtx3080ti ;;
  *inference* | *launches*) echo generic ;;
  *) echo rtx4070-laptop ;;
  esac
}
traces=($(grep -l '^# foldline-kernels 1' traces/samples/*.csv)) programs=($(grep -l '^# foldline-programs 1' traces/samples/*.csv))
experiments=()
for e in harness/experiments/*.json; do
  case $e in
  */mf-gpoeo*.json | */energyucb-grid.json) [ -n "${SAME_BYTES_ALL:-}" ] && experiments+=("$e") ;;
  *) experiments+=("$e") ;;
  esac
done
policies=$("$after" list policies | sed -n 's/^\([a-z0-9][^ ]*\)  *[^ ].*/\1/p')

for t in "${traces[@]}"; do
  n=$(basename "$t" .csv)
  for p in nvboost assure utilizscale:period_ms=50 skeleton energyucb mf-gpoeo; do
    same "run-$n-${p%%:*}" run "$t" --platform "$(platform_of "$t")" --policy "$p" --log "$out/log.csv" --timeline "$out/timeline.csv" \
      --telemetry "$out/telemetry.csv" --probes "$out/probes.csv"
  done
  same "run-json-$n" run "$t" --platform "$(platform_of "$t")" --policy sweetspot --heat --gpus 2 --json
  same "oracle-$n" compare "$t" --platform "$(platform_of "$t")" --bound 0.1
  same "oracle-kernels-$n" compare "$t" --platform "$(platform_of "$t")" --kernels --json
  same "trace-$n" show "$t"
done
for t in "${programs[@]}"; do
  n=$(basename "$t" .csv)
  [ "$n" = mf-gpoeo.programs ] && [ -z "${SAME_BYTES_ALL:-}" ] && continue
  same "compare-$n" compare "$t" --platform "$(platform_of "$t")" --seconds 2 --policy assure --policy utilizscale --bound 0.05 \
    -o "$out/r.csv"
done
for p in $policies; do
  same "policies-$p" list policies "$p"
  same "run-policy-$p" run traces/samples/sweetspot-blackscholes.csv --platform rtx4070-laptop --policy "$p" --json
done
same policies list policies --json
same platforms list platforms
for f in models/platforms/*.json; do
  same "platforms-$(basename "$f" .json)" list platforms "$(basename "$f" .json)"
done
for e in "${experiments[@]}"; do
  n=$(basename "$e" .json)
  same "compare-$n" compare "$e" -o "$out/r.csv" --threads 2
  same "compare-json-$n" compare "$e" --no-oracle --json
  same "sweep-$n" grid "$e" -o "$out/r.csv" --no-oracle
done

# What reads a result that was made before: each program reads its own.
prepare() { "$1" compare harness/experiments/inference.json --seeds 2 -o "$out/r.csv" >"$out/r.log" 2>&1; }
same report report "$out/r.csv" -o "$out/r.html"
for kind in pareto regret; do same "plot-$kind" plot "$kind" "$out/r.csv" -o "$out/r.svg"; done
prepare() { "$1" run traces/samples/mix8.csv --platform rtx4070-laptop --policy assure --log "$out/log.csv" >"$out/r.log" 2>&1; }
same verify verify "$out/log.csv"
same verify-other verify "$out/log.csv" --policy assure --set theta=0.9 --json
prepare() { :; }
same fit-device fit device traces/samples/energyucb-table1.csv -o "$out/d.json"
same fit-capping fit policy capping traces/samples/powercap.sweep.csv
same fit-sweetspot fit policy sweetspot traces/samples/sweetspot8.programs.csv --platform rtx4070-laptop
same fit-sensitivity fit policy sensitivity traces/samples/dynaco.programs.csv --platform apu-a10-5800k --seconds 1 \
  --table "$out/states.csv"
same search search harness/experiments/first-light.json
same regress regress harness/experiments/first-light.json --bless -o "$out/q.json"
same synth synth --kernels 2000 --seed 5 -o "$out/s.csv"
for c in $("$after" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do same "help-$c" "$c" --help all; done
same help --help
same unknown rnu
same no-file run nothing.csv --platform v100-300w --policy assure
same no-policy run traces/samples/mix8.csv --platform v100-300w --policy asure
same no-platform run traces/samples/mix8.csv --platform v100 --policy assure

if [ -n "${FOLDLINE_DATA:-}" ]; then
  for s in "$FOLDLINE_DATA"/sweeps/*.csv; do
    n=$(basename "$s" .csv)
    same "data-fit-device-$n" fit device "$s" -o "$out/d.json"
    same "data-fit-own-$n" fit workload "$s" --json
  done
  s=$FOLDLINE_DATA/sweeps/v100-300w.csv
  same data-power-wall compare harness/experiments/power-wall.json "$FOLDLINE_DATA"/sweeps/a100-pcie-lock-x-cap.csv -o "$out/r.csv"
  same data-compare compare "$s" --platform v100-300w --policy assure --bound 0.1 -o "$out/r.csv"
  same data-fitted compare "$s" --model fitted --platform v100-300w --policy maxfreq -o "$out/r.csv"
  prepare() { "$1" fit device "$s" -o "$out/d.json" >"$out/d.log" 2>&1; }
  same data-fit-workload fit workload --device "$out/d.json" "$s" --json
  prepare() { :; }
  for f in "$FOLDLINE_DATA"/formats/*; do
    same "data-import-$(basename "$f")" import "$f" -o "$out/i.csv"
    same "data-trace-$(basename "$f")" show "$f"
  done
  for l in "$FOLDLINE_DATA"/logs/*; do
    same data-verify verify "$l" --format geepafs --platform v100-163w --policy assure --set theta=0.9 --json
  done
fi

if [ "$different" = 0 ]; then
  rm -rf "$work"
else
  echo "kept: $work/kept"
fi
echo "same bytes: $tried commands, $different differ"
[ "$different" = 0 ] && [ "$tried" -gt 0 ]
