#!/usr/bin/env bash
# How many times as fast as SimGrid with its plug-in for energy is Foldline, on the same work? One GPU with the clocks and
# powers of `generic`, one stream of kernels that depend on the SM clock alone, a policy that reads the energy each 10 ms and
# sets a drawn clock, by the same rule in both. By hand: it needs SimGrid (Debian: libsimgrid-dev) and skips with 77 without.
#   tests/simgrid.sh PROGRAM [KERNELS]   KERNELS: 1000000
# It first checks that both simulate the same: makespan within 0.01 %, energy within 0.1 %, the same steps, or exit status 1.
# Then it prints kernels per second of processor time of the simulation alone, the best of three rounds in turn, and
# asserts none. Foldline: what 200 runs with further seeds add to `compare` with one. SimGrid: simgrid_run.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
f=$(realpath "${1:?usage: tests/simgrid.sh PROGRAM [KERNELS]}")
kernels=${2:-1000000}
runs=200
if ! pkg-config --exists simgrid 2>/dev/null || ! command -v cc >/dev/null; then
  echo "skipped: needs cc, pkg-config and SimGrid (libsimgrid-dev)"
  exit 77
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/foldline-simgrid-XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
failed() { echo "simgrid: $1"; exit 1; }

read -ra simgrid_flags <<<"$(pkg-config --cflags --libs simgrid)"
cc -std=gnu17 -O2 -I . -o "$dir/simgrid_gpu" tests/support/simgrid_gpu.c "${simgrid_flags[@]}" || failed "its program does not build"
cc -std=gnu17 -O2 -fPIC -shared -fvisibility=hidden -DPOLICY_PLUGIN -I . -o "$dir/rule.so" tests/support/simgrid_policy.c -lm ||
  failed "the policy does not build"

# The platform: generic without delays, its energy new at each step, the voltage of each clock stated (linear between its
# corners), so that the powers of the pstates can be worked out here from what the file says.
generic=models/platforms/generic.json
volt='function volt(mhz) { return mhz <= 900 ? 1 : 1 + 0.2 * (mhz - 900) / 600 }'
table=$(awk "$volt"' BEGIN { for (m = 300; m <= 1500; m += 100) printf "%s[%d, %.9f]", (m > 300 ? ", " : ""), m, volt(m) }')
sed -e "s/\"voltage\": .*/\"voltage\": [$table]/" -e 's/"energy": {"refresh_ms": 100,/"energy": {"refresh_ms": 10,/' \
  -e 's/"actuator": .*/"actuator": {"call_ms": 0, "settle_ms": 0, "read_ms": 0},/' "$generic" >"$dir/gpu.json"
[ "$(diff "$generic" "$dir/gpu.json" | grep -c '^>')" = 3 ] || failed "$generic is another than this script knows"

# The work: lengths and kinds as in tests/bench, without gaps and latencies. No kind is bound by memory.
"$f" synth -o "$dir/work.csv" --kernels "$kernels" --kinds 512 --mean-us 50 --gap-us 0 --burst 1 --memory 0 >/dev/null || exit 1
awk -F, -v OFS=, '/^#/ { print; next } !names { names = 1; for (i = 1; i <= NF; i++) if ($i == "tl") at = i; print; next } { $at = 0; print }' \
  "$dir/work.kinds.csv" >"$dir/kinds" && mv "$dir/kinds" "$dir/work.kinds.csv"
