#!/usr/bin/env bash
# What `tightrope` saves beside every built-in policy that applies, on measured workloads that no parameter here was tuned
# on; and whether it holds its bound. For each sweep of $FOLDLINE_DATA/sweeps, and the one that is shipped: workloads of
# SECONDS at the top clock, records free and at their cost, each held against the clairvoyant schedule. A run is a
# violation where its makespan is beyond (1 + bound) times that of the top clock with the same seed and jitter, the cost
# of records included. The other policies have the parameters that `foldline search` found best for the same bound on one
# half of the workloads (--tune; harness/experiments/tightrope.ladder.csv); the other half is scored. tightrope has its
# defaults. The halves are drawn with seed 20, fixed before any result was seen.
#   FOLDLINE_DATA=FOLDER tests/policies.sh PROGRAM          some minutes: 10 % and 5 %, 10, 30 and 100 s
#   FOLDLINE_DATA=FOLDER tests/policies.sh PROGRAM --all    everything: 2 % too, 300 and 1,500 s, 5 seeds of jitter
#   tests/policies.sh PROGRAM --tiny                        the shipped sweep alone, some seconds
#   tests/policies.sh PROGRAM --page                        writes figure and table of harness/experiments/tightrope.md
#   FOLDLINE_DATA=FOLDER tests/policies.sh PROGRAM --tune   finds the parameters of the others, writes that file and tightrope.json
# Prints what was measured, then each goal as held or missed; exit status 1 where one is missed. RESULTS=FILE keeps every
# run as a row.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
program=$(realpath "${1:?usage: tests/policies.sh PROGRAM [--all | --tiny | --page | --tune]}")
form=${2:---short}
case $form in --short | --all | --tiny | --page | --tune) ;; *) echo "policies: '$form', expected --all, --tiny, --page or --tune" >&2; exit 2 ;; esac
ladder=harness/experiments/tightrope.ladder.csv
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
long=${RESULTS:-$work/long.csv}
: >"$long"
tables() { python3 tests/support/policies.py "$@"; }
fail() { echo "policies: $*" >&2; exit 1; }

if [ "$form" = --page ]; then
    experiment=harness/experiments/tightrope
    "$program" compare $experiment.json --csv "$work/page.csv" >/dev/null || exit 1
    tables page "$work/page.csv" $experiment.md 0.05 || exit 1
    grep -v 'records_cost=0",' "$work/page.csv" >"$work/figure.csv" # told that records are free where they are not
    "$program" plot workloads "$work/figure.csv" -o plots/readme-tightrope.svg || exit 1
    echo "written: $experiment.md, plots/readme-tightrope.svg"
    exit 0
fi

# ---- the sweeps, each with the platform of its GPU; - = what `fit device` makes of the sweep ----
sweeps="$work/sweeps"
echo "traces/samples/energyucb-table1.csv pvc-max1550x6" >"$sweeps"
if [ "$form" = --tiny ]; then
    :
elif [ -d "${FOLDLINE_DATA:-}/sweeps" ]; then
    while read -r name platform; do
        if [ -e "$FOLDLINE_DATA/sweeps/$name.csv" ]; then echo "$FOLDLINE_DATA/sweeps/$name.csv $platform" >>"$sweeps"
        else echo "skipped: $name, which FOLDLINE_DATA lacks"; fi
    done <<'EOF'
v100-300w v100-300w
gtx1080ti -
gtx-titan-x -
v100b-activity -
a100-pcie-lock-x-cap a100-pcie
EOF
    echo "left out: the micro-benchmarks of a Titan X and a V100, which differ in one kernel only (RESULTS below are of programs)"
else
    echo "skipped: no measured sweeps (set FOLDLINE_DATA); the shipped one alone"
fi

# The platform of a sweep as a file, and what its device is calibrated by, which names clocks that were not run at.
prepare() { # sweep platform
    name=$(basename "$1" .csv)
    platform=$work/$name.json
    [ -e "$platform" ] && return
    "$program" fit device --sweep "$1" --out "$work/$name.device.json" >/dev/null 2>&1 || rm -f "$work/$name.device.json"
    if [ "$2" = - ]; then cp "$work/$name.device.json" "$platform" || fail "$name: no device can be fitted"
    else cp "models/platforms/$2.json" "$platform"; fi
}

# part SECONDS HALF: the path of that half of the sweep at hand, so long
part() {
    local out=$work/$name.$1.$2.csv
    [ -e "$out" ] || tables half "$sweep" "$1" "$2" "$out" "$(ls "$work/$name.device.json" 2>/dev/null)" || exit 1
    echo "$out"
}

