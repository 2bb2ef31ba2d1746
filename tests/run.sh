#!/usr/bin/env bash
# Installs what is missing, builds with sanitizers and warnings as errors, runs every test. Ends with ctest's summary.
#   tests/run.sh          all tests
#   tests/run.sh --fuzz   the fuzzers instead: each for 60 s (FL_FUZZ_SECONDS) from its seeds, as many at once as there are
#                         processors; needs clang. What breaks one is left in build-fuzz/found.
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

if [ "${1-}" = --fuzz ]; then
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
  exit 0
fi

fl_install $FL_BUILD_PACKAGES $FL_TEST_PACKAGES
build=${FL_TEST_BUILD:-build-test}
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DFL_SANITIZE=ON -DFL_WERROR=ON >"$build.log" 2>&1 ||
  { cat "$build.log"; exit 1; }
cmake --build "$build" -j "$(nproc)" >>"$build.log" 2>&1 || { tail -n 60 "$build.log"; exit 1; }
mv "$build.log" "$build/build.log"
ctest --test-dir "$build" --output-on-failure -j "$(nproc)"
