#!/usr/bin/env bash
# EnergyUCB's experiment: `fit draws` gives what it draws from, byte for byte, and its gates fail where alpha, C or the
# reward's ratio is another. Unchanged it is run by program.sh.
#   tests/energyucb.sh PROGRAM
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
foldline=$(realpath "${1:?usage: tests/energyucb.sh PROGRAM}")
work=$(mktemp -d "${TMPDIR:-/tmp}/foldline-energyucb-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
experiment=harness/experiments/energyucb.json
fail() { echo "energyucb: $*"; exit 1; }

"$foldline" fit draws traces/samples/energyucb-published.json --out "$work/sweep.csv" --draws "$work/draws.json" \
  >"$work/out" || fail "the fit"
cmp "$work/sweep.csv" traces/samples/energyucb-table1.csv || fail "the sample is not what the fit gives"
# Of the experiment, the object "draws" without what does not come from the fit.
compact() { tr -d ' \t\n' <"$1" | sed 's/^.*"draws":{/{/; s/},"seeds".*$/}/; s/,"steps_max":100000//'; }
[ "$(compact "$experiment")" = "$(compact "$work/draws.json")" ] ||
  fail "the experiment does not draw what the fit gives"
echo "energyucb: sweep and draws are what the fit gives"

changed() { # what, sed expression
  sed "s#\.\./\.\./#$PWD/#; $2" "$experiment" >"$work/changed.json"
  cmp -s "$experiment" "$work/changed.json" && fail "$1: changes nothing"
  "$foldline" compare "$work/changed.json" >"$work/out" 2>"$work/err"
  [ $? = 1 ] || fail "$1: no gate fails: $(tail -n 1 "$work/err")"
  grep -q "EnergyUCB.* FAILS$" "$work/out" || fail "$1: no gate fails"
  echo "energyucb: $1: $(grep -c ' FAILS$' "$work/out") gates fail"
}
changed "alpha 2" 's/"energyucb"/"energyucb:alpha=2"/'
changed "C 2" 's/"energyucb"/"energyucb:cycles=2"/'
changed "half the ratio" 's/"ratio": 1.657/"ratio": 0.8285/'
changed "a ratio that grows with the run time" 's/"\(5[0-9][0-9][.][0-9a-z_]*\)": [0-9.]*\(,*\)$/"\1": 1\2/'
