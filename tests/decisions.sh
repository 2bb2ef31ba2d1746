#!/usr/bin/env bash
# Does a stated risk hold? The clock of least energy that breaks a bound of 10 % with a chance of at most 5 %, as `fit`
# states its own deviations, chosen for workloads that the device was not fitted to; then what the hardware did there.
# Of each sweep: how often the real bound broke, how likely so many would be if each broke with a chance of 5 % (binomial),
# and the energy that caution loses. Fixed before any result was seen: all sweeps of one power limit, looked at their ends
# (corners where memory clocks differ), 20 splits from seed 1, refuted below 0.05. Choices of one workload in several
# splits go together, so a refutation is a warning and its absence no proof.
# Usage: FOLDLINE_DATA=FOLDER tests/decisions.sh [PATH/TO/foldline] [SPLITS]; exit status 1 where the risk is refuted.
set -u
program=${1:-build/foldline}
splits=${2:-20}
sweeps=${FOLDLINE_DATA:-}/sweeps
failed=0

if [ -z "${FOLDLINE_DATA:-}" ] || [ ! -d "$sweeps" ]; then
    echo "skipped: no measured sweeps (set FOLDLINE_DATA)"
    exit 0
fi

# value KEY: of the JSON on stdin, the last of that name
value() { sed -n "s/.*\"$1\":[[:space:]]*\([0-9.e+-]*\|null\).*/\1/p" | tail -n 1; }

while read -r sweep at; do
    json=$("$program" fit device --cross-validate --splits "$splits" --seed 1 --decide --bound 10% --risk 5% --json "$sweeps/$sweep.csv" \
        --at "$at") || { echo "$sweep: failed"; failed=1; continue; }
    p=$(value binomial_p <<<"$json")
    verdict='not refuted'
    case $p in '' | null) verdict='not tested: no choice'; failed=1; p=nan ;; esac
    awk -v p="$p" 'BEGIN { exit !(p + 0 < 0.05 && p != "nan") }' && { verdict=refuted; failed=1; }
    printf '%-16s at %-8s %4d choices  broke at %5.2f %% (worst %.2f points)  binomial p %.3g: %s  caution costs %.2f points of energy, regret %.2f %% (expected %.2f or more)\n' \
        "$sweep" "$at" "$(value choices <<<"$json")" "$(value broken_pct <<<"$json")" "$(value worst_excess_pct <<<"$json")" \
        "$p" "$verdict" "$(value caution_costs_pct <<<"$json")" "$(value regret_pct <<<"$json")" \
        "$(value expected_regret_pct <<<"$json")"
done <<'EOF'
v100-300w ends
gtx1080ti corners
gtx-titan-x corners
v100b-activity ends
EOF
exit $failed
