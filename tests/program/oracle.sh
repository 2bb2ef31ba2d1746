#!/usr/bin/env bash
# The oracles' numbers end to end: each is compared with what it belongs to, in its own unit, and none is better than the
# clairvoyant schedule.
. "$(dirname "$0")/shell.sh"
trace=$dir/many.csv
"$f" synth -o "$trace" --kernels 6000 --kinds 12 --burst 1 >/dev/null
"$f" synth -o "$dir/one.csv" --kernels 300 --kinds 1 >/dev/null
bounds=("" "--bound 0.05")

# ---- each kind beside itself at the default clocks ----
"$f" oracle "$trace" --platform generic --bound 0.05 --kernels >"$dir/text"
"$f" oracle "$trace" --platform generic --bound 0.05 --kernels --json >"$dir/json"
kinds() { # from JSON: name, saving and slowdown of each kind against itself, as the table rounds them
  python3 - "$dir/json" <<'P'
import json, sys
for k in json.load(open(sys.argv[1]))[0]["kernels"]:
    print("%s %.2f %.2f" % (k["name"], 100 * (1 - k["energy_j"] / k["default_j"]), 100 * (k["time_s"] / k["default_s"] - 1) + 0.0))
P
}
printed() { awk '$2 ~ /^(comp|mem)_/ {print $2, $4, $6}' "$dir/text" | sed 's/ -0\.00$/ 0.00/'; }
check "a kind is set against itself" test "$(kinds | sed 's/ -0\.00$/ 0.00/')" = "$(printed)"
check "there are all kinds" test "$(printed | wc -l)" = 12
check "no kind saves more than it has" awk '$2 >= 60 || $3 < -50 {bad = 1} END {exit bad || !NR}' <<<"$(printed)"
sums() { # default and best of the kinds, and of the host time, are those of the whole
  python3 - "$dir/json" <<'P'
import json, sys
o = json.load(open(sys.argv[1]))[0]
rest = o["per_kernel_j"] - sum(k["energy_j"] for k in o["kernels"]), o["default_j"] - sum(k["default_j"] for k in o["kernels"])
sys.exit(not (0 < rest[0] <= rest[1] * 1.01 and rest[1] < 0.1 * o["default_j"]))
P
}
check "kinds and host time are the whole" sums
check "host time has a row" grep -q "(host time).*at the clock of the kernel that follows" "$dir/text"

# ---- units ----
for o in "edp:J s" "ed2p:J s\\^2"; do
  succeed "a bound on ${o%%:*} is in its unit" "bound [0-9.e+]+ ${o#*:}, gap" "$f" oracle "$trace" --platform generic --bound 0.05 --objective "${o%%:*}"
  check "and never in joules" sh -c "! grep -qE 'bound [0-9.e+]+ J,' '$dir/out'"
done
"$f" compare "$trace" --platform generic --policy nvboost --objective edp --csv "$dir/edp.csv" >/dev/null
cells() { # the column NAME of the rows of policies that match PATTERN
  python3 - "$1" "$2" "$3" <<'P'
import csv, re, sys
for r in csv.DictReader(open(sys.argv[1])):
    if r["workload"] != "mean" and re.search(sys.argv[2], r["policy"]):
        print(r[sys.argv[3]])
P
}
check "joules are no bound of another objective" test "$(cells "$dir/edp.csv" clairvoyant oracle_bound_j)" = n/a

# ---- nothing is better than the clairvoyant, and one clock per kind never worse than one for all ----
in_order() { # clairvoyant <= per kernel <= static, of what is minimised
  python3 - "$1" "$2" <<'P'
import csv, sys
rows = {r["policy"]: float(r["energy_j"]) * float(r["makespan_s"]) ** int(sys.argv[2]) for r in csv.DictReader(open(sys.argv[1])) if r["workload"] != "mean"}
c, k, s = (rows["baseline:" + n] for n in ("clairvoyant", "per-kernel", "static"))
sys.exit(not (c <= k * (1 + 1e-9) and k <= s))
P
}
n=0
for o in energy edp ed2p; do
  for b in "${bounds[@]}"; do
    for t in "$trace" "$dir/one.csv"; do
      "$f" compare "$t" --platform generic --policy utilizscale --policy fixed:sm_mhz=1000 --objective $o $b --csv "$dir/c.csv" >"$dir/out"
      check "$o $b $(basename "$t"): the baselines are in order" in_order "$dir/c.csv" $n
      check "$o $b $(basename "$t"): no regret below 0" awk '$1 == "n/a" {next} $1 < 0 {bad = 1} END {exit bad}' <<<"$(cells "$dir/c.csv" . regret_clairvoyant_pct)"
      check "$o $b $(basename "$t"): the gap is told" grep -qE "no schedule is better by more than [0-9.e-]+ % \(certified\)" "$dir/out"
    done
  done
  n=$((n + 1))
done
same() { test "$(cells "$dir/c.csv" "$1" "$3")" = "$(cells "$dir/c.csv" "$2" "$3")"; }
check "of one kind, per kernel is the static clock" same baseline:per-kernel baseline:static energy_j
check "to the picosecond" same baseline:per-kernel baseline:static makespan_s

# ---- a coarse schedule is told as one, and is no reference ----
succeed "few positions" '[0-9]+ switches at 10 positions, bound .*gap [0-9]+.*not the best known' \
  "$f" oracle "$trace" --platform generic --bound 0.05 --positions 10
"$f" compare "$trace" --platform generic --policy nvboost --bound 0.05 --positions 10 --csv "$dir/few.csv" >"$dir/out"
check "the best known is the reference" test "$(cells "$dir/few.csv" per-kernel regret_clairvoyant_pct)" = 0
check "its row says so" grep -q "best known" <<<"$(cells "$dir/few.csv" per-kernel note)"
check "so does the text" grep -q "baseline:per-kernel: best known, .* below the clairvoyant schedule" "$dir/out"
check "the coarse schedule has a regret" awk '$1 > 1 {good = 1} END {exit !good}' <<<"$(cells "$dir/few.csv" clairvoyant regret_clairvoyant_pct)"
refuse "no positions" 2 'positions' "$f" oracle "$trace" --platform generic --positions 0
finish
