#!/usr/bin/env bash
# An installed tree, moved as a whole: install.sh BUILD. It finds its platforms, plots, experiments and libraries, and
# its one header builds a plug-in.
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
[ "$("$f" platforms | wc -l)" -ge 5 ] || fail "platforms are not found"
cc -O2 -fPIC -shared -fvisibility=hidden -DPOLICY_PLUGIN -I "$prefix/include/foldline" \
  "$prefix/share/doc/foldline/skeleton.c" -o mine.so -lm || fail "the header does not build a plug-in"
"$f" synth -o t.csv --kernels 500 >"$dir/out"
"$f" run t.csv --platform generic --policy ./mine.so >"$dir/out" || fail "the plug-in does not run"
"$f" compare "$prefix/share/foldline/harness/experiments/first-light.json" --csv r.csv >"$dir/out" || fail "the experiment"
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
grep -rqF "$build" "$prefix/share" && fail "a path of the build in what was installed"
echo "installed, moved, and used"
