#!/usr/bin/env bash
# Recordings of a V100 under power limits against the simulation of it: how steadily a limit holds power and clock, what
# held runs take and draw, how power follows a new limit, and how well an executed controller tracked its demand.
#   FOLDLINE_DATA=DIR tests/limits.sh PROGRAM
# Reads DIR/gridpilot: any of e1-*.telemetry.csv, e2.telemetry.csv, e4-*.csv. Prints measured, simulated, error and
# goal; exit 1 where a goal is missed. Without FOLDLINE_DATA there is nothing to compare.
set -eu
cd "$(dirname "$0")/.."
if [ ! -d "${FOLDLINE_DATA:-}/gridpilot" ]; then
  echo "limits: FOLDLINE_DATA names no folder with gridpilot/, nothing to compare"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
${CC:-cc} -O2 -fPIC -shared -fvisibility=hidden -DPOLICY_PLUGIN -I. tests/support/limits.c -o "$work/limits.so" -lm
python3 tests/support/limits.py "$1" "$FOLDLINE_DATA/gridpilot" "$work/limits.so"
