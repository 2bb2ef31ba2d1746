#!/usr/bin/env bash
# Progress: a line on a terminal, with share done and time left, gone at the end; nothing in logs. The terminal is a
# pseudo-terminal of Python's. No time is asserted: work is made long enough, or it is held up.
. "$(dirname "$0")/shell.sh"
pty() { /usr/bin/python3 "$root/tests/support/on_terminal.py" "$@"; }
long=(harness/experiments/mf-gpoeo-short.json --workload AI_FE --policy mf-gpoeo --no-oracle --threads 1)

# A pool: share done and time left. The run is repeated with more seeds until it takes over a second of this machine.
for seeds in 4 16 64 256; do
  pty "$dir/both" "$f" compare "${long[@]}" --seeds $seeds -o "$dir/tty.csv" || bad "compare on a terminal"
  grep -qE 'about [0-9]+ (s|min) left' "$dir/both" && break
done
check "share and time left" grep -qE 'foldline compare, policies: [0-9]+ %, [0-9]+ s, about [0-9]+ (s|min) left' "$dir/both"
check "written over in place" grep -q $'\r''foldline compare' "$dir/both"
check "gone before the result" grep -qE $'\r\033''\[K(note|policy|workload|[a-z]+ on )?' "$dir/both"
check "nothing of it is left" /usr/bin/python3 "$root/tests/support/on_terminal.py" --seen "$dir/both" 'foldline compare, '
"$f" compare "${long[@]}" --seeds $seeds -o "$dir/log.csv" >"$dir/out" 2>"$dir/err"
line='^foldline compare[a-z, ]*: ([0-9]+ %, )?[0-9]+ (s|min)'
check "a log has no line that is written over" test -z "$(tr -cd '\r\033' <"$dir/out")$(grep -vE "$line" "$dir/err")"
check "the results are the same" cmp "$dir/tty.csv" "$dir/log.csv"
pty "$dir/both" sh -c "exec '$f' compare harness/experiments/mf-gpoeo-short.json --workload AI_FE --policy mf-gpoeo --no-oracle --seeds $seeds 2>'$dir/err' >'$dir/out'"
check "no such line where standard error is a file" test -z "$(tr -cd '\r\033' <"$dir/out")$(grep -vE "$line" "$dir/err")"

# Work of which nobody knows how far it is, held up by its input: the command and the time.
mkfifo "$dir/slow.json"
sed "s|\"\.\./\.\./|\"$root/|" harness/experiments/first-light.json >"$dir/light.json"
timeout 90 sh -c "sleep 3; cat '$dir/light.json' >'$dir/slow.json'" &
pty "$dir/both" "$f" compare "$dir/slow.json" --no-oracle
wait
check "the time alone" grep -qE 'foldline compare: [0-9]+ s' "$dir/both"
check "then the result" grep -q 'efficientfix' "$dir/both"
check "and no line" /usr/bin/python3 "$root/tests/support/on_terminal.py" --seen "$dir/both" 'foldline compare: [0-9]'

# Where standard error is no terminal, such work says each ten seconds how far it is.
timeout 90 sh -c "sleep 12; cat '$dir/light.json' >'$dir/slow.json'" &
"$f" compare "$dir/slow.json" --no-oracle >"$dir/out" 2>"$dir/err"
wait
check "a line in a log" grep -qE '^foldline compare: 1[0-9] s$' "$dir/err"
check "and the result without one" grep -q 'efficientfix' "$dir/out"

