#!/usr/bin/env bash
# What advice is given on one log, and on several workloads, and how it is set: advise.sh PATH_TO_FOLDLINE
. "$(dirname "$0")/shell.sh"

# nvidia-smi's log of a run at one clock: power while busy, utilisation.
make_log() { # MHZ WATTS UTILISATION
  awk -v f="$1" -v w="$2" -v u="$3" 'BEGIN {
    print "timestamp, utilization.gpu [%], clocks.current.sm [MHz], power.draw [W]"
    for (i = 0; i < 60; i++) {
      runs = (i >= 5 && i < 55)
      printf "2026/01/01 10:00:%02d.000, %d, %d, %.2f\n", i, u * runs, f, runs ? w + (i * 7 % 5 - 2) / 4 : 45
    }
  }'
}
saved() { sed -n 's/^ *energy saved *\([-0-9.]*\) %, between \([-0-9.]*\) and \([-0-9.]*\)$/\'"$1/p" "$dir/out"; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a + 0 < b + 0) }'; }

# ---- one log: its power and its utilisation ----
make_log 1402 260 100 >"$dir/hot.csv"
make_log 1402 100 100 >"$dir/cool.csv"
make_log 1402 200 60 >"$dir/waits.csv"
make_log 1402 30 100 >"$dir/cold.csv"
make_log 1402 150 20 >"$dir/idles.csv"
succeed "advise on a log that draws much" '260 W at 1402 MHz, busy for 100 % of the time: one measured setting' "$f" advise "$dir/hot.csv" --platform v100-300w --bound 10%
hot=$(saved 1)
check "assumes how the program depends on clocks" grep -q 'assumed, three ways: no calibration tells it' "$dir/out"
check "and states no chance" grep -q 'the chance of that is unknown' "$dir/out"
check "but an interval" less "$(saved 2)" "$(saved 3)"
succeed "on one that draws little" '100 W at 1402 MHz' "$f" advise "$dir/cool.csv" --platform v100-300w --bound 10%
check "saves less" less "$(saved 1)" "$hot"
succeed "on one that waits for its host" 'busy for 60 % of the time' "$f" advise "$dir/waits.csv" --platform v100-300w --bound 10%
check "a lower clock holds the bound" less "$(sed -n 's/^[^:]*: \([0-9]*\) MHz instead.*/\1/p' "$dir/out")" "$("$f" advise "$dir/hot.csv" --platform v100-300w --bound 10% | sed -n 's/^[^:]*: \([0-9]*\) MHz instead.*/\1/p')"
for one in cold idles; do
  succeed "a log that tells nothing ($one)" 'this is what the platform says of any program' "$f" advise "$dir/$one.csv" --platform v100-300w --bound 10%
done
refuse "a log without a platform" 2 'hot.csv: .*expected --platform NAME' "$f" advise "$dir/hot.csv"

# A device of which workloads are known: they say what a program of that power does.
awk 'BEGIN {
  print "workload,sm_mhz,mem_mhz,time_s,power_w"
  for (w = 0; w < 8; w++)
    for (f = 600; f <= 1500; f += 100) {
      s = ((w * 31 + f / 100 * 17) % 11 - 5) / 2500
      t = ((1 - w / 8) * 1500 / f + w / 8) * (1 + s)
      printf "w%d,%d,877,%.6f,%.4f\n", w, f, t, (60 + (180 - 16 * w) * f * (1 + (f > 900) * (f - 900) / 900) / 2500) * (1 - s / 2)
    }
}' >"$dir/known.csv"
check "a device" "$f" fit device "$dir/known.csv" -o "$dir/known.json"
make_log 1400 200 100 >"$dir/run.csv"
succeed "advise by a calibration" 'what programs of such a power do, the calibration.s tell' "$f" advise "$dir/run.csv" --platform "$dir/known.json" --bound 10%
check "of one clock it is no recommendation" grep -q '^note: not a recommendation: program was measured at one clock' "$dir/out"
check "states a chance" grep -q 'with a chance of\|with a chance of at most' "$dir/out"
make_log 1900 200 100 >"$dir/beyond.csv"
refuse "a clock that the platform does not have" 2 'beyond.csv: .program. was recorded at 1900 MHz .* outside the calibrated or measured range' "$f" advise "$dir/beyond.csv" --platform "$dir/known.json" --bound 10%

