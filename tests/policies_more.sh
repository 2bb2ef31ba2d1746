#!/usr/bin/env bash
# What `tightrope` is held to beyond measured sweeps (tests/policies.sh), with the bound of 5 %. Each part prints its goals as
# held or missed; exit status 1 where one is missed, 2 where a command failed.
#   tests/policies_more.sh PROGRAM irregular         50 drawn programs: phases in half of them, one to three streams
#   tests/policies_more.sh PROGRAM ceiling           what any policy could save on those of them that have one stream
#   tests/policies_more.sh PROGRAM applications      MF-GPOEO's 17 applications and one drawn like them, 1,500 s, five draws, beside mf-gpoeo
#   tests/policies_more.sh PROGRAM adversary [N]     N trials (10,000) that look for the worst slowdown, half on one stream
#   tests/policies_more.sh PROGRAM core              processor time of the live process for each emulated second
# The seeds were fixed before any result was seen, and no other script uses them: 2001 to 2050, 301 to 305, 91 and 92.
# SEEDS="2001 2002" takes others; FL_THREADS=N uses so many threads (2). RECORDS_US=0.8: in `applications` a kernel record takes so
# long, instead of a share of 2 %.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
program=$(realpath "${1:?usage: tests/policies_more.sh PROGRAM irregular | ceiling | applications | adversary [N] | core}")
part=${2:-} threads=${FL_THREADS:-2}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() { echo "policies_more: $*" >&2; exit 2; }
# One of the irregular programs: phases where the seed is even, one to three streams
draw() { # seed
    local burst=4
    [ $(($1 % 2)) = 1 ] || burst=3000
    "$program" synth -o "$work/$1.csv" --kernels 100000 --mean-us 500 --burst $burst --streams $(($1 % 3 + 1)) --seed "$1" >/dev/null ||
        fail "synth $1"
}
judge() { python3 tests/support/policies_more.py "$@"; }

case $part in
irregular)
    for seed in ${SEEDS:-$(seq 2001 2050)}; do
        draw "$seed"
        nice -n 10 "$program" compare "$work/$seed.csv" --platform generic --bound 0.05 --threads "$threads" --policy maxfreq \
            --policy tightrope:bound=0.05 --policy tightrope:bound=0.05,trust=counters -o "$work/$seed.rows" >/dev/null \
            2>"$work/err" || fail "$seed: $(tail -n 1 "$work/err")"
        rm -f "$work/$seed.csv" "$work/$seed.kinds.csv"
    done
    judge irregular "$work"/*.rows
    ;;
ceiling)
    clocks=$(for mhz in 300 400 500 600 700 800 900 1000 1100 1200 1300 1400; do echo "--policy fixed:sm_mhz=$mhz"; done)
    for seed in ${SEEDS:-$(seq 2001 2050)}; do
        [ $((seed % 3)) = 0 ] || continue
        draw "$seed"
        # A change of the clock takes 5 ms to set and 20 ms to take effect: as many places as fit into the run.
        nice -n 10 "$program" compare "$work/$seed.csv" --platform generic --bound 0.05 --threads "$threads" --policy maxfreq $clocks \
            -o "$work/$seed.rows" >/dev/null 2>"$work/err" || fail "$seed: $(tail -n 1 "$work/err")"
        places=$(judge places "$work/$seed.rows" 0.025) || fail "$seed: no run at the top clock"
        nice -n 10 "$program" compare "$work/$seed.csv" --platform generic --bound 5% --positions "$places" --json >"$work/$seed.oracle" \
            2>"$work/err" || fail "$seed: $(tail -n 1 "$work/err")"
        rm -f "$work/$seed.csv" "$work/$seed.kinds.csv"
    done
    judge ceiling "$work"/*.oracle
    ;;
applications)
    seeds=${SEEDS:-301 302 303 304 305} platform=rtx3080ti
    if [ -n "${RECORDS_US:-}" ]; then
        platform=$work/timed.json
        sed "s/\"kernel_us\": 0.8/\"kernel_us\": $RECORDS_US/" models/platforms/rtx3080ti.json >"$platform"
        grep -q kernel_us "$platform" || fail "no records to change in rtx3080ti.json"
    fi
    cat >"$work/applications.json" <<END
{"foldline_experiment": 1, "about": "tightrope on MF-GPOEO's applications", "platform": "$platform",
 "applications": {"drawn": 1, "seeds": [$(echo $seeds | tr ' ' ,)]}, "seconds": 1500, "bound": 0.05, "oracles": "static",
 "policies": ["tightrope:bound=0.05", "tightrope:bound=0.05,trust=counters", "mf-gpoeo", "maxfreq"]}
END
    nice -n 10 "$program" compare "$work/applications.json" --threads "$threads" -o "$work/rows" >/dev/null 2>"$work/err" ||
        fail "$(tail -n 1 "$work/err")"
    judge applications "$work/rows"
    ;;
adversary)
    trials=${3:-10000} missed=0
    for streams in 1 2; do
        found=${KEEP:-$work}/worst-$streams.programs.csv
        # The search itself ends with 1 where a trial is beyond the bound.
        nice -n 10 "$(dirname "$program")/tests/adversary" --platform generic --policy tightrope:bound=0.05 --streams $streams \
            --trials $(((trials + 1) / 2)) --seed $((90 + streams)) --threads "$threads" -o "$found" --json >"$work/found.json" 2>"$work/err"
        [ $? -le 1 ] || fail "$(tail -n 1 "$work/err")"
        judge adversary "$work/found.json" $streams "$found" || missed=1
    done
    exit $missed
    ;;
core)
    "$program" synth -o "$work/t.csv" --kernels 400000 --mean-us 300 --kinds 4 --burst 4 --seed 2001 >/dev/null || fail synth
    for seconds in 20 60; do # the difference leaves out what starting costs, and the short windows at the start
        "$program" emulate "$work/t.csv" --platform generic --time virtual --quiet --privileged -- \
            python3 tests/support/policies_more.py cost "$work/$seconds" "$program" live --policy tightrope --for ${seconds}s \
            >/dev/null 2>"$work/err" || fail "$(tail -n 1 "$work/err")"
    done
    judge core 20 "$work/20" 60 "$work/60"
    ;;
*) echo "policies_more: '$part', expected irregular, ceiling, applications, adversary or core" >&2; exit 2 ;;
esac