# An interrupted grid says how to continue, and that continues.
for number in INT TERM; do
  for seeds in 100 1000 10000; do
    rm -f "$dir"/a\ grid.*
    env --default-signal=INT "$f" grid harness/experiments/mf-gpoeo-short.json --no-oracle --seeds $seeds --workload AI_FE \
      --policy mf-gpoeo -o "$dir/a grid.csv" >"$dir/out" 2>"$dir/err" &
    for tenth in $(seq 3000); do
      [ "$(wc -l 2>"$dir/check" <"$dir/a grid.csv.journal" || echo 0)" -gt 2 ] && break
      sleep 0.1
    done
    kill -$number $!
    wait $!
    [ -e "$dir/a grid.csv" ] || break
  done
  check "a grid that SIG$number ended says what is kept" grep -q 'foldline grid: interrupted; the rows computed so far are kept' "$dir/err"
  sed -n '/To continue:$/{n;s/ *//;p;}' "$dir/err" >"$dir/again.sh"
done
check "its command is whole" grep -q -- "--seeds $seeds .*'.*/a grid.csv'" "$dir/again.sh"
timeout 250 bash "$dir/again.sh" >"$dir/out" 2>"$dir/err"
check "from there" grep -qE '^[0-9]+ runs, and the baselines of [0-9]+ workloads?; [1-9][0-9]* of these [0-9]+ from an earlier start$' "$dir/out"

# An error takes the line away first.
mkfifo "$dir/wrong.json"
timeout 90 sh -c "sleep 3; echo { >'$dir/wrong.json'" &
pty "$dir/both" "$f" compare "$dir/wrong.json" --no-oracle && bad "a wrong experiment is taken"
wait
check "an error after a line" grep -qE $'\r\033''\[Kfoldline compare: .*wrong.json' "$dir/both"

# Whoever interrupts it finds no line either, and the signal as the cause of its end.
for number in INT TERM HUP; do
  rm -f "$dir/both" "$dir/pid"
  mkfifo "$dir/never.json"
  (exec 9<>"$dir/never.json"
  pty "$dir/both" sh -c 'echo $$ >"$1"; exec "$2" compare "$3" --no-oracle' sh "$dir/pid" "$f" "$dir/never.json"
  echo $? >"$dir/status") 2>"$dir/err" &
  for tenth in $(seq 3000); do
    grep -aqs 'foldline compare: [0-9]* s' "$dir/both" && break
    sleep 0.1
  done
  kill -$number "$(cat "$dir/pid")"
  wait $!
  check "of a run that SIG$number ended" grep -q 'foldline compare: [0-9]* s' "$dir/both"
  check "no line is left" /usr/bin/python3 "$root/tests/support/on_terminal.py" --seen "$dir/both" 'foldline compare: [0-9]'
  check "and it ended of the signal" [ "$(cat "$dir/status")" = $((256 - $(kill -l $number))) ]
  rm -f "$dir/never.json"
done

# A single run tells of its kernels; of work that is over in a second there is nothing.
for kernels in 200000 2000000 8000000; do
  "$f" synth -o "$dir/t.csv" --kernels $kernels --streams 2 --seed 1 --mean-us 100 >"$dir/out"
  pty "$dir/both" "$f" run "$dir/t.csv" --platform generic --policy assure
  grep -q kernels: "$dir/both" && break
done
check "of one run" grep -qE 'foldline run, kernels: [0-9]+ %, [0-9]+ s' "$dir/both"
pty "$dir/both" "$f" list policies
check "none of what is quick" test -z "$(tr -cd '\033' <"$dir/both")"

# The quickstart's own: a build that says how far it is.
cat >"$dir/build.sh" <<'END'
. harness/packages.sh
fl_busy building "$1" sh -c 'for i in 10 50 90; do echo "[ $i%] Building"; sleep 1; done; exit 3'
echo "status $?"
END
pty "$dir/both" bash "$dir/build.sh" "$dir/log"
check "the build's share" grep -qE 'building: (10|50|90) %, about [0-9]+ s left, [0-9]+ s' "$dir/both"
check "its status" grep -q 'status 3' "$dir/both"
check "its line goes" /usr/bin/python3 "$root/tests/support/on_terminal.py" --seen "$dir/both" 'building:'
bash "$dir/build.sh" "$dir/log" >"$dir/out" 2>"$dir/err"
check "a log of the quickstart has none" test ! -s "$dir/err"
finish
