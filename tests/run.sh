#!/usr/bin/env bash
# Installs missing packages, builds twice, runs the tests. Ends with the time of each part and ctest's summary.
#   tests/run.sh            what CI runs: the suites with sanitizers, and the scripts on a program without
#   tests/run.sh --loaded   the same on one core, beside two busy loops: a test that depends on time fails here
#   tests/run.sh --nightly  every test in its long form; the scripts on the program with sanitizers; the long experiments with
#                           their gates; a few mutants; the fuzzers for seconds each. A part that fails stops no other part.
#                           FL_PARTS='a|b': only these parts, of tests, sanitized, quickstart, the experiments by name,
#                           mutants, memory, scaling, aarch64, fuzz
#   tests/run.sh --fuzz     the fuzzers alone: each with as many inputs as tests/fuzz/fuzzers.txt says (or for FL_FUZZ_SECONDS
#                           seconds each), as many at once as there are processors; needs clang. An input that breaks one is
#                           left in build-fuzz/found. FL_FUZZ_ONLY='a|b': only these
set -euo pipefail
cd "$(dirname "$0")/.."
. harness/packages.sh

fuzz_one() { # name, runs or 0, seconds or 0, build folder
  local name=$1 build=$4 found=$4/found/$1 start=$SECONDS runs
  mkdir -p "$build/corpus/$name" "$found"
  local limit=(-runs="$2")
  [ "$3" = 0 ] || limit=(-max_total_time="$3")
  if FL_FUZZ_INPUTS=$build/fuzz/inputs "$build/tests/fuzz-$name" "${limit[@]}" -timeout=20 -rss_limit_mb=2048 \
    -max_len=65536 -close_fd_mask=1 -print_final_stats=1 -artifact_prefix="$found/" \
    "$build/corpus/$name" "$build/fuzz/seeds/$name" >"$found/log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$found/log")
    [ "${runs:-0}" -ge "$2" ] || { echo "fuzz-$name: $runs runs, expected $2"; return 1; }
    echo "fuzz-$name: $runs runs in $((SECONDS - start)) s, nothing found"
  else
    echo "fuzz-$name: FOUND SOMETHING"
    tail -n 40 "$found/log"
    return 1
  fi
}

