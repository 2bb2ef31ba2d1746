#!/usr/bin/env bash
# Whether the intervals and the risk of `advise` hold for 40 made-up programs with noise: support/intervals.py says how
# they are made, and the goals. Usage: [FOLDLINE_DATA=FOLDER] tests/intervals.sh [PATH/TO/foldline]; exit status 1 where a
# goal is missed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/support/intervals.py" "${1:-build/foldline}" "$(dirname "$here")"
