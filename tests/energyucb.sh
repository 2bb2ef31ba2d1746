#!/usr/bin/env bash
# EnergyUCB's experiment: `fit policy draws` gives what it draws from, byte for byte; its gates hold, and notice another alpha, C
# or reward's ratio; which of them, it says. What no gate needs of it is run by tests/run.sh --nightly.
#   tests/energyucb.sh PROGRAM
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
foldline=$(realpath "${1:?usage: tests/energyucb.sh PROGRAM}")
work=$(mktemp -d "${TMPDIR:-/tmp}/foldline-energyucb-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
experiment=harness/experiments/energyucb.json
fail() { echo "energyucb: $*"; exit 1; }

"$foldline" fit policy draws traces/samples/energyucb-published.json -o "$work/sweep.csv" --draws "$work/draws.json" \
  >"$work/out" || fail "the fit"
cmp "$work/sweep.csv" traces/samples/energyucb-draws.csv || fail "the sample is not what the fit gives"
# Of the experiment, the object "draws" without what does not come from the fit.
compact() { tr -d ' \t\n' <"$1" | sed 's/^.*"draws":{/{/; s/},"seeds".*$/}/; s/,"steps_max":100000//'; }
[ "$(compact "$experiment")" = "$(compact "$work/draws.json")" ] ||
  fail "the experiment does not draw what the fit gives"
echo "energyucb: sweep and draws are what the fit gives"

refused() { # what, what it says, command ...
  local what=$1 says=$2
  shift 2
  "$@" >"$work/out" 2>"$work/err"
  [ $? = 2 ] && grep -q "$says" "$work/err" || fail "$what: $(tail -n 1 "$work/err")"
}
bad() { sed "$1" traces/samples/energyucb-published.json >"$work/bad.json"; }
bad 's/131.61/-1/'
refused "an energy below zero" 'bad.json:[0-9]*:[0-9]*: workloads.505.lbm.energy_kj' "$foldline" fit policy draws "$work/bad.json"
bad 's/, 131.61//'
refused "an energy too few" 'one energy for each of 9 clocks' "$foldline" fit policy draws "$work/bad.json"
bad 's/"steps": 4000/"steps": 4500/'
refused "steps that are no thousands" 'expected thousands' "$foldline" fit policy draws "$work/bad.json"
bad 's/"workload": "518.tealeaf"/"workload": "518"/'
refused "a workload that is none" "no workload '518'" "$foldline" fit policy draws "$work/bad.json"
bad 's/1600, 1500/1500, 1600/'
refused "clocks that ascend" 'expected descending clocks' "$foldline" fit policy draws "$work/bad.json"
refused "no file" 'expected one file' "$foldline" fit policy draws
sed "s#\.\./\.\./#$PWD/#; /\"519.clvleaf\": 0.1,/d" "$experiment" >"$work/lacks.json"
refused "an exponent that is missing" '519.clvleaf' "$foldline" compare "$work/lacks.json"
echo "energyucb: bad input is refused"

# The experiment without what no gate needs.
sed "s#\.\./\.\./#$PWD/#; /^ \"variants\": {/,/^ },/d
  /\"variant\": \|ln_t=next\|explore=least\|sm_mhz=1600\|sm_mhz=1100\|sm_mhz=800/d" "$experiment" >"$work/gates.json"
"$foldline" compare "$work/gates.json" -o "$work/rows.csv" >"$work/out" 2>"$work/err" || fail "unchanged: $(tail -n 1 "$work/err")"
for kind in pareto regret; do "$foldline" plot $kind "$work/rows.csv" -o "$work/$kind.svg" >/dev/null || fail "plot $kind"; done
echo "energyucb: its gates come out as it says"
changed() { # what, sed expression: "holds" counts the lines that come out better than recorded
  sed "$2" "$work/gates.json" >"$work/changed.json"
  cmp -s "$work/gates.json" "$work/changed.json" && fail "$1: changes nothing"
  "$foldline" compare "$work/changed.json" --all >"$work/out" 2>"$work/err"
  [ $? = 1 ] || fail "$1: no gate notices: $(tail -n 1 "$work/err")"
  holds=$(grep -c "  reproduced, BUT RECORDED: " "$work/out")
  fails=$(($(grep -c ", BUT RECORDED: " "$work/out") - holds))
  regret=$(sed -n 's/^Fig. 3(a), 518.tealeaf: regret after 4,000 steps  *1991  *\([0-9]*\).*/\1/p' "$work/out")
  echo "energyucb: $1: $fails claims of EnergyUCB no longer come out, $holds more do; regret $regret for 1991"
}
changed "C 2" 's/"energyucb"/"energyucb:cycles=2"/g'
[ "$fails" -gt 0 ] || fail "C 2: no claim breaks"
changed "a ratio that grows with the run time" '/ratio_exponent/,/}/s/"\(5[0-9][0-9][.][0-9a-z_]*\)": [0-9.]*\(,*\)$/"\1": 1\2/; s/"505.lbm": 1300/"505.lbm": 0/'
[ "$fails" -gt 0 ] || fail "another growth of the ratio: no claim breaks"
# A reward half as large explores as much as twice the alpha: the same verdicts change, and the regret to which the
# deviation was fitted is another.
changed "alpha 2" 's/"energyucb"/"energyucb:alpha=2"/g'
alpha="$fails $holds"
[ "$regret" -lt 1500 ] || fail "alpha 2: the regret is $regret"
changed "half the ratio" 's/"ratio": 1.657/"ratio": 0.8285/'
[ "$fails $holds" = "$alpha" ] || fail "half the ratio is not as alpha 2"