# ---- several workloads: each has its clock, its commands and what to measure next ----
awk -F, 'NR == 1 || ($2 - 600) % 300 == 0 || ($2 == 700 && $1 < "w4")' "$dir/known.csv" >"$dir/few.csv"
succeed "advise on several workloads" 'measure next' "$f" advise "$dir/few.csv" --platform "$dir/known.json" --bound 15%
check "proposes a clock that was not measured" grep -qE '^w7 .* (700|800|1000|1100|1300|1400) MHz$' "$dir/out"
told=$(sed -n 's/^w7 .* \([0-9]*\) MHz$/\1/p' "$dir/out")
for w in 4 5 6 7; do
  mhz=$(sed -n "s/^w$w *\([0-9]*\) .*/\1/p" "$dir/out")
  [ "$mhz" = 1500 ] || check "has the commands for w$w" grep -qE "^  set +nvidia-smi -lgc $mhz,$mhz +for .*w$w" "$dir/out"
done
check "some clock is to be set" grep -q '^  set ' "$dir/out"
check "and how to undo them, once" test "$(grep -c '^  undo  *nvidia-smi -rgc$' "$dir/out")" = 1
awk -F, 'NR == 1 || $1 == "w7"' "$dir/few.csv" >"$dir/alone.csv"
succeed "one of them alone" "measure next +a run at $told MHz: it tells most of the clocks in between" \
  "$f" advise "$dir/alone.csv" --platform "$dir/known.json" --bound 15%
succeed "without a platform a predicted clock is to be measured" '^w7 .* [0-9]+ MHz$' "$f" advise "$dir/known.csv" --bound 15%
check "no board is named, so both ways are" grep -qE '^  note .*before, nvidia-smi -ac MEM,SM, undone by nvidia-smi -rac, but GeForce boards of that time have neither' "$dir/out"
printf '# foldline-sweep 1\n# device: NVIDIA A10G\nworkload,sm_mhz,time_s,power_w\na,1440,10,160\na,1009,11,100\n' >"$dir/named.csv"
succeed "the clocks are those of the board that the file names" 'on the ladder of board a10g' "$f" advise "$dir/named.csv"
check "not steps down from the top" grep -q '^a: 11[0-9][05] MHz' "$dir/out"
sed -i 's/1440/1443/; s/A10G/No Such Board/' "$dir/named.csv"
succeed "else steps down from the top" '^a: 11[0-9][38] MHz' "$f" advise "$dir/named.csv"
succeed "a board by name" 'on the ladder of board h100-nvl' "$f" advise "$dir/named.csv" --board h100-nvl
refuse "a board whose clocks are not known" 2 'board a30: unknown: the lowest SM clock' "$f" advise "$dir/named.csv" --board a30
refuse "with a platform" 2 'no effect with --platform' "$f" advise "$dir/named.csv" --board a10g --platform a100

# ---- what a fit predicted was not measured: it teaches nothing, and stays as sure as the fit said ----
awk -F, 'NR == 1 || $2 == 1400' "$dir/known.csv" >"$dir/one.csv"
check "a written prediction" "$f" fit workload --device "$dir/known.json" "$dir/one.csv" --at sm=1400 --clocks calibrated -o "$dir/predicted.csv"
succeed "advise on it" 'predicted.csv: 8 measured and 72 predicted settings of 8 workloads, as sure as the file states' "$f" advise "$dir/predicted.csv" --bound 15%
check "no interval is narrower than the deviations that the file states" python3 -c '
import csv, json, math, subprocess, sys
rows = list(csv.DictReader(l for l in open(sys.argv[2]) if not l.startswith("#")))
told = json.loads(subprocess.run([sys.argv[1], "advise", sys.argv[2], "--bound", "15%", "--json"], capture_output=True, check=True).stdout)["advice"]
moved = 0
for a in told:
    if a["sm_mhz"] == a["reference_sm_mhz"]:
        continue
    sds = [float(r["power_sd_pct"]) for r in rows if r["workload"] == a["workload"] and float(r["sm_mhz"]) in (a["sm_mhz"], a["reference_sm_mhz"]) and r["power_sd_pct"]]
    moved += 1
    assert a["saving_pct"]["high"] - a["saving_pct"]["low"] >= 2 * max(sds) * (1 - a["saving_pct"]["high"] / 100), a
