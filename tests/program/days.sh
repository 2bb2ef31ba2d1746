#!/usr/bin/env bash
# Four users' days, each in at most six commands of README.md and the manual: 40 logs to clocks, a policy of one's own to a
# figure, requests and targets to a gate, a program to its clock.
#   tests/program/days.sh build/foldline
. "$(dirname "$0")/shell.sh"
export FOLDLINE_SHARE=$root/models FOLDLINE_STATE=$dir/state FOLDLINE_RUN=$dir/run
cd "$dir" || exit 1

# ---- an HPC engineer: 40 logs of nvidia-smi, of 20 programs at two clocks of an A100, to a clock for each program ----
# Readings each 0.5 s with 1 % of noise. A program's time is its core part times 1410/f, and the rest. Its power is a fixed
# part, and a part that goes with the square of the clock. Constants and seed were fixed first. Core and memory time do not
# overlap at all, which the models behind advise do not assume: five programs exceed the bound, inside their intervals.
mkdir jobs
awk 'BEGIN {
  srand(7)
  for (p = 1; p <= 20; p++) {
    core = 0.15 + 0.8 * rand(); seconds = 40 + int(40 * rand()); idle = 60; active = 120 + 150 * rand()
    printf "job%02d %g\n", p, core >"truth"
    for (k = 0; k < 2; k++) {
      f = k ? 990 : 1410
      name = sprintf("jobs/job%02d@%d.csv", p, f)
      time = seconds * (core * 1410 / f + 1 - core)
      print "timestamp, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%]" >name
      for (t = -3; t < time + 3; t += 0.5) {
        on = t >= 0 && t < time
        ms = (t + 10) * 1000
        watts = on ? (idle + active * (0.25 + 0.75 * (f / 1410) ^ 2)) * (0.99 + 0.02 * rand()) : idle
        printf "2026/11/02 10:%02d:%06.3f, %.2f W, %d MHz, %d %%\n", ms / 60000, (ms % 60000) / 1000, watts, on ? f : 210, on ? 97 : 0 >name
      }
      close(name)
    }
  }
}'
succeed "40 logs: a row for each program" '^job20 +[0-9]+ MHz' "$f" advise jobs/ --bound 5%
check "all 20" test "$(grep -cE '^job[0-9]+ +[0-9]+ MHz' out)" = 20
check "with the command that sets each clock" test "$(grep -oE 'job[0-9]{2}' <(grep '^  set ' out) | sort -u | wc -l)" = 20
awk 'NR == FNR { core[$1] = $2; next }
  /^job/ {
    slow = 100 * core[$1] * (1410 / $2 - 1)
    match($0, /\[[^]]*\] +[0-9.]+ \[[^]]*\]/); split(substr($0, RSTART, RLENGTH), part, /[][, ]+/)
    broken += slow > 5.5; held += part[5] <= slow && slow <= part[6]
  }
  END { print broken + 0, held + 0 }' truth out >judged
read -r broken held <judged
echo "# $broken of 20 programs exceed the bound by half a point"
check "at least 18 of 20 intervals hold the true slowdown ($held)" test "$held" -ge 18

# ---- a PhD student: a policy of one's own, five seeds, a figure ----
cp "$root/policies/skeleton.c" mine.c
check "a policy is built in one command" gcc -O2 -fPIC -shared -fvisibility=hidden -DPOLICY_PLUGIN -I"$root" mine.c -o mine.so -lm
succeed "a trace" . "$f" synth -o demo.csv --kernels 20000 --streams 2 --seed 7
succeed "five seeds beside a published policy" '^mine\.so|^\./mine\.so|^skeleton' "$f" compare demo.csv --platform generic --policy ./mine.so \
  --policy assure --seeds 5 -o own.csv
check "each seed has a row" test "$(grep -c '^demo.csv,assure,' own.csv)" = 5
if command -v gnuplot >/dev/null; then
  check "a figure" "$f" plot pareto own.csv -o own.svg
  check "which names the policy" grep -q 'assure' own.svg
fi

# ---- an ML engineer: requests, targets, a gate ----
succeed "requests" . "$f" synth requests -o asked.csv --requests 120 --rate 0.7 --seed 7
server=$root/traces/samples/serving/rtx4090-llama3.1-8b.serving.csv
succeed "policies by joules per token, and whether the targets hold" '^ecofreq' "$f" compare "$server" asked.csv \
  --platform "$root/harness/experiments/serving/rtx4090-assumed.json" --ttft 2s --tbt 200ms --policy ecofreq --policy throttllem
cat >serve.json <<EOT
{"foldline_experiment": 1, "about": "Joules of the server under ecofreq", "platform": "$root/harness/experiments/serving/rtx4090-assumed.json",
 "serving": "$server", "requests": "asked.csv", "ttft": "2s", "tbt": "200ms", "policies": ["ecofreq"]}
EOT
succeed "a baseline is recorded" . "$f" regress serve.json --bless -o serve.baseline.json --fail-if 'energy_j>+1%'
succeed "an unchanged server passes the gate" . "$f" regress serve.baseline.json
"$f" synth requests -o asked.csv --requests 160 --rate 0.7 --seed 7 >out 2>err
"$f" regress serve.baseline.json >out 2>err
check "other requests under the old name are refused" test $? = 2

# ---- anyone: a program to its clock ----
python3 "$root/tests/support/work.py" make 1 11 program.csv
succeed "tune, on an emulated board" '^set +nvidia-smi -i 0 -lgc [0-9]+,[0-9]+$' "$f" emulate program.csv --platform v100-300w --repeat 1000 --wall off --no-cpu \
  --time virtual --privileged -- "$f" tune --bound 5% -- python3 "$root/tests/support/work.py" run program.csv p0 0.004
finish
