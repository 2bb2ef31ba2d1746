#!/usr/bin/env bash
# Virtual time of what is not one C program: threads, pipes between programs of the shell, popen, Python's processes, input
# from /dev/null, timers and what they end; each run the same. FL_RUNS: so many of each (3; nightly 100). FL_LOAD: so many busy loops beside them.
. "$(dirname "$0")/shell.sh"
. "$(dirname "$0")/../support/virtual_runs.sh"

probe=$clients/probe
same "five threads" '^[0-9a-f]{16} [0-9]+$' "$clients/threads"
"$f" synth -o "$dir/v100.csv" --platform v100-300w --kernels 6000 --mean-us 3000 --seed 3 >/dev/null
on_generic=("${virtual[@]}")
virtual=("$f" emulate "$dir/v100.csv" --platform v100-300w --quiet --privileged --time virtual)
same "a daemon's log" '^2024-1-1 0:0:39, ' "$clients/daemon" v100 0.9 200
virtual=("${on_generic[@]}")
same "a pipe into sed" '^GPU 0 power 0 [1-9][0-9]+ ' sh -c "$probe sleep 1 show | sed s/gpu/GPU/"
same "three programs in a row" '^0$' sh -c "$probe sleep 1 show sleep 1 show | sort | cut -d ' ' -f 2 | uniq"
same "more than a pipe holds" '^100000$' sh -c 'seq 1 100000 | sort -n | tail -n 1'
same "xargs waits for a line" '^gpu 0 .* energy 0 1[0-9]{6} ' sh -c "(sleep 2; echo 3) | xargs sleep; $probe show"
check "which took five seconds" awk -F'[:,]' '/time_s/ { exit !($2 >= 5 && $2 < 5.1) }' "$dir/out"
same "a loop that reads" '^3$' sh -c "(for i in 1 2 3; do sleep 1; echo \$i; done) | while read -r x; do $probe show >/dev/null; echo \$x; done"
same "popen" '^status 3 after 2 s$' "$clients/popens" "$probe"
check "its lines" grep -qE '^heard: gpu 0 power 0 [1-9]' "$dir/out"
check "and into one" grep -qx 'told: line 1' "$dir/out"
check "its end" grep -qx 'other 0' "$dir/out"
check "a kind that there is not" grep -qx 'wrong kind 1' "$dir/out"
same "awk's own pipes" '^1704067203$' awk 'BEGIN { "sleep 3; date +%s" | getline x; print x }'
same "input from /dev/null" '^gpu 0 power' sh -c "cat; read x; $probe sleep 1 show"

# ---- Python ----
python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null)
if [ -n "$python" ]; then
  cat >"$dir/mp.py" <<'END'
import multiprocessing as mp, os, select, sys, time
def work(q, n):
    time.sleep(n)
    q.put(n)
if __name__ == "__main__":
    q = mp.Queue()
    all = [mp.Process(target=work, args=(q, n)) for n in (3, 1, 2)]
    for p in all: p.start()
    print([q.get() for _ in all])
    for p in all: p.join()
    print("pool", mp.Pool(2).map(abs, [-1, -2]))
    print("input", sys.stdin.read() == "", os.popen("sleep 1; echo out").read())
END
  same "Python's multiprocessing" '^pool \[1, 2\]$' "$python" "$dir/mp.py"
  check "in order of time" grep -qx '\[1, 2, 3\]' "$dir/out"
  check "its popen" grep -qx 'input True out' "$dir/out"
  cat >"$dir/wake.py" <<'END'
import signal, threading, time
began, main = time.monotonic(), threading.get_ident()
signal.signal(signal.SIGUSR1, lambda *_: print("heard at", round(time.monotonic() - began, 1)))
threading.Timer(2, lambda: signal.pthread_kill(main, signal.SIGUSR1)).start()
time.sleep(10)
END
  same "a thread's signal interrupts a sleep" '^heard at 2\.0$' "$python" "$dir/wake.py"
else
  echo "skipped: python3 is not here, so multiprocessing is not run"
fi

