#!/usr/bin/env bash
# Experiments on measurements that may not be shipped: the lines with which a user makes their sweeps, on made-up tables
# of the same form, and with FOLDLINE_DATA the experiments themselves, whose published claims come out as they state.
. "$(dirname "$0")/shell.sh"
export FOLDLINE_SHARE=$PWD/models
e=harness/experiments

# prepared EXPERIMENT SWEEP OUT: what its page says
prepared() { awk -f "$e/$1.awk" "$2" "$2" >"$3"; }
# map_of EXPERIMENT: the map in its "about", so that the line which users copy is the line that is tested
map_of() { sed -n "s/.*\"about\".*--map '\([^']*\)'.*/\1/p" "$e/$1.json"; }

# ---- GEEPAFS: a table of speeds and one of powers, a column per clock ----

cd "$dir" || exit 1
printf 'frequency(MHz),757,1200,1530\nGeMM,0.25,0.5,0.5\nVGG19,0.8,1.0,1.0\nLSTM,0.5,0.75,1.0\n' >dataset_performance.csv
printf 'frequency(MHz),757,1200,1530\nGeMM,100,200,250\nVGG19,80,100,160\nLSTM,70,100,150\n' >dataset_power.csv
"$f" import dataset_performance.csv -o dataset.csv >out 2>&1
cd "$root" || exit 1
prepared geepafs-v100 "$dir/dataset.csv" "$dir/v100.csv"
cat >"$dir/want" <<'END'
workload,sm_mhz,time_s,power_w,util_gpu_pct,util_mem_pct,util_mem_sd
GeMM,757,200,100,,,
GeMM,1200,100,200,,,
GeMM,1530,100,250,,,
VGG19,757,125,80,88.000,40.000,12
VGG19,1200,100,100,85.000,50.000,12
VGG19,1530,100,160,85.000,50.000,12
LSTM,757,200,70,92.500,25.000,12
LSTM,1200,133.333,100,88.750,37.500,12
LSTM,1530,100,150,85.000,50.000,12
END
check "geepafs-v100: the authors' two tables become its sweep" diff "$dir/want" "$dir/v100.csv"
refuse "geepafs-maxq: without a sweep, too" 2 'Needs a measured sweep of the board' "$f" compare $e/geepafs-maxq.json
refuse "without a sweep it says what it needs" 2 'names no workload.*Needs a measured sweep of the board' \
  "$f" compare $e/geepafs-v100.json
"$f" compare $e/geepafs-v100.json "$dir/v100.csv" --seeds 1 >"$dir/out" 2>&1
check "with one it shows its claims" grep -qE '^EfficientFix: efficiency gained, mean, % .* 31\.1' "$dir/out"
"$f" compare $e/geepafs-sweetspot.json traces/samples/mix8.csv --no-oracle >"$dir/out" 2>&1
check "an experiment with workloads of its own judges no others" test "$(grep -c '^BlackScholes, MaxFreq' "$dir/out")" = 0

# ---- MF-GPOEO: a table of kernels over both clocks; what was asked for as 2100 MHz ran at 1935 ----

cat >"$dir/table.csv" <<'END'
NAME,SM,MEM,MS,MJ
sum,auto,auto,1.1,300
sum,2100,9501,1.0,300
sum,1050,9501,1.6,320
sum,2100,810,4.0,400
sum,1050,810,4.4,352
mul,2100,9501,0.1,30
mul,1050,810,,
END
"$f" import "$dir/table.csv" --map "$(map_of mf-gpoeo-3080ti)" -o "$dir/kernels.csv" >"$dir/out" 2>&1
prepared mf-gpoeo-3080ti "$dir/kernels.csv" "$dir/rtx.csv"
cat >"$dir/want" <<'END'
workload,sm_mhz,mem_mhz,time_s,power_w
sum,1935,9501,0.02,300
sum,1050,9501,0.032,200
sum,1935,810,0.08,100
sum,1050,810,0.088,80
mul,1935,9501,0.02,300
END
check "mf-gpoeo-3080ti: a table of kernels becomes its sweep" diff "$dir/want" "$dir/rtx.csv"
"$f" compare $e/mf-gpoeo-3080ti.json "$dir/rtx.csv" --workload sum --repeat 1000 --policy fixed:mem_mhz=810 >"$dir/out" 2>&1
check "all memory clocks are replayed" grep -q 'memory at 810, 9501 MHz' "$dir/out"
check "and can be set" grep -qE '^fixed:mem_mhz=810 .* 299\.61 ' "$dir/out"

# ---- locks x power limits ----

printf 'NAME,SM,LIMIT,S,W\na,1110,150,2,140\na,1410,150,1.9,150\na,1110,300,2,140\na,1410,300,1.6,220\n' >"$dir/table.csv"
"$f" import "$dir/table.csv" --map "$(map_of power-wall)" -o "$dir/a100.csv" >"$dir/out" 2>&1
printf '%s\n' a,,1110,,150,2,140,280 a,,1410,,150,1.9,150,285 a,,1110,,300,2,140,280 a,,1410,,300,1.6,220,352 >"$dir/want"
check "power-wall: a table of locks and limits becomes its sweep" diff "$dir/want" <(grep '^a,' "$dir/a100.csv")

# ---- the experiments ----

if [ -n "${FOLDLINE_DATA:-}" ]; then
  prepared geepafs-v100 "$FOLDLINE_DATA/papers/geepafs-v100.csv" "$dir/v100.csv"
  prepared mf-gpoeo-3080ti "$FOLDLINE_DATA/papers/rtx3080ti-kernels.csv" "$dir/rtx.csv"
  succeed "Assure, fed with the readings of the authors' log of eight boards, sets each clock that it has" \
    '32000 decisions, 0 differ' "$f" verify "$FOLDLINE_DATA/logs/geepafs-v100-maxq-p90.log" --format geepafs \
    --platform v100-163w --policy assure --set theta=0.9
  succeed "geepafs-v100: as published, or as stated" '^score: .* predictions' "$f" compare $e/geepafs-v100.json "$dir/v100.csv"
  succeed "geepafs-maxq: as logged, or as stated" '^score: 8 predictions' "$f" compare $e/geepafs-maxq.json "$dir/v100.csv"
  succeed "mf-gpoeo-3080ti: as published, or as stated" '^score: .* predictions' "$f" compare $e/mf-gpoeo-3080ti.json "$dir/rtx.csv"
else
  echo "skipped: the experiments on measured sweeps (set FOLDLINE_DATA)"
fi
finish
