#!/usr/bin/env bash
# From a fresh machine to a first result: installs what is missing, builds, compares policies on the bundled samples, draws.
set -euo pipefail
cd "$(dirname "$0")/.."
. harness/packages.sh
fl_install $FL_BUILD_PACKAGES
mkdir -p build results
log=build/quickstart.log
fl_busy building "$log" sh -c 'cmake -S . -B build -DBUILD_TESTING=OFF && cmake --build build -j "$(nproc)"' ||
  { tail -n 60 "$log"; exit 1; }

build/foldline compare harness/experiments/first-light.json -o results/quickstart.csv
build/foldline run traces/samples/sweetspot-blackscholes.csv --platform rtx4070-laptop --policy assure \
  --timeline results/timeline.csv >results/timeline.txt
for format in svg png; do
  build/foldline plot pareto results/quickstart.csv -o results/pareto.$format
  build/foldline plot regret results/quickstart.csv -o results/regret.$format
  build/foldline plot timeline results/timeline.csv -o results/timeline.$format
done
echo
echo "results/quickstart.csv             every row, and quickstart.provenance.json beside it"
echo "results/pareto.svg, regret.svg     the comparison in two pictures (also .png)"
echo "results/timeline.svg               BlackScholes under Assure, moment by moment"
echo "build/foldline --help              what else there is"