# ---- timers ----
same "timers of every kind" '^ended by 14 at 40$' "$clients/timers"
cp "$dir/out" "$dir/virtual"
# On this machine each comes as it does there, and not before its time; a busy machine may be late, and is asked again.
as_here() {
  local i
  for ((i = 0; i < 5; i++)); do
    "$f" emulate "$dir/w.csv" --platform generic --quiet -- "$clients/timers" >"$dir/wall" 2>"$dir/err"
    paste -d '|' <(sed -n 's/ at / | /p' "$dir/virtual") <(sed -n 's/ at / | /p' "$dir/wall") |
      awk -F '[ ]*[|][ ]*' '$1 != $3 || $4 < $2 || $4 > $2 + 5 { print; bad = 1 } END { exit bad || NR < 20 }' && return
  done
  return 1
}
check "the same on this machine" as_here
# ends STATUS SECONDS COMMAND...: it ends so, after so long.
ends() {
  local status=$1 s=$2
  shift 2
  same "status $status after $s s: $*" "^status $status at $s s$" bash -c 'SECONDS=0; "$@"; echo "status $? at $SECONDS s"' . "$@"
  check "and nothing lasts longer" grep -qE "\"time_s\":[[:space:]]*$s(\.0[0-9]*)?,$" "$dir/out"
}
ends 124 60 timeout 60 "$probe" probe 100 1
ends 0 10 timeout 60 sleep 10
ends 124 60 timeout --foreground 60 sleep 100
ends 137 60 timeout -s KILL 60 sleep 100
ends 137 65 timeout -k 5 60 sh -c 'trap "" TERM; sleep 100'
ends 124 60 timeout 60 sh -c "$probe probe 100 1 | sort | uniq"
ends 137 60 timeout -s KILL 60 sh -c "$probe probe 100 1 | $probe probe 100 1 | sleep 100"

# ---- scaled time: watts from the energy counter and a client's own clock are those of the power reading ----
"$f" synth -o "$dir/long.csv" --kernels 40000 --mean-us 3000 --seed 3 >/dev/null
for scale in 10x 1x; do
  succeed "at $scale watts are watts" '^watts right$' "$f" emulate "$dir/long.csv" --platform generic --quiet --time $scale -- "$clients/watts"
  check "waits last as long as they should" grep -qx 'sleep right poll right condition right' "$dir/out"
  check "and both clocks agree" grep -qx 'day right' "$dir/out"
done
[ -z "$python" ] || succeed "Python too" '^1[0-9.]*$' "$f" emulate "$dir/long.csv" --platform generic --quiet --time 10x -- "$python" -c 'import time; t = time.monotonic(); time.sleep(1); print(time.monotonic() - t)'
same "handlers that block every signal" '^read 9$' "$clients/handlers"
check "are heard, those of SIGSYS too" test "$(head -n 3 "$dir/out" | tr '\n' ' ')" = "before 1, then ours 1 heard 31 heard 10 "

# ---- a program with the machine's time ends the session ----
astray=("$f" emulate "$dir/long.csv" --platform generic --quiet --time virtual --)
ends() { # NAME PATTERN COMMAND...: status 3, the pattern on stderr
  local name=$1 pattern=$2 status
  shift 2
  timeout 60 "${astray[@]}" "$@" >"$dir/out" 2>"$dir/err" </dev/null
  status=$?
  if [ $status = 3 ] && grep -qE "$pattern" "$dir/err"; then ok "$name"; else bad "$name" "exit $status: $(head -c 300 "$dir/err")"; fi
}
ends "env -u LD_PRELOAD" 'exec without LD_PRELOAD' env -u LD_PRELOAD "$clients/probe" show
ends "a shell's child without it" 'exec without LD_PRELOAD' sh -c 'LD_PRELOAD= sleep 0; echo next'
ends "an empty environment" 'without the library of virtual time|exec without LD_PRELOAD' env -i /bin/sleep 0
[ -z "$python" ] || ends "one that removed the library from its own environment" 'exec without LD_PRELOAD' "$python" -c 'import os; del os.environ["LD_PRELOAD"]; os.execvp("sleep", ["sleep", "0"])'
[ -z "$(command -v strace)" ] || ends "a tracer" 'ptrace cannot run in virtual time' strace -o /dev/null sleep 1

finish
