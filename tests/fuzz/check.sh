#!/usr/bin/env bash
# Does each file of the project that reads something have a fuzzer, or a reason why it needs none? And do the runs of
# tests/fuzz/fuzzers.txt keep what is promised: 20,000 for each fuzzer, a million in all?
#   tests/fuzz/check.sh            this tree
#   tests/fuzz/check.sh --planted  does it find a reader without a fuzzer, a row of nothing, too few runs? In a copy
set -u
export LC_ALL=C
self=$(realpath "$0")
cd "$(dirname "$0")/../.." || exit 1

if [ "${1-}" = --planted ]; then
  work=$(mktemp -d) || exit 1
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/tests"
  cp -r traces sim models policies harness "$work" && cp -r tests/fuzz "$work/tests" || exit 1
  bash "$work/tests/fuzz/check.sh" >/dev/null || { echo "the copy itself does not pass"; exit 1; }
  while IFS='|' read -r file change; do
    [ -f "$work/$file" ] && cp "$work/$file" "$work/kept" || rm -f "$work/kept"
    if [ -f "$work/kept" ]; then sed -i -E "$change" "$work/$file"; else echo "$change" >"$work/$file"; fi
    if bash "$work/tests/fuzz/check.sh" >/dev/null; then
      echo "not found: $change in $file"
      exit 1
    fi
    if [ -f "$work/kept" ]; then mv "$work/kept" "$work/$file"; else rm "$work/$file"; fi
  done <<'END'
harness/study/new_reader.c|fl_status f(void) { return fl_json_read(path, &tree, d); }
traces/new_reader.c|    s = fl_csv_read(path, &o, &head, row, &l, d);
sim/new_reader.c|FILE *f = fopen(path, "rb");
tests/fuzz/fuzzers.txt|s/^geopm .*//
tests/fuzz/fuzzers.txt|s/^(geopm . )[0-9]+/\119999/
tests/fuzz/fuzzers.txt|s/ . [0-9]+ . / | 20000 | /;/^(kineto|cache|geo|zeus|nv|gpu|d|r|t|j|n|b|f|l) .*/d
tests/fuzz/fuzzers.txt|s/^record .*//
tests/fuzz/not_readers.txt|s/^(harness.main.c).*/\1/
tests/fuzz/not_readers.txt|s/^harness.main.c/harness\/gone.c/
END
  echo "fuzzers: every planted gap is found"
  exit 0
fi

# What begins to read: a file, a text, a table of a database, shared memory.
begins='fl_csv_read|fl_json_read|fl_json_read_any|fl_gunzip_open|fl_gunzip_text|fl_trace_open|fl_sqlite_open|open_v2'
begins="$begins|yajl_alloc|fl_state_file|fl_ring_open_at|fopen|fdopen|open|openat|mmap|recv"
grep -rlE "(^|[^_a-z])($begins)\(" traces sim models policies harness --include='*.c' | grep -v '^harness/emulate/client/' |
  awk -F ' *[|] *' '
    function wrong(where, what) { print where ": " what; bad = 1 }
    FILENAME == "-" { found[$0] = 1; next }
    /^#/ || /^$/ { next }
    FILENAME ~ /fuzzers.txt$/ {
      if (NF != 4 || $1 !~ /^[a-z0-9-]+$/) { wrong(FILENAME ":" FNR, "expected NAME | RUNS | HOW | READERS"); next }
      if ($2 + 0 < 20000) wrong(FILENAME ":" FNR, $1 " has " $2 " runs, expected 20000 or more")
      runs += $2
      fuzzers++
      n = split($4, file, " ")
      for (i = 1; i <= n; i++) listed[file[i]] = FILENAME ":" FNR
      next
    }
    { if (NF != 2 || $2 == "") { wrong(FILENAME ":" FNR, "expected FILE | why it needs no fuzzer"); next }
      if (!($1 in found)) wrong(FILENAME ":" FNR, $1 " opens nothing, or is not there")
      if ($1 in listed) wrong(FILENAME ":" FNR, $1 " has a fuzzer")
      excused[$1] = 1 }
    END {
      for (f in found) if (!(f in listed) && !(f in excused)) wrong(f, "reads something, and no fuzzer of tests/fuzz/fuzzers.txt is meant for it")
      for (f in listed) if ((getline line < f) < 0) wrong(listed[f], f " is not there")
      if (runs < 1000000) wrong("tests/fuzz/fuzzers.txt", runs " runs in all, expected 1000000 or more")
      if (!bad) print fuzzers " fuzzers with " runs " runs for all that reads"
      exit bad
    }' tests/fuzz/fuzzers.txt - tests/fuzz/not_readers.txt
