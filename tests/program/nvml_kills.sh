#!/usr/bin/env bash
# What programs leave changed when they are killed: one that never restores, one that does at its exit, one with a guardian,
# and `foldline live` itself.
. "$(dirname "$0")/shell.sh"

clients=$(dirname "$f")/clients
"$f" synth -o "$dir/w.csv" --kernels 2000 --mean-us 3000 --seed 3 >/dev/null || exit 1
emulate=("$f" emulate "$dir/w.csv" --platform generic --privileged --kill-patterns)

# expected NAME: the table on standard input, as the program prints it
expected() {
  cat >"$dir/want"
  tail -n +4 "$dir/out" | sed 's/  */ /g; /^$/d' >"$dir/got"
  check "$1" diff "$dir/want" "$dir/got"
}

"${emulate[@]}" --time virtual -o "$dir/never.json" -- "$clients/keeper" never >"$dir/out" 2>"$dir/err"
check "never restored: 1" test $? = 1
check "what it prints goes to standard error" grep -qx 'done' "$dir/err"
check "once" test "$(wc -l <"$dir/err")" = 1
check "its sets and calls" grep -qx 'keeper: 5 sets in 11 calls' "$dir/out"
{
  echo 'nothing its end 0 GPU 0: SM clock 1050..1050 MHz, power limit 200 W'
  for row in SIGTERM:143 SIGINT:130 SIGKILL:137 crash:139; do
    echo "${row%:*} set 1 of 5 ${row#*:} GPU 0: SM clock 900..900 MHz"
    echo "${row%:*} set 3 of 5 ${row#*:} GPU 0: SM clock 1200..1200 MHz, power limit 200 W"
    echo "${row%:*} set 5 of 5 ${row#*:} GPU 0: SM clock 1050..1050 MHz, power limit 200 W"
    echo "${row%:*} call 6 of 11 ${row#*:} GPU 0: SM clock 1200..1200 MHz, power limit 200 W"
  done
  echo '17 of 17 runs leave something changed'
} | expected "each pattern leaves what was set by then"
check "the same as JSON" test "$(grep -c '"left":' "$dir/never.json")" = 17
check "with each state" grep -qE '"sm_max_mhz":[[:space:]]*900,?$' "$dir/never.json"

"${emulate[@]}" --time virtual -- "$clients/keeper" exit >"$dir/out" 2>"$dir/err"
check "restored at exit: 1" test $? = 1
{
  echo 'nothing its end 0 nothing'
  for s in SIGTERM SIGINT; do
    for at in 'set 1 of 7' 'set 4 of 7' 'set 7 of 7' 'call 7 of 14'; do echo "$s $at 0 nothing"; done
  done
  for row in SIGKILL:137 crash:139; do
    echo "${row%:*} set 1 of 7 ${row#*:} GPU 0: SM clock 900..900 MHz"
    echo "${row%:*} set 4 of 7 ${row#*:} GPU 0: SM clock 600..600 MHz, power limit 200 W"
    echo "${row%:*} set 7 of 7 ${row#*:} nothing"
    echo "${row%:*} call 7 of 14 ${row#*:} GPU 0: SM clock 1200..1200 MHz, power limit 200 W"
  done
  echo '6 of 17 runs leave something changed'
} | expected "a handler helps against what can be handled"

for how in virtual wall; do
  "${emulate[@]}" --time $how -- "$clients/keeper" guardian >"$dir/out" 2>"$dir/err"
  check "a guardian, $how time: 0" test $? = 0
  check "nothing is left by any pattern" test "$(grep -c ' nothing$' "$dir/out")" = 17
done
"${emulate[@]}" --time virtual -- "$f" live --policy assure --control --for 3s >"$dir/out" 2>"$dir/err"
check "foldline live has a guardian" test $? = 0
check "in each pattern" grep -qE '^0 of 1[0-9] runs leave something changed$' "$dir/out"

"${emulate[@]}" --time virtual -- "$clients/probe" lock 0 900 900 >"$dir/out" 2>"$dir/err"
check "of one set there is one moment" test "$(grep -c ' set 1 of 1 ' "$dir/out")" = 4
refuse "a program that sets nothing" 2 'sets nothing, expected a program that sets' "${emulate[@]}" --time virtual -- true
refuse "one that fails" 2 "sh sets nothing and ends with status 3, expected" "${emulate[@]}" --time virtual -- sh -c 'exit 3'
refuse "one that is refused" 2 'each of its sets was refused' "${emulate[@]}" --time virtual --error no-permission -- sh -c "exec $clients/probe lock 0 900 900 >/dev/null"

# ---- what a program leaves running, and who is none of it ----
leaver="setsid sh -c 'sleep 12345 & sleep 12345; true' >/dev/null 2>&1 & exec $clients/probe lock 0 900 900"
for how in virtual 1000x; do
  "${emulate[@]}" --time $how -- sh -c "$leaver" >"$dir/out" 2>"$dir/err"
  check "processes within processes that sleep on, $how time: the table" grep -qx '[0-9]* of [0-9]* runs leave something changed' "$dir/out"
  check "and none of them is left" test -z "$(pgrep -f 'sleep 12345')"
done
sh -c 'sleep 300 & echo $! >"$0"; exec "$@"' "$dir/pid" "${emulate[@]}" --time virtual -- "$clients/keeper" never >"$dir/out" 2>"$dir/err"
check "a child of somebody else's is not touched" kill "$(cat "$dir/pid")"
check "the table is the same" cmp -s <(tail -n 1 "$dir/out") <(echo '17 of 17 runs leave something changed')
"${emulate[@]}" --time virtual -- sh -c "kill -TERM \$PPID; exec $clients/keeper never" >"$dir/out" 2>"$dir/err"
check "stopped: it ends, and runs no other pattern" test $? = 3
check "which it says" grep -qx 'foldline emulate: stopped by a signal before the last pattern' "$dir/err"
check "nothing still runs" test -z "$(pgrep -f "$clients/keeper")"

finish
