#!/usr/bin/env bash
# Installs what is missing, builds with sanitizers and warnings as errors, runs every test. Ends with ctest's summary.
#   tests/run.sh            all tests
#   tests/run.sh --loaded   the same on one core, beside two busy loops: what depends on time shows here
#   tests/run.sh --nightly  the same, then what takes long: more trials, the long experiments with their gates, the fuzzers
#   tests/run.sh --fuzz     the fuzzers alone: each for 60 s (FL_FUZZ_SECONDS) from its seeds, as many at once as there are
#                           processors; needs clang. What breaks one is left in build-fuzz/found.
set -euo pipefail
cd "$(dirname "$0")/.."
. harness/packages.sh

fuzz_one() { # fuzzer, build folder, seconds
  local name=${1#fuzz-} build=$2 found
  found=$build/found/$name
  mkdir -p "$build/corpus/$name" "$found"
  if "$build/tests/$1" -max_total_time="$3" -timeout=20 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$found/" "$build/corpus/$name" tests/fuzz/seeds/"$name" >"$found/log" 2>&1; then
    echo "fuzz-$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$found/log") runs, nothing found"
  else
    echo "fuzz-$name: FOUND SOMETHING"
    tail -n 40 "$found/log"
    return 1
  fi
}

fuzz_all() {
  fl_install $FL_BUILD_PACKAGES $FL_TEST_PACKAGES $FL_FUZZ_PACKAGES
  build=${FL_FUZZ_BUILD:-build-fuzz}
  mkdir -p "$build"
  { CC=clang cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DFL_SANITIZE=ON -DFL_FUZZ=ON &&
    cmake --build "$build" -j "$(nproc)" --target fuzzers; } >"$build/build.log" 2>&1 || { tail -n 60 "$build/build.log"; exit 1; }
  if [ -d /dev/shm ] && [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi # each run writes its input to a file
  export -f fuzz_one
  for f in "$build"/tests/fuzz-*; do [ -x "$f" ] && [ ! -d "$f" ] && basename "$f"; done |
    xargs -P "$(nproc)" -I{} bash -c "fuzz_one {} '$build' ${FL_FUZZ_SECONDS:-60}" || { echo "a fuzzer found something"; exit 1; }
  echo "every fuzzer stood"
}

if [ "${1-}" = --fuzz ]; then
  fuzz_all
  exit 0
fi
if [ "${1-}" = --loaded ]; then
  taskset -cp 0 $$ >/dev/null
  trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
  for i in 1 2; do (while :; do :; done) & done
fi

fl_install $FL_BUILD_PACKAGES $FL_TEST_PACKAGES
build=${FL_TEST_BUILD:-build-test}
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DFL_SANITIZE=ON -DFL_WERROR=ON >"$build.log" 2>&1 ||
  { cat "$build.log"; exit 1; }
cmake --build "$build" -j "$(nproc)" >>"$build.log" 2>&1 || { tail -n 60 "$build.log"; exit 1; }
mv "$build.log" "$build/build.log"
[ "${1-}" != --nightly ] || export FL_TRIALS=1000 FL_GATE_RUNS=100 FL_DAEMON_LOGS=120 FL_ALLOCATIONS=2000 FL_WORKLOADS=2000
ctest --test-dir "$build" --output-on-failure -j "$(nproc)"

if [ "${1-}" = --nightly ]; then
  harness/quickstart.sh >/dev/null
  for e in harness/experiments/*.json; do
    # an experiment that needs measurements from elsewhere says so, and is not run here
    [ "$e" = harness/experiments/power-wall.json ] || build/foldline compare "$e" --csv "$build/nightly.csv" >"$build/nightly.log" ||
      { cat "$build/nightly.log"; echo "a gate of $e did not hold"; exit 1; }
  done
  tests/scaling.sh build/foldline
  fuzz_all
fi
