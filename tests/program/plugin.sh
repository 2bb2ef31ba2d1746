#!/usr/bin/env bash
# A plug-in that crashes, loops, waits, ends the program or is no policy: the program names it, its step and its time.
. "$(dirname "$0")/shell.sh"
cd "$dir" || exit 1
build() { # build FILE DEFINE
  cc -std=gnu17 -O1 -fPIC -shared -fvisibility=hidden -DPOLICY_PLUGIN -D"$2" -I "$root" -o "$1" \
    "$root/tests/support/bad_policy.c" -lm || { echo "not ok - build $2"; exit 1; }
}
"$f" synth -o t.csv --kernels 2000 --seed 1 --mean-us 1000 >out
"$f" synth -o u.csv --kernels 2000 --seed 2 --mean-us 1000 >out
run=("$f" run t.csv --platform generic --policy ./mine.so)
at="at step 17, t = 0.170 s"
files_here() { find . -type f ! -name out ! -name err ! -name check ! -name before ! -name after | sort; }
# wrong NAME DEFINE LINE COMMAND...: exit 3, exactly this line on stderr, nothing on stdout and no new file
wrong() {
  local name=$1 define=$2 line=$3
  shift 3
  build mine.so "$define"
  files_here >before
  refuse "$name" 3 . "$@"
  check "$name, its line" test "$(cat err)" = "$line"
  files_here >after
  check "$name, no file" cmp before after
}

# ---- each way to go wrong ----
build mine.so BAD_NOTHING
succeed "a sound plug-in" '^energy ' "${run[@]}"
files=(--log l.csv --timeline tl.csv --telemetry te.log)
wrong "a fault" BAD_SEGV "foldline run: policy './mine.so' (mine): SIGSEGV $at" "${run[@]}" "${files[@]}"
wrong "a division by zero" BAD_ZERO "foldline run: policy './mine.so' (mine): SIGFPE $at" "${run[@]}" "${files[@]}"
wrong "an abort" BAD_ABORT "foldline run: policy './mine.so' (mine): SIGABRT $at" "${run[@]}" "${files[@]}"
wrong "a stack that ran over" BAD_DEEP "foldline run: policy './mine.so' (mine): SIGSEGV $at" "${run[@]}" "${files[@]}"
wrong "an exit" BAD_EXIT "foldline run: policy './mine.so' (mine): it called exit() $at" "${run[@]}" "${files[@]}"
wrong "a loop" BAD_LOOP "foldline run: policy './mine.so' (mine): more processor time than --step-limit, a loop? $at" \
  "${run[@]}" "${files[@]}" --step-limit 0.4
wrong "a wait" BAD_WAIT "foldline run: policy './mine.so' (mine): it waits for something $at" "${run[@]}" "${files[@]}" --step-limit 0.2
wrong "a fault at the first step" BAD_SEGV "foldline run: policy './mine.so' (mine): SIGSEGV at step 0, t = 0.000 s" \
  "${run[@]}" --set at=0
wrong "a fault in init" BAD_INIT "foldline run: policy './mine.so' (mine): SIGSEGV in init" "${run[@]}"
wrong "a fault while it is loaded" BAD_LOAD "foldline run: policy './mine.so': SIGSEGV while it was loaded" "${run[@]}"
wrong "a loop while it is loaded" BAD_LOAD_LOOP \
  "foldline run: policy './mine.so': more processor time than --step-limit, a loop? while it was loaded" "${run[@]}" --step-limit 0.4
wrong "a stack that ran over while it is loaded" BAD_LOAD_DEEP \
  "foldline run: policy './mine.so': SIGSEGV while it was loaded" "${run[@]}"
wrong "the end of its thread" BAD_THREAD_END \
  "foldline run: policy './mine.so' (mine): it ended its thread $at" "${run[@]}" "${files[@]}"

# ---- which of several runs ----
both=("$f" compare t.csv u.csv --platform generic --policy assure --policy ./mine.so:at=1e6 --policy ./mine.so:at=17
  --seeds 2 --no-oracle --threads 1 -o c.csv)
wrong "in a comparison" BAD_SEGV \
  "foldline compare: policy './mine.so' (mine): SIGSEGV $at; t.csv under ./mine.so:at=17, seed 1" "${both[@]}"
for n in 2 8; do
  refuse "with $n threads" 3 "^foldline compare: policy './mine.so' \(mine\): SIGSEGV $at; [tu].csv under ./mine.so:at=17, seed [12]$" \
    "${both[@]}" --threads $n
done
build mine.so BAD_LOOP
refuse "a loop with threads" 3 "more processor time than --step-limit, a loop\? $at; [tu].csv under ./mine.so:at=17, seed [12]$" \
  "${both[@]}" --threads 4 --step-limit 0.4
build mine.so BAD_THREAD_END
for n in 1 4; do
  refuse "a thread that ends, of $n" 3 "\(mine\): it ended its thread $at; [tu].csv under ./mine.so:at=17, seed [12]$" \
    "${both[@]}" --threads $n
done
check "no results" test ! -e c.csv

sweep=("$f" grid t.csv u.csv --platform generic --policy assure --policy ./mine.so --no-oracle -o s.csv)
build mine.so BAD_SEGV
refuse "a sweep" 3 "SIGSEGV $at; [tu].csv under ./mine.so, seed 1$" "${sweep[@]}"
check "a sweep leaves no result" test ! -e s.csv

# ---- the limit changes nothing but the end ----
build mine.so BAD_NOTHING
"${both[@]}" --step-limit 0.1 >one 2>err && cp c.csv one.csv && "${both[@]}" --step-limit 1e6 --threads 4 >two 2>err
check "results do not depend on the limit" cmp one.csv c.csv
refuse "a limit of nothing" 2 "step-limit '0', expected" "${run[@]}" --step-limit 0

# ---- live: the line, and then the signal as before, which the guardian sees ----
build mine.so BAD_SEGV
"$f" emulate t.csv --platform generic --time virtual -- "$f" live --policy ./mine.so --for 1s >out 2>err
status=$?
check "a fault of a live policy" grep -q "^foldline live: policy './mine.so' (mine): SIGSEGV $at$" err
check "it ends the controller, not with an exit of ours" test $status -ne 0 -a $status -ne 3

# ---- what is no policy ----
for row in "BAD_NAME|has no name" "BAD_NAME_EMPTY|has no name" "BAD_NAME_COMMA|name is invalid" "BAD_STEP|mine has no step" \
  "BAD_ROWS|counts parameters but has no rows"; do
  build mine.so "${row%%|*}"
  refuse "a descriptor with ${row%%|*}" 2 "^foldline run: ./mine.so: .*${row#*|}" "${run[@]}"
  refuse "the same, looked at" 2 "^foldline list policies: ./mine.so: .*${row#*|}" "$f" list policies ./mine.so
done

# ---- a fault that is none of the plug-in's: outside of its calls a signal does what it always did ----
build mine.so BAD_NOTHING
mkfifo waits.json
"$f" run t.csv --platform ./waits.json --policy ./mine.so >out 2>err &
sleep 1 # it waits for the platform, with the plug-in loaded; were it not there yet, it would end by the signal all the same
kill -SEGV $!
wait $! 2>jobs
status=$?
check "a signal outside of its calls ends the program" test $status -ne 0 -a $status -ne 3
check "and names no policy" test -z "$(grep mine.so err)"
finish
