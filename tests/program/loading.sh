#!/usr/bin/env bash
# Loading: a trace from its cache gives the bytes that it gives without, on every platform and after any damage.
. "$(dirname "$0")/shell.sh"

"$f" synth -o "$dir/t.csv" --kernels 120000 --streams 3 --sm-demand 0.5 --seed 4 >/dev/null # they overlap
"$f" synth -o "$dir/l.csv" --kernels 90000 --launches --gap-us 90 --seed 5 >/dev/null      # gaps beyond 65.5 us: escapes
sed -i "/^# \(sm\|mem\)_mhz/d" "$dir/t.csv" "$dir/l.csv" # as recorded at the default clocks of any board
for t in t l; do
  for platform in generic a100; do
    rm -f "$dir/$t.csv".foldline-*
    "$f" run "$dir/$t.csv" --platform $platform --policy utilizscale --json >"$dir/$t.$platform" 2>&1
    check "$t on $platform runs" grep -q energy_j "$dir/$t.$platform"
  done
  check "$t: it is kept" [ -s "$dir/$t.csv.foldline-cache" ]
  for platform in a100 generic a100; do
    "$f" run "$dir/$t.csv" --platform $platform --policy utilizscale --json >"$dir/again" 2>&1
    check "$t on $platform: kept, the same bytes" cmp "$dir/again" "$dir/$t.$platform"
  done
  cp "$dir/$t.csv.foldline-cache" "$dir/whole"
  size=$(stat -c %s "$dir/whole")
  for at in 0 20 100 150 400 5000 $((size / 2)) $((size - 1)); do
    cp "$dir/whole" "$dir/$t.csv.foldline-cache"
    printf '\377' | dd of="$dir/$t.csv.foldline-cache" bs=1 seek="$at" conv=notrunc 2>/dev/null
    "$f" run "$dir/$t.csv" --platform a100 --policy utilizscale --json >"$dir/again" 2>&1
    check "$t with byte $at changed: the same bytes" cmp "$dir/again" "$dir/$t.a100"
    head -c "$at" "$dir/whole" >"$dir/$t.csv.foldline-cache"
    "$f" run "$dir/$t.csv" --platform a100 --policy utilizscale --json >"$dir/again" 2>&1
    check "$t cut to $at bytes: the same bytes" cmp "$dir/again" "$dir/$t.a100"
  done
  rm -f "$dir/$t.csv".foldline-*
  ln -s "$dir/nowhere" "$dir/$t.csv.foldline-cache"
  "$f" run "$dir/$t.csv" --platform a100 --policy utilizscale --json >"$dir/again" 2>&1
  check "$t beside a link: the same bytes" cmp "$dir/again" "$dir/$t.a100"
  check "$t: nothing is written through it" [ ! -e "$dir/nowhere" ]
done

refuse "an experiment that needs a sweep says so" 2 'power-wall.json: the experiment names no workload.*a sweep.*Needs a measured sweep' \
  "$f" compare harness/experiments/power-wall.json
check "and in its first line" grep -q '^  "about": "Needs a measured sweep' harness/experiments/power-wall.json
succeed "compare --help says so" 'names no workload.*needs a sweep' env COLUMNS=300 "$f" compare --help all
succeed "grid --help says so" 'names no workload needs' env COLUMNS=300 "$f" grid --help all
finish