assert moved' "$f" "$dir/predicted.csv"
saves() { "$f" advise "$dir/$1" --platform "$dir/known.json" --bound 15% --json >"$dir/json" && python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))["advice"]
print([(a["workload"], a["sm_mhz"], a["saving_pct"]["low"], a["saving_pct"]["high"], a["bound_break_chance"]) for a in d])' "$dir/json"; }
check "with the calibration it says what the measured rows alone say" test "$(saves one.csv)" = "$(saves predicted.csv)"
succeed "and how many rows taught nothing" 'predicted rows of the file teach nothing: 72' "$f" advise "$dir/predicted.csv" --platform "$dir/known.json" --bound 15%
check "it was measured at one clock" grep -q 'predicted.csv: 8 measured settings of 8 workloads at 1400 MHz' "$dir/out"
refuse "a device of one clock and its predictions" 2 'expected at least one workload at two settings' "$f" fit device "$dir/predicted.csv" -o "$dir/no.json"
awk -F, '/^#/ || $1 == "workload" || $9 != ""' "$dir/predicted.csv" >"$dir/all.csv"
for c in 'fit device -o /dev/null' 'fit workload --device v100-300w'; do
  refuse "no measured row: $c" 2 'all.csv: no settings to fit: predicted rows teach nothing, expected measured rows' "$f" $c "$dir/all.csv"
done
succeed "compare takes it as a model" 'baseline:static' "$f" compare "$dir/predicted.csv" --platform "$dir/known.json" --policy nvboost --bound 15% --risk 30%

# ---- it says which clocks were measured, not which the calibration has ----
awk -F, 'NR == 1 || $2 == 800 || $2 == 1100' "$dir/known.csv" >"$dir/inner.csv"
succeed "clocks of the sweep" 'inner.csv: 16 measured settings of 8 workloads at 800 to 1100 MHz' "$f" advise "$dir/inner.csv" --platform "$dir/known.json" --bound 15%

