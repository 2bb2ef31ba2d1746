#!/usr/bin/env bash
# What `tightrope` is held to, on measured workloads that no parameter here was tuned on. For each sweep of
# $FOLDLINE_DATA/sweeps, and the one that is shipped: workloads of SECONDS at the top clock, records free and at their cost,
# each held against the clairvoyant schedule. A run is a violation where its makespan is beyond (1 + bound) times that of
# the top clock with the same seed and jitter, the cost of records included. The other policies have the parameters that
# `foldline search` found best for the same bound on one half of the workloads (--tune;
# harness/experiments/ladder.csv); the other half is scored. tightrope has its defaults. The halves are drawn with
# seed 20, fixed before any result was seen.
#   FOLDLINE_DATA=FOLDER tests/policies.sh PROGRAM          each goal with what was measured: 3 minutes of processor time
#   FOLDLINE_DATA=FOLDER tests/policies.sh PROGRAM --all    everything: all policies, 2 % too, 300 and 1,500 s, 5 seeds of jitter
#   tests/policies.sh PROGRAM --tiny                        the shipped sweep alone, some seconds
#   tests/policies.sh PROGRAM --page                        writes figure and table of harness/experiments/ladder.md
#   FOLDLINE_DATA=FOLDER tests/policies.sh PROGRAM --ladder    writes the table of all sweeps of harness/experiments/ladder.md
#   FOLDLINE_DATA=FOLDER tests/policies.sh PROGRAM --tune   finds the parameters of the others, writes that file and tightrope.json
#   FAMILIES="random round-robin" ...                       tunes these alone and keeps the rows of the other policies
# Prints each goal as held or missed, --all and --tiny also what each policy did; exit status 1 where a goal is missed, and
# the last line counts them. RESULTS=FILE keeps every run as a row. HALF=tune runs the half that the others were tuned on.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
program=$(realpath "${1:?usage: tests/policies.sh PROGRAM [--all | --tiny | --page | --ladder | --tune]}")
form=${2:---goals} which=${HALF:-score}
case $form in
--goals | --all | --tiny | --page | --ladder | --tune) ;;
*) echo "policies: '$form', expected --all, --tiny, --page, --ladder or --tune" >&2; exit 2 ;;
esac
ladder=harness/experiments/ladder.csv
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
long=${RESULTS:-$work/long.csv}
: >"$long"
tables() { python3 tests/support/policies.py "$@"; }
fail() { echo "policies: $*" >&2; exit 1; }

if [ "$form" = --page ]; then
    experiment=harness/experiments/ladder
    "$program" compare $experiment.json -o "$work/page.csv" >/dev/null || exit 1
    tables page "$work/page.csv" $experiment.md 0.05 || exit 1
    tables figure "$work/page.csv" "$work/figure.csv" || exit 1
    "$program" plot workloads "$work/figure.csv" -o plots/ladder.svg || exit 1
    echo "written: $experiment.md, plots/ladder.svg"
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
    "$program" fit device "$1" -o "$work/$name.device.json" >/dev/null 2>&1 || rm -f "$work/$name.device.json"
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
    for family in ${FAMILIES-}; do
        [[ " $(tables families | tr '\n' ' ') " == *" $family "* ]] || { echo "policies: no policy '$family' to tune" >&2; exit 2; }
    done
    echo "# foldline search over tests/support/policies.py grid, workloads of 100 s, the half that is not scored (seed $(tables seed));" \
        "by tests/policies.sh PROGRAM --tune" >"$work/ladder"
    echo "sweep,bound,policy,tuned_saving_pct,tuned_violated,tuned_runs,spec" >>"$work/ladder"
    while read -r sweep of; do
        prepare "$sweep" "$of"
        for bound in 0.02 0.05 0.1; do
            for family in $(tables families); do
                case " ${FAMILIES:-$family} " in
                *" $family "*) ;;
                *) grep "^$name,$bound,$family," "$ladder" >>"$work/ladder"; continue ;;
                esac
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
    cp "$work/experiment" harness/experiments/ladder.json
    echo "written: $ladder, harness/experiments/ladder.json"
    exit 0
fi