fuzz_all() {
  local wrong=
  fl_install $FL_BUILD_PACKAGES $FL_TEST_PACKAGES $FL_FUZZ_PACKAGES
  build=${FL_FUZZ_BUILD:-build-fuzz}
  mkdir -p "$build"
  build=$(realpath "$build") # a fuzzer goes into a folder of its own
  { CC=clang cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DFL_SANITIZE=ON -DFL_FUZZ=ON &&
    cmake --build "$build" -j "$(nproc)" --target fuzzers; } >"$build/build.log" 2>&1 || { tail -n 60 "$build/build.log"; exit 1; }
  tests/fuzz/seeds.sh "$build/foldline" "$build/fuzz"
  if [ -d /dev/shm ] && [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi # each run writes its input to a file
  export -f fuzz_one
  sed -nE "/^[a-z]/s/^([^ ]+) [|] ([0-9]+) [|].*/\1 \2/p" tests/fuzz/fuzzers.txt | grep -E "^(${FL_FUZZ_ONLY:-.*}) " |
    while read -r name runs; do
      if [ -n "${FL_FUZZ_SECONDS-}" ]; then echo "$name 0 $FL_FUZZ_SECONDS"; else echo "$name $runs 0"; fi
    done | xargs -P "$(nproc)" -L1 bash -c "fuzz_one \$0 \$1 \$2 '$build'" >"$build/fuzz/said" || wrong=1
  cat "$build/fuzz/said"
  awk '/ runs/ && /nothing found/ { n++; runs += $2 } END { print n + 0 " fuzzers, " runs + 0 " runs in all, nothing found in these" }' \
    "$build/fuzz/said"
  [ -z "$wrong" ] || { echo "a fuzzer found something"; exit 1; }
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
mkdir -p "$build"
build=$(realpath "$build") plain=$(realpath "$build")/plain
times=

make_build() { # NAME FOLDER TARGET FLAGS OPTION...: configures and builds; the end of the log if that fails
  local name=$1 folder=$2 target=$3 flags=$4 start=$SECONDS log=$build/build-$1.log
  shift 4
  { cmake -S . -B "$folder" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="$flags" -DFL_WERROR=ON "$@" &&
    cmake --build "$folder" -j "$(nproc)" --target "$target"; } >"$log" 2>&1 || { tail -n 60 "$log"; exit 1; }
  times+="build for $name $((SECONDS - start)) s, "
}

# run_tests OPTION...: ctest; then the time of each part, and ctest's summary once more
run_tests() {
  local start=$SECONDS status=0 log=$build/tests.log
  # three tests for each processor, as those of the live side mostly wait
  ctest --test-dir "$build" --output-on-failure -j "$(($(nproc) * 3))" "$@" 2>&1 | tee "$log" || status=1
  times+="tests $((SECONDS - start)) s"
  sed -nE 's/^(suites|scripts|nightly) += +([0-9.]+) sec.proc .([0-9]+) tests?.$/\2 s in \3 \1/p' "$log" | paste -sd, | sed "s/^/$times: /; s/,/, /g"
  grep 'tests passed,' "$log"
  return $status
}

make_build suites "$build" suites "-Og -g1" -DFL_SANITIZE=ON -DFL_SCRIPT_BUILD="$plain"
make_build scripts "$plain" scripts -O1
if [ "${1-}" != --nightly ]; then
  run_tests -LE nightly
  exit
fi

night=$build/nightly
mkdir -p "$night"
red=
part() { # NAME COMMAND...: runs it, its output in $night/NAME.log; a line that says how it went, and the end of the log if badly
  local name=$1 start=$SECONDS
  shift
  grep -qxE "${FL_PARTS:-.*}" <<<"$name" || return 0
  if "$@" >"$night/$name.log" 2>&1; then
    printf 'nightly: %-28s passed in %5d s\n' "$name" $((SECONDS - start))
  else
    red+=" $name"
    printf 'nightly: %-28s FAILED after %5d s\n' "$name" $((SECONDS - start))
    tail -n 40 "$night/$name.log"
  fi
}

long_tests() {
  FL_NIGHTLY=1 FL_TRIALS=1000 FL_BOARDS=all FL_GATE_RUNS=100 FL_DAEMON_LOGS=120 FL_ALLOCATIONS=500 FL_WORKLOADS=2000 FL_PATHS=100 FL_EXAMPLES=all FL_RUNS=100 \
    FL_LOAD=2 FL_FORMATS=2000 run_tests
}

sanitized_scripts() ( # the scripts once more in their short form, on the program with sanitizers
  make_build sanitized "$build" suites "-Og -g1" -DFL_SANITIZE=ON -DFL_SCRIPT_BUILD="$build"
  run_tests -L scripts
)

part tests long_tests
part sanitized sanitized_scripts
part quickstart harness/quickstart.sh
for e in harness/experiments/*.json; do
  # an experiment that needs measurements from elsewhere says so, and is not run here
  grep -q '"about": "Needs a measured sweep' "$e" || part "$(basename "$e" .json)" build/foldline compare "$e" -o "$night/rows.csv"
done
# every one of the 34,000 mutants takes days; 20 of each module group show whether the suites still notice anything
part mutants tests/mutate.sh --build "$build/mutate" --sample 20 --seed nightly
part memory tests/memory.sh build/foldline
part scaling tests/scaling.sh build/foldline
part aarch64 tests/aarch64.sh "$build/aarch64"
# with all the inputs of fuzzers.txt it takes hours: tests/run.sh --fuzz
part fuzz env FL_FUZZ_SECONDS="${FL_FUZZ_SECONDS:-15}" "$0" --fuzz
[ -z "$red" ] || { echo "nightly: these failed:$red"; exit 1; }
echo "nightly: every part that was asked for passed"
