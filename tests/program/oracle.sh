#!/usr/bin/env bash
# The oracles' numbers end to end: each is compared with what it belongs to, in its own unit, and none is better than the
# clairvoyant schedule.
. "$(dirname "$0")/shell.sh"
trace=$dir/many.csv
"$f" synth -o "$trace" --kernels 6000 --kinds 12 --burst 1 >/dev/null
"$f" synth -o "$dir/one.csv" --kernels 300 --kinds 1 >/dev/null
bounds=("" "--bound 0.05")

# ---- each kind beside itself at the default clocks ----
"$f" compare "$trace" --platform generic --bound 0.05 --kernels >"$dir/text"
"$f" compare "$trace" --platform generic --bound 0.05 --kernels --json >"$dir/json"
numbers() { # of each kind: name, energy, time, and both at the default clocks
  awk -F'[:,]' '{gsub(/["\t ]/, "")} /"kernels"|kernels/ {inside = 1} inside && $1 ~ /name$/ {name = $2; next}
    inside && $1 == "energy_j" {j = $2} inside && $1 == "time_s" {s = $2} inside && $1 == "default_j" {dj = $2}
    inside && $1 == "default_s" {print name, j, s, dj, $2}' "$dir/json"
}
kinds() { # saving and slowdown of each against itself, as the table rounds them
  numbers | awk '{printf "%s %.2f %.2f\n", $1, 100 * (1 - $2 / $4), 100 * ($3 / $5 - 1)}' | sed 's/ -0\.00$/ 0.00/'
}
printed() { awk '$1 ~ /^(comp|mem)_/ {print $1, $3, $5}' "$dir/text"; }
check "a kind is set against itself" test "$(kinds)" = "$(printed)"
check "there are all kinds" test "$(printed | wc -l)" = 12
check "no kind saves more than it has" awk '$2 >= 60 || $3 < -50 {bad = 1} END {exit bad || !NR}' <<<"$(printed)"
key() { awk -F'[:,]' -v k="\"$1\"" 'index($1, k) {print $2}' "$dir/json"; }
sums() { # energy and time of the kinds and of the host are those of the whole, here and at the default clocks
  numbers | awk -v j="$(key host_j)" -v dj="$(key host_default_j)" -v s="$(key host_s)" -v per="$(key per_kernel_j)" \
    -v per_s="$(key per_kernel_s)" -v all="$(key default_j | head -n 1)" 'function same(a, b) {return (a / b - 1) ^ 2 < 1e-18}
    BEGIN {host = j} {j += $2; s += $3; dj += $4} END {exit !(host > 0 && same(j, per) && same(s, per_s) && same(dj, all))}'
}
check "kinds and host time are the whole" sums
check "host time has a row" grep -q "(host time).*at the clock of the kernel that follows" "$dir/text"

# ---- units ----
for o in "edp:J s" "ed2p:J s\\^2"; do
  succeed "a bound on ${o%%:*} is in its unit" "bound [0-9.e+]+ ${o#*:}, gap" "$f" compare "$trace" --platform generic --bound 0.05 --objective "${o%%:*}"
  check "and never in joules" sh -c "! grep -qE 'bound [0-9.e+]+ J,' '$dir/out'"
done
"$f" compare "$trace" --platform generic --policy nvboost --objective edp -o "$dir/edp.csv" >/dev/null
cells() { # FILE PATTERN COLUMN: of the rows of policies that match; a column before the notes, which hold commas
  awk -F, -v pattern="$2" -v column="$3" 'NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i; next}
    $1 != "mean" && $2 ~ pattern {print $at[column]}' "$1"
}
check "joules are no bound of another objective" test "$(cells "$dir/edp.csv" clairvoyant oracle_bound_j)" = n/a