# For SimGrid the same as flops, one a cycle, and the mean loads of a kernel, since a pstate has one power
mean=$(awk -F, -v flops="$dir/flops" '
  /^#/ { next }
  file != FILENAME { file = FILENAME; files++; for (i = 1; i <= NF; i++) at[$i] = i; next } # the line of names
  files == 1 { alpha[$at["name"]] = $at["alpha"]; beta[$at["name"]] = $at["beta"]; next }
  { ns = $at["end_ns"] - $at["start_ns"]; print ns * 1.5 >flops; all += ns; a += ns * alpha[$at["name"]]; b += ns * beta[$at["name"]] }
  END { printf "%.9f %.9f", a / all, b / all }' "$dir/work.kinds.csv" "$dir/work.csv")
# The power law of sim/README.md
awk -v mean="$mean" "$volt"'
  { for (i = split("a_w a0_w b_w b0_w c_w", key, " "); i; i--)
      if (match($0, "\"" key[i] "\": \\[?[0-9., ]+")) {
        n = split(substr($0, RSTART, RLENGTH), part, /[^0-9.]+/)
        while (n && part[n] == "") n--
        w[key[i]] = part[n] # of b0_w the last, which is that of the default memory clock
      } }
  END {
    split(mean, load, " ")
    for (m = 300; m <= 1500; m += 100) {
      v = volt(m); ghz = m / 1000
      idle = w["b0_w"] + w["c_w"] * v + w["a0_w"] * v * v * ghz
      speed = speed (m > 300 ? "," : "") m "Mf"
      watts = watts (m > 300 ? "," : "") sprintf("%.9f:%.9f", idle, idle + load[1] * w["a_w"] * v * v * ghz + load[2] * w["b_w"])
    }
    print "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">"
    print "<zone id=\"node\" routing=\"None\"><host id=\"gpu\" speed=\"" speed "\" pstate=\"12\">"
    print "<prop id=\"wattage_per_state\" value=\"" watts "\"/></host></zone>\n</platform>"
  }' "$generic" >"$dir/gpu.xml"

node=(--platform "$dir/gpu.json" --wall off --no-cpu)
# simgrid LOWEST ENERGY OPTIM: its line of figures
simgrid() {
  "$dir/simgrid_gpu" "$dir/gpu.xml" "$dir/flops" 1 "$1" "$2" --cfg=contexts/factory:raw "--cfg=cpu/optim:$3" --log=root.thres:error \
    2>"$dir/err" || { cat "$dir/err" >&2; touch "$dir/failed"; return 1; }
}
# cpu COMMAND...: its processor time in seconds. One that failed ends the script at the end of its round.
cpu() {
  local TIMEFORMAT='%U %S'
  { time "$@" >/dev/null 2>"$dir/err" || { cat "$dir/err" >"$dir/failed"; }; } 2>&1 | tail -n 1 | awk '{ print $1 + $2 }'
}
compare() { cpu "$f" compare "$dir/work.csv" "${node[@]}" --policy "$dir/rule.so:lowest=$1" --no-oracle --threads 1 --seeds "$2"; }
value() { awk -v key="\"$1\":" '$1 == key { gsub(/,/, "", $2); print $2; exit }' "$dir/run.json"; }

echo "$("$f" --version | head -n 1); SimGrid $(pkg-config --modversion simgrid), -O2, contexts/factory raw; $kernels kernels"
status=0
for lowest in 12 6 0; do
  mhz=$((300 + 100 * lowest))
  "$f" run "$dir/work.csv" "${node[@]}" --policy "$dir/rule.so:lowest=$lowest" --json >"$dir/run.json" || failed "the run failed"
  line=$(simgrid $lowest 1 Full) || failed "SimGrid's run failed"
  [ $mhz = 1500 ] && printf '\nalways 1500 MHz\n' || printf '\nclocks drawn from %d to 1500 MHz\n' $mhz
  echo "$(value steps) $(value makespan_s) $(value energy_j) $line" | awk '{
    time = ($6 / $2 - 1) * 100; energy = ($7 / $3 - 1) * 100
    printf "  Foldline  %d steps, %.6f s, %.3f J\n  SimGrid   %d steps, %.6f s, %.3f J: %+.6f %% of the time, %+.4f %% of the energy\n",
      $1, $2, $3, $5, $6, $7, time, energy
    exit !($1 == $5 && time < 0.01 && time > -0.01 && energy < 0.1 && energy > -0.1) }' ||
    { echo "  NOT THE SAME"; status=1; }
  for _ in 1 2 3; do
    echo "foldline $(compare $lowest 1) $(compare $lowest $((runs + 1)))"
    for how in "1 Full" "1 Lazy" "0 Full" "0 Lazy"; do
      read -r energy optim <<<"$how"
      echo "$energy$optim $(simgrid $lowest "$energy" "$optim" | awk '{ print $5 }')"
    done
  done | awk -v kernels="$kernels" -v runs="$runs" -v steps="$(value steps)" '
    function least(name, s) { if (!(name in best) || s < best[name]) best[name] = s }
    $1 == "foldline" { least("one", $2); least("many", $3); next }
    { least($1, $2) }
    function row(name, s) { printf "  %-42s %12.0f kernels/s   %.1f\n", name, kernels / s, s / fold }
    END {
      fold = (best["many"] - best["one"]) / runs
      printf "  %-42s %12.0f kernels/s   (%.0f kernels a step)\n", "Foldline", kernels / fold, kernels / steps
      print "                                                                  Foldline is so many times as fast"
      row("SimGrid with energy, cpu/optim Full", best["1Full"])
      row("SimGrid with energy, cpu/optim Lazy", best["1Lazy"])
      row("SimGrid without energy, cpu/optim Full", best["0Full"])
      row("SimGrid without energy, cpu/optim Lazy", best["0Lazy"])
    }'
  [ ! -e "$dir/failed" ] || failed "a run failed: $(cat "$dir/failed")"
done
echo
run=("$f" run "$dir/work.csv" "${node[@]}" --policy "$dir/rule.so")
echo "whole commands, with a clock drawn from all, in s of processor time: foldline run $(cpu "${run[@]}" --no-cache) that reads the trace\
 as text, $(cpu "${run[@]}") from what was kept of it; SimGrid $(cpu simgrid 0 1 Full), which reads a number for each kernel"
exit $status
