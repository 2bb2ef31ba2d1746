#!/usr/bin/env bash
# The gate as a CI would use it: it lets the unchanged program pass, every time, and stops planted faults in policies: references
# at the wrong clock, thresholds off, a reward of the wrong sign and so on.
#   tests/gate.sh BUILD     BUILD: a configured and built folder with Makefiles
# One unchanged run and one fault; FL_GATE_RUNS=100: so many runs, and each of ten faults (nightly). FL_BLESS=1 records tests/gate/gate.baseline.json anew.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "${1:?usage: tests/gate.sh BUILD}")
work=$(mktemp -d "${TMPDIR:-/tmp}/foldline-gate-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
base=tests/gate/gate.baseline.json
cc=${CC:-cc}
jobs=$(nproc)
runs=${FL_GATE_RUNS:-1} faults=${FL_GATE_RUNS:+10}
faults=${faults:-1}
fail() { echo "gate: $*"; exit 1; }

if [ "${FL_BLESS:-}" = 1 ]; then
  "$build/foldline" regress tests/gate/gate.json --bless -o "$base" --fail-if 'energy_j!0.5%' --fail-if 'makespan_s!0.5%' ||
    fail "cannot record"
fi

# Unchanged: passes each time, and the stochastic policies too under other seeds, behind a tolerance.
seq "$runs" | xargs -P "$jobs" -I{} sh -c '"$0" regress "$1" >"$2/same{}" 2>&1 || touch "$2/stopped-{}"' \
  "$build/foldline" "$base" "$work"
stopped=$(ls "$work" | grep -c '^stopped-')
[ "$stopped" = 0 ] || { cat "$work/same1"; fail "$stopped unchanged runs of $runs were stopped"; }
echo "gate: $runs unchanged runs of $runs passed"

plant() { # number, file, sed expression, what
  sed "$3" "policies/$2" >"$work/$1.c"
  cmp -s "policies/$2" "$work/$1.c" && { echo "NO LONGER APPLIES  $4"; return; }
  $cc -std=gnu17 -O2 -w -ffp-contract=off -D_GNU_SOURCE -I. -c "$work/$1.c" -o "$work/$1.o" || { echo "DOES NOT COMPILE  $4"; return; }
  (cd "$build" && sed "s|-o foldline |-o $work/foldline-$1 $work/$1.o |" CMakeFiles/foldline.dir/link.txt | sh) ||
    { echo "DOES NOT LINK  $4"; return; }
  "$work/foldline-$1" regress "$base" >"$work/out$1" 2>&1
  case $? in
  1) echo "stopped  $4: $(grep -m1 '^FAIL' "$work/out$1" | cut -c7-100)" ;;
  0) echo "PASSED  $4" ;;
  *) echo "BROKE  $4: $(tail -1 "$work/out$1")" ;;
  esac
}
export -f plant
export work build base cc

printf '%s\0' \
  1 papers/geepafs.c 's/p->theta, g->fmax_mhz)/p->theta, 1.3 * g->fmax_mhz)/' "assure: the reference of the bound at the wrong clock" \
  2 papers/foldfit.c 's/double goal = theta \*/double goal = 0.8 * theta */;s/return (theta \*/return (0.8 * theta */' "assure: a looser bound" \
  3 papers/fixed.c 's/util \* fmax_mhz \/ 100/util * fmax_mhz \/ 130/' "utilizscale: utilisation against the wrong clock" \
  4 papers/bandit.c 's/n->reward = -draw/n->reward = draw/' "energyucb: a reward of the wrong sign" \
  5 papers/bandit_meter.c 's/core \/ uncore :/uncore \/ core :/' "energyucb: uncore over core" \
  6 papers/bandit.c 's/(&n->random) < p->epsilon/(\&n->random) > p->epsilon/' "epsilon-greedy: explores where it should not" \
  7 papers/dynaco.c 's/upc >= p->upc_threshold/upc >= 5 * p->upc_threshold/' "1levelth: a threshold five times too high" \
  8 papers/powercap.c 's/if (w >= p->cap_w)/if (w >= 0.8 * p->cap_w)/' "cap-dynamic: a limit of 80 %" \
  9 compared/depo.c 's/objective(p, g, x) >= objective(p, g, g->golden)/objective(p, g, x) < objective(p, g, g->golden)/' "depo: takes the worse for the better" \
  10 skeleton.c 's/util < p->low_pct/util < 39 + p->low_pct/' "skeleton: a threshold off" |
  head -zn $((4 * faults)) | xargs -0 -n 4 -P "$jobs" bash -c 'plant "$@"' plant >"$work/verdicts"
sort "$work/verdicts"
[ "$(grep -c '^stopped' "$work/verdicts")" = $faults ] || fail "not every planted fault was stopped"
echo "gate: $faults planted faults of $faults stopped"