# ---- nothing is better than the clairvoyant, and one clock per kind never worse than one for all ----
value() { # FILE POLICY POWER: E T^power
  paste -d' ' <(cells "$1" "$2" energy_j) <(cells "$1" "$2" makespan_s) | awk -v m="$3" '{printf "%.17g\n", $1 * $2 ^ m}'
}
in_order() { # clairvoyant <= per kernel <= static, of what is minimised
  awk -v c="$(value "$1" clairvoyant "$2")" -v k="$(value "$1" per-kernel "$2")" -v s="$(value "$1" baseline:static "$2")" \
    'BEGIN {exit !(c > 0 && c <= k * (1 + 1e-9) && k <= s * (1 + 1e-12))}'
}
n=0
for o in energy edp ed2p; do
  for b in "${bounds[@]}"; do
    for t in "$trace" "$dir/one.csv"; do
      "$f" compare "$t" --platform generic --policy utilizscale --policy fixed:sm_mhz=1000 --objective $o $b -o "$dir/c.csv" >"$dir/out"
      check "$o $b $(basename "$t"): the baselines are in order" in_order "$dir/c.csv" $n
      check "$o $b $(basename "$t"): no regret below 0" awk '$1 == "n/a" {next} {n++} $1 < 0 {bad = 1} END {exit bad || n < 4}' <<<"$(cells "$dir/c.csv" . regret_clairvoyant_pct)"
      check "$o $b $(basename "$t"): the gap is told" grep -qE "certified; at the same clocks no schedule is better by more than [0-9.e-]+ %" "$dir/out"
    done
  done
  n=$((n + 1))
done
same() { test "$(cells "$dir/c.csv" "$1" "$3")" = "$(cells "$dir/c.csv" "$2" "$3")"; }
check "of one kind, per kernel is the static clock" same baseline:per-kernel baseline:static energy_j
check "to the picosecond" same baseline:per-kernel baseline:static makespan_s

# ---- a coarse schedule is told as one, and is no reference ----
succeed "few positions" '[0-9]+ switches at 10 positions, bound .*gap [0-9]+.*not the best known' \
  "$f" compare "$trace" --platform generic --bound 0.05 --positions 10
"$f" compare "$trace" --platform generic --policy nvboost --bound 0.05 --positions 10 -o "$dir/few.csv" >"$dir/out"
check "the best known is the reference" test "$(cells "$dir/few.csv" per-kernel regret_clairvoyant_pct)" = 0
check "its row says so" grep -q "baseline:per-kernel,.*best known, " "$dir/few.csv"
check "so does the text" grep -q "baseline:per-kernel: best known, .* below the clairvoyant schedule" "$dir/out"
check "the coarse schedule has a regret" awk '$1 > 1 {good = 1} END {exit !good}' <<<"$(cells "$dir/few.csv" clairvoyant regret_clairvoyant_pct)"
refuse "no positions" 2 'positions' "$f" compare "$trace" --platform generic --positions 0
# ---- a static clock that nobody measured ----
printf 'workload,sm_mhz,time_s,power_w\nw,1000,1.12,60\nw,1200,1.06,80\nw,1500,1.0,120\n' >"$dir/three.csv"
succeed "a best clock between measured ones is told" 'baseline:static .* 1[01]00 MHz, not measured: interpolated' "$f" compare "$dir/three.csv" --platform generic --bound 10%
check "with how many there are" grep -q 'note: 3 of 6 clocks were not measured' "$dir/out"
succeed "and in JSON" '"static_interpolated":.true' "$f" compare "$dir/three.csv" --platform generic --bound 10% --json
succeed "a measured one is not" '"static_interpolated":.false' "$f" compare "$dir/three.csv" --platform generic --bound 7% --json
succeed "compare tells it beside its table" 'note: 3 of 6 clocks were not measured: time and power there are interpolated' \
  "$f" compare "$dir/three.csv" --platform generic --bound 10% --policy maxfreq
succeed "a sweep of every clock has no such note" . "$f" compare traces/samples/energyucb-528.pot3d.csv --platform pvc-max1550x6
check "as it says nothing" sh -c "! grep -q interpolated '$dir/out'"
finish
