#!/usr/bin/env bash
# Foldline's own recordings of a GPU (traces/samples/h200) against the simulation of it: length of a kernel times its clock,
# refresh of its sensors, and energy and time of replays beside what was measured.
#   tests/hardware_samples.sh PROGRAM
set -u
cd "$(dirname "$0")/.." || exit 1
exec python3 tests/support/hardware_samples.py "$1"
