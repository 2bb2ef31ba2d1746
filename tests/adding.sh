#!/usr/bin/env bash
# To add a policy, a platform, a reader or a command takes what the README.md of its layer says and no more: adding.sh adds one
# of each to a copy of the tree, builds it and uses them.
set -eu
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r CMakeLists.txt LICENSE *.md policies models traces sim harness plots tests "$copy"
cd "$copy"

row() { # file, text of a row that is there, the row to put above it
  grep -qF -- "$2" "$1" || { echo "adding: $1 has no row $2"; exit 1; }
  # by the environment: what -v makes of a backslash differs between awks
  old=$2 new=$3 awk 'index($0, ENVIRON["old"]) && !done { print ENVIRON["new"]; done = 1 } { print }' "$1" >"$1.new"
  mv "$1.new" "$1"
}
expect() { # what, pattern, command...: it succeeds and prints the pattern
  local what=$1 pattern=$2
  shift 2
  if ! "$@" >out 2>&1 || ! grep -qE -- "$pattern" out; then
    echo "adding: $what: expected '$pattern' of $*:"
    cat out
    exit 1
  fi
}

# a policy: its file, one row
sed 's/FL_POLICY(skeleton)/FL_POLICY(added_policy)/; s/\.name = "skeleton"/.name = "added-policy"/' policies/skeleton.c \
  >policies/added_policy.c
row policies/registry/registry.c 'X(skeleton)' '    X(added_policy) \'

# a platform: its file
sed 's/An invented GPU/An added GPU/' models/platforms/generic.json >models/platforms/added-platform.json

# a reader: its file, one row (and seeds for its fuzzer, which tests/traces/test_detect.c asks for)
cat >traces/import/added.c <<'END'
#include "traces/io/io.h"
#include "traces/import/inside.h"

#include <string.h>

typedef struct loader {
    fl_readings to;
    size_t power;
    bool has_header;
} loader;

static bool detect(const char *path, const char *head, size_t size) {
    (void)path, (void)size;
    return strncmp(head, "seconds,watts\n", 14) == 0;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    double seconds = 0, watts = 0, *value = NULL;
    if (!l->has_header) {
        l->has_header = true;
        return fl_readings_signal(&l->to, "power_w", &l->power, d);
    }
    if (row->count != 2)
        return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "%zu fields, expected 2", row->count);
    fl_status s = fl_field_real(row, 0, "seconds", 0, 1e6, &seconds, d);
    if (s == FL_OK)
        s = fl_field_real(row, 1, "watts", 0, 1e6, &watts, d);
    if (s == FL_OK)
        s = (value = fl_telemetry_row(&l->to.rows)) ? FL_OK : fl_no_memory(d, row->file);
    if (s == FL_OK)
        value[l->power] = watts;
    return s ? s : fl_readings_take(&l->to, row, (int64_t)(seconds * 1e9), 0, d);
}

static fl_status read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o;
    loader l = {0};
    fl_readings_begin(&l.to, out);
    fl_status s = fl_csv_read(path, &(fl_csv_options){0}, NULL, on_row, &l, d);
    if (s == FL_OK)
        s = fl_readings_end(&l.to, path, d);
    fl_readings_free(&l.to);
    return s;
}

const fl_reader fl_reader_added = {.name = "added-meter",
                                   .what = "a meter of this test",
                                   .tool = "this test",
                                   .gives = FL_GIVES_READINGS | FL_GIVES_POWER,
                                   .detect = detect,
                                   .read = read};
END
row traces/open/open.h 'X(geepafs)' '    X(added) \'

# a command: its file, one row
commands=harness/base/cli/commands.h
row $commands 'X(run,' '    X(hello, "says hello", "greet") \'
cat >harness/cmd/hello.c <<END
#include "harness/base/cli/cli.h"
#include "$commands"

#include <stdio.h>

int fl_cmd_hello(int argc, char **argv) {
    printf("hello, %s\n", argc ? argv[0] : "nobody");
    return FL_EXIT_OK;
}
END

{ cmake -S . -B build -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1 -DFL_WERROR=ON &&
  cmake --build build -j "$(nproc)" --target foldline test_harness test_traces; } >log 2>&1 || { tail -n 40 log; exit 1; }

f=build/foldline
printf 'seconds,watts\n0,100\n0.5,150\n1,125\n' >meter.txt
expect "the policy is listed" '^added-policy ' $f list policies
expect "the policy is described" 'low_pct' $f list policies added-policy
expect "the platform is listed" '^added-platform ' $f list platforms
expect "the platform is described" 'An added GPU' $f list platforms added-platform
expect "both run" 'added-policy' $f run traces/samples/launches.csv --platform added-platform --policy added-policy
expect "the reader detects" '3 rows, from added-meter' $f import meter.txt -o meter.csv
expect "the reader reads" '^500000000,0,150$' cat meter.telemetry.csv
expect "the reader is named" '^ *added-meter  +a meter of this test$' env COLUMNS=120 $f import --list
expect "the command is listed" '^ +hello +says hello$' $f --help
expect "the command runs" '^hello, world$' $f hello world
expect "a word leads to it" "did you mean 'hello'" bash -c "! $f greet"

# The suites ask for what is missing: a golden case of the policy, and seeds for the reader's fuzzer.
for suite in "test_harness policies" "test_traces detect"; do
  # shellcheck disable=SC2086 # a program and its argument
  if build/tests/$suite >out 2>&1 || ! grep -qE 'added-(policy|meter)' out; then
    echo "adding: $suite does not miss anything of what was added:"
    tail -n 20 out
    exit 1
  fi
done
FL_BLESS=1 build/tests/test_harness policies >out 2>&1 || true
mkdir -p tests/fuzz/seeds/added-meter
cp meter.txt tests/fuzz/seeds/added-meter/three.txt
expect "its fuzzer is asked for" 'added-meter has no fuzzer' bash -c '! build/tests/test_traces detect'
echo 'added-meter | 20000 | fuzz_reader.c | traces/import/added.c' >>tests/fuzz/fuzzers.txt
expect "the golden case suffices" 'asserts' build/tests/test_harness policies
expect "the seeds suffice" 'asserts' build/tests/test_traces detect
[ -s tests/golden/policies/added-policy.csv ] || { echo "adding: no golden case was written"; exit 1; }
echo "added and used: a policy, a platform, a reader, a command"
