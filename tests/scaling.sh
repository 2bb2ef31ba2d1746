#!/usr/bin/env bash
# What one unit of work costs, decade by decade: kernels, streams, GPUs, rows of a result, seeds, kinds of kernels. It prints,
# asserts nothing and exits with 0: a time is no test (tests/README.md). A line is marked where a unit costs more than 1.5
# times as much for ten times as many, with the level of cache that ends there if one does.
#   tests/scaling.sh PROGRAM [PART...]   PART: kernels, steps, load, streams, scarce, gpus, rows, seeds, kinds (all)
#   FL_SCALING_LARGE=1                   up to 1e8 kernels (4 GB), 1e6 rows and 1e5 seeds
# Costs are processor time, the least of three; of a command, beyond that of the same command on next to nothing.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
f=$(realpath "${1:?usage: tests/scaling.sh PROGRAM [PART...]}")
shift
parts=${*:-kernels steps load streams scarce gpus rows seeds kinds}
large=${FL_SCALING_LARGE-}
dir=$(mktemp -d "${TMPDIR:-/tmp}/foldline-scaling-XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT

# Sizes of the data caches that a core sees, in bytes, smallest first.
caches=$(for c in /sys/devices/system/cpu/cpu0/cache/index*; do
  [ -r "$c/size" ] && grep -qv Instruction "$c/type" && echo "L$(cat "$c/level") $(numfmt --from=iec "$(cat "$c/size")")"
done 2>/dev/null)
[ -n "$caches" ] || caches=$(for l in 1_D 2 3; do
  size=$(getconf "LEVEL${l/_D/_D}CACHE_SIZE" 2>/dev/null) || size=$(getconf "LEVEL${l%_D}_CACHE_SIZE" 2>/dev/null)
  [ "${size:-0}" -gt 0 ] 2>/dev/null && echo "L${l%_D} $size"
done)
echo "data caches:" $caches

# of NAME BYTES [WHY]: reads "units seconds" from stdin. BYTES: what is read again and again of a unit,
# about. WHY: what is known of a growth that no cache explains; it is printed below a table that has a marked line.
of() {
  NAME=$1 BYTES=$2 WHY=${3-} CACHES=$caches awk '
    BEGIN {
      n = split(ENVIRON["CACHES"], part, /[ \n]+/)
      for (i = 1; i < n; i += 2) { level[++levels] = part[i]; size[levels] = part[i + 1] }
      printf "\n%s\n%12s %14s %12s  %s\n", ENVIRON["NAME"], "units", "ns a unit", "a decade", ""
    }
    {
      cost = $2 * 1e9 / $1
      if (NR == 1 || before <= 0 || cost <= 0) { printf "%12d %14.1f %12s\n", $1, cost, "-"; before = cost; units = $1; next }
      growth = (cost / before) ^ (log(10) / log($1 / units))
      note = ""
      if (growth > 1.5) {
        note = "MORE THAN 1.5 TIMES"
        marked = 1
        for (i = 1; i <= levels; i++)
          if (units * ENVIRON["BYTES"] <= size[i] && $1 * ENVIRON["BYTES"] > size[i]) note = note ", " level[i] " ends here"
      }
      printf "%12d %14.1f %12.2f  %s\n", $1, cost, growth, note
      before = cost; units = $1
    }
    END { if (marked && ENVIRON["WHY"] != "") print "  known: " ENVIRON["WHY"] }'
}

# cpu COMMAND...: its processor time in seconds, the least of three
cpu() {
  local least='' t TIMEFORMAT='%U %S'
  for _ in 1 2 3; do
    t=$({ time "$@" >/dev/null 2>"$dir/err"; } 2>&1 | tail -n 1 | awk '{ print $1 + $2 }')
    [ -n "$least" ] && awk "BEGIN { exit !($t >= $least) }" || least=$t
    awk "BEGIN { exit !($t > 20) }" && break
  done
  echo "$least"
}
beyond() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; print (d > 1e-4 ? d : 1e-4) }'; }

# One figure of tests/bench: ROW FIELD KERNELS
figure() {
  "$(dirname "$f")/tests/bench" --kernels "$3" --repeat 3 --only "^$1\$" --json 2>"$dir/err" |
    awk -v row="$1" -v field="\"$2\":" '/"key":/ { here = index($0, "\"" row "\"") } here && $1 == field { gsub(/,/, "", $2); print $2; exit }'
}

synth() { # FILE, options: once for each file
  local file=$dir/$1
  shift
  [ -f "$file" ] || "$f" synth -o "$file" --mean-us 100 "$@" >/dev/null || exit 1
}
run() { cpu "$f" run "$dir/$1" --platform generic --policy utilizscale "${@:2}"; }