# ---- power limits: what was measured under one is what a user would run, whether or not it binds ----
# Two programs at five clocks under four limits. The board lowers the clock until the power fits.
awk 'function power(f, w) { return 50 + w * f * (1 + (f > 900) * (f - 900) / 900) / 1500 }
BEGIN {
  print "workload,sm_mhz,mem_mhz,power_cap_w,time_s,power_w"
  for (w = 0; w < 2; w++)
    for (f = 900; f <= 1500; f += 150)
      for (cap = 160; cap <= 280; cap += 40) {
        for (g = f; g > 300 && power(g, 170 - 60 * w) > 0.98 * cap; g -= 5) ;
        printf "p%d,%d,,%d,%.5f,%.4f\n", w, f, cap, ((1 - 0.3 * w) * 1500 / g + 0.3 * w), power(g, 170 - 60 * w)
      }
}' >"$dir/limits.csv"
cat >"$dir/limits.py" <<'PY'
# Of every advice: its setting was measured or predicted, holds the bound where it was measured, and no measured row that
# holds the bound by a point saves more than a thousandth. Prints how many settings have a limit.
import csv, json, os, subprocess, sys
program, path, *more = sys.argv[1:]
rows = list(csv.DictReader(open(path)))
highest = max(float(r["power_cap_w"]) for r in rows)
limited = 0
for bound in (2, 5, 10, 20) if "FL_NIGHTLY" in os.environ else (5, 20):
    said = subprocess.run([program, "advise", path, "--json", "--bound", f"{bound}%"] + more, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    for a in json.loads(said.stdout)["advice"]:
        mine = [r for r in rows if r["workload"] == a["workload"]]
        at = {(float(r["sm_mhz"]), float(r["power_cap_w"])): (float(r["time_s"]), float(r["time_s"]) * float(r["power_w"])) for r in mine}
        top = at[max(f for f, _ in at), highest]
        assert a["reference_sm_mhz"] == max(f for f, _ in at), a
        chosen = at.get((a["sm_mhz"], a["power_limit_w"] or highest))
        saved = 1 - chosen[1] / top[1] if chosen else a["saving_pct"]["value"] / 100
        assert not chosen or chosen[0] <= (1 + bound / 100) * top[0], (bound, a)
        assert not chosen or abs(saved - a["saving_pct"]["value"] / 100) < 2e-3, (saved, a)
        assert not a["power_limit_w"] or f"-pl {a['power_limit_w']:.0f}" in a["set"] and f"-pl {highest:.0f}" in a["undo"], a
        limited += bool(a["power_limit_w"])
        for setting, (t, e) in at.items():
            if t <= (0.99 + bound / 100) * top[0]:
                assert 1 - e / top[1] <= saved + 1e-3, (bound, a["workload"], setting, 1 - e / top[1], saved)
print("limited", limited)
PY
succeed "no measured setting, under a power limit or not, saves more than the advised one" '^limited [0-9]' python3 "$dir/limits.py" "$f" "$dir/limits.csv"
awk -F, 'NR == 1 || $1 == "p0"' "$dir/limits.csv" >"$dir/held.csv"
succeed "the reference is the highest clock, even where the limit holds it down" '^limited [0-9]' python3 "$dir/limits.py" "$f" "$dir/held.csv"
awk -F, 'NR == 1 || $2 == 1500' "$dir/limits.csv" >"$dir/top.csv"
succeed "limits at one clock, which no law fits" '^limited [1-9]' python3 "$dir/limits.py" "$f" "$dir/top.csv"
succeed "it says which limit counts as the board's own" '280 W count as its own, the highest that was measured' "$f" advise "$dir/top.csv"
sed 's/,1500,,/,,,/' "$dir/top.csv" >"$dir/caps.csv"
succeed "limits without any clock" '^p0 +a power limit of [0-9]+ W +[0-9.]+ \[' "$f" advise "$dir/caps.csv" --bound 20%
check "only the limit is set" grep -qE '^  set +nvidia-smi -pl [0-9]+   for p0' "$dir/out"
check "and set back" grep -qE '^  undo +nvidia-smi -pl 280$' "$dir/out"
cat "$dir/caps.csv" >"$dir/both.csv"
awk -F, -v OFS=, 'NR > 1 && $1 == "p0" && $4 == 280 { $1 = "q"; print }' "$dir/limits.csv" >>"$dir/both.csv"
succeed "a workload of limits beside one of clocks" '^p0 +a power limit of [0-9]+ W +[0-9.]+ \[' "$f" advise "$dir/both.csv" --bound 20%
check "has its own answer" grep -qE '^q +[0-9]+ MHz [* ]+[0-9.]+ \[' "$dir/out"
awk -F, -v OFS=, 'NR > 1 { $4 = $4 / 2.8 } 1' "$dir/top.csv" >"$dir/shares.csv"
refuse "limits in percent" 2 'shares.csv:2:10: power_cap_w is 57.1429, but the board drew [0-9.]* W; .* as of shares: expected W' "$f" advise "$dir/shares.csv"
if [ -n "${FOLDLINE_DATA:-}" ]; then
  real=$FOLDLINE_DATA/sweeps/a100-pcie-lock-x-cap.csv
  awk -F, 'NR == 1 || $1 == "pi-solver"' "$real" >"$dir/pi.csv"
  awk -F, 'NR == 1 || $3 == 1410' "$real" >"$dir/real-top.csv"
  for one in "$real" "$dir/pi.csv" "$dir/real-top.csv"; do
    succeed "a measured A100: $(basename "$one")" '^limited [1-9]' python3 "$dir/limits.py" "$f" "$one"
    succeed "with its platform" '^limited [1-9]' python3 "$dir/limits.py" "$f" "$one" --platform a100-pcie
  done
fi

# ---- what is not to be done is null for programs ----
cat >"$dir/null.py" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))["advice"]
stay = [a for a in d if a["sm_mhz"] == a["reference_sm_mhz"]]
move = [a for a in d if a["sm_mhz"] != a["reference_sm_mhz"]]
assert all(a["set"] is None and a["undo"] is None and "note" not in a for a in stay), stay
assert all(a["set"].startswith("nvidia-smi") and a["undo"] for a in move), move
print(len(stay), len(move), sum(a["measure_sm_mhz"] is None for a in d))
PY
"$f" advise "$dir/known.csv" --bound 0.1% --json >"$dir/stay.json"
succeed "to stay sets nothing, and where the answer was measured nothing is next" '^8 0 7$' python3 "$dir/null.py" "$dir/stay.json"
"$f" advise "$dir/known.csv" --bound 15% --json >"$dir/move.json"
succeed "to move does" '^0 8 0$' python3 "$dir/null.py" "$dir/move.json"

