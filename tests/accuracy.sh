#!/usr/bin/env bash
# How well clocks and power limits that nobody measured are predicted, and how good the choices by them are, on measured
# boards: support/accuracy.py says what the lines are. Each board's goals are those of the mean; the worst board stands
# beside. Exit status 1 where a goal is missed.
# Usage: FOLDLINE_DATA=FOLDER tests/accuracy.sh [--risk] [PATH/TO/foldline] [PATH/TO/FORMER]
set -u
risk=()
[ "${1:-}" != --risk ] || { risk=(--risk); shift; }
sweeps=${FOLDLINE_DATA:-}/sweeps
if [ -z "${FOLDLINE_DATA:-}" ] || [ ! -d "$sweeps" ]; then
    echo "skipped: no measured sweeps (set FOLDLINE_DATA)"
    exit 0
fi
exec python3 "$(dirname "$0")/support/accuracy.py" "${risk[@]}" ${2:+--former "$2"} "${1:-build/foldline}" "$sweeps"/*.csv
