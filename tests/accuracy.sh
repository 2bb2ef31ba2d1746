#!/usr/bin/env bash
# How well `fit device` and `fit workload` predict settings that they did not see, and how good the clocks are that one
# would choose by them: the device from a seeded half of the workloads of a GPU, scored on the other half, mean of N
# splits. One line per GPU and question: mean absolute errors in percent (goal), share of the errors within two stated
# deviations (of which 95 % is meant; goal 90 to 98), clocks chosen under a bound of 10 %. A goal that is missed is named
# behind "missed". The widths of error bars (models/chip/cross.c) were measured on these GPUs too.
# Usage: FOLDLINE_DATA=FOLDER tests/accuracy.sh [PATH/TO/foldline] [SPLITS]; exit status 1 where a goal is missed.
set -u
program=${1:-build/foldline}
splits=${2:-20}
sweeps=${FOLDLINE_DATA:-}/sweeps
failed=0

if [ -z "${FOLDLINE_DATA:-}" ] || [ ! -d "$sweeps" ]; then
    echo "skipped: no measured sweeps (set FOLDLINE_DATA)"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
json=$work/answer.json

# value QUESTION KEY...: the number under the last key, looked for behind the others in turn, from that question on
value() {
    local question=$1
    shift
    awk -v question="$question" -v keys="$*" '
        BEGIN { count = split(keys, key, " "); at = 1 }
        /"at":/ { n++ }
        n == question && index($0, "\"" key[at] "\":") && at++ == count { gsub(/.*:[ \t]*|,.*/, ""); print; exit }' "$json"
}

# check NAME VALUE LEAST MOST: adds NAME to $missed where the value is not within; - = no limit
check() {
    awk -v x="$2" -v least="$3" -v most="$4" 'BEGIN {
        exit !(x != "" && x != "null" && (least == "-" || x + 0 >= least + 0) && (most == "-" || x + 0 <= most + 0)) }' ||
        missed+=" $1"
}

# score QUESTION NAME CLASS TIME POWER ENERGY BROKEN: prints the line of a question; goals in percent, - = none,
# Nx = N times the scatter of the data
score() {
    local question=$1 class=$3 part=(time power energy) goal=("$4" "$5" "$6") line x g missed=
    line=$(printf '%-42s' "$2")
    for i in 0 1 2; do
        x=$(value "$question" "$class" "${part[$i]}_mape_pct")
        g=${goal[$i]}
        case $g in
        *x) g=$(awk -v n="${g%x}" -v s="$(value 0 scatter "${part[$i]}_scatter_pct")" 'BEGIN { printf "%.2f", n * s }') ;;
        esac
        line+=$(printf ' %s %5.2f' "${part[$i]}" "${x/null/nan}")
        [ "$g" = - ] || { line+=" ($g)"; check "${part[$i]}" "$x" - "$g"; }
    done
    for i in 0 1; do
        x=$(value "$question" "$class" "${part[$i]}_within_2sd_pct")
        line+=$(printf ' | %s in 2 sd %3.0f' "${part[$i]}" "${x/null/nan}")
        check "${part[$i]}-coverage" "$x" 90 98
    done
    x=$(value "$question" decisions broken_half_pct)
    line+=$(printf ' | exact %3.0f broken %4.1f' "$(value "$question" decisions exact_pct)" "$x")
    [ "$7" = - ] || { line+=" ($7)"; check broken "$x" - "$7"; }
    line+=$(printf ' worst %.1f regret %.2f rank %.3f' "$(value "$question" decisions worst_excess_pct)" \
        "$(value "$question" decisions regret_pct)" "$(value "$question" decisions rank)")
    [ -z "$missed" ] || { line+="  missed:$missed"; failed=1; }
    echo "$line"
}

# ask GPU ARGUMENTS...: the answers stand in $json
ask() {
    local gpu=$1
    shift
    "$program" fit device --cross-validate --splits "$splits" --decide --bound 0.10 --json "$@" >"$json" || { echo "$gpu: failed"; failed=1; return 1; }
}

tell_data() {
    printf '\n%s: scatter of the data: time %.2f, power %.2f, energy %.2f %%; law plain in %g of %s splits, errors on workloads left out, full and plain: time %.2f and %.2f, power %.2f and %.2f %%\n' \
        "$1" "$(value 0 scatter time_scatter_pct)" "$(value 0 scatter power_scatter_pct)" "$(value 0 scatter energy_scatter_pct)" \
        "$(value 0 law splits_plain)" "$splits" "$(value 0 law full_time_pct)" "$(value 0 law plain_time_pct)" \
        "$(value 0 law full_power_pct)" "$(value 0 law plain_power_pct)"
}