# ---- boards before Volta ----
for name in 'Tesla P100-PCIE-16GB' 'GeForce GTX 1080 Ti'; do
  sed "s/\"name\":.*\"Fitted GPU\"/\"name\": \"$name\"/" "$dir/known.json" >"$dir/old.json"
  "$f" advise "$dir/few.csv" --platform "$dir/old.json" --bound 15% >"$dir/old $name"
done
check "a Tesla has application clocks" grep -qE '^  set +nvidia-smi -ac 877,[0-9]+ ' "$dir/old Tesla P100-PCIE-16GB"
check "which are undone" grep -qE '^  undo +nvidia-smi -rac$' "$dir/old Tesla P100-PCIE-16GB"
check "a GeForce has nothing" grep -q 'GeForce boards before Volta have neither clock locks nor application clocks' "$dir/old GeForce GTX 1080 Ti"
check "so nothing is proposed" test "$(grep -c nvidia-smi "$dir/old GeForce GTX 1080 Ti")" = 0

# ---- what is not known has no decimals ----
awk 'BEGIN { print "workload,sm_mhz,mem_mhz,time_s,power_w"; for (i = 10; i < 22; i++) printf "job%d,1410,1215,%d,%d\n", i, i, 15 * i }' >"$dir/jobs.csv"
succeed "jobs at one clock have no saving, but a clock to measure" '^job10 +unknown +- +- +- +990 MHz +measured at one clock$' "$f" advise "$dir/jobs.csv" --platform a100
check "each of them" test "$(grep -c '^job.* unknown ' "$dir/out")" = 12
succeed "a model without an error" '^  energy saved +[0-9.]+ %, error unknown$' "$f" advise traces/samples/mix8.csv --platform rtx4070-laptop
check "has no chance" test "$(grep -c 'chance of [0-9]\|between' "$dir/out")" = 0
"$f" advise traces/samples/mix8.csv --platform rtx4070-laptop --json >"$dir/unknown.json"
check "nor as JSON" test "$(grep -cE '"(low|high|bound_break_chance)":\s+null' "$dir/unknown.json")" = 5
succeed "one clock for all" '^all together: [0-9]+ MHz saves [0-9.]+ % of the energy' "$f" advise "$dir/known.csv" --bound 15% --common
check "is the same in each row" test "$(awk '/^w[0-7]/ { print $2 }' "$dir/out" | sort -u | wc -l)" = 1
printf 'workload,sm_mhz,mem_mhz,time_s,power_w\nw,1410,1215,10,300\nw,1005,1215,9.6,200\n' >"$dir/less.csv"
succeed "a sweep whose lower clock is faster" '^w: 1005 MHz' "$f" advise "$dir/less.csv"
check "is in doubt" grep -q '^note: w: 1005 MHz is faster than 1410 MHz by 4.0 %, as of less work' "$dir/out"
refuse "one clock for an experiment" 2 '--common has no effect on an experiment' "$f" advise harness/experiments/first-light.json --common
refuse "no workload of the sweep" 2 "known.csv: no workload 'x', expected one of" "$f" advise "$dir/known.csv" --workload x
refuse "a clock of no logs" 2 'advise: --sm-mhz has no effect without logs' "$f" advise "$dir/known.csv" --sm-mhz 900

# ---- a bound of 5 is not taken for 500 % ----
cp "$dir/known.csv" "$dir/b.csv"
both='bound 5, expected a share: 0.05 or 5%; 500 % are said as 500%'
refuse "a bound above 1" 2 "$both" "$f" advise "$dir/b.csv" --bound 5
refuse "of a comparison" 2 "$both" "$f" compare "$dir/b.csv" --platform "$dir/known.json" --policy nvboost --bound 5
refuse "a risk above 1" 2 'risk 5, expected a share: 0.05 or 5%' "$f" advise "$dir/b.csv" --risk 5
succeed "what is said in percent" 'within the bound of 150 %' "$f" advise "$dir/b.csv" --bound 150%
check "5% is 0.05" cmp -s <("$f" advise "$dir/b.csv" --bound 5%) <("$f" advise "$dir/b.csv" --bound 0.05)
experiment() { sed "s|\"\.\./\.\./|\"$PWD/|; s|\"bound\": *[0-9.]*|\"bound\": $1|" harness/experiments/first-light.json >"$dir/x.json"; }
experiment 5
refuse "an experiment's bound above 1" 2 'x.json:[0-9]+:[0-9]+: bound: 5, expected a share: 0.05 or 5%; 500 % are said as 500%' "$f" compare "$dir/x.json" --no-oracle
experiment '"5x"'
refuse "one that is no share" 2 "x.json:[0-9]+:[0-9]+: bound: '5x', expected a share such as 5% or 0.05" "$f" compare "$dir/x.json" --no-oracle
experiment '"5%"'
succeed "one in percent" 'fixed' "$f" compare "$dir/x.json" --no-oracle
cp "$dir/out" "$dir/percent"
experiment 0.05
succeed "is the share" 'fixed' "$f" compare "$dir/x.json" --no-oracle
check "the same" cmp -s "$dir/out" "$dir/percent"

