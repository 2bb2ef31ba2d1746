#!/usr/bin/env bash
# Installs what is missing, builds with sanitizers and warnings as errors, runs every test. Ends with ctest's summary.
set -euo pipefail
cd "$(dirname "$0")/.."
. harness/packages.sh
fl_install $FL_BUILD_PACKAGES $FL_TEST_PACKAGES
build=${FL_TEST_BUILD:-build-test}
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DFL_SANITIZE=ON -DFL_WERROR=ON >"$build.log" 2>&1 ||
  { cat "$build.log"; exit 1; }
cmake --build "$build" -j "$(nproc)" >>"$build.log" 2>&1 || { tail -n 60 "$build.log"; exit 1; }
mv "$build.log" "$build/build.log"
ctest --test-dir "$build" --output-on-failure -j "$(nproc)"
