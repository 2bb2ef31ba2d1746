#!/usr/bin/env bash
# How well `fit device` and `fit workload` predict settings that they did not see: the device from a seeded half of the
# workloads of a file, the errors on the other half, mean of 20 splits. Prints one line per question and its goal, and the
# share of the errors within two stated standard deviations, of which 95 % is meant.
# Usage: FOLDLINE_DATA=FOLDER tests/accuracy.sh [PATH/TO/foldline] [SPLITS]; exit status 1 where a goal is missed.
set -u
program=${1:-build/foldline}
splits=${2:-20}
sweeps=${FOLDLINE_DATA:-}/sweeps
failed=0
within=85 # percent of the errors within 2 sd, at least; rows of one workload go together, so shares scatter

if [ -z "${FOLDLINE_DATA:-}" ] || [ ! -d "$sweeps" ]; then
    echo "skipped: no measured sweeps (set FOLDLINE_DATA)"
    exit 0
fi

# number KEY CLASS: the value of a class of rows in the JSON on stdin
number() { sed -n "/\"$2\"/,/}/s/.*\"$1\":[[:space:]]*\([0-9.e+-]*\|null\).*/\1/p" | head -n 1; }

# question NAME CLASS TIME POWER ENERGY ARGUMENTS...: goals in percent, - = none
question() {
    local name=$1 class=$2 goal=("$3" "$4" "$5") part=(time power energy) line json ok=yes value
    shift 5
    json=$("$program" fit split --splits "$splits" --json "$@") || { echo "$name: failed"; failed=1; return; }
    line=$(printf '%-44s %-12s' "$name" "$class")
    for i in 0 1 2; do
        value=$(number "${part[$i]}_mape_pct" "$class" <<<"$json")
        [ "$value" = null ] && value=
        line+=$(printf ' %-6s %5.2f' "${part[$i]}" "${value:-nan}")
        if [ "${goal[$i]}" != - ]; then
            line+=$(printf ' (%s)' "${goal[$i]}")
            awk -v x="${value:-9e9}" -v g="${goal[$i]}" 'BEGIN { exit !(x <= g) }' || ok=no
        fi
    done
    for i in 0 1; do
        value=$(number "${part[$i]}_within_2sd_pct" "$class" <<<"$json")
        [ "$value" = null ] && value=
        line+=$(printf '  %s within 2 sd %3.0f %%' "${part[$i]}" "${value:-nan}")
        awk -v x="${value:-0}" -v g="$within" 'BEGIN { exit !(x >= g) }' || ok=no
    done
    [ "$ok" = yes ] || { line+="  missed"; failed=1; }
    echo "$line"
}

# decision NAME BROKEN REGRET ARGUMENTS...: clocks of least energy within 10 % of the top's time; goals in percent, - = none
decision() {
    local name=$1 goal=("$2" "$3") part=(broken_half regret) line json ok=yes value
    shift 3
    json=$("$program" fit split --splits "$splits" --decide --bound 0.10 --json "$@") || { echo "$name: failed"; failed=1; return; }
    line=$(printf '%-44s exact %5.1f  expected to break %5.1f' "$name" "$(number exact_pct decisions <<<"$json")" \
        "$(number expected_broken_pct decisions <<<"$json")")
    for i in 0 1; do
        value=$(number "${part[$i]}_pct" decisions <<<"$json")
        line+=$(printf '  %s %5.2f' "${part[$i]}" "${value:-nan}")
        if [ "${goal[$i]}" != - ]; then
            line+=$(printf ' (%s)' "${goal[$i]}")
            awk -v x="${value:-9e9}" -v g="${goal[$i]}" 'BEGIN { exit !(x <= g) }' || ok=no
        fi
    done
    line+=$(printf '  worst %5.2f  rank %.3f' "$(number worst_excess_pct decisions <<<"$json")" "$(number rank decisions <<<"$json")")
    [ "$ok" = yes ] || { line+="  missed"; failed=1; }
    echo "$line"
}

echo "mean absolute errors in percent (goal)"
question "V100, at 952,1140,1335,1530 MHz" interpolated 0.3 0.8 0.9 --sweep "$sweeps/v100-300w.csv" --at sm=952,1140,1335,1530
question "V100, at 952,1140,1335,1530 MHz" extrapolated - - - --sweep "$sweeps/v100-300w.csv" --at sm=952,1140,1335,1530
question "V100, ends" interpolated 1.9 1.9 2.6 --sweep "$sweeps/v100-300w.csv" --at ends
question "GTX 1080 Ti, corners" interpolated 1.0 1.0 - --sweep "$sweeps/gtx1080ti.csv" --at corners
question "GTX Titan X, device from micro, corners" interpolated 2.5 3.0 - --sweep "$sweeps/gtx-titan-x.csv" \
    --device-sweep "$sweeps/gtx-titan-x-micro.csv" --at corners
question "GTX Titan X, corners" interpolated - - - --sweep "$sweeps/gtx-titan-x.csv" --at corners

echo "clocks chosen under a bound of 10 %, and what the hardware did there: percent of the choices, of energy (goal)"
for sweep in v100-300w gtx1080ti gtx-titan-x; do
    decision "$sweep, ends" - - --sweep "$sweeps/$sweep.csv" --at ends
    decision "$sweep, ends, risk 0.05" 5 - --sweep "$sweeps/$sweep.csv" --at ends --risk 0.05
done
decision "v100-300w, at 885,1402 MHz" 5 - --sweep "$sweeps/v100-300w.csv" --at sm=885,1402
decision "v100-300w, at 952,1140,1335,1530 MHz" 5 - --sweep "$sweeps/v100-300w.csv" --at sm=952,1140,1335,1530
decision "v100-300w, at 1530 MHz" - - --sweep "$sweeps/v100-300w.csv" --at sm=1530
decision "v100-300w, at 1530 MHz, risk 0.05" 5 - --sweep "$sweeps/v100-300w.csv" --at sm=1530 --risk 0.05
exit $failed