# ---- logs that do not show a whole run ----
runs() { # FILE MHZ SECONDS WATTS BOARD IDLE_S: readings each half second
  awk -v f="$2" -v n="$3" -v w="$4" -v board="$5" -v idle="$6" 'BEGIN {
    print "timestamp, name, utilization.gpu [%], clocks.current.sm [MHz], power.draw [W]"
    for (i = 0; i < 2 * (n + 2 * idle); i++) {
      t = i / 2; b = t >= idle && t < idle + n
      printf "2026/01/01 10:%02d:%02d.%d00, %s, %d, %d, %.2f\n", int(t / 60), int(t) % 60, 5 * (i % 2), board, 100 * b, b ? f : 210, b ? w : 45
    }
  }' >"$1"
}
a100="NVIDIA A100-SXM4-80GB"
runs "$dir/x@1410.log" 1410 60 300 "$a100" 3
runs "$dir/x@1200.log" 1200 62 240 "$a100" 3
succeed "two whole runs" 'energy saved +17.3 %' "$f" advise "$dir/x@1410.log" "$dir/x@1200.log" --platform a100
check "of which nothing is open" test "$(grep -c 'whole run\|spacing' "$dir/out")" = 0
head -n 66 "$dir/x@1200.log" >"$dir/cut@1200.log"
ended='the log ends under load, while .* ends idle: it does not have the whole run'
refuse "a log that was cut is not a fast run" 2 "cut@1200.log: $ended" "$f" advise "$dir/x@1410.log" "$dir/cut@1200.log" --platform a100 --workload x
runs "$dir/short@1200.log" 1200 29.5 240 "$a100" 3
refuse "nor is another program" 2 'short@1200.log: 29.5 s at 1200 MHz, but 60 s at 1410 MHz in x@1410.log: a lower clock is not faster, expected whole runs' \
  "$f" advise "$dir/x@1410.log" "$dir/short@1200.log" --platform a100 --workload x
succeed "by its name it is one" '^short +unknown +- +- +- +[0-9]+ MHz +short@1200.log: measured at one clock$' "$f" advise "$dir/x@1410.log" "$dir/short@1200.log"
head -n 66 "$dir/x@1410.log" >"$dir/cut@1410.log"
refuse "nor one of the higher clock" 2 "cut@1410.log: $ended" "$f" advise "$dir/cut@1410.log" "$dir/x@1200.log" --platform a100 --workload x
runs "$dir/low@900.log" 900 150 150 "$a100" 3
succeed "a run slower than the ratio of the clocks is set aside" '^x: 1200 MHz instead of 1410$' "$f" advise "$dir/x@1410.log" "$dir/x@1200.log" "$dir/low@900.log" --platform a100 --workload x
check "with the reason" grep -q 'set aside: low@900.log: 150 s at 900 MHz, but 62 s at 1200 MHz in x@1200.log: a lower clock does not slow a program down by more than the ratio' "$dir/out"
awk 'NR == 1 || (NR - 2) % 20 < 3' "$dir/x@1410.log" >"$dir/burst.log"
succeed "readings in bursts are no pause" '1 of 1 runs' "$f" fit logs "$dir/burst.log" -o "$dir/burst.csv"
(cat "$dir/x@1410.log"; sed '1d; s/ 10:/ 11:/' "$dir/x@1410.log") >"$dir/twice.log"
refuse "two runs in one log are not one long run" 2 'twice.log: no readings for 353[0-9.]* s, 62.[0-9]* s after the run.s begin' "$f" advise "$dir/twice.log" "$dir/x@1200.log" --platform a100 --workload x
sed '1s/timestamp/index, timestamp/; 2,$s/^/0, /; s/\.[0-9]*,/,/' "$dir/x@1410.log" >"$dir/coarse.log"
check "one GPU by its number may have stamps of whole seconds" sh -c "! '$f' fit logs '$dir/coarse.log' -o '$dir/coarse.csv' 2>&1 | grep -q 'several GPUs'"
refuse "fit logs neither" 2 'twice.log: no readings for 353' "$f" fit logs "$dir/twice.log" -o "$dir/no.csv"
runs "$dir/busy@1410.log" 1410 60 300 "$a100" 0
runs "$dir/busy@1200.log" 1200 62 240 "$a100" 0
succeed "logs without idle ends" '^note: busy@1410.log: taken as the whole run, although the GPU does not idle' "$f" advise "$dir/busy@1410.log" "$dir/busy@1200.log" --platform a100
succeed "fit logs says so too" '1 of 1 runs' "$f" fit logs "$dir/busy@1410.log" -o "$dir/busy.csv"
check "in a note" grep -q 'busy@1410.log: the GPU does not idle before and after the run, which may be longer' "$dir/err"
runs "$dir/few@1410.log" 1410 11 300 "$a100" 2
runs "$dir/few@1200.log" 1200 12 240 "$a100" 2
succeed "short runs, seldom read" "the readings' spacing: it leaves a run's length open by up to 4.5 %" "$f" advise "$dir/few@1410.log" "$dir/few@1200.log" --platform a100

