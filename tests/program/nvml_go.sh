#!/usr/bin/env bash
# Programs that make system calls past the C library, in virtual time: a static one, and two of Go where go is here. An
# hour each; each run the same. FL_RUNS: so many of each (3; nightly 100). FL_LOAD: so many busy loops beside them.
. "$(dirname "$0")/shell.sh"
. "$(dirname "$0")/../support/virtual_runs.sh"

same "a static program" '^end at 3608\.500, 1704070808$' "$clients/alone_static"
check "its threads" grep -qx 'worker 3 at 1.500' "$dir/out"
check "a wait that is late" grep -qx 'late 1 at 6.500' "$dir/out"
check "its child and a pipe" grep -qx 'polls 0 1, child 7 at 8.500' "$dir/out"
same "one that a shell starts, beside others" '^3$' sh -c "$clients/alone_static | grep -c '^worker 3 at 0'; sleep 1; echo 3"
same "a system call by number" '^went through' "$clients/unfit_static" raw
refuse "a static program with a timer" 3 'alone_static \(process [0-9]+, thread [0-9]+\): timerfd_create cannot run in virtual time' \
  "${virtual[@]}" -- "$clients/alone_static" timerfd

# An emulator that is killed leaves neither the program, whose calls the kernel fails from then on, nor a folder.
"${virtual[@]}" -- env TMPDIR="$dir" "$clients/alone_static" forever >"$dir/out" 2>&1 </dev/null &
emulator=$!
held_child() { child=$(cat "/proc/$emulator/task/$emulator/children" 2>/dev/null); child=${child%% *}; }
for ((i = 0; i < 100; i++)); do held_child; [ "$(readlink "/proc/$child/exe")" = "$(readlink -f "$clients/alone_static")" ] && break; sleep 0.1; done
folder=$(tr '\0' '\n' <"/proc/$child/environ" | sed -n 's/^FOLDLINE_EMULATE=//p')
check "a held session has a folder" test -d "$folder"
kill -9 "$emulator"
wait "$emulator" 2>/dev/null
for ((i = 0; i < 50; i++)); do [ ! -e "/proc/$child" ] && [ ! -e "$folder" ] && break; sleep 0.1; done
check "a killed emulator leaves no program" test ! -e "/proc/$child"
check "and no folder" test ! -e "$folder"

# ---- Go ----
if command -v go >/dev/null; then
  export GOCACHE=$dir/gocache GOPATH=$dir/gopath GO111MODULE=off GOFLAGS=
  source=$root/tests/support/clients
  check "a Go program builds" env CGO_ENABLED=0 go build -o "$dir/pure" "$source/pure.go"
  same "a Go program of an hour" '^end 1h0m0s$' "$dir/pure"
  check "its child's lines" grep -qx 'line 3 20m4s' "$dir/out"
  same "one that a shell starts" '^line 3 20m4s$' sh -c "$dir/pure | cat"
  refuse "a Go program with a timer" 3 'pure \(process [0-9]+, thread [0-9]+\): timerfd_create cannot run in virtual time' \
    "${virtual[@]}" -- "$dir/pure" timer
  if [ "$(go env CGO_ENABLED)" = 1 ]; then
    check "one with cgo builds" go build -o "$dir/hour" "$source/hour.go"
    same "a Go program that reads and sets a GPU for an hour" '^end 3600\.[0-9]+ s 2024-01-01T01:00:00Z$' "$dir/hour"
    check "its child" grep -qE '^child "1704067204\\n" 4\.9[0-9]* s$' "$dir/out"
    check "its socket" grep -qE '^socket hello 5\.2[0-9]* s$' "$dir/out"
    check "its signal" grep -qx 'signal user defined signal 1' "$dir/out"
  else
    echo "skipped: go builds nothing with C here, so no Go program calls NVML"
  fi
else
  echo "skipped: go is not here (package golang-go), so no Go program is run"
fi
finish