# gpu NAME TOP PAIR FOUR ENDS_TIME ENDS_POWER ENDS_ENERGY ARGUMENTS...: one, two chosen, and four settings, and the ends
gpu() {
    local name=$1 top=$2 pair=$3 four=$4 goal=("$5" "$6" "$7")
    shift 7
    [ -z "$chosen" ] || pair=$chosen
    ask "$name" --at "$top" --at "$pair" --at "$four" --at ends "$@" || return
    tell_data "$name"
    score 1 "$name, one: $top" all - - - -
    score 2 "$name, two: $pair" all 1.0 1.2 1.0 5
    score 3 "$name, four: $four" all 1.2x 1.2x 1.2x -
    score 4 "$name, ends" all "${goal[@]}" -
}

# activity GPU: how much less the errors of the first question are than without activities
activity() {
    local x missed= line="$1, one: with activity over without"
    line=$(printf '%-42s' "$line")
    for part in time power; do
        x=$(awk -v a="$(value 1 all ${part}_mape_pct)" -v b="$(value 1 without_activity all ${part}_mape_pct)" 'BEGIN { printf "%.3f", a / b }')
        line+=" $part $x (0.6)"
        check "$part" "$x" - 0.6
    done
    line+=$(printf ' | placed by activity: %g of %g' "$(value 1 workloads_placed_by_activity)" "$(value 1 workloads_predicted)")
    [ -z "$missed" ] || { line+="  missed:$missed"; failed=1; }
    echo "$line"
}

chosen=
"$program" fit device --help all | grep -q 'chosen:' && chosen=chosen:2
# The second V100's rows at 405 MHz are not what they say; the Titan X that was asked for 1164 MHz ran at 1140.
for f in v100b-activity v100b-activity-micro; do
    awk -F, '$3 != 405' "$sweeps/$f.csv" >"$work/$f.csv"
done

gpu v100 sm=1530 sm=885,1402 sm=952,1140,1335,1530 1.5 1.2 1.5 "$sweeps/v100-300w.csv"
score 3 "v100, four, between them" interpolated 0.3 0.8 0.9 -
gpu gtx-1080-ti sm=2000 sm=1700,1900 corners - - - "$sweeps/gtx1080ti.csv"
score 3 "gtx-1080-ti, corners, between them" interpolated 1.0 1.0 - -
gpu gtx-titan-x sm=1126 sm=747,1050 corners - - - "$sweeps/gtx-titan-x.csv"
gpu v100b sm=1380 sm=705,1237 sm=600,802,1087,1380 - - - "$work/v100b-activity.csv" --beside "$work/v100b-activity-micro.csv"
activity v100b
splits=1
gpu gtx-titan-x sm=1126 sm=747,1050 corners - - - "$sweeps/gtx-titan-x.csv" --device-sweep "$sweeps/gtx-titan-x-micro.csv"
score 3 "gtx-titan-x from micro, corners, between them" interpolated 2.5 3.0 - -

printf '\na copied spec: another board of the chip, its constants as they are\n'
spec() {
    ask "$1" --at "$2" --at "$3" --at ends "$4" --spec "$5" || return
    score 1 "$1 as $5, one: $2" all - - - -
    score 2 "$1 as $5, two: $3" all - - - -
    score 3 "$1 as $5, ends" all - - - -
}
spec v100 sm=1530 sm=885,1402 "$sweeps/v100-300w.csv" v100-163w
spec v100b sm=1380 sm=705,1237 "$work/v100b-activity.csv" v100-300w
spec v100b sm=1380 sm=705,1237 "$work/v100b-activity.csv" v100-163w

printf '\nlaws of time: mean error at clocks left out in turn, at the highest memory clock\n'
laws() { # NAME FILE
    "$program" fit workload "$2" --device generic --at all --extrapolate --json 2>"$work/laws.err" | awk -v name="$1" -F'[:,]' '
        /"max_scaling_error_pct"/ { scaling += $2; n++; x = $2 }
        /"fold_line_error_pct"/ { fold += $2; better += $2 < x - 0.005 }
        END { if (n) printf "%-42s %3d workloads | max-scaling %5.2f | fold line %5.2f, better for %d\n", name, n, scaling / n, fold / n, better }'
}
for f in "$sweeps"/*.csv; do
    name=$(basename "$f" .csv)
    [ -e "$work/$name.csv" ] && f=$work/$name.csv
    laws "$name" "$f"
done

printf '\nwithout a platform: clocks that advise chooses by laws of each program alone (goals)\n'
python3 "$(dirname "$0")/support/no_device.py" "$program" "$sweeps"/*.csv || failed=1
exit $failed