# ---- what held the clock of a run, and a meter of another name ----
limited() { sed "1s/\$/, enforced.power.limit [W]/; 2,\$s/\$/, $2.00 W/" "$1"; }
limited "$dir/x@1410.log" 400 >"$dir/own.log"
limited "$dir/x@1200.log" 250 >"$dir/held.log"
succeed "a run under a lower limit, which may have held its clock" '^x: 1200 MHz under a power limit of 250 W instead of 1410$' "$f" advise "$dir/own.log" "$dir/held.log" --workload x
check "so the limit is set too" grep -qE '^  set +nvidia-smi -lgc 1200,1200 && nvidia-smi -pl 250$' "$dir/out"
limited "$dir/x@1200.log" 350 >"$dir/free.log"
succeed "not under a limit that cannot have bound" '^x: 1200 MHz instead of 1410$' "$f" advise "$dir/own.log" "$dir/free.log" --workload x
sed '1s/power.draw/power.draw.instant/' "$dir/x@1200.log" >"$dir/instant.log"
succeed "the mean of momentary power is power" 'energy saved +17.3 %' "$f" advise "$dir/x@1410.log" "$dir/instant.log" --platform a100 --workload x

for one in 1410 1200; do sed 's/clocks.current.sm \[MHz\], //; 2,$s/, \(100\|0\), [0-9]*,/, \1,/' "$dir/x@$one.log" >"$dir/z$one.log"; done
refuse "a log without clocks" 2 'z1410.log: no sm_mhz, expected the SM clock of the run: .* by --sm-mhz' "$f" advise "$dir/z1410.log" "$dir/z1200.log" --workload z
succeed "has those that are stated" '^z: 1200 MHz instead of 1410$' "$f" advise "$dir/z1410.log" "$dir/z1200.log" --workload z --sm-mhz 1410,1200

# ---- the board that was measured, and which of several ----
runs "$dir/other.log" 1410 60 300 "NVIDIA GeForce RTX 5090" 3
succeed "another board of the vendor is told" 'recorded on another board \(NVIDIA GeForce RTX 5090\) than A100-SXM4-80GB of platform a100' \
  "$f" advise "$dir/other.log" --platform a100
