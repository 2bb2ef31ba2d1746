#!/usr/bin/env bash
# An installed tree, moved as a whole: install.sh BUILD. It finds its platforms, plots, experiments and libraries, and
# its headers build plug-ins.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
  echo "install: $1"
  exit 1
}
cmake --install "$build" --prefix "$dir/first place" >"$dir/log" 2>&1 || fail "cmake --install: $(tail -n 3 "$dir/log")"
mv "$dir/first place" "$dir/second place"
prefix="$dir/second place"
f="$prefix/bin/foldline"
cd "$dir"
[ "$("$f" list platforms | wc -l)" -ge 5 ] || fail "platforms are not found"
[ -e "$prefix/share/foldline/boards/l40s.json" ] && "$f" list platforms l40s >"$dir/out" || fail "boards are not found"
cc -O2 -fPIC -shared -fvisibility=hidden -DPOLICY_PLUGIN -I "$prefix/include/foldline" \
  "$prefix/share/doc/foldline/skeleton.c" -o mine.so -lm || fail "the header does not build a plug-in"
# One that draws, with the same generator as the built-in ones.
sed -e 's,#include "policies/policy.h",&\n#include "policies/random.h",' -e 's,uint64_t moves;,fl_random random; &,' \
  -e 's,double mhz = fl_ladder_at,if (!sample->step) node->random = fl_random_seed(facts->seed\, 1);\n index = (int64_t)fl_random_below(\&node->random\, ladder.count);\n &,' \
  "$prefix/share/doc/foldline/skeleton.c" >drawn.c
cc -std=gnu17 -O2 -fPIC -shared -fvisibility=hidden -DPOLICY_PLUGIN -I "$prefix/include/foldline" drawn.c -o drawn.so -lm ||
  fail "policies/random.h does not build a plug-in"
"$f" synth -o t.csv --kernels 500 >"$dir/out"
for seed in 1 1 2; do
  "$f" run t.csv --platform generic --policy ./drawn.so --set period_ms=1 --seed $seed --log $((runs = ${runs:-0} + 1)).log >"$dir/out" ||
    fail "the plug-in that draws does not run"
done
cmp -s <(grep -v '^#' 1.log) <(grep -v '^#' 2.log) || fail "the same seed draws otherwise"
cmp -s <(grep -v '^#' 1.log) <(grep -v '^#' 3.log) && fail "another seed draws the same"
"$f" run t.csv --platform generic --policy ./mine.so >"$dir/out" || fail "the plug-in does not run"
"$f" compare "$prefix/share/foldline/harness/experiments/first-light.json" -o r.csv >"$dir/out" || fail "the experiment"
grep -q '"models/platforms/' r.provenance.json || fail "the record names a path of this machine"
if command -v gnuplot >/dev/null; then
  "$f" plot pareto r.csv -o r.svg >"$dir/out" || fail "the plot"
fi
"$f" report r.csv -o r.html >"$dir/out" || fail "the report"
"$f" emulate t.csv --platform generic --time virtual -- "$f" live --policy nvboost --for 1s >"$dir/out" 2>&1 ||
  fail "emulate: $(tail -n 2 "$dir/out")"
cmp -s "$prefix/share/foldline/harness/experiment.schema.json" <("$f" help experiment --schema) || fail "the schema"
[ "$(PYTHONPATH="$prefix/share/foldline/python" PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -c 'import foldline; print(foldline.program())')" = "$f" ] ||
  fail "the Python module does not find its program"
if command -v man >/dev/null; then
  MANPATH="$prefix/share/man" man foldline-compare >page 2>&1 && grep -q 'foldline-compare' page || fail "man foldline-compare"
fi
cmp -s "$prefix/share/man/man1/foldline-compare.1" "$build/pages/man1/foldline-compare.1" || fail "a manual page"
bash -c '. "$1" && complete -p foldline' - "$prefix/share/bash-completion/completions/foldline" >out || fail "the completion of bash"
[ -s "$prefix/share/zsh/site-functions/_foldline" ] || fail "the completion of zsh"
grep -rqF "$build" "$prefix/share" && fail "a path of the build in what was installed"
echo "installed, moved, and used"