# ---- the ladder: the best parameters of the others, bound by bound ----
if [ "$form" = --tune ]; then
    echo "# foldline search over tests/support/policies.py grid, workloads of 100 s, the half that is not scored (seed $(tables seed));" \
        "by tests/policies.sh PROGRAM --tune" >"$work/ladder"
    echo "sweep,bound,policy,tuned_saving_pct,tuned_violated,tuned_runs,spec" >>"$work/ladder"
    while read -r sweep of; do
        prepare "$sweep" "$of"
        for bound in 0.02 0.05 0.1; do
            for family in $(tables families); do
                tables grid "$family" "$platform" "$bound" "$(part 100 tune)" >"$work/grid.json" || fail "$family"
                nice -n 10 "$program" search "$work/grid.json" --threads 2 --json >"$work/found.json" 2>"$work/err" ||
                    { echo "left out: $name, $family: $(tail -n 1 "$work/err")"; continue; }
                python3 - "$work/found.json" "$name" "$bound" "$family" <<'EOF' >>"$work/ladder"
import json, sys
row = json.load(open(sys.argv[1]))["rows"][0]
print(",".join([*sys.argv[2:5], f"{row['tuned_saving_pct']:.2f}", str(row["tuned_violated"]), str(row["tuned_runs"]),
                '"' + row["policy"] + '"']))
EOF
                tail -n 1 "$work/ladder"
            done
        done
    done <"$sweeps"
    cp "$work/ladder" "$ladder"
    tables experiment "$ladder" traces/samples/energyucb-table1.csv pvc-max1550x6 0.05 >"$work/experiment" || exit 1
    cp "$work/experiment" harness/experiments/tightrope.json
    echo "written: $ladder, harness/experiments/tightrope.json"
    exit 0
fi

# specs SWEEP BOUND: of the others
specs() {
    python3 -c '
import csv, sys
for r in csv.DictReader(l for l in open(sys.argv[1]) if l[0] != "#"):
    if r["sweep"] == sys.argv[2] and float(r["bound"]) == float(sys.argv[3]):
        print(r["spec"])' "$ladder" "$name" "$1"
}

# cell SECONDS BOUND SENSOR JITTER SEEDS SIGNALS...: one comparison; "others" among the signals are the ladder's
cell() {
    local seconds=$1 bound=$2 sensor=$3 jitter=$4 seeds=$5 policies=() signal spec on=$platform
    shift 5
    for signal in "$@"; do
        if [ "$signal" = others ]; then
            while IFS= read -r spec; do policies+=(--policy "$spec"); done < <(specs "$bound")
        else
            policies+=(--policy "tightrope:bound=$bound,signal=$signal")
            [[ $signal$charged != @(records|kernels)yes ]] || policies+=(--policy "tightrope:bound=$bound,signal=$signal,records_cost=0")
        fi
    done
    if [ "$sensor" != platform ]; then
        on=$work/$name.$sensor.json
        [ -e "$on" ] || tables sensor "$platform" "$sensor" "$on" || exit 1
    fi
    if [ "$jitter" != 0 ]; then
        if [ -z "$jitters" ]; then return; fi
        policies+=(--jitter "$jitter" --seeds "$seeds")
    fi
    nice -n 10 "$program" compare --sweep "$(part "$seconds" score)" --platform "$on" --bound "$bound" --records both --threads 2 \
        --policy maxfreq "${policies[@]}" --csv "$work/cell.csv" >"$work/out" 2>"$work/err" || fail "$name: $(cat "$work/err")"
    tables take "$work/cell.csv" sweep="$name" seconds="$seconds" bound="$bound" sensor="$sensor" jitter="$jitter" half=score \
        >>"$long" || exit 1
}

# A policy that charges itself for records is told where they are free.
charged=$("$program" policies tightrope | grep -q '^  records_cost ' && echo yes)
jitters=$("$program" compare --help | grep -e '--jitter SHARE')
[ -n "$jitters" ] || echo "skipped: jitter, which $program cannot replay a sweep with"
echo "seed of the halves: $(tables seed)"
case $form in
--tiny) bounds='0.05' base=10 lengths='' signals='records kernels util' late='late-0.5' seeds=2 ;;
--short) bounds='0.05 0.1' base=100 lengths='10 30' signals='auto records kernels bytes util' late='late-0.2 late-0.5 late-1' seeds=1 ;;
--all)
    bounds='0.02 0.05 0.1' base=100 lengths='10 30 300 1500' signals='auto auto,trust=counters records kernels bytes util'
    late='ideal late-0.2 late-0.5 late-1' seeds=5
    ;;
esac
while read -r sweep of; do
    prepare "$sweep" "$of"
    for bound in $bounds; do
        cell "$base" "$bound" platform 0 1 $signals others
        for seconds in $lengths; do cell "$seconds" "$bound" platform 0 1 $signals; done
        for sensor in $late; do cell "$base" "$bound" "$sensor" 0 1 $signals; done
        cell "$base" "$bound" platform 0.05 "$seeds" $signals
    done
done <"$sweeps"
tables table "$long"
echo
echo "goals, over the scored workloads of all sweeps"
tables gates "$long"