# specs BOUND [POLICY]: of the others, or of that one
specs() {
    python3 -c '
import csv, sys
for r in csv.DictReader(l for l in open(sys.argv[1]) if l[0] != "#"):
    if r["sweep"] == sys.argv[2] and float(r["bound"]) == float(sys.argv[3]) and r["policy"] in (sys.argv[4:] or r["policy"]):
        print(r["spec"])' "$ladder" "$name" "$@"
}

# compare WHAT... -- OPTION...: one comparison, and its rows in the long form; WHAT: KEY=VALUE of its rows
compare() {
    local what=()
    while [ "$1" != -- ]; do what+=("$1") && shift; done
    nice -n 10 "$program" compare --bound "$bound" --records both --threads 2 --policy maxfreq "${@:2}" -o "$work/cell.csv" \
        >"$work/out" 2>"$work/err" || fail "$name: $(cat "$work/err")"
    tables take "$work/cell.csv" sweep="$name" bound="$bound" half="$which" "${what[@]}" >>"$long" || exit 1
}

# cell SECONDS BOUND SENSOR JITTER SEEDS WAYS...: of tightrope its defaults, what it may trust, or the name of a signal;
# of the others assure, or all of them (others)
cell() {
    local seconds=$1 bound=$2 sensor=$3 jitter=$4 seeds=$5 policies=() more=() way spec on=$platform
    shift 5
    for way in "$@"; do
        case $way in
        assure) while IFS= read -r spec; do policies+=(--policy "$spec"); done < <(specs "$bound" assure) && continue ;;
        others) while IFS= read -r spec; do policies+=(--policy "$spec"); done < <(specs "$bound") && continue ;;
        default) spec=tightrope:bound=$bound ;;
        counters) spec=tightrope:bound=$bound,trust=counters ;;
        *) spec=tightrope:bound=$bound,signal=$way ;;
        esac
        policies+=(--policy "$spec")
        [[ $way != @(default|records|kernels) ]] || policies+=(--policy "$spec,records_cost=0")
    done
    if [ "$sensor" != platform ]; then
        on=$work/$name.$sensor.json
        [ -e "$on" ] || tables sensor "$platform" "$sensor" "$on" || exit 1
    fi
    [ "$jitter" = 0 ] || more=(--jitter "$jitter" --seeds "$seeds")
    set -- seconds="$seconds" sensor="$sensor" jitter="$jitter" -- "$(part "$seconds" "$which")" --platform "$on" "${more[@]}"
    compare "$@" "${policies[@]}"
}

if [ "$form" = --ladder ]; then
    while read -r sweep of; do
        prepare "$sweep" "$of"
        for bound in 0.05 0.1; do cell 100 "$bound" platform 0 1 default others; done
    done <"$sweeps"
    tables ladder "$long" harness/experiments/ladder.md || exit 1
    echo "written: harness/experiments/ladder.md"
    exit 0
fi

echo "seed of the halves: $(tables seed)"
brief='default counters records kernels'
case $form in
--tiny) bounds='0.05' base=10 first='records kernels util others' lengths='' again='' signals='records kernels util' late='late-0.5' seeds=2 ;;
--goals)
    bounds='0.05 0.1' base=100 first="$brief util util,alike=all assure" lengths='10 30' again=$brief
    signals='default counters records kernels' late='late-0.2 late-0.5 late-1' seeds=1
    ;;
--all)
    bounds='0.02 0.05 0.1' base=100 first="$brief bytes util util,alike=all others" lengths='10 30 300 1500' again="$brief bytes util"
    signals='default counters records kernels bytes util' late='ideal late-0.2 late-0.5 late-1' seeds=5
    ;;
esac
while read -r sweep of; do
    prepare "$sweep" "$of"
    for bound in $bounds; do
        cell "$base" "$bound" platform 0 1 $first
        for seconds in $lengths; do cell "$seconds" "$bound" platform 0 1 $again; done
        for sensor in $late; do cell "$base" "$bound" "$sensor" 0 1 $signals; done
        cell "$base" "$bound" platform 0.05 "$seeds" $signals
    done
done <"$sweeps"
[ "$form" = --goals ] || { tables table "$long" && echo; }
echo "goals, over the scored workloads of all sweeps"
tables gates "$long"
