#!/usr/bin/env bash
# Fail for a source that reads something and has neither a fuzzer in tests/fuzz/fuzzers.txt nor, in not_readers.txt, a reason
# why it needs none.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1

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
      if (!bad) print fuzzers " fuzzers with " runs " runs for all that reads"
      exit bad
    }' tests/fuzz/fuzzers.txt - tests/fuzz/not_readers.txt