runs "$dir/same.log" 1410 60 300 "NVIDIA A100 80GB PCIe" 3
succeed "not the same model" 'instead of 1410' "$f" advise "$dir/same.log" --platform a100
check "by any name" test "$(grep -c 'another board' "$dir/out")" = 0
succeed "a log names the board" 'set +nvidia-smi -lgc 1200,1200' "$f" advise "$dir/x@1410.log" "$dir/x@1200.log"
check "so its commands are certain" test "$(grep -c 'from Volta on' "$dir/out")" = 0
for one in 1410 1200; do sed '1s/name/index, name/; 2,$s/, NVIDIA/, 1, NVIDIA/; 2,${p; s/, 1, NVIDIA/, 0, NVIDIA/}' "$dir/x@$one.log" >"$dir/y@$one.log"; done
succeed "of several GPUs, the one that was looked at" 'set +nvidia-smi -i 1 -lgc 1200,1200$' "$f" advise "$dir/y@1410.log" "$dir/y@1200.log" --device 1
check "and back" grep -qE '^  undo +nvidia-smi -i 1 -rgc$' "$dir/out"
refuse "a GPU that the log has not" 2 'y@1410.log: no readings of GPU 9, expected --device with one of 0, 1$' "$f" advise "$dir/y@1410.log" --device 9 --platform a100
refuse "nor for a sweep" 2 'no readings of GPU 9, expected --device with one of 0, 1$' "$f" fit logs "$dir/y@1410.log" --device 9 -o "$dir/no.csv"
sed '2,$s/, 100, 1410/, 0, 1410/' "$dir/x@1410.log" >"$dir/still.log"
refuse "a GPU that never works" 2 'expected two readings with util_gpu_pct above 0' "$f" advise "$dir/still.log" --platform a100

# ---- several GPUs in a log that does not tell them apart ----
awk 'NR == 1 {print; next} {print; sub(/[0-9.]+ W/, "60.00 W"); print}' "$dir/x@1410.log" >"$dir/pair.log"
refuse "they are not one of mean power" 2 'pair.log: [0-9]+ of [0-9]+ readings have the time of the one before, as of several GPUs' \
  "$f" advise "$dir/pair.log" "$dir/x@1200.log" --platform a100
refuse "fit logs neither" 2 'pair.log: .* as of several GPUs' "$f" fit logs "$dir/pair.log" -o "$dir/no.csv"
# Stamped 3 ms apart; the second board stands at 60 W, or has the same readings as the first.
twin() { awk -F', ' -v OFS=', ' -v watts="$1" 'NR == 1 {print; next} {print; split($1, s, "."); $1 = s[1] "." sprintf("%03d", s[2] + 3); if (watts) $5 = watts; print}' "$dir/x@1410.log"; }
twin 60.00 >"$dir/apart.log"
refuse "nor where their stamps are some ms apart" 2 'apart.log: readings some ms apart go back and forth between levels, as of several GPUs' \
  "$f" advise "$dir/apart.log" "$dir/x@1200.log" --platform a100 --workload x
refuse "fit logs neither" 2 'apart.log: .* as of several GPUs' "$f" fit logs "$dir/apart.log" -o "$dir/no.csv"
twin "" >"$dir/even.log"
succeed "one GPU that is read twice in a row is one" 'energy saved +17.3 %' "$f" advise "$dir/even.log" "$dir/x@1200.log" --platform a100 --workload x

# ---- what a head states of a program is of the GPU that ran it ----
"$f" synth -o "$dir/k.csv" --kernels 2000 --mean-us 3000 --seed 3 >/dev/null
"$f" run "$dir/k.csv" --platform generic --gpus 2 --policy fixed:sm_mhz=900 --telemetry "$dir/two.log" >/dev/null
refuse "a GPU that idled while the program ran" 2 'two.log: GPU 1 was idle during the run that the head states' "$f" advise "$dir/two.log" --device 1 --platform generic
succeed "the one that ran it" 'at 900 MHz, busy for' "$f" advise "$dir/two.log" --device 0 --platform generic

# ---- options that would do nothing, or less than was asked for ----
pot3d=traces/samples/energyucb-528.pot3d.csv
succeed "of a sweep too, the GPU that was named" 'set +nvidia-smi -i 3 -lgc 1135,1135$' "$f" advise $pot3d --device 3
succeed "six devices taken as one board are six, of two tiles" \
  'set +for d in 0 1 2 3 4 5; do for t in 0 1; do xpu-smi config -d \$d -t \$t --frequencyrange 1300,1300; done; done$' \
  "$f" advise $pot3d --platform pvc-max1550x6
refuse "kinds without kernels" 2 '--kinds has no effect without a recording of kernels' "$f" advise $pot3d --kinds "$dir/nowhere.csv"
refuse "a GPU of servers" 2 '--device has no effect on a server' "$f" advise "$dir/asked.csv" "$dir/server.csv" --ttft 2s --device 2
refuse "a GPU of an experiment" 2 '--device has no effect on an experiment' "$f" advise harness/experiments/first-light.json --device 3

finish