kernels() {
  for n in 100000 1000000 10000000 ${large:+100000000}; do
    awk -v n="$n" -v rate="$(figure one.utilizscale kernels_per_s "$n")" 'BEGIN { print n, n / rate }'
  done | of "kernels of one stream, policy each 10 ms (per kernel)" 8
}
steps() { # cost x kernels, so that of() divides it out again and shows the cost of a step
  for n in 100000 1000000 10000000; do
    awk -v n="$n" -v ns="$(figure step.prefix value "$n")" 'BEGIN { print n, n * ns / 1e9 }'
  done | of "a policy step of 1 s where sums by clock are there, by kernels of the trace (per step)" 9
}
load() {
  for n in 100000 1000000 ${large:+10000000}; do
    synth "load$n.csv" --kernels "$n"
    "$f" run "$dir/load$n.csv" --platform generic --policy utilizscale >/dev/null # leaves a cache
    echo "$n $(beyond "$(run "load$n.csv")" "$start")"
    rm -f "$dir/load$n".*
  done | of "kernels of a trace, run from its cache, loading included (per kernel)" 40
}
streams() { # NAME, SM demand of one kernel: a number, or shared among the streams; why it grows
  for n in 1 2 4 8 16 32 64 128; do
    synth "s$n.csv" --kernels 200000 --streams "$n" --gap-us 10 --memory 0 --sm-demand "$(awk -v n="$n" -v d="$2" 'BEGIN { print d == "free" ? 0.95 / n : d }')"
    "$f" run "$dir/s$n.csv" --platform generic --policy utilizscale --wall off >/dev/null
    # 200,000 kernels whatever the streams: as cost per stream it would fall, so the cost per kernel is shown
    echo "$n $(beyond "$(run "s$n.csv" --wall off)" "$start" | awk -v n="$n" '{ print $1 * n / 200000 }')"
    rm -f "$dir/s$n".*
  done | of "$1" 4000 "$3"
}
gpus() {
  for n in 1 4 16 64; do
    synth "g$n.csv" --kernels $((20000 * n)) --gpus "$n"
    "$f" run "$dir/g$n.csv" --platform generic --gpus "$n" --policy utilizscale >/dev/null
    echo "$n $(beyond "$(run "g$n.csv" --gpus "$n")" "$start")"
    rm -f "$dir/g$n".*
  done | of "GPUs with 20,000 kernels each (per GPU)" 160000
}

experiment() { # FOLDER SEEDS: a short program under one policy, so many times
  mkdir -p "$dir/$1"
  printf '%s\n' '# foldline-kinds 1' '# source: made up' name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz \
    compute,1,0.4,0,inf,0.8,0.3,1,1500,1000 >"$dir/$1/k.csv"
  printf '%s\n' '# foldline-programs 1' '# source: made up' '# sm_mhz: 1500' '# mem_mhz: 1000' '# kinds: k.csv' \
    program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv a,1,0.2,compute,1,500,0.2,10,0 >"$dir/$1/p.csv"
  printf '{"foldline_experiment": 1, "platform": "generic", "programs": "p.csv", "seeds": %d, "oracles": false,
    "policies": [{"policy": "epsilon-greedy", "set": {"interval_ms": 10}}, "random"]}\n' "$2" >"$dir/$1/e.json"
}
rows() {
  experiment rows 100
  "$f" grid "$dir/rows/e.json" -o "$dir/rows/r.csv" >/dev/null 2>&1 || { echo "rows: the sweep failed"; return; }
  # A draw of the bootstrap adds up runs in random order: of half of these rows, 64 bytes of values and 4 of what is drawn.
  for n in 1000 10000 100000 ${large:+1000000}; do
    # the same rows under further seeds; no field before the seed holds a comma in quotes here
    awk -F, -v OFS=, -v n="$n" '
      NR == 1 { for (i = 1; i <= NF; i++) if ($i == "seed") at = i; print; next }
      { row[++rows] = $0 }
      END { for (i = 0; i < n; i++) { split(row[i % rows + 1], cell, ","); line = row[i % rows + 1]
              seed = cell[at] + 100 * int(i / rows); $0 = line; $at = seed; print } }' "$dir/rows/r.csv" >"$dir/rows/$n.csv"
    echo "$n $(beyond "$(cpu "$f" report "$dir/rows/$n.csv" -o "$dir/rows/r.html")" "$start")"
  done | of "rows of a result, report (per row)" 34
  for n in 1000 10000 100000 ${large:+1000000}; do
    echo "$n $(beyond "$(cpu "$f" plot pareto "$dir/rows/$n.csv" -o "$dir/rows/r.png")" "$start")"
  done | of "rows of a result, plot pareto (per row)" 34
}
seeds() {
  for n in 1 10 100 1000 10000 ${large:+100000}; do
    experiment "seeds$n" "$n"
    echo "$n $(beyond "$(cpu "$f" compare "$dir/seeds$n/e.json" --threads 1)" "$start")"
  done | of "seeds of a comparison of two policies (per seed)" 2000
}
kinds() {
  for n in 100 1000 10000 65535; do
    synth "k$n.csv" --kernels 200000 --kinds "$n" --burst 1
    "$f" run "$dir/k$n.csv" --platform generic --policy utilizscale >/dev/null
    echo "$n $(beyond "$(run "k$n.csv")" "$few" | awk -v n="$n" '{ print $1 }')"
    rm -f "$dir/k$n".*
  done | of "kinds of kernels, beyond a run of 200,000 kernels of one kind (per kind)" 500
}

synth start.csv --kernels 10
start=$(run start.csv)
case " $parts " in *" kinds "*)
  synth few.csv --kernels 200000 --kinds 1 --burst 1
  "$f" run "$dir/few.csv" --platform generic --policy utilizscale >/dev/null
  few=$(run few.csv)
  ;;
esac
for part in $parts; do
  case $part in
    streams)
      streams "streams, nothing scarce, wall off (per kernel)" free "one stream is scanned; of several the next end is\
 chosen among all, in log2 of their number"
      ;;
    scarce)
      streams "streams, scarce, wall off (per kernel)" 0.9 "one stream is scanned; of several each start and end changes\
 the rate of all that run, and each is rounded by itself: the cost of an event grows with their number"
      ;;
    kernels | steps | load | gpus | rows | seeds | kinds) "$part" ;;
    *) echo "scaling: no part '$part'" >&2 ;;
  esac
done
exit 0
